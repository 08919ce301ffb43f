"""Responses about what runs, what is and was wrong, and who did what."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from pipeline_runtime.model.schema import Field
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
    """null if the beginning is not known"""
    severity: Severity
    kind: str
    pipeline: str | None
    element: str | None
    node: str | None
    message: str
    move_to: NotRequired[str]
    """a policy advises to move the element there"""
    restore_to: NotRequired[str]
    """the element can be restored there: a policy advises it, or it is held and waits for a person"""
    site: NotRequired[str]
    """a policy advises a change of the pipeline's copies there"""
    change: NotRequired[Literal["copy", "take-out"]]
    alarm: NotRequired[int]
    """the id of the alarm that it tells of"""


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
    """the event that this one follows from, such as a node's silence"""


class AuditEntry(TypedDict):
    id: int
    at: str
    since: str
    """of the first of the `times` entries that this one stands for"""
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
"""A text of a document. A draft may have anything there."""


class UpgradeFailed(TypedDict):
    message: str
    at: str | None


class PipelineItem(TypedDict):
    id: int
    """the same for as long as the pipeline exists, whatever it is named"""
    name: str
    title: str
    """what people call it; its name while it has no title"""
    revision: int
    status: PipelineStatus
    message: str
    deployed_version: int | None
    deployment: str | None
    upgrade_failed: UpgradeFailed | None
    """the last change to what runs, if it failed; deploying tries it again"""
    differs: bool
    elsewhere: list[Elsewhere]
    """what runs on another node than where it belongs"""
    updated_at: str
    updated_by: str | None
    description: DraftText
    elements: int


class Pipeline(PipelineItem):
    document: Document


class StandbyNote(TypedDict):
    """The standby that a user wants, else the one that stays for a while after a move."""

    node: str
    behind: int | None
    armed: bool
    wanted: bool


class WayOn(TypedDict):
    id: str
    """what `POST …/go-on` is given"""
    title: str
    cost: str
    """what follows from it"""


class ElementError(TypedDict):
    code: str | None
    """a page of docs/errors"""
    message: str | None
    safe: str | None
    next: str | None
    traceback: str | None
    at: str | None
    ways: list[WayOn]
    """ways in which the element can go on; a person chooses one"""


class ReplicaNote(TypedDict):
    node: str
    role: str
    phase: str
    epoch: int
    seq: int
    behind: int
    """committed batches that a standby has not followed yet"""
    armed: str | None
    """id of the handover that it is armed for"""


class ElementCost(TypedDict):
    """What its group takes of its node's CPU, over the newest half minute."""

    cpu_cores: Number
    """beyond what the node takes without rows, as far as that is known"""
    batches_per_s: Number
    rows_per_s: Number
    """rows that the group reads"""
    wait_ms_max: Number | None
    """rows wait no longer than this, whatever the target; null if only the target limits it"""


class ConnectorNote(TypedDict):
    """The process that brings an element's rows in, or takes them out. It counts rows from its start, and
    gaps from the element's deployment."""

    state: Literal["starting", "connected", "failing"]
    why: str
    """what fails"""
    since: str | None
    rows_total: int
    refused_total: int
    """rows that the system does not take"""
    gaps_total: int
    """times in which rows were lost"""
    gap_rows_total: int
    """how many rows, as far as that is known"""
    spool_bytes: int
    """on the node's disk, since Kafka is away"""


class LiveElement(TypedDict):
    id: str
    type: Annotated[Any, WithJsonSchema({"type": "string"})]
    """in an invalid draft it may be anything, and is shown as an unknown type"""
    title: str
    """the name that users see"""
    group: str
    group_title: str
    status: ElementStatus
    node: str | None
    by_clock: bool
    """the times of its rows, or its results, come from its node's clock"""
    epoch: int
    seq: int
    rows_in_per_s: Number | None
    """rates and times are null while its node is not heard"""
    rows_out_per_s: Number | None
    bytes_out_per_s: Number | None
    """keys and values of its streams, not compressed; null inside a group"""
    lag_rows: int | None
    """rows that wait in its input topics, also while it is paused, has failed, or its node is down; null if
    that is not known, or it is not deployed"""
    lag_unknown: str | None
    """why `lag_rows` is not known, as a sentence"""
    last_row_at: str | None
    """when it last committed a batch with rows; null if it never did"""
    next_row_due_at: str | None
    """when the next row of its group's own sources is due, by their clock; null if nobody knows"""
    heard: bool
    """whether its node is heard, and its figures are of now"""
    batch_ms_p50: Number | None
    batch_ms_p95: Number | None
    batch_ms_p99: Number | None
    latency_ms_p50: Number | None
    latency_ms_p95: Number | None
    latency_ms_p99: Number | None
    latency_ms_target: int | None
    cost: ElementCost | None
    """null until it is measured"""
    rows_in_total: int
    """totals count from its first deployment on, over all its owners; what a rewind repeats counts again"""
    rows_out_total: int
    dead_letters_total: int
    dead_letters_open: int
    """those of them that nobody has dropped or replayed"""
    left_out_total: int
    """records of a user's topic that were deleted before they were read, at most"""
    state_bytes: int | None
    """null until it has opened its state"""
    state_keys: int | None
    """for a group with a keyed processor"""
    checkpoint: CheckpointNote | None
    paused: bool
    ended: bool
    follow: Follow
    follow_note: str
    """what `follow` means for it, in one sentence"""
    standby: StandbyNote | None
    error: ElementError | None
    replicas: list[ReplicaNote]
    handover: str | None
    user: UserPlaceNote | None
    """where its user is; null if nobody has reported it"""
    connector: ConnectorNote | None
    """what its connector says; null without one, and while its node is not heard"""
    alarm: AlarmSeverity | None
    """the worst of its active alarms that nobody has silenced"""
    actions: dict[ElementAction, Allowed]


