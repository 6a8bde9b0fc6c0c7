"""The operator as a process of its own beside a control plane, with its ServiceAccount's rights and no others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING

from controlplane_lib import ports
from controlplane_lib.console import RemedyError, tail
from controlplane_lib.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from controlplane_lib.api import ControlPlane


class OperatorProcess:
    """Runs from entry to exit; its log is `folder/NAME.log`.

    Args:
        plane: what it works on.
        folder: where its kubeconfig and log go.
        name: of this one, where there are several.
        environment: settings beside its defaults.
        server: where it is to believe the API server is; a proxy on plain HTTP, say.
    """

    def __init__(
        self,
        plane: ControlPlane,
        folder: Path,
        *,
        name: str = "operator",
        environment: Mapping[str, str] | None = None,
        server: str | None = None,
    ) -> None:
        self._plane = plane
        self._server = server
        self._folder = folder
        self._name = name
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> OperatorProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def log(self) -> Path:
        return self._folder / f"{self._name}.log"

    @property
    def pid(self) -> int:
        assert self._process, "not started"
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def start(self) -> None:
        """Start it, again if it has ended."""
        kubeconfig = self._folder / f"{self._name}.kubeconfig"
        if not kubeconfig.exists():
            self._plane.operator_kubeconfig(kubeconfig)
            if self._server:
                _redirect(kubeconfig, self._server)
        self._port = ports.free_ports(1)[0]
        environment = {
            "TMPDIR": str(self._folder),  # what a killed one leaves goes with the folder
            "WORKFLOW_SCHEDULES_LOG_FORM": "plain",
            "WORKFLOW_SCHEDULES_PROBE_PORT": str(self._port),
            **self._environment,
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(REPOSITORY / ".venv" / "bin" / "workflow-schedules")],
                env={**os.environ, "KUBECONFIG": str(kubeconfig), **environment},
                cwd=self._plane.folder,  # so that what clears away a killed session's control plane ends it, too
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self, *, seconds: float = 90.0) -> None:
        """Wait until it says that it is ready.

        Raises:
            RemedyError: it ends, or is not ready in time.
        """
        until = time.monotonic() + seconds
        while not self._is_ready():
            if self.has_ended or time.monotonic() > until:
                raise RemedyError(f"the operator does not start:\n{self.last_words()}", remedy="mend what it says")
            time.sleep(0.1)

    def readiness(self) -> str:
        """Return what /readyz says: `ok`, or what is missing; nothing while nobody answers."""
        try:
            return self._read("/readyz")
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError:
            return ""

    def _is_ready(self) -> bool:
        return self.readiness() == "ok"

    def ask(self, path: str) -> str | None:
        """What it answers at its port for probes; None if it doesn't, or says that not all is well."""
        try:
            return self._read(path)
        except OSError:
            return None

    def _read(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=1) as answer:
            return str(answer.read().decode())

    def kill(self) -> None:
        """End it like a crash of its machine (kill -9)."""
        self._send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def stop(self, *, seconds: float = 40.0) -> None:
        """Ask it to end (SIGTERM), and kill it if it does not in time."""
        self._send(signal.SIGTERM)
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            self.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send it any signal, such as SIGSTOP."""
        self._send(number)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def last_words(self) -> str:
        return tail(self.log.read_text(errors="replace")) if self.log.exists() else ""


def _redirect(kubeconfig: Path, server: str) -> None:
    config = json.loads(kubeconfig.read_text())
    config["clusters"][0]["cluster"] = {"server": server}
    kubeconfig.write_text(json.dumps(config))
