"""Build the programs from the Go modules in hack/tools: one after the other, each seen while it builds."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane_lib import toolchain
from controlplane_lib.console import RemedyError, say, tail
from controlplane_lib.paths import module_version
from controlplane_lib.processes import run_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane_lib.binaries import Program

_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


def build(programs: Sequence[Program], *, into: Path) -> None:
    """Build what is missing into a folder; each program appears there whole or not at all.

    Raises:
        RemedyError: the compiler said no, with the end of what it said.
    """
    go = str(toolchain.go())
    total = time.monotonic()
    say(f"building {len(programs)} programs from hack/tools (about 20 minutes of one processor when nothing is cached)")
    for number, program in enumerate(programs, 1):
        label = f"{program.name} ({number} of {len(programs)})"
        say(f"{label}: building")
        started = time.monotonic()
        _build_one(go, program, into=into, label=label)
        say(f"{label}: built in {time.monotonic() - started:.0f} s")
    say(f"all programs built in {time.monotonic() - total:.0f} s, kept in {into}")


def _build_one(go: str, program: Program, *, into: Path, label: str) -> None:
    scratch = into / f".{program.name}.{os.getpid()}"
    scratch.mkdir()
    log, output = scratch / "log", str(scratch / program.name)
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTMPDIR": str(scratch), "GOTOOLCHAIN": "local", "GOWORK": "off"}
    try:
        code = run_group(
            [go, "build", "-trimpath", "-tags", program.tags, "-ldflags", _ldflags(), "-o", output, program.package],
            cwd=program.workspace,
            log=log,
            env=os.environ | settings,
            tick=lambda seconds: say(f"{label}: still building, {seconds:.0f} s"),
        )
        if code:
            raise RemedyError(
                f"{program.name} did not build; the compiler's last words:\n{tail(log.read_text(errors='replace'))}",
                remedy="free disk or memory if it says so, then run the same command again: it goes on from here",
            )
        Path(output).rename(into / program.name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _ldflags() -> str:
    version = module_version("k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamp = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",  # a constant: the same pins give the same bytes
    }
    return " ".join(("-s -w", *(f"-X {package}.{key}={value}" for package in _STAMPED for key, value in stamp.items())))