class ElementPoint(TypedDict):
    """A figure that is missing is unknown."""

    t: int
    """when it was reported, ms since the epoch"""
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
    """Why an element is on its node, as it was recorded when it came there."""

    node: str | None
    """null if it has none"""
    sentence: str
    at: str | None
    """when it came there; null if it has no node"""
    handover: str | None
    """the handover that brought it there"""
    policy: str | None
    """the policy that ordered the handover"""
    others: list[OtherNode]
    """the other nodes; none while it has no node"""


class Requested(TypedDict):
    status: Literal["requested"]


class KeptKey(TypedDict):
    key: str
    """as people read it"""
    key_cut: bool
    state: Any
    """the state; if it is cut or JSON cannot express it, the beginning of its text"""
    state_cut: bool
    timers: list[str | None]
    """event times that it waits for, unless the state is cut; null for one outside the years 1 to 9999"""


class KeptPage(TypedDict):
    """An element's state, as the newest committed batch left it."""

    at: str
    """when it was read"""
    keys: int
    """the number of all keys"""
    entries: list[KeptKey]
    next: str | None
    """pass it as `after` for the next page; null if there are no more"""
    looked: int | None
    """keys that were looked through, if that is why there are no more entries"""


class NodeLogLine(TypedDict):
    at: str | None
    level: str
    logger: str
    text: str
    """the message, and below it the traceback if there is one"""


class NodeLog(TypedDict):
    """What a node has logged, as it keeps it in memory."""

    node: str
    at: str
    """when it was read"""
    since: str | None
    """the node keeps no line from before this time"""
    matching: int
    """how many lines match; the answer has the newest of these"""
    lines: list[NodeLogLine]
    """oldest first"""


class PeekedRecord(TypedDict):
    offset: int
    partition: int
    at: str | None
    key: str | None
    value: Any
    """a whole number beyond 2^53 is a text, since a browser would lose digits of it"""


class Records(TypedDict):
    records: list[PeekedRecord]


class Peeked(Records):
    stream: str


class LetterGroup(TypedDict):
    """The dead letters of one reason."""

    reason: str
    count: int
    """among the letters that were looked at"""
    newest: PeekedRecord


class GroupedLetters(Records):
    """Dead letters, oldest first, and how many there are of each reason."""

    groups: list[LetterGroup]
    """the most frequent reason first"""
    groups_left_out: int
    """reasons that are not listed"""
    looked: int
    """the newest letters, of which all this is"""
    more: bool
    """whether there may be older letters"""


class DeadLetters(GroupedLetters):
    topics: dict[str, str]
    """in which their rows lie, by the stream that a letter names; none if letters do not say where"""
    replay: Allowed
    """whether their rows can come back to the element"""
    orders: list[LetterOrder]
    """what was done about letters, the newest first"""


class LetterOrderProgress(LetterOrder):
    """What has become of the rows of an order."""

    read: int | None
    """how many the element has read; null if they went to all readers of its stream, or nobody knows"""
    again: int | None
    """how many are letters again"""


class RowPlace(TypedDict):
    partition: int
    offset: int


class LetterRow(TypedDict):
    """The row of a letter, to be mended."""

    offset: int
    """of the letter"""
    key: str | None
    lies_at: RowPlace | None
    """null if the letter does not say it"""
    raw: str
    reason: str
    at: str | None
    """its event time; null if nobody knows it"""
    cells: dict[str, Any]
    """by column, as far as they can be read; a whole number beyond 2^53 is a text"""


class LetterRows(TypedDict):
    columns: list[Field]
    """which a mended row has"""
    rows: list[LetterRow]
    """newest last"""
    more: bool
    """there are older ones, or ones of another input"""
    topic: str
    """in which the rows lie: those of one input of the element"""


class QueuedRecord(PeekedRecord):
    waits: bool
    """whether the reader has not read it yet"""


class Queue(TypedDict):
    """What a reader of a stream has read of it last, and what waits for it, oldest first."""

    stream: str
    columns: list[Field] | None
    """null if nobody has said them"""
    known: bool
    """whether it is known how far the reader has read; a view of the dashboard reads what it shows"""
    records: list[QueuedRecord]
    looked: int
    """records that were looked through"""
    more: bool
    """whether there are others that were not looked through, or that are not shown"""


class Curve(Peeked):
    """The rows that a chart needs, oldest first: of each curve the least, the greatest and the last one per
    pixel."""

    rows: int
    """rows in the range that was read"""
    left_out: int
    """older rows of the range that were not read, because they are too many; about so many"""
    cursor: str
    """pass it as `after` for what comes next"""


class Throughput(TypedDict):
    sources: list[str]
    step_ms: int
    until_ms: int
    rows_per_s: list[Number | None]
