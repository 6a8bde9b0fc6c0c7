"""Pod networking for nodes put together without a registry: kind's own network plugin is an image that they can't pull.

Each node gets a static configuration for the range that the control plane gave it, and routes to the others' ranges.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from controlplane_lib.console import RemedyError
from kind_lib.docker import docker

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE = "/etc/cni/net.d/10-static.conflist"
_RANGE_SECONDS = 60.0


def connect(kubectl: Callable[..., str], *, nodes: int) -> None:
    """Set up every node; again after one was restarted, for its routes went with it.

    Raises:
        RemedyError: a node was given no range in time.
    """
    ranges = _ranges(kubectl, nodes=nodes)
    for node, (own, _) in ranges.items():
        docker("exec", "--interactive", node, "tee", _FILE, input=json.dumps(_configuration(own)))
        for other, (theirs, address) in ranges.items():
            if other != node:
                docker("exec", node, "ip", "route", "replace", theirs, "via", address)


def _ranges(kubectl: Callable[..., str], *, nodes: int) -> dict[str, tuple[str, str]]:
    """Each node's range of Pod addresses, and its own address."""
    until = time.monotonic() + _RANGE_SECONDS
    while True:
        found: list[dict[str, Any]] = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
        if len(found) == nodes and all(node["spec"].get("podCIDR") for node in found):
            return {node["metadata"]["name"]: (node["spec"]["podCIDR"], _address(node)) for node in found}
        if time.monotonic() > until:
            raise RemedyError(
                f"{len(found)} of {nodes} nodes came, or one has no range of addresses",
                remedy="hack/kind down, then hack/kind up",
            )
        time.sleep(0.5)


def _address(node: dict[str, Any]) -> str:
    return next(str(each["address"]) for each in node["status"]["addresses"] if each["type"] == "InternalIP")


def _configuration(pods: str) -> dict[str, Any]:
    return {
        "cniVersion": "1.0.0",
        "name": "static",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-ipam-state",
                    "ranges": [[{"subnet": pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
