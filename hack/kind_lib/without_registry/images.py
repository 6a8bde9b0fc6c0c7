"""The images that others pull: a base for the operator's image, what builds it, and a shell for Jobs in tests."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from controlplane_lib.console import say
from controlplane_lib.paths import REPOSITORY, cache_root
from kind_lib.docker import docker, has_image, run_or_stop
from kind_lib.without_registry.debian import file_system, made_once

_PYTHON = "3.11"  # of Debian 12
_PINS = tuple(REPOSITORY / "hack" / "requirements" / name for name in ("build.txt", "runtime.txt"))
_APPLETS = ["cat", "date", "echo", "env", "false", "grep", "id", "ls", "printf", "sh", "sleep", "test", "touch", "true"]


def shell_base() -> Path:
    """A file system with nothing but busybox."""
    return file_system("busybox", ["busybox-static"])


def shell_image() -> str:
    """The tag of an image with a shell."""

    def make(fresh: Path) -> None:
        shutil.copyfile(shell_base(), fresh)
        with tarfile.open(fresh, "a") as archive:
            for name in _APPLETS:
                link = tarfile.TarInfo(f"./bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                archive.addfile(link)

    return _loaded("shell", made_once("shell", f"{shell_base().name} {_APPLETS}", make), "ENV PATH=/bin")


def bases() -> dict[str, str]:
    """Build arguments for operator/Dockerfile: a small base without a shell, and a builder that holds the wheels."""
    base = file_system("python", ["libstdc++6", "python3", "python3-minimal"])
    return {"BASE": _loaded("python", base, "ENV PATH=/usr/bin"), "BUILDER": _loaded("builder", _builder())}


def import_tar(path: Path, tag: str, *changes: str) -> None:
    """Make an image of one layer; `docker import` reads it from the file itself."""
    docker("import", *(part for change in changes for part in ("--change", change)), str(path), tag)


def _builder() -> Path:
    whole = file_system("python-venv", ["python3-venv"], is_whole=True)
    recipe = whole.name + "".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in _PINS)

    def make(fresh: Path) -> None:
        say("builder: fetching the wheels of the pins")
        with tempfile.TemporaryDirectory(prefix=".wheels-", dir=cache_root() / "without-registry") as name:
            wheels = Path(name)
            for pins in _PINS:
                run_or_stop(f"wheels of {pins.name}", [*_pip_download(), "--dest", wheels, "-r", pins])
            (wheels / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
            shutil.copyfile(whole, fresh)
            with tarfile.open(fresh, "a") as archive:
                archive.add(wheels, "./wheels", filter=_readable)
                archive.add(wheels / "pip.conf", "./etc/pip.conf", filter=_readable)

    return made_once("builder", recipe, make)


def _pip_download() -> list[str | Path]:
    venv = REPOSITORY / ".venv" / "bin" / "python"
    python = venv if venv.exists() else Path(sys.executable)
    only_wheels = ("--only-binary=:all:", "--python-version", _PYTHON, "--no-deps", "--require-hashes")
    return [python, "-m", "pip", "download", "--quiet", "--no-input", *only_wheels]


def _readable(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def _loaded(name: str, path: Path, *changes: str) -> str:
    tag = f"localhost/workflow-schedules/{name}:{path.stem.rpartition('-')[2]}"
    if not has_image(tag):
        import_tar(path, tag, *changes)
    return tag
