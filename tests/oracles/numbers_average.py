"""Computes what the template numbers-average must put out: the average of every ten numbers in a row."""

from __future__ import annotations

from typing import Any

from tests.oracles.power_recorder import readings

COUNT = 10


def expected() -> dict[str, list[dict[str, Any]]]:
    numbers = [row["mf01"] for row in readings()]
    windows = [numbers[at : at + COUNT] for at in range(len(numbers) - COUNT + 1)]
    averages = [{"average": sum(window) / COUNT} for window in windows]
    return {"numbers": [{"mf01": number} for number in numbers], "average": averages}
