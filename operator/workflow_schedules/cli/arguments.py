"""What the verbs' arguments have in common: the parser, times, the form of the answer. No verb may live here."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from workflow_schedules.api.common import parse_utc

if TYPE_CHECKING:
    from datetime import datetime


class ArgumentsError(Exception):
    """The arguments can't be read.

    Attributes:
        usage: of the verb, for people.
    """

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """Raises where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong."""
        raise ArgumentsError(message, self.format_usage())


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `-o`."""
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="for people or for programs")


def instant(text: str) -> datetime:
    """Read an RFC 3339 time with an offset.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        return parse_utc(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def warn(warning: str) -> None:
    """Tell people; programs read only what is answered."""
    print(f"warning: {warning}", file=sys.stderr)
