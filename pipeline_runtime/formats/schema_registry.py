"""A schema registry that speaks Confluent's protocol: schemas by their number, and numbers of schemas."""

from __future__ import annotations

import json
import socket
import threading
from collections import OrderedDict
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from pipeline_runtime.formats.avro_schema import AvroSchema, SchemaInvalid, avro_schema
from pipeline_runtime.formats.malformed import Malformed
from pipeline_runtime.kafka.clients import KafkaTimeoutError, within

if TYPE_CHECKING:
    import httpx

ANSWER_S = 4.0
"""How long a whole answer may take."""
ANSWER_BYTES_MAX = 1 << 20
SCHEMAS_MAX = 256
"""How many schemas a process keeps of one registry."""
UNKNOWN_S = 30.0
"""For so long nobody asks again for a number that the registry does not have."""
PREFIX_BYTES = 5
"""A zero, and four bytes that number the schema."""
_NO_SCHEMA = 40403
"""How a registry's 404 says that it has no such schema. A server that is no registry says 404 as well."""
_METADATA = (ip_address("fd00:ec2::254"), ip_address("100.100.100.200"))
_DONE, _NOT_FOUND, _CONFLICT, _UNPROCESSABLE = 200, 404, 409, 422


def has_prefix(value: bytes) -> bool:
    return len(value) >= PREFIX_BYTES and value[0] == 0


def prefix(number: int) -> bytes:
    return b"\0" + number.to_bytes(PREFIX_BYTES - 1)


class SchemaRegistryError(RuntimeError):
    """The registry does not answer, or does not take a schema. Whoever needs it has to wait."""


class SchemaRegistry:
    """Safe for threads."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._lock = threading.Lock()
        self._schemas: OrderedDict[int, AvroSchema] = OrderedDict()
        self._unknown: OrderedDict[int, tuple[float, str]] = OrderedDict()
        self._numbers: dict[tuple[str, str], int] = {}

    def split(self, value: bytes) -> tuple[AvroSchema, bytes]:
        """Returns the schema that a record was written by, and what stands behind its number. Raises
        Malformed, SchemaRegistryError."""
        if not has_prefix(value):
            raise Malformed(
                "the record does not begin with a schema registry's prefix: a zero, and the schema's number"
            )
        return self.schema(int.from_bytes(value[1:PREFIX_BYTES])), value[PREFIX_BYTES:]

    def schema(self, number: int) -> AvroSchema:
        """Raises Malformed if the registry has no Avro schema of this number, and SchemaRegistryError."""
        with self._lock:
            if (found := self._schemas.get(number)) is not None:
                self._schemas.move_to_end(number)
                return found
            asked_s, why = self._unknown.get(number, (0.0, ""))
            if why and monotonic() - asked_s < UNKNOWN_S:
                raise Malformed(why)
        try:
            found = self._asked(number)
        except Malformed as error:
            with self._lock:
                _keep(self._unknown, number, (monotonic(), str(error)))
            raise
        with self._lock:
            _keep(self._schemas, number, found)
        return found

    def _asked(self, number: int) -> AvroSchema:
        status, answer = self._answer("GET", f"/schemas/ids/{number}")
        if status == _NOT_FOUND and answer.get("error_code") == _NO_SCHEMA:
            raise Malformed(f"the schema registry {self._url} has no schema {number}")
        self._expect(status)
        if answer.get("schemaType", "AVRO") != "AVRO":
            raise Malformed(f"the schema {number} is no Avro schema ({answer['schemaType']})")
        if answer.get("references"):
            raise Malformed(f"the schema {number} refers to other schemas, which is not read")
        text = answer.get("schema")
        if not isinstance(text, str):
            raise self._is_none()
        try:
            return avro_schema(text)
        except SchemaInvalid as error:
            raise Malformed(f"the schema {number} cannot be used: {error}") from error

    def number(self, subject: str, text: str) -> int:
        """Returns the number of a schema under a subject, where it is registered if it is new. Raises
        SchemaRegistryError."""
        with self._lock:
            if (known := self._numbers.get((subject, text))) is not None:
                return known
        path = f"/subjects/{quote(subject, safe='')}/versions"
        status, answer = self._answer("POST", path, {"schema": text})
        if status in (_CONFLICT, _UNPROCESSABLE):
            raise SchemaRegistryError(
                f"the schema registry {self._url} does not take the schema of {subject}:"
                f" {str(answer.get('message'))[:500]}"
            )
        self._expect(status)
        try:
            found = int(answer["id"])
        except (KeyError, TypeError, ValueError) as error:
            raise self._is_none() from error
        with self._lock:
            self._numbers[subject, text] = found
        return found

    def _is_none(self) -> SchemaRegistryError:
        return SchemaRegistryError(f"{self._url} answers as no schema registry does")

    def _expect(self, status: int) -> None:
        if status != _DONE:
            raise SchemaRegistryError(f"the schema registry {self._url} answers {status}")

    def _answer(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Returns the status and the answer, which is empty if it is no object of JSON."""
        import httpx  # most nodes need no registry

        client = httpx.Client(timeout=ANSWER_S, trust_env=False, headers={"Accept-Encoding": "identity"})
        try:
            status, content = within(ANSWER_S, lambda: self._content(client, method, path, body))
        except (httpx.HTTPError, httpx.InvalidURL, KafkaTimeoutError, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise SchemaRegistryError(f"the schema registry {self._url} does not answer: {why}") from error
        finally:
            client.close()  # which also ends what goes on behind the time
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        return status, found if isinstance(found, dict) else {}

    def _content(self, client: httpx.Client, method: str, path: str, body: Any) -> tuple[int, bytes]:
        """Returns the status and the answer as it is sent: unpacked it could be of any size."""
        _check_host(self._url)
        content = b""
        with client.stream(method, self._url + path, json=body) as answer:
            for part in answer.iter_raw():
                content += part
                if len(content) > ANSWER_BYTES_MAX:
                    raise SchemaRegistryError(f"the schema registry {self._url} answers too much")
        return answer.status_code, content


def _check_host(url: str) -> None:
    """Raises SchemaRegistryError if the host is where clouds tell a machine its secrets. The address is what
    an editor writes, and the node asks."""
    for *_, address in socket.getaddrinfo(urlsplit(url).hostname, None, type=socket.SOCK_STREAM):
        found = ip_address(str(address[0]).partition("%")[0])
        mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
        if (mapped or found).is_link_local or found in _METADATA:
            raise SchemaRegistryError(f"{url} is a link-local or metadata address: nothing is asked there")


def _keep(kept: OrderedDict[int, Any], number: int, found: Any) -> None:
    kept[number] = found
    kept.move_to_end(number)
    if len(kept) > SCHEMAS_MAX:
        kept.popitem(last=False)


@lru_cache(maxsize=64)
def registry_at(url: str) -> SchemaRegistry:
    """Returns the one of this process."""
    return SchemaRegistry(url)
