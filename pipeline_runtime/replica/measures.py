"""The counts and times that a replica measures."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

_WINDOW = 200  # batches


def percentile(values: list[float], ratio: float) -> float | None:
    """The nearest-rank percentile. Returns None if there are no values."""
    if not values:
        return None
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(ratio * len(ranked)))]


@dataclass
class Measures:
    stream_bytes_total: dict[str, int] = field(default_factory=dict)
    first_output_at_ms: int | None = None
    last_output_at_ms: int | None = None
    batches_total: int = 0
    rows_processed_total: int = 0  # rows in of these batches
    busy_ms_total: float = 0.0  # the time that all batches took together
    batch_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    usual_ms: deque[float] = field(
        default_factory=lambda: deque(maxlen=_WINDOW)
    )  # the same, of no larger ones
    latency_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))

    def begin_owning(self) -> None:
        """The first output that is looked for is this owner's."""
        self.first_output_at_ms = None

    def batch(self, rows_in: int, duration_ms: float, rows_max: int) -> None:
        """`rows_max`: how many rows a batch usually has at most. One of more counts as if it had so many."""
        self.rows_processed_total += rows_in
        self.batches_total += 1
        self.busy_ms_total += duration_ms
        self.batch_ms.append(duration_ms)
        self.usual_ms.append(duration_ms * min(1.0, rows_max / max(1, rows_in)))

    def committed(
        self,
        rows_out: int,
        stream_bytes: Mapping[str, int],
        at_ms: int,
        latency_ms: float | None,
    ) -> None:
        for source, more in stream_bytes.items():
            self.stream_bytes_total[source] = self.stream_bytes_total.get(source, 0) + more
        if rows_out:
            self.last_output_at_ms = at_ms
            if self.first_output_at_ms is None:
                self.first_output_at_ms = at_ms
        if latency_ms is not None:
            self.latency_ms.append(latency_ms)
