"""The specification of a deployed group that a node runs. It is complete and never changes.

`plan.plan_groups` makes a GroupSpec once, when a pipeline is deployed. It travels as JSON.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field as PydanticField

from pipeline_runtime.model.ids import (
    Epoch,
    dead_letter_topic,
    journal_topic,
    released_topic,
    transactional_id,
)
from pipeline_runtime.model.paths import HEADER, Path
from pipeline_runtime.model.schema import StreamSchema

Follow = Literal["exact", "coalesced", "none"]
"""How a standby may cut its input: into the owner's batches, into any run of them, or it cannot follow."""


class Frozen(BaseModel):
    # Refused input may hold tokens and a user's parameters, and the refusal is written to logs.
    """The base of data that is sent: it never changes, and unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ElementSpec(Frozen):
    """An element as a node runs it, with resolved parameters."""

    id: str
    type: str
    params: dict[str, Any] = {}
    # input port -> "element.port"; the producer may be outside the group
    inputs: dict[str, str] = {}


class ColumnReading(Frozen):
    """Where a column's value lies in a record that others write."""

    path: Path
    quoted: bool = False  # a text that says a number, or true and false, counts as that


class TimeReading(Frozen):
    """Where a row's event time lies."""

    path: Path
    format: Literal["iso", "s", "ms", "us", "ns"] = "iso"


class RecordFormat(Frozen):
    """How the values of a user's own topic are written, where they are no JSON."""

    kind: Literal["avro", "csv", "text"]
    avro: str | None = None  # the schema, as JSON
    # the name of the connection to a schema registry: each record begins with its schema's number
    registry: str | None = None
    delimiter: str = ","  # of CSV
    decimal: Literal[".", ","] = "."
    names: bool = False  # the first line of each record names its cells


class RecordWriting(Frozen):
    """How the records of a user's own topic are written."""

    format: RecordFormat | None = None  # where there is none, JSON
    column: str = ""  # the one that is the text
    headers: tuple[str, ...] = ()  # columns that are headers, too
    subject: str = ""  # under which a schema registry keeps the schema

    @property
    def is_plain(self) -> bool:
        """Returns whether a record is the row as JSON, without headers."""
        return self.format is None and not self.headers


class RecordReading(Frozen):
    """How the records of a user's own topic are read."""

    columns: tuple[ColumnReading, ...]  # those of the stream, in their order
    time: TimeReading | None = None  # where there is none, the record's timestamp counts
    rows: Path | None = None  # the array whose items are rows; where there is none, a record is one row
    ahead_s: float = 86_400.0  # a time that is further ahead of the arrival than this is not believed
    ahead: Literal["dead-letter", "arrival"] = "dead-letter"  # what becomes of its row
    format: RecordFormat | None = None  # where there is none, the values are JSON

    @property
    def registry(self) -> str | None:
        """Returns the name of the connection to a schema registry, if the records need one."""
        return None if self.format is None else self.format.registry

    @property
    def is_plain(self) -> bool:
        """Returns whether each record is a row with fields of the columns' types."""
        paths = [column.path for column in self.columns]
        single = all(len(path) == 1 and isinstance(path[0], str) for path in paths)
        whole = self.time is None and self.rows is None and not any(each.quoted for each in self.columns)
        return self.format is None and single and whole and len(set(paths)) == len(paths)

    @property
    def reads_headers(self) -> bool:
        return any(column.path[0] == HEADER for column in self.columns)


class InputStream(Frozen):
    """A stream that enters the group from a topic: another group's output, or a user's own topic."""

    source: str  # "element.port" of the producer (for kafka-in: of that element itself)
    topic: str
    partitions: int = 1
    data_schema: StreamSchema
    consumer: str  # the element that reads it; its dead-letter topic takes records that cannot be parsed
    start: Literal["earliest", "latest"] = "earliest"
    external: bool = False  # a topic that Fogline did not create
    all_partitions: bool = False  # of such a topic: also those that it gets later; `partitions` is the least
    reading: RecordReading | None = None  # of such a topic
    gap: Literal["skip", "stop"] = "skip"  # of such a topic: when records were deleted before they were read
    # Such a topic that Fogline did create: the element's connector writes into it.
    intake: bool = False
    once: bool = False  # it does so exactly once: another topic says how far it has read its system


class OutputStream(Frozen):
    """A stream that leaves the group into a topic."""

    source: str  # "element.port"
    topic: str
    partitions: int = 1
    data_schema: StreamSchema
    external: bool = False
    delivered: bool = False  # the element's connector reads it, and delivers the rows to a system
    noted: bool = False  # another topic says, too, how far it has done so
    writing: RecordWriting | None = None  # of a user's own topic


LATENCY_MS = 500
"""The latency target of a group for which none is set."""
LATENCY_MS_MIN, LATENCY_MS_MAX = 5, 600_000


class Pace(Frozen):
    """When the batches of a group begin, and how large they may be."""

    latency_ms: int = LATENCY_MS  # from a row's arrival to its results; see replica.pacing
    interval_ms_min: int = 5
    interval_ms_max: int = 1000
    batch_rows_max: int = 30_000  # an owner at full load takes two such batches as one


class GroupSpec(Frozen):
    """One group of one deployment: one Spark query."""

    deployment: str
    pipeline: str
    group: str
    elements: tuple[ElementSpec, ...]  # in topological order
    inputs: tuple[InputStream, ...] = ()
    outputs: tuple[OutputStream, ...] = ()
    schemas: dict[str, StreamSchema] = {}  # "element.port" -> schema, for every port of the group
    follow: Follow = "exact"
    pace: Pace = Pace()
    files: dict[str, str] = {}  # file reference in a parameter -> sha256 in the file store
    version: str = PydanticField(default="1", description="changes when the group's code or parameters do")

    @property
    def id(self) -> str:
        """Returns `<deployment>.<group>`, which is unique over all deployments."""
        return f"{self.deployment}.{self.group}"

    @property
    def journal(self) -> str:
        return journal_topic(self.deployment, self.group)

    @property
    def released(self) -> str:
        """The topic in which the owner tells a far successor of its release."""
        return released_topic(self.deployment, self.group)

    def dead_letters(self, element: str) -> str:
        return dead_letter_topic(self.deployment, element)

    def transactional_id(self, epoch: Epoch) -> str:
        return transactional_id(self.deployment, self.group, epoch)
