"""The command line of hack/kind."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
from typing import NoReturn

from controlplane_lib.console import RemedyError, say, speak_as
from controlplane_lib.paths import checked_name
from kind_lib import cluster, daemon

_MOST_WORKERS = 9


def main() -> int:
    speak_as("kind")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    asked = _parser().parse_args()
    try:
        return int(asked.run(asked) or 0)
    except RemedyError as failure:
        say(f"{failure}\n  next: {failure.remedy}")
        return 1
    except KeyboardInterrupt:
        say(f"interrupted\n  next: hack/kind {asked.verb} (goes on where it stopped), or hack/kind down")
        return 130


def _interrupt(number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/kind", description="A kind cluster on this machine.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="up|load|install|down|status|env|prepare")
    up = verbs.add_parser("up", help="make one, or find the one that runs; prints its kubeconfig")
    up.add_argument(
        "--workers", type=_workers, metavar="N", help="worker nodes beside the control plane's (0 if it is new)"
    )
    up.set_defaults(run=_up)
    verbs.add_parser("load", help="build this clone's images and put them into its nodes").set_defaults(run=_load)
    verbs.add_parser("install", help="load, then kubectl apply -k of this clone").set_defaults(run=_install)
    verbs.add_parser("down", help="delete it, and put the machine back after the last").set_defaults(run=_down)
    verbs.add_parser("status", help="say what runs").set_defaults(run=_status)
    verbs.add_parser("env", help='print what a shell needs: eval "$(hack/kind env)"').set_defaults(run=_env)
    prepare = verbs.add_parser("prepare", help="only make what takes minutes: programs and images")
    prepare.set_defaults(run=_prepare)
    for verb in (up, prepare):
        verb.add_argument("--start-docker", action="store_true", help="start Docker's daemon if none runs (as root)")
    for verb in verbs.choices.values():
        verb.add_argument(
            "--name",
            type=checked_name,
            default=cluster.default_name(),
            help="of the cluster (this clone's: %(default)s)",
        )
    return parser


def _workers(text: str) -> int:
    if not (text.isdecimal() and int(text) <= _MOST_WORKERS):
        raise argparse.ArgumentTypeError(f"{text!r}: write 0 to {_MOST_WORKERS}")
    return int(text)


def _may_start(asked: argparse.Namespace) -> bool:
    return bool(asked.start_docker or daemon.is_asked_for())


def _up(asked: argparse.Namespace) -> None:
    found = cluster.up(asked.name, workers=asked.workers, may_start_docker=_may_start(asked))
    say('next: hack/kind install, and eval "$(hack/kind env)"')
    print(found.kubeconfig)


def _prepare(asked: argparse.Namespace) -> None:
    reason = daemon.hindrance(may_start=_may_start(asked))
    if reason:
        say(f"nothing is prepared: {reason}")
    else:
        cluster.prepare(may_start_docker=_may_start(asked))


def _found(name: str) -> cluster.KindCluster:
    found = cluster.find(name)
    if not found or not found.answers():
        raise RemedyError(f"{name} is not up", remedy=f"hack/kind up --name {name}")
    return found


def _load(asked: argparse.Namespace) -> None:
    cluster.load(_found(asked.name))


def _install(asked: argparse.Namespace) -> None:
    found = _found(asked.name)
    cluster.load(found)
    cluster.install(found)
    say("the operator is ready")


def _down(asked: argparse.Namespace) -> None:
    say(f"{asked.name}: removed" if cluster.down(asked.name) else f"{asked.name}: nothing was up")


def _status(_asked: argparse.Namespace) -> None:
    for name in cluster.names():
        found = cluster.find(name)
        state = "up" if found and found.answers() else "not well"
        print(f"{name}: {state}" + (f"  KUBECONFIG={found.kubeconfig}" if found else ""))
    if not daemon.answers():
        print("Docker's daemon does not answer, so no cluster runs")
    if not cluster.names():
        print("nothing is up; next: hack/kind up")


def _env(asked: argparse.Namespace) -> None:
    found = _found(asked.name)
    print(f"export KUBECONFIG={shlex.quote(str(found.kubeconfig))}")
    print(f'export PATH={shlex.quote(str(found.kubectl_path.parent))}{os.pathsep}"$PATH"')
