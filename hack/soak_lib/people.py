"""What people do to schedules all the while: edits, pauses, requests, cancels, deletions, parents switched off and on."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from soak_lib import population

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from soak_lib.admin import Admin
    from soak_lib.commits import CommitOrder

Json = dict[str, Any]
_CANCEL = "workflow-schedules.dev/cancel"


class People:
    """Acts at random times; what fails because the API server is away is not tried again."""

    def __init__(self, admin: Admin, random: Random, schedules: list[Json], order: CommitOrder) -> None:
        self._admin = admin
        self._random = random
        self._schedules = schedules
        self._order = order
        self._numbers = itertools.count()
        self.done: Counter[str] = Counter()
        self._deeds: list[tuple[int, Callable[[], Awaitable[str]]]] = [
            (30, self._edit_input),
            (15, self._edit_policies),
            (10, self._pause),
            (10, self._resume),
            (8, self._switch),
            (20, self._request),
            (4, self._cancel),
            (3, self._make_anew),
            (3, self._turn_definition),
        ]

    async def act(self, *, every_seconds: float) -> None:
        """Act until cancelled, that often on average."""
        weights = [weight for weight, _ in self._deeds]
        while True:
            await asyncio.sleep(self._random.expovariate(1 / every_seconds))
            _, deed = self._random.choices(self._deeds, weights)[0]
            self.done[await deed()] += 1

    async def calm(self) -> None:
        """Turn every definition on again, so that nothing is held at the end."""
        for namespace, number in itertools.product(population.namespaces(), range(population.DEFINITIONS)):
            await self._admin.patch("workflowdefinitions", namespace, f"d-{number}", {"spec": {"enabled": True}})

    def _place(self) -> tuple[str, str]:
        metadata = self._random.choice(self._schedules)["metadata"]
        return metadata["namespace"], metadata["name"]

    async def _edit(self, **spec: object) -> None:
        await self._admin.patch("workflowschedules", *self._place(), {"spec": spec})

    async def _edit_input(self) -> str:
        await self._edit(input={"number": self._random.randrange(1000)})
        return "edits of an input"

    async def _edit_policies(self) -> str:
        await self._edit(**population.policies(self._random))
        return "edits of policies"

    async def _pause(self) -> str:
        until = datetime.now(UTC) + timedelta(seconds=self._random.randint(20, 120))
        until_time = {"untilTime": f"{until:%Y-%m-%dT%H:%M:%SZ}"} if self._random.random() < 0.7 else {}
        await self._edit(pause={"reason": "soak", **until_time})
        return "pauses"

    async def _resume(self) -> str:
        await self._edit(pause=None)
        return "resumes"

    async def _switch(self) -> str:
        await self._edit(enabled=self._random.random() < 0.7)
        return "switches on or off"

    async def _request(self) -> str:
        namespace, name = self._place()
        body = {
            "apiVersion": population.API_VERSION,
            "kind": "ScheduleOccurrence",
            "metadata": {"namespace": namespace, "name": f"manual-{next(self._numbers)}"},
            "spec": {"scheduleRef": {"name": name}, "cause": "Manual"},
        }
        await self._admin.create("scheduleoccurrences", namespace, body)
        return "manual runs"

    async def _cancel(self) -> str:
        runs = [
            place
            for place, body in self._order.present("scheduleoccurrences").items()
            if body["spec"].get("decision") == "Admitted" and "outcome" not in (body.get("status") or {})
        ]
        if runs:
            patch = {"metadata": {"annotations": {_CANCEL: "soak"}}}
            await self._admin.patch("scheduleoccurrences", *self._random.choice(runs), patch)
        return "cancels"

    async def _make_anew(self) -> str:
        body = self._random.choice(self._schedules)
        metadata = body["metadata"]
        await self._admin.delete("workflowschedules", metadata["namespace"], metadata["name"])
        await asyncio.sleep(self._random.uniform(0, 2))
        await self._admin.create("workflowschedules", metadata["namespace"], body)
        return "deleted and made anew"

    async def _turn_definition(self) -> str:
        namespace = self._random.choice(population.namespaces())
        is_held = self._random.random() < 0.5  # number 0 holds its schedules, the others disable them for good
        name = "d-0" if is_held else f"d-{self._random.randrange(1, population.DEFINITIONS)}"
        if not is_held:
            cap = self._random.randint(2, 10)
            await self._admin.patch("workflowdefinitions", namespace, name, {"spec": {"maxActiveRuns": cap}})
            return "caps of definitions"
        await self._admin.patch("workflowdefinitions", namespace, name, {"spec": {"enabled": False}})
        await asyncio.sleep(self._random.uniform(0, 20))
        await self._admin.patch("workflowdefinitions", namespace, name, {"spec": {"enabled": True}})
        return "definitions off and on"
