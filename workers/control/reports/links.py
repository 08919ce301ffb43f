"""Turns a node's report about the links to its peers and to the broker into rows."""

from __future__ import annotations

from django.db import transaction

from pipeline_runtime.model.desired import LinkReport, NodeReport
from pipeline_runtime.placement.links import smoothed
from webapp.moments import moment_of_ms
from webapp.nodes.models import Link, Node


class LinkRows:
    """Writes probes of links to their rows. Reports repeat the newest ones; only new ones are written."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[LinkReport, ...]] = {}  # node -> what was written last

    def take(self, node: Node, report: NodeReport) -> None:
        """Runs in the transaction of the report. Without links nothing changes: the node has just started."""
        if not report.links or self._taken.get(node.name) == report.links:
            return
        targets = {
            other.name: other for other in Node.objects.filter(name__in=[x.peer for x in report.links])
        }
        rows = {row.target_id: row for row in Link.objects.filter(origin=node)}
        for link in report.links:
            target = targets.get(link.peer)
            if target is not None and target != node:
                row = rows.pop(target.pk, None)
                if row is None or row.measured_at != moment_of_ms(link.at_ms):
                    followed(row or Link(origin=node, target=target), link).save()
        Link.objects.filter(pk__in=[row.pk for row in rows.values()]).delete()  # it probes others now
        transaction.on_commit(lambda: self._taken.update({node.name: report.links}))


def note_broker(node: Node, report: NodeReport) -> None:
    """Sets what the newest probe of the broker says on the node's row; the caller saves it."""
    if report.broker is None:
        return
    at = moment_of_ms(report.broker.at_ms)
    if node.broker_measured_at != at:
        node.broker_rtt_ms = smoothed(node.broker_rtt_ms, report.broker.rtt_ms)
        node.broker_measured_at = at


def followed(row: Link, link: LinkReport) -> Link:
    """Returns the row after the newest probe; the caller saves it.

    After a time without an answer no earlier value counts: it may be another line.
    """
    at = moment_of_ms(link.at_ms)
    if link.rtt_ms is None:
        row.unreachable_since = row.unreachable_since or at
        row.measured_at = row.measured_at or at
        return row
    row.measured_at = at
    fresh = row.unreachable_since is not None
    row.unreachable_since = None
    row.rtt_ms = smoothed(None if fresh else row.rtt_ms, link.rtt_ms)
    rate_at = None if link.bytes_at_ms is None else moment_of_ms(link.bytes_at_ms)
    if link.bytes_per_s is not None and rate_at != row.rate_measured_at:
        row.bytes_per_s = smoothed(None if fresh else row.bytes_per_s, link.bytes_per_s)
        row.rate_measured_at = rate_at
    return row
