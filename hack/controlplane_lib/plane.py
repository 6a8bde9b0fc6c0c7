"""The life of a control plane: up, found again, down, with nothing left behind, whoever is interrupted when.

All that one writes is in its folder (`paths.run_dir`), where its components also work: so whatever runs in there is
its own and nobody else's. `state.json` says how far it came and, for one that belongs to a process (a test session,
a demo), to which: the next `up` of anything clears away what a killed owner left.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane_lib import binaries, cluster, processes
from controlplane_lib.console import RemedyError, say
from controlplane_lib.lock import BusyError, hold
from controlplane_lib.paths import cache_root, default_name, run_dir

AUDIT_POLICY = Path(__file__).with_name("audit-policy.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """One that is up: where it is reached and what it was started with."""

    name: str
    kubeconfig: Path
    kubectl: Path
    audit_log: Path | None
    is_existing: bool


def up(
    name: str | None = None, *, audit_policy: Path | None = None, existing: Path | None = None, owned: bool = False
) -> Plane:
    """Bring a control plane up, or find the healthy one of that name.

    Args:
        name: of this clone when left out.
        audit_policy: its API server counts requests into an audit log by this policy.
        existing: use the cluster of this kubeconfig instead of starting one.
        owned: it ends with this process at the latest: the next `up` removes it if this process was killed.

    Raises:
        RemedyError: it cannot come up; nothing of it is left, and the remedy says what to do.
    """
    name = name or default_name()
    if existing:
        programs = {"kubectl": Path(shutil.which("kubectl") or binaries.find_or_make(("kubectl",))["kubectl"])}
    else:
        programs = binaries.find_or_make()
    clear_abandoned()
    with hold(_lock(name), purpose=f"it is bringing {name} up or down"):
        found = find(name)
        if found and _is_healthy(name, found):
            _require_same(name, audit_policy=audit_policy, existing=existing)
            say(f"{name} is up already")
            return found
        if run_dir(name).exists():
            say(f"{name} is not healthy: replacing it")
            _remove(name)
        return _start(name, programs, audit_policy=audit_policy, existing=existing, owned=owned)


def _start(
    name: str, programs: dict[str, Path], *, audit_policy: Path | None, existing: Path | None, owned: bool
) -> Plane:
    started = time.monotonic()
    layout = layout_of(name)
    me = {"pid": os.getpid(), "started": processes.started_at(os.getpid())}
    state = {
        "kubectl": str(programs["kubectl"]),
        "existing": str(existing.absolute()) if existing else None,
        "audit": _digest(audit_policy),
    }
    try:
        _write(name, state | {"ready": False, "owner": me})
        if not existing:
            say(f"{name}: starting etcd, kube-apiserver, controllers and two nodes")
            cluster.create_with_retries(layout, programs, audit_policy=audit_policy, clean=lambda: _end_processes(name))
        commands = {component: processes.command_of(layout.pid(component) or 0) for component in cluster.COMPONENTS}
        _write(name, state | {"ready": True, "owner": me if owned else None, "commands": commands})
        plane = find(name)
        assert plane, "what was just written is there"
        _require_healthy(name, plane)
    except BaseException:
        with processes.uninterrupted():
            _remove(name)
        raise
    say(f"{name}: up in {time.monotonic() - started:.0f} s")
    return plane


def down(name: str | None = None) -> bool:
    """End its processes and remove its files; False when there was nothing."""
    name = name or default_name()
    with hold(_lock(name), purpose=f"it is bringing {name} up or down"), processes.uninterrupted():
        was = run_dir(name).exists()
        _remove(name)
    return was


def find(name: str | None = None) -> Plane | None:
    """The control plane of that name if it came up; it may have died since."""
    name = name or default_name()
    state = _read(name)
    if not state.get("ready"):
        return None
    layout = layout_of(name)
    return Plane(
        name=name,
        kubeconfig=Path(state["existing"] or layout.kubeconfig),
        kubectl=Path(state["kubectl"]),
        audit_log=layout.audit_log if state["audit"] else None,
        is_existing=bool(state["existing"]),
    )


def kubectl(
    plane: Plane,
    *arguments: str,
    input: str | None = None,  # noqa: A002 - as subprocess.run calls it
    kubeconfig: Path | None = None,
    timeout_seconds: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run kubectl against it; its discovery cache stays with the control plane."""
    return subprocess.run(
        [str(plane.kubectl), "--kubeconfig", str(kubeconfig or plane.kubeconfig), *arguments],
        input=input or "",
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_seconds,
        env=os.environ | {"KUBECACHEDIR": str(run_dir(plane.name) / "kubectl-cache")},
    )


