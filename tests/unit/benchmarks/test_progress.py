"""Tests what the throughput benchmark records of a round."""

from __future__ import annotations

from pathlib import Path

from pipeline_runtime.kafka.clients import KafkaSettings
from tests.benchmarks import events
from tests.benchmarks.bench_throughput import BATCH_ROWS, WARM_BATCHES, Progress
from tests.benchmarks.harness import Node, bench_host

BATCHES = WARM_BATCHES + 4


def test_each_batch_of_rows_is_noted_also_a_last_one_that_comes_soon(tmp_path: Path) -> None:
    rows = 0
    kafka = KafkaSettings("none:1")
    host = bench_host(tmp_path, kafka, lambda: progress.reached(rows))

    class Used(Node):
        cpu_ms = 0

        def cpu_s(self) -> float:
            self.cpu_ms += 500
            return self.cpu_ms / 1000

    progress = Progress(Used(kafka, host, tmp_path, 0), BATCHES * BATCH_ROWS)
    host.changed()  # its role
    host.progressed(True)  # an owner's first batch, of nothing
    for _ in range(BATCHES):
        assert not progress.complete
        rows += BATCH_ROWS
        host.progressed(False)
    assert progress.complete

    run = progress.run(events.NOTHING_WRONG)
    assert [at for _, at in run.done] == [number * BATCH_ROWS for number in range(1, BATCHES + 1)]
    assert len(run.batch_ms) == BATCHES - WARM_BATCHES
    assert run.cpu_s == 0.5 * (BATCHES - WARM_BATCHES), "asked at each batch, so that none that ends is lost"
