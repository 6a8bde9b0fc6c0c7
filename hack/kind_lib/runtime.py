"""An OCI runtime for machines that withhold a capability: it runs runc after taking out of the request what none may have.

`docker run --privileged` asks for every capability that the kernel knows, and runc refuses to start what it can't give
all of. The container gets what this machine allows, and no more. The daemon runs this file alone: it imports nothing of
ours.
"""

import json
import os
import sys
from pathlib import Path

# in the kernel's order (include/uapi/linux/capability.h)
NAMES = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
]


def allowed() -> set[str]:
    status = Path("/proc/self/status").read_text()
    bits = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), 16)
    return {f"CAP_{name}" for number, name in enumerate(NAMES) if bits >> number & 1}


def limit(process: dict) -> None:
    may = allowed()
    for kind, wanted in process.get("capabilities", {}).items():
        process["capabilities"][kind] = [name for name in wanted or [] if name in may]


def value_of(arguments: list[str], *options: str) -> str | None:
    for number, argument in enumerate(arguments):
        if argument in options:
            return arguments[number + 1]
        if argument.split("=")[0] in options:
            return argument.partition("=")[2]
    return None


def main(arguments: list[str]) -> None:
    verb = next((argument for argument in arguments if argument in {"create", "run", "exec"}), None)
    if verb == "exec":
        file = value_of(arguments, "--process", "-p")
    else:
        file = f"{value_of(arguments, '--bundle', '-b') or '.'}/config.json" if verb else None
    if file:
        document = json.loads(Path(file).read_text())
        limit(document if verb == "exec" else document["process"])
        Path(file).write_text(json.dumps(document))
    os.execvp("runc", ["runc", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
