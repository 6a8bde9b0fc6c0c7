"""hack/mutate: which changes of the core no unit test notices.

What is known to change nothing stands in equivalent.txt with its reason; a line there that is not so, or not there any more,
is a failure, too. What was killed is remembered until its module
changes; survivors are tried again each time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

CACHE = Path(".cache/mutate")
sys.path.append(str(Path(os.environ["MUTATE_TOOL"]).resolve()))  # last: pytest and coverage stay the project's own

import equivalents  # noqa: E402
import mutants  # noqa: E402
import trials  # noqa: E402
import witnesses  # noqa: E402

# The modules that hold rules, those first that decide whether anything runs twice or is lost.
RULES = """
    decide misfire overlap baselines pause completion capacity runs ending log totals retention
    decide_requests requests unblock preflight inputs jitter identity acceptance refusals listed outcome status forgotten
    essentials
""".split()  # noqa: SIM905
_BETWEEN_SAVES = 20


def main() -> int:
    """Run the verb."""
    arguments = _arguments()
    every = sorted(path.stem for path in witnesses.CORE.glob("*.py") if path.stem != "__init__")
    modules = every if arguments.all else arguments.modules or RULES
    if unknown := [module for module in modules if module not in every]:
        print(
            f"hack/mutate: core has no module {', '.join(unknown)}\n  next: hack/mutate, or one of: {' '.join(every)}",
            file=sys.stderr,
        )
        return 2
    CACHE.mkdir(parents=True, exist_ok=True)
    seen = _recorded()
    trials.load()
    return 1 if sum([_try(module, seen, arguments) for module in modules]) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hack/mutate", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="of core; default: those that hold rules")
    parser.add_argument("--all", action="store_true", help="every module of core")
    parser.add_argument("--fresh", action="store_true", help="forget what was killed before")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), metavar="N")
    return parser.parse_args()


def _recorded() -> witnesses.Witnesses:
    """Return who runs which line; recorded in a child, so that this process never imports the core."""
    key = witnesses.core_hash()
    child = os.fork()
    if child == 0:
        witnesses.read_or_record(key, CACHE)
        sys.exit(0)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit("hack/mutate: not every unit test passes; next: hack/test unit")
    return witnesses.read_or_record(key, CACHE)


def _try(module: str, seen: witnesses.Witnesses, arguments: argparse.Namespace) -> int:
    """Try one module and return how many survivors are new, and how many lines about it are wrong."""
    source = (witnesses.CORE / f"{module}.py").read_text()
    memory = _Memory(module, source, is_fresh=arguments.fresh)
    equivalent = equivalents.of(module)
    found, began = list(mutants.mutants_of(source)), time.monotonic()
    counts: Counter[str] = Counter(killed=sum(mutant.code in memory for mutant in found))
    asked = trials.Asked(lambda mutant: seen.quickly(module, mutant.lines), frozenset(seen.seconds), seen.slow)
    left = [mutant for mutant in found if mutant.code not in memory]
    for mutant in trials.try_quickly(module, left, asked, files=seen.files(module), workers=arguments.workers):
        memory.add(mutant.code)
        counts["killed"] += 1
    left = [mutant for mutant in left if mutant.code not in memory]
    survivors: list[mutants.Mutant] = []
    anew = replace(asked, witnesses=lambda mutant: seen.anew(module, mutant.lines))
    unchanged = mutants.Mutant(source, "unchanged", 1, None)
    own = replace(
        asked, witnesses=lambda mutant: [test for test in anew.witnesses(mutant) if f"test_{module}.py" in test]
    )
    if left and not all(survived for _, survived in trials.try_all(module, [unchanged], own, workers=1)):
        raise SystemExit(f"hack/mutate: the tests of {module} fail as it is; next: hack/test unit")
    for mutant, survived in trials.try_all(module, left, anew, workers=arguments.workers):
        kind = "equivalent" if survived and mutant.name in equivalent else "survived" if survived else "killed"
        counts[kind] += 1
        if kind == "killed":
            memory.add(mutant.code)
        elif kind == "survived":
            survivors.append(mutant)
    memory.save()
    print(
        f"{module}: {len(found)} mutants, {', '.join(f'{counts[kind]} {kind}' for kind in ('killed', 'survived', 'equivalent'))}"
        f" ({time.monotonic() - began:.0f} s)"
    )
    for mutant in sorted(survivors, key=lambda one: one.line):
        print(f"  {witnesses.CORE}/{module}.py:{mutant.line}: {mutant.name}")
    wrong = list(equivalents.wrong(equivalent, ((mutant.name, mutant.code in memory) for mutant in found)))
    for problem in wrong:
        print(f"  {equivalents.FILE.name}: {module}: {problem}")
    sys.stdout.flush()
    return len(survivors) + len(wrong)


class _Memory:
    """What was killed of one module, in a file of the cache."""

    def __init__(self, module: str, source: str, *, is_fresh: bool) -> None:
        self._path = CACHE / f"killed-{module}.json"
        self._source = _digest(source)
        stored = json.loads(self._path.read_text()) if self._path.exists() and not is_fresh else {}
        self._killed = set(stored["killed"]) if stored.get("source") == self._source else set()

    def __contains__(self, code: str) -> bool:
        return _digest(code) in self._killed

    def add(self, code: str) -> None:
        self._killed.add(_digest(code))
        if len(self._killed) % _BETWEEN_SAVES == 0:
            self.save()

    def save(self) -> None:
        self._path.write_text(json.dumps({"source": self._source, "killed": sorted(self._killed)}))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


sys.exit(main())
