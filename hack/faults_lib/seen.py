"""A request as a fault knows it: what the API server's audit log would call it, and its number among the writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NOT_NUMBERED = {"leases", "events"}


@dataclass(slots=True, kw_only=True)
class Seen:
    """One request that came by.

    Attributes:
        verb: create, get, list, watch, update, patch or delete; "get" for what is no resource.
        resource: plural, with its subresource ("jobs", "workflowschedules/status"); empty for what is no resource.
        number: its place among the writes, from 1; 0 for reads, dry runs, Events and the Lease, which any pause would shift.
        status: of the answer that was sent back; None before, and when there was none.
        is_committed: whether the API server carried it out.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    query: Mapping[str, str]
    body: bytes
    number: int = 0
    status: int | None = None
    is_committed: bool = False
    faults: list[str] = field(default_factory=list)

    @property
    def is_dry_run(self) -> bool:
        return "dryRun" in self.query

    @property
    def is_write(self) -> bool:
        return self.verb in _VERBS.values() and not self.is_dry_run

    @property
    def is_numbered(self) -> bool:
        return self.is_write and self.resource not in _NOT_NUMBERED

    @property
    def sent(self) -> dict[str, Any]:
        """The object that was sent; empty when there is none."""
        try:
            parsed = json.loads(self.body or b"{}")
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}

    def __str__(self) -> str:
        number = f"#{self.number} " if self.number else ""
        where = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{number}{self.verb} {self.resource} {where} -> {self.status}{' ' if self.faults else ''}{' '.join(self.faults)}"


Match: TypeAlias = Callable[[Seen], bool]


def seen(method: str, path: str, query: Mapping[str, str], body: bytes) -> Seen:
    """Read a request's line as the API server would."""
    resource, namespace, name = _target(path)
    is_watch = query.get("watch") in {"true", "1"}
    read = "watch" if is_watch else "get" if name or not resource else "list"
    verb = _VERBS.get(method, read)
    if verb == "create" and not name:
        name = _name_in(body)
    return Seen(verb=verb, resource=resource, namespace=namespace, name=name, query=query, body=body)


def _target(path: str) -> tuple[str, str, str]:
    """Resource, namespace and name of a path below /api/v1 or /apis/GROUP/VERSION."""
    parts = [unquote(part) for part in path.split("/") if part]
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:] if parts[:1] == ["apis"] else []
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = (*rest, "", "", "")[:3]
    return "/".join(part for part in (resource, subresource) if part), namespace, name


def _name_in(body: bytes) -> str:
    try:
        return str(json.loads(body)["metadata"]["name"])
    except (ValueError, KeyError, TypeError):
        return ""


def on(
    verb: str | Collection[str] = "",
    resource: str = "",
    *,
    namespace: str = "",
    where: Match = lambda _seen: True,
    is_dry_run: bool | None = False,
) -> Match:
    """Match by verb, resource and namespace (left out: any), and by anything else; dry runs only where asked for."""
    verbs = {verb} if isinstance(verb, str) else set(verb)

    def matches(request: Seen) -> bool:
        return (
            (verbs == {""} or request.verb in verbs)
            and resource in {"", request.resource}
            and namespace in {"", request.namespace}
            and is_dry_run in {None, request.is_dry_run}
            and where(request)
        )

    return matches


def numbered(number: int) -> Match:
    """Match the write with this number."""
    return lambda request: request.number == number
