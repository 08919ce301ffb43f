"""Notices nodes that have fallen silent, and writes that down."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from webapp.audit.announcements import announce
from webapp.audit.records import NODE_SILENT, record_event
from webapp.backends.control_state import BLIND
from webapp.moments import ms_of_moment
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.handovers.restorations import on_silent_nodes
from workers.control.reports.detector import Hearing, judge
from workers.control.reports.leaving import FIELDS, forget_leaving

STALL_MS = 500
"""Redis usually answers at once. If it takes this much longer, nodes had to wait for it as well."""
LOOK = "The pipelines may still be running. Look at the nodes and at the network between them and Fogline."


class Silence:
    """Which nodes are heard. Belongs to one thread. All times are by Redis's clock, in ms."""

    def __init__(self, context: ControlContext, bulkhead: Bulkhead) -> None:
        self._context = context
        self._bulkhead = bulkhead
        self._clock = context.tuning.silence_ms
        self._hearing = Hearing()
        self._heard_ms: dict[str, int] = {}  # node -> when its newest report came
        self.since_ms: int | None = None  # since when Redis has answered without a break
        self.blind: str | None = None  # why no node is counted as down, or None if nodes are counted

    def listens(self, read_at_ms: int, waited_ms: int) -> None:
        """Redis has answered, `waited_ms` later than it had to."""
        if waited_ms > STALL_MS:
            self._hearing.waited(waited_ms)
        if self.since_ms is None:
            self.since_ms = self._clock(read_at_ms)

    def is_deaf(self) -> None:
        """Redis does not answer, so no node can be heard."""
        self.since_ms = None

    def heard(self, node: str, heard_ms: int) -> None:
        """A report that names this node has come."""
        self._hearing.heard(node, self._clock(heard_ms))

    def counts(self, node: str, heard_ms: int) -> None:
        """The node is not silent: that report came from it, and not from a process that was replaced."""
        self._heard_ms[node] = self._clock(heard_ms)

    def look(self, read_at_ms: int) -> None:
        """Writes down which nodes are down. Everything that came before `read_at_ms` has been read."""
        up = [
            self._hearing.sighting(node.name, self._heard_ms.get(node.name, _last_seen_ms(node)))
            for node in Node.objects.filter(up=True)
        ]
        limit_ms = int(self._context.settings.silence_s * 1000)
        verdict = judge(up, self._clock(read_at_ms), limit_ms, self.since_ms)
        if verdict.blind is not None:
            told, self.blind = self.blind, f"No node is counted as down: {verdict.blind}. {LOOK}"
            if told is None:
                record_event(BLIND, self.blind, severity="warning")
            return
        self.blind = None
        for name in verdict.down:
            alert = f"{name} is silent, but that could not be written down. It is tried again."
            with self._bulkhead.only(f"noting that {name} is silent", alert, name), transaction.atomic():
                note_silence(name, self._context)
        if verdict.down:
            self._context.reports.notify()
            self._context.work.notify()


def note_silence(name: str, context: ControlContext) -> None:
    """Marks a node as down, if it counts as up, and tells of it."""
    found = Node.objects.filter(name=name, up=True)
    # By our own clock: handovers and events are compared with it, and Redis's may differ.
    if not found.update(up=False, ready=False, silent_at=timezone.now()):
        return
    leaving = Node.objects.filter(name=name, leaving_since__isnull=False).first()
    if leaving is not None:  # it died before it had left, so it is restored instead of emptied
        forget_leaving(leaving)
        leaving.save(update_fields=FIELDS)
    silence_s, restore = context.settings.silence_s, context.settings.restore
    record_event(
        NODE_SILENT,
        f"{name} has been silent for more than {silence_s:g} s. {_what_next(name, restore)}",
        severity="error",
        node=name,
    )
    announce()


def _what_next(name: str, restore: str) -> str:
    if not on_silent_nodes().filter(node__name=name).exists():
        deploying = GroupPlacement.objects.filter(
            node__name=name, deployment__status=Deployment.Status.DEPLOYING
        )
        return "A deployment waits for it." if deploying.exists() else "It had nothing to run."
    kept = "Its checkpoints are in the central store."
    if restore == "auto":
        return f"{kept} What it ran is restored on other nodes by itself."
    return f"{kept} If it does not come back, restore its elements on another node."


def _last_seen_ms(node: Node) -> int:
    return 0 if node.last_seen_at is None else ms_of_moment(node.last_seen_at)
