"""The operator SDK: the base classes of operators.

An operator is a class with typed parameters (pydantic), ports, an output schema, and one body. Choose the
base class by the body that you need:

- `TransformOperator.arrow` turns a batch's rows into other rows, as Arrow tables, without state.
- `DataFrameOperator.transform` turns Spark DataFrames into one DataFrame, without state or with Spark's own.
- `KeyedProcessor.process` takes one row at a time, with the state of its key.
- `BatchProcessor.process_batch` takes a batch's rows at once as Arrow columns, with states by key.
- `SourceOperator.open` reads rows from outside, from a position from which it can read them again.
- `SinkOperator.open` writes rows to outside, once per Seq.
- `ViewOperator` has no body: the dashboard itself shows its input.

The rows that an operator gets have the data columns of the stream's schema and the columns below. A
TransformOperator may use all of these, and has to pass on all of them.

| column | type | |
|---|---|---|
| `_key` | string | the record's key |
| `_time` | timestamp | event time |
| `_batch_time` | timestamp | the batch's time, from the journal: the only clock that an operator may use |
| `_partition` | int | a number for the partition that the row came from; no two streams share one |
| `_offset` | long | orders the rows of a partition |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from pipeline_runtime.model.faults import Instead
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import Follow
from pipeline_runtime.operators.lineage import Came, TracedRow, may_be_all
from pipeline_runtime.operators.row import OutputRow as OutputRow, Row as Row  # operators take them from here

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Category = Literal["sources", "transform", "state", "join", "alert", "sinks"]
OtherColumns = Literal["none", "more", "any"]
Position = dict[str, Any]
"""A source's position, as JSON. It holds everything that the source needs to read on from there."""


class Params(BaseModel):
    """The base of every operator's parameters. Unknown names are errors."""

    # The fields of a connection are Params too: no error may quote a password.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


ParamsClass = type[Params]


@dataclass(frozen=True)
class Port:
    """An input or output of an operator."""

    name: str
    description: str = ""
    optional: bool = False  # an input that need not be connected


class SchemaMismatch(ValueError):
    """The inputs or parameters do not fit. `path` says where, e.g. `params.column` or `inputs.in`.

    `more` holds further faults of the same element, so that the user is told all of them at once. `instead`
    holds what would do in place of the parameter at `path`.
    """

    def __init__(
        self,
        path: str,
        message: str,
        more: tuple[SchemaMismatch, ...] = (),
        instead: tuple[Instead, ...] = (),
    ) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.more = more
        self.instead = instead


class FileDescriber(Protocol):
    def __call__(self, reference: str) -> bytes:
        """Returns the first bytes of the file behind `upload:<id>`, as it is stored; 64 KiB are enough. For a
        model, returns what `onnx_file.described` leaves of it.

        Raises FileNotFoundError if there is no such file. Its message says what to do.
        """
        ...


class FileResolver(Protocol):
    def __call__(self, reference: str) -> Path:
        """Returns the local file behind `demo:<name>` or `upload:<id>`. Raises FileNotFoundError, whose
        message says what to do."""
        ...


ArrowTransform = Callable[[Mapping[str, "pa.Table"]], "pa.Table"]


@dataclass(frozen=True)
class OperatorContext:
    """What an operator may know about the place where it runs."""

    element: str
    output_schema: StreamSchema
    input_schemas: Mapping[str, StreamSchema]
    directory: Path  # the element's own directory, which is part of the group's checkpoint
    resolve_file: FileResolver


