"""The operator SDK: what a palette element's code looks like.

An operator is a class: typed parameters (pydantic), ports, an output schema, and one body:

- `TransformOperator.arrow`: a batch's rows as Arrow tables in, one table out, without state;
- `DataFrameOperator.transform`: Spark DataFrames in, one DataFrame out (stateless, or Spark's own state);
- `KeyedProcessor.process`: one row at a time with the state of its key;
- `BatchProcessor.process_batch`: a batch's rows at once, as Arrow columns, with states by key;
- `SourceOperator.open`: rows from outside, addressed by a position that can be read again;
- `SinkOperator.open`: rows to outside, written once per Seq;
- `ViewOperator`: no body; the dashboard itself shows its input.

Frames that an operator is given hold the data columns of the stream's schema and these, all of
which a TransformOperator may use and of which it must hand on `_time`:

| column | type | |
|---|---|---|
| `_key` | string | the record's key |
| `_time` | timestamp | event time |
| `_batch_time` | timestamp | the batch's time, from the journal: the only clock there is |
| `_partition` | int | where the row came from: |
| `_offset` | long | rows are ordered by it within a partition |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import Follow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Category = Literal["sources", "transform", "state", "join", "alert", "sinks"]
Position = dict[str, Any]
"""Where a source stands: JSON, and all that it needs to read on from there."""


class Params(BaseModel):
    """Base of every operator's parameters: unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


ParamsClass = type[Params]


@dataclass(frozen=True)
class Port:
    name: str
    description: str = ""
    optional: bool = False  # an input that may stay unconnected


