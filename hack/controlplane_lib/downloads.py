"""Fetch published programs where the machine reaches them; a short time-out decides that it does not."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from controlplane_lib.console import say
from controlplane_lib.paths import module_version, target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from controlplane_lib.binaries import Program

KUBERNETES = "https://dl.k8s.io/release"
RELEASES = "https://github.com"
_PROBE_SECONDS = 3.0
_READ_SECONDS = 30.0


def download(
    programs: Sequence[Program], *, into: Path, kubernetes: str = KUBERNETES, releases: str = RELEASES
) -> bool:
    """Download programs into a folder; False when that is not possible here and they have to be built."""
    system, processor = target()
    if system != "linux":  # nobody publishes kube-apiserver for another system
        return False
    version = module_version("k8s.io/kubernetes")
    if not _is_reachable(f"{kubernetes}/{version}/bin/linux/{processor}/kubectl.sha256"):
        say("published programs are not reachable from here")
        return False
    try:
        for number, program in enumerate(programs, 1):
            say(f"{program.name} ({number} of {len(programs)}): downloading")
            _install(into / program.name, _fetch(program, processor, kubernetes=kubernetes, releases=releases))
    except (OSError, ValueError, KeyError, tarfile.TarError) as error:
        say(f"the download failed ({error})")
        return False
    return True


def _fetch(program: Program, processor: str, *, kubernetes: str, releases: str) -> bytes:
    version = module_version(program.module, tools=program.workspace)
    match program.module:
        case "k8s.io/kubernetes":
            address = f"{kubernetes}/{version}/bin/linux/{processor}/{program.name}"
            return _checked(_get(address), _get(f"{address}.sha256").decode().split()[0])
        case "go.etcd.io/etcd/server/v3":
            folder, archive = (
                f"{releases}/etcd-io/etcd/releases/download/{version}",
                f"etcd-{version}-linux-{processor}",
            )
            sums = dict(reversed(line.split()) for line in _get(f"{folder}/SHA256SUMS").decode().splitlines() if line)
            packed = _checked(_get(f"{folder}/{archive}.tar.gz"), sums[f"{archive}.tar.gz"])
            with tarfile.open(fileobj=io.BytesIO(packed)) as unpacked:
                member = unpacked.extractfile(f"{archive}/etcd")
                assert member, "etcd's archive has a folder where its program should be"
                return member.read()
        case "sigs.k8s.io/kind":
            address = f"{releases}/kubernetes-sigs/kind/releases/download/{version}/kind-linux-{processor}"
            return _checked(_get(address), _get(f"{address}.sha256sum").decode().split()[0])
        case "sigs.k8s.io/kwok":  # publishes no checksums
            return _get(f"{releases}/kubernetes-sigs/kwok/releases/download/{version}/{program.name}-linux-{processor}")
    raise ValueError(f"nobody publishes {program.name}")


def _install(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content)
        fresh.chmod(0o755)
        fresh.rename(path)
    finally:
        fresh.unlink(missing_ok=True)


def _checked(content: bytes, want: str) -> bytes:
    if hashlib.sha256(content).hexdigest() != want:
        raise ValueError("its checksum is not the published one")
    return content


def _is_reachable(address: str) -> bool:
    answers: list[bytes] = []

    def ask() -> None:
        try:
            answers.append(_get(address, timeout=_PROBE_SECONDS))
        except (OSError, ValueError):
            return

    # A thread, since no socket time-out bounds the look-up of a name.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PROBE_SECONDS)
    return bool(answers)


def _get(address: str, *, timeout: float = _READ_SECONDS) -> bytes:
    with urllib.request.urlopen(address, timeout=timeout) as answer:
        return bytes(answer.read())
