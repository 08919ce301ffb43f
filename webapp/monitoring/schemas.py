"""Responses about running elements, about present and past problems, and about the acts of users."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from pipeline_runtime.model.schema import Field, StreamSchema
from webapp.alarms.state import Severity as AlarmSeverity
from webapp.handovers.schemas import LetterOrder, OtherNode
from webapp.json_types import Allowed, Document, Follow, Number
from webapp.nodes.schemas import Node
from webapp.pipelines.schemas import Elsewhere
from webapp.placements.schemas import CheckpointNote, ElementAction, ElementStatus
from webapp.policies.schemas import UserPlaceNote

Severity = Literal["info", "warning", "error"]


class AttentionLine(TypedDict):
    at: str | None
    """when the problem began; null if that is not known"""
    severity: Severity
    kind: str
    pipeline: str | None
    element: str | None
    node: str | None
    message: str
    move_to: NotRequired[str]
    """the node to which a policy advises to move the element"""
    restore_to: NotRequired[str]
    """a node on which the element can be restored: a policy advises it, or the element is held and waits for
    a person"""
    site: NotRequired[str]
    """the site at which a policy advises to change the pipeline's copies"""
    change: NotRequired[Literal["copy", "take-out"]]
    alarm: NotRequired[int]
    """the id of the alarm that the entry shows"""


class LogEvent(TypedDict):
    id: int
    at: str
    severity: Severity
    kind: str
    pipeline: str | None
    element: str | None
    node: str | None
    message: str
    detail: Any
    cause: int | None
    """the event that caused this one, such as a node's silence"""


class AuditEntry(TypedDict):
    id: int
    at: str
    since: str
    """the time of the first of the `times` entries that this entry stands for"""
    times: int
    user: str
    action: str
    target: str
    detail: Any


class Overview(TypedDict):
    pipelines: list[PipelineItem]
    nodes: list[Node]
    attention: list[AttentionLine]
    throughput: dict[str, Throughput]


PipelineStatus = Literal[
    "draft", "deploying", "running", "attention", "paused", "ended", "undeploying", "undeployed", "failed"
]

DraftText = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]
"""A text of a document. A draft may have any JSON value in its place."""


class UpgradeFailed(TypedDict):
    message: str
    at: str | None


class PipelineItem(TypedDict):
    id: int
    """a number that stays the same while the pipeline exists, even if the pipeline is renamed"""
    name: str
    title: str
    """the title of the pipeline; its name if it has no title"""
    revision: int
    status: PipelineStatus
    message: str
    deployed_version: int | None
    deployment: str | None
    upgrade_failed: UpgradeFailed | None
    """the last upgrade, if it failed; the next deployment tries it again"""
    differs: bool
    elsewhere: list[Elsewhere]
    """the elements that do not run on their home nodes"""
    updated_at: str
    updated_by: str | None
    description: DraftText
    elements: int


class Pipeline(PipelineItem):
    document: Document


class StandbyNote(TypedDict):
    """The standby that a user wants, or else the one that stays for a while after a move."""

    node: str
    behind: int | None
    armed: bool
    wanted: bool


class WayOn(TypedDict):
    id: str
    """the id that `POST …/go-on` takes"""
    title: str
    cost: str
    """the consequences of this way"""


class ElementError(TypedDict):
    code: str | None
    """the error code, which has a page in docs/errors"""
    message: str | None
    safe: str | None
    next: str | None
    traceback: str | None
    at: str | None
    ways: list[WayOn]
    """the ways in which the element can go on; a person chooses one"""


class ReplicaNote(TypedDict):
    node: str
    role: str
    phase: str
    epoch: int
    seq: int
    behind: int
    """the number of committed batches that the standby has not followed yet"""
    armed: str | None
    """the id of the handover for which the standby is armed"""


class ElementCost(TypedDict):
    """The share of its node's CPU that the element's group took in the newest half minute."""

    cpu_cores: Number
    """the cores that the group takes in addition to those that the node takes without rows, as far as this is
    known"""
    batches_per_s: Number
    rows_per_s: Number
    """the rows that the group reads"""
    wait_ms_max: Number | None
    """the longest time that rows wait with any latency target; null if only the target limits it"""


class ConnectorNote(TypedDict):
    """The connector of an element. Its process counts rows from its start, and gaps from the element's
    deployment."""

    state: Literal["starting", "connected", "failing"]
    why: str
    """the present error of the connector"""
    since: str | None
    rows_total: int
    refused_total: int
    """the number of rows that the outside system refused"""
    gaps_total: int
    """how many times rows were lost"""
    gap_rows_total: int
    """the number of lost rows, as far as it is known"""
    spool_bytes: int
    """the bytes on the node's disk that wait because Kafka does not answer"""
    gap_at: str | None
    """when control heard of the newest lost rows"""
    trouble: str | None
    """why the connector fails, from the event that says so to the event that says that it works again; null
    if people were not told that it fails"""


