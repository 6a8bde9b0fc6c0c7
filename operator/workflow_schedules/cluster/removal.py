"""Remove the Job of a run that was ended on record, and find out what keeps one from going. When to, is core's business."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from workflow_schedules.cluster.errors import ClusterError, ConflictError, NotFoundError, RefusedError, UnansweredError
from workflow_schedules.cluster.runs import note_failure, read_job
from workflow_schedules.core.plan import DeleteJob, FindJob, ReadPods

if TYPE_CHECKING:
    from workflow_schedules.cluster.client import Json
    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.memory import RunMemory
    from workflow_schedules.core.model import Run

PODS_SHOWN = 3
PODS_READ = 20


async def end_job(cluster: Cluster, step: DeleteJob | FindJob | ReadPods, memory: RunMemory) -> None:
    """Carry out a step of the removal of a run's Job.

    Raises:
        ClusterError: there was no answer, and the Job could not be read either.
    """
    match step:
        case DeleteJob():
            await _delete(cluster, step.run, memory)
        case FindJob():
            await _find(cluster, step.run, memory)
        case ReadPods():
            await _read_pods(cluster, step.run, memory)
        case _:
            assert_never(step)


async def _delete(cluster: Cluster, run: Run, memory: RunMemory) -> None:
    """Delete a run's Job so that it stays until its last Pod is gone; one that is gone already is as good.

    A refusal is noted with the run and tried again later: it keeps nothing else of the schedule waiting.

    Raises:
        ClusterError: there was no answer, and the Job could not be read either.

    Source: contract R14; reliability P2, P19.
    """
    ref, uid = run.record.ref, run.record.status.job_uid or ""
    try:
        answer = await cluster.client.delete_job(ref.namespace, ref.name, uid=uid, propagation="Foreground")
    except NotFoundError:
        memory.is_job_gone = True
    except ConflictError:  # another's Job of that name: ours is gone
        await _look(cluster, run, memory, uid)
    except UnansweredError as error:
        note_failure(memory, error, cluster.now())
        await _look(cluster, run, memory, uid)
    except RefusedError as error:
        note_failure(memory, error, cluster.now())
    else:
        memory.last_error = memory.retry_at = None
        if answer.get("kind") != "Job":
            memory.is_job_gone = True
        elif not memory.is_job_gone:  # the watch may have been faster
            cluster.cache.put_job(answer)


async def _find(cluster: Cluster, run: Run, memory: RunMemory) -> None:
    """Learn whether a run's Job is still there; whoever removed it made sure that nothing brings it back (P1).

    Raises:
        ClusterError: it could not be read.

    Source: contract R14; reliability P9, P12.
    """
    await _look(cluster, run, memory, run.record.status.job_uid or "")


async def _look(cluster: Cluster, run: Run, memory: RunMemory, uid: str) -> None:
    is_there = await read_job(cluster, run.record.ref)
    job = cluster.cache.jobs.get(run.record.ref)
    if not is_there or (job is not None and job.uid != uid):
        memory.is_job_gone = True


async def _read_pods(cluster: Cluster, run: Run, memory: RunMemory) -> None:
    """Note which Pods keep a run's Job from going; that they can't be read is noted, too.

    Source: contract R14 (`RunsHealthy` names the node).
    """
    ref = run.record.ref
    memory.pods_read_at = cluster.now()
    try:
        memory.stuck_on = stuck_text(await cluster.client.list_pods(ref.namespace, ref.name, limit=PODS_READ))
    except ClusterError as error:
        memory.stuck_on = f"its Pods could not be read: {error.message}"


def stuck_text(pods: list[Json]) -> str:
    """Return which Pods on which nodes are left, for people; the same as long as they are the same."""
    if not pods:
        return "no Pod of it is left, so a finalizer keeps the Job"
    shown = [
        f"Pod {pod['metadata']['name']} on node {(pod.get('spec') or {}).get('nodeName') or '(none)'}" for pod in pods
    ]
    more = f" and {len(shown) - PODS_SHOWN} more" if len(shown) > PODS_SHOWN else ""
    return (
        f"{', '.join(sorted(shown)[:PODS_SHOWN])}{more} can't go; if that node is gone for good, delete its Node object, "
        "or the Pod with --force"
    )
