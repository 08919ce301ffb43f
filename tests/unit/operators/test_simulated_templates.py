"""The templates on simulated machines, element by element over ten minutes, against their oracles."""

from __future__ import annotations

from tests.oracles import simulated
from tests.unit.operators.templates import compared, streams_of


def test_the_press_is_too_hot_every_two_minutes() -> None:
    streams = streams_of("press-by-opcua")
    rows = streams["press"]
    wanted = simulated.averages(rows, 10, "temperature", "pressure")
    assert compared(streams["average"], wanted[0]) == wanted
    found = [(row["alarm"], row["_time"]) for row in streams["alarm"]]
    assert found == simulated.alarms(wanted, "temperature", lambda t: t > 72, lambda t: t <= 68)
    assert [what for what, _ in found] == ["raised", "cleared"] * 5


def test_the_pump_is_blocked_every_two_minutes() -> None:
    streams = streams_of("pump-by-modbus")
    rows = streams["pump"]
    wanted = simulated.averages(rows, 5, "flow", "pressure")
    assert compared(streams["average"], wanted[0]) == wanted
    found = [(row["alarm"], row["_time"]) for row in streams["alarm"]]
    assert found == simulated.alarms(wanted, "flow", lambda flow: flow < 60, lambda flow: flow >= 100)
    assert [what for what, _ in found] == ["raised", "cleared"] * 5
