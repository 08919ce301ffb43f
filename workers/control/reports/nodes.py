"""Stores the part of a report about the node itself: the node's row, its links, its curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction

from pipeline_runtime.model.desired import NodeReport
from pipeline_runtime.wire import keys
from webapp.audit.records import record_event, silence_of
from webapp.moments import moment_of_ms
from webapp.nodes.models import Node
from workers.control.context import ControlContext
from workers.control.reports.clocks import Clocks
from workers.control.reports.histories import Histories, NodeSamples
from workers.control.reports.leaving import FIELDS, forget_leaving, note_leaving, tell_left
from workers.control.reports.links import LinkRows, note_broker

_LOAD_POINT = ("cpu_ratio", "memory_bytes", "memory_ratio", "disk_ratio", "battery_ratio")
_WRITTEN = (
    "up",
    "ready",
    "silent_at",
    "url",
    "version",
    "cores",
    "run_id",
    "report_number",
    "revision_seen",
    "last_seen_at",
    "load",
    "alerts",
    "broker_rtt_ms",
    "broker_measured_at",
)
"""What a report writes. The web changes other fields (cordoned) at the same time."""

Alert = dict[str, str]


class NodeRows:
    """Writes reports to the rows of their nodes. Belongs to one thread."""

    def __init__(self, context: ControlContext, histories: Histories) -> None:
        self._context = context
        self._histories = histories
        self._samples = NodeSamples(context.tuning.sample_s)
        self._clocks = Clocks()
        self._links = LinkRows()

    def write(self, node: Node, report: NodeReport, heard_ms: int) -> None:
        """Runs in the transaction of the report."""
        if not node.up:
            cause = silence_of(node.name) if node.silent_at is not None else None
            record_event("node.up", f"{node.name} is up.", node=node.name, cause=cause)
            # Restorations that had no target may go on now.
            transaction.on_commit(self._context.work.notify)
        node.up, node.ready, node.silent_at = True, report.ready, None
        node.url, node.version, node.cores = report.url, report.version, report.cores
        node.run_id, node.report_number = report.run_id, report.number
        node.revision_seen = report.revision
        node.last_seen_at = moment_of_ms(heard_ms)
        node.load = report.load.model_dump(mode="json")
        node.alerts = self._alerts(node, report, heard_ms)
        note_broker(node, report)
        leaving = FIELDS if note_leaving(node, report) else ()
        if leaving:
            transaction.on_commit(self._context.work.notify)
        node.save(update_fields=[*_WRITTEN, *leaving])
        self._links.take(node, report)
        self._add_points(node, report, heard_ms)

    def say_goodbye(self, node: Node) -> None:
        """The node has ended on purpose."""
        if node.leaving_since is None:
            record_event("node.stopped", f"{node.name} was stopped. Its state is kept there.", node=node.name)
        else:
            tell_left(node)
            forget_leaving(node)
            node.save(update_fields=FIELDS)
        Node.objects.filter(pk=node.pk).update(up=False, ready=False, silent_at=None, alerts=[])

    def _alerts(self, node: Node, report: NodeReport, heard_ms: int) -> list[Alert]:
        known = [alert["message"] for alert in node.alerts]
        clock = self._clocks.alerts(node.name, report.at_ms, heard_ms, known)
        alerts, new = alerts_now(node.alerts, (*report.alerts, *clock), moment_of_ms(heard_ms).isoformat())
        for message in new:
            record_event("node.alert", f"{node.name}: {message}", severity="warning", node=node.name)
        return alerts

    def _add_points(self, node: Node, report: NodeReport, heard_ms: int) -> None:
        key = keys.node_history(node.name)
        if self._histories.due(key):
            load = {name: node.load.get(name) for name in _LOAD_POINT}
            self._histories.add(key, {"t": heard_ms, **load})
        sample = self._samples.take(node.name, heard_ms, report.load)
        if sample is not None:
            self._histories.add(keys.node_samples(node.name), sample, keys.SAMPLES_MAX)


def alerts_now(before: Iterable[Alert], messages: Sequence[str], now: str) -> tuple[list[Alert], list[str]]:
    """Returns the alerts of a node, and which of them are new. One that goes on keeps its time."""
    since = {alert["message"]: alert["since"] for alert in before}
    new = [message for message in dict.fromkeys(messages) if message not in since]
    return [{"message": message, "since": since.get(message, now)} for message in messages], new
