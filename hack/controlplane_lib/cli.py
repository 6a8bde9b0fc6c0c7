"""The command line of hack/controlplane."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from controlplane_lib import binaries, install, plane
from controlplane_lib.console import RemedyError, say
from controlplane_lib.paths import checked_name, default_name, run_dir


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT as well: a shell starts background jobs with it ignored
        signal.signal(number, _interrupt)
    asked = _parser().parse_args()
    try:
        return int(asked.run(asked))
    except RemedyError as failure:
        say(f"{failure}\n  next: {failure.remedy}")
        return 1
    except KeyboardInterrupt:
        say(
            f"interrupted; nothing is left half done\n  next: hack/controlplane {asked.verb} (goes on where it stopped)"
        )
        return 130


def _interrupt(number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/controlplane", description="A real control plane on this machine.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="up|down|env|install|status|binaries")
    up = verbs.add_parser("up", help="start one, or find the one that runs; prints its kubeconfig")
    up.add_argument(
        "--audit-policy", type=_file, metavar="FILE", help="log requests by this policy (env prints AUDIT_LOG)"
    )
    up.add_argument("--existing", type=_file, metavar="KUBECONFIG", help="use this cluster instead of starting one")
    up.set_defaults(run=_up)
    down = verbs.add_parser("down", help="end it and remove its files")
    down.add_argument("--all", action="store_true", help="of every name, not only this clone's")
    down.set_defaults(run=_down)
    env = verbs.add_parser("env", help='print what a shell needs: eval "$(hack/controlplane env)"')
    env.add_argument("--operator", action="store_true", help="KUBECONFIG with the rights of the operator, not yours")
    env.set_defaults(run=_env)
    install = verbs.add_parser("install", help="put this clone's CRDs, roles and policies in (not the operator)")
    install.set_defaults(run=_install)
    verbs.add_parser("status", help="say what runs").set_defaults(run=_status)
    verbs.add_parser("binaries", help="only make the programs; prints their paths").set_defaults(run=_binaries)
    for verb in (up, down, env, install):
        verb.add_argument(
            "--name", type=checked_name, default=default_name(), help="of the control plane (this clone's: %(default)s)"
        )
    return parser


def _file(text: str) -> Path:
    path = Path(text).absolute()
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return path


def _up(asked: argparse.Namespace) -> int:
    found = plane.up(asked.name, audit_policy=asked.audit_policy, existing=asked.existing)
    option = "" if asked.name == default_name() else f" --name {asked.name}"
    say(f'next: eval "$(hack/controlplane env{option})" && kubectl get nodes')
    print(found.kubeconfig)
    return 0


def _down(asked: argparse.Namespace) -> int:
    for name in plane.names() if asked.all else [asked.name]:
        say(f"{name}: removed" if plane.down(name) else f"{name}: nothing was up")
    return 0


def _found(name: str) -> plane.Plane:
    found = plane.find(name)
    if not found:
        raise RemedyError(f"{name} is not up", remedy=f"hack/controlplane up --name {name}")
    return found


def _install(asked: argparse.Namespace) -> int:
    install.install(partial(plane.kubectl, _found(asked.name)))
    return 0


def _env(asked: argparse.Namespace) -> int:
    found = _found(asked.name)
    kubeconfig = found.kubeconfig
    if asked.operator:
        own = run_dir(asked.name) / "operator.kubeconfig"
        kubeconfig = install.write_operator_kubeconfig(partial(plane.kubectl, found), own)
    print(f"export KUBECONFIG={shlex.quote(str(kubeconfig))}")
    print(f"export KUBECACHEDIR={shlex.quote(str(run_dir(asked.name) / 'kubectl-cache'))}")
    if shutil.which("kubectl") != str(found.kubectl):
        print(f'export PATH={shlex.quote(str(found.kubectl.parent))}{os.pathsep}"$PATH"')
    if found.audit_log:
        print(f"export AUDIT_LOG={shlex.quote(str(found.audit_log))}")
    return 0


def _status(_asked: argparse.Namespace) -> int:
    for name in plane.names():
        parts = plane.health(name)
        missing = [part for part, is_well in parts.items() if not is_well]
        found = plane.find(name)
        where = f"  KUBECONFIG={found.kubeconfig}" if found else ""
        print(f"{name}: {'up' if not missing else 'not well (' + ', '.join(missing) + ')'}{where}")
    if not plane.names():
        print("nothing is up; next: hack/controlplane up")
    return 0


def _binaries(_asked: argparse.Namespace) -> int:
    for path in binaries.find_or_make().values():
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
