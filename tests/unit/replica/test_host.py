"""The statuses of replicas, and the files that a killed process has left."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.replica import host as host_module
from pipeline_runtime.replica.host import PROGRESS_EVERY_S, ReplicaHost


def test_batches_are_told_of_at_most_once_a_second_unless_somebody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = [100.0], []
    monkeypatch.setattr(host_module, "monotonic", lambda: now[0])
    host = ReplicaHost("a", tmp_path, KafkaSettings("none:1"), lambda: told.append(now[0]), Path)
    for _ in range(30):
        host.progressed(False)
        now[0] += 0.1
    assert len(told) == 3
    host.progressed(True)
    assert len(told) == 4
    now[0] += PROGRESS_EVERY_S / 2
    host.progressed(False)
    assert len(told) == 4
