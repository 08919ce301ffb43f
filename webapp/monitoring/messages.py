"""Messages of /ws/live.

The browser's types are generated from `LiveBody` and `Wish`, see webapp/api/typescript.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from webapp.alarms.schemas import Alarm
from webapp.handovers.schemas import Handover, QueuedMove
from webapp.monitoring.schemas import LiveElement, LogEvent, PipelineItem
from webapp.nodes.schemas import Node
from webapp.operations.schemas import Operation


class SnapshotData(TypedDict):
    nodes: list[Node]
    pipelines: list[PipelineItem]
    elements: dict[str, list[LiveElement]]
    """by pipeline"""
    handovers: list[Handover]
    moves: list[QueuedMove]
    """the queues of the pipelines that are watched, each in its order"""
    operations: list[Operation]
    events: list[LogEvent]
    alarms: list[Alarm]
    """the open ones, the worst first, of equal ones the newest; of very many not all"""


class SnapshotMessage(TypedDict):
    type: Literal["snapshot"]
    data: SnapshotData


class NodesMessage(TypedDict):
    """All of them. The next two hold all pipelines, and all elements of one pipeline."""

    type: Literal["nodes"]
    data: list[Node]


class PipelinesMessage(TypedDict):
    type: Literal["pipelines"]
    data: list[PipelineItem]


class ElementsMessage(TypedDict):
    type: Literal["elements"]
    pipeline: str
    data: list[LiveElement]


class MovesMessage(TypedDict):
    """The queues of all pipelines that are watched."""

    type: Literal["moves"]
    data: list[QueuedMove]


class AlarmChanges(TypedDict):
    changed: list[Alarm]
    """those that are new or different; a browser puts them in the order of the snapshot"""
    gone: list[int]
    """ids of those that are no longer among the open ones"""


class AlarmsMessage(TypedDict):
    """What is different among the open alarms."""

    type: Literal["alarms"]
    data: AlarmChanges


class HandoverMessage(TypedDict):
    type: Literal["handover"]
    data: Handover


class OperationMessage(TypedDict):
    type: Literal["operation"]
    data: Operation


class EventMessage(TypedDict):
    type: Literal["event"]
    data: LogEvent


LiveChange = (
    NodesMessage
    | PipelinesMessage
    | ElementsMessage
    | MovesMessage
    | AlarmsMessage
    | HandoverMessage
    | OperationMessage
    | EventMessage
)
LiveBody = Annotated[SnapshotMessage | LiveChange, Field(discriminator="type")]
"""A message without its number `n`, which each socket counts for itself."""


class WatchWish(TypedDict):
    pipeline: str | None
    """null for the elements of all that are deployed"""
    nodes: bool


class Wish(TypedDict, total=False):
    """What a browser sends. The server accepts the parts that it can read, since a page may be of another
    version."""

    watch: WatchWish
    resync: bool
