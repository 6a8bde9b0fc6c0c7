"""What etcd and the registry of the API server do, in memory and without time: objects, versions, history, deletion."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import orjson

from support.api_kinds import Json, Kind, Matcher, RefusedError

Key = tuple[str, str]
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp", "selfLink")


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of one object; ``body`` must not be changed."""

    body: Json
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Change:
    """A commit: ``before`` is None for a create, ``after`` for a deletion, whose last state is ``last``."""

    version: int
    key: Key
    before: Stored | None
    after: Stored | None
    last: bytes


class Store:
    """All objects of all kinds under one increasing version."""

    def __init__(self, now: Callable[[], datetime], *, seed: int = 0) -> None:
        self._now = now
        self._seed = seed
        self._created = 0
        self.version = 1
        self.compacted = 0
        self.objects: dict[Kind, dict[Key, Stored]] = {}
        self.history: dict[Kind, list[Change]] = {}
        self.observers: list[Callable[[Kind, Change], None]] = []

    def of(self, kind: Kind) -> dict[Key, Stored]:
        return self.objects.setdefault(kind, {})

    def get(self, kind: Kind, key: Key) -> Stored:
        stored = self.of(kind).get(key)
        if stored is None:
            raise RefusedError(404, "NotFound", f'{kind.qualified} "{key[1]}" not found', name=key[1])
        return stored

    def changes_after(self, kind: Kind, version: int) -> list[Change]:
        history = self.history.get(kind, [])
        return history[bisect.bisect_right(history, version, key=lambda change: change.version) :]

    def compact(self) -> None:
        """Forget all history, as etcd does every five minutes."""
        self.compacted = self.version
        self.history.clear()

    # what a request would make of an object, before admission

    def prepared_create(self, kind: Kind, key: Key, body: Json) -> Json:
        if len(key[1]) > 253 or not _NAME.fullmatch(key[1]):
            raise RefusedError(422, "Invalid", f'{kind.kind} "{key[1]}" is invalid: metadata.name: Invalid value')
        if body["metadata"].get("resourceVersion"):
            raise RefusedError(500, "", "resourceVersion should not be set on objects to be created")
        metadata = {k: v for k, v in body["metadata"].items() if k not in _SERVER_OWNED}
        self._created += 1
        metadata |= {
            "name": key[1],
            "uid": f"{self._created:08x}-0000-4000-8000-{self._seed:012x}",
            "creationTimestamp": api_time(self._now()),
        }
        if kind.is_namespaced:
            metadata["namespace"] = key[0]
        if kind.has_generation:
            metadata["generation"] = 1
        new = {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        if kind.has_status:
            new.pop("status", None)
            if not kind.is_custom:
                new["status"] = {}
        return new

    def prepared_update(self, kind: Kind, key: Key, old: Stored, new: Json, *, is_status: bool) -> Json:
        """Keep what this kind of request may not change, and check the preconditions that its metadata states."""
        metadata, was = new.get("metadata") or {}, old.body["metadata"]
        version = str(metadata.get("resourceVersion") or "")
        if not version and kind.needs_version_on_update:
            raise RefusedError(
                422,
                "Invalid",
                f'{kind.qualified} "{key[1]}" is invalid: metadata.resourceVersion: must be specified for an update',
            )
        if version and version != was["resourceVersion"]:
            raise _conflict(kind, key, "the object has been modified")
        if is_status:
            kept = {**old.body}
            kept.pop("status", None)
            return {**kept, "status": new["status"]} if "status" in new else kept
        if metadata.get("uid") not in (None, "", was["uid"]):
            raise _conflict(kind, key, f"Precondition failed: UID in precondition: {metadata['uid']}")
        result = {**new, "apiVersion": kind.api_version, "kind": kind.kind}
        result["metadata"] = {k: v for k, v in metadata.items() if k not in _SERVER_OWNED}
        result["metadata"] |= {k: was[k] for k in ("name", "namespace", *_SERVER_OWNED) if k in was}
        if kind.has_status:
            result.pop("status", None)
            if "status" in old.body:
                result["status"] = old.body["status"]
        if kind.has_generation and _without(result, "metadata", "status") != _without(old.body, "metadata", "status"):
            result["metadata"]["generation"] = was["generation"] + 1
        return result

    # commits

    def commit_create(self, kind: Kind, key: Key, body: Json) -> Stored:
        if key in self.of(kind):
            raise RefusedError(409, "AlreadyExists", f'{kind.qualified} "{key[1]}" already exists')
        stored = self._next(body)
        self.of(kind)[key] = stored
        self._note(kind, Change(self.version, key, None, stored, stored.data))
        return stored

    def commit_update(self, kind: Kind, key: Key, body: Json) -> Stored:
        """Store the new state; nothing happens if it is the old one."""
        old = self.get(kind, key)
        metadata = body["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            return self._remove(kind, key, old, body)
        if body == old.body:
            return old
        stored = self._next(body)
        self.of(kind)[key] = stored
        self._note(kind, Change(self.version, key, old, stored, stored.data))
        return stored

    def commit_delete(self, kind: Kind, key: Key, *, finalizer: str | None = None) -> Stored | None:
        """Delete; or mark as being deleted while finalizers remain, and then give that state."""
        old = self.get(kind, key)
        was = old.body["metadata"]
        finalizers = list(was.get("finalizers") or [])
        if finalizer and finalizer not in finalizers and "deletionTimestamp" not in was:
            finalizers.append(finalizer)
        if not finalizers:
            self._remove(kind, key, old, old.body)
            return None
        if "deletionTimestamp" in was:
            return old
        metadata = {**was, "finalizers": finalizers, "deletionGracePeriodSeconds": 0}
        metadata["deletionTimestamp"] = api_time(self._now())
        if kind.has_generation:
            metadata["generation"] += 1
        return self.commit_update(kind, key, {**old.body, "metadata": metadata})

    def _remove(self, kind: Kind, key: Key, old: Stored, body: Json) -> Stored:
        del self.of(kind)[key]
        last = self._next(body)
        self._note(kind, Change(self.version, key, old, None, last.data))
        return last

    def _next(self, body: Json) -> Stored:
        self.version += 1
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return Stored(body, orjson.dumps(body), self.version)

    def _note(self, kind: Kind, change: Change) -> None:
        self.history.setdefault(kind, []).append(change)
        for observer in self.observers:
            observer(kind, change)

    # garbage collection

    def run_gc(self) -> int:
        """Do what the garbage collector would in the end; give the number of objects it deleted."""
        deleted = 0
        while (step := sum(self._gc_step(kind) for kind in list(self.objects))) > 0:
            deleted += step
        return deleted

    def _gc_step(self, kind: Kind) -> int:
        alive = {
            stored.body["metadata"]["uid"]: stored for objects in self.objects.values() for stored in objects.values()
        }
        deleted = 0
        for key, stored in list(self.of(kind).items()):
            metadata = stored.body["metadata"]
            owners = [ref["uid"] for ref in metadata.get("ownerReferences") or ()]
            if owners and all(uid not in alive or _waits_for_dependents(alive[uid]) for uid in owners):
                if "deletionTimestamp" not in metadata:
                    self.commit_delete(kind, key)
                    deleted += 1
            elif _waits_for_dependents(stored) and not self._dependents(metadata["uid"]):
                self._drop_finalizer(kind, key, "foregroundDeletion")
                deleted += 1
            elif "orphan" in (metadata.get("finalizers") or ()) and "deletionTimestamp" in metadata:
                self._orphan(metadata["uid"])
                self._drop_finalizer(kind, key, "orphan")
                deleted += 1
        return deleted

    def _dependents(self, uid: str) -> list[tuple[Kind, Key, Stored]]:
        return [
            (kind, key, stored)
            for kind, objects in self.objects.items()
            for key, stored in objects.items()
            if any(ref["uid"] == uid for ref in stored.body["metadata"].get("ownerReferences") or ())
        ]

    def _orphan(self, uid: str) -> None:
        for kind, key, stored in self._dependents(uid):
            metadata = {**stored.body["metadata"]}
            metadata["ownerReferences"] = [ref for ref in metadata["ownerReferences"] if ref["uid"] != uid]
            self.commit_update(kind, key, {**stored.body, "metadata": metadata})

    def _drop_finalizer(self, kind: Kind, key: Key, finalizer: str) -> None:
        body = self.get(kind, key).body
        rest = [each for each in body["metadata"]["finalizers"] if each != finalizer]
        self.commit_update(kind, key, {**body, "metadata": {**body["metadata"], "finalizers": rest}})


def selected(
    objects: dict[Key, Stored], namespace: str, matchers: Iterable[Matcher | None]
) -> list[tuple[Key, Stored]]:
    """Filter and sort as a list does."""
    wanted = [matcher for matcher in matchers if matcher]
    return sorted(
        (
            (key, stored)
            for key, stored in objects.items()
            if (not namespace or key[0] == namespace) and all(matcher(stored.body) for matcher in wanted)
        ),
        key=lambda item: item[0],
    )


def merge_patch(target: object, patch: Json) -> Json:
    """Apply RFC 7396 without changing ``target``."""
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value) if isinstance(value, dict) else value
    return result


def api_time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _without(body: Json, *keys: str) -> Json:
    return {key: value for key, value in body.items() if key not in keys}


def _waits_for_dependents(stored: Stored) -> bool:
    return "foregroundDeletion" in (stored.body["metadata"].get("finalizers") or ())


def _conflict(kind: Kind, key: Key, why: str) -> RefusedError:
    return RefusedError(409, "Conflict", f'Operation cannot be fulfilled on {kind.qualified} "{key[1]}": {why}')
