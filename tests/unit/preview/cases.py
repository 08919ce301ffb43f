"""An example of each operator that reads rows, and the rows for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

_AVERAGE = [{"function": "avg", "column": "x", "as": "average"}]
CASES: dict[str, dict[str, Any]] = {
    "filter": {"condition": "x > 10"},
    "derive": {"columns": [{"name": "ratio", "expression": "100 / n"}]},
    "select": {"columns": [{"column": "x", "as": "power"}]},
    "model": {
        "path": "demo:beats",
        "inputs": [{"columns": ["x", "x", "x"]}],
        "outputs": [{"name": "beat", "output": "label"}],
    },
    "window-aggregate": {"size_s": 3, "aggregates": _AVERAGE},
    "keyed-aggregate": {"keys": ["k"], "aggregates": [{"function": "count", "as": "events"}]},
    "count-window-aggregate": {"size": 4, "aggregates": _AVERAGE},
    "running-statistics": {"column": "x", "every_s": 5},
    "edge-detection": {"columns": ["flag"], "edges": "rising"},
    "time-between": {"column": "k", "first": "a", "second": "b", "within_s": 10},
    "difference": {"column": "x", "gives": "derivative", "name": "per_second"},
    "last-values": {"column": "x", "size": 4, "every": 2},
    "baseline-change": {"column": "x", "window_s": 20, "baseline": "first"},
    "trend": {"column": "x", "window_s": 20, "per": "hour"},
    "record-around": {"event": "flag", "before_s": 2, "after_s": 3},
    "record-around-events": {"event": "flag", "before_s": 2, "after_s": 3},
    "deduplicate": {"columns": ["n"], "within_s": 30},
    "frequency-filter": {"column": "x", "kind": "low-pass", "sample_rate_hz": 1, "high_cutoff_hz": 0.1},
    "peak-detection": {"column": "x", "height": 15, "distance_s": 3},
    "join": {"left_key": "k", "right_key": "k", "within_s": 5},
    "merge": {},
    "threshold-alert": {"columns": ["x"], "operator": ">", "limit": 15},
    "hysteresis-alarm": {"column": "x", "raise_at": 15, "clear_at": 5, "for_s": 0},
    "silence-alarm": {"for_s": 60},
    "kafka-out": {"topic": "results"},
}
BEGIN = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


def sample(count: int = 120) -> list[dict[str, Any]]:
    """Rows with gaps, repeats, a zero to divide by, and values that rise and fall."""
    return [
        {
            "_time": BEGIN + timedelta(seconds=second),
            "k": "ab"[second % 2],
            "x": None if second % 17 == 5 else float((second * 7) % 23),
            "n": second // 3 % 9,
            "flag": second % 11 == 4,
        }
        for second in range(count)
    ]
