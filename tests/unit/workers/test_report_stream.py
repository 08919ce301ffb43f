"""A report in an entry of the stream, or who sent what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline_runtime.model.desired import NodeLoad, NodeReport
from pipeline_runtime.wire import keys
from pipeline_runtime.wire.reports import packed
from workers.control.reports.stream import Unreadable, report_in

REPORT = NodeReport(
    node="edge-a",
    run_id="run",
    number=1,
    at_ms=1,
    version="1",
    url="http://edge-a:1",
    revision=0,
    cores=2,
    ready=True,
    load=NodeLoad(
        cpu_ratio=0.1,
        memory_bytes=1,
        java_bytes=0,
        memory_total_bytes=2,
        memory_ratio=0.5,
        disk_free_bytes=1,
        disk_ratio=0.1,
    ),
)


def entry(**fields: Any) -> dict[bytes, bytes]:
    document = REPORT.model_dump(mode="json") | fields
    return {keys.REPORT_FIELD: packed(json.dumps(document))}


def test_a_report_is_read_as_it_was_sent() -> None:
    assert report_in(entry()) == REPORT


@pytest.mark.parametrize(
    ("fields", "sender"),
    [
        (entry(cores="many"), "edge-a"),
        (entry(node=7), ""),
        (entry(node="no name\0", cores="many"), ""),
        ({keys.REPORT_FIELD: packed("[]")}, ""),
        ({keys.REPORT_FIELD: packed("[" * 100_000)}, ""),
        ({keys.REPORT_FIELD: b"damaged"}, ""),
        ({b"other": b"field"}, ""),
    ],
)
def test_what_is_no_report_names_its_sender_if_it_can(fields: dict[bytes, bytes], sender: str) -> None:
    with pytest.raises(Unreadable) as raised:
        report_in(fields)
    assert raised.value.sender == sender
