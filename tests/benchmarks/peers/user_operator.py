"""Running statistics as a user writes them: row by row, in Python, as a package of the user's own."""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import KeyedProcessor, OutputRow, Params, Row, Timers

TYPE = "user-statistics"
_NUMBERS = ("mean", "stddev", "minimum", "maximum")


class UserStatisticsParams(Params):
    pass


class UserStatistics(KeyedProcessor):
    """Welford's statistics of each sensor's values, reported once a second of event time."""

    type = TYPE
    title = "User's statistics"
    summary = "Statistics of each sensor, row by row"
    category = "state"
    icon = "hash"
    Params = UserStatisticsParams
    state_params = frozenset()
    keeps = "the statistics of each sensor: they begin at 0 again"

    def key_field(self) -> str | None:
        return "sensor"

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        numbers = (Field(name=name, type=FieldType.NUMBER) for name in _NUMBERS)
        count = Field(name="count", type=FieldType.INTEGER)
        return StreamSchema(
            fields=(Field(name="sensor", type=FieldType.STRING), count, *numbers), key="sensor"
        )

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        value = row["value"]
        if not state:
            state.update(count=0, mean=0.0, squares=0.0, low=value, high=value, due=False)
        if not state["due"]:
            timers.set((row.time_ms // 1000 + 1) * 1000)
            state["due"] = True
        state["count"] += 1
        delta = value - state["mean"]
        state["mean"] += delta / state["count"]
        state["squares"] += delta * (value - state["mean"])
        state["low"], state["high"] = min(state["low"], value), max(state["high"], value)
        return ()

    def on_timer(self, key: str, time_ms: int, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        count = state["count"]
        state["due"] = False
        yield {
            "sensor": key,
            "count": count,
            "mean": state["mean"],
            "stddev": math.sqrt(state["squares"] / (count - 1)) if count > 1 else None,
            "minimum": state["low"],
            "maximum": state["high"],
        }


def install_in(directory: Path) -> None:
    """Writes a user's package that has the operator, where this process and those that it starts find it."""
    info = directory / "fogline_bench-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fogline-bench\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[fogline.operators]\n{TYPE} = {__name__}:UserStatistics\n")
    sys.path.insert(0, str(directory))
    paths = [str(directory), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    importlib.invalidate_caches()
    default_registry.cache_clear()
