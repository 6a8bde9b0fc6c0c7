"""The demo's story: everything real, everything gone at the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

HACK = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HACK))

from controlplane_lib.api import ControlPlane  # noqa: E402 - found by now
from controlplane_lib.console import RemedyError  # noqa: E402
from controlplane_lib.operator_process import OperatorProcess  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = HACK.parent / "manifests" / "samples"
ONE_SHOT_AHEAD = timedelta(seconds=20)
PATIENCE_SECONDS = 150.0


def main() -> int:
    if sys.argv[1:]:
        print(f"hack/demo takes no arguments. {__doc__}", file=sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    began = time.monotonic()
    try:
        with ExitStack() as stack:
            _tell_story(stack)
    except RemedyError as error:
        print(f"hack/demo: {error}\n  next: {error.remedy}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nhack/demo: interrupted; everything it started is gone", file=sys.stderr)
        return 130
    print(
        f"\nDone in {time.monotonic() - began:.0f} s; everything the demo started is gone. See README.md for what to try next."
    )
    return 0


def _tell_story(stack: ExitStack) -> None:
    _say("1/5 a real control plane: etcd, kube-apiserver, controllers, two simulated nodes")
    plane = stack.enter_context(ControlPlane(name=None))
    _say("2/5 CRDs, roles and admission policies")
    plane.install()
    _say("3/5 the operator, with the rights of its own ServiceAccount")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workflow-schedules-demo-")))
    operator = stack.enter_context(OperatorProcess(plane, folder))
    operator.wait_ready()
    _say("4/5 kubectl apply: a definition with a schedule every minute, and a one-shot 20 seconds ahead")
    print(plane.kubectl("apply", "-f", str(SAMPLES / "hello.yaml")).stdout, end="")
    at = (datetime.now(UTC) + ONE_SHOT_AHEAD).replace(microsecond=0)
    once = (SAMPLES / "once.yaml").read_text().replace("2099-01-01T00:00:00Z", f"{at:%Y-%m-%dT%H:%M:%SZ}")
    print(plane.kubectl("apply", "-f", "-", input=once).stdout, end="")
    _say("5/5 waiting for both to run")
    _wait(lambda: _completed(plane), operator)
    print(f"\n$ kubectl get wfs,occ,jobs\n{plane.kubectl('get', 'wfs,occ,jobs').stdout}", end="")


def _completed(plane: ControlPlane) -> str | None:
    """What is still missing, or None when both schedules show a completed run."""
    missing = []
    for item in json.loads(plane.kubectl("get", "wfs", "-o", "json").stdout)["items"]:
        status = item.get("status", {})
        if status.get("lastOccurrence", {}).get("outcome") != "Completed":
            missing.append(f"{item['metadata']['name']} (next {status.get('nextScheduleTime', 'unknown')})")
    return f"waiting for {', '.join(missing)}" if missing else None


def _wait(what_is_missing: Callable[[], str | None], operator: OperatorProcess) -> None:
    began = time.monotonic()
    said = ""
    while (missing := what_is_missing()) is not None:
        if operator.has_ended or time.monotonic() - began > PATIENCE_SECONDS:
            raise RemedyError(
                f"the runs did not complete ({missing}); the operator's last words:\n{operator.last_words()}",
                remedy="hack/test integration, which says more",
            )
        if missing != said:
            said = missing
            _say(f"    {missing}")
        time.sleep(0.5)


def _say(message: str) -> None:
    print(f"[{datetime.now(UTC):%H:%M:%S}] {message}", flush=True)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.SubprocessError as error:
        sys.exit(f"hack/demo: {error}")
