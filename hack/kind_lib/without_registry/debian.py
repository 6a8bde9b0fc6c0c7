"""File systems of Debian packages, as tar archives."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

from controlplane_lib.console import RemedyError, say
from controlplane_lib.lock import hold
from controlplane_lib.paths import cache_root
from kind_lib.docker import run_or_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

# The nodes' systemd must still know version 1 of cgroups: 252 does, Debian 13's does not.
SUITE = "bookworm"
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")


def made_once(name: str, recipe: str, make: Callable[[Path], None]) -> Path:
    """The file that a recipe gives, made if it is not in the cache: whole or not at all."""
    folder = cache_root() / "without-registry"
    path = folder / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}.tar"
    if not path.exists():
        with hold(path.with_suffix(".lock"), purpose=f"it is making {path.name}"):
            if not path.exists():
                fresh = folder / f".{path.name}.{os.getpid()}"
                try:
                    make(fresh)
                    fresh.rename(path)
                finally:
                    fresh.unlink(missing_ok=True)
    return path


def file_system(name: str, packages: Sequence[str], *, is_whole: bool = False) -> Path:
    """A tar of these packages and what they depend on.

    Args:
        is_whole: a system with a shell, configured packages and dpkg; else only the packages' files.

    Raises:
        RemedyError: it can't be made here.
    """
    command = [
        "mmdebstrap",
        "--quiet",
        "--format=tar",
        f"--variant={'essential' if is_whole else 'extract'}",
        "--components=main",
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
        f"--include={','.join(packages)}",
        SUITE,
    ]

    def make(fresh: Path) -> None:
        _require_mmdebstrap()
        say(f"{name}: putting Debian packages together")
        run_or_stop(f"{name} packages", [*command, fresh], environment={"SOURCE_DATE_EPOCH": "1767225600"})

    return made_once(name, " ".join(command), make)


def _require_mmdebstrap() -> None:
    if shutil.which("mmdebstrap"):
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise RemedyError("mmdebstrap is not installed", remedy="apt-get install mmdebstrap, as root")
    run_or_stop("package lists", ["apt-get", "-qq", "update"])
    run_or_stop(
        "installing mmdebstrap",
        ["apt-get", "-qq", "install", "--yes", "--no-install-recommends", "mmdebstrap"],
        environment={"DEBIAN_FRONTEND": "noninteractive"},
    )
