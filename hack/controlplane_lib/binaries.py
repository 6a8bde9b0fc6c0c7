"""The programs of a control plane, and of the nodes of a kind cluster, and where they come from.

`KUBEBUILDER_ASSETS` first, then the cache; what is missing there is downloaded where that works, else built.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from controlplane_lib import builds, downloads
from controlplane_lib.console import RemedyError, say
from controlplane_lib.lock import hold
from controlplane_lib.paths import TOOLS, binaries_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    name: str
    package: str
    module: str
    workspace: Path = TOOLS  # whose go.mod pins it
    tags: str = ""


def _kubernetes(name: str) -> Program:
    return Program(name=name, package=f"k8s.io/kubernetes/cmd/{name}", module="k8s.io/kubernetes")


def _kwok(name: str) -> Program:
    return Program(name=name, package=f"sigs.k8s.io/kwok/cmd/{name}", module="sigs.k8s.io/kwok")


PROGRAMS = (
    Program(name="etcd", package="go.etcd.io/etcd/server/v3", module="go.etcd.io/etcd/server/v3"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kubectl"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kwok("kwok"),
    _kwok("kwokctl"),
)

_CONTAINERD = "github.com/containerd/containerd/v2"


def _containerd(name: str) -> Program:
    # a module of its own: containerd wants newer libraries than Kubernetes
    return Program(
        name=name,
        package=f"{_CONTAINERD}/cmd/{name}",
        module=_CONTAINERD,
        workspace=TOOLS / "containerd",
        tags="no_aufs,no_btrfs,no_devmapper,no_zfs",
    )


KIND = Program(name="kind", package="sigs.k8s.io/kind", module="sigs.k8s.io/kind")
NODE_PROGRAMS = (
    _kubernetes("kubeadm"),
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    _containerd("containerd"),
    _containerd("containerd-shim-runc-v2"),
    _containerd("ctr"),
)
_ASSETS = ("etcd", "kube-apiserver", "kubectl")


def find_or_make(names: tuple[str, ...] = tuple(program.name for program in PROGRAMS)) -> dict[str, Path]:
    """Every named program's path, making those that are missing (minutes, the first time).

    Raises:
        RemedyError: one cannot be had; says what to do.
    """
    given = _given()
    folder = binaries_dir()
    known = (*PROGRAMS, KIND, *NODE_PROGRAMS)
    wanted = [program for program in known if program.name in names and program.name not in given]
    if _missing(wanted, folder):
        with hold(folder.parent / "lock", purpose="it is making the same programs"):
            _make(wanted, folder)
    return given | {program.name: folder / program.name for program in wanted}


def are_ready() -> bool:
    """Tell whether a control plane can start at once, with nothing to make first."""
    given = _given()
    return not _missing([program for program in PROGRAMS if program.name not in given], binaries_dir())


def _given() -> dict[str, Path]:
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if not named:
        return {}
    folder = Path(named).absolute()
    for name in _ASSETS:
        if not os.access(folder / name, os.X_OK):
            raise RemedyError(
                f"KUBEBUILDER_ASSETS is {folder}, where there is no program {name}",
                remedy="unset KUBEBUILDER_ASSETS, or name a folder with " + ", ".join(_ASSETS),
            )
    return {name: folder / name for name in _ASSETS}


def _missing(programs: list[Program], folder: Path) -> list[Program]:
    return [program for program in programs if not (folder / program.name).exists()]


def _make(programs: list[Program], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(".*"):  # of a build that was killed; nobody else builds while we hold the lock
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink()
    missing = _missing(programs, folder)
    if not missing:
        return
    if not downloads.download(missing, into=folder):
        builds.build(_missing(programs, folder), into=folder)
    else:
        say(f"all programs downloaded, kept in {folder}")
