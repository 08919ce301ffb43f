"""/metrics in Prometheus' text format, from what the nodes last reported."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webapp.handovers.models import Handover
from webapp.monitoring.control_state import control_state
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, Replica
from webapp.pipelines.shape import groups_of

LOCAL = ("127.0.0.1", "::1")


@dataclass(frozen=True)
class Metric:
    name: str
    kind: str
    help: str


ROWS_IN = Metric("fogline_element_rows_in_total", "counter", "Rows read since the replica started")
ROWS_OUT = Metric("fogline_element_rows_out_total", "counter", "Rows committed since the replica started")
DEAD = Metric("fogline_element_dead_letters_total", "counter", "Rows that could not be processed")
LAG = Metric("fogline_element_lag_rows", "gauge", "Rows that wait to be read")
BATCH = Metric("fogline_element_batch_seconds", "summary", "Time that a batch takes")
STATE = Metric("fogline_element_state_bytes", "gauge", "Size of the state")
CHECKPOINT_AGE = Metric("fogline_checkpoint_age_seconds", "gauge", "Age of the newest checkpoint")
CPU = Metric("fogline_node_cpu_ratio", "gauge", "CPU use over all cores, 0 to 1")
MEMORY = Metric("fogline_node_memory_bytes", "gauge", "Memory that the agent and its children use")
UP = Metric("fogline_node_up", "gauge", "1: the node is heard")
CONTROL_UP = Metric("fogline_control_up", "gauge", "1: the control process hears the nodes; else nobody does")
GAP = Metric(
    "fogline_handover_gap_seconds",
    "gauge",
    "Last output of the old owner to first output of the new one, of the element's newest handover",
)
_COUNTERS = (
    (ROWS_IN, "rows_in_total", 1.0),
    (ROWS_OUT, "rows_out_total", 1.0),
    (DEAD, "dead_letters_total", 1.0),
    (STATE, "state_bytes", 1.0),
)

Sample = tuple[Metric, dict[str, str], float]


def metrics(request: HttpRequest) -> HttpResponse:
    """With FOGLINE_METRICS_TOKEN set, only for who sends it; else only for this machine."""
    if not _allowed(request):
        return HttpResponse("Send the metrics token.\n", status=401, content_type="text/plain")
    return HttpResponse(exposition(samples()), content_type="text/plain; version=0.0.4; charset=utf-8")


def samples() -> Iterator[Sample]:
    hears = control_state().hears
    yield CONTROL_UP, {}, float(hears)
    yield from _element_samples(hears)
    for node in Node.objects.all():
        labels = {"node": node.name}
        heard = node.up and hears
        yield UP, labels, float(heard)
        if heard and node.load:
            yield CPU, labels, node.load.get("cpu_ratio", 0.0)
            yield MEMORY, labels, node.load.get("memory_bytes", 0.0)
    seen = set()
    for handover in Handover.objects.filter(gap_ms__isnull=False).select_related("deployment__pipeline")[
        :200
    ]:
        labels = {"pipeline": handover.deployment.pipeline.name, "element": handover.element}
        if (key := tuple(labels.values())) not in seen:
            seen.add(key)
            yield GAP, {**labels, "node": handover.target}, handover.gap_ms / 1000


def _element_samples(hears: bool) -> Iterator[Sample]:
    now_ms = timezone.now().timestamp() * 1000
    deployments = Deployment.objects.filter(status__in=Deployment.ACTIVE).select_related(
        "version", "pipeline"
    )
    groups = {row.pk: (row.pipeline.name, groups_of(row.version.document)) for row in deployments}
    replicas = Replica.objects.filter(deployment__in=groups, role="owner")
    for replica in replicas.select_related("node"):
        status: dict[str, Any] = replica.status
        pipeline, elements = groups[replica.deployment_id]
        for element in elements.get(replica.group, ()):
            labels = {"pipeline": pipeline, "element": element, "node": replica.node.name}
            for metric, field, factor in _COUNTERS:
                yield metric, labels, (status.get(field) or 0) * factor
            if replica.node.up and hears:  # else they would be those of long ago
                yield from _present_samples(labels, status)
            if status.get("checkpoint_at_ms"):
                yield CHECKPOINT_AGE, labels, max(0.0, (now_ms - status["checkpoint_at_ms"]) / 1000)


def _present_samples(labels: dict[str, str], status: dict[str, Any]) -> Iterator[Sample]:
    yield LAG, labels, status.get("lag_rows") or 0
    for quantile, field in (("0.5", "batch_ms_p50"), ("0.99", "batch_ms_p99")):
        if status.get(field) is not None:
            yield BATCH, {**labels, "quantile": quantile}, status[field] / 1000


def exposition(found: Iterable[Sample]) -> str:
    """Samples grouped by metric, as the format demands."""
    by_metric: dict[Metric, list[str]] = {}
    for metric, labels, value in found:
        text = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
        by_metric.setdefault(metric, []).append(f"{metric.name}{{{text}}} {value:.15g}")
    lines = []
    for metric, rows in by_metric.items():
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *rows]
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _allowed(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return secrets.compare_digest(given.encode(), settings.METRICS_TOKEN.encode())
    # Behind a proxy of this machine, everybody comes from this machine.
    return not settings.HTTPS and request.META.get("REMOTE_ADDR") in LOCAL
