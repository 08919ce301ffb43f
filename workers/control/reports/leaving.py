"""Decides what the reports of a leaving node mean for its row in the database.

    report with leaving_until_ms --> its row is marked (Node.leaving_since); handovers/drains.py empties it
    goodbye, silence, or a report without it --> no mark; when it is started again, it takes new elements

The mark follows the newest report, so a control process that was away goes on with what it finds. The node
sees itself when it owns nothing any more, and ends.
"""

from __future__ import annotations

from django.db.models import Q
from django.utils import timezone

from pipeline_runtime.handover.phases import Phase
from pipeline_runtime.model.desired import NodeReport
from webapp.audit.records import record_event
from webapp.handovers.models import Handover
from webapp.moments import moment_of_ms
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement
from webapp.placements.names import Names
from workers.control.handovers.drains import elements_moved

FIELDS = ("leaving_since", "leaving_until", "leaving_stuck", "drain_blocked")


def note_leaving(node: Node, report: NodeReport) -> bool:
    """Sets or takes away the mark on the row in memory, as the report says. Returns whether it changed."""
    until_ms = report.leaving_until_ms
    if (until_ms is None) == (node.leaving_since is None):
        return False
    if until_ms is None:
        forget_leaving(node)
        return True
    node.leaving_since = timezone.now()
    node.leaving_until = moment_of_ms(until_ms)
    within_s = max(0, round((until_ms - report.at_ms) / 1000))
    text = f"{node.name} is leaving: it was stopped, and hands over its groups within {within_s} s."
    record_event("node.leaving", text, node=node.name)
    return True


def forget_leaving(node: Node) -> None:
    """Takes the mark off the row in memory. A drain that a person has ordered stays."""
    node.leaving_since, node.leaving_until, node.leaving_stuck = None, None, False
    if node.draining_since is None:
        node.drain_blocked = ""


def tell_left(node: Node) -> None:
    """Records what a node that says goodbye has handed over, and what it leaves behind."""
    done = Q(outcome=Handover.Outcome.DONE, ended_at__gte=node.leaving_since)
    # These already run elsewhere. The node did not wait until their pause was measured.
    finishing = Q(outcome__isnull=True, phase=Phase.FINISH.value)
    moves = Handover.objects.filter(done | finishing, kind=Handover.Kind.MIGRATION, origin=node.name)
    names = Names()
    left = [
        names.of(*group)
        for group in GroupPlacement.objects.filter(node=node, deployment__status__in=Deployment.ACTIVE)
        .order_by("deployment__pipeline__name", "group")
        .values_list("deployment", "group")
    ]
    they = "it is" if len(left) == 1 else "they are"
    rest = (
        f"Not handed over: {', '.join(left)}. Nothing of that runs until {node.name} is started again,"
        f" or until {they} restored on another node."
        if left
        else "Nothing is left there to run."
    )
    text = f"{node.name} has left: {elements_moved(moves)} handed over. {rest}"
    record_event("node.left", text, severity="warning" if left else "info", node=node.name)
