"""Carries out the advice of policies: orders a move, or shows the advice in the dashboard. Logs each
decision.

Verdicts follow from rows and samples alone, and a handover's reason says which policy ordered it. So control
may end at any moment, and decides the same afterwards.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from django.db import transaction
from django.utils import timezone

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import HOUR_S, Verdict, What
from pipeline_runtime.placement.policy.maintenance import closed
from pipeline_runtime.placement.policy.rules import Policy as PurePolicy
from webapp.audit.announcements import announce
from webapp.handovers.actions import order
from webapp.handovers.models import Handover
from webapp.nodes.links import latencies, stream_ways
from webapp.nodes.models import Node
from webapp.operations.copies import Change, change_copies, in_words, why_not
from webapp.operations.models import Operation
from webapp.placements.group_state import migrate_refusal, restoration_strategy, restore_refusal
from webapp.policies.facts import (
    REASON,
    DeployedGroup,
    groups_now,
    moves_now,
    nodes_now,
    pure,
    samples_of,
    with_latencies,
)
from webapp.policies.models import Decision, Policy
from webapp.policies.places import with_users
from webapp.policies.schemas import Standing
from webapp.policies.sites import changes_now, copied_now, with_refuges
from webapp.problems import BackendAway, Conflict, Problem
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.handovers.drains import order_move

log = logging.getLogger(__name__)

QUIET = ("calm", "unknown")
CHANGES = ("copy", "take-out")
Ordered = Handover | Operation | None
DECISIONS_KEPT = 5_000
DECISIONS_PRUNED_EVERY = 100


class PolicyKeeper:
    """Belongs to the sweeper's thread."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context
        self._looked_at_s = float("-inf")

    def look(self, bulkhead: Bulkhead) -> None:
        """Looks once each policies_s. Decides nothing while nodes cannot be heard."""
        if self._context.hearing_since_ms is None:
            return
        if time.monotonic() - self._looked_at_s < self._context.tuning.policies_s:
            return
        self._looked_at_s = time.monotonic()
        rows, nodes = list(Policy.objects.filter(enabled=True)), list(Node.objects.all())
        with bulkhead.only(
            "maintenance", "Control cannot see now which nodes are in maintenance. Everything else works.", ""
        ):
            _close([pure(row) for row in rows], nodes)
        alert = "Policies decide nothing now. Everything else works."
        with bulkhead.only("looking at policies", alert, ""):
            self._evaluate(rows, nodes, bulkhead)

    def _evaluate(self, rows: list[Policy], nodes: list[Node], bulkhead: Bulkhead) -> None:
        if not rows:
            return
        redis_url = self._context.settings.redis_url
        policies, now, groups = [pure(row) for row in rows], timezone.now(), groups_now()
        copied = copied_now(policies, groups)
        kinds = {policy.rule.kind for policy in policies}
        newest = round(HOUR_S / self._context.tuning.sample_s)
        try:
            samples = samples_of([node.name for node in nodes], newest, redis_url)
            measured = with_users(with_latencies(groups, policies, redis_url), groups, policies)
        except BackendAway:
            return  # the thread that reads reports tells of it
        verdicts = evaluate(
            policies,
            nodes_now(nodes, samples),
            with_refuges(measured, groups, copied),
            moves_now(now),
            now.timestamp(),
            _advised(rows),
            latencies() if "follow" in kinds else {},
            copied,
            changes_now(now) if copied else (),
            stream_ways() if "latency" in kinds else {},
        )
        for row in rows:
            own = [verdict for verdict in verdicts if verdict.policy == row.name]
            alert = f"Control cannot carry out the policy {row.name} now. The other policies work."
            with bulkhead.only(f"the policy {row.name}", alert, ""), transaction.atomic():
                _take(row, own, groups, now)


def _close(policies: list[PurePolicy], nodes: list[Node]) -> None:
    """Writes down until when nodes are in maintenance. Such nodes take nothing new."""
    until = closed(policies, nodes_now(nodes, {}), timezone.now().timestamp())
    for node in nodes:
        wanted = datetime.fromtimestamp(until[node.name], UTC) if node.name in until else None
        if node.maintenance_until != wanted:
            Node.objects.filter(pk=node.pk).update(maintenance_until=wanted)
            node.maintenance_until = wanted
            announce()


def _advised(rows: list[Policy]) -> dict[str, str]:
    """Returns group -> target of the moves that are advised now."""
    return {
        each["group"]: each["target"]
        for row in rows
        if row.mode == Policy.Mode.ADVICE
        for each in row.standing
        if each["code"] == "move"
    }


