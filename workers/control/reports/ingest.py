"""Takes in what the nodes report: the thread that keeps the database, the curves and the dashboards current.

stream.py         reads the reports from Redis
runs.py           which of them count
nodes.py          their nodes' rows                 links.py, leaving.py, clocks.py
replicas.py       their replicas' rows              rates.py, totals.py, notices.py
histories.py      the points of curves, and the samples by which policies decide
backlogs.py       rows that wait for groups that do not process: a thread of its own
silence.py        which nodes are no longer heard   detector.py decides
control_state.py  tells the web that all this works
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

import redis
from django.db import close_old_connections, transaction

from pipeline_runtime.model.desired import NodeReport
from webapp.audit.announcements import announce
from webapp.audit.records import record_event
from webapp.backends.control_state import BLIND, EACH_S, STORE
from webapp.nodes.models import Node
from workers.control.bulkhead import NOT_OF_ONE_ROW, Bulkhead
from workers.control.context import ControlContext, now_ms
from workers.control.reports.control_state import ControlState
from workers.control.reports.histories import Histories
from workers.control.reports.nodes import NodeRows
from workers.control.reports.replicas import ReplicaRows
from workers.control.reports.runs import Runs
from workers.control.reports.silence import Silence
from workers.control.reports.stream import Entries, ReportStream, Unreadable, report_in

log = logging.getLogger(__name__)

DETECT_INTERVAL_S = 0.2


class Ingest:
    """One thread. A report is whole, so only the newest of each node in a round is written."""

    def __init__(self, context: ControlContext, store_alerts: Callable[[], Iterable[str]] = tuple) -> None:
        """`store_alerts()` says what is wrong with the central store now."""
        self._context = context
        self._store_alerts = store_alerts
        client = redis.Redis.from_url(
            context.settings.redis_url, socket_timeout=10, socket_connect_timeout=5, health_check_interval=10
        )
        self._bulkhead = Bulkhead()
        self._stream = ReportStream(client)
        self._histories = Histories(client)
        self._runs = Runs()
        self._nodes = NodeRows(context, self._histories)
        self._replicas = ReplicaRows(context, self._histories, self._bulkhead)
        self._silence = Silence(context, self._bulkhead)
        self._state = ControlState(client)
        self._unknown: set[str] = set()  # senders that are not registered and were told of
        self._done_at_s: dict[str, float] = {}  # what is done now and then -> when it was done last
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
                    log.warning("Redis is away (%s). No node can be heard, so control judges no node.", error)
                self._silence.is_deaf()
                self._context.hearing_since_ms = None
                pause_s = min(max(0.5, pause_s * 2), 5.0)
            except Exception:
                log.exception("reports could not be taken in; they are read again")
                pause_s = 1.0
            if pause_s:
                self._context.closing.wait(pause_s)

    def _round(self) -> None:
        entries = self._stream.read()
        self._silence.listens(entries.read_at_ms, entries.waited_ms)
        for heard_ms, report in self._newest(entries).values():
            self._take_alone(report, heard_ms)
        self._histories.write()
        if entries.cursor is not None:
            self._stream.keep(entries.cursor)
            self._context.reports.notify()
        if entries.all_read:  # a backlog is not silence
            if self._context.hearing_since_ms is None:
                self._context.hearing_since_ms = now_ms()
            if self._is_due("detect", DETECT_INTERVAL_S):
                self._silence.look(entries.read_at_ms)
        if self._is_due("state", EACH_S):
            blind = [] if self._silence.blind is None else [(BLIND, self._silence.blind)]
            self._state.tell([*blind, *((STORE, alert) for alert in self._store_alerts())])

    def _is_due(self, what: str, each_s: float) -> bool:
        if time.monotonic() - self._done_at_s.get(what, float("-inf")) < each_s:
            return False
        self._done_at_s[what] = time.monotonic()
        return True

    def _newest(self, entries: Entries) -> dict[str, tuple[int, NodeReport]]:
        """Returns for each node when its newest report was heard, and that report."""
        newest = {}
        for heard_ms, fields in entries.found:
            try:
                report = report_in(fields)
            except Unreadable as unreadable:
                self._tell_unreadable(unreadable, heard_ms)
                continue
            self._bulkhead.works(_reading(report.node))
            self._silence.heard(report.node, heard_ms)
            newest[report.node] = (heard_ms, report)
        return newest

    def _tell_unreadable(self, unreadable: Unreadable, heard_ms: int) -> None:
        sender = unreadable.sender
        node = sender if sender and Node.objects.filter(name=sender).exists() else ""
        if node:
            self._silence.heard(node, heard_ms)
            self._silence.counts(node, heard_ms)
        who = node or "a machine that is not registered"
        alert = (
            f"A report of {who} cannot be read and is ignored. "
            "See whether it runs the same version of Fogline."
        )
        self._bulkhead.failed(_reading(who), alert, node, unreadable.error)

    def _take_alone(self, report: NodeReport, heard_ms: int) -> None:
        alert = (
            f"A report of {report.node} cannot be stored. The dashboard shows its earlier report. "
            "The node keeps working."
        )
        try:
            with self._bulkhead.only(f"taking in a report of {report.node}", alert, report.node):
                self._take(report, heard_ms)
        except NOT_OF_ONE_ROW:
            self._runs.forget(report.node)  # it is read again
            raise

    def _take(self, report: NodeReport, heard_ms: int) -> None:
        with transaction.atomic():
            node = Node.objects.filter(name=report.node).first()
            if node is None:
                self._refuse_unknown(report.node)
                return
            stored = (node.run_id, node.report_number)
            if not self._runs.accepts(node.name, report.run_id, report.number, stored):
                return
            # The node is not silent, whatever is wrong with the rest of its report.
            self._silence.counts(node.name, heard_ms)
            if report.kind == "bye":
                self._nodes.say_goodbye(node)
            else:
                self._nodes.write(node, report, heard_ms)
            self._replicas.write(node, report, heard_ms)
            announce()

    def _refuse_unknown(self, name: str) -> None:
        if name not in self._unknown:
            self._unknown.add(name)
            record_event(
                "node.unknown",
                f"A machine that calls itself {name} sends reports, but is not registered. They are ignored. "
                "Enrol the machine with a token from the page Nodes.",
                severity="warning",
            )


def _reading(node: str) -> str:
    return f"reading a report of {node}"
