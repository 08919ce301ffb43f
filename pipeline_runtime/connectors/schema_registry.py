"""Asks a schema registry that speaks Confluent's protocol."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic
from typing import Any
from urllib.parse import quote

from pipeline_runtime.connectors.http_out import QUOTED, Answer, Server
from pipeline_runtime.connectors.name_servers import look_up
from pipeline_runtime.connectors.sdk import ConnectorError, Probed
from pipeline_runtime.formats.avro_schema import SCHEMA_CHARACTERS_MAX
from pipeline_runtime.formats.schema_registry import (
    AVRO,
    NUMBER_MAX,
    NoSuchSchema,
    RegisteredSchema,
    SchemaRegistryError,
)
from pipeline_runtime.kafka.clients import KafkaTimeoutError, within
from pipeline_runtime.model.connectors import ROWS_SHOWN
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection

ANSWER_S = 4.0
"""The longest time in s for a whole answer. The time for the look-up of the registry's name comes before."""
ANSWER_BYTES_MAX = 2 << 20
"""The most bytes of an answer. An answer with a schema of SCHEMA_CHARACTERS_MAX is smaller."""
SUBJECTS_BYTES_MAX = 16 << 20
KEPT_MAX = 256
"""The most answers of one registry that are kept. An answer is a schema or a number."""
KEPT_CHARACTERS_MAX = 1 << 20
"""The most characters of all schemas of one registry that are kept."""
KEPT_S = 600.0
"""After this time in s, the registry is asked again, because somebody may have set it up again."""
AWAY_S = 60.0
"""For this time in s after a registry has not answered, the kept answers count without a question."""
KIND_CHARACTERS_MAX = 40
_LONG_SCHEMA = re.compile(rb'\s*\{(?s:.*)"schema"\s*:\s*"')
"""How a registry's answer begins that has a schema, if the answer is too long to be read."""
_NO_SCHEMA = 40403
"""The code in a registry's 404 for a schema that it does not have. A server that is no registry also answers
404, but without this code."""


class _Away(SchemaRegistryError):
    """The registry does not answer, or refuses the login."""


@dataclass(frozen=True, slots=True)
class _Kept:
    answer: Any
    characters: int
    at_s: float


class SchemaRegistry:
    """Implements formats.schema_registry.Registry. Safe for threads.

    It keeps each answer for KEPT_S, and then asks again. If the registry is then away, or no longer has the
    schema, the earlier answer counts. While the registry is away, the questions for kept answers do not wait
    for it one after another.

    One client sends one question at a time, and other threads wait. If the question fails, the threads that
    waited for the same answer get the same error, and send no question. If the registry does not answer at
    all, every waiting thread gets that error.
    """

    def __init__(self, connection: SchemaRegistryConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()  # guards `_kept` and `_characters`
        self._kept: OrderedDict[Any, _Kept] = OrderedDict()
        self._asking = threading.Lock()  # guards what follows, and is held while the registry is asked
        self._server: Server | None = None
        self._failed: tuple[Any, float, SchemaRegistryError] | None = None  # the question, and when

    def schema(self, number: int) -> RegisteredSchema:
        # The number becomes a part of the address, and a task may run code of any author.
        if type(number) is not int or not 0 <= number <= NUMBER_MAX:
            raise NoSuchSchema(f"{self._connection.where} has no schema {str(number)[:QUOTED]}.")
        found: RegisteredSchema = self._known(number, lambda: self._schema(number))
        return found

    def number(self, subject: str, schema: str) -> int:
        key = sha256(json.dumps([subject, schema]).encode()).digest()
        found: int = self._known(key, lambda: self._number(subject, schema))
        return found

    def close(self) -> None:
        """Waits until the present question ends, and closes the connection."""
        with self._asking:
            self._drop_server()

    def _known(self, key: Any, ask: Callable[[], Any]) -> Any:
        """Returns the answer that is kept under the key, or else the result of `ask`. Raises
        SchemaRegistryError."""
        began_s = monotonic()
        if (kept := self._fresh(key, began_s)) is not None:
            return kept.answer
        with self._asking:
            if (kept := self._fresh(key, began_s)) is not None:  # another thread has asked meanwhile
                return kept.answer
            with self._lock:
                kept = self._kept.get(key)
            if kept is not None and self._is_away():
                return kept.answer
            try:
                answer = self._answered(key, began_s, ask)
            except SchemaRegistryError:
                if kept is None:
                    raise
                answer = kept.answer
            self._keep(key, answer)
            return answer

    def _answered(self, key: Any, began_s: float, ask: Callable[[], Any]) -> Any:
        if self._failed is not None:
            question, at_s, error = self._failed
            if at_s >= began_s and (question == key or isinstance(error, _Away)):
                raise error
        try:
            answer = ask()
        except SchemaRegistryError as error:
            self._failed = key, monotonic(), error
            raise
        self._failed = None
        return answer

    def _is_away(self) -> bool:
        """Returns whether the last question was not answered a short time ago. The caller holds `_asking`."""
        if self._failed is None:
            return False
        _, at_s, error = self._failed
        return isinstance(error, _Away) and monotonic() - at_s < AWAY_S

    def _fresh(self, key: Any, now_s: float) -> _Kept | None:
        with self._lock:
            kept = self._kept.get(key)
            return kept if kept is not None and now_s - kept.at_s < KEPT_S else None

    def _keep(self, key: Any, answer: Any) -> None:
        characters = len(answer.text) if isinstance(answer, RegisteredSchema) else 0
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = _Kept(answer, characters, monotonic())
            total = sum(each.characters for each in self._kept.values())
            while len(self._kept) > KEPT_MAX or total > KEPT_CHARACTERS_MAX:
                _, dropped = self._kept.popitem(last=False)
                total -= dropped.characters

    def _schema(self, number: int) -> RegisteredSchema:
        where = self._connection.where
        status, answer, content = self._asked("GET", f"/schemas/ids/{number}")
        if status == 404 and answer.get("error_code") == _NO_SCHEMA:
            raise NoSuchSchema(f"{where} has no schema {number}.")
        if status == 200 and content is not None and _LONG_SCHEMA.match(content):
            return RegisteredSchema(AVRO, " " * (SCHEMA_CHARACTERS_MAX + 1))
        text, kind = answer.get("schema"), answer.get("schemaType") or AVRO
        if status != 200 or not isinstance(text, str) or not isinstance(kind, str):
            raise self._odd(status)
        # A reader refuses a longer schema, so one character more than the limit is enough.
        text = text[: SCHEMA_CHARACTERS_MAX + 1]
        return RegisteredSchema(_line(kind, KIND_CHARACTERS_MAX), text, bool(answer.get("references")))

    def _number(self, subject: str, schema: str) -> int:
        where = self._connection.where
        path = f"/subjects/{quote(subject, safe='')}/versions"
        status, answer, _ = self._asked("POST", path, {"schema": schema})
        if status in (409, 422):
            said = _line(str(answer.get("message", "")), QUOTED)
            raise SchemaRegistryError(
                f"{where} does not take the schema for the subject {subject}. It says: {said}"
            )
        number = answer.get("id")
        if status != 200 or type(number) is not int or not 0 <= number <= NUMBER_MAX:
            raise self._odd(status)
        return number

    def _asked(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any], bytes | None]:
        """Returns the HTTP status, the answer, and how the answer begins if it is too long. The answer is
        empty if it is no JSON object. The caller holds `_asking`. Raises _Away."""
        try:
            look_up(self._connection, threading.Event())
            if self._server is None:
                self._server = Server(self._connection, ANSWER_S)
            answer = asked(self._server, self._connection, method, path, body)
        except ConnectorError as error:
            self._drop_server()  # also ends a request that still runs after the time limit
            raise _Away(str(error)) from error
        found = _json(answer)
        begins = None if answer.whole else answer.content
        return answer.status, found if isinstance(found, dict) else {}, begins

    def _drop_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _odd(self, status: int) -> SchemaRegistryError:
        return SchemaRegistryError(str(_odd(self._connection, status)))


