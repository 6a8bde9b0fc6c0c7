"""Whether kopf's watches hear anything: told by the answers that its session gets, not by kopf.

A watch that is well is begun anew every half minute, so each kind is answered about at least that often. Where it is not,
a watch has died or was never begun (the CRDs came after the operator), and kopf lives on deaf.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import orjson

from workflow_schedules.api.names import PLURAL_DEFINITION, PLURAL_SCHEDULE
from workflow_schedules.cluster.errors import error_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

KINDS = (PLURAL_SCHEDULE, PLURAL_DEFINITION)
FIRST_SECONDS = 30.0  # in which each kind is to be heard of at the beginning
DEAF_SECONDS = 60.0


class Hearing:
    """What the API server last said about each kind; written in kopf's thread and read in others."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, *, on_list: Callable[[], None] = lambda: None
    ) -> None:
        """Take the clock, and who is told of each list, in kopf's thread: kopf itself tells nothing of an empty one."""
        self._now = now
        self._on_list = on_list
        self._began_at = now()
        self._heard_at: dict[str, float] = {}
        self._refused: dict[tuple[str, bool], str] = {}

    def begin(self) -> None:
        """Note that the watches are begun anew; what was refused stays so until it is granted."""
        self._began_at = self._now()
        self._heard_at.clear()

    @property
    def refusal(self) -> str | None:
        """Return what the API server refused last and has not granted since: it names the verb; None when nothing."""
        return next(iter(self._refused.values()), None)

    @property
    def deafness(self) -> str | None:
        """Return of which kind nothing was heard for too long, or None."""
        for kind in KINDS:
            heard_at = self._heard_at.get(kind)
            since = (self._began_at + FIRST_SECONDS) if heard_at is None else (heard_at + DEAF_SECONDS)
            if self._now() > since:
                return f"nothing was heard of {kind} for too long: is the CustomResourceDefinition installed?"
        return None

    async def listen(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Pass a request on, and note what its answer says; a middleware of the session."""
        response = await handler(request)
        kind, is_watch = request.url.path.rpartition("/")[2], request.url.query.get("watch") == "true"
        if kind in KINDS and response.status == 200:
            self._heard_at[kind] = self._now()
            self._refused.pop((kind, is_watch), None)
            if not is_watch:
                self._on_list()
        elif kind in KINDS and response.status == 403:
            self._refused[kind, is_watch] = _message(await response.read())
        return response


def _message(body: bytes) -> str:
    return error_of(403, {}, body or orjson.dumps({"message": "Forbidden"})).message
