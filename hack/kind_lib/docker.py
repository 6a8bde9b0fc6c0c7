"""The docker command, with progress for what takes minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from controlplane_lib.console import RemedyError, say, tail
from controlplane_lib.paths import cache_root
from controlplane_lib.processes import run_group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def docker(*arguments: str, input: str | None = None) -> str:  # noqa: A002 - as subprocess.run calls it
    """Run docker and return what it printed.

    Raises:
        RemedyError: it failed, with what it said.
    """
    done = subprocess.run(["docker", *arguments], input=input, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RemedyError(f"docker {arguments[0]} failed:\n{tail(done.stderr)}", remedy="docker info, and what it says")
    return done.stdout


def has_image(tag: str) -> bool:
    asked = subprocess.run(["docker", "image", "inspect", tag], capture_output=True, check=False)
    return asked.returncode == 0


def run_long(label: str, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None) -> bool:
    """Run a command that may take minutes, in sight; its output goes to `log_of(label)`."""
    log = log_of(label)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    code = run_group(
        [str(part) for part in command],
        log=log,
        env={**os.environ, **(environment or {})},
        tick=lambda seconds: say(f"{label}: still at it, {seconds:.0f} s"),
    )
    return code == 0


def run_or_stop(label: str, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None) -> None:
    """As `run_long`.

    Raises:
        RemedyError: the command failed, with its last words.
    """
    if not shutil.which(str(command[0])):
        raise RemedyError(f"{label}: there is no {command[0]} on this machine", remedy=f"install {command[0]}")
    if not run_long(label, command, environment=environment):
        log = log_of(label)
        raise RemedyError(
            f"{label} failed; its last words:\n{tail(log.read_text(errors='replace'))}",
            remedy=f"mend what they say (all of it: {log}), then the same command again: it goes on from here",
        )


def log_of(label: str) -> Path:
    return cache_root() / "kind" / "log" / f"{label.replace(' ', '-').replace('/', '-')}.log"