def _take(known: Policy, verdicts: list[Verdict], groups: Mapping[str, DeployedGroup], now: datetime) -> None:
    """Does what the verdicts say, and writes down those that have changed."""
    # Locked: a change, a disabling or a removal happens before this or after it.
    row = Policy.objects.select_for_update().filter(pk=known.pk, enabled=True).first()
    if row is None or pure(row) != pure(known):
        return
    before = {_what(each): each for each in row.standing}
    standing: list[Standing] = []
    for verdict in verdicts:
        ordered: Ordered = None
        if verdict.code in CHANGES:
            verdict, ordered = _change(row, verdict)
        elif verdict.code in ("move", "restore") and row.mode == Policy.Mode.AUTOMATIC:
            ordered = _order(row, verdict, groups[verdict.group or ""])
            if ordered is None:
                continue  # somebody else was faster; the next look sees it
        said = _standing(verdict, groups, now)
        standing.append(before.get(verdict.what, said))
        if verdict.what not in before and _is_news(verdict, row.standing):
            _write_down(row, said, ordered)
    if [_what(each) for each in standing] != [_what(each) for each in row.standing]:
        row.standing = standing
        row.save(update_fields=["standing"])
        announce()


def _order(row: Policy, verdict: Verdict, group: DeployedGroup) -> Handover | None:
    """Returns None if the group cannot be moved any more, or somebody else moves it."""
    target, restores = verdict.target or "", verdict.code == "restore"
    refusal = restore_refusal(group.facts, target) if restores else migrate_refusal(group.facts, target)
    if refusal is not None:
        log.info("%s does not go to %s by the policy %s: %s", group.now.title, target, row.name, refusal)
        return None
    reason = f"{REASON}{row.name}"
    if not restores:
        return order_move(group.deployment, group.facts, group.element, target, reason)
    try:
        return order(
            None,
            group.deployment,
            group.facts,
            element=group.element,
            kind=Handover.Kind.RESTORATION,
            strategy=restoration_strategy(group.facts, target, None),
            target=target,
            reason=reason,
        )
    except Conflict as conflict:
        log.info("%s is not restored on %s now (%s): %s", group.now.title, target, reason, conflict)
        return None


def _change(row: Policy, verdict: Verdict) -> tuple[Verdict, Operation | None]:
    """Changes a pipeline's copies at a site. The verdict returned says why, if that is refused."""
    name, site = verdict.pipeline or "", verdict.site or ""
    change: Change = "copy" if verdict.code == "copy" else "take-out"
    if row.mode == Policy.Mode.ADVICE:
        refusal, operation = why_not(name, site, change), None
    else:
        try:
            refusal, operation = None, change_copies(None, name, site, change, f"{REASON}{row.name}")
        except Problem as problem:
            refusal, operation = in_words(problem), None
    if refusal is not None:
        verdict = replace(verdict, code="refused", why=f"{verdict.why} {refusal}")
    return verdict, operation


def _what(standing: Standing) -> What:
    """Returns the same as Verdict.what."""
    site = standing.get("site")
    about = (site, standing["pipeline"] if site else None)
    return (standing["node"], standing["group"], standing["code"], standing["target"], *about)


def _standing(verdict: Verdict, groups: Mapping[str, DeployedGroup], now: datetime) -> Standing:
    group = groups.get(verdict.group or "")
    said: Standing = {
        "node": verdict.node,
        "code": verdict.code,
        "why": verdict.why,
        "since": now.isoformat(),
        "group": verdict.group,
        "pipeline": group.deployment.pipeline.name if group else verdict.pipeline,
        "element": group.element if group else None,
        "title": group.now.title if group else None,
        "target": verdict.target,
    }
    return {**said, "site": verdict.site} if verdict.site else said


def _is_news(verdict: Verdict, before: list[Standing]) -> bool:
    """Returns whether the verdict belongs in the log.

    A move that goes on does not, nor does a calm that goes on.
    """
    if verdict.code == "moving":
        return False
    if verdict.code in QUIET:
        if verdict.site is not None:
            about = (verdict.site, verdict.pipeline)
            return any(
                (each.get("site"), each["pipeline"]) == about and each["code"] not in QUIET for each in before
            )
        if verdict.group is None:
            return any(each["node"] == verdict.node for each in before)
        return any(each["group"] == verdict.group and each["code"] not in QUIET for each in before)
    return True


def _write_down(row: Policy, said: Standing, ordered: Ordered) -> None:
    decision = Decision.objects.create(
        policy=row.name,
        node=said["node"],
        site=said.get("site", ""),
        pipeline=said["pipeline"] or "",
        element=said["element"] or "",
        title=(said["title"] or "")[:200],
        code=said["code"],
        target=said["target"] or "",
        why=said["why"],
        handover=ordered.pk if isinstance(ordered, Handover) else None,
        operation=ordered.pk if isinstance(ordered, Operation) else None,
    )
    if decision.pk % DECISIONS_PRUNED_EVERY == 0:
        Decision.objects.filter(pk__lte=decision.pk - DECISIONS_KEPT).delete()
