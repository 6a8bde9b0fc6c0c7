"""A control plane as a Python value, for tests and the demo."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane_lib import cluster, install, plane, ports, processes
from controlplane_lib.console import RemedyError

if TYPE_CHECKING:
    from types import TracebackType

# the options of etcd, the API server, the controllers and kwok that name what they listen on
_LISTENS = re.compile(r"--(?:listen-client-urls|listen-peer-urls|secure-port|server-address)=(?:\S*:)?(\d+)$")
_EXISTING = "WORKFLOW_SCHEDULES_KUBECONFIG"


class ControlPlane:
    """Up on entry, down on exit, in every case.

    Args:
        name: one of its own for this process when left out.
        audit: whether requests are counted into `audit_log`, or the policy file to do it by.
        existing: the kubeconfig of a cluster to use instead; the environment variable
            WORKFLOW_SCHEDULES_KUBECONFIG asks for the same.
    """

    def __init__(self, name: str | None = None, *, audit: bool | Path = False, existing: Path | None = None) -> None:
        asked = os.environ.get(_EXISTING)
        self.name = name or f"session-{os.getpid()}"
        self._existing = existing or (Path(asked) if asked else None)
        self._policy = plane.AUDIT_POLICY if audit is True else audit or None
        self._plane: plane.Plane | None = None
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ControlPlane:
        policy = None if self._existing else self._policy
        self._plane = plane.up(self.name, audit_policy=policy, existing=self._existing, owned=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with processes.uninterrupted():
            plane.down(self.name)
            for child in self._children.values():
                child.wait()

    @property
    def asks_existing(self) -> bool:
        """Whether it will use an existing cluster, and so needs no programs but kubectl."""
        return self._existing is not None

    @property
    def _up(self) -> plane.Plane:
        assert self._plane, "used outside its `with` block"
        return self._plane

    @property
    def folder(self) -> Path:
        """All that it writes; whatever process works in here (its cwd) ends with it, even if its owner is killed."""
        return plane.run_dir(self.name)

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file of the administrator."""
        return self._up.kubeconfig

    @property
    def kubectl_path(self) -> Path:
        return self._up.kubectl

    @property
    def audit_log(self) -> Path | None:
        """One JSON document a line for each request; None on an existing cluster and without `audit`."""
        return self._up.audit_log

    @property
    def is_existing(self) -> bool:
        return self._up.is_existing

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
        kubeconfig: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl against it.

        Raises:
            AssertionError: it failed and `check` is true; with what it said.
        """
        done = plane.kubectl(self._up, *arguments, input=input, kubeconfig=kubeconfig)
        if check and done.returncode:
            raise AssertionError(
                f"kubectl {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done

    def install(self) -> None:
        """Put this clone's CRDs, roles and policies in, as `install.install`."""
        install.install(partial(plane.kubectl, self._up))

    def operator_kubeconfig(self, path: Path) -> Path:
        """Write the operator's own kubeconfig, as `install.write_operator_kubeconfig`; after `install`."""
        return install.write_operator_kubeconfig(partial(plane.kubectl, self._up), path)

    def stop(self, component: str) -> None:
        """Kill a component (kill -9), like a crash of its machine."""
        self.signal(component, signal.SIGKILL)
        pid = plane.layout_of(self.name).pid(component)
        processes.kill([pid] if pid else [])
        with suppress(KeyError):
            self._children.pop(component).wait()

    def start(self, component: str, *, ready_seconds: float = 60.0) -> None:
        """Start a component again as it was, and wait until the API server is ready if it is that.

        Raises:
            RemedyError: it does not become ready in time.
        """
        layout = plane.layout_of(self.name)
        if layout.pid(component):
            return
        command = plane.recorded_command(self.name, component)
        if not command:
            raise RemedyError(f"this system does not tell how {component} was started", remedy="run this test on Linux")
        ports.wait_free(_ports_of(command))  # those of one that was killed just now
        with layout.log_file(component).open("ab") as log:
            child = subprocess.Popen(
                command, cwd=layout.cluster, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._children[component] = child
        layout.pid_file(component).write_text(str(child.pid))
        if component == "kube-apiserver":
            self.wait_ready(seconds=ready_seconds)

    def backup(self, folder: Path) -> None:
        """Copy etcd's data into a new folder, as a snapshot of its disk would: it is killed for that and started again."""
        self.stop("etcd")
        shutil.copytree(self._etcd_data(), folder)
        self.start("etcd")
        self.wait_ready()

    def restore(self, folder: Path) -> None:
        """Put etcd back to a backup, with all other components down meanwhile: they remember what was after it."""
        for component in reversed(cluster.COMPONENTS):
            self.stop(component)
        data = self._etcd_data()
        shutil.rmtree(data)
        shutil.copytree(folder, data)
        for component in ("etcd", "kube-apiserver"):
            self.start(component)
        # of a kwok that is no more: the next one would not touch the nodes' Pods while they last
        self.kubectl("delete", "leases", "--all", "-n", "kube-node-lease")
        for component in cluster.COMPONENTS:
            self.start(component)

    def _etcd_data(self) -> Path:
        command = plane.recorded_command(self.name, "etcd")
        named = [part.partition("=")[2] for part in command if part.startswith("--data-dir=")]
        return plane.layout_of(self.name).cluster / named[0]

    def pause(self, component: str) -> None:
        """Freeze a component: its connections stay open and nothing answers."""
        self.signal(component, signal.SIGSTOP)

    def resume(self, component: str) -> None:
        self.signal(component, signal.SIGCONT)

    def signal(self, component: str, number: signal.Signals) -> None:
        if self.is_existing:
            raise RemedyError("components of an existing cluster are not ours to stop", remedy=f"unset {_EXISTING}")
        pid = plane.layout_of(self.name).pid(component)
        if pid:
            os.kill(pid, number)

    def wait_ready(self, *, seconds: float = 60.0) -> None:
        """Wait until the API server says that it is ready.

        Raises:
            RemedyError: it does not in that time.
        """
        until = time.monotonic() + seconds
        while self.kubectl("--request-timeout=2s", "get", "--raw", "/readyz", check=False).returncode:
            if time.monotonic() > until:
                log = plane.layout_of(self.name).log_file("kube-apiserver")
                raise RemedyError(f"the API server is not ready after {seconds:.0f} s", remedy=f"read {log}")
            time.sleep(0.2)


def _ports_of(command: list[str]) -> list[int]:
    return [int(found.group(1)) for part in command if (found := _LISTENS.match(part))]