class LiveElement(TypedDict):
    id: str
    type: Annotated[Any, WithJsonSchema({"type": "string"})]
    """the type of the operator; in an invalid draft it may be any JSON value, which is shown as an unknown
    type"""
    title: str
    """the title of the element that users see"""
    group: str
    group_title: str
    status: ElementStatus
    node: str | None
    by_clock: bool
    """whether the node's clock sets the times of the rows, or changes the results"""
    epoch: int
    seq: int
    rows_in_per_s: Number | None
    """the rows that the group reads; rates and times are null while the node is not heard"""
    rows_out_per_s: Number | None
    bytes_out_per_s: Number | None
    """keys and values of the element's streams, not compressed; null inside a group"""
    lag_rows: int | None
    """the rows that wait in the input topics, also while the element is paused or failed or its node is down;
    null if the number is not known, or if the element is not deployed"""
    lag_unknown: str | None
    """why `lag_rows` is not known, as a sentence"""
    last_row_at: str | None
    """when a batch in which the element had rows was last committed; null if none was. In a group of several
    elements it is of the whole group, if only Spark saw the element's rows"""
    next_row_due_at: str | None
    """when the next row of the group's own sources is due, by their clock; null if it is not known"""
    owner_since: str | None
    """since when the element runs on its node, by the node's clock; null if it does not, or is not heard"""
    resumed_at: str | None
    """when the last pause of the element ended; null if it was not paused yet"""
    heard: bool
    """whether the node is heard, so that the figures are new"""
    batch_ms_p50: Number | None
    batch_ms_p95: Number | None
    batch_ms_p99: Number | None
    latency_ms_p50: Number | None
    latency_ms_p95: Number | None
    latency_ms_p99: Number | None
    latency_ms_target: int | None
    cost: ElementCost | None
    """the cost; null until it is measured"""
    rows_in_total: int
    """the rows of all owners since the first deployment; rows that a rewind repeats count again"""
    rows_out_total: int
    dead_letters_total: int
    dead_letters_open: int
    """the dead letters that nobody has dropped or replayed"""
    left_out_total: int
    """at most so many records of a user's topic were deleted before the element read them"""
    state_bytes: int | None
    """the size of the state; null until the replica has opened it"""
    state_keys: int | None
    """the number of keys, for a group with a keyed processor"""
    checkpoint: CheckpointNote | None
    paused: bool
    ended: bool
    follow: Follow
    follow_note: str
    """the meaning of `follow` for this element, in one sentence"""
    standby: StandbyNote | None
    error: ElementError | None
    replicas: list[ReplicaNote]
    handover: str | None
    user: UserPlaceNote | None
    """the site of the element's user; null if nobody has reported it"""
    connector: ConnectorNote | None
    """the state of the connector; null without a connector, and while the node is not heard"""
    alarm: AlarmSeverity | None
    """the worst active alarm of the element that nobody has silenced"""
    actions: dict[ElementAction, Allowed]


class ElementPoint(TypedDict):
    """The figures of an element at one time. A missing figure is not known."""

    t: int
    """when the node reported the figures, in ms since 1970"""
    rows_in_per_s: NotRequired[Number | None]
    rows_out_per_s: NotRequired[Number | None]
    lag_rows: NotRequired[Number | None]
    batch_ms_p50: NotRequired[Number | None]
    batch_ms_p95: NotRequired[Number | None]
    latency_ms_p50: NotRequired[Number | None]
    latency_ms_p95: NotRequired[Number | None]
    latency_ms_p99: NotRequired[Number | None]
    state_bytes: NotRequired[Number | None]


class ElementHistory(TypedDict):
    points: list[ElementPoint]


class WhyHere(TypedDict):
    """Why an element runs on its node. Fogline recorded the reason when the element came there."""

    node: str | None
    """the node; null if the element has none"""
    sentence: str
    at: str | None
    """when the element came to the node; null if it has none"""
    handover: str | None
    """the id of the handover that brought the element to the node"""
    policy: str | None
    """the name of the policy that ordered the handover"""
    others: list[OtherNode]
    """all other nodes; empty if the element has no node"""


class Requested(TypedDict):
    status: Literal["requested"]


