"""Which unit tests run which lines of the core, and how long each takes: written down once and reread until the core changes."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import coverage
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

CORE = Path("operator/workflow_schedules/core")
UNIT = Path("tests/unit")
_SLOW = 0.3  # seconds, and they would be run for each survivor: whoever searches at random holds no rule alone
_AT_MOST = 250  # tests for one change: where so many run a line, those that come first are the ones it is for
WHOLE_FILE = "::*"  # what a table of cases computes is computed when its file is read, and any of its tests may notice
PYTEST = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
# They measure time, or run whole programs and months of the core: what holds a rule is a row of its own.
_NO_WITNESS = (
    "test_simulation",
    "test_cli_*",
    "test_places",
    "test_due_times_brute",
    "test_other_schedulers",
    "test_explain",
)


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What was written down.

    Attributes:
        seconds: by test, of the processor: what else the machine does says nothing about a test.
        by_line: by module, then line: the tests that run it.
    """

    seconds: dict[str, float]
    by_line: dict[str, dict[int, list[str]]]

    @property
    def slow(self) -> frozenset[str]:
        """Return the tests that are never asked."""
        return frozenset(test for test, seconds in self.seconds.items() if seconds >= _SLOW)

    def of(self, module: str, lines: frozenset[int] | None) -> list[str]:
        """Return the tests that run any of these lines (None: of the module), its own file's first, then the quick ones."""
        ran = self.by_line.get(module, {})
        found = {test for line in (ran if lines is None else lines & ran.keys()) for test in ran[line]}
        found = {test for test in found if self.seconds.get(test, 0.0) < _SLOW}
        if (own := UNIT / f"test_{module}.py").exists():
            found.add(str(own))  # for the sake of what was added to it since
        return sorted(found, key=lambda test: (f"test_{module}.py" not in test, self.seconds.get(test, 0.0)))[:_AT_MOST]

    def quickly(self, module: str, lines: frozenset[int] | None) -> list[str]:
        """Return those that say something about code that is exchanged once their files were read."""
        return [test for test in self.of(module, lines) if not test.endswith(WHOLE_FILE)]

    def files(self, module: str) -> list[str]:
        """Return the files of tests that run any line of a module."""
        return sorted({test.partition("::")[0] for test in self._all(module)})

    def _all(self, module: str) -> set[str]:
        own = UNIT / f"test_{module}.py"
        return {test for tests in self.by_line.get(module, {}).values() for test in tests} | (
            {str(own)} if own.exists() else set()
        )

    def anew(self, module: str, lines: frozenset[int] | None) -> list[str]:
        """Return those that say more with everything imported anew: the files that run the lines when they are read."""
        return [test for test in self.of(module, lines) if lines is None or test.endswith(WHOLE_FILE)]


def read_or_record(module_hash: str, cache: Path) -> Witnesses:
    """Return what was written down for this state of the core, or write it down."""
    path = cache / f"witnesses-{module_hash}.json"
    if not path.exists():
        print("hack/mutate: running the unit tests once, to see which lines each of them runs", flush=True)
        for stale in cache.glob("witnesses-*.json"):
            stale.unlink()
        path.write_text(json.dumps(_record(cache)))
    stored = json.loads(path.read_text())
    by_line = {name: {int(line): tests for line, tests in lines.items()} for name, lines in stored["lines"].items()}
    return Witnesses(stored["seconds"], by_line)


def core_hash() -> str:
    """Return a hash over the sources of the core."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(CORE.glob("*.py")))).hexdigest()[:12]


def test_files() -> list[str]:
    """Return the files whose tests may be witnesses."""
    return [
        str(path)
        for path in sorted(UNIT.glob("test_*.py"))
        if not any(map(path.match, (f"{name}.py" for name in _NO_WITNESS)))
    ]


def forget() -> None:
    """Clear what the core's cached functions know, so that who asks them runs their lines."""
    for name in [name for name in sys.modules if name.startswith("workflow_schedules.core.")]:
        for each in vars(sys.modules[name]).values():
            getattr(each, "cache_clear", bool)()


def _record(cache: Path) -> dict[str, object]:
    data = cache / "coverage"
    measured = coverage.Coverage(data_file=str(data), include=[f"{CORE}/*"], config_file=False)
    measured.start()
    watcher = _Watcher(measured)
    ended = pytest.main(["-q", *PYTEST, *test_files()], plugins=[watcher])
    measured.stop()
    if ended != 0:
        raise SystemExit("hack/mutate: the unit tests fail as it is; next: hack/test unit")
    return {"seconds": watcher.seconds, "lines": _lines(measured.get_data())}


def _lines(data: coverage.CoverageData) -> dict[str, dict[int, list[str]]]:
    return {
        Path(name).stem: {
            line: tests
            for line, contexts in data.contexts_by_lineno(name).items()
            if (tests := [context for context in contexts if context])
        }
        for name in data.measured_files()
    }


class _Watcher:
    """Tells coverage which test runs, and measures it."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        is_file = isinstance(collector, pytest.Module)
        forget()
        self._measured.switch_context(f"{collector.nodeid}{WHOLE_FILE}" if is_file else "")
        try:
            return (yield)
        finally:
            self._measured.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        forget()
        self._measured.switch_context(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - began, 4)
            self._measured.switch_context("")
