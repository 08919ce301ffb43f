"""Simulated machines that come with Fogline: their connections, and what each measures at a time. Pure.

Nobody makes these connections, and nobody changes them. An element that uses one has the machine for itself:
its connector starts a real server of the protocol (pipeline_runtime.connectors.simulated).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

STROKE_S = 6.0
"""How long a stroke of the press takes."""
HEAT_S = 120.0
"""How long the press, and the bearing of the pump, take to get warm and cold again."""
BLOCKED_S = (70.0, 100.0)
"""Between these times of each period the pump is blocked."""

Values = Mapping[str, float | bool]


@dataclass(frozen=True)
class Simulated:
    """The name is that of the connection, and its host."""

    name: str
    kind: str  # of connection
    title: str
    server: str  # "module:function" of what serves it

    @property
    def fields(self) -> dict[str, str]:
        """Returns the fields of the connection. They hold no secret."""
        return {"host": self.name}


_CONNECTORS = "pipeline_runtime.connectors"
PRESS = Simulated("simulated-press", "opcua", "Simulated press", f"{_CONNECTORS}.simulated_press:serve")
PUMP = Simulated("simulated-pump", "modbus", "Simulated pump", f"{_CONNECTORS}.simulated_pump:serve")
SIMULATED: Mapping[str, Simulated] = {each.name: each for each in (PRESS, PUMP)}

PRESS_UNITS = {"Temperature": "°C", "Pressure": "bar", "Strokes": "", "Running": ""}
PUMP_SCALES = {"flow": 0.1, "pressure": 0.01, "bearing": 0.1}
"""What the holding registers of the pump from 0 on are multiplied by. Discrete input 0: it runs."""


def press_at(time_s: float) -> Values:
    """Returns what the press measures at a Unix time: it becomes too hot (above 72 °C) every two minutes."""
    return {
        "Temperature": round(60 + 15 * _wave(time_s, HEAT_S) + 1.5 * _wave(time_s, 7), 1),
        "Pressure": round(max(0.0, 180 + 40 * _wave(time_s, STROKE_S)), 1),
        "Strokes": int(time_s / STROKE_S) % 100_000,
        "Running": True,
    }


def pump_at(time_s: float) -> Values:
    """Returns what the pump measures at a Unix time: flow in l/min, pressure in bar, the temperature of its
    bearing in °C, and whether it runs. It is blocked for half a minute of every two."""
    begin, end = BLOCKED_S
    is_blocked = begin <= time_s % HEAT_S < end
    return {
        "flow": round(4 if is_blocked else 120 + 6 * _wave(time_s, 11), 1),
        "pressure": round((7.5 if is_blocked else 4.2) + 0.2 * _wave(time_s, 5), 2),
        "bearing": round(52 + 6 * _wave(time_s, HEAT_S), 1),
        "running": True,
    }


def _wave(time_s: float, period_s: float) -> float:
    """Returns a value from -1 to 1."""
    return math.sin(2 * math.pi * math.fmod(time_s, period_s) / period_s)
