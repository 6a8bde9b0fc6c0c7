"""The kind cluster of hack/kind, for the tier that runs in one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

from support.cluster_stories import manifests

REPOSITORY = Path(__file__).resolve().parents[2]
if str(REPOSITORY / "hack") not in sys.path:
    sys.path.insert(0, str(REPOSITORY / "hack"))

from controlplane_lib import binaries  # noqa: E402 - found
from kind_lib import cluster, daemon, docker, firewall, images, network, runtime  # noqa: E402 - found
from kind_lib.cluster import INSTALL, NAMESPACE, KindCluster  # noqa: E402

__all__ = [
    "INSTALL",
    "NAMESPACE",
    "REPOSITORY",
    "KindCluster",
    "a_template",
    "apply",
    "binaries",
    "cluster",
    "daemon",
    "docker",
    "firewall",
    "images",
    "network",
    "runtime",
]

Json = dict[str, Any]


def a_template(script: str, *, pod: Json | None = None, **job: object) -> Json:
    """A Job template that runs a shell script in a real container."""
    container = {"name": "main", "image": images.SHELL, "command": ["sh", "-euc", script]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **(pod or {})}
    return {"spec": {"backoffLimit": 0, **job, "template": {"spec": spec}}}


def apply(kubectl: Callable[..., Any], namespace: str, *bodies: Json) -> str:
    return str(kubectl("apply", "-n", namespace, "-f", "-", input=manifests(*bodies)).stdout)
