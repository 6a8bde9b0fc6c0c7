"""Run tests against one mutant, in a child that has everything loaded but the core and the tests."""

from __future__ import annotations

import functools
import gc
import importlib
import itertools
import os
import resource
import sys
import types
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, TextIO

import hypothesis
import pytest
from witnesses import PYTEST, WHOLE_FILE, forget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mutants import Mutant

_CPU_SECONDS = 10  # what takes longer runs for ever; so slow is no test of a rule
_MEMORY = 4 << 30
_NOT_JUDGED = 3  # exit code of a child in which no test failed, but these lines did: nobody has noticed that mutant
_UNSOUND = -1  # in place of the number of a mutant that falls: the tests fail without any
_LOADED = ("aiohttp", "croniter", "jsonschema", "orjson", "pytest_asyncio", "pydantic", "re2", "yaml")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which tests are run for a mutant.

    Attributes:
        witnesses: those that run the changed line; without any, nobody can notice.
        known: all that were there when that was written down.
        slow: those of them that are never run, also where their whole file is.
    """

    witnesses: Callable[[Mutant], list[str]]
    known: frozenset[str]
    slow: frozenset[str]


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


def try_all(module: str, mutants: Iterable[Mutant], asked: Asked, *, workers: int) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant with whether it survived, as they end: the core and the tests are imported anew for each."""
    return _each(mutants, asked, lambda mutant, tests: _judge(module, mutant, tests, asked), workers=workers)


def try_quickly(
    module: str, mutants: list[Mutant], asked: Asked, *, files: list[str], workers: int
) -> Iterator[Mutant]:
    """Yield the mutants that fall when one function is exchanged in tests that are collected already.

    One in twenty says nothing this way, such as a change of what is computed at import: those are for `try_all`.
    """
    reader, writer = os.pipe()
    if os.fork() == 0:
        with suppress(BaseException), os.fdopen(writer, "w") as told:
            _silence()
            pytest.main(["-q", "-s", *PYTEST, *files], plugins=[_Exchange(module, mutants, asked, told, workers)])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        for line in lines:
            if int(line) == _UNSOUND:
                raise SystemExit(f"hack/mutate: the tests of {module} fail as it is; next: hack/test unit")
            yield mutants[int(line)]
    os.wait()


def _each(
    mutants: Iterable[Mutant], asked: Asked, judge: Callable[[Mutant, list[str]], int], *, workers: int
) -> Iterator[tuple[Mutant, bool]]:
    running: dict[int, Mutant] = {}
    for mutant in mutants:
        tests = asked.witnesses(mutant)
        if not tests:
            yield mutant, True
            continue
        while len(running) >= workers:
            yield _ended(running)
        running[_start(mutant, tests, judge)] = mutant
    while running:
        yield _ended(running)


def _ended(running: dict[int, Mutant]) -> tuple[Mutant, bool]:
    process, status = os.wait()
    return running.pop(process), os.waitstatus_to_exitcode(status) in {0, _NOT_JUDGED}


def _start(mutant: Mutant, tests: list[str], judge: Callable[[Mutant, list[str]], int]) -> int:
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = _NOT_JUDGED
        with suppress(BaseException):
            _silence()
            resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            code = judge(mutant, tests)
        os._exit(code)
    return process


def _silence() -> None:
    silence = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(silence, number)


def _judge(module: str, mutant: Mutant, tests: list[str], asked: Asked) -> int:
    """Return 0 when no test fails; those of the module's own file are asked first."""
    _replace(module, mutant.code)
    own = [test for test in tests if f"test_{module}.py" in test]
    return _run(own, asked) or _run([test for test in tests if test not in set(own)], asked)


def _replace(module: str, code: str) -> None:
    name, read = f"workflow_schedules.core.{module}", SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> object:
        return compile(code, loader.path, "exec") if fullname == name else read(loader, fullname)

    SourceFileLoader.get_code = get_code


def _run(tests: list[str], asked: Asked) -> int:
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    if not files:
        return 0
    ended = pytest.main(["-x", "-q", "-p", "no:faulthandler", *PYTEST, *files], plugins=[_Only(tests, asked)])
    return 0 if ended in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} else 1


class _Exchange:
    """Tries all mutants once the tests are collected, and says which of them fall."""

    def __init__(self, module: str, mutants: list[Mutant], asked: Asked, told: TextIO, workers: int) -> None:
        self._module, self._mutants, self._asked, self._told, self._workers = module, mutants, asked, told, workers

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        numbers = {mutant.code: number for number, mutant in enumerate(self._mutants)}
        judge = functools.partial(self._judge, session)
        if not self._is_sound(session):
            print(_UNSOUND, file=self._told, flush=True)
            return True
        gc.freeze()  # or each child's first collection copies everything
        for mutant, survived in _each(self._mutants, self._asked, judge, workers=self._workers):
            if not survived:
                print(numbers[mutant.code], file=self._told, flush=True)
        return True

    def _is_sound(self, session: pytest.Session) -> bool:
        """Tell whether what falls here falls for its change: with none, nothing does."""
        unchanged = [replace(mutant, lines=None) for mutant in self._mutants[:1]]
        judged = _each(unchanged, self._asked, lambda _, tests: self._run(session, tests), workers=1)
        return all(survived for _, survived in judged)

    def _judge(self, session: pytest.Session, mutant: Mutant, tests: list[str]) -> int:
        if not _exchange(f"workflow_schedules.core.{self._module}", mutant.code):
            return 0
        return self._run(session, tests)

    def _run(self, session: pytest.Session, tests: list[str]) -> int:
        items = _Only(tests, self._asked).of(session.items)
        for item, following in itertools.zip_longest(items, items[1:]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return 1
        return 0


def _exchange(name: str, code: str) -> bool:
    """Give the functions of a loaded module the code of a mutant; False when none differs."""
    module, changed = sys.modules[name], False
    mutated = {each.co_qualname: each for each in _codes(compile(code, str(module.__file__), "exec"))}
    for owner in (module, *(each for each in vars(module).values() if isinstance(each, type))):
        for each in vars(owner).values():
            function = _function_of(each)
            if isinstance(function, types.FunctionType) and function.__module__ == name:
                new = mutated.get(function.__qualname__)
                if new is not None and new != function.__code__:
                    function.__code__, changed = new, True
    forget()  # cached functions may know what the tests' tables asked for
    return changed


def _function_of(value: object) -> object:
    """Return what a class method, a property or a cached function calls."""
    inner = (getattr(value, name, None) for name in ("__func__", "fget", "func", "__wrapped__"))
    return next((each for each in inner if each is not None), value)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _codes(each)


class _Only:
    """Leaves the tests that run the changed line, in this order, and what was added to the module's own file since."""

    def __init__(self, tests: list[str], asked: Asked) -> None:
        self._order = {test: index for index, test in enumerate(tests)}
        self._asked = asked
        self._files = {test.removesuffix(WHOLE_FILE) for test in tests if test.endswith(WHOLE_FILE)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = self.of(items)

    def of(self, items: list[pytest.Item]) -> list[pytest.Item]:
        return sorted(filter(self._is_asked, items), key=lambda item: self._order.get(item.nodeid, len(self._order)))

    def _is_asked(self, item: pytest.Item) -> bool:
        test = item.nodeid
        file = test.partition("::")[0]
        if test in self._order or (file in self._order and test not in self._asked.known):
            return True
        return file in self._files and test not in self._asked.slow
