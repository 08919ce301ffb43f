"""The samples by which policies decide."""

from __future__ import annotations

from pipeline_runtime.model.desired import NodeLoad
from workers.control.reports.histories import NodeSamples


def load(cpu: float, battery: float | None = None) -> NodeLoad:
    return NodeLoad(
        cpu_ratio=cpu,
        memory_bytes=0,
        java_bytes=0,
        memory_total_bytes=1,
        memory_ratio=0,
        disk_free_bytes=0,
        disk_ratio=0,
        battery_ratio=battery,
        on_battery=None if battery is None else True,
    )


def test_a_sample_is_the_mean_of_what_was_reported_since_the_last_one() -> None:
    samples = NodeSamples(30.0)
    assert samples.take("a", 0, load(1.0)) is None
    assert samples.take("a", 29_000, load(0.0)) is None
    assert samples.take("b", 29_500, load(0.9)) is None  # each node has its own
    assert samples.take("a", 30_000, load(0.5, 0.4)) == {
        "t": 30_000,
        "cpu_ratio": 0.5,
        "battery_ratio": 0.4,
        "on_battery": True,
    }
    assert samples.take("a", 59_000, load(0.2)) is None
    sample = samples.take("a", 61_000, load(0.4))
    assert sample is not None
    assert round(sample["cpu_ratio"], 3) == 0.3
