"""Asks an HTTP server again and again, and takes the rows of its answers (httpx)."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any
from urllib.parse import urljoin, urlsplit

from pipeline_runtime.connectors.http_out import (
    AGAIN,
    MENDED_BY_A_PERSON,
    QUOTED,
    WAIT_S_MAX,
    Answer,
    Server,
    retry_after_s,
)
from pipeline_runtime.connectors.polls import Polls, missed_in
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError, Ingester, Intake, Place, Record
from pipeline_runtime.model.paths import parse_path, value_at
from pipeline_runtime.operators.http import HttpConnection
from pipeline_runtime.operators.http_poll import HttpPollParams

BODY_BYTES_MAX = 5 << 20
ROWS_MAX = 5_000
REDIRECTIONS_MAX = 3
LOOK_S = 0.2
"""How often `stop` is looked at while rows become durable."""
_NOT_MODIFIED = 304
_NO_CONTENT = 204
_NOTHING = frozenset({_NOT_MODIFIED, _NO_CONTENT})
_STILL_S = 2.0
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Seen:
    """What is known of the last answer whose rows are durable."""

    conditions: Mapping[str, str]  # headers by which the server may answer 304
    ids: frozenset[str] = frozenset()


class HttpPollIngester(Ingester[HttpPollParams, HttpConnection]):
    """Each row becomes one record: its JSON."""

    def __init__(self, place: Place[HttpPollParams, HttpConnection]) -> None:
        super().__init__(place)
        # as `Server.ask` allows
        self.patience_s = (REDIRECTIONS_MAX + 1) * (CONNECT_S + 3 * place.params.timeout_s)
        self._polls = Polls(place.params.every_s)
        self._seen = Seen({})

    def run(self, intake: Intake, stop: threading.Event) -> None:
        server = Server(self.place.connection, self.place.params.timeout_s)
        try:
            while not stop.wait(self._polls.wait_s(monotonic())):
                self._polls.begun(monotonic())
                self._poll(server, intake, stop)
        finally:
            server.close()

    def missed_in(self, pause_s: float) -> int | None:
        # How many rows an answer would have had is not known.
        return None if missed_in(pause_s, self.place.params.every_s) else 0

    def tell_left(self, intake: Intake) -> None:
        self._tell_missed(intake, self._polls.left())

    def _poll(self, server: Server, intake: Intake, stop: threading.Event) -> None:
        params, where = self.place.params, self.place.connection.where
        try:
            answer = self._asked(server)
            rows = [] if answer.status in _NOTHING else rows_of(answer, params, where)
            records, ids = new_records(rows, params, self._seen.ids)
        except Exception:
            self._polls.failed()
            raise
        intake.connected()
        if answer.status == _NOT_MODIFIED:
            self._tell_missed(intake, self._polls.worked(monotonic()))
        elif not records or _put(intake, records, stop):
            self._seen = Seen(conditions_of(answer.headers), ids)
            self._tell_missed(intake, self._polls.worked(monotonic()))
        else:  # the next answer's rows come in whether they were in this one or not
            self._polls.failed()

    def _asked(self, server: Server) -> Answer:
        params = self.place.params
        # What is not packed cannot be much more than it seems.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        headers |= {each.name: each.value for each in params.headers}
        return followed(server, self.place.connection, params.path, {**headers, **self._seen.conditions})

    def _tell_missed(self, intake: Intake, missed: int) -> None:
        if missed:
            where = self.place.connection.where
            intake.gap(
                f"{missed} polls of {where} gave no usable answer, or Fogline could not take the"
                " rows in time. Rows that it had only in that time are lost"
            )


def followed(server: Server, connection: HttpConnection, path: str, headers: Mapping[str, str]) -> Answer:
    """Asks for a path, and for where its answer leads to at the same server. Raises ConnectorError."""
    at = path
    for _ in range(REDIRECTIONS_MAX + 1):
        answer = server.ask("GET", at, headers=headers, bytes_max=BODY_BYTES_MAX)
        if answer.status not in _REDIRECTIONS:
            return answer
        at = redirected(answer, at, connection)
    raise ConnectorError(
        f"{connection.where} leads from {path} to other places again and again.", lasting=True
    )


def _put(intake: Intake, records: Sequence[Record], stop: threading.Event) -> bool:
    """Returns whether the records are durable. There is no next poll before: it would bring them again.
    False: there is no room for them, or `stop` is set."""
    durable = threading.Event()
    if not intake.put(records, durable.set):
        return False
    while not durable.wait(LOOK_S):
        if stop.is_set():
            return False
    return True


# -- pure ------------------------------------------------------------------------------------------------


def redirected(answer: Answer, path: str, connection: HttpConnection) -> str:
    """Returns the path that an answer leads to. Raises ConnectorError if it is at another host."""
    scheme, usual = ("https", 443) if connection.tls else ("http", 80)
    to = answer.headers.get("location", "")
    try:
        to = urljoin(connection.base_url + path, to)
        parts = urlsplit(to)
        place = (parts.scheme, parts.hostname, parts.port or (usual if parts.scheme == scheme else None))
    except ValueError:
        place = ("", None, None)
    if place != (scheme, connection.host.lower(), connection.port):
        shown = to.partition("?")[0].partition("#")[0]  # what comes then may be a secret
        raise ConnectorError(
            f"{connection.where} answers {answer.status} to GET {path}: it leads to {shown[:QUOTED]}. "
            "Fogline does not follow to another place; change the connection or the path.",
            lasting=True,
        )
    return "/" + parts.path.lstrip("/") + (f"?{parts.query}" if parts.query else "")


def rows_of(answer: Answer, params: HttpPollParams, where: str) -> list[Any]:
    """Returns the rows of an answer. Raises ConnectorError."""
    asked = f"{where} answers {answer.status} to GET {params.path}"
    if not 200 <= answer.status < 300:
        raise _refused(answer, asked)
    if not answer.whole:
        raise ConnectorError(
            f"{where} answers with more than {BODY_BYTES_MAX >> 20} MiB, or takes more than "
            f"{2 * params.timeout_s:g} s for it. Ask for less by the path.",
            lasting=True,
        )
    try:
        body = json.loads(answer.content)
    except (ValueError, RecursionError) as error:
        raise ConnectorError(f"{asked}, and that is no JSON.{_quoted(answer)}") from error
    found = body if params.rows is None else value_at(body, body, parse_path(params.rows))
    if isinstance(found, dict):
        return [found]
    if not isinstance(found, list):
        what = "no rows" if params.rows is None else f"nothing like rows at {params.rows}"
        raise ConnectorError(f"{asked} with {what}. Check Array of rows.{_quoted(answer)}")
    if len(found) > ROWS_MAX:
        raise ConnectorError(
            f"{where} answers with {len(found)} rows; at most {ROWS_MAX} are taken. Ask for fewer by the"
            " path.",
            lasting=True,
        )
    return found


def _refused(answer: Answer, asked: str) -> ConnectorError:
    status = answer.status
    if status in AGAIN or status >= 500:
        wait_s = retry_after_s(answer.headers.get("retry-after", ""), datetime.now(UTC))
        return ConnectorError(f"{asked}.{_quoted(answer)}", wait_s=min(WAIT_S_MAX, wait_s))
    hint = " Check the token of the connection, and the path." if status in MENDED_BY_A_PERSON else ""
    return ConnectorError(f"{asked}.{hint}{_quoted(answer)}", lasting=True)


def _quoted(answer: Answer) -> str:
    said = " ".join(answer.text[:QUOTED].split())
    return f" It says: {said}" if said else ""


def new_records(
    rows: Sequence[Any], params: HttpPollParams, known: frozenset[str]
) -> tuple[list[Record], frozenset[str]]:
    """Returns a record for each row that is not known, and what all rows of the answer are known by."""
    if params.id_field is None:
        return [_record(row) for row in rows], frozenset()
    path = parse_path(params.id_field)
    named = [(row, value_at(row, row, path)) for row in rows]
    ids = [None if value is None else json.dumps(value, sort_keys=True) for _, value in named]
    records = [_record(row) for (row, _), id in zip(named, ids, strict=True) if id is None or id not in known]
    return records, frozenset(id for id in ids if id is not None)


def _record(row: Any) -> Record:
    return Record(json.dumps(row).encode())


def conditions_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers by which the server can say that nothing has changed since an answer."""
    changed = headers.get("last-modified")
    sent = {
        "If-None-Match": headers.get("etag"),
        "If-Modified-Since": changed if _is_still(headers) else None,
    }
    return {name: value for name, value in sent.items() if value}


def _is_still(headers: Mapping[str, str]) -> bool:
    """Returns whether the last change was over when the server answered. Its time has whole seconds, so a
    second change in the same second is not seen by it."""
    try:
        changed = parsedate_to_datetime(headers.get("last-modified", ""))
        answered = parsedate_to_datetime(headers.get("date", ""))
        return (answered - changed).total_seconds() >= _STILL_S
    except (TypeError, ValueError):
        return False
