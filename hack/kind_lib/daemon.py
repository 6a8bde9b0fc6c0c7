"""Docker's daemon: the one that runs; else, on request, one that is started here and stopped with the last cluster.

What a cluster changes on the whole machine (the kubelet and the daemon set kernel parameters, the daemon forwarding rules)
is noted before and put back after.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane_lib import processes
from controlplane_lib.console import RemedyError, say, tail
from controlplane_lib.paths import cache_root
from kind_lib import firewall
from kind_lib.docker import log_of, run_or_stop

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARAMETERS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
)
_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_NEEDED = {"net_admin": 12, "sys_admin": 21}  # capabilities without which no daemon runs
_SYSTEM = Path("/proc/sys")
_children: dict[int, subprocess.Popen[bytes]] = {}  # the daemon, where this very process started it


def is_asked_for() -> bool:
    """Whether the environment asks to start a daemon if none runs."""
    return bool(os.environ.get("CI") or os.environ.get("WORKFLOW_SCHEDULES_START_DOCKER"))


def answers() -> bool:
    if not shutil.which("docker"):
        return False
    asked = subprocess.run(["docker", "version", "-f", "{{.Server.Version}}"], capture_output=True, check=False)
    return asked.returncode == 0


def hindrance(*, may_start: bool) -> str:
    """Why this machine can't run containers; empty when it can."""
    if answers():
        return ""
    if not may_start:
        return "no Docker daemon answers, and nobody asked for one (WORKFLOW_SCHEDULES_START_DOCKER=1 does)"
    if sys.platform != "linux" or os.geteuid() != 0:
        return "no Docker daemon answers, and only root on Linux can start one"
    missing = [name for name, bit in _NEEDED.items() if not _bounding_set() >> bit & 1]
    if missing:
        return f"no Docker daemon answers, and none can run without the capabilities {', '.join(missing)}"
    return ""


def require(*, may_start: bool) -> None:
    """Have a daemon that answers.

    Raises:
        RemedyError: none does and none may be, or can be, started.
    """
    if answers():
        return
    reason = hindrance(may_start=may_start)
    if reason:
        raise RemedyError(reason, remedy="start Docker, or as root: hack/kind up --start-docker")
    if not shutil.which("dockerd") or not shutil.which("docker") or not shutil.which("iptables"):
        _install()
    _note_parameters()
    _write(_read() | {"firewall": firewall.note()})
    _start()


@contextmanager
def in_use() -> Iterator[None]:
    """While this lasts no other process stops the daemon; whoever is the last puts the machine back, if no cluster runs."""
    path = cache_root() / "kind" / "daemon.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            yield
        finally:
            with processes.uninterrupted(), suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not _running_clusters():
                    put_back()
    finally:
        os.close(descriptor)


def _running_clusters() -> str:
    """The containers of nodes that run, whoever made them; empty when none does, or Docker doesn't either."""
    command = ["docker", "ps", "--quiet", "--filter", "label=io.x-k8s.kind.cluster"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout if answers() else ""


def put_back() -> None:
    """Stop the daemon if it was started here, and set what was noted; for when nobody needs it."""
    state = _read()
    if state.get("pid") and _is_ours(state):
        say("stopping Docker's daemon, which was started for this")
        subprocess.run(["docker", "network", "rm", "kind"], capture_output=True, check=False)  # its bridge would stay
        os.kill(state["pid"], signal.SIGTERM)
        _await_end(state["pid"])
        if "firewall" in state:
            firewall.put_back(state["firewall"])
    for name, value in state.get("parameters", {}).items():
        with suppress(OSError):  # not root: it was not us who could change it
            if (_SYSTEM / name).read_text().strip() != value:
                (_SYSTEM / name).write_text(value)
    _state_file().unlink(missing_ok=True)


def _await_end(pid: int) -> None:
    if child := _children.pop(pid, None):
        with suppress(subprocess.TimeoutExpired):
            child.wait(_STOP_SECONDS)
        return
    until = time.monotonic() + _STOP_SECONDS
    while processes.is_alive(pid) and time.monotonic() < until:
        time.sleep(0.1)


def note() -> None:
    """Note what a cluster will change; for before the first one is made."""
    _note_parameters()


def _install() -> None:
    if not shutil.which("apt-get"):
        raise RemedyError("Docker is not installed", remedy="install Docker, then the same command again")
    say("installing Docker from this machine's packages")
    run_or_stop("package lists", ["apt-get", "-qq", "update"])
    run_or_stop(
        "installing Docker",
        ["apt-get", "-qq", "install", "--yes", "--no-install-recommends", "docker.io", "iptables"],
        environment={"DEBIAN_FRONTEND": "noninteractive"},
    )


def _start() -> None:
    say("starting Docker's daemon")
    Path("/lib/modules").mkdir(parents=True, exist_ok=True)  # kind mounts it into its nodes
    log = log_of("dockerd")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        daemon = subprocess.Popen(
            [shutil.which("dockerd") or "dockerd", *_runtime()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    _children[daemon.pid] = daemon
    _write(_read() | {"pid": daemon.pid, "started": processes.started_at(daemon.pid)})
    until = time.monotonic() + _START_SECONDS
    while not answers():
        if daemon.poll() is not None or time.monotonic() > until:
            daemon.kill()
            raise RemedyError(
                f"Docker's daemon does not start:\n{tail(log.read_text(errors='replace'))}",
                remedy=f"see {log}; another Docker's leavings in /var/run are the usual cause",
            )
        time.sleep(0.2)


def _runtime() -> list[str]:
    """Options for a machine whose processes may not have every capability: `docker run --privileged` asks for all."""
    every = (1 << int((_SYSTEM / "kernel/cap_last_cap").read_text()) + 1) - 1
    if _bounding_set() & every == every:
        return []
    source = Path(__file__).with_name("runtime.py").read_text()
    program = cache_root() / "kind" / "runtime"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{source}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return ["--add-runtime", f"limited={program}", "--default-runtime", "limited"]


def _bounding_set() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), 16)


def _note_parameters() -> None:
    state = _read()
    if "parameters" not in state:
        present = [name for name in _PARAMETERS if (_SYSTEM / name).exists()]
        _write(state | {"parameters": {name: (_SYSTEM / name).read_text().strip() for name in present}})


def _is_ours(state: dict[str, object]) -> bool:
    pid = int(str(state["pid"]))
    return processes.is_alive(pid) and processes.started_at(pid) == state["started"]


def _state_file() -> Path:
    return cache_root() / "kind" / "machine.json"


def _read() -> dict[str, object]:
    try:
        state: dict[str, object] = json.loads(_state_file().read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return state


def _write(state: dict[str, object]) -> None:
    _state_file().parent.mkdir(parents=True, exist_ok=True)
    fresh = _state_file().with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(state, indent=2))
    fresh.rename(_state_file())
