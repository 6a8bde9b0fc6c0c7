"""The kinds that the fake API server knows, its paths, its refusals, and its selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from workflow_schedules.api.names import GROUP, PLURAL_DEFINITION, PLURAL_OCCURRENCE, PLURAL_SCHEDULE, VERSION

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    group: str
    version: str
    plural: str
    kind: str
    is_custom: bool = False
    is_namespaced: bool = True
    has_status: bool = False
    has_generation: bool = False
    needs_version_on_update: bool = False
    creates_on_update: bool = False
    selectable: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _custom(plural: str, kind: str, *selectable: str) -> Kind:
    return Kind(
        group=GROUP,
        version=VERSION,
        plural=plural,
        kind=kind,
        is_custom=True,
        has_status=True,
        has_generation=True,
        needs_version_on_update=True,
        selectable=selectable,
    )


KINDS = (
    _custom(PLURAL_DEFINITION, "WorkflowDefinition"),
    _custom(PLURAL_SCHEDULE, "WorkflowSchedule"),
    _custom(
        PLURAL_OCCURRENCE,
        "ScheduleOccurrence",
        "spec.scheduleRef.name",
        "spec.cause",
        "spec.decision",
        "status.outcome",
    ),
    Kind(group="batch", version="v1", plural="jobs", kind="Job", has_status=True, has_generation=True),
    Kind(group="apps", version="v1", plural="controllerrevisions", kind="ControllerRevision"),
    Kind(
        group="coordination.k8s.io",
        version="v1",
        plural="leases",
        kind="Lease",
        needs_version_on_update=True,
        creates_on_update=True,
    ),
    Kind(group="events.k8s.io", version="v1", plural="events", kind="Event"),
    Kind(group="", version="v1", plural="pods", kind="Pod", has_status=True),
    Kind(group="", version="v1", plural="configmaps", kind="ConfigMap"),
    Kind(group="", version="v1", plural="namespaces", kind="Namespace", is_namespaced=False, has_status=True),
)
_BY_PATH = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
KIND_OF = {kind.plural: kind for kind in KINDS}


class RefusedError(Exception):
    """An answer of the server other than success."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        causes: tuple[Mapping[str, str], ...] = (),
        retry_after: int = 0,
        name: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = {"retry-after": str(retry_after)} if retry_after else {}
        self.status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": {"name": name, "causes": [dict(cause) for cause in causes]} if name or causes else {},
            "code": code,
        }

    @property
    def body(self) -> bytes:
        return orjson.dumps(self.status)


@dataclass(frozen=True, slots=True)
class Target:
    """What a path means."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def target_of(path: str) -> Target:
    parts = path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and (group, version, rest[2]) in _BY_PATH:
        namespace, rest = rest[1], rest[2:]
    kind = _BY_PATH.get((group, version, rest[0]))
    if kind is None or (rest[2:] and not (kind.has_status and rest[2] == "status")):
        raise RefusedError(404, "NotFound", "the server could not find the requested resource")
    return Target(kind, namespace, *[*rest[1:], "", ""][:2])


Matcher = Callable[[Json], bool]
_LABEL_TERM = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<no>[\w./-]+)|(?P<key>[\w./-]+)\s*"
    r"(?:(?P<op>==|=|!=)\s*(?P<value>[\w.-]*)|(?P<set>in|notin)\s*\((?P<values>[^)]*)\))?)\s*(?:,|$)"
)
_FIELD_TERM = re.compile(r"(?P<path>[\w.]+)(?P<op>==|=|!=)(?P<value>[^,=!]*)(?:,|$)")


def label_matcher(selector: str) -> Matcher | None:
    """Compile a label selector; None matches all."""
    terms = [_label_term(match) for match in _terms(_LABEL_TERM, selector)]
    if not terms:
        return None
    return lambda body: all(term(body["metadata"].get("labels") or {}) for term in terms)


def _label_term(match: re.Match[str]) -> Matcher:
    key, value = match["key"], match["value"]
    if match["absent"]:
        absent = match["no"]
        return lambda labels: absent not in labels
    if match["set"]:
        values = {part.strip() for part in match["values"].split(",")}
        if match["set"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match["op"] == "!=":
        return lambda labels: labels.get(key) != value
    if match["op"]:
        return lambda labels: labels.get(key) == value
    return lambda labels: key in labels


def field_matcher(kind: Kind, selector: str) -> Matcher | None:
    """Compile a field selector; None matches all. What an object lacks counts as empty."""
    terms = []
    for match in _terms(_FIELD_TERM, selector):
        path, value, wanted = match["path"], match["value"], match["op"] != "!="
        if path not in ("metadata.name", "metadata.namespace", *kind.selectable):
            raise RefusedError(400, "BadRequest", f"field label not supported: {path}")
        terms.append((path.split("."), value, wanted))
    if not terms:
        return None
    return lambda body: all((_field(body, path) == value) is wanted for path, value, wanted in terms)


def _field(body: object, path: list[str]) -> str:
    for part in path:
        body = body.get(part) if isinstance(body, dict) else None
    return "" if body is None else str(body)


def _terms(pattern: re.Pattern[str], selector: str) -> list[re.Match[str]]:
    matches, position = [], 0
    while position < len(selector):
        match = pattern.match(selector, position)
        if match is None:
            raise RefusedError(400, "BadRequest", f"unable to parse requirement: {selector}")
        matches.append(match)
        position = match.end()
    return matches
