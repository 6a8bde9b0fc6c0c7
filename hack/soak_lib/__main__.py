"""hack/soak: the operator under random faults for as long as you like, and an auditor that must find nothing."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NoReturn

HACK = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HACK))

from controlplane_lib.api import ControlPlane  # noqa: E402 - found by now
from controlplane_lib.console import RemedyError, speak_as  # noqa: E402
from soak_lib.report import Verdict  # noqa: E402
from soak_lib.soak import AUDIT_POLICY, Plan, soak  # noqa: E402


def main() -> int:
    asked = _parser().parse_args()
    speak_as("soak")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    plan = Plan(
        seed=seed,
        minutes=asked.minutes,
        schedules=asked.schedules,
        operators=asked.operators,
        faults_every_seconds=asked.faults_every,
    )
    again = f"hack/soak --minutes {asked.minutes:g} --schedules {asked.schedules} --seed {seed}"
    print(f"soak: {again}", flush=True)
    try:
        with ExitStack() as stack:
            verdict = _soak(stack, plan, keep=asked.keep_logs)
    except RemedyError as error:
        print(f"hack/soak: {error}\n  next: {error.remedy}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("hack/soak: interrupted before there was anything to judge; all it started is gone", file=sys.stderr)
        return 130
    if verdict.is_good:
        print("soak: nothing is wrong")
        return 0
    print(f"hack/soak: see above what is wrong\n  next: {again} --keep-logs FOLDER", file=sys.stderr)
    return 1


def _soak(stack: ExitStack, plan: Plan, *, keep: Path | None) -> Verdict:
    plane = stack.enter_context(ControlPlane(f"soak-{plan.seed}", audit=AUDIT_POLICY))
    if plane.is_existing:
        raise RemedyError("a soak breaks things: it needs a control plane of its own", remedy="unset the variable")
    plane.install()
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workflow-schedules-soak-")))
    return asyncio.run(soak(plane, folder, plan, say=partial(print, flush=True)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="of faults (%(default)s)")
    parser.add_argument("--schedules", type=int, default=3000, metavar="N", help="(%(default)s)")
    parser.add_argument("--operators", type=int, default=3, choices=range(1, 9), metavar="N", help="(%(default)s)")
    parser.add_argument("--faults-every", type=float, default=30, metavar="SECONDS", help="on average (%(default)s)")
    parser.add_argument("--seed", type=int, metavar="N", help="of everything that is by chance; printed when left out")
    parser.add_argument("--keep-logs", type=Path, metavar="FOLDER", help="leave the logs of the operators there")
    return parser


def _interrupt(_number: int, _frame: object) -> NoReturn:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
