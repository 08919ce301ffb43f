"""Asks a schema registry that speaks Confluent's protocol."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any
from urllib.parse import quote

from pipeline_runtime.connectors.http_out import QUOTED, Answer, Server
from pipeline_runtime.connectors.sdk import ConnectorError, Probed
from pipeline_runtime.formats.schema_registry import AVRO, RegisteredSchema, SchemaRegistryError
from pipeline_runtime.kafka.clients import KafkaTimeoutError, within
from pipeline_runtime.model.connectors import ROWS_SHOWN
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection

ANSWER_S = 4.0
"""How long a whole answer may take."""
ANSWER_BYTES_MAX = 1 << 20
SUBJECTS_BYTES_MAX = 16 << 20
KEPT_MAX = 256
"""How many schemas, and how many numbers, are kept of one registry."""
NUMBER_MAX = (1 << 31) - 1
"""Confluent's registry has no larger numbers."""
_NO_SCHEMA = 40403
"""How a registry's 404 says that it has no such schema. A server that is no registry says 404 as well."""


class SchemaRegistry:
    """Implements formats.schema_registry.Registry. It keeps what it was told: a number stands for the same
    schema for ever. Safe for threads."""

    def __init__(self, connection: SchemaRegistryConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._schemas: OrderedDict[Any, RegisteredSchema] = OrderedDict()
        self._numbers: OrderedDict[Any, int] = OrderedDict()

    def schema(self, number: int) -> RegisteredSchema:
        with self._lock:
            if (known := self._schemas.get(number)) is not None:
                return known
        where = self._connection.where
        # It is part of the address that is asked, and a task may run anybody's code.
        if type(number) is not int or not 0 <= number <= NUMBER_MAX:
            raise SchemaRegistryError(f"{where} has no schema {str(number)[:QUOTED]}.")
        status, answer = self._asked("GET", f"/schemas/ids/{number}")
        if status == 404 and answer.get("error_code") == _NO_SCHEMA:
            raise SchemaRegistryError(f"{where} has no schema {number}.")
        text = answer.get("schema")
        if status != 200 or not isinstance(text, str):
            raise self._odd(status)
        found = RegisteredSchema(str(answer.get("schemaType", AVRO)), text, bool(answer.get("references")))
        with self._lock:
            _keep(self._schemas, number, found)
        return found

    def number(self, subject: str, schema: str) -> int:
        with self._lock:
            if (known := self._numbers.get((subject, schema))) is not None:
                return known
        where = self._connection.where
        path = f"/subjects/{quote(subject, safe='')}/versions"
        status, answer = self._asked("POST", path, {"schema": schema})
        if status in (409, 422):
            said = " ".join(str(answer.get("message", ""))[:QUOTED].split())
            raise SchemaRegistryError(
                f"{where} does not take the schema for the subject {subject}. It says: {said}"
            )
        number = answer.get("id")
        if status != 200 or not isinstance(number, int) or not 0 <= number <= NUMBER_MAX:
            raise self._odd(status)
        with self._lock:
            _keep(self._numbers, (subject, schema), number)
        return number

    def _asked(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Returns the status and the answer, which is empty if it is no object of JSON."""
        try:
            answer = asked(self._connection, method, path, body)
        except ConnectorError as error:
            raise SchemaRegistryError(str(error)) from error
        found = _json(answer)
        return answer.status, found if isinstance(found, dict) else {}

    def _odd(self, status: int) -> SchemaRegistryError:
        return SchemaRegistryError(str(_odd(self._connection, status)))


def asked(
    connection: SchemaRegistryConnection,
    method: str,
    path: str,
    body: Any = None,
    bytes_max: int = ANSWER_BYTES_MAX,
) -> Answer:
    """Returns the answer. Raises ConnectorError, also if the registry refuses the login."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if content is not None:
        headers["Content-Type"] = "application/vnd.schemaregistry.v1+json"
    server = Server(connection, ANSWER_S)
    try:
        answer = within(ANSWER_S, lambda: server.ask(method, path, content, headers, bytes_max))
    except KafkaTimeoutError as error:
        raise ConnectorError(f"{connection.where} does not answer within {ANSWER_S:g} s.") from error
    finally:
        server.close()  # which also ends what goes on behind the time
    if answer.status in (401, 403):
        raise ConnectorError(
            f"{connection.where} refuses the login of the connection ({answer.status}). An admin checks the"
            " user name and the password, or the token.",
            lasting=True,
        )
    if not answer.whole:
        raise ConnectorError(f"{connection.where} answers too much.")
    return answer


def probe(connection: SchemaRegistryConnection, path: str) -> Probed:
    """Tells how many subjects the registry has, and shows the first ones."""
    answer = asked(connection, "GET", "/subjects", bytes_max=SUBJECTS_BYTES_MAX)
    found = _json(answer)
    if answer.status != 200 or not isinstance(found, list):
        raise _odd(connection, answer.status)
    count = f"{len(found):,} {'subject' if len(found) == 1 else 'subjects'}"
    rows = tuple({"subject": str(each)[:QUOTED]} for each in found[:ROWS_SHOWN])
    return Probed(f"Connected. The registry has {count}.", rows)


def _odd(connection: SchemaRegistryConnection, status: int) -> ConnectorError:
    """Returns the error of an answer that no registry gives."""
    what = "as no schema registry does" if status == 200 else str(status)
    return ConnectorError(f"{connection.where} answers {what}. Check the address of the connection.")


def _json(answer: Answer) -> Any:
    """Returns the answer's content, or None if it is no JSON."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        return None


def _keep(kept: OrderedDict[Any, Any], key: Any, found: Any) -> None:
    kept[key] = found
    if len(kept) > KEPT_MAX:
        kept.popitem(last=False)
