"""Where everything lives: nothing outside the repository and one cache folder."""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = REPOSITORY / "hack" / "tools"

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def cache_root() -> Path:
    """The cache folder of this project, shared by all its clones."""
    named = os.environ.get("WORKFLOW_SCHEDULES_CACHE")
    if named:
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "workflow-schedules"


def target() -> tuple[str, str]:
    """Operating system and processor as Go spells them."""
    machine = platform.machine().lower()
    return platform.system().lower(), _ARCHITECTURES.get(machine, machine)


def module_version(module: str, *, tools: Path = TOOLS) -> str:
    """The version that hack/tools/go.mod requires of a module, with its leading v."""
    found = re.search(rf"^\s*{re.escape(module)} (v\S+)", (tools / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise LookupError(f"{tools / 'go.mod'} does not require {module}")
    return found.group(1)


def tools_key(*, tools: Path = TOOLS) -> str:
    """Names one set of programs: Kubernetes version, platform and everything that the modules pin."""
    files = sorted(path for name in ("go.mod", "go.sum") for path in tools.rglob(name))
    pins = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    return "-".join((module_version("k8s.io/kubernetes", tools=tools), *target(), pins))


def binaries_dir() -> Path:
    return cache_root() / tools_key() / "bin"


def default_name() -> str:
    """The control plane of this clone: two clones never share one."""
    folder = re.sub(r"[^a-z0-9]+", "-", REPOSITORY.name.lower()).strip("-")[:20] or "clone"
    return f"{folder}-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:8]}"


def checked_name(text: str) -> str:
    """A name that somebody chose: it becomes part of paths and of host names.

    Raises:
        argparse.ArgumentTypeError: it can't be one.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,44}", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name: write up to 45 lower-case letters, digits and dashes, and no dash first"
        )
    return text


def run_dir(name: str) -> Path:
    """Everything that one running control plane writes."""
    return cache_root() / "run" / name
