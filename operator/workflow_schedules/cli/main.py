"""`kubectl-wfs`: read the arguments, call the verb, print its answer. No rule of the contract may live here."""

from __future__ import annotations

import argparse
import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

import orjson

from workflow_schedules.api.common import format_utc
from workflow_schedules.cli.arguments import ArgumentsError, Parser, add_output, instant, warn
from workflow_schedules.cli.documents import read_documents
from workflow_schedules.cli.job_fields import template_warnings
from workflow_schedules.cli.output import say, say_json
from workflow_schedules.cli.preview import (
    Question,
    answer,
    trigger_of_expressions,
    trigger_of_file,
    trigger_of_one_shot,
)
from workflow_schedules.cli.problems import Problem, ProblemsError
from workflow_schedules.cli.simulate_verb import add_simulate
from workflow_schedules.cli.validate import is_ours, problems_between, problems_of
from workflow_schedules.scheduler.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workflow_schedules.cli.documents import Document
    from workflow_schedules.cli.preview import Asked

_COUNT_LIMIT = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the entry point `kubectl-wfs`.

    Returns:
        0 when all is well, 1 when something is wrong with what was given, 2 for wrong arguments.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _parser().parse_args(given)
        options.run(options)
        sys.stdout.flush()
    except ProblemsError as error:
        _tell(error.problems, as_json=options.output == "json")
        return 1
    except ArgumentsError as error:
        if _wants_json(given):
            _tell([Problem(error="invalid_argument", message=str(error))], as_json=True)
        else:
            print(f"{error.usage}{error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
        return 1
    return 0


def _tell(problems: Iterable[Problem], *, as_json: bool) -> None:
    for problem in problems:
        if as_json:
            say_json(problem.as_json())
        else:
            print(problem.as_text(), file=sys.stderr)  # which escapes what its encoding can't hold by itself
    sys.stdout.flush()


def _wants_json(given: Sequence[str]) -> bool:
    """Tell whether JSON is asked for by arguments that can't be read as a whole."""
    return any(
        text in {"-ojson", "--output=json"} or (text == "json" and before in {"-o", "--output"})
        for before, text in pairwise(("", *given))
    )


def entry() -> NoReturn:
    """Run and exit."""
    sys.exit(main())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="kubectl wfs", description="Work with WorkflowSchedules.", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_preview(verbs)
    add_simulate(verbs)
    _add_validate(verbs)
    return parser


def _add_preview(verbs: argparse._SubParsersAction[Parser]) -> None:
    parser = verbs.add_parser(
        "preview",
        help="list the instants of a schedule, and explain the surprising ones; needs no cluster",
        allow_abbrev=False,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "-f", "--filename", metavar="FILE", help="manifest with one WorkflowSchedule; - is standard input"
    )
    source.add_argument(
        "--schedule", nargs="+", metavar="EXPR", help="five-field cron expressions; their union is shown"
    )
    source.add_argument("--run-once", metavar="TIME", help="one instant, RFC 3339 with an offset")
    parser.add_argument("--name", help="which WorkflowSchedule of the file, where there are several")
    parser.add_argument("--time-zone", metavar="ZONE", help="IANA name (default UTC, or the manifest's)")
    parser.add_argument("--after", metavar="TIME", type=instant, help="list the first instants after it (default: now)")
    parser.add_argument(
        "--before", metavar="TIME", type=instant, help="list the newest instants at or before it, newest first"
    )
    parser.add_argument(
        "--count", type=_count, default=5, metavar="N", help=f"how many, 1 to {_COUNT_LIMIT} (default 5)"
    )
    add_output(parser)
    parser.set_defaults(run=_preview)


def _add_validate(verbs: argparse._SubParsersAction[Parser]) -> None:
    parser = verbs.add_parser(
        "validate", help="say everything that is wrong with a file; needs no cluster", allow_abbrev=False
    )
    parser.add_argument(
        "-f",
        "--filename",
        metavar="FILE",
        required=True,
        action="append",
        help="manifests; - is standard input; may be repeated",
    )
    add_output(parser)
    parser.set_defaults(run=_validate)


def _preview(options: argparse.Namespace) -> None:
    asked = _asked(options)
    after = options.after
    if after is None and options.before is None:
        after = SystemClock().now()
    question = Question(after=after, before=options.before, count=options.count, now=SystemClock().now())
    found = answer(asked, question)
    if options.output == "json":
        times = [format_utc(at) for at in found.times]
        say_json(orjson.dumps({"times": times, "warnings": list(found.warnings)}).decode())
        return
    say("\n".join(found.table()))
    for warning in found.warnings:
        warn(warning)


def _asked(options: argparse.Namespace) -> Asked:
    if options.filename is not None:
        return trigger_of_file(read_documents(options.filename), name=options.name, time_zone=options.time_zone)
    if options.run_once is not None:
        return trigger_of_one_shot(options.run_once, time_zone=_zone(options.time_zone))
    return trigger_of_expressions(options.schedule, time_zone=_zone(options.time_zone))


def _zone(given: str | None) -> str:
    return "UTC" if given is None else given


def _validate(options: argparse.Namespace) -> None:
    documents, problems = _read_all(options.filename)
    problems += [problem for document in documents for problem in problems_of(document)]
    problems += problems_between(documents)
    if not documents and not problems:
        problems.append(Problem(error="empty_file", message=f"{', '.join(options.filename)}: no object in it"))
    for warning in template_warnings(documents):
        warn(warning.as_text())
    if problems:
        raise ProblemsError(*problems)
    if options.output == "table":
        others = sum(not is_ours(document) for document in documents)
        say(f"{len(documents) - others} valid" + (f", {others} of other kinds left alone" if others else ""))


def _read_all(files: Sequence[str]) -> tuple[list[Document], list[Problem]]:
    documents: list[Document] = []
    problems: list[Problem] = []
    for file in files:
        try:
            documents += read_documents(file)
        except ProblemsError as error:
            problems += error.problems
    return documents, problems


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= _COUNT_LIMIT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_COUNT_LIMIT}")
    return int(text)
