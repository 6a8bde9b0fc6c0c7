"""Judges every DELETE of an operator as it arrives: nothing goes that had to stay (R26, R30; P1, P7)."""

from __future__ import annotations

from datetime import datetime, timedelta

from support.api_hooks import JOB_CONTROLLER
from support.api_kinds import KIND_OF, Json, Kind, RefusedError
from support.api_requests import USER, Admission
from support.api_server import Clock, FakeApiServer
from support.api_store import Change
from support.auditor import FINAL
from workflow_schedules.api.common import parse_utc

SETTLE = timedelta(seconds=90 - 3)
ON_ITS_WAY = timedelta(seconds=30)  # R, the longest life of a request
KEPT = timedelta(seconds=180 - 3)  # whole seconds in objects, and an operator's clock may be 2 s ahead


class RetentionAuditor:
    """An admission hook that refuses nothing and notes what is wrong.

    Attributes:
        kept: K, and a little less.
    """

    def __init__(self, server: FakeApiServer, clock: Clock, violations: list[str]) -> None:
        self.kept = KEPT
        self._server = server
        self._clock = clock
        self._violations = violations
        self._gone: set[str] = set()  # UIDs of records that are no more
        self._resolved: dict[str, tuple[str, int]] = {}  # by whom and in which epoch each request was
        self._acquired: dict[str, datetime] = {}  # each Lease, by the server's clock: that of its holder may be wrong
        self._terms: dict[str, list[tuple[int, datetime]]] = {}  # the epochs of each holder, and their beginnings
        self.removed: list[str] = []
        server.admission.append(self)
        server.store.observers.append(self._see_holder)

    def __call__(self, admission: Admission) -> RefusedError | None:
        if admission.operation == "DELETE" and admission.client not in {USER, JOB_CONTROLLER}:
            self.removed.append(f"{admission.kind.plural}/{admission.name}")
            match admission.kind.plural:
                case "jobs":
                    self._judge_job(admission.old, admission.client)
                case "scheduleoccurrences":
                    self._judge_record(admission.old, admission.client)
        return None

    def _judge_job(self, job: Json, client: str) -> None:
        metadata = job["metadata"]
        record = self._server.find("scheduleoccurrences", metadata["namespace"], metadata["name"])
        owner = next((each["uid"] for each in metadata.get("ownerReferences", ()) if each.get("controller")), "")
        if record is None and owner in self._gone:
            return  # it was on its way while the collector took the record, as it took the Job
        if record is None or record["metadata"]["uid"] != owner:
            self._wrong("P10", f"Job {metadata['name']} was removed, which is not a record's")
        elif _was_ended(record):
            if not self._is_beyond_late_creates(record, client):
                self._wrong("P12", f"Job {metadata['name']} was removed while a create of it might still arrive")
        elif not self._is_kept_long_enough(record, client):
            self._wrong("R26", f"Job {metadata['name']} was removed too early")

    def _judge_record(self, record: Json, client: str) -> None:
        name, spec = record["metadata"]["name"], record["spec"]
        uid, namespace = spec["scheduleRef"].get("uid"), record["metadata"]["namespace"]
        if not self._is_kept_long_enough(record, client):
            self._wrong("P1", f"record {name} was pruned too early")
        if self._server.find("jobs", namespace, name) is not None:
            self._wrong("R22", f"record {name} was pruned before its Job")
        schedule = self._server.find("workflowschedules", namespace, spec["scheduleRef"]["name"])
        if schedule is not None and schedule["metadata"]["uid"] == uid and spec["cause"] == "Scheduled":
            self._judge_of_log(record, schedule)

    def _judge_of_log(self, record: Json, schedule: Json) -> None:
        name, number = record["metadata"]["name"], record["spec"]["sequence"]
        stored = self._server.store.of(KIND_OF["scheduleoccurrences"]).values()
        uid = schedule["metadata"]["uid"]
        records = [each.body for each in stored if each.body["spec"]["scheduleRef"].get("uid") == uid]
        if number >= (schedule.get("status") or {}).get("logHead", 0):
            self._wrong("P7", f"record {name} was pruned at or past the stored head")
        newest = max(records, key=lambda each: each["spec"]["sequence"])
        if number in newest["spec"].get("open", ()):
            self._wrong("P7", f"record {name} was pruned although the newest calls it open")
        for outcome in ("Completed", "Failed"):
            same = [
                each["spec"]["sequence"] for each in records if (each.get("status") or {}).get("outcome") == outcome
            ]
            if same and number == max(same):
                self._wrong("R30", f"record {name}, the newest {outcome}, was pruned")

    def _see_holder(self, kind: Kind, change: Change) -> None:
        if kind.plural == "scheduleoccurrences" and change.after is None and change.before is not None:
            self._gone.add(change.before.body["metadata"]["uid"])
        if kind.plural == "scheduleoccurrences" and change.after is not None:
            metadata, status = change.after.body["metadata"], change.after.body.get("status") or {}
            if status.get("writer"):
                self._resolved.setdefault(metadata["uid"], (status["writer"], status.get("fencingEpoch", 0)))
        if kind.plural == "leases" and change.after is not None:
            spec = change.after.body["spec"]
            holder, epoch = spec.get("holderIdentity", ""), spec.get("leaseTransitions", 0)
            terms = self._terms.setdefault(holder, [])
            if not terms or terms[-1][0] != epoch or not holder:
                self._acquired["/".join(change.key)] = self._clock.now()
                terms.append((epoch, self._clock.now()))

    def _is_beyond_late_creates(self, record: Json, client: str) -> bool:
        """Tell whether the sender made the record itself in this epoch, or had held the Lease for long enough.

        It may have lost the Lease since, with the DELETE on its way: who came after it can't be who makes the Job late.
        """
        writer = identity_of(client)
        made = record["spec"].get("writer"), record["spec"].get("fencingEpoch")
        if record["spec"]["cause"] != "Scheduled":
            made = self._resolved.get(record["metadata"]["uid"], ("", 0))
        return any(
            made == (writer, epoch) or self._clock.now() - acquired >= SETTLE
            for epoch, acquired in self._terms_of(client)
        )

    def _terms_of(self, client: str) -> list[tuple[int, datetime]]:
        """Return the epochs, and their beginnings, in which a request that arrives now may have been sent.

        Its sender may have lost the Lease since, and acquired it again.
        """
        terms = self._terms.get(identity_of(client), [])
        over = [began for _, began in terms[1:]]
        return [
            term
            for term, ended in zip(terms, [*over, None], strict=False)
            if not ended or self._clock.now() - ended < ON_ITS_WAY
        ]

    def _acquisitions(self, record: Json, client: str) -> list[datetime]:
        """When the Lease that a record was written under was last acquired, all where it doesn't say.

        By the sender, where it has held it: it may have lost the Lease since, with the DELETE on its way.
        """
        if terms := self._terms_of(client):
            return [terms[0][1]]
        written = record["spec"].get("lease") or (record.get("status") or {}).get("lease")
        return [self._acquired[written]] if written in self._acquired else [*self._acquired.values()]

    def _is_kept_long_enough(self, record: Json, client: str) -> bool:
        spec, status = record["spec"], record.get("status") or {}
        times = [record["metadata"]["creationTimestamp"]]
        if spec.get("decision") in {None, "Admitted"}:
            if status.get("outcome") not in FINAL:
                return False
            times += [each["time"] for each in status.get("transitions", ())]
        since = [*map(parse_utc, times), *self._acquisitions(record, client)]
        return all(self._clock.now() - at >= self.kept for at in since)

    def _wrong(self, rule: str, what: str) -> None:
        self._violations.append(f"{rule}: {what} (at {self._clock.now():%H:%M:%S})")


def identity_of(process: str) -> str:
    """Return how the process that a request came from calls itself in the Lease and in records."""
    return f"pod-{process}"


def _was_ended(record: Json) -> bool:
    """Tell whether the operator ended the run: its Job goes at once, and its slot is free when that is gone (R14)."""
    status = record.get("status") or {}
    return status.get("outcome") == "Cancelled" or status.get("reason") == "StartTimeout"