class KeptKey(TypedDict):
    key: str
    """the key, as people read it"""
    key_cut: bool
    state: Any
    """the state; if the state is cut, or is no JSON, the beginning of its text"""
    state_cut: bool
    timers: list[str | None]
    """the event times at which the key has a timer, unless the state is cut; null for a time outside the
    years 1 to 9999"""


class KeptPage(TypedDict):
    """A page of an element's state after the newest committed batch."""

    at: str
    """when the node read the state"""
    keys: int
    """the number of all keys"""
    entries: list[KeptKey]
    next: str | None
    """to get the next page, pass this as `after`; null if there are no more keys"""
    looked: int | None
    """the number of keys that the node looked through, if it stopped before the last key; otherwise null"""


class NodeLogLine(TypedDict):
    at: str | None
    level: str
    logger: str
    text: str
    """the message, followed by the traceback if there is one"""


class NodeLog(TypedDict):
    """The newest lines of a node's log, which the node keeps in memory."""

    node: str
    at: str
    """when the node read the lines"""
    since: str | None
    """the node keeps no line from before this time"""
    matching: int
    """the number of lines that match; `lines` has the newest of them"""
    lines: list[NodeLogLine]
    """the lines, oldest first"""


class PeekedRecord(TypedDict):
    offset: int
    partition: int
    at: str | None
    key: str | None
    value: Any
    """the value; a whole number beyond 2^53 is a text, because a browser would lose digits of it"""


class Records(TypedDict):
    records: list[PeekedRecord]


class Peeked(Records):
    stream: str


class LetterGroup(TypedDict):
    """The dead letters of one reason."""

    reason: str
    count: int
    """the number of letters with this reason, among those that Fogline has looked at"""
    newest: PeekedRecord


class GroupedLetters(Records):
    """Dead letters, oldest first, and the number of letters of each reason."""

    groups: list[LetterGroup]
    """the groups of letters, the most frequent reason first"""
    groups_left_out: int
    """the number of reasons that are not listed"""
    looked: int
    """the number of letters that Fogline has looked at; these are the newest ones"""
    more: bool
    """whether there may be older letters"""


class DeadLetters(GroupedLetters):
    topics: dict[str, str]
    """the topic of the rows, by the stream that a letter names; empty if no letter names its stream"""
    replay: Allowed
    """whether the rows can come back to the element"""
    orders: list[LetterOrder]
    """the orders about these letters, the newest first"""


class LetterOrderProgress(LetterOrder):
    """The progress of the rows that an order has brought back."""

    read: int | None
    """the number of rows that the element has read; null if the rows went to all readers of the stream, or if
    the number is not known"""
    again: int | None
    """the number of rows that became dead letters again"""


class RowPlace(TypedDict):
    partition: int
    offset: int


class LetterRow(TypedDict):
    """The row of a dead letter, for a user who wants to change its values."""

    offset: int
    """the offset of the letter"""
    key: str | None
    lies_at: RowPlace | None
    """where the row lies; null if the letter does not name the place"""
    raw: str
    reason: str
    at: str | None
    """the event time of the row; null if it is not known"""
    cells: dict[str, Any]
    """the readable values, by column; a whole number beyond 2^53 is a text"""


class LetterRows(TypedDict):
    columns: list[Field]
    """the columns of a changed row"""
    rows: list[LetterRow]
    """the rows, newest last"""
    more: bool
    """whether there are older rows, or rows of another input"""
    topic: str
    """the topic of the rows, which are those of one input of the element"""


class QueuedRecord(PeekedRecord):
    waits: bool
    """whether the reader has not read the row yet"""


class StreamSchemas(TypedDict):
    """The columns of the streams that run."""

    version: int
    """the version that is deployed"""
    schemas: dict[str, StreamSchema]
    """by stream (`element.port`)"""


class Queue(TypedDict):
    """The rows of a stream that a reader read last, and those that wait for it, oldest first."""

    stream: str
    columns: list[Field] | None
    """the columns; null if no running group names them"""
    known: bool
    """whether it is known how far the reader has read; a view of the dashboard has read the rows that it
    shows"""
    records: list[QueuedRecord]
    looked: int
    """the number of records that Fogline looked through"""
    more: bool
    """whether there are records that Fogline did not look through, or does not show"""


class Curve(Peeked):
    """The rows that a chart needs, oldest first. For each pixel and curve these are the least, the greatest
    and the last row."""

    rows: int
    """the number of rows in the range that Fogline read"""
    left_out: int
    """about how many older rows of the range Fogline left out, because there are too many"""
    cursor: str
    """to get the rows after these, pass this as `after`"""


class Throughput(TypedDict):
    sources: list[str]
    step_ms: int
    until_ms: int
    rows_per_s: list[Number | None]
