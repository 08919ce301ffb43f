"""What a connector loses and repeats while its process, or Kafka, is killed and started again.

Rows are sent steadily. The sender of HTTP repeats what is not answered, and the broker of MQTT keeps what is
not acknowledged, so a row is lost only after the connector has acknowledged it. All rows that are in Kafka at
the end are counted, for each system in the same way.

    kafka-away      Kafka is killed, and started again after 5 s
    killed          the connector's process is killed and started again
    both            it is killed and started again 2.5 s after Kafka, which comes back 2.5 s later
"""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, time
from typing import Any

from tests.benchmarks.connector_systems import Bench, Connector, Incoming
from tests.benchmarks.harness import QUICK, records_of, wait_for
from workers.supervisor.services import Kafka

FAULTS = ("kafka-away", "killed", "both")
AWAY_S = 5.0
FAULT_ROWS_PER_S = 500 if QUICK else 2_000
FAULT_ROWS = 10 * FAULT_ROWS_PER_S
QUIET_S = 8.0
"""So long nothing more has come: what is missing now is lost."""


def measure_with_fault(bench: Bench, incoming: Incoming, fault: str) -> dict[str, Any]:
    connector = incoming.connector
    connector.run()
    with ThreadPoolExecutor(1) as beside:
        sending = beside.submit(incoming.send, FAULT_ROWS, FAULT_ROWS_PER_S)
        wait_for(lambda: len(_numbers(bench, incoming)) >= FAULT_ROWS_PER_S, "the first rows")
        _disturb(bench.service, connector, fault)
        connector.wait_until_connected()
        sending.result()
    numbers = _numbers(bench, incoming)
    changed_s = monotonic()
    while len(set(numbers)) < FAULT_ROWS and monotonic() - changed_s < QUIET_S:
        threading.Event().wait(0.5)
        before, numbers = numbers, _numbers(bench, incoming)
        changed_s = monotonic() if len(numbers) > len(before) else changed_s
    different = set(numbers)
    return {
        "rows": FAULT_ROWS,
        "lost": FAULT_ROWS - len(different),
        "repeated": len(numbers) - len(different),
    }


def _disturb(kafka: Kafka, connector: Connector, fault: str) -> None:
    if fault == "killed":
        connector.restart()
        return
    assert kafka.pid is not None
    os.killpg(kafka.pid, signal.SIGKILL)
    kafka.stop()
    threading.Event().wait(AWAY_S / 2)
    if fault == "both":
        connector.restart()
    threading.Event().wait(AWAY_S / 2)
    kafka.start()


def _numbers(bench: Bench, incoming: Incoming) -> list[int]:
    """The numbers of all rows in Kafka, in their order."""
    found = (incoming.of(each, time()) for each in records_of(bench.kafka, incoming.connector.topic))
    return [row[0] for row in found if row is not None]
