"""A connector's process: lines of JSON in, lines of JSON out. Its node starts it, watches it and ends it.

    ConnectorConfig, then {"do": "run", "epoch": 3}, then {"do": "stop"}  ->  {"status": ..., "note": ...}

It does nothing before the order to run, so that a node can have it ready before a move. It says its status
every second. It ends when its standard input ends: its node is gone then.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline_runtime.connectors.config import (
    ConnectorConfig,
    Order,
    fitting,
    made,
    named,
    secrets_of,
)
from pipeline_runtime.connectors.delivery import deliver, ingest, ingest_once
from pipeline_runtime.connectors.intake import SpooledIntake
from pipeline_runtime.connectors.kafka_ends import StreamRows, TopicWriter, newest_row, topic_is_there
from pipeline_runtime.connectors.kept import KeptBeginnings, KeptGaps
from pipeline_runtime.connectors.masked import Masked, log_without_secrets
from pipeline_runtime.connectors.once import KeptIntake
from pipeline_runtime.connectors.pause import Pause
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import ConnectorError, OnceIngester
from pipeline_runtime.connectors.spool import Spool
from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings
from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.ids import position_topic

log = logging.getLogger(__name__)

SAY_S = 1.0
END_S = 5.0
"""How long a process that was told to stop may take."""
LOOK_S = 0.2
_GAPS, _BEGINNINGS = "gaps.json", "begun.json"


class _Orders:
    """What the node has ordered so far."""

    def __init__(self) -> None:
        self.go, self.stop = threading.Event(), threading.Event()
        self.epoch, self.forever = 0, False

    def listen(self) -> None:
        for line in sys.stdin:
            order = Order.model_validate_json(line)
            if order.do == "run":
                self.epoch = order.epoch
                self.go.set()
            else:
                self.forever = order.forever
                break
        self.stop.set()
        self.go.set()


class _Said:
    """Standard output, for the node alone: whatever a library prints goes elsewhere."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def status(self, status: ConnectorStatus, note: str = "") -> None:
        with self._lock:
            try:
                self._file.write(json.dumps({"status": status.model_dump(mode="json"), "note": note}) + "\n")
                self._file.flush()
            except OSError:
                os._exit(1)  # the node is gone


def main() -> None:
    masked = log_without_secrets()
    said = _Said()
    config = ConnectorConfig.model_validate_json(sys.stdin.readline())
    gaps = KeptGaps(_beside(config, _GAPS))
    report = Report(config.element, said.status, masked, gaps)
    orders = _Orders()
    threading.Thread(target=orders.listen, name="orders", daemon=True).start()
    threading.Thread(target=_say, args=(said, report), name="reports", daemon=True).start()
    # What takes long is done before the order to run.
    work = _prepared(config, report, masked)
    orders.go.wait()
    if not orders.stop.is_set():
        threading.Thread(target=_end_in_time, args=(orders.stop,), name="end", daemon=True).start()
        work(orders)
    if orders.forever:
        gaps.forget()
        KeptBeginnings(_beside(config, _BEGINNINGS)).forget()


def _say(said: _Said, report: Report) -> None:
    pause = threading.Event()
    while True:
        said.status(report.status)
        pause.wait(SAY_S)


def _end_in_time(stop: threading.Event) -> None:
    stop.wait()
    threading.Event().wait(END_S)
    log.warning("the connector did not end within %.0f s", END_S)
    os._exit(1)


def _prepared(config: ConnectorConfig, report: Report, masked: Masked) -> Callable[[_Orders], None]:
    kafka = KafkaSettings(config.kafka_bootstrap, config.kafka_security)
    if config.kind == "drain":
        return lambda orders: _drain(config, kafka, report, orders.stop)
    try:
        with fitting("element"):
            masked.hide(secrets_of(config))
        connector = made(config)
    except ConnectorError as error:
        report.failing(str(error))
        return lambda orders: _wait(config, kafka, report, orders)
    if isinstance(connector, OnceIngester):
        return lambda orders: ingest_once(
            connector, KeptIntake(kafka, config, orders.epoch, report), report, orders.stop, _hung
        )
    if config.kind == "in":
        return lambda orders: _ingest(connector, config, kafka, report, orders)
    notes = position_topic(config.deployment, config.element) if named(config.operator).noted else ""
    rows = StreamRows(kafka, config.topic, config.dead_letters, config.element, notes)
    return lambda orders: deliver(connector, rows, report, orders.stop, orders.epoch, _hung)


def _hung() -> None:
    log.warning("the connector hangs, so its process ends")
    os._exit(1)


def _wait(config: ConnectorConfig, kafka: KafkaSettings, report: Report, orders: _Orders) -> None:
    """Waits for the end. What an earlier process has left on the disk goes to Kafka all the same."""
    if config.kind == "in":
        _drain(config, kafka, report, orders.stop)
    orders.stop.wait()


def _ingest(
    ingester: Any, config: ConnectorConfig, kafka: KafkaSettings, report: Report, orders: _Orders
) -> None:
    spool = Spool(Path(config.spool), config.spool_bytes_max)
    missed_in = None if ingester.system_waits else ingester.missed_in
    intake = _new_intake(config, kafka, report, spool, missed_in)
    intake.start()

    def hung() -> None:
        intake.close(END_S / 2)  # what has come is not lost with the process
        _hung()

    ingest(ingester, intake, report, orders.stop, hung)
    if orders.forever:
        try:
            ingester.forget()
        except Exception as error:
            log.warning("the system still keeps something for %s: %s", config.element, error)
    if intake.close(END_S / 2):
        spool.close()


def _new_intake(
    config: ConnectorConfig,
    kafka: KafkaSettings,
    report: Report,
    spool: Spool,
    missed_in: Callable[[float], int | None] | None,
) -> SpooledIntake:
    """`missed_in`: as of a Pause."""
    kept = KeptBeginnings(_beside(config, _BEGINNINGS))
    pause = Pause(lambda: newest_row(kafka, config.topic), report, kept, spool.newest_ms, missed_in)
    pause.start()
    return SpooledIntake(TopicWriter(kafka, config.topic).send, spool, report, pause.opens)


def _beside(config: ConnectorConfig, name: str) -> Path:
    """Returns a file beside the directory of the rows that wait for Kafka."""
    return Path(config.spool).with_name(name)


def _drain(config: ConnectorConfig, kafka: KafkaSettings, report: Report, stop: threading.Event) -> None:
    """Sends what an earlier process has left on the disk, and ends."""
    spool = Spool(Path(config.spool), config.spool_bytes_max)
    while not spool.is_empty and not stop.is_set():
        try:
            if not topic_is_there(kafka, config.topic):
                log.warning("%s is gone, and so is what was left for it", config.topic)
                for path in Path(config.spool).iterdir():
                    path.unlink()
                KeptBeginnings(_beside(config, _BEGINNINGS)).forget()
                return
            break
        except KafkaError:
            stop.wait(SAY_S)
    intake = _new_intake(config, kafka, report, spool, None)
    intake.start()
    while not intake.is_idle and not stop.wait(LOOK_S):
        pass
    intake.close(END_S / 2)


if __name__ == "__main__":
    main()
    # A library's thread may hang in a connection, and must not hold the process.
    os._exit(0)