def health(name: str) -> dict[str, bool]:
    """What runs of it: each component, and whether its API server answers."""
    plane = find(name)
    layout = layout_of(name)
    answer = {} if plane and plane.is_existing else {part: layout.pid(part) is not None for part in cluster.COMPONENTS}
    return answer | {"answers": bool(plane and _answers(plane))}


def names() -> list[str]:
    folder = cache_root() / "run"
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.exists() else []


def clear_abandoned() -> None:
    """Remove what a killed owner, or a killed `up`, left behind."""
    for name in names():
        try:
            with hold(_lock(name), purpose="", wait=False):
                owner = _read(name).get("owner")
                if owner and not _lives(owner):
                    say(f"{name} was left behind by a process that was killed: removing it")
                    _remove(name)
        except BusyError:
            continue


def layout_of(name: str) -> cluster.Layout:
    return cluster.Layout(home=run_dir(name), name=name)


def recorded_command(name: str, component: str) -> list[str]:
    """How a component was started, so that it can be again."""
    return list(_read(name).get("commands", {}).get(component, []))


def _lives(owner: dict[str, Any]) -> bool:
    pid = int(owner["pid"])
    return processes.is_alive(pid) and processes.started_at(pid) == owner["started"]


def _is_healthy(name: str, plane: Plane) -> bool:
    return all(health(name).values()) and plane.kubeconfig.exists()


def _require_healthy(name: str, plane: Plane) -> None:
    missing = [part for part, is_well in health(name).items() if not is_well]
    if missing:
        remedy = f"kubectl --kubeconfig {plane.kubeconfig} get --raw /readyz"
        if not plane.is_existing:
            remedy = f"run the same command again (the load of this machine is {os.getloadavg()[0]:.0f} now)"
        raise RemedyError(f"{name} does not work: {', '.join(missing)}", remedy=remedy)


def _answers(plane: Plane) -> bool:
    try:
        return kubectl(plane, "--request-timeout=5s", "get", "--raw", "/readyz", timeout_seconds=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _require_same(name: str, *, audit_policy: Path | None, existing: Path | None) -> None:
    state = _read(name)
    wanted = str(existing.absolute()) if existing else None
    if state["existing"] != wanted or (audit_policy and state["audit"] != _digest(audit_policy)):
        raise RemedyError(
            f"{name} is up, but with other options",
            remedy=f"hack/controlplane down --name {name}, or choose another --name",
        )


def _digest(audit_policy: Path | None) -> str | None:
    return hashlib.sha256(audit_policy.read_bytes()).hexdigest() if audit_policy else None


def _lock(name: str) -> Path:
    return cache_root() / "run" / f"{name}.lock"


def _read(name: str) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((run_dir(name) / "state.json").read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return state


def _write(name: str, state: dict[str, Any]) -> None:
    folder = run_dir(name)
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / ".state.json"
    fresh.write_text(json.dumps(state, indent=2))
    fresh.rename(folder / "state.json")


def _end_processes(name: str) -> None:
    """End all that runs in its folder and remove the cluster, not the record of who is starting it."""
    folder = run_dir(name)
    while running := processes.processes_in(folder):
        processes.kill(running)
    shutil.rmtree(layout_of(name).kwok, ignore_errors=True)


def _remove(name: str) -> None:
    _end_processes(name)
    shutil.rmtree(run_dir(name), ignore_errors=True)
