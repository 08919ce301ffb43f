"""Responses about pipelines, their elements, versions and files."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import WithJsonSchema, with_config
from typing_extensions import TypedDict

from pipeline_runtime.model.schema import StreamSchema
from webapp.json_types import STORED, Allowed, Document, Follow, Number
from webapp.problems import Fault

PipelineStatus = Literal[
    "draft", "deploying", "running", "attention", "paused", "ended", "undeploying", "undeployed", "failed"
]
ElementStatus = Literal[
    "running",
    "paused",
    "deploying",
    "moving",
    "lagging",
    "failed",
    "stopped",
    "silent",
    "unheard",
    "ended",
    "view",
    "draft",
]
ElementAction = Literal[
    "migrate", "restore", "pause", "resume", "checkpoint", "keep_standby", "drop_standby", "rewind"
]
DraftText = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]
"""Of a document; a draft may have anything there."""


class UpgradeFailed(TypedDict):
    message: str
    at: str | None


class Elsewhere(TypedDict):
    element: str
    pinned: str
    node: str


class PipelineItem(TypedDict):
    name: str
    revision: int
    status: PipelineStatus
    message: str
    deployed_version: int | None
    deployment: str | None
    upgrade_failed: UpgradeFailed | None
    """the last change of what runs, if that failed: deploying tries it again"""
    differs: bool
    elsewhere: list[Elsewhere]
    """what runs on another node than the draft pins it to"""
    updated_at: str
    updated_by: str | None
    description: DraftText
    elements: int


class Pipeline(PipelineItem):
    document: Document


class VersionItem(TypedDict):
    """A draft as it was deployed, or saved."""

    number: int
    note: str
    created_at: str
    created_by: str | None


class PipelineVersion(VersionItem):
    document: Document


class Template(TypedDict):
    name: str
    title: str
    description: str
    document: Document


class Validation(TypedDict):
    faults: list[Fault]
    schemas: dict[str, StreamSchema]


Change = TypedDict("Change", {"path": str, "from": Any, "to": Any})


class ChangedElement(TypedDict):
    id: str
    changes: list[Change]


GroupsChange = TypedDict("GroupsChange", {"from": list[Any], "to": list[Any]})


class Difference(TypedDict):
    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    changed: list[ChangedElement]
    groups: GroupsChange | None


NamedDifference = TypedDict(
    "NamedDifference",
    {
        "from": str,
        "to": str,
        "added": list[dict[str, Any]],
        "removed": list[dict[str, Any]],
        "changed": list[ChangedElement],
        "groups": GroupsChange | None,
    },
)


class DeployChange(TypedDict):
    """What a deployment would do with an element."""

    element: str
    change: Literal["unchanged", "upgraded", "restart", "incompatible", "added", "removed"]
    """"restart": it cannot keep its state, but can begin without"""
    reason: NotRequired[str | None]
    """of one that runs: what changed, or what is in the way"""
    path: NotRequired[str | None]
    """of the parameter that is in the way, below its element"""
    loses: NotRequired[str | None]
    """of "restart": what of its state is lost"""
    node: NotRequired[str | None]
    """of a pipeline that is not deployed: where it goes; null: only the dashboard shows it, or no node can"""
    why: NotRequired[str | None]
    problem: NotRequired[str | None]
    """why no node can take it"""
    waits: NotRequired[bool]
    """that may pass by itself, and a deployment waits for it"""


class DeployPlan(TypedDict):
    changes: list[DeployChange]
    repeats: bool
    """an upgrade that failed is tried again, whatever changes"""


class CheckpointNote(TypedDict):
    seq: int
    at: str | None
    bytes: int | None
    where: list[str]


class Checkpoint(CheckpointNote):
    epoch: int | None
    bytes_new: int | None
    node: str | None


class Checkpoints(TypedDict):
    checkpoints: list[Checkpoint]


class StandbyNote(TypedDict):
    """The standby that somebody wants, else the one that stays for a while after a move."""

    node: str
    behind: int | None
    armed: bool
    wanted: bool


class ElementError(TypedDict):
    message: str | None
    safe: str | None
    next: str | None
    traceback: str | None
    at: str | None


class ReplicaNote(TypedDict):
    node: str
    role: str
    phase: str
    epoch: int
    seq: int
    behind: int
    """committed batches that a standby has still to follow"""
    armed: str | None
    """id of the handover for which it has armed itself"""


class LiveElement(TypedDict):
    id: str
    type: Annotated[Any, WithJsonSchema({"type": "string"})]
    """of an invalid draft it may be anything, which is shown as a type that is not known"""
    title: str
    """what people call it"""
    group: str
    group_title: str
    status: ElementStatus
    node: str | None
    epoch: int
    seq: int
    rows_in_per_s: Number | None
    """rates, lag and times are null while its node is not heard"""
    rows_out_per_s: Number | None
    lag_rows: int | None
    batch_ms_p50: Number | None
    batch_ms_p95: Number | None
    batch_ms_p99: Number | None
    latency_ms_p50: Number | None
    latency_ms_p95: Number | None
    latency_ms_p99: Number | None
    rows_in_total: int
    rows_out_total: int
    dead_letters_total: int
    state_bytes: int
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
    actions: dict[ElementAction, Allowed]


@with_config(STORED)
class ElementPoint(TypedDict):
    """A figure that is not there is unknown."""

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


class Requested(TypedDict):
    status: Literal["requested"]


class PeekedRecord(TypedDict):
    offset: int
    partition: int
    at: str | None
    key: str | None
    value: Any


class DeadLetters(TypedDict):
    records: list[PeekedRecord]


class Peeked(DeadLetters):
    stream: str


@with_config(STORED)
class FileColumn(TypedDict):
    name: str
    type: str


class StoredFile(TypedDict):
    id: str
    reference: str
    name: str
    size: int
    sha256: str
    columns: list[FileColumn]
    created_at: str
    created_by: str | None


class Port(TypedDict):
    name: str
    description: str


class Operator(TypedDict):
    type: str
    title: str
    summary: str
    category: str
    icon: str
    inputs: list[Port]
    outputs: list[Port]
    params_schema: dict[str, Any]
    docs: str
    example: dict[str, Any]
    stateful: bool
    follow: Follow
    follow_depends: bool
    """with other parameters or input types it may be another one"""
    version: int


class Throughput(TypedDict):
    sources: list[str]
    step_ms: int
    until_ms: int
    rows_per_s: list[Number | None]
