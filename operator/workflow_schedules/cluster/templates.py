"""Job templates pinned as ControllerRevisions, one per distinct template and namespace, named by their hash."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson

from workflow_schedules.cluster.errors import AlreadyExistsError, ClusterError, InvalidError, UnansweredError
from workflow_schedules.core.identity import pin
from workflow_schedules.core.model import Template

if TYPE_CHECKING:
    from workflow_schedules.cluster.client import Client
    from workflow_schedules.cluster.fence import Fence

PATIENCE_SECONDS = 1.0  # with another's attempt: who waits for it keeps others from their turn (I9)
_KEPT = 4096


class Templates:
    """The pinned templates of a cluster; the newest few thousand are kept in memory."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Template] = {}
        self._attempts: dict[tuple[str, str], asyncio.Future[ClusterError | None]] = {}

    def forget(self) -> None:
        """Forget which are pinned: a restored backup may not have them."""
        self._known.clear()

    def is_known(self, namespace: str, template_hash: str) -> bool:
        """Tell whether a template is pinned and in memory: then nothing has to be asked about it."""
        return (namespace, template_hash) in self._known

    async def pin(self, namespace: str, template: Template, *, fence: Fence) -> None:
        """Make sure that a template is pinned; costs a request only the first time.

        Raises:
            InvalidError: an object of that name holds something else.
            ClusterError: any other failure.
            LostLeaseError: this epoch may not write any more.

        Source: contract R22; reliability P15.
        """
        key = (namespace, template.hash)
        if key in self._known:
            return
        if (running := self._attempts.get(key)) is None:
            await self._attempt(namespace, template, fence)
            return
        await asyncio.wait({running}, timeout=PATIENCE_SECONDS)
        if not running.done():
            raise UnansweredError("the template is being pinned for another schedule", reason="Pinning")
        if (error := running.result()) is not None:
            raise error

    async def _attempt(self, namespace: str, template: Template, fence: Fence) -> None:
        """Pin a template for all who want it meanwhile: a herd shares one, and that is one request, not one each."""
        key = (namespace, template.hash)
        attempt = self._attempts[key] = asyncio.get_running_loop().create_future()
        failure: ClusterError | None = UnansweredError("who pinned the template had to stop", reason="Stopped")
        try:
            fence.check()
            await self._create(namespace, template)
            failure = None
        except ClusterError as error:
            failure = error
            raise
        finally:
            del self._attempts[key]
            attempt.set_result(failure)

    async def _create(self, namespace: str, template: Template) -> None:
        body = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": revision_name(template.hash), "namespace": namespace},
            "data": orjson.loads(template.body),
            "revision": 1,
        }
        try:
            await self._client.create_controller_revision(namespace, body)
        except AlreadyExistsError:
            await self.pinned(namespace, template.hash)
        self._keep(namespace, template)

    async def pinned(self, namespace: str, template_hash: str) -> Template:
        """Return a pinned template.

        Raises:
            InvalidError: the object does not hold what its name says.
            NotFoundError: it is gone.
        """
        known = self._known.get((namespace, template_hash))
        if known is not None:
            return known
        name = revision_name(template_hash)
        found = pin((await self._client.get_controller_revision(namespace, name)).get("data"))
        if found.hash != template_hash:
            raise InvalidError(f"ControllerRevision {name} does not hold the template that its name says; delete it")
        self._keep(namespace, found)
        return found

    def _keep(self, namespace: str, template: Template) -> None:
        if len(self._known) >= _KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[namespace, template.hash] = template


@lru_cache(maxsize=_KEPT)
def revision_name(template_hash: str) -> str:
    """Return the name of the ControllerRevision that holds a template."""
    return f"workflow-template-{template_hash}"
