"""One request of the fake API server from its path to its answer, at one instant: no waiting, no faults."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from support.api_kinds import KIND_OF, Json, Kind, RefusedError, Target, field_matcher, label_matcher, target_of
from support.api_store import Key, Store, Stored, merge_patch, selected

USER = "user"
_MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    client: str
    method: str
    path: str
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes | None = None
    content_type: str | None = None

    @property
    def json(self) -> Json:
        """The parsed body, for tests that choose what to disturb; empty if there is none."""
        return dict(orjson.loads(self.body or b"{}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What an admission hook judges; it refuses by giving a ``RefusedError``."""

    operation: str
    client: str
    kind: Kind
    subresource: str
    namespace: str
    name: str
    new: Json
    old: Json
    is_dry_run: bool


AdmissionHook = Callable[[Admission], RefusedError | None]


class Requests:
    """Answers requests from the store."""

    def __init__(self, store: Store, *, auto_namespaces: bool) -> None:
        self._store = store
        self._auto_namespaces = auto_namespaces
        self.admission: list[AdmissionHook] = []
        self.terminating: set[str] = set()
        self._pages: dict[str, list[bytes]] = {}

    def forget_pages(self) -> None:
        """Let all continue tokens expire."""
        self._pages.clear()

    def answer(self, request: ApiRequest) -> tuple[int, bytes]:
        """Carry out one request; give status code and body.

        Raises:
            RefusedError: anything but success.
        """
        target = target_of(request.path)
        match request.method, bool(target.name):
            case "GET", True:
                return 200, self._store.get(target.kind, _key(target)).data
            case "GET", False:
                return 200, self._list(target, request.query)
            case "POST", False:
                return 201, self._create(request, target)
            case "PUT", True:
                return self._put(request, target)
            case "PATCH", True:
                return 200, self._patch(request, target)
            case "DELETE", True:
                return 200, self._delete(request, target)
        raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _list(self, target: Target, query: Mapping[str, str]) -> bytes:
        kind = target.kind
        token = query.get("continue", "")
        if token:
            if token not in self._pages:
                raise RefusedError(410, "Expired", "The provided continue parameter is too old")
            items, version = self._pages.pop(token), token.split(".")[0]
        else:
            matchers = (
                label_matcher(query.get("labelSelector", "")),
                field_matcher(kind, query.get("fieldSelector", "")),
            )
            found = selected(self._store.of(kind), target.namespace, matchers)
            items, version = [_item(kind, stored) for _, stored in found], str(self._store.version)
        limit = int(query.get("limit", "0")) or len(items)
        metadata: Json = {"resourceVersion": version}
        if len(items) > limit:
            rest = items[limit:]
            metadata |= {"continue": f"{version}.{id(rest)}", "remainingItemCount": len(rest)}
            self._pages[metadata["continue"]] = rest
        head = orjson.dumps({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata})
        return head[:-1] + b',"items":[' + b",".join(items[:limit]) + b"]}"

    def _create(self, request: ApiRequest, target: Target) -> bytes:
        body = self._parsed(request, target)
        metadata = body.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata.pop('generateName')}{self._store.version:05x}"
        target = dataclasses.replace(target, name=str(metadata.get("name") or ""))
        return self._created(request, target, body)

    def _created(self, request: ApiRequest, target: Target, body: Json) -> bytes:
        self._require_namespace(target)
        kind, key = target.kind, _key(target)
        # Admission comes before the name is looked up, so a fence refuses even a create that would collide.
        new = self._store.prepared_create(kind, key, body)
        self._admit("CREATE", request, target, new, {})
        if _is_dry_run(request):
            if key in self._store.of(kind):
                self._store.commit_create(kind, key, new)
            return orjson.dumps(new)
        return self._store.commit_create(kind, key, new).data

    def _put(self, request: ApiRequest, target: Target) -> tuple[int, bytes]:
        kind, key = target.kind, _key(target)
        body = self._parsed(request, target)
        old = self._store.of(kind).get(key)
        if old is None and kind.creates_on_update:
            # Measured: a PUT of a deleted Lease makes it anew in spite of its resourceVersion, unless it has a UID.
            if body.get("metadata", {}).get("uid"):
                raise RefusedError(409, "Conflict", "Precondition failed: UID in precondition, UID in object meta: ")
            body["metadata"].pop("resourceVersion", None)
            return 201, self._created(request, target, body)
        return 200, self._update(request, target, self._store.get(kind, key), body)

    def _patch(self, request: ApiRequest, target: Target) -> bytes:
        if request.content_type != _MERGE_PATCH:
            raise RefusedError(415, "UnsupportedMediaType", "the fake server knows merge patches only")
        old = self._store.get(target.kind, _key(target))
        patch = orjson.loads(request.body or b"{}")
        return self._update(request, target, old, merge_patch(old.body, patch))

    def _update(self, request: ApiRequest, target: Target, old: Stored, body: Json) -> bytes:
        kind, key = target.kind, _key(target)
        new = self._store.prepared_update(kind, key, old, body, is_status=target.subresource == "status")
        self._admit("UPDATE", request, target, new, old.body)
        if _is_dry_run(request):
            return orjson.dumps(new)
        return self._store.commit_update(kind, key, new).data

    def _delete(self, request: ApiRequest, target: Target) -> bytes:
        kind, key = target.kind, _key(target)
        options = orjson.loads(request.body or b"{}")
        old = self._store.get(kind, key)
        for field, wanted in (options.get("preconditions") or {}).items():
            if wanted != old.body["metadata"].get(field):
                raise RefusedError(409, "Conflict", f"the {field} in the precondition ({wanted}) does not match")
        self._admit("DELETE", request, target, {}, old.body)
        policy = options.get("propagationPolicy") or request.query.get("propagationPolicy")
        finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(policy or "")
        left = None if _is_dry_run(request) else self._store.commit_delete(kind, key, finalizer=finalizer)
        if left is not None:
            return left.data
        details = {"name": target.name, "kind": kind.plural, "uid": old.body["metadata"]["uid"]}
        return orjson.dumps({"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details})

    def _admit(self, operation: str, request: ApiRequest, target: Target, new: Json, old: Json) -> None:
        admission = Admission(
            operation=operation,
            client=request.client,
            kind=target.kind,
            subresource=target.subresource,
            namespace=target.namespace,
            name=target.name,
            new=new,
            old=old,
            is_dry_run=_is_dry_run(request),
        )
        for hook in self.admission:
            refusal = hook(admission)
            if refusal is not None:
                raise refusal

    def _require_namespace(self, target: Target) -> None:
        name = target.namespace
        if not target.kind.is_namespaced:
            return
        if not self._auto_namespaces and ("", name) not in self._store.of(KIND_OF["namespaces"]):
            raise RefusedError(404, "NotFound", f'namespaces "{name}" not found', name=name)
        if name in self.terminating:
            message = f"unable to create new content in namespace {name} because it is being terminated"
            raise RefusedError(
                403,
                "Forbidden",
                f'{target.kind.qualified} "{target.name}" is forbidden: {message}',
                causes=({"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"},),
            )

    def _parsed(self, request: ApiRequest, target: Target) -> Json:
        try:
            body = orjson.loads(request.body or b"")
        except orjson.JSONDecodeError as error:
            raise RefusedError(400, "BadRequest", f"error decoding: {error}") from None
        named = (body.get("apiVersion", target.kind.api_version), body.get("kind", target.kind.kind))
        if named != (target.kind.api_version, target.kind.kind):
            raise RefusedError(400, "BadRequest", "the object provided is of another kind")
        metadata = body.get("metadata") or {}
        if metadata.get("namespace", target.namespace) != target.namespace:
            raise RefusedError(
                400,
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the request",
            )
        if target.name and metadata.get("name", target.name) != target.name:
            raise RefusedError(400, "BadRequest", "the name of the object does not match the name on the URL")
        return dict(body)


def _key(target: Target) -> Key:
    return target.namespace, target.name


def _is_dry_run(request: ApiRequest) -> bool:
    return request.query.get("dryRun") == "All"


def _item(kind: Kind, stored: Stored) -> bytes:
    """Give an item of a list: those of built-in kinds say neither their kind nor their version."""
    if kind.is_custom:
        return stored.data
    return orjson.dumps({key: value for key, value in stored.body.items() if key not in ("apiVersion", "kind")})
