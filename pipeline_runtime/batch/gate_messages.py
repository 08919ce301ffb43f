"""The messages between Spark's Python processes and a replica's gate.

A request is a frozen dataclass; `Request[A]` is answered by an `A`. On the wire each request and each answer
is a message: how many bytes it has, in four bytes, and these bytes, which are MessagePack. In JSON's words:

    {"ask": "StatesOf", "keeper": "p.g@1", "keys": ["a", "b"], "task": 0}
    {"value": [<bytes>, null]}      or      {"error": "..."}

The bytes of a `payload` follow their request, which says how many there are. No message and no payload is
longer than MESSAGE_BYTES_MAX.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Generic, Protocol, Self, TypeVar, cast

import msgspec

from pipeline_runtime.formats.schema_registry import RegisteredSchema, Registry, SchemaRegistryError

MESSAGE_BYTES_MAX = 1 << 30
_SIZE_BYTES = 4
_BUFFER_BYTES = 1 << 16  # with Python's default a message of 100 KB takes twice as long to read

FLUSH = -1
"""Stands in place of an input: the slice is one flush row for every input."""
TICK = -2
"""Stands in place of an input: the slice has no rows, and only says when the batch began."""

A_co = TypeVar("A_co", covariant=True)
Payload = bytes | memoryview


class NotUnderstood(ValueError):
    """A message that is too long, or that is none."""


# -- what they speak of ------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupDescription:
    """The group that the gate is for, and what its tasks need to run it."""

    spec: dict[str, Any]  # GroupSpec as JSON
    kafka: dict[str, Any]  # KafkaSettings
    files: dict[str, str]  # file reference -> path on this machine
    directory: str  # the replica's


@dataclass(frozen=True)
class TaskPart:
    """One of the tasks that process a batch."""

    token: int
    task: int


@dataclass(frozen=True)
class Slice:
    """What one task reads of one input partition for a batch. A batch has any number of them."""

    input: int  # index into group_inputs, FLUSH or TICK
    batch_time_ms: int
    partition: int = 0
    start: Any = None  # an offset, or a source's position
    end: Any = None
    records: list[list[Any]] | None = (
        None  # a topic's rows (kafka.ahead.pack), if the gate has read them ahead
    )
    topic_id: str = ""  # of the topic in which the offsets lie, if that is known
    followed: bool = False  # the batch was committed before: what it makes is only checked


@dataclass(frozen=True)
class Reject:
    """An input record that cannot be read."""

    offset: int
    raw: str
    reason: str
    key: str | None = None
    time_ms: int | None = None  # of the record, as its topic has it


# -- what is asked -----------------------------------------------------------------------------------


class GateKeeper(Protocol):
    """What answers for one group: one method for each request."""

    def describe(self) -> GroupDescription: ...

    def first_token(self) -> int: ...

    def next_token(self, done: int) -> int: ...

    def tasks_of(self, token: int) -> list[TaskPart]: ...

    def slices_of(self, token: int, task: int) -> list[Slice] | None: ...

    def slice_read(self, read: SliceRead) -> None: ...

    def part_processed(self, task: int, payload: Payload) -> None: ...

    def states_of(self, keys: Sequence[str | None], task: int) -> list[bytes | None]: ...

    def states_between(self, first: str, end: str) -> list[tuple[str, bytes]]: ...

    def keys_between(self, first: str, end: str, most: int) -> list[str]: ...

    def keep_states(self, kept: KeepStates) -> None: ...

    def registry(self, name: str) -> Registry:
        """Returns the schema registry that a connection leads to. Raises SchemaRegistryError."""
        ...

    def record_waits(self, waits: RecordWaits) -> None: ...


class Request(Generic[A_co]):
    """Subclasses are frozen dataclasses whose fields MessagePack can say. A `payload` of bytes follows
    them."""

    def answered_by(self, keeper: GateKeeper) -> A_co:
        raise NotImplementedError

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """The request, made of what has come over the wire."""
        return cls(**fields)

    @staticmethod
    def answer_from(value: Any) -> Any:
        """The answer, made of what has come over the wire."""
        return value


@dataclass(frozen=True)
class Describe(Request[GroupDescription]):
    def answered_by(self, keeper: GateKeeper) -> GroupDescription:
        return keeper.describe()

    @staticmethod
    def answer_from(value: Any) -> GroupDescription:
        return GroupDescription(**value)


@dataclass(frozen=True)
class FirstToken(Request[int]):
    """The token before the first batch of a new query."""

    def answered_by(self, keeper: GateKeeper) -> int:
        return keeper.first_token()


@dataclass(frozen=True)
class NextToken(Request[int]):
    """The token of the batch behind the one of token `done`; `done` itself if the query is to end."""

    done: int

    def answered_by(self, keeper: GateKeeper) -> int:
        return keeper.next_token(self.done)


@dataclass(frozen=True)
class TasksOf(Request[list[TaskPart]]):
    """The tasks that are to process the batch."""

    token: int

    def answered_by(self, keeper: GateKeeper) -> list[TaskPart]:
        return keeper.tasks_of(self.token)

    @staticmethod
    def answer_from(value: Any) -> list[TaskPart]:
        return [TaskPart(**part) for part in value]


@dataclass(frozen=True)
class SlicesOf(Request[list[Slice] | None]):
    """What the task reads, once that is decided; None if the task is to end."""

    token: int
    task: int

    def answered_by(self, keeper: GateKeeper) -> list[Slice] | None:
        return keeper.slices_of(self.token, self.task)

    @staticmethod
    def answer_from(value: Any) -> list[Slice] | None:
        return None if value is None else [Slice(**part) for part in value]


@dataclass(frozen=True)
class SliceRead(Request[None]):
    """A task has read its slice: what of it is not in the rows, and is committed with them."""

    input: int
    partition: int
    rows: int
    size: int  # in bytes, of the values as they lie in a topic, unpacked; 0 of a source operator's rows
    rejects: Sequence[Reject]
    ended: bool  # the partition says that nothing follows
    seen: Sequence[str] = ()  # of a user's own topic: the columns that have a value in a row
    newest_ms: int | None = None  # of a user's own topic: the newest event time of a row
    arrived_ms: int = 0  # when the slice's rows count as arrived: the time of their batch

    def answered_by(self, keeper: GateKeeper) -> None:
        keeper.slice_read(self)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        return cls(**{**fields, "rejects": [Reject(**item) for item in fields["rejects"]]})


@dataclass(frozen=True)
class PartProcessed(Request[None]):
    """A task that stays has processed its part; answered when the next batch may be asked for."""

    task: int
    payload: Payload  # its rows, as batch.group.packed makes them

    def answered_by(self, keeper: GateKeeper) -> None:
        keeper.part_processed(self.task, self.payload)


@dataclass(frozen=True)
class StatesOf(Request[list[bytes | None]]):
    """What the batch before has left of these keys, for a task that has rows of them. The key None
    stands for the element as a whole; a state is None if there is none."""

    keys: Sequence[str | None]
    task: int

    def answered_by(self, keeper: GateKeeper) -> list[bytes | None]:
        return keeper.states_of(self.keys, self.task)


@dataclass(frozen=True)
class StatesBetween(Request[list[tuple[str, bytes]]]):
    """The keys from `first` to before `end` in their order, each with its state."""

    first: str
    end: str

    def answered_by(self, keeper: GateKeeper) -> list[tuple[str, bytes]]:
        return keeper.states_between(self.first, self.end)


@dataclass(frozen=True)
class KeysBetween(Request[list[str]]):
    """The first `most` keys from `first` to before `end`, in their order."""

    first: str
    end: str
    most: int

    def answered_by(self, keeper: GateKeeper) -> list[str]:
        return keeper.keys_between(self.first, self.end, self.most)


@dataclass(frozen=True)
class KeepStates(Request[None]):
    """What the running batch leaves of these keys, once it is committed. It names each key once."""

    keys: Sequence[str | None]
    states: Sequence[bytes | None]  # None drops a key's state
    sizes: Sequence[
        int | None
    ]  # bytes of what is replaced; -1 if that is nothing, None if the task has not read it
    task: int
    left: Sequence[str | None] = ()  # the keys whose states the task does not hold any more

    def answered_by(self, keeper: GateKeeper) -> None:
        keeper.keep_states(self)


@dataclass(frozen=True)
class SchemaOf(Request[RegisteredSchema | str]):
    """The schema that a registry has under a number, or why it is not known. `registry`: its connection."""

    registry: str
    number: int

    def answered_by(self, keeper: GateKeeper) -> RegisteredSchema | str:
        try:
            return keeper.registry(self.registry).schema(self.number)
        except SchemaRegistryError as error:
            return str(error)

    @staticmethod
    def answer_from(value: Any) -> RegisteredSchema | str:
        return value if isinstance(value, str) else RegisteredSchema(**value)


@dataclass(frozen=True)
class NumberOf(Request[int | str]):
    """The number of an Avro schema under a subject, where it is registered if it is new, or why there is
    none."""

    registry: str
    subject: str
    schema: str

    def answered_by(self, keeper: GateKeeper) -> int | str:
        try:
            return keeper.registry(self.registry).number(self.subject, self.schema)
        except SchemaRegistryError as error:
            return str(error)


@dataclass(frozen=True)
class RecordWaits(Request[None]):
    """The first record that a batch cannot read, since the registry has not told its schema."""

    topic: str
    partition: int
    offset: int
    registry: str  # two inputs may read one topic by two registries
    number: int  # of the schema

    def answered_by(self, keeper: GateKeeper) -> None:
        keeper.record_waits(self)


_REQUESTS: dict[str, type[Request[Any]]] = {kind.__name__: kind for kind in Request.__subclasses__()}

# -- on the wire -------------------------------------------------------------------------------------


class Wire:
    """One connection's messages. For one thread at a time, on either side."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reads = cast(IO[bytes], connection.makefile("rb", _BUFFER_BYTES))
        self._writes = cast(IO[bytes], connection.makefile("wb"))

    def send(self, keeper: str, request: Request[Any]) -> None:
        """Send the request to that keeper. Raises NotUnderstood if it is too long, before anything is
        sent."""
        fields = {"ask": type(request).__name__, "keeper": keeper, **vars(request)}
        payload = fields.get("payload")
        if payload is not None:
            fields["payload"] = _checked(len(payload))
        self._write(fields)
        if payload is not None:
            self._writes.write(payload)
        self._writes.flush()

    def answer_to(self, request: Request[A_co]) -> A_co:
        """Wait for the answer to the request that was sent. Raises EOFError if the gate has hung up, and
        RuntimeError with the gate's words if it could not answer."""
        answer = self._read()
        if answer is None:
            raise EOFError
        if "error" in answer:
            raise RuntimeError(answer["error"])
        made: A_co = request.answer_from(answer["value"])
        return made

    def read_request(self) -> tuple[str, Request[Any]] | None:
        """Returns the keeper's name and the request, or None if the other side has hung up. Raises
        NotUnderstood."""
        fields = self._read()
        if fields is None:
            return None
        if "payload" in fields:
            size = _checked(fields["payload"])
            fields["payload"] = self._reads.read(size)
            if len(fields["payload"]) < size:
                return None
        try:
            kind, keeper = _REQUESTS[fields.pop("ask")], fields.pop("keeper")
            return keeper, kind.from_fields(fields)
        except (KeyError, TypeError) as error:
            raise NotUnderstood(f"no request: {type(error).__name__}: {error}") from error

    def write_answer(self, answer: Any) -> None:
        """Raises NotUnderstood if it is too long, before anything is sent."""
        self._write({"value": answer})
        self._writes.flush()

    def write_error(self, text: str) -> None:
        self._write({"error": text})
        self._writes.flush()

    def close(self) -> None:
        """Raises OSError if what was written cannot be sent any more."""
        self._reads.close()
        self._writes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, data: dict[str, Any]) -> None:
        message = _encode(data)
        self._writes.write(_checked(len(message)).to_bytes(_SIZE_BYTES, "big"))
        self._writes.write(message)

    def _read(self) -> dict[str, Any] | None:
        head = self._reads.read(_SIZE_BYTES)
        if len(head) < _SIZE_BYTES:
            return None
        size = _checked(int.from_bytes(head, "big"))
        message = self._reads.read(size)
        if len(message) < size:
            return None
        try:
            return _decode(message)
        except msgspec.DecodeError as error:
            raise NotUnderstood(f"no message: {error}") from error


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode


def _checked(size: int) -> int:
    if size > MESSAGE_BYTES_MAX:
        raise NotUnderstood(f"a message of the gate has more than {MESSAGE_BYTES_MAX >> 20} MiB")
    return size
