"""What Spark has noted of event time."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.spark_state import watermarks_ms


def noted(spark: Path, log: str, text: str) -> None:
    (spark / log).mkdir()
    (spark / log / "7").write_text(text)


def test_a_batch_has_the_watermark_that_it_used_and_the_one_that_it_leaves(tmp_path: Path) -> None:
    noted(tmp_path, "offsets", 'v1\n{"batchWatermarkMs":2000,"batchTimestampMs":9}\n{"token": 8}')
    noted(tmp_path, "commits", 'v2\n{"nextBatchWatermarkMs":4500}')
    assert watermarks_ms(tmp_path, 7) == (2000, 4500)


@pytest.mark.parametrize("commit", ["v2", "v2\n{}", "v2\nnone", 'v2\n{"nextBatchWatermarkMs":"4500"}'])
def test_one_that_cannot_be_read_is_named(tmp_path: Path, commit: str) -> None:
    noted(tmp_path, "offsets", 'v1\n{"batchWatermarkMs":2000}\n{"token": 8}')
    noted(tmp_path, "commits", commit)
    with pytest.raises(ValueError, match="commits/7 cannot be read"):
        watermarks_ms(tmp_path, 7)
