"""Run tests against one mutant, in a child that has everything loaded but the core and the tests."""

from __future__ import annotations

import importlib
import os
import resource
import sys
import time
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, NoReturn

import hypothesis
import pytest
from witnesses import PYTEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mutants import Mutant

_CPU_SECONDS = 40  # what takes longer runs for ever; so slow is no test of a rule
_MEMORY = 4 << 30
_LOADED = ("aiohttp", "croniter", "jsonschema", "orjson", "pytest_asyncio", "pydantic", "re2", "yaml")


def load() -> None:
    """Import what each child needs, and nothing that imports the core."""
    for name in _LOADED:
        importlib.import_module(name)
    for name in ("definition", "occurrence", "schedule", "names"):
        importlib.import_module(f"workflow_schedules.api.{name}")
    assert not any(name.startswith("workflow_schedules.core") for name in sys.modules)
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutate", phases=phases, database=None, derandomize=True, deadline=None)
    hypothesis.settings.load_profile("mutate")


def try_all(
    module: str, mutants: Iterable[Mutant], witnesses: Callable[[Mutant], list[str]], known: set[str], *, workers: int
) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant with whether it survived, as they end."""
    running: dict[int, Mutant] = {}
    for mutant in mutants:
        tests = witnesses(mutant)
        if not tests:
            yield mutant, True
            continue
        while len(running) >= workers:
            yield _ended(running)
        running[_start(module, mutant, tests, known)] = mutant
    while running:
        yield _ended(running)


def _ended(running: dict[int, Mutant]) -> tuple[Mutant, bool]:
    process, status = os.wait()
    return running.pop(process), status == 0


def _start(module: str, mutant: Mutant, tests: list[str], known: set[str]) -> int:
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        _judge(module, mutant, tests, known)
    return process


def _judge(module: str, mutant: Mutant, tests: list[str], known: set[str]) -> NoReturn:
    """Exit with 0 when no test fails; those of the module's own file are asked first."""
    code = 1
    with suppress(BaseException):
        silence = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(silence, number)
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        _replace(module, mutant.code)
        own = [test for test in tests if f"test_{module}.py" in test]
        code = _run(own, known) or _run([test for test in tests if test not in set(own)], known)
    os._exit(code)


def _replace(module: str, code: str) -> None:
    name, read = f"workflow_schedules.core.{module}", SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> object:
        return compile(code, loader.path, "exec") if fullname == name else read(loader, fullname)

    SourceFileLoader.get_code = get_code


def _run(tests: list[str], known: set[str]) -> int:
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    if not files:
        return 0
    ended = pytest.main(["-x", "-q", "-p", "no:faulthandler", *PYTEST, *files], plugins=[_Only(tests, known)])
    return 0 if ended in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} else 1


class _Only:
    """Leaves the tests that run the changed line, in this order, and those that are newer than what was written down."""

    def __init__(self, tests: list[str], known: set[str]) -> None:
        self._order = {test: index for index, test in enumerate(tests)}
        self._known = known

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order or item.nodeid not in self._known),
            key=lambda item: self._order.get(item.nodeid, -1),
        )
