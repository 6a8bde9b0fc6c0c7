"""The requests of the operator, one thin method each; ``METHODS`` is its RBAC table (see methods.py).

Objects are plain parsed JSON: models would cost more CPU than the request itself. No caching, no retries, no decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

import orjson

from workflow_schedules.cluster.decoding import decode
from workflow_schedules.cluster.errors import GoneError, UnansweredError, error_of
from workflow_schedules.cluster.methods import (
    CONTROLLER_REVISIONS,
    DEFINITIONS,
    EVENTS,
    HTTP_METHODS,
    JOBS,
    LEASES,
    METHODS,
    OCCURRENCES,
    PODS,
    SCHEDULES,
    Resource,
    Verb,
    require,
)
from workflow_schedules.cluster.server_clock import ServerClock
from workflow_schedules.cluster.transport import Answer, Transport
from workflow_schedules.cluster.warning_headers import warnings_of

__all__ = ["METHODS", "Client", "Json", "Page", "Resource"]

Json: TypeAlias = dict[str, Any]

FIELD_MANAGER: Final = "workflow-schedules"
PAGE_OBJECTS: Final = 500
SERVER_TIMEOUT_SECONDS: Final = 10  # the server gives a write up after this: part of R, the longest life of a request
CLIENT_TIMEOUT_SECONDS: Final = 15.0
LIST_ATTEMPTS: Final = 3

_JSON_TYPE: Final = "application/json"
_MERGE_PATCH_TYPE: Final = "application/merge-patch+json"
_WRITE_QUERY: Final = {"timeout": f"{SERVER_TIMEOUT_SECONDS}s", "fieldManager": FIELD_MANAGER}
_DRY_RUN_QUERY: Final = {**_WRITE_QUERY, "dryRun": "All"}
# Warn: with Strict it would answer about fields that it doesn't know, and about nothing else
_QUESTION_QUERY: Final = {**_DRY_RUN_QUERY, "fieldValidation": "Warn"}
_DELETE_QUERY: Final = {"timeout": f"{SERVER_TIMEOUT_SECONDS}s"}


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a consistent list, all of whose pages have the same ``resource_version``."""

    items: list[Json]
    resource_version: str


