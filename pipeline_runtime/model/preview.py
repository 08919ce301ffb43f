"""A preview of an element: the web's question to a node, and the answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from pipeline_runtime.model.connectors import SealedConnection
from pipeline_runtime.model.spec import Frozen, GroupSpec

SHOWN_MAX = 20
"""How many rows of a stream are shown."""
SAMPLE_ROWS_MAX = 200
"""How many rows of each stream a pinned sample may have."""
CELL_MAX = 200
"""How many characters of a text are shown."""


class SampleRow(Frozen):
    """A row as a record has it."""

    time_ms: int
    values: dict[str, Any]


class PreviewQuestion(Frozen):
    """Asks what an element makes of some rows. Nothing is deployed, and nothing is kept."""

    id: str = Field(pattern="^[0-9a-f]{32}$")  # the answer is found under it
    element: str
    # The element and all before it, each as a group of its own, producers first.
    groups: tuple[GroupSpec, ...] = Field(min_length=1)
    # The streams that the element reads, by its port. They say what is shown of a view, which has no group.
    reads: dict[str, str]
    # The rows of streams that are given instead of being made: "element.port" -> rows.
    given: dict[str, tuple[SampleRow, ...]] = {}
    # Whether the answer is to have the rows that come to the element as they are, so that they can be given.
    sample: bool = False
    # Those that the sources of the groups name.
    connections: tuple[SealedConnection, ...] = ()


class PreviewRow(Frozen):
    key: str | None
    time_ms: int
    values: tuple[Any, ...]  # in the order of the stream's columns; long texts are cut
    reason: str | None = None  # of an input's row: why the element could not take it


class PreviewStream(Frozen):
    """The first rows of a stream."""

    columns: tuple[str, ...]
    rows: tuple[PreviewRow, ...] = ()
    count: int = 0  # of all rows that the preview has made


class PreviewLetter(Frozen):
    """A row that the element could not take."""

    reason: str
    raw: str


Refusal = Literal[
    "busy",
    "fetching",
    "starting",
    "reading",
    "too-long",
    "too-much",
    "spark",
    "unread",
    "unreachable",
    "failed",
    "ended",
]
"""Why a preview has no answer, or only a part of it.

busy: other previews wait already; fetching: the node fetches a file first; starting: the process that makes
previews starts first; reading: a connector reads still; too-long, too-much: it takes more time or memory than
a preview may; spark: an operator that is written for Spark; unread: a connector that a preview may not read;
unreachable: Kafka, a file or the system of a connector is out of the node's reach; failed: an operator
raised; ended: the process ended without an answer.
"""


class PreviewAnswer(Frozen):
    refused: Refusal | None = None
    at: str = ""  # the element that is the reason for the refusal
    why: str = ""  # what it said
    inputs: dict[str, PreviewStream] = {}  # by port
    output: PreviewStream | None = None  # None for an element that gives no rows
    letters: tuple[PreviewLetter, ...] = ()
    letters_count: int = 0
    newest: bool = False  # the shown rows are the newest ones; else they are the first
    read: int = 0  # rows that were read from outside
    whole: bool = False  # the sources have no more rows
    sample: dict[str, tuple[SampleRow, ...]] = {}  # by port: the rows that came first, if they were asked for
    lost: dict[str, int] = {}  # elements before it -> their dead letters
