"""The templates on simulated machines, element by element over ten minutes, against their oracles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline_runtime.model.simulated import press_at, pump_at
from tests.oracles import simulated
from tests.unit.operators.templates import Row, compared, streams_of

BEGIN = datetime(2026, 11, 30, tzinfo=UTC)


def measured(at: Any, names: dict[str, str]) -> list[Row]:
    """Ten minutes of a machine, twice a second. `names`: the column of each of its values."""
    times = [BEGIN + timedelta(seconds=number / 2) for number in range(1200)]
    return [
        {"_time": time, **{names.get(name, name): value for name, value in at(time.timestamp()).items()}}
        for time in times
    ]


def test_the_press_is_too_hot_every_two_minutes() -> None:
    names = {"Temperature": "temperature", "Pressure": "pressure", "Strokes": "strokes", "Running": "running"}
    rows = measured(press_at, names)
    streams = streams_of("press-by-opcua", {"press": rows})
    wanted = simulated.averages(rows, 10, "temperature", "pressure")
    assert compared(streams["average"], wanted[0]) == wanted
    found = [(row["alarm"], row["_time"]) for row in streams["alarm"]]
    assert found == simulated.alarms(wanted, "temperature", lambda t: t > 72, lambda t: t <= 68)
    assert [what for what, _ in found] == ["raised", "cleared"] * 5


def test_the_pump_is_blocked_every_two_minutes() -> None:
    rows = measured(pump_at, {})
    streams = streams_of("pump-by-modbus", {"pump": rows})
    wanted = simulated.averages(rows, 5, "flow", "pressure")
    assert compared(streams["average"], wanted[0]) == wanted
    found = [(row["alarm"], row["_time"]) for row in streams["alarm"]]
    assert found == simulated.alarms(wanted, "flow", lambda flow: flow < 60, lambda flow: flow >= 100)
    assert [what for what, _ in found] == ["raised", "cleared"] * 5
