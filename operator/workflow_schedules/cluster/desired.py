"""What people want, as this process knows it: schedules and definitions, by UID and by name, and who belongs to whom.

Fed by two watches and by the answers to our own requests, which overtake each other: only newer objects replace what is here,
an answer never brings back what was deleted meanwhile, and a takeover replaces everything (P9). Nothing that machines write may
live here, no requests and no decisions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workflow_schedules.cluster import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from workflow_schedules.cluster.places import Places
    from workflow_schedules.core.model import Definition, ObjectRef, Schedule


class Desired:
    """See the module.

    Attributes:
        switched_off: definitions whose switch was seen to go from true to false.
    """

    def __init__(self, places: Places, *, on_edit: Callable[[Schedule], None]) -> None:
        """Take the places whose limits definitions set, and who is told what an edit replaced."""
        self.schedules: dict[str, Schedule] = {}
        self.definitions: dict[ObjectRef, Definition] = {}
        self.switched_off: set[str] = set()
        self._places = places
        self._on_edit = on_edit
        self._named: dict[ObjectRef, str] = {}
        self._children: dict[ObjectRef, set[str]] = {}
        self._floors = {"schedules": 0, "definitions": 0}

    def put_schedule(self, body: Mapping[str, Any]) -> str | None:
        """Take in a schedule; return its UID when something changed that a decision may depend on."""
        uid, version = str(body["metadata"]["uid"]), wire.version_of(body)
        known = self.schedules.get(uid)
        if version <= self._floors["schedules"] if known is None else version <= int(known.resource_version or 0):
            return None
        return self._take_in(known, wire.schedule_of(body))

    def _take_in(self, known: Schedule | None, schedule: Schedule) -> str | None:
        uid = schedule.uid
        if known is not None:
            self._unlink(known)
            if known.spec_hash != schedule.spec_hash:
                self._on_edit(known)
        self.schedules[uid] = schedule
        self._named[schedule.ref] = uid
        if (parent := _parent(schedule)) is not None:
            self._children.setdefault(parent, set()).add(uid)
        is_news = known is None or _heeded(known) != _heeded(schedule)
        return uid if is_news else None

    def refresh_schedule(self, body: Mapping[str, Any]) -> None:
        """Take in the answer to a request of ours about a schedule, unless it was deleted meanwhile."""
        if body["metadata"]["uid"] in self.schedules:
            self.put_schedule(body)

    def remove_schedule(self, uid: str) -> str | None:
        """Forget a deleted schedule; its unfinished runs stay known under its UID (R20)."""
        known = self.schedules.pop(uid, None)
        if known is None:
            return None
        self._unlink(known)
        if self._named.get(known.ref) == uid:
            del self._named[known.ref]
        return uid

    def put_definition(self, body: Mapping[str, Any]) -> set[str]:
        """Take in a definition; return the UIDs of the schedules it matters to."""
        ref, version = wire.ref_of(body), wire.version_of(body)
        known = self.definitions.get(ref)
        if version <= self._floors["definitions"] if known is None else version <= int(known.resource_version or 0):
            return set()
        return self._take_in_definition(known, wire.definition_of(body))

    def _take_in_definition(self, known: Definition | None, definition: Definition) -> set[str]:
        self.definitions[definition.ref] = definition
        if known is not None and known.uid != definition.uid:
            self._lose_definition(known)
        self._places.set_limit(definition.uid, definition.max_active_runs)
        if _is_switched_off(known, definition):
            self.switched_off.add(definition.uid)
        elif definition.is_enabled:
            self.switched_off.discard(definition.uid)
        is_news = known is None or (known.uid, known.generation) != (definition.uid, definition.generation)
        return self.children_of(definition.ref) if is_news else set()

    def refresh_definition(self, body: Mapping[str, Any]) -> None:
        """Take in the answer to a request of ours about a definition, unless it was deleted meanwhile."""
        known = self.definitions.get(wire.ref_of(body))
        if known is not None and known.uid == body["metadata"]["uid"]:
            self.put_definition(body)

    def remove_definition(self, ref: ObjectRef, uid: str) -> set[str]:
        """Forget a deleted definition; return the UIDs of the schedules that it held together."""
        known = self.definitions.get(ref)
        if known is None or known.uid != uid:
            return set()
        del self.definitions[ref]
        self._lose_definition(known)
        return self.children_of(ref)

    def _lose_definition(self, known: Definition) -> None:
        self._places.set_limit(known.uid, None)
        self.switched_off.discard(known.uid)

    def children_of(self, definition: ObjectRef) -> set[str]:
        """Return the UIDs of the schedules that name a definition."""
        return set(self._children.get(definition, ()))

    def parent_of(self, schedule: Schedule) -> Definition | None:
        """Return the definition that a schedule names, if there is one."""
        parent = _parent(schedule)
        return self.definitions.get(parent) if parent else None

    def replace_all(
        self,
        schedules: tuple[Iterable[Schedule], str],
        definitions: tuple[Iterable[Definition], str],
    ) -> None:
        """Drop everything for a consistent re-read (P9); never merged.

        Args:
            schedules: all there are, already read since that takes long, and the resourceVersion at which that is so.
            definitions: the same of definitions.
        """
        self.schedules.clear()
        self._named.clear()
        self.definitions.clear()
        self._children.clear()
        self.switched_off.clear()
        self._floors = {"schedules": 0, "definitions": 0}
        for definition in definitions[0]:
            self._take_in_definition(self.definitions.get(definition.ref), definition)
        for schedule in schedules[0]:
            self._take_in(self.schedules.get(schedule.uid), schedule)
        # events older than the re-read may still come in: what it didn't list is gone
        self._floors = {"schedules": wire.number_of(schedules[1]), "definitions": wire.number_of(definitions[1])}

    def drop_vanished(
        self, schedules: tuple[Iterable[Mapping[str, Any]], str], definitions: tuple[Iterable[Mapping[str, Any]], str]
    ) -> set[str]:
        """Forget what a later list does not have; return the UIDs of the schedules that it matters to.

        Args:
            schedules: all there are, and the resourceVersion at which that is so.
            definitions: the same of definitions.
        """
        there = {body["metadata"]["uid"] for body in (*schedules[0], *definitions[0])}
        woken: set[str] = set()
        for uid, schedule in list(self.schedules.items()):
            if uid not in there and int(schedule.resource_version or 0) <= wire.number_of(schedules[1]):
                self.remove_schedule(uid)
                woken.add(uid)
        for ref, definition in list(self.definitions.items()):
            if definition.uid not in there and int(definition.resource_version or 0) <= wire.number_of(definitions[1]):
                woken |= self.remove_definition(ref, definition.uid)
        return woken

    def uid_named(self, ref: ObjectRef) -> str | None:
        """Return the UID of the schedule that has a name now."""
        return self._named.get(ref)

    def uids_in(self, namespace: str) -> list[str]:
        """Return the UIDs of the schedules of a namespace."""
        return [uid for ref, uid in self._named.items() if ref.namespace == namespace]

    def _unlink(self, schedule: Schedule) -> None:
        if (parent := _parent(schedule)) is None or (children := self._children.get(parent)) is None:
            return
        children.discard(schedule.uid)
        if not children:
            del self._children[parent]


def _parent(schedule: Schedule) -> ObjectRef | None:
    if schedule.spec is None or schedule.spec.workflow_ref is None:
        return None
    return replace(schedule.ref, name=schedule.spec.workflow_ref.name)


def _is_switched_off(before: Definition | None, now: Definition) -> bool:
    """Tell whether the switch went from true to false; a spec that can't be read says nothing of it."""
    if before is None or before.uid != now.uid or now.problem is not None:
        return False
    return before.is_enabled and not now.is_enabled


def _heeded(schedule: Schedule) -> tuple[object, ...]:
    """Return what of a schedule is worth a look; its annotations change no generation, and a status by others is mended."""
    writer = schedule.status.writer if schedule.status else None
    return schedule.generation, schedule.is_deleting, schedule.unblock, writer
