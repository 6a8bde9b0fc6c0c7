"""What the operator may ask of the API server: this table is its RBAC rules, and the client sends nothing else.

Names and paths only: no requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from workflow_schedules.api.names import GROUP, PLURAL_DEFINITION, PLURAL_OCCURRENCE, PLURAL_SCHEDULE, VERSION

Verb: TypeAlias = Literal["create", "get", "list", "watch", "update", "patch", "delete"]

HTTP_METHODS: Final[Mapping[Verb, str]] = {
    "create": "POST",
    "get": "GET",
    "list": "GET",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object as the server's paths and roles name it."""

    group: str
    version: str
    plural: str
    subresource: str = ""

    @property
    def status(self) -> Resource:
        """The status subresource."""
        return replace(self, subresource="status")

    @property
    def role_name(self) -> str:
        """The spelling of RBAC rules."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Give the URL path of one object, or of all in a namespace, or of all."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        if self.subresource:
            parts.append(self.subresource)
        return "/".join(parts)


DEFINITIONS: Final = Resource(GROUP, VERSION, PLURAL_DEFINITION)
SCHEDULES: Final = Resource(GROUP, VERSION, PLURAL_SCHEDULE)
OCCURRENCES: Final = Resource(GROUP, VERSION, PLURAL_OCCURRENCE)
JOBS: Final = Resource("batch", "v1", "jobs")
PODS: Final = Resource("", "v1", "pods")
CONTROLLER_REVISIONS: Final = Resource("apps", "v1", "controllerrevisions")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases")
EVENTS: Final = Resource("events.k8s.io", "v1", "events")

_VERBS: Final[Mapping[Resource, tuple[Verb, ...]]] = {
    DEFINITIONS: ("get", "list", "watch"),
    DEFINITIONS.status: ("patch",),
    SCHEDULES: ("get", "list", "watch", "patch"),
    SCHEDULES.status: ("patch",),
    OCCURRENCES: ("create", "get", "list", "watch", "patch", "delete"),
    OCCURRENCES.status: ("patch",),
    JOBS: ("create", "get", "list", "watch", "delete"),
    PODS: ("list",),
    CONTROLLER_REVISIONS: ("create", "get"),
    LEASES: ("create", "get", "watch", "update"),
    EVENTS: ("create",),
}


@dataclass(frozen=True, slots=True)
class Method:
    """One right that the operator needs."""

    group: str
    resource: str
    verb: Verb


METHODS: Final = tuple(
    Method(resource.group, resource.role_name, verb) for resource, verbs in _VERBS.items() for verb in verbs
)


def require(verb: Verb, resource: Resource) -> None:
    """Refuse a request that the operator has no right to.

    Raises:
        NotImplementedError: the table lacks it.
    """
    if verb not in _VERBS.get(resource, ()):
        message = f"{verb} {resource.role_name} is not in METHODS"
        raise NotImplementedError(message)