class Client:
    """The API server as the operator sees it.

    Every method raises a ``ClusterError``; after ``UnansweredError`` a write may or may not have happened.
    GETs and lists are consistent (no ``resourceVersion`` is sent), never from a lagging cache.
    """

    def __init__(self, transport: Transport, *, lease_transport: Transport | None = None) -> None:
        """Take the way for all requests, and that for the Lease's own, which must not queue behind them (P20)."""
        self._transport = transport
        self._lease_transport = lease_transport or transport
        self.last_unanswered_write_at: float | None = None  # on the event loop's clock; Lease and Events left out
        self._clock = ServerClock()

    def server_now(self, monotonic: float) -> datetime | None:
        """Give the API server's clock at ``monotonic`` (the event loop's time); see ``ServerClock``."""
        return self._clock.now(monotonic)

    # occurrences: the log

    async def create_occurrence(self, namespace: str, body: Json | bytes, *, dry_run: bool = False) -> Json:
        """Append a record; with ``dry_run`` only ask whether the server would take it."""
        return await self._create(OCCURRENCES, namespace, body, dry_run=dry_run)

    async def get_occurrence(self, namespace: str, name: str) -> Json:
        """Read a record."""
        return await self._send("get", OCCURRENCES, namespace, name)

    def list_occurrences(
        self, *, namespace: str | None = None, label_selector: str | None = None, field_selector: str | None = None
    ) -> AsyncGenerator[Page, None]:
        """Yield records in pages; ``GoneError`` between two pages means: start again."""
        return self.pages(
            OCCURRENCES, namespace=namespace, label_selector=label_selector, field_selector=field_selector
        )

    async def patch_occurrence_status(self, namespace: str, name: str, patch: Json | bytes) -> Json:
        """Merge-patch a record's status; ``metadata.resourceVersion`` in the patch makes it a compare-and-set."""
        return await self._patch(OCCURRENCES.status, namespace, name, patch)

    async def own_occurrence(self, namespace: str, name: str, *, owners: list[Json], resource_version: str) -> Json:
        """Set who takes a request along when it is deleted, if it is still of this version."""
        patch = {"metadata": {"resourceVersion": resource_version, "ownerReferences": owners}}
        return await self._patch(OCCURRENCES, namespace, name, patch)

    async def delete_occurrence(self, namespace: str, name: str, *, uid: str) -> None:
        """Delete the record with this UID and, later, what it owns."""
        await self._delete(OCCURRENCES, namespace, name, uid=uid, propagation="Background")

    # jobs

    async def create_job(self, namespace: str, body: Json | bytes) -> Json:
        """Create a Job."""
        return await self._create(JOBS, namespace, body)

    async def ask_about_job(self, namespace: str, body: Json | bytes) -> tuple[str, ...]:
        """Ask whether the server would take a Job, by a dry run; return its warnings, which a refusal has as well."""
        _, headers = await self._exchange("create", JOBS, namespace, None, _QUESTION_QUERY, body)
        return warnings_of(headers)

    async def get_job(self, namespace: str, name: str) -> Json:
        """Read a Job."""
        return await self._send("get", JOBS, namespace, name)

    async def delete_job(self, namespace: str, name: str, *, uid: str, propagation: str = "Background") -> Json:
        """Delete the Job with this UID and, as ``propagation`` says, its pods.

        Returns:
            The Job where it stays until its pods are gone, else a ``Status``.
        """
        return await self._delete(JOBS, namespace, name, uid=uid, propagation=propagation)

    async def list_pods(self, namespace: str, job_name: str, *, limit: int) -> list[Json]:
        """Read some Pods of a Job."""
        query = {"labelSelector": f"batch.kubernetes.io/job-name={job_name}", "limit": str(limit)}
        answer = await self._send("list", PODS, namespace, None, query=query)
        return list(answer.get("items") or [])

    # schedules and definitions: what people write

    async def get_schedule(self, namespace: str, name: str) -> Json:
        """Read a schedule."""
        return await self._send("get", SCHEDULES, namespace, name)

    async def disable_schedule(self, namespace: str, name: str, *, resource_version: str) -> Json:
        """Set `enabled: false`, if the schedule is still of this version: the only spec that the operator writes (R2)."""
        patch = {"metadata": {"resourceVersion": resource_version}, "spec": {"enabled": False}}
        return await self._patch(SCHEDULES, namespace, name, patch)

    async def patch_schedule_status(
        self, namespace: str, name: str, patch: Json | bytes, *, dry_run: bool = False
    ) -> Json:
        """Merge-patch a schedule's status; with ``dry_run`` only ask whether the server would take it."""
        return await self._patch(SCHEDULES.status, namespace, name, patch, dry_run=dry_run)

    async def get_definition(self, namespace: str, name: str) -> Json:
        """Read a definition."""
        return await self._send("get", DEFINITIONS, namespace, name)

    async def patch_definition_status(self, namespace: str, name: str, patch: Json | bytes) -> Json:
        """Merge-patch a definition's status."""
        return await self._patch(DEFINITIONS.status, namespace, name, patch)

    # pinned templates and the Lease

    async def create_controller_revision(self, namespace: str, body: Json | bytes) -> Json:
        """Pin a template."""
        return await self._create(CONTROLLER_REVISIONS, namespace, body)

    async def get_controller_revision(self, namespace: str, name: str) -> Json:
        """Read a pinned template."""
        return await self._send("get", CONTROLLER_REVISIONS, namespace, name)

    async def create_lease(self, namespace: str, body: Json | bytes) -> Json:
        """Create the Lease."""
        return await self._create(LEASES, namespace, body)

    async def get_lease(self, namespace: str, name: str) -> Json:
        """Read the Lease."""
        return await self._send("get", LEASES, namespace, name)

    async def replace_lease(self, namespace: str, name: str, body: Json | bytes) -> Json:
        """Replace the Lease; ``metadata.resourceVersion`` in the body makes it a compare-and-set."""
        return await self._send("update", LEASES, namespace, name, query=_WRITE_QUERY, body=body)

    async def create_event(self, namespace: str, body: Json | bytes) -> Json:
        """Create an Event."""
        return await self._create(EVENTS, namespace, body)

    # lists and watches of any kind in the table

    async def list_all(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[list[Json], str]:
        """List everything at one instant, starting again if a continue token expires.

        Raises:
            GoneError: that happened three times.
        """
        for _ in range(LIST_ATTEMPTS - 1):
            with suppress(GoneError):
                return await self._list_once(resource, namespace, label_selector, field_selector)
        return await self._list_once(resource, namespace, label_selector, field_selector)

    async def _list_once(
        self, resource: Resource, namespace: str | None, label_selector: str | None, field_selector: str | None
    ) -> tuple[list[Json], str]:
        items, resource_version = list[Json](), ""
        async for page in self.pages(
            resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
        ):
            items += page.items
            resource_version = page.resource_version
        return items, resource_version

    async def pages(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = PAGE_OBJECTS,
    ) -> AsyncGenerator[Page, None]:
        """Yield a consistent list in pages of ``limit`` objects."""
        query = {"limit": str(limit)}
        if label_selector:
            query["labelSelector"] = label_selector
        if field_selector:
            query["fieldSelector"] = field_selector
        while True:
            answer = await self._send("list", resource, namespace, None, query=query)
            metadata = answer.get("metadata") or {}
            yield Page(answer.get("items") or [], metadata.get("resourceVersion", ""))
            if not metadata.get("continue"):
                return
            query = {**query, "continue": metadata["continue"]}

    def watch_lines(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        query: Mapping[str, str],
        idle_timeout_seconds: float,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the raw lines of a watch, of one namespace or of all; ``watch.py`` makes sense of them."""
        require("watch", resource)
        path, query = resource.path(namespace), {**query, "watch": "true"}
        return self._transport_of(resource).stream(path, query=query, idle_timeout_seconds=idle_timeout_seconds)

    def _transport_of(self, resource: Resource) -> Transport:
        return self._lease_transport if resource is LEASES else self._transport

    async def _create(self, resource: Resource, namespace: str, body: Json | bytes, *, dry_run: bool = False) -> Json:
        query = _DRY_RUN_QUERY if dry_run else _WRITE_QUERY
        return await self._send("create", resource, namespace, None, query=query, body=body)

    async def _patch(
        self, resource: Resource, namespace: str, name: str, patch: Json | bytes, *, dry_run: bool = False
    ) -> Json:
        query = _DRY_RUN_QUERY if dry_run else _WRITE_QUERY
        return await self._send("patch", resource, namespace, name, query=query, body=patch)

    async def _delete(self, resource: Resource, namespace: str, name: str, *, uid: str, propagation: str) -> Json:
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": propagation,
        }
        return await self._send("delete", resource, namespace, name, query=_DELETE_QUERY, body=options)

    async def _send(
        self,
        verb: Verb,
        resource: Resource,
        namespace: str | None,
        name: str | None,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | bytes | None = None,
    ) -> Json:
        return (await self._exchange(verb, resource, namespace, name, query, body))[0]

    async def _exchange(
        self,
        verb: Verb,
        resource: Resource,
        namespace: str | None,
        name: str | None,
        query: Mapping[str, str] | None,
        body: Json | bytes | None,
    ) -> tuple[Json, Mapping[str, str]]:
        """Send one request; return the object and the headers of its answer."""
        require(verb, resource)
        time = asyncio.get_running_loop().time
        is_write = verb not in {"get", "list"} and "dryRun" not in (query or {})
        sent_at = time()
        try:
            answer = await self._transport_of(resource).request(
                HTTP_METHODS[verb],
                resource.path(namespace, name),
                query=query,
                body=orjson.dumps(body) if isinstance(body, dict) else body,
                content_type=None if body is None else _MERGE_PATCH_TYPE if verb == "patch" else _JSON_TYPE,
                timeout_seconds=CLIENT_TIMEOUT_SECONDS,
            )
            self._clock.read(answer.headers.get("date", ""), sent_at=sent_at, received_at=time())
            if not 200 <= answer.status < 300:
                raise error_of(answer.status, answer.headers, answer.body)
            return _parsed(answer), answer.headers
        except (UnansweredError, asyncio.CancelledError):
            if is_write and resource not in {LEASES, EVENTS}:
                self.last_unanswered_write_at = time()
            raise


def _parsed(answer: Answer) -> Json:
    try:
        parsed = decode(answer.body)
    except orjson.JSONDecodeError as error:
        raise UnansweredError("the answer is not JSON", reason="Undecodable") from error
    if not isinstance(parsed, dict):
        raise UnansweredError("the answer is not an object", reason="Undecodable")
    return parsed
