"""The Redis stream of reports, and how a report is read from one of its entries."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import redis
from pydantic import ValidationError

from pipeline_runtime.model.desired import NodeReport
from pipeline_runtime.settings import NODE_NAME
from pipeline_runtime.wire import keys
from pipeline_runtime.wire.reports import ReportDamaged, json_of

BLOCK_MS = 200
ENTRIES_MAX = 500
Fields = dict[bytes, bytes]


@dataclass(frozen=True)
class Entries:
    """The reports that were waiting, oldest first."""

    read_at_ms: int  # by Redis's clock; every report that came before was read
    waited_ms: int  # how much longer than BLOCK_MS Redis took to answer
    found: tuple[tuple[int, Fields], ...]  # (when Redis took it in, ms; the report)
    cursor: bytes | None  # of the last one

    @property
    def all_read(self) -> bool:
        """Whether nothing that waited is left unread."""
        return len(self.found) < ENTRIES_MAX


class ReportStream:
    """Reads each report once. Where it has come to is kept in Redis, for the next process."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._cursor: bytes | None = None

    def read(self) -> Entries:
        """Returns the reports behind the cursor, and deletes those before it. Raises redis.RedisError."""
        stored: Any = self._redis.get(keys.REPORTS_CURSOR) if self._cursor is None else self._cursor
        cursor: bytes = stored or b"0-0"
        # Nobody else reads them. Redis allows this also when it is full, and then has room for reports again.
        self._redis.xtrim(keys.REPORTS_STREAM, minid=cursor, approximate=False)
        asked_at_s = time.monotonic()
        read_at_ms = self.now_ms()  # asked for first, so that nothing older is left unread
        answer: Any = self._redis.xread({keys.REPORTS_STREAM: cursor}, count=ENTRIES_MAX, block=BLOCK_MS)
        waited_ms = int((time.monotonic() - asked_at_s) * 1000) - BLOCK_MS
        entries = answer[0][1] if answer else []
        found = tuple((int(id.split(b"-")[0]), fields) for id, fields in entries)
        return Entries(read_at_ms, waited_ms, found, entries[-1][0] if entries else None)

    def keep(self, cursor: bytes) -> None:
        """Everything up to `cursor` was taken in. Raises redis.RedisError."""
        self._cursor = cursor
        self._redis.set(keys.REPORTS_CURSOR, cursor)

    def now_ms(self) -> int:
        """Returns the time by Redis's clock."""
        seconds, microseconds = self._redis.time()
        return int(seconds) * 1000 + int(microseconds) // 1000


class Unreadable(ValueError):
    """An entry of the stream is no report."""

    def __init__(self, sender: str, error: Exception) -> None:
        super().__init__(str(error))
        self.sender = sender  # the node that it names, or "" if it names none
        self.error = error


def report_in(fields: Fields) -> NodeReport:
    """Returns the report in an entry. Raises Unreadable."""
    try:
        return NodeReport.model_validate_json(json_of(fields[keys.REPORT_FIELD]))
    except (KeyError, ReportDamaged, ValidationError) as error:
        raise Unreadable(_sender(fields), error) from error


def _sender(fields: Fields) -> str:
    try:
        name = json.loads(json_of(fields[keys.REPORT_FIELD]))["node"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ""
    # A database does not take every text that JSON can hold.
    return name if isinstance(name, str) and NODE_NAME.fullmatch(name) else ""