class SchemaMismatch(ValueError):
    """The inputs or parameters do not fit. `path` is where, e.g. `params.column` or `inputs.in`.

    `more` are further faults of the same element, so that the user is told of all at once.
    """

    def __init__(self, path: str, message: str, more: tuple[SchemaMismatch, ...] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.more = more


class FileDescriber(Protocol):
    def __call__(self, reference: str) -> bytes:
        """The first bytes (64 KiB are enough) of the file behind `upload:<id>`, as it is stored; of a model,
        what `onnx_file.described` leaves of it.

        FileNotFoundError says that there is none, and what to do.
        """
        ...


class FileResolver(Protocol):
    def __call__(self, reference: str) -> Path:
        """The local file behind `demo:<name>` or `upload:<id>`; FileNotFoundError says what to do."""
        ...


ArrowTransform = Callable[[Mapping[str, "pa.Table"]], "pa.Table"]


@dataclass(frozen=True)
class OperatorContext:
    """What an operator may know of where it runs."""

    element: str
    output_schema: StreamSchema
    input_schemas: Mapping[str, StreamSchema]
    directory: Path  # the element's own, part of the group's checkpoint
    resolve_file: FileResolver


class Operator(ABC):
    """Subclasses: the docstring is the operator's documentation page."""

    type: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]  # one line, for the palette
    category: ClassVar[Category]
    icon: ClassVar[str]  # a lucide icon's name
    Params: ClassVar[ParamsClass]
    inputs: ClassVar[tuple[Port, ...]] = (Port("in"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("out"),)
    stateful: ClassVar[bool] = False
    follow: ClassVar[Follow] = "coalesced"
    # True: the operator keeps rows back until the watermark passes; it is then also given the
    # rows with `_flush` true that a finished input sends to close its windows.
    flushes: ClassVar[bool] = False
    # The parameters that shape its state, or what it has read or written outside: an upgrade in place may
    # change the others only. None: all of them, of an operator that keeps anything.
    state_params: ClassVar[frozenset[str] | None] = None
    # What its state holds, in words: what is lost when it has to begin without it.
    keeps: ClassVar[str] = "everything that it remembers of earlier rows"
    # of the Spark query: "append" emits a row once it is final, "update" at each change
    output_mode: ClassVar[Literal["append", "update"]] = "append"
    # "in": `params.topic` is a Kafka topic of the user's that feeds the element's port `out`;
    # "out": what the element gives goes to that topic
    external: ClassVar[Literal["in", "out"] | None] = None
    version: ClassVar[int] = 1  # raise it when the same input and parameters give another output
    example: ClassVar[dict[str, Any]] = {}  # parameters that work

    def __init__(self, params: Any, describe_file: FileDescriber | None = None) -> None:
        self.params = params
        self.describe_file = describe_file

    def files(self) -> tuple[str, ...]:
        """The file references in the parameters (`demo:...`, `upload:...`)."""
        return ()

    def resolve(self, inputs: Mapping[str, StreamSchema]) -> Any:
        """The parameters with all filled in that follows from the input schemas or from files; what a
        node is told is these, so it looks at nothing but them."""
        return self.params

    def follows(self, inputs: Mapping[str, StreamSchema]) -> Follow:
        """As `follow`, when it depends on parameters or input types."""
        return self.follow

    @classmethod
    def follow_depends(cls) -> bool:
        """Whether `follow` alone does not say it."""
        return cls.follows is not Operator.follows

    @abstractmethod
    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        """The schema of port `out`; raises SchemaMismatch. A sink returns its input's schema."""


class TransformOperator(Operator):
    """Rows to rows, without state: what comes of a row depends on nothing but the row."""

    @abstractmethod
    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        """A function from a batch's rows (one table for each connected port) to one table.

        It gives the data columns of the output schema, and hands on the columns that begin with `_`. How rows
        are cut into tables is open. A column `_reject` (string, optional) that is not null sends the row to
        the element's dead letters with that reason. `_raw` (string, optional) is then what is kept of it.
        """


class DataFrameOperator(Operator):
    """For users who write Spark. Spark plans each batch of a group that has one, so a batch costs some five
    times as much CPU as without (decision 30)."""

    @abstractmethod
    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        """Data columns of the output schema and `_time`; `_reject` and `_raw` as in `TransformOperator`."""


class Processor(Operator):
    """Runs in Python, with states that the replica keeps: one for each key, and each JSON."""

    stateful = True
    # Raise it when it keeps its states in another form, and have `migrate` make that of the one before.
    state_version: ClassVar[int] = 1

    def migrate(self, state: Any, version: int) -> Any:
        """The state of a key as this version keeps it, of one that was kept as `version`, an earlier one. It
        is asked for each key when that is used next. What it raises stops the element: nothing is lost."""
        raise NotImplementedError(
            f"no state of version {version} can be read by version {self.state_version}"
        )

    def readable_key(self, key: str) -> str:
        """A key of its states for who looks at them, where it is not made to be read as it is."""
        return key

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        """What it keeps of a key, likewise: JSON. `inputs`: as for `output_schema`."""
        return state


class KeyedProcessor(Processor):
    """Event by event, per key, in offset order, with state and event-time timers."""

    follow: ClassVar[Follow] = "coalesced"

    @abstractmethod
    def key_field(self) -> str | None:
        """The field to group by; None: the record's key."""

    @abstractmethod
    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        """Change `state` (JSON) in place and yield output rows.

        `row` holds the data columns and `_time` (a datetime). What this raises sends the row to the
        dead letters and undoes the row's changes to `state` and `timers`.
        """

    def process_other(
        self, port: str, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        """As `process`, for a row of another input than the first. Which input's rows come first is open:
        what comes of them, and the state, must not depend on it."""
        raise NotImplementedError(f"{self.type} does not say what it does with a row of its input {port}")

    def on_timer(
        self, key: str, time_ms: int, state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        return ()


class Timers(Protocol):
    """Event-time timers of one key; they fire when a row of that key has reached their time."""

    def set(self, time_ms: int) -> None: ...
    def cancel(self, time_ms: int) -> None: ...


class BatchProcessor(Processor):
    """Batch by batch, all keys at once: for what NumPy or Arrow does to many rows faster than Python to each.

    How rows are cut into batches is open: say by `follow` whether its states depend on it."""

    follow: ClassVar[Follow] = "exact"

    @abstractmethod
    def process_batch(
        self, inputs: Mapping[str, pa.Table], states: States, ctx: OperatorContext, *, at_end: bool
    ) -> pa.Table:
        """Data columns of the output schema and `_time`, in the order in which the rows leave.

        `inputs`: of each connected port the rows, in offset order: the data columns, `_key`, `_time`
        (timestamp us UTC, may be null), `_partition` and `_offset`. Any may be without rows. `at_end`: no
        more rows will come, so nothing is to be kept back; only asked of an operator that `flushes`, and
        perhaps twice. What it raises stops the element: a batch comes whole, or not at all. Rows with
        `_reject` and `_raw` (tables.rejects) go to the dead letters, and need nothing else.
        """


class States(Protocol):
    """What a BatchProcessor keeps: a JSON value for each key. It reads what earlier batches have left; what
    it puts is kept with this one."""

    def get(self, keys: Sequence[str | None]) -> list[Any]:
        """Of each key in turn; None: nothing is kept. The key None is the element's own, beside others."""
        ...

    def between(self, first: str, end: str) -> dict[str, Any]:
        """The keys from `first` to before `end` with what is kept of them, in the order of their UTF-8."""
        ...

    def keys(self, first: str, end: str, most: int) -> list[str]:
        """Likewise the first `most` of them, without what is kept."""
        ...

    def put(self, key: str | None, value: Any) -> None:
        """None: nothing is kept any more."""
        ...


class SourceReader(ABC):
    """Reads an outside source. Pure in its positions: the same two give the same rows, anywhere."""

    @abstractmethod
    def initial(self, now_ms: int) -> Position: ...

    @abstractmethod
    def advance(self, start: Position, now_ms: int, rows_max: int) -> Position:
        """The furthest position that may be read now; `start` itself when there is nothing."""

    @abstractmethod
    def read(self, start: Position, end: Position) -> Iterator[pa.RecordBatch]:
        """Rows with the data columns, `_time` (timestamp us UTC) and `_offset` (int64, rising)."""

    @abstractmethod
    def rows_between(self, start: Position, end: Position) -> int: ...

    def ended(self, position: Position) -> bool:
        return False

    def pause_shift(self, position: Position, paused_ms: int) -> Position:
        """The position after a pause: a replayed recording moves its clock, a live source does not."""
        return position


class SourceOperator(Operator):
    inputs: ClassVar[tuple[Port, ...]] = ()

    @abstractmethod
    def open(self, ctx: OperatorContext) -> SourceReader: ...


class SinkWriter(ABC):
    """Writes to outside once per Seq, whatever happens in between."""

    @abstractmethod
    def restore(self, mark: Any) -> None:
        """Undo all that was written after `mark`, which `write` returned (None: write nothing yet)."""

    @abstractmethod
    def write(self, rows: pa.Table, seq: int) -> Any:
        """Write durably, return a mark (JSON) that goes into COMMIT. `rows`: data columns, `_time`."""

    def lengths(self, mark: Any) -> Mapping[str, int]:
        """The files of `ctx.directory` to whose end alone it writes: name -> bytes that belong to `mark`
        (None: as for `restore`). A checkpoint takes no more than these, and reads only what is new. Files
        that are not named are read whole each time."""
        return {}

    def close(self) -> None:
        return None


class SinkOperator(Operator):
    outputs: ClassVar[tuple[Port, ...]] = ()

    @abstractmethod
    def open(self, ctx: OperatorContext) -> SinkWriter: ...


class ViewOperator(Operator):
    """Shown by the dashboard from its input's topic; no node runs anything for it."""

    outputs: ClassVar[tuple[Port, ...]] = ()
