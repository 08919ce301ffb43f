"""Reads what the open dashboards show, once for all of them, and finds the difference between two
readings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from channels.db import database_sync_to_async

from webapp.alarms.schemas import Alarm
from webapp.alarms.selectors import open_alarms
from webapp.handovers.queues import open_queues
from webapp.handovers.schemas import Handover, QueuedMove
from webapp.handovers.selectors import recent_handovers
from webapp.monitoring.board import whole_board
from webapp.monitoring.messages import LiveChange, SnapshotData
from webapp.monitoring.nodes import all_nodes
from webapp.monitoring.schemas import LiveElement, LogEvent, PipelineItem
from webapp.monitoring.selectors import events
from webapp.nodes.schemas import Node
from webapp.operations.schemas import Operation
from webapp.operations.selectors import recent_operations

Row = TypeVar("Row", Handover, Operation, LogEvent, Alarm)
Ends = TypeVar("Ends", Handover, Operation)
COUNTED_MAX = 100
"""How many alarms that were only raised again one update tells of. The others come with the next ones."""
COUNTED = ("count", "seen_at", "message", "values")
"""What is different in an alarm that was only raised again."""


@dataclass(frozen=True)
class Watch:
    """What a client wants to see. Without a `pipeline`, the elements of all deployed ones."""

    pipeline: str | None = None
    nodes: bool = True


@dataclass(frozen=True)
class LiveState:
    nodes: list[Node] = field(default_factory=list)
    pipelines: list[PipelineItem] = field(default_factory=list)
    elements: dict[str, list[LiveElement]] = field(default_factory=dict)
    handovers: list[Handover] = field(default_factory=list)
    moves: list[QueuedMove] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    events: list[LogEvent] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)

    def seen_by(self, watch: Watch) -> LiveState:
        deployed = {item["name"] for item in self.pipelines if item["deployment"]}
        wanted = deployed if watch.pipeline is None else {watch.pipeline}
        return LiveState(
            nodes=self.nodes if watch.nodes else [],
            pipelines=self.pipelines,
            elements={name: items for name, items in self.elements.items() if name in wanted},
            handovers=self.handovers,
            moves=[move for move in self.moves if move["pipeline"] in wanted],
            operations=self.operations,
            events=self.events,
            alarms=self.alarms,
        )

    def paced(self, sent: LiveState) -> LiveState:
        """Returns the state that a client should have next, after `sent`. If very many alarms were only
        raised again, some of them stay as the client has them."""
        known = {alarm["id"]: alarm for alarm in sent.alarms}
        again = [
            alarm for alarm in self.alarms if alarm["id"] in known and _only_counts(known[alarm["id"]], alarm)
        ]
        # First what the client has had no news of for longest.
        again.sort(key=lambda alarm: known[alarm["id"]]["seen_at"])
        late = {alarm["id"] for alarm in again[COUNTED_MAX:]}
        return replace(
            self, alarms=[known[alarm["id"]] if alarm["id"] in late else alarm for alarm in self.alarms]
        )

    def data(self) -> SnapshotData:
        """Returns the snapshot's `data`."""
        return {
            "nodes": self.nodes,
            "pipelines": self.pipelines,
            "elements": self.elements,
            "handovers": self.handovers,
            "moves": self.moves,
            "operations": self.operations,
            "events": self.events,
            "alarms": self.alarms,
        }


def read_state() -> LiveState:
    board = whole_board()
    return LiveState(
        nodes=all_nodes(),
        pipelines=[board.item(pipeline) for pipeline in board.pipelines],
        elements={pipeline.name: board.elements(pipeline) for pipeline in board.pipelines},
        handovers=recent_handovers(),
        moves=open_queues(),
        operations=recent_operations(),
        events=events(),
        alarms=open_alarms(),
    )


def changes(old: LiveState, new: LiveState) -> Iterator[LiveChange]:
    """Yields the messages (without `n`) that turn `old` into `new` at a client.

    A list of nodes, of pipelines, of one pipeline's elements or of queued moves replaces the former list.
    Messages update handovers, operations and alarms by id. Events are new ones, oldest first, and the client
    puts each of them in front.
    """
    if new.nodes != old.nodes:
        yield {"type": "nodes", "data": new.nodes}
    if new.pipelines != old.pipelines:
        yield {"type": "pipelines", "data": new.pipelines}
    for name in sorted({*old.elements, *new.elements}):
        if new.elements.get(name) != old.elements.get(name):
            yield {"type": "elements", "pipeline": name, "data": new.elements.get(name, [])}
    if new.moves != old.moves:
        yield {"type": "moves", "data": new.moves}
    if new.alarms != old.alarms:
        gone = {alarm["id"] for alarm in old.alarms} - {alarm["id"] for alarm in new.alarms}
        changed = _news(old.alarms, new.alarms)
        yield {"type": "alarms", "data": {"changed": changed, "gone": sorted(gone)}}
    for handover in _news(old.handovers, new.handovers):
        yield {"type": "handover", "data": handover}
    for operation in _news(old.operations, new.operations):
        yield {"type": "operation", "data": operation}
    for event in _news(old.events, new.events):
        yield {"type": "event", "data": event}


def _only_counts(before: Alarm, after: Alarm) -> bool:
    return before != after and all(
        before.get(name) == value for name, value in after.items() if name not in COUNTED
    )


def _news(before: list[Row], after: list[Row]) -> list[Row]:
    """Returns those that are new or changed, oldest first."""
    known = {item["id"]: item for item in before}
    return [item for item in reversed(after) if known.get(item["id"]) != item]


def has_lost(old: LiveState, new: LiveState) -> bool:
    """Returns whether something that was running is missing in `new`: it has ended, and newer ones have
    displaced it, or somebody has deleted it.

    No message says so, and a client would show it for ever. The client needs a snapshot.
    """
    return _has_lost(old.handovers, new.handovers) or _has_lost(old.operations, new.operations)


def _has_lost(before: list[Ends], after: list[Ends]) -> bool:
    return not {item["id"] for item in before if item["ended_at"] is None} <= {item["id"] for item in after}


class SharedReading:
    """Reads the database once for all callers that ask at about the same time.

    A caller that asks after a reading has begun gets the next reading. So each caller gets everything that
    was committed before it asked.
    """

    def __init__(self, read: Callable[[], LiveState] = read_state) -> None:
        self._read = database_sync_to_async(read)
        self._lock = asyncio.Lock()
        self._waiting: asyncio.Task[LiveState] | None = None

    async def get(self) -> LiveState:
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._run())
        # Shielded: one client that leaves must not end the others' reading.
        return await asyncio.shield(self._waiting)

    async def _run(self) -> LiveState:
        async with self._lock:
            self._waiting = None
            return await self._read()
