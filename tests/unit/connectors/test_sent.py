"""Tests the rows that a system has already taken one by one when an error occurs."""

from __future__ import annotations

from pipeline_runtime.connectors.sdk import Batch, Refused
from pipeline_runtime.connectors.sent import Sent


def test_rows_that_were_sent_before_an_error_are_not_sent_again_and_refusals_are_kept() -> None:
    rows = Batch([{}] * 3, [0] * 3, [7, 8, 10], 7, 11)
    sent = Sent()
    assert sent.missing(rows) == [0, 1, 2]
    sent.note(7)
    sent.note(8, "no")
    assert sent.missing(rows) == [2]
    sent.note(10)
    assert sent.missing(rows) == []
    assert sent.refused(rows) == sent.refused(rows) == [Refused(1, "no")]
    sent.settle()
    assert sent.refused(rows) == []
