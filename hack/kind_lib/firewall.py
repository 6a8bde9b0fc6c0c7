"""What Docker's daemon leaves behind in the machine's network when it stops: chains, rules, a policy and a bridge.

Only for a daemon that was started here. The rules of others stay, whenever they were made.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

_PROGRAMS = ("iptables", "ip6tables")
_DOCKERS = re.compile(r"\bDOCKER(-[A-Z0-9-]+)?\b|\bdocker0\b|\bbr-[0-9a-f]{12}\b")
_POLICY = re.compile(r"(^\*filter$(?:\n:.*$)*?\n:FORWARD )(ACCEPT|DROP)", re.MULTILINE)
_BRIDGE = "docker0"


def note() -> dict[str, object]:
    """What to remember before a daemon starts."""
    return {
        "policies": {name: _policy(_saved(name)) for name in _PROGRAMS},
        "had_bridge": Path("/sys/class/net", _BRIDGE).exists(),
    }


def put_back(noted: dict[str, object]) -> None:
    """Take away what the daemon made; for when it has stopped."""
    policies = noted["policies"]
    assert isinstance(policies, dict)
    for name, policy in policies.items():
        saved = _saved(name)
        wanted = without_docker(saved, policy=policy)
        if wanted != saved:
            subprocess.run([f"{name}-restore"], input=wanted, text=True, capture_output=True, check=False)
    if not noted["had_bridge"] and shutil.which("ip"):
        subprocess.run(["ip", "link", "delete", _BRIDGE], capture_output=True, check=False)


def without_docker(saved: str, *, policy: str) -> str:
    """The output of iptables-save without what is Docker's, and with the policy that forwarding had."""
    kept = "".join(
        line for line in saved.splitlines(keepends=True) if line.startswith("#") or not _DOCKERS.search(line)
    )
    return _POLICY.sub(rf"\g<1>{policy}", kept)


def _policy(saved: str) -> str:
    """The policy of the filter table's FORWARD chain; a table that nobody has touched accepts."""
    found = _POLICY.search(saved)
    return found.group(2) if found else "ACCEPT"


def _saved(name: str) -> str:
    if not shutil.which(f"{name}-save"):
        return ""
    return subprocess.run([f"{name}-save"], capture_output=True, text=True, check=False).stdout
