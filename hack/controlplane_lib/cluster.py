"""Start one cluster with kwokctl's binary runtime, everything local, and notice early when it cannot start."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane_lib import ports
from controlplane_lib.console import RemedyError, say, tail
from controlplane_lib.processes import is_alive, run_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_PORTS = (
    "etcdPort",
    "etcdPeerPort",
    "kubeApiserverPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)
_TAKEN = "address already in use"
_ATTEMPTS = 5
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")


class EndedError(RemedyError):
    """A component ended while the others came up: one whose API server was not there in time gives up."""


class PortTakenError(Exception):
    """Somebody took a port between our look at it and the component's start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where one control plane keeps what: all of it below `home`."""

    home: Path
    name: str

    @property
    def kwok(self) -> Path:
        return self.home / "kwok"

    @property
    def cluster(self) -> Path:
        return self.kwok / "clusters" / self.name

    @property
    def kubeconfig(self) -> Path:
        return self.home / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.cluster / "logs" / "audit.log"

    @property
    def log(self) -> Path:
        return self.home / "kwokctl.log"

    def pid_file(self, component: str) -> Path:
        return self.cluster / "pids" / f"{component}.pid"

    def log_file(self, component: str) -> Path:
        return self.cluster / "logs" / f"{component}.log"

    def pid(self, component: str) -> int | None:
        """The process of a component, if it runs."""
        try:
            pid = int(self.pid_file(component).read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if is_alive(pid) else None


def child_environment(layout: Layout, programs: Mapping[str, Path]) -> dict[str, str]:
    """Ours, less what would point kwokctl or kubectl at anything that is not this control plane."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KWOK_", "KUBE_"))}
    return kept | {
        "KUBECONFIG": str(layout.kubeconfig),
        "KUBECACHEDIR": str(layout.home / "kubectl-cache"),
        "KWOK_WORKDIR": str(layout.kwok),
        "PATH": f"{programs['kubectl'].parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def create(layout: Layout, programs: Mapping[str, Path], *, audit_policy: Path | None) -> None:
    """Create and start the cluster with ports that are free now.

    Raises:
        PortTakenError: one no longer was; nothing else is wrong.
        RemedyError: a component does not start.
    """
    layout.home.mkdir(parents=True, exist_ok=True)
    settings = layout.home / "kwokctl.yaml"
    settings.write_text(json.dumps(_configuration(programs, audit_policy=audit_policy), indent=2))
    _kwokctl(
        layout,
        programs,
        "--config",
        str(settings),
        "create",
        "cluster",
        "--kubeconfig",
        str(layout.kubeconfig),
        "--wait",
        "90s",
    )
    _kwokctl(layout, programs, "scale", "node", "--replicas", "2")
    _wait_for_nodes(layout, programs)


def _configuration(programs: Mapping[str, Path], *, audit_policy: Path | None) -> dict[str, object]:
    options: dict[str, object] = {
        "runtime": "binary",
        "bindAddress": "127.0.0.1",
        "kubeVersion": _version_of(programs["kube-apiserver"]),
        "disableQPSLimits": True,
        "kubeAuthorization": True,
        "kubeAdmission": True,
        "securePort": True,
        "quietPull": True,
        "etcdBinary": str(programs["etcd"]),
        "kubectlBinary": str(programs["kubectl"]),
        "kubeApiserverBinary": str(programs["kube-apiserver"]),
        "kubeControllerManagerBinary": str(programs["kube-controller-manager"]),
        "kubeSchedulerBinary": str(programs["kube-scheduler"]),
        "kwokControllerBinary": str(programs["kwok"]),
    }
    options |= dict(zip(_PORTS, ports.free_ports(len(_PORTS)), strict=True))
    if audit_policy:
        options["kubeAuditPolicy"] = str(audit_policy)
    # Each controller under an account of its own, as on a real cluster: policies tell them apart.
    accounts = {"key": "use-service-account-credentials", "value": "true"}
    # There is one of each: without a Lease to renew they outlive an API server that does not answer for a while.
    alone = {"key": "leader-elect", "value": "false"}
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": options,
        "componentsPatches": [
            {"name": "kube-controller-manager", "extraArgs": [accounts, alone]},
            {"name": "kube-scheduler", "extraArgs": [alone]},
        ],
    }


def _version_of(api_server: Path) -> str:
    answer = subprocess.run([api_server, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v\d+\.\d+\.\d+", answer)
    if not found:
        raise RemedyError(
            f"{api_server} does not tell its version", remedy=f"remove {api_server}, then run the same command again"
        )
    return found.group(0)


def _kwokctl(layout: Layout, programs: Mapping[str, Path], *arguments: str) -> None:
    code = run_group(
        [str(programs["kwokctl"]), "--name", layout.name, *arguments],
        log=layout.log,
        cwd=layout.home,  # so that it is found there if we are killed
        env=child_environment(layout, programs),
        every_seconds=0.25,
        tick=lambda seconds: _look(layout, seconds),
    )
    _look(layout, 0.0)
    if code:
        raise _failure(layout, f"kwokctl {arguments[0]} ended with {code}", layout.log)


def _look(layout: Layout, seconds: float) -> None:
    """Give up as soon as a component has: kwokctl itself would wait for minutes."""
    for component in COMPONENTS:
        log = layout.log_file(component)
        if not log.exists() or not layout.pid_file(component).exists() or layout.pid(component):
            continue
        if _TAKEN in log.read_text(errors="replace"):
            raise PortTakenError(component)
        if seconds > 20 or not seconds:
            failure = _failure(layout, f"{component} does not stay up", log)
            raise EndedError(str(failure), remedy=failure.remedy)


def _wait_for_nodes(layout: Layout, programs: Mapping[str, Path]) -> None:
    command = [programs["kubectl"], "wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"]
    code = run_group([str(part) for part in command], log=layout.log, env=child_environment(layout, programs))
    if code:
        raise _failure(layout, "the nodes do not become ready", layout.log_file("kwok-controller"))


def _failure(layout: Layout, message: str, log: Path) -> RemedyError:
    words = tail(log.read_text(errors="replace")) if log.exists() else "    (it wrote no log)"
    return RemedyError(
        f"{message}; its last words:\n{words}",
        remedy=f"hack/controlplane down --name {layout.name} && hack/controlplane up --name {layout.name}",
    )


def create_with_retries(
    layout: Layout, programs: Mapping[str, Path], *, audit_policy: Path | None, clean: Callable[[], None]
) -> None:
    """As `create`, with other ports when one was taken in between, and once more when a component ended on a busy machine.

    `clean()` removes a half-started cluster.
    """
    has_ended = False
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return create(layout, programs, audit_policy=audit_policy)
        except PortTakenError as taken:
            say(f"somebody took the port of {taken} meanwhile; trying others ({attempt} of {_ATTEMPTS})")
            clean()
        except EndedError as ended:
            if has_ended:
                raise
            has_ended = True
            say(f"{ended}\ntrying once more")
            clean()
    raise RemedyError(
        f"a port was taken {_ATTEMPTS} times",
        remedy="see what listens on 127.0.0.1 (ss -ltn), then run the same command again",
    )
