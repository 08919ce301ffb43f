"""A MapState of text by key that is asked for many keys at once.

PySpark asks Spark's state server for one key and waits for the answer, twice for each key of a batch. The
server answers one request after the other on one connection, so here many are on their way. That takes
PySpark's own client apart: its messages, its socket, its encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyspark.sql.streaming.proto.StateMessage_pb2 as messages
from pyspark.serializers import write_int
from pyspark.sql.streaming.stateful_processor import MapState
from pyspark.sql.types import StringType, StructField, StructType

# As types: a schema that is a text costs a request to have it parsed.
KEY_SCHEMA = StructType([StructField("key", StringType())])
TEXT_SCHEMA = StructType([StructField("text", StringType())])

# The server reads no request while it cannot write an answer. What is on its way must fit into the
# socket's buffers (64 KiB and more), or both sides would wait for each other.
_REQUESTS_MAX = 64
_BYTES_MAX = 32 * 1024


class TextMap:
    def __init__(self, state: MapState) -> None:
        """`state`: of KEY_SCHEMA and TEXT_SCHEMA."""
        self._name = state._stateName
        self._client = state._mapStateClient._stateful_processor_api_client

    def get(self, keys: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        """Each key with its text; None: it has none."""
        asked = list(keys)
        calls = (messages.MapStateCall(getValue=messages.GetValue(userKey=self._bytes(key))) for key in asked)
        for key, answer in zip(asked, self._ask(calls), strict=True):
            yield key, self._client._deserialize_from_bytes(answer)[0] if answer else None

    def put(self, texts: Iterable[tuple[str, str]]) -> None:
        calls = (
            messages.MapStateCall(
                updateValue=messages.UpdateValue(userKey=self._bytes(key), value=self._bytes(text))
            )
            for key, text in texts
        )
        for _ in self._ask(calls):
            pass

    def _ask(self, calls: Iterable[Any]) -> Iterator[bytes]:
        """The answers, in the order of the calls. Raises RuntimeError when Spark refuses one."""
        waiting = size = 0
        for call in calls:
            call.stateName = self._name
            request = messages.StateRequest(
                stateVariableRequest=messages.StateVariableRequest(mapStateCall=call)
            ).SerializeToString()
            if waiting and (waiting == _REQUESTS_MAX or size + len(request) > _BYTES_MAX):
                yield from self._answers(waiting)
                waiting = size = 0
            self._send(request)
            waiting, size = waiting + 1, size + len(request)
        yield from self._answers(waiting)

    def _send(self, request: bytes) -> None:
        """As the client's own `_send_proto_message`, which would flush each."""
        out = self._client.sockfile
        write_int(0, out)
        write_int(len(request), out)
        out.write(request)

    def _answers(self, count: int) -> list[bytes]:
        self._client.sockfile.flush()
        answers = [self._client._receive_proto_message() for _ in range(count)]
        for status, error, _ in answers:
            if status != 0:
                raise RuntimeError(f"Spark's state server refused a request to {self._name}: {error}")
        return [value for _, _, value in answers]

    def _bytes(self, text: str) -> bytes:
        encoded: bytes = self._client._serialize_to_bytes(KEY_SCHEMA, (text,))
        return encoded
