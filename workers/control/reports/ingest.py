"""Reads what the nodes report and keeps the database, the histories and the dashboards up to date."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import redis
from django.db import close_old_connections, transaction
from django.utils import timezone
from pydantic import ValidationError

from pipeline_runtime.model.desired import NodeReport, ReplicaStatus, Role
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.settings import NODE_NAME
from pipeline_runtime.wire import keys
from pipeline_runtime.wire.reports import ReportDamaged, json_of
from webapp.audit.announcements import announce
from webapp.audit.records import record_event
from webapp.backends.control_state import BLIND, EACH_S, STORE, tell_control_state
from webapp.moments import moment_of_ms, ms_of_moment
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement, Replica
from workers.control.bulkhead import NOT_OF_ONE_ROW, Bulkhead
from workers.control.context import ControlContext, now_ms as our_now_ms
from workers.control.handovers.restorations import on_silent_nodes
from workers.control.replica_rows import note_java_ends, note_new_state, reported
from workers.control.reports.clocks import Clocks
from workers.control.reports.detector import Hearing, judge
from workers.control.reports.histories import Histories, NodeSamples
from workers.control.reports.leaving import FIELDS, forget_leaving, note_leaving, tell_left
from workers.control.reports.links import LinkRows, note_broker
from workers.control.reports.notices import notices
from workers.control.reports.rates import Rates
from workers.control.reports.runs import Runs

log = logging.getLogger(__name__)

BLOCK_MS = 200
ENTRIES_MAX = 500
DETECT_INTERVAL_S = 0.2
LOOK = "Pipelines may well go on; look at the nodes and the network between."
STALL_MS = 500
"""Redis answers in a moment; when it took so much longer, nodes had to wait for it as well."""
_LOAD_POINT = ("cpu_ratio", "memory_bytes", "memory_ratio", "disk_ratio", "battery_ratio")
_LATENCIES = ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99")
_STATUS_POINT = ("lag_rows", "batch_ms_p50", "batch_ms_p95", *_LATENCIES, "state_bytes")


class Ingest:
    """One thread. Reports are whole, so of each node only the newest of a round is written."""

    def __init__(self, context: ControlContext, store_alerts: Callable[[], Iterable[str]] = tuple) -> None:
        """`store_alerts()`: what is the matter with the central store now."""
        self._context = context
        self._store_alerts = store_alerts
        self._redis = redis.Redis.from_url(
            context.settings.redis_url, socket_timeout=10, socket_connect_timeout=5, health_check_interval=10
        )
        self._cursor: bytes | None = None
        self._silence_ms = context.tuning.silence_ms
        self._hearing_since_ms: int | None = None  # by the clock of silence, as _hearing and _heard_ms
        self._hearing = Hearing()
        self._blind: str | None = None  # why nobody is counted as down
        self._troubles: dict[tuple[str, str], str] = {}  # (kind, message) -> since when, as last told
        self._state_at_s = 0.0
        self._detect_at_s = 0.0
        self._histories = Histories(self._redis)
        self._samples = NodeSamples(context.tuning.sample_s)
        self._runs = Runs()
        self._rates = Rates()
        self._clocks = Clocks()
        self._links = LinkRows()
        self._unknown: set[str] = set()
        self._heard_ms: dict[str, int] = {}  # node -> when its newest report came, taken in or not
        self._bulkhead = Bulkhead()
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)

    def start(self) -> None:
        self._context.hearing_since_ms = None
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _run(self) -> None:
        pause_s = 0.0
        while not self._context.closing.is_set():
            try:
                close_old_connections()
                self._round()
                pause_s = 0.0
            except redis.RedisError as error:
                if not pause_s:
                    log.warning("Redis is away (%s): nodes cannot be heard, nothing is concluded.", error)
                self._hearing_since_ms = self._context.hearing_since_ms = None
                pause_s = min(max(0.5, pause_s * 2), 5.0)
            except Exception:
                log.exception("reports could not be taken in; they are read again")
                pause_s = 1.0
            if pause_s:
                self._context.closing.wait(pause_s)

    def _round(self) -> None:
        stored: Any = self._redis.get(keys.REPORTS_CURSOR) if self._cursor is None else self._cursor
        cursor: bytes = stored or b"0-0"
        # Nobody else reads them. Redis takes this also when it is full, and then takes reports again.
        self._redis.xtrim(keys.REPORTS_STREAM, minid=cursor, approximate=False)
        asked_at_s = time.monotonic()
        # Before the reports are read: so of all that came until then, nothing is left unread.
        now_ms = self._silence_ms(self._redis_now_ms())
        answer: Any = self._redis.xread({keys.REPORTS_STREAM: cursor}, count=ENTRIES_MAX, block=BLOCK_MS)
        waited_ms = int((time.monotonic() - asked_at_s) * 1000) - BLOCK_MS
        if waited_ms > STALL_MS:
            self._hearing.waited(waited_ms)
        if self._hearing_since_ms is None:
            self._hearing_since_ms = now_ms
        newest: dict[str, tuple[int, NodeReport]] = {}
        entries = answer[0][1] if answer else []
        for entry_id, fields in entries:
            heard_ms = int(entry_id.split(b"-")[0])
            report = self._parse(fields, heard_ms)
            if report is not None:
                self._hearing.heard(report.node, self._silence_ms(heard_ms))
                newest[report.node] = (heard_ms, report)
        for heard_ms, report in newest.values():
            alert = f"What {report.node} reports cannot be taken in: it is shown as it was. It works on."
            try:
                with self._bulkhead.only(f"taking in a report of {report.node}", alert, report.node):
                    self._take(report, heard_ms)
            except NOT_OF_ONE_ROW:
                self._runs.forget(report.node)  # it is read again
                raise
        self._histories.write()
        if entries:
            self._cursor = entries[-1][0]
            self._redis.set(keys.REPORTS_CURSOR, self._cursor)
            self._context.reports.notify()
        if len(entries) < ENTRIES_MAX:
            # Only when all that waited was read: a backlog is not silence.
            if self._context.hearing_since_ms is None:
                self._context.hearing_since_ms = our_now_ms()
            if time.monotonic() - self._detect_at_s >= DETECT_INTERVAL_S:
                self._detect_at_s = time.monotonic()
                self._detect(now_ms)
        if time.monotonic() - self._state_at_s >= EACH_S:
            self._state_at_s = time.monotonic()
            self._tell_state()

    def _tell_state(self) -> None:
        """That reports are taken in, for the web: else what it shows would look as if it were of now."""
        kinds = [(STORE, alert) for alert in self._store_alerts()]
        if self._blind is not None:
            kinds.insert(0, (BLIND, self._blind))
        now = timezone.now().isoformat()
        self._troubles = {each: self._troubles.get(each, now) for each in kinds}
        troubles = [
            {"kind": kind, "message": message, "since": since}
            for (kind, message), since in self._troubles.items()
        ]
        try:
            tell_control_state(self._redis, troubles)
        except redis.exceptions.OutOfMemoryError as error:
            log.debug("the web is not told that control works: %s", error)

    def _redis_now_ms(self) -> int:
        seconds, microseconds = self._redis.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    def _parse(self, fields: dict[bytes, bytes], heard_ms: int) -> NodeReport | None:
        try:
            report = NodeReport.model_validate_json(json_of(fields[keys.REPORT_FIELD]))
        except (KeyError, ReportDamaged, ValidationError) as error:
            node = _sender(fields)
            if node:
                self._heard_ms[node] = self._silence_ms(heard_ms)
                self._hearing.heard(node, self._heard_ms[node])
            who = node or "a machine that is not registered"
            alert = f"A report of {who} cannot be read and is ignored. See whether it runs the same Fogline."
            self._bulkhead.failed(_reading(who), alert, node, error)
            return None
        self._bulkhead.works(_reading(report.node))
        return report

    # -- one report ------------------------------------------------------------------------------

    def _take(self, report: NodeReport, heard_ms: int) -> None:
        with transaction.atomic():
            node = Node.objects.filter(name=report.node).first()
            if node is None:
                self._refuse_unknown(report.node)
                return
            if not self._runs.accepts(
                node.name, report.run_id, report.number, (node.run_id, node.report_number)
            ):
                return
            # Whatever is wrong with the rest of its report: it is not silent.
            self._heard_ms[node.name] = self._silence_ms(heard_ms)
            if report.kind == "bye":
                self._say_goodbye(node)
            else:
                before = [alert["message"] for alert in node.alerts]
                clock = self._clocks.alerts(node.name, report.at_ms, heard_ms, before)
                alerts = (*report.alerts, *clock)
                self._update_node(node, report.model_copy(update={"alerts": alerts}), heard_ms)
                self._links.take(node, report)
            self._update_replicas(node, report, heard_ms)
            announce()

    def _refuse_unknown(self, name: str) -> None:
        if name not in self._unknown:
            self._unknown.add(name)
            record_event(
                "node.unknown",
                f"A machine that calls itself {name} reports, but is not registered. It is ignored. "
                "Enrol it with a token from the page Nodes.",
                severity="warning",
            )

    def _update_node(self, node: Node, report: NodeReport, heard_ms: int) -> None:
        if not node.up:
            record_event("node.up", f"{node.name} is up.", node=node.name)
            # What waits for a node may go on now: restorations without a target.
            transaction.on_commit(self._context.work.notify)
        node.up, node.ready, node.silent_at = True, report.ready, None
        node.url, node.version, node.cores = report.url, report.version, report.cores
        node.run_id, node.report_number = report.run_id, report.number
        node.revision_seen = report.revision
        node.last_seen_at = moment_of_ms(heard_ms)
        node.load = report.load.model_dump(mode="json")
        node.alerts = _alerts_now(node, report, heard_ms)
        note_broker(node, report)
        leaving = FIELDS if note_leaving(node, report) else ()
        if leaving:
            transaction.on_commit(self._context.work.notify)
        # Named fields: the web changes others (cordoned) at the same time.
        node.save(
            update_fields=[
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
                *leaving,
            ]
        )
        key = keys.node_history(node.name)
        if self._histories.due(key):
            load = {name: node.load.get(name) for name in _LOAD_POINT}
            self._histories.add(key, {"t": heard_ms, **load})
        sample = self._samples.take(node.name, heard_ms, report.load)
        if sample is not None:
            self._histories.add(keys.node_samples(node.name), sample, keys.SAMPLES_MAX)

    def _say_goodbye(self, node: Node) -> None:
        if node.leaving_since is None:
            record_event("node.stopped", f"{node.name} was stopped. Its state is kept there.", node=node.name)
        else:
            tell_left(node)
            forget_leaving(node)
            node.save(update_fields=FIELDS)
        Node.objects.filter(pk=node.pk).update(up=False, ready=False, silent_at=None, alerts=[])

    def _update_replicas(self, node: Node, report: NodeReport, heard_ms: int) -> None:
        """Rows of what the node has; the others of this node are gone."""
        rows = {f"{row.deployment_id}.{row.group}": row for row in Replica.objects.filter(node=node)}
        wanted_ids = {status.group.partition(".")[0] for status in report.replicas}
        deployments = {
            deployment.pk: deployment
            for deployment in Deployment.objects.select_related("pipeline").filter(
                pk__in=wanted_ids, status__in=Deployment.ACTIVE
            )
        }
        for status in report.replicas:
            deployment_id, _, group = status.group.partition(".")
            deployment = deployments.get(deployment_id)
            if deployment is None or group in deployment.gone:
                continue  # it has ended; the node lets go of it
            row = rows.pop(status.group, None)
            called = document_group(group)
            alert = f"What {node.name} reports of {called} cannot be taken in: it is shown as it was."
            doing = f"taking in what {node.name} reports of {status.group}"
            with self._bulkhead.only(doing, alert, node.name), transaction.atomic():
                self._update_replica(row, status, deployment, group, node, heard_ms)
        for row in rows.values():
            row.delete()
        self._rates.forget(node.name, {status.group for status in report.replicas})

    def _update_replica(
        self,
        row: Replica | None,
        status: ReplicaStatus,
        deployment: Deployment,
        group: str,
        node: Node,
        heard_ms: int,
    ) -> None:
        for notice in notices(reported(row), status, lambda: deployment.name_of(group), node.name):
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
        if status.anew_from:
            note_new_state(deployment.pk, group, status)
        rates = self._rates.update(node.name, status, heard_ms)
        row = row or Replica(deployment=deployment, group=group, node=node)
        row.generation, row.role = status.generation, status.role.value
        row.epoch, row.seq, row.at = status.epoch, status.seq, moment_of_ms(heard_ms)
        row.status, row.rates = status.model_dump(mode="json"), rates
        row.save()
        if status.role is not Role.OWNER:
            return
        whole = {name: rates[name] for name in ("rows_in_per_s", "rows_out_per_s")}
        samples = keys.group_samples(deployment.pk, group)
        if self._histories.due(samples, self._context.tuning.sample_s):
            sample = {"t": heard_ms, **whole, "latency_ms_p95": row.status["latency_ms_p95"]}
            self._histories.add(samples, sample, keys.SAMPLES_MAX)
        if self._histories.due(status.group):
            by_element = rates["elements"]
            measured = {name: row.status[name] for name in _STATUS_POINT}
            for element in self._elements_of(deployment.pk, group):
                point = {"t": heard_ms, **by_element.get(element, whole), **measured}
                self._histories.add(keys.element_history(deployment.pk, element), point)

    def _elements_of(self, deployment: str, group: str) -> list[str]:
        placement = GroupPlacement.objects.filter(deployment=deployment, group=group).first()
        return [element["id"] for element in placement.spec["elements"]] if placement else []

    # -- silence ---------------------------------------------------------------------------------

    def _detect(self, now_ms: int) -> None:
        up = [
            self._hearing.sighting(node.name, self._heard_ms.get(node.name, _last_seen_ms(node)))
            for node in Node.objects.filter(up=True)
        ]
        silence_s = self._context.settings.silence_s
        verdict = judge(up, now_ms, int(silence_s * 1000), self._hearing_since_ms)
        if verdict.blind is not None:
            told, self._blind = self._blind, f"No node is counted as down: {verdict.blind}. {LOOK}"
            if told is None:
                record_event(BLIND, self._blind, severity="warning")
            return
        self._blind = None
        for name in verdict.down:
            alert = f"{name} is silent, and that could not be noted: it is tried again."
            with self._bulkhead.only(f"noting that {name} is silent", alert, name), transaction.atomic():
                self._note_silence(name)
        if verdict.down:
            self._context.reports.notify()
            self._context.work.notify()

    def _note_silence(self, name: str) -> None:
        found = Node.objects.filter(name=name, up=True)
        # By our own clock, as the handovers and events that are compared with it; Redis's may be another.
        if not found.update(up=False, ready=False, silent_at=timezone.now()):
            return
        leaving = Node.objects.filter(name=name, leaving_since__isnull=False).first()
        if leaving is not None:  # it has died before it had left: now it is restored, not emptied
            forget_leaving(leaving)
            leaving.save(update_fields=FIELDS)
        record_event(
            "node.silent",
            f"{name} has been silent for more than {self._context.settings.silence_s:g} s. "
            f"{self._what_next(name)}",
            severity="error",
            node=name,
        )
        announce()

    def _what_next(self, name: str) -> str:
        if not on_silent_nodes().filter(node__name=name).exists():
            placed = GroupPlacement.objects.filter(
                node__name=name, deployment__status=Deployment.Status.DEPLOYING
            )
            return "A deployment waits for it." if placed.exists() else "It had nothing to run."
        kept = "Its checkpoints are in the central store."
        if self._context.settings.restore == "auto":
            return f"{kept} What it ran is restored on other nodes by itself."
        return f"{kept} If it does not come back, restore its elements on another node."


def _alerts_now(node: Node, report: NodeReport, heard_ms: int) -> list[dict[str, str]]:
    """What goes on keeps its time; what is new is an event as well, once."""
    since = {alert["message"]: alert["since"] for alert in node.alerts}
    for message in report.alerts:
        if message not in since:
            record_event("node.alert", f"{node.name}: {message}", severity="warning", node=node.name)
            since[message] = moment_of_ms(heard_ms).isoformat()
    return [{"message": message, "since": since[message]} for message in report.alerts]


def _reading(node: str) -> str:
    return f"reading a report of {node}"


def _sender(fields: dict[bytes, bytes]) -> str:
    """The registered node that a report which cannot be read names; "": none."""
    try:
        name = json.loads(json_of(fields[keys.REPORT_FIELD]))["node"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ""
    # A database does not take every text that JSON can hold.
    wellformed = isinstance(name, str) and NODE_NAME.fullmatch(name)
    return name if wellformed and Node.objects.filter(name=name).exists() else ""


def _last_seen_ms(node: Node) -> int:
    return 0 if node.last_seen_at is None else ms_of_moment(node.last_seen_at)
