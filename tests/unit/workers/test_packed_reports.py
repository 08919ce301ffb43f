"""A report as it travels."""

from __future__ import annotations

import zlib

import pytest

from pipeline_runtime.model.desired import NodeLoad, NodeReport, ReplicaStatus, Role
from pipeline_runtime.wire.reports import BYTES_MAX, ReportDamaged, json_of, packed

REPORT = NodeReport(
    node="edge-a",
    run_id="1-a",
    number=7,
    at_ms=1,
    version="1",
    url="http://edge-a:1",
    revision=3,
    cores=2,
    ready=True,
    load=NodeLoad(
        cpu_ratio=0.5,
        memory_bytes=1,
        java_bytes=0,
        memory_total_bytes=2,
        memory_ratio=0.5,
        disk_free_bytes=3,
        disk_ratio=0.1,
    ),
    replicas=[ReplicaStatus(group=f"g{number}", role=Role.OWNER) for number in range(3)],
)

TEXT = REPORT.model_dump_json()


def test_what_is_unpacked_is_what_was_packed_and_takes_less() -> None:
    raw = packed(TEXT)
    assert NodeReport.model_validate_json(json_of(raw)) == REPORT
    assert 4 * len(raw) < len(TEXT)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x00", TEXT.encode(), packed(TEXT)[:-6], zlib.compress(b" " * (BYTES_MAX + 1))],
    ids=["nothing", "something else", "not packed", "torn", "too large"],
)
def test_what_is_no_report_is_refused(raw: bytes) -> None:
    with pytest.raises(ReportDamaged):
        json_of(raw)
