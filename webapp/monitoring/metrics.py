"""/metrics in Prometheus' text format, from the nodes' last reports.

A group of several elements is one query with one lag, one state and one time per batch. Each of these figures
appears once, with the group's id as `element`, so no sum counts it twice. The numbers of rows are for each
element, if they are counted for each. If a group has one element, all its figures have that element's id.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pipeline_runtime.model.ids import document_group
from webapp.backends.control_state import control_state
from webapp.handovers.models import Handover
from webapp.handovers.pause import pause_of
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement, Replica
from webapp.placements.selectors import elements_by_group

LOCAL = ("127.0.0.1", "::1")
ELEMENT = ("pipeline", "element", "node")
HANDOVERS = 200
BATCH_QUANTILES = (("0.5", "batch_ms_p50"), ("0.95", "batch_ms_p95"), ("0.99", "batch_ms_p99"))


class FoglineCollector(Collector):
    def collect(self) -> Iterable[Metric]:
        hears = control_state().hears
        up = GaugeMetricFamily(
            "fogline_control_up",
            "1: control hears the nodes; 0: it does not",
            value=float(hears),
        )
        return [up, *_element_metrics(hears), *_node_metrics(hears), _pauses()]


_registry = CollectorRegistry(auto_describe=False)  # not the global one, which describes this process
_registry.register(FoglineCollector())


def metrics(request: HttpRequest) -> HttpResponse:
    """Answers with the metrics. If FOGLINE_METRICS_TOKEN is set, answers only callers that send it, and
    otherwise only this machine."""
    if not _allowed(request):
        return HttpResponse("Send the metrics token.\n", status=401, content_type="text/plain")
    return HttpResponse(generate_latest(_registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _element_metrics(hears: bool) -> list[Metric]:
    rows_in = CounterMetricFamily(
        "fogline_element_rows_in", "Rows read since it was first deployed", labels=ELEMENT
    )
    rows_out = CounterMetricFamily(
        "fogline_element_rows_out",
        "Rows that it gave on or committed since it was first deployed",
        labels=ELEMENT,
    )
    dead = CounterMetricFamily(
        "fogline_element_dead_letters", "Rows that could not be processed", labels=ELEMENT
    )
    lag = GaugeMetricFamily("fogline_element_lag_rows", "Rows that wait to be read", labels=ELEMENT)
    batch = Metric("fogline_element_batch_seconds", "Time that a batch takes", "summary")
    state = GaugeMetricFamily("fogline_element_state_bytes", "Size of the state", labels=ELEMENT)
    age = GaugeMetricFamily("fogline_checkpoint_age_seconds", "Age of the newest checkpoint", labels=ELEMENT)
    now_ms = timezone.now().timestamp() * 1000
    backlogs = _backlogs()
    for (_, name), (pipeline, node, rows) in backlogs.items():
        lag.add_metric([pipeline, document_group(name), node], rows)
    for pipeline, elements, replica in _owners():
        status: dict[str, Any] = replica.status
        node = replica.node.name
        group = [pipeline, document_group(replica.group), node]
        counted = ((rows_in, "rows_in_total"), (rows_out, "rows_out_total"), (dead, "dead_letters_total"))
        for family, name in counted:
            for id, rows in _rows(status, name, group[1], elements):
                family.add_metric([pipeline, id, node], rows)
        state.add_metric(group, status.get("state_bytes") or 0)
        if replica.node.up and hears:  # otherwise the figures would be old
            is_counted = (replica.deployment_id, replica.group) in backlogs
            if not is_counted and status.get("lag_rows") is not None:
                lag.add_metric(group, status["lag_rows"])
            for quantile, name in BATCH_QUANTILES:
                if status.get(name) is not None:
                    labels = dict(zip(ELEMENT, group, strict=True)) | {"quantile": quantile}
                    batch.add_sample(batch.name, labels, status[name] / 1000)
        if status.get("checkpoint_at_ms"):
            age.add_metric(group, max(0.0, (now_ms - status["checkpoint_at_ms"]) / 1000))
    return [rows_in, rows_out, dead, lag, batch, state, age]


def _backlogs() -> dict[tuple[str, str], tuple[str, str, int]]:
    """Returns the pipeline, the node and the rows that wait, by deployment and group, for groups that do not
    process."""
    rows = GroupPlacement.objects.filter(
        backlog_rows__isnull=False, deployment__status__in=Deployment.ACTIVE
    ).values_list("deployment", "group", "deployment__pipeline__name", "node__name", "backlog_rows")
    return {(id, group): (pipeline, node, waiting) for id, group, pipeline, node, waiting in rows}


def _owners() -> Iterator[tuple[str, Collection[str], Replica]]:
    """Yields (the pipeline's name, the group's elements, its owner) for everything that is deployed."""
    active = Deployment.objects.filter(status__in=Deployment.ACTIVE)
    pipelines = dict(active.values_list("pk", "pipeline__name"))
    elements = elements_by_group(pipelines)
    owners = Replica.objects.filter(deployment__in=pipelines, role="owner").select_related("node")
    for replica in owners:
        key = (replica.deployment_id, replica.group)
        yield pipelines[replica.deployment_id], elements.get(key, ()), replica


def _rows(
    status: dict[str, Any], name: str, group: str, elements: Collection[str]
) -> Iterator[tuple[str, int]]:
    """Yields (element, rows) for each element. Yields the group's rows once if the group has one element, or
    if only Spark saw the rows."""
    counts = status.get("elements") or {}
    found = [(id, counts[id][name]) for id in elements if counts.get(id, {}).get(name) is not None]
    yield from found or [(group, status.get(name) or 0)]


def _node_metrics(hears: bool) -> list[Metric]:
    labels = ("node",)
    cpu = GaugeMetricFamily("fogline_node_cpu_ratio", "CPU use over all cores, 0 to 1", labels=labels)
    memory = GaugeMetricFamily(
        "fogline_node_memory_bytes", "Memory that the agent and its children use", labels=labels
    )
    up = GaugeMetricFamily("fogline_node_up", "1: the node is heard", labels=labels)
    for node in Node.objects.all():
        heard = node.up and hears
        up.add_metric([node.name], float(heard))
        if heard and node.load:
            cpu.add_metric([node.name], node.load.get("cpu_ratio", 0.0))
            memory.add_metric([node.name], node.load.get("memory_bytes", 0.0))
    return [cpu, memory, up]


def _pauses() -> Metric:
    told = GaugeMetricFamily(
        "fogline_handover_pause_seconds",
        "How much longer rows waited because of the element's newest handover, at most",
        labels=ELEMENT,
    )
    seen = set()
    newest = Handover.objects.filter(gap_ms__isnull=False).select_related("deployment__pipeline")
    for handover in newest[:HANDOVERS]:
        key, pause = (handover.deployment.pipeline.name, handover.element), pause_of(handover.measured)
        if key not in seen and pause is not None:
            seen.add(key)
            told.add_metric([*key, handover.target], pause["ms"] / 1000)
    return told


def _allowed(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return secrets.compare_digest(given.encode(), settings.METRICS_TOKEN.encode())
    # Behind a proxy on this machine, every caller seems to come from this machine.
    return not settings.HTTPS and request.META.get("REMOTE_ADDR") in LOCAL