def asked(
    server: Server,
    connection: SchemaRegistryConnection,
    method: str,
    path: str,
    body: Any = None,
    bytes_max: int = ANSWER_BYTES_MAX,
) -> Answer:
    """Sends a request to the registry, and returns the answer. `body` is sent as JSON. `bytes_max`: the most
    bytes of the answer that are read.

    Raises ConnectorError if the registry does not answer or refuses the login. After an error, do not use
    `server` again.
    """
    content = None if body is None else json.dumps(body).encode()
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if content is not None:
        headers["Content-Type"] = "application/vnd.schemaregistry.v1+json"
    try:
        answer = within(ANSWER_S, lambda: server.ask(method, path, content, headers, bytes_max))
    except KafkaTimeoutError as error:
        raise ConnectorError(f"{connection.where} does not answer within {ANSWER_S:g} s.") from error
    if answer.status in (401, 403):
        raise ConnectorError(
            f"{connection.where} refuses the login of the connection ({answer.status}). An admin checks the"
            " user name and the password, or the token.",
            lasting=True,
        )
    return answer


def probe(connection: SchemaRegistryConnection, path: str) -> Probed:
    """Returns how many subjects the registry has, and the first ROWS_SHOWN of them. Raises ConnectorError."""
    server = Server(connection, ANSWER_S)
    try:
        answer = asked(server, connection, "GET", "/subjects", bytes_max=SUBJECTS_BYTES_MAX)
    finally:
        server.close()
    if not answer.whole:
        raise ConnectorError(f"{connection.where} answers too much.")
    found = _json(answer)
    if answer.status != 200 or not isinstance(found, list):
        raise _odd(connection, answer.status)
    count = f"{len(found):,} {'subject' if len(found) == 1 else 'subjects'}"
    rows = tuple({"subject": str(each)[:QUOTED]} for each in found[:ROWS_SHOWN])
    return Probed(f"Connected. The registry has {count}.", rows)


def _odd(connection: SchemaRegistryConnection, status: int) -> ConnectorError:
    """Returns the error for an answer that is not an answer of a schema registry."""
    what = "as no schema registry does" if status == 200 else str(status)
    return ConnectorError(f"{connection.where} answers {what}. Check the address of the connection.")


def _json(answer: Answer) -> Any:
    """Returns the answer's content as data, or None if it is no JSON."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        return None


def _line(text: str, characters_max: int) -> str:
    return " ".join(text[:characters_max].split())
