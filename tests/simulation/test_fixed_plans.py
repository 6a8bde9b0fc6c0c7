"""Plans that once failed, each shrunk: what was wrong with the operator, or with who judges it, stays right."""

from __future__ import annotations

from collections import Counter

import pytest

from simulation.plan import Do, Plan
from simulation.play import play

TWO = (
    Do(0.5, "schedule", name="victim", schedule="* * * * *"),
    Do(0.5, "schedule", name="other", schedule="* * * * *"),
)


def nobody(at: float) -> tuple[Do, Do]:
    """Kill both operators, and start others 20 s later."""
    return Do(at, "kill", slot=0, down=20.0), Do(at, "kill", slot=1, down=20.0)


ALL_THREE = ["consumedThroughTime", "totals", "state"]

PLANS = {
    "who takes over a run that was stopped in its first seconds knows that it had started, and writes nothing (R25)": Plan(
        (
            Do(0.0, "jobs", run=[2.0, 130.0], failed=0.8, unready=0.3),
            Do(0.0, "definition"),
            Do(0.5, "schedule", name="s1", schedule="* * * * *", misfirePolicy="Skip", workflow="w"),
            Do(7.376, "schedule", name="s0", schedule="* * * * *", misfirePolicy="Latest", workflow="w"),
            Do(90.0, "freeze_at", on="job", skip=0, seconds=11.0, held=False),
            Do(90.02, "suspend", newest=1),
            Do(100.0, "deaf", slot=2, seconds=150.0),
            Do(149.5, "stop", slot=2, down=0.0),
            Do(151.0, "steal_lease", transitions=0),
        ),
        seconds=220.0,
        seed=1430,
    ),
    "a record that is long on its way arrives when all faults have ended": Plan(
        (
            Do(0.26, "schedule", name="s", schedule="* * * * *"),
            Do(60.0, "fault", on="record", delay_seconds=29.0),
            Do(97.339, "recreate", name="s"),
        ),
        seconds=100.0,
    ),
    "a Job is deleted late, when the collector has taken its record (P10)": Plan(
        (
            Do(0.0, "jobs", run=[None]),
            Do(
                0.5,
                "schedule",
                name="s",
                schedule="* * * * *",
                concurrencyPolicy="Replace",
                misfirePolicy="All",
                deletionPolicy="Delete",
            ),
            Do(90.002, "fault", on="delete", delay_seconds=25.0),
            Do(91.002, "delete", name="s"),
        ),
        seconds=160.0,
    ),
    "who waited for another's pin of a template asks again whether it still leads (P15)": Plan(
        (
            Do(0.5, "schedule", name="s", schedule="* * * * *", image="one"),
            Do(0.6, "schedule", name="t", schedule="* * * * *", image="one"),
            Do(29.99, "terminate_namespace", seconds=90.0),
            Do(29.999, "freeze_at", on="write", skip=1, seconds=11.0, held=True),
        ),
        seconds=100.0,
    ),
    "a schedule is deleted while its record is without an answer, and is there (P2, R20)": Plan(
        (
            Do(0.5, "schedule", name="s", schedule="* * * * *"),
            Do(29.992, "fault", on="record", is_answer_lost=True, is_silent=True),
            Do(31.0, "delete", name="s"),
        ),
        seconds=90.0,
    ),
    "it is created anew at once": Plan(
        (
            Do(0.5, "schedule", name="s", schedule="* * * * *"),
            Do(29.992, "fault", on="record", is_answer_lost=True),
            Do(30.006, "recreate", name="s"),
        ),
        seconds=90.0,
    ),
    "nor can it be read at first whether the record is there": Plan(
        (
            Do(0.5, "schedule", name="s", schedule="* * * * *"),
            Do(29.992, "fault", on="record", is_answer_lost=True, is_silent=True),
            Do(31.0, "delete", name="s"),
            Do(44.0, "fault", on="any", status=500, times=1000, seconds=3.0),
        ),
        seconds=90.0,
    ),
    "a first record that arrives late does not stay the last word on a schedule that was disabled meanwhile (P2, R18)": Plan(
        (
            Do(30.009, "fault", on="record", delay_seconds=16.0),
            Do(30.18, "schedule", name="s", schedule="* * * * *"),
            Do(32.311, "edit", name="s", enabled=False),
        ),
        seconds=70.0,
    ),
    "a record that enables arrives late, after the schedule was disabled again (P2, R18)": Plan(
        (
            Do(0.5, "schedule", name="s", schedule="* * * * *"),
            Do(20.0, "edit", name="s", enabled=False),
            Do(30.009, "fault", on="record", delay_seconds=16.0),
            Do(30.18, "edit", name="s", enabled=True),
            Do(32.311, "edit", name="s", enabled=False),
        ),
        seconds=70.0,
    ),
    "all faults end while a process that is to stop is frozen": Plan(
        (
            Do(0.5, "schedule", name="s", schedule="* * * * *"),
            Do(89.0, "freeze", slot=0, seconds=60.0),
            Do(91.0, "stop", slot=0, down=20.0),
        ),
        seconds=100.0,
    ),
    "who is started when all faults end has a right clock": Plan(
        (
            Do(0.5, "schedule", name="s", schedule="* * * * *"),
            Do(50.0, "stop", slot=0, down=90.0),
        ),
        seconds=60.0,
        operators=(-90.0,),
    ),
    "an admission that arrives after its schedule was deleted gets an outcome (R35)": Plan(
        (
            Do(17.823, "schedule", name="s", schedule="*/3 * * * *"),
            Do(149.99, "fault", on="any", delay_seconds=16.0),
            Do(210.003, "delete", name="s"),
        ),
        seconds=250.0,
    ),
    "a pause that is over may be replaced by another one like it without a Baseline (R11)": Plan(
        (
            Do(0.5, "schedule", name="s"),
            Do(31.211, "edit", name="s", pausedFor=20),
            Do(90.013, "edit", name="s", pause={"reason": "x"}),
        ),
        seconds=130.0,
    ),
    "a namespace that goes takes everything along (R20)": Plan(
        (
            Do(0.5, "schedule", name="s", schedule="* * * * *"),
            Do(89.99, "terminate_namespace", seconds=5.0),
        ),
        seconds=130.0,
    ),
    "the Lease is stolen while a schedule is deleted": Plan(
        (
            Do(0.5, "schedule", name="s"),
            Do(91.0, "delete", name="s"),
            Do(91.0, "steal_lease"),
        ),
        seconds=220.0,
    ),
    "a cancelled request's Job stays while a create of the leader before may still arrive (P12, R31)": Plan(
        (
            Do(0.0, "jobs", run=[200.0]),
            Do(0.5, "schedule", name="s", schedule="0 0 1 1 *"),
            Do(0.6, "no_fence"),  # two API servers, of which one does not know of the takeover yet
            Do(19.8, "fault", on="job", delay_seconds=29.0),
            Do(20.0, "request", name="ask", of="s"),
            Do(25.5, "fault", on="lease", of=0, times=1000, is_dropped=True, seconds=60.0),
            Do(46.0, "cancel"),
        ),
        seconds=90.0,
    ),
    "a failed Job is kept for K though its leader's clock is 90 s ahead (P1)": Plan(
        (
            Do(0.0, "jobs", run=[2.0], failed=0.3),
            Do(0.5, "schedule", name="s0"),
            Do(0.5, "schedule", name="s1", concurrencyPolicy="Allow", maxActiveRuns=3, failedJobsHistoryLimit=0),
        ),
        seconds=400.0,
        operators=(90.0, 0.0),
        seed=2616,
    ),
    "a leader that lived through a restore of etcd goes on from what is there, not from what it remembers (P9)": Plan(
        (
            Do(0.0, "jobs", run=[70.0]),
            Do(0.5, "schedule", name="s", schedule="* * * * *", misfirePolicy="Latest"),
            Do(30.555, "backup"),
            Do(32.555, "edit", name="s", input={"a": 1}),
            Do(71.54, "restore", down=1.0),
        ),
        seconds=190.0,
    ),
    "twenty conflicts in a row keep a status waiting, not for ever": Plan(
        (
            Do(0.563, "schedule", name="s", schedule="* * * * *", concurrencyPolicy="Allow", maxActiveRuns=2),
            Do(90.013, "fault", on="status", times=20, status=409),
        ),
        seconds=160.0,
    ),
    "a head without its watermark blocks its schedule, alone (R31, K-095)": Plan(
        (*TWO, *nobody(61.0), Do(70.0, "strip_fields", of="victim", fields=["consumedThroughTime"])), seconds=190.0
    ),
    "a Baseline without totals and state blocks, though no status tells of it (R31, P8)": Plan(
        (
            *TWO,
            *nobody(20.0),
            Do(25.0, "wipe_status", name="victim"),
            Do(25.0, "strip_fields", of="victim", fields=["totals", "state"]),
        ),
        seconds=130.0,
    ),
    "an unfinished run that says too little blocks, whatever the head says (R31, P3)": Plan(
        (
            Do(0.0, "jobs", run=[500.0]),
            Do(0.5, "schedule", name="victim", schedule="* * * * *", concurrencyPolicy="Allow", maxActiveRuns=4),
            Do(0.5, "schedule", name="other", schedule="* * * * *"),
            *nobody(121.0),
            Do(125.0, "strip_fields", of="victim", number=2, fields=["templateHash", "fencingEpoch"]),
        ),
        seconds=250.0,
    ),
    "the next name is taken by a record that follows and says too little (R31, K-095)": Plan(
        (*TWO, Do(70.0, "forge_record", of="victim", without=ALL_THREE, decision="SkippedMisfire", open=[])),
        seconds=190.0,
    ),
    "and so it is while an append has no answer (R31, P2)": Plan(
        (
            *TWO,
            Do(89.99, "fault", on="record", times=2, is_dropped=True),
            Do(90.2, "forge_record", of="victim", without=ALL_THREE, decision="Baseline", reason="Edited", open=[]),
            Do(95.0, "kill", slot=0, down=5.0),
        ),
        seconds=190.0,
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_plan_that_once_failed_holds(plan: Plan) -> None:
    assert play(plan).problems == ()


RESTORED = Plan(
    (
        Do(0.0, "jobs", run=[2.0, 20.0], unready=0.0),
        Do(0.5, "schedule", name="s0", schedule="* * * * *", concurrencyPolicy="Replace", image="one",
           startingDeadlineSeconds=20),
        Do(0.5, "schedule", name="s1", schedule="* * * * *", concurrencyPolicy="Allow", misfirePolicy="All", maxActiveRuns=2,
           successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0, image="one"),
        Do(29.985, "fault", on="write", skip=1, delay_seconds=21.0),
        Do(29.989, "crash_at", on="status", down=40.0),
        Do(29.989, "crash_at", on="job", skip=1, after=True, down=40.0),
        Do(61.001, "request", name="q0", of="s1", ago=180.0),
        Do(79.803, "backup"),
        Do(89.803, "restore", down=5.0),
    ),
    seconds=135.0,
    seed=366,
)  # fmt: skip


def test_a_leader_whose_server_forgot_what_it_wrote_repeats_no_write_in_a_hurry() -> None:
    """A request's status is compared with a version that is no more, until the leader notices that a backup was restored."""
    patches = Counter((int(each.time), each.path) for each in play(RESTORED).log if each.method == "PATCH")
    assert max(patches.values()) <= 3
