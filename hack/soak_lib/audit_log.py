"""Reads what was stored from the audit log of an API server, as it grows, is rotated, or ends in half a line."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from soak_lib.commits import Told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Json = dict[str, Any]

KINDS = frozenset({"workflowdefinitions", "workflowschedules", "scheduleoccurrences", "jobs"})
_WRITES = frozenset({"create", "update", "patch", "delete"})
_START = b'{"kind":"Event"'


class AuditLog:
    """Gives each line once; the log may not be there yet.

    Whoever reads often enough reads all: the API server renames a log that has become too long, and the file that is open
    here stays readable under its new name, which is then removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def lines(self) -> Iterator[bytes]:
        """Give what was written since the last call."""
        while True:
            if self._file is None:
                if not self._path.exists():
                    return
                self._file = self._path.open("rb")
            is_rotated = self._is_rotated()  # asked first: what is written before a renaming is read below
            yield from self._read()
            if not is_rotated:
                return
            self._drop()

    def close(self) -> None:
        """Stop reading; the log stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> Iterator[bytes]:
        assert self._file is not None, "opened by the caller"
        while chunk := self._file.read(1 << 20):
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            yield from whole

    def _is_rotated(self) -> bool:
        assert self._file is not None, "opened by the caller"
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False

    def _drop(self) -> None:
        """Close the old log and remove it: at this level of detail it is large."""
        assert self._file is not None, "opened by the caller"
        number = os.fstat(self._file.fileno()).st_ino
        self.close()
        self._rest = b""
        for path in self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}"):
            if path.stat().st_ino == number:
                path.unlink()


def told_by(line: bytes, newest_version: int) -> Told | None:
    """Return the version of an object that a line tells, if it tells one that was stored.

    Args:
        line: one event; behind half of another one where the API server was killed while it wrote.
        newest_version: newest known so far: where a removal stands of which no version is told.
    """
    event = _event(line)
    if event is None or event["verb"] not in _WRITES or "dryRun=All" in event["requestURI"]:
        return None
    target = event.get("objectRef") or {}
    if target.get("resource") not in KINDS or not 200 <= event.get("responseStatus", {}).get("code", 0) < 300:
        return None
    body = event.get("responseObject") or {}
    at = datetime.fromisoformat(event["stageTimestamp"])
    key = (target.get("namespace", ""), target.get("name", ""))
    if body.get("kind") == "Status" or "metadata" not in body or "uid" not in body["metadata"]:
        if event["verb"] != "delete":
            return None
        return Told(
            version=newest_version, kind=target["resource"], key=key, body=None, is_removed=True, at=at,
            uid=(body.get("details") or {}).get("uid", ""),
        )  # fmt: skip
    version = told(target["resource"], body, at, is_removed=_is_gone(event["verb"], body))
    return replace(version, received_at=datetime.fromisoformat(event["requestReceivedTimestamp"]))


def told(kind: str, body: Json, at: datetime, *, is_removed: bool = False) -> Told:
    """Return a version from the object itself, without what nobody asks for."""
    metadata = body["metadata"]
    metadata.pop("managedFields", None)
    return Told(
        version=int(metadata["resourceVersion"]),
        kind=kind,
        key=(metadata.get("namespace", ""), metadata["name"]),
        body=_slim(kind, body),
        is_removed=is_removed,
        at=at,
    )


def _slim(kind: str, body: Json) -> Json:
    if kind == "jobs":
        return {"metadata": body["metadata"], "status": body.get("status") or {}}
    return body


def _is_gone(verb: str, body: Json) -> bool:
    """Tell whether the object went with this write: its last finalizer was taken off, or it had none."""
    metadata = body["metadata"]
    is_leaving = "deletionTimestamp" in metadata or verb == "delete"
    return is_leaving and not metadata.get("finalizers")


def _event(line: bytes) -> Json | None:
    try:
        event: Json = orjson.loads(line)
    except orjson.JSONDecodeError:
        start = line.rfind(_START)
        return _event(line[start:]) if start > 0 else None
    return event
