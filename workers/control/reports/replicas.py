"""Stores the part of a report about the node's replicas: their rows, their curves, and notes for people."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction

from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.desired import NodeReport, ReplicaStatus, Role
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.wire import keys
from webapp.audit.records import record_event
from webapp.moments import moment_of_ms
from webapp.nodes.models import Node
from webapp.placements.models import ConnectorTrouble, Deployment, GroupPlacement, Replica
from webapp.placements.selectors import troubles_by_element
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.replica_rows import note_gaps, note_java_ends, note_new_state, reported
from workers.control.reports.histories import Histories
from workers.control.reports.notices import notices
from workers.control.reports.rates import Rates
from workers.control.reports.totals import with_totals
from workers.control.reports.troubles import Trouble, trouble_after, trouble_notice

_LATENCIES = ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99")
_TIMES = ("batch_ms_p50", "batch_ms_p95", *_LATENCIES)
_STATUS_POINT = ("lag_rows", *_TIMES, "state_bytes")


class ReplicaRows:
    """Writes reports to the rows of their replicas. Belongs to one thread."""

    def __init__(self, context: ControlContext, histories: Histories, bulkhead: Bulkhead) -> None:
        self._sample_s = context.tuning.sample_s
        self._histories = histories
        self._bulkhead = bulkhead
        self._rates = Rates()

    def write(self, node: Node, report: NodeReport, heard_ms: int) -> None:
        """Runs in the transaction of the report. Deletes the rows of replicas that the node has no more."""
        rows = {f"{row.deployment_id}.{row.group}": row for row in Replica.objects.filter(node=node)}
        ids = {status.group.partition(".")[0] for status in report.replicas}
        active = Deployment.objects.select_related("pipeline").filter(
            pk__in=ids, status__in=Deployment.ACTIVE
        )
        deployments = {deployment.pk: deployment for deployment in active}
        with_connectors = {s.group.partition(".")[0] for s in report.replicas if s.connectors}
        troubles = troubles_by_element(with_connectors) if with_connectors else {}
        for status in report.replicas:
            deployment_id, _, group = status.group.partition(".")
            deployment = deployments.get(deployment_id)
            if deployment is None or group in deployment.gone:
                continue  # it has ended, and the node will let go of it
            known = rows.pop(status.group, None)
            row = known or Replica(group=group)
            row.deployment, row.node = deployment, node
            alert = (
                f"The report of {node.name} about {document_group(group)} cannot be stored. "
                "The dashboard shows the earlier report."
            )
            doing = f"taking in what {node.name} reports of {status.group}"
            with self._bulkhead.only(doing, alert, node.name), transaction.atomic():
                self._write_one(row, reported(known), status, heard_ms)
                for each in status.connectors:
                    lasts_ms = report.at_ms - each.since_ms
                    before = troubles.get((deployment.pk, each.element))
                    _tell_trouble(before, each, lasts_ms, deployment, node.name, moment_of_ms(heard_ms))
        for row in rows.values():
            row.delete()
        self._rates.forget(node.name, {status.group for status in report.replicas})

    def _write_one(
        self, row: Replica, before: ReplicaStatus | None, status: ReplicaStatus, heard_ms: int
    ) -> None:
        deployment, group, node = row.deployment, row.group, row.node
        status = with_totals(before, status)
        for notice in notices(before, status, lambda: deployment.name_of(group), node.name):
            record_event(
                notice.kind,
                notice.message,
                severity=notice.severity,
                pipeline=deployment.pipeline.name,
                element=document_group(group),
                node=node.name,
            )
        if status.java_ends:
            note_java_ends(deployment.pk, group, status)
        if status.fresh_from:
            note_new_state(deployment.pk, group, status)
        self._note_gaps(before, status, deployment.pk, node.name)
        rates = self._rates.update(node.name, status, heard_ms)
        row.generation, row.role = status.generation, status.role.value
        row.epoch, row.seq, row.at = status.epoch, status.seq, moment_of_ms(heard_ms)
        row.status, row.rates = status.model_dump(mode="json"), rates
        row.save()
        if status.role is Role.OWNER:
            self._add_points(row, rates, heard_ms)

    def _note_gaps(
        self, before: ReplicaStatus | None, status: ReplicaStatus, deployment: str, node: str
    ) -> None:
        known = {each.element: each for each in before.connectors} if before is not None else {}
        for each in status.connectors:
            counted, last = _counted(each), known.get(each.element)
            if each.gaps_total and (last is None or counted != _counted(last)):
                note_gaps(deployment, each.element, node, *counted)

    def _add_points(self, row: Replica, rates: dict[str, Any], heard_ms: int) -> None:
        deployment, group = row.deployment_id, row.group
        whole = {name: rates[name] for name in ("rows_in_per_s", "rows_out_per_s")}
        samples = keys.group_samples(deployment, group)
        if self._histories.due(samples, self._sample_s):
            sample = {"t": heard_ms, **whole, "latency_ms_p95": row.status["latency_ms_p95"]}
            self._histories.add(samples, sample, keys.SAMPLES_MAX)
        if self._histories.due(f"{deployment}.{group}"):
            measured = {name: row.status[name] for name in _STATUS_POINT}
            if row.status["paused"] or row.status["ended"]:
                measured |= dict.fromkeys(_TIMES)  # no batch ends, and former ones say nothing of now
            for element in _elements_of(deployment, group):
                point = {"t": heard_ms, **rates["elements"].get(element, whole), **measured}
                self._histories.add(keys.element_history(deployment, element), point)


def _tell_trouble(
    row: ConnectorTrouble | None,
    said: ConnectorStatus,
    lasts_ms: int,
    deployment: Deployment,
    node: str,
    now: datetime,
) -> None:
    """Tells that a connector fails, or that it works again, and keeps what was told."""
    told = None if row is None else Trouble(row.why, row.since, row.over, row.times)
    after = trouble_after(told, said, lasts_ms, now)
    if after == told:
        return
    if after is None:
        ConnectorTrouble.objects.filter(deployment=deployment, element=said.element).delete()
        return
    ConnectorTrouble.objects.update_or_create(
        deployment=deployment, element=said.element, defaults=asdict(after)
    )
    notice = trouble_notice(told, after, deployment.name_of(said.element), node)
    if notice is not None:
        record_event(
            notice.kind,
            notice.message,
            severity=notice.severity,
            pipeline=deployment.pipeline.name,
            element=said.element,
            node=node,
        )


def _counted(status: ConnectorStatus) -> tuple[str, int, int]:
    return status.gaps_counter, status.gaps_total, status.gap_rows_total


def _elements_of(deployment: str, group: str) -> list[str]:
    placement = GroupPlacement.objects.filter(deployment=deployment, group=group).first()
    return [element["id"] for element in placement.spec["elements"]] if placement else []
