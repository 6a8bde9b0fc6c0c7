"""The verb `simulate`: its arguments, its files, its answer. What happens is core/simulation's business."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from workflow_schedules.cli import simulate
from workflow_schedules.cli.arguments import add_output, instant, warn
from workflow_schedules.cli.documents import read_documents
from workflow_schedules.cli.run_script import DEFAULT_SECONDS, HELP, LONGEST_SECONDS, all_alike, script_of
from workflow_schedules.core import simulation

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.cli.arguments import Parser


_DESCRIPTION = """\
Plays a schedule on a virtual clock, decided by the code of the operator: a row for each record. On stderr it says what no row
says, and what is open at --to. Not played: other schedules, requests (cause Manual, Backfill), limits of the operator, what an
API server refuses, and the time that it takes to make a Job, to get its Pod ready, or to end one."""


def add_simulate(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "simulate",
        help="show what would be decided from one instant to another, and why; needs no cluster",
        description=_DESCRIPTION,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "-f",
        "--filename",
        metavar="FILE",
        required=True,
        help="manifest with one WorkflowSchedule, and its WorkflowDefinition if it names one; - is standard input",
    )
    parser.add_argument("--name", help="which WorkflowSchedule of the files, where there are several")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="T",
        required=True,
        type=instant,
        help="the schedule is there and enabled from here on: instants after it count",
    )
    parser.add_argument(
        "--to", dest="until", metavar="T", required=True, type=instant, help="the last instant that counts"
    )
    parser.add_argument(
        "--outage",
        metavar="A..B",
        action="append",
        default=[],
        type=_span,
        help="no operator runs from A until just before B, runs go on; may be repeated",
    )
    parser.add_argument(
        "--pause",
        metavar="A..B",
        action="append",
        default=[],
        type=_span,
        help="spec.pause is there from A until just before B; may be repeated",
    )
    parser.add_argument(
        "--edit",
        metavar="T=FILE",
        action="append",
        default=[],
        type=_edit,
        help="at T the spec becomes that of FILE (enabled: false there disables); may be repeated",
    )
    lengths = parser.add_mutually_exclusive_group()
    lengths.add_argument(
        "--run-seconds",
        metavar="N",
        type=_seconds,
        default=DEFAULT_SECONDS,
        help=f"how long each run takes (default {DEFAULT_SECONDS})",
    )
    lengths.add_argument("--runs", metavar="FILE", help="how long each run takes and how it ends, see below")
    add_output(parser)
    parser.set_defaults(run=_simulate)


def _simulate(options: argparse.Namespace) -> None:
    file = options.runs
    script = all_alike(options.run_seconds) if file is None else script_of(file, read_documents(file))
    asked = simulate.Asked(
        start=options.start,
        until=options.until,
        manifest=read_documents(options.filename),
        ending=script,
        edits=[(at, read_documents(file)) for at, file in options.edit],
        outages=options.outage,
        pauses=options.pause,
        name=options.name,
    )
    scene, warnings = simulate.scene_of(asked)
    for warning in warnings:
        warn(warning)
    left: list[str] = []
    rows = simulation.simulate(replace(scene, note=warn, at_end=left.append))
    if options.output == "json":
        sys.stdout.writelines(simulate.json_list(rows))
    else:
        sys.stdout.writelines(f"{line}\n" for line in simulate.table(rows))
    sys.stdout.flush()  # what follows is about the end, also where both streams are one
    for line in left:
        print(f"at --to: {line}", file=sys.stderr)


def _span(text: str) -> tuple[datetime, datetime]:
    low, dots, high = text.partition("..")
    if not dots:
        raise argparse.ArgumentTypeError(f"{text!r} is no span; write A..B, two RFC 3339 times with an offset")
    return instant(low), instant(high)


def _edit(text: str) -> tuple[datetime, str]:
    at, equals, file = text.partition("=")
    if not equals or not file:
        raise argparse.ArgumentTypeError(f"{text!r} is no edit; write T=FILE, such as 2026-03-10T15:30:00Z=new.yaml")
    return instant(at), file


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= LONGEST_SECONDS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {LONGEST_SECONDS}")
    return int(text)
