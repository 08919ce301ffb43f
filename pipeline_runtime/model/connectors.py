"""Connectors and connections as they are sent: to a node, and back in its reports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.model.spec import Frozen

PURPOSE_AT_REST = "connection"
PURPOSE_SENT = "connection of a node"
"""What the fields of a connection are sealed for (pipeline_runtime.sealing)."""

ROWS_SHOWN = 5
"""How many rows a test of a connection shows at most."""
PARTS_MAX = 100
"""How many parts of something found, or columns of a row, are told at most."""
FOUND_MAX = 5_000
"""How many things an answer has at most."""
PATH_MAX = 5_000
FIND_MAX = 200
VALUE_MAX = 200
"""How long a text may be that is shown as a value."""


class SealedConnection(Frozen):
    """A connection that elements of a node use. `sealed`: its fields as JSON, under the cluster's key;
    empty if Fogline cannot open its secrets."""

    name: str
    kind: str
    version: int  # rises with each change
    sealed: str


SPOOL_BYTES_MAX = 256 << 20
"""How much of the node's disk an element takes while Kafka is away; docs/reference/limits.md."""
AGAIN = " It is tried again within "
"""Behind why a connector fails."""


class ConnectorStatus(Frozen):
    """One connector as its node sees it. Totals count from the start of its process, but those of gaps: they
    count what was lost on this node since `gaps_counter` began, which is a new one if the node has lost its
    file."""

    element: str
    state: Literal["starting", "connected", "failing"] = "starting"
    why: str = ""  # what fails, in words, when the state is "failing"
    since_ms: int = 0  # of this state
    rows_total: int = 0  # rows brought or delivered
    refused_total: int = 0  # rows that the system, or the topic, does not take
    gaps_total: int = 0  # times in which rows were lost
    gap_rows_total: int = 0  # how many rows these were, as far as that is known
    gaps_counter: str = Field(default="", max_length=40)
    spool_bytes: int = 0  # on the node's disk, since Kafka is away

    @property
    def trouble(self) -> str:
        """Returns why it fails, without a full stop and without when it is tried again, or "" if it does not
        fail."""
        return self.why.partition(AGAIN)[0].rstrip(".") if self.state == "failing" else ""


class TestQuestion(Frozen):
    """Asks a node to try a connection. `path` says what to look into, in the words of its kind. `find` is a
    part of a name, to be looked for in the whole system instead."""

    __test__ = False  # no class of tests

    id: str
    kind: str
    sealed: str
    path: str = Field(default="", max_length=PATH_MAX)
    find: str = Field(default="", max_length=FIND_MAX)


class FoundPart(Frozen):
    """A part of something found, which becomes a column: a field of a message, a column of a table."""

    name: str = Field(max_length=400)  # of a field, its path
    type: FieldType | None = None
    key: bool = False  # one of the columns by which the system finds a row


class Found(Frozen):
    """Something that a system has and an element may use: a topic, a table, a node of a tree."""

    path: str = Field(max_length=PATH_MAX)
    title: str = Field(max_length=5000)
    type: str = Field(default="", max_length=400)  # of its values, if the system tells it, in its words
    unit: str = Field(default="", max_length=400)
    inner: bool = False  # there is more below it
    usable: bool = False  # an element may read or write it
    holds: FieldType | None = None  # the type of a column for its values, if it is one value
    value: str | int | float | bool | None = None  # the last one
    within: tuple[str, ...] = Field(default=(), max_length=50)  # the titles of what it lies in
    parts: tuple[FoundPart, ...] = Field(default=(), max_length=PARTS_MAX)


OFFERED_MAX = 20_000


class Offer(Frozen):
    """A value that the system shows, for a field of the connection. A person decides whether to accept it."""

    field: str = Field(max_length=400)
    value: str = Field(max_length=OFFERED_MAX)
    title: str = Field(max_length=200)  # what accepts it, as a button says it


class TestAnswer(Frozen):
    """What came of it."""

    __test__ = False

    works: bool
    words: str  # what was found, or the reason why not and what to do
    # the first ones
    rows: tuple[Annotated[dict[str, Any], Field(max_length=PARTS_MAX)], ...] = Field(
        default=(), max_length=ROWS_SHOWN
    )
    found: tuple[Found, ...] = Field(default=(), max_length=FOUND_MAX)
    offer: Offer | None = None


SAMPLE_S = 4.0
"""How long a connector reads for a preview at most."""
SAMPLE_RECORDS_MAX = 200


class SampleAnswer(Frozen):
    """The first records of a connector: each with its time, its key and its value. `why`: what fails."""

    records: tuple[tuple[int, str | None, str], ...] = ()
    why: str = ""