class Operator(ABC):
    """The base of all operators. A subclass's docstring is the operator's documentation page."""

    type: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]  # one line, for the palette
    category: ClassVar[Category]
    icon: ClassVar[str]  # the name of a lucide icon
    Params: ClassVar[ParamsClass]
    inputs: ClassVar[tuple[Port, ...]] = (Port("in"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("out"),)
    stateful: ClassVar[bool] = False
    follow: ClassVar[Follow] = "coalesced"
    # The operator keeps rows back until the watermark passes. When its input has ended, it also gets rows
    # with `_flush` true, which close its windows.
    flushes: ClassVar[bool] = False
    # The parameters that shape its state, or what it has read or written outside. An upgrade in place may
    # change only the others. None means all parameters, if the operator keeps anything.
    state_params: ClassVar[frozenset[str] | None] = None
    # Which other columns its input may have in an upgrade, although it keeps something: "more" for one whose
    # state holds nothing of columns that its parameters do not name.
    other_columns: ClassVar[OtherColumns] = "none"
    # What its state holds, in words. Users read it as what they lose when the element has to begin without
    # its state.
    keeps: ClassVar[str] = "everything that it remembers of earlier rows"
    # "append" emits a row once it is final, "update" emits it at each change.
    output_mode: ClassVar[Literal["append", "update"]] = "append"
    # "in": the user's Kafka topic `params.topic` feeds the element's port `out`. "out": the element's output
    # goes to that topic.
    external: ClassVar[Literal["in", "out"] | None] = None
    # How often a row of outside comes in, or goes out, when something fails. The editor says it.
    delivery: ClassVar[Literal["exactly once", "at least once"]] = "exactly once"
    # Why, in one line; of a connector. The editor marks its card by these two.
    delivery_why: ClassVar[str] = ""
    # How many of the things that a system has a user may tick for the element (`ConnectedOperator.taken`).
    ticks: ClassVar[Literal["none", "one", "many"]] = "none"
    # The parameter that says where a look into the system begins; empty: at the whole system.
    browsed_from: ClassVar[str] = ""
    version: ClassVar[int] = 1  # raise it when the same input and parameters give other output
    example: ClassVar[dict[str, Any]] = {}  # parameters that work

    def __init__(self, params: Any, describe_file: FileDescriber | None = None) -> None:
        self.params = params
        self.describe_file = describe_file

    def files(self) -> tuple[str, ...]:
        """Returns the file references in the parameters (`demo:...`, `upload:...`)."""
        return ()

    def resolve(self, inputs: Mapping[str, StreamSchema]) -> Any:
        """Returns the parameters, completed by everything that follows from the input schemas or from files.
        A node gets these parameters and looks at nothing else."""
        return self.params

    def follows(self, inputs: Mapping[str, StreamSchema]) -> Follow:
        """Returns `follow`, if that depends on parameters or input types."""
        return self.follow

    def ticks_s(self) -> float | None:
        """Returns how often a batch is to run although no row comes, in seconds, or None if that is not
        needed. A group with an operator that is written for Spark has no such batches."""
        return None

    @classmethod
    def follow_depends(cls) -> bool:
        """Returns whether the class attribute `follow` is not the whole answer."""
        return cls.follows is not Operator.follows

    @classmethod
    def columns_may_change(cls, params: Mapping[str, Any]) -> OtherColumns:
        """Returns `other_columns`, if that depends on parameters."""
        return cls.other_columns

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        """Returns for each connected input which rows the output row `made` came from (see lineage.py).

        Given to a new operator, those rows make that row again. Columns of `made` may be missing. Without
        this method, all rows up to the time of `made` may have been used.
        """
        return {port: Came(None, made.time_ms, may_be_all) for port in inputs}

    @abstractmethod
    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        """Returns the schema of port `out`; a sink returns its input's schema. Raises SchemaMismatch."""


class TransformOperator(Operator):
    """Turns rows into rows, without state. The result for a row depends only on the row."""

    @abstractmethod
    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        """Returns a function that turns a batch's rows (one table for each connected port) into one table.

        The result holds the data columns of the output schema, and passes on the columns that begin with `_`.
        Rows may be divided into tables in any way. With a string in the optional column `_reject`, a row goes
        to the element's dead letters with that reason. The optional column `_raw` (string) is then stored as
        its content.
        """


class DataFrameOperator(Operator):
    """The base of operators that a user writes for Spark. Spark plans each batch of a group with such an
    operator, so a batch takes some five times as much CPU as without one (decision 30)."""

    @abstractmethod
    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        """Returns the data columns of the output schema and `_time`, with `_reject` and `_raw` as in
        `TransformOperator`."""


class Processor(Operator):
    """Runs in Python, with states that the replica keeps. There is one state for each key. Each is
    made of numbers, texts, bytes, truth values, None, lists, and dicts of them."""

    stateful = True
    # Raise it when the operator stores its states in another form, and let `migrate` convert the former one.
    state_version: ClassVar[int] = 1

    def migrate(self, state: Any, version: int) -> Any:
        """Returns a key's state in this version's form, from one that was stored by the earlier version
        `version`.

        It is called for each key when that key is used next. An exception stops the element, and nothing is
        lost.
        """
        raise NotImplementedError(
            f"no state of version {version} can be read by version {self.state_version}"
        )

    def readable_key(self, key: str) -> str:
        """Returns a state's key for users, if the key itself is not meant to be read."""
        return key

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        """Returns a key's state for users, as JSON. `inputs` are those of `output_schema`."""
        return state


class KeyedProcessor(Processor):
    """Processes event by event, separately for each key, in the order of offsets, with state and event-time
    timers."""

    follow: ClassVar[Follow] = "coalesced"

    @abstractmethod
    def key_field(self) -> str | None:
        """Returns the field to group by, or None for the record's key."""

    @abstractmethod
    def process(
        self, key: str, row: Row, state: dict[str, Any], timers: Timers
    ) -> Iterable[OutputRow] | None:
        """Changes `state` in place. Returns or yields output rows: `row.plus(...)`, or the values of
        the output's fields by name.

        An output row has the event time of `row` if it does not say another as `_time`. An exception sends
        the row to the dead letters and undoes the row's changes to `state` and `timers`.
        """

    def process_other(
        self, port: str, key: str, row: Row, state: dict[str, Any], timers: Timers
    ) -> Iterable[OutputRow] | None:
        """Processes a row of an input other than the first, as `process` does for the first. The output and
        the state must not depend on which input's rows come first."""
        raise NotImplementedError(f"{self.type} does not say what it does with a row of its input {port}")

    def on_timer(
        self, key: str, time_ms: int, state: dict[str, Any], timers: Timers
    ) -> Iterable[OutputRow] | None:
        """Returns or yields output rows when a timer of this key has fired. `time_ms` is the time that was
        set, which the output rows have if they do not say another."""
        return None


class Timers(Protocol):
    """Event-time timers of one key. A timer fires when a row of that key has reached its time."""

    def set(self, time_ms: int) -> None:
        """Sets a timer. A second one for the same time changes nothing."""

    def cancel(self, time_ms: int) -> None:
        """Removes the timer, if there is one for that time."""


class BatchProcessor(Processor):
    """Processes batch by batch, all keys at once. It suits work that NumPy or Arrow does faster on many rows
    than Python on each.

    Rows may be divided into batches in any way. `follow` says whether the states depend on it.
    """

    follow: ClassVar[Follow] = "exact"

    @abstractmethod
    def process_batch(
        self, inputs: Mapping[str, pa.Table], states: States, ctx: OperatorContext, *, at_end: bool
    ) -> pa.Table:
        """Returns the data columns of the output schema and `_time`, in the order in which the rows leave.

        `inputs` holds the rows of each connected port in the order of offsets: the data columns, `_key`,
        `_time` (timestamp us UTC, may be null), `_partition` and `_offset`. Any of the tables may be empty.
        With `at_end`, no more rows will come, so nothing may be kept back; only an operator that `flushes` is
        asked this, perhaps twice. An exception stops the element, since a batch is processed as a whole or
        not at all. Rows with `_reject` and `_raw` (tables.rejects) go to the dead letters, and need no other
        columns.
        """


class States(Protocol):
    """The states of a BatchProcessor, one for each key. It reads what earlier batches have left.
    What it puts is stored with the present batch."""

    batch_time_ms: int
    """When the batch began, the same on each node that runs it. There is no other clock."""

    def get(self, keys: Sequence[str | None]) -> list[Any]:
        """Returns the value of each key in turn, or None if nothing is stored. The key None belongs to the
        element itself."""
        ...

    def between(self, first: str, end: str) -> dict[str, Any]:
        """Returns the keys from `first` to before `end` with their values, in the order of their UTF-8."""
        ...

    def keys(self, first: str, end: str, most: int) -> list[str]:
        """Returns the first `most` keys from `first` to before `end`, without their values."""
        ...

    def put(self, key: str | None, value: Any) -> None:
        """Stores a value. None deletes it."""
        ...


class SourceReader(ABC):
    """Reads an outside source. It is pure in its positions: two positions always give the same rows, on any
    node."""

    @abstractmethod
    def initial(self, now_ms: int) -> Position:
        """Returns the position at which a new element begins."""

    @abstractmethod
    def advance(self, start: Position, now_ms: int, rows_max: int) -> Position:
        """Returns the furthest position that may be read now, or `start` if there is nothing to read."""

    @abstractmethod
    def read(self, start: Position, end: Position) -> Iterator[pa.RecordBatch]:
        """Yields rows with the data columns, `_time` (timestamp us UTC) and `_offset` (int64, rising)."""

    @abstractmethod
    def rows_between(self, start: Position, end: Position) -> int:
        """Returns how many rows lie between two positions."""

    def ended(self, position: Position) -> bool:
        """Returns whether no row will ever follow the position."""
        return False

    def due_ms(self, start: Position, end: Position) -> float | None:
        """Returns when the row at `start` is due, in ms since 1970, by the clock that the source has at
        `end`. Returns None if nobody can know, or no row follows. Then the latency of its rows is unknown."""
        return None

    def pause_shift(self, position: Position, paused_ms: int) -> Position:
        """Returns the position after a pause. A replayed recording moves its clock; a live source does
        not."""
        return position


class SourceOperator(Operator):
    """Brings rows in from outside."""

    inputs: ClassVar[tuple[Port, ...]] = ()

    @abstractmethod
    def open(self, ctx: OperatorContext) -> SourceReader: ...


class SinkWriter(ABC):
    """Writes to outside, once per Seq, whatever happens in between."""

    @abstractmethod
    def restore(self, mark: Any) -> None:
        """Undoes everything that was written after `mark`, which `write` returned. With None, nothing was
        written yet."""

    @abstractmethod
    def write(self, rows: pa.Table, seq: int) -> Any:
        """Writes durably and returns a mark (JSON), which goes into the COMMIT. `rows` holds the data columns
        and `_time`."""

    def lengths(self, mark: Any) -> Mapping[str, int]:
        """Returns the length that belongs to `mark` of each file of `ctx.directory` to which this writer only
        appends. `mark` may be None, as in `restore`.

        A checkpoint takes no more than these bytes, and reads only the new ones. Other files are read as a
        whole each time.
        """
        return {}

    def close(self) -> None:
        """Called when no batch will follow for this writer."""
        return None


class SinkOperator(Operator):
    """Writes rows to outside, once per batch."""

    outputs: ClassVar[tuple[Port, ...]] = ()

    @abstractmethod
    def open(self, ctx: OperatorContext) -> SinkWriter: ...


class ViewOperator(Operator):
    """The dashboard shows it from its input's topic. No node runs anything for it."""

    outputs: ClassVar[tuple[Port, ...]] = ()
