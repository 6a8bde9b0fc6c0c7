"""Put this clone's CRDs, roles and policies into a control plane: manifests/ without what runs the operator."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import TYPE_CHECKING

from controlplane_lib.console import RemedyError, say, tail
from controlplane_lib.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    # Run kubectl with arguments and, perhaps, an input; never raises for what it answers.
    Kubectl = Callable[..., subprocess.CompletedProcess[str]]

_NOT_HERE = {"Deployment", "PodDisruptionBudget"}  # whoever installs starts the operator from the source tree
OPERATOR_NAMESPACE = "workflow-schedules-system"
OPERATOR_ACCOUNT = "workflow-schedules"
OPERATOR_USER = f"system:serviceaccount:{OPERATOR_NAMESPACE}:{OPERATOR_ACCOUNT}"
_ACTIVE_SECONDS = 30.0


def install(kubectl: Kubectl) -> None:
    """Apply it all and wait until the API server serves the kinds and obeys the policies.

    Raises:
        RemedyError: a manifest is refused, or a policy does not take effect in time.
    """
    crds = _checked(kubectl("kustomize", str(REPOSITORY / "crds")))
    _apply(kubectl, crds)
    _checked(kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", "-", input=crds))
    _apply(kubectl, without_operator(_checked(kubectl("kustomize", str(REPOSITORY / "manifests")))))
    _wait_for_policies(kubectl)


def write_operator_kubeconfig(kubectl: Kubectl, path: Path) -> Path:
    """Write a kubeconfig with the rights of the operator's ServiceAccount and no others, good for a day.

    Raises:
        RemedyError: there is no such account yet.
    """
    token = kubectl("create", "token", OPERATOR_ACCOUNT, "-n", OPERATOR_NAMESPACE, "--duration=24h")
    if token.returncode:
        raise RemedyError(f"no token for {OPERATOR_USER}:\n{tail(token.stderr)}", remedy="hack/controlplane install")
    config = json.loads(_checked(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json")))
    config["users"] = [{"name": OPERATOR_ACCOUNT, "user": {"token": token.stdout.strip()}}]
    config["contexts"][0]["context"] |= {"user": OPERATOR_ACCOUNT, "namespace": OPERATOR_NAMESPACE}
    path.touch(0o600)
    path.write_text(json.dumps(config))
    return path


def without_operator(manifests: str) -> str:
    """The documents of kustomize's output that are not about the operator's own Pods."""
    documents = re.split(r"^---\n", manifests, flags=re.MULTILINE)
    return "---\n".join(document for document in documents if _kind(document) not in _NOT_HERE)


def _kind(document: str) -> str:
    found = re.search(r"^kind: (\w+)$", document, re.MULTILINE)
    return found.group(1) if found else ""


def _apply(kubectl: Kubectl, manifests: str) -> None:
    _checked(kubectl("apply", "--server-side", "-f", "-", input=manifests))


def _checked(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise RemedyError(
            f"kubectl refused a manifest:\n{tail(done.stderr)}", remedy="mend manifests/ or crds/ as it says"
        )
    return done.stdout


def _wait_for_policies(kubectl: Kubectl) -> None:
    # A policy is obeyed about a second after it is stored. The probe: a Job without the operator's labels, made as the
    # operator, is what the policies must refuse.
    probe = (
        "create",
        "job",
        "probe",
        "--image=probe",
        "--namespace=default",
        "--dry-run=server",
        f"--as={OPERATOR_USER}",
    )
    until = time.monotonic() + _ACTIVE_SECONDS
    while "ValidatingAdmissionPolicy" not in (done := kubectl(*probe)).stderr:
        if time.monotonic() > until:
            raise RemedyError(
                f"the policies of manifests/policies.yaml do not take effect:\n{tail(done.stdout + done.stderr)}",
                remedy="kubectl get validatingadmissionpolicy -o yaml",
            )
        time.sleep(0.2)
    say("CRDs, roles and policies are in place")
