"""Records that somebody with every right wrote, past all policies: their schedules must be Blocked, and go on in nothing (R31).

Who judges logs leaves these out: nothing that such a record says is a promise of the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from support.api_kinds import Json, Kind
from support.api_store import Change
from support.auditor import Auditor
from support.edit_auditor import EditAuditor
from support.harness import NAMESPACE
from workflow_schedules.api import names

if TYPE_CHECKING:
    from simulation.world import SimulatedWorld

_KIND, _RECORDS = "workflowschedules", "scheduleoccurrences"


@dataclass(frozen=True, slots=True)
class _Victim:
    uid: str
    record: str
    runs: frozenset[str]  # Jobs and admissions of before


class Tampering:
    """What was tampered with in a world."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._victims: dict[str, _Victim] = {}

    def strip(self, name: str, number: int | None, fields: list[str]) -> None:
        """Take fields away from a record, by default from the newest."""
        log = self._log(name)
        found = [each for each in log if number in {None, each["spec"]["sequence"]}]
        if found:
            body = found[-1]
            self._write(name, {**body, "spec": _without(body["spec"], fields)}, self._world.server.replace)

    def forge(self, name: str, without: list[str], spec: Json) -> None:
        """Take the log's next name with a record that looks much like the newest one."""
        log = self._log(name)
        if log:
            last, number = log[-1], log[-1]["spec"]["sequence"] + 1
            uid = self._world.schedule(name)["metadata"]["uid"]
            metadata = {"name": names.record_name(name, uid, number), "namespace": NAMESPACE}
            metadata["labels"] = last["metadata"]["labels"]
            fields = {**last["spec"], "sequence": number, "previousUID": last["metadata"]["uid"], **spec}
            forged = {"apiVersion": last["apiVersion"], "kind": last["kind"], "metadata": metadata}
            self._write(name, {**forged, "spec": _without(fields, without)}, self._world.server.create)

    def leaves_out(self, text: str) -> bool:
        """Tell whether a name, or what is said of one, is about a schedule that was tampered with."""
        return any(name in text for name in self._victims)

    def problems(self) -> list[str]:
        """Return who is not Blocked, doesn't say why, or ran anything since."""
        found = []
        for name, victim in self._victims.items():
            status = self._world.schedule(name).get("status") or {}
            if status.get("state") != "Blocked":
                found.append(f"R31: {name} is {status.get('state')} though {victim.record} was tampered with")
            elif not any(
                victim.record in each["message"] for each in status["conditions"] if each["type"] == "Stalled"
            ):
                found.append(f"R31: {name} is Blocked without a word about {victim.record}")
            if more := self._runs(name, victim.uid) - victim.runs - {victim.record}:
                found.append(f"R31: {name} ran {', '.join(sorted(more))} though {victim.record} was tampered with")
        return found

    def _log(self, name: str) -> list[Json]:
        if self._world.server.find(_KIND, NAMESPACE, name) is None:
            return []
        uid = self._world.schedule(name)["metadata"]["uid"]
        prefix = names.record_prefix(name, uid)
        return [each for each in self._world.records(name) if each["metadata"]["name"].startswith(prefix)]

    def _runs(self, name: str, uid: str) -> frozenset[str]:
        prefix = names.record_prefix(name, uid)
        jobs = [each for each in self._world.job_names() if each.startswith(prefix)]
        admitted = [each for each in self._log(name) if each["spec"].get("decision") == "Admitted"]
        return frozenset([*jobs, *(each["metadata"]["name"] for each in admitted)])

    def _write(self, name: str, body: Json, write: Callable[[Json], object]) -> None:
        uid = self._world.schedule(name)["metadata"]["uid"]
        if not self._victims:
            store = self._world.server.store
            store.observers[:] = map(self._blindfolded, store.observers)
        self._victims[name] = _Victim(uid, body["metadata"]["name"], self._runs(name, uid))
        lift = self._world.suspend_rules()
        write(body)
        lift()

    def _blindfolded(self, observer: Callable[[Kind, Change], None]) -> Callable[[Kind, Change], None]:
        """Return an observer that sees nothing of what was tampered with, if it is one that judges."""
        is_judge = isinstance(getattr(observer, "__self__", None), (Auditor, EditAuditor))
        return partial(self._pass_on, observer) if is_judge else observer

    def _pass_on(self, observer: Callable[[Kind, Change], None], kind: Kind, change: Change) -> None:
        stored = change.after or change.before
        uids = {victim.uid for victim in self._victims.values()}
        if stored is None or uids.isdisjoint(_uids_in(stored.body)):
            observer(kind, change)


def _uids_in(body: Json) -> set[str]:
    labels = body["metadata"].get("labels") or {}
    return {body["metadata"]["uid"], labels.get(names.LABEL_SCHEDULE_UID, "")}


def _without(spec: Json, fields: list[str]) -> Json:
    return {key: value for key, value in spec.items() if key not in fields}
