"""Computes what the template machine-power must put out: those results of power-recorder that it has, too."""

from __future__ import annotations

from typing import Any

from tests.oracles import power_recorder


def expected() -> dict[str, list[dict[str, Any]]]:
    recorder = power_recorder.expected()
    return {id: recorder[id] for id in ("variation", "alerts", "power")}
