"""All that is in a namespace at one moment: each kind listed as of the same version of etcd, which holds them all.

Lists made one after the other are of different moments: a Job would be seen whose record, created before it, is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

import orjson

from support.cluster_stories import Json
from workflow_schedules.cluster.connection import Connection
from workflow_schedules.cluster.errors import GoneError, ThrottledError, UnansweredError, error_of
from workflow_schedules.cluster.methods import DEFINITIONS, JOBS, OCCURRENCES, PODS, SCHEDULES, Resource

EVENTS: Final = Resource("", "v1", "events")
OTHERS: Final = (DEFINITIONS, OCCURRENCES, JOBS, PODS, EVENTS)
TIMEOUT_SECONDS: Final = 15.0
PATIENCE_SECONDS: Final = 30.0  # an API server that was started again may know its kinds a moment later


def objects_of_now(connection: Connection, namespace: str) -> list[Json]:
    """Give every schedule, definition, record, Job, Pod and Event of a namespace, in no order, as one moment has them.

    Raises:
        ClusterError: the API server does not answer for long, or refuses.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return _objects(connection, namespace)
        except (UnansweredError, ThrottledError, GoneError):
            if time.monotonic() > end:
                raise
        time.sleep(0.25)


def _objects(connection: Connection, namespace: str) -> list[Json]:
    with asking(connection) as ask:
        first = ask("GET", SCHEDULES.path(namespace))  # for no version it is of now, and says which that is
        moment = f"?resourceVersion={first['metadata']['resourceVersion']}&resourceVersionMatch=Exact"
        lists = [first, *(ask("GET", f"{kind.path(namespace)}{moment}") for kind in OTHERS)]
    return [item for found in lists for item in _items(found)]


@contextmanager
def asking(connection: Connection) -> Iterator[Callable[..., Json]]:
    """Give `ask(method, path, body)` on a connection of its own: one kept may be to an API server killed meanwhile."""
    url, tls, token = urlsplit(connection.server), connection.ssl_context(), connection.current_token()
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    assert url.hostname, connection.server
    http = (
        HTTPSConnection(url.hostname, url.port, timeout=TIMEOUT_SECONDS, context=tls)
        if tls
        else HTTPConnection(url.hostname, url.port, timeout=TIMEOUT_SECONDS)
    )

    def ask(method: str, path: str, body: Json | None = None) -> Json:
        try:
            http.request(method, f"{url.path}{path}", None if body is None else orjson.dumps(body), headers)
            response = http.getresponse()
            said = response.read()
        except (OSError, HTTPException) as error:
            raise UnansweredError(f"{method} {path}: {error}") from error
        if response.status >= 300:
            raise error_of(response.status, {key.lower(): value for key, value in response.getheaders()}, said)
        found: Json = orjson.loads(said)
        return found

    with closing(http):
        yield ask


def _items(found: Json) -> list[Json]:
    """Each with its kind, which a list of a kind that is built in says but once."""
    kind = found["kind"].removesuffix("List")
    return [{"kind": kind, **item} for item in found["items"]]
