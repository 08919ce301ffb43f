"""What operators share that look at one event after another, of each key apart.

They take rows in the order in which they come. Those with a window look back from each row's own event time,
so that neither a late row nor one from a clock that is far ahead changes what others see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline_runtime.model.schema import Field as SchemaField, StreamSchema
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.sdk import KeyedProcessor

EACH_KEY = "each value of this column is treated separately; empty: the stream's key"
KEPT_MAX = 20_000
"""Events of one key that an operator keeps: they are read and written with each batch."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TooManyKept(ValueError):
    """The event is rejected with that; as older ones leave, later ones are taken again."""


class ByKey(KeyedProcessor):
    """Of operators whose `params.key` names the column to go by; None: the record's key."""

    params: Any

    def key_field(self) -> str | None:
        key: str | None = self.params.key
        return key

    def resolve(self, inputs: Mapping[str, StreamSchema]) -> Any:
        return self.params.model_copy(update={"key": self.params.key or inputs["in"].key})

    def key_of(self, schema: StreamSchema, check: SchemaCheck) -> tuple[SchemaField, ...]:
        """The key's field, if there is one."""
        key = self.params.key or schema.key
        field = check.column(schema, key, "params.key") if key is not None else None
        return () if field is None else (field,)

    def keyed(self, row: Mapping[str, Any], /, **values: Any) -> dict[str, Any]:
        """An output row with the key's column, at the time of `row`."""
        key = self.params.key
        return {"_time": row["_time"], **({} if key is None else {key: row[key]}), **values}


def number(value: Any) -> float:
    """A value that may be kept: true is 1. ValueError where it is not finite, since the state holds none
    such."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int):  # a bool, too
        return int(value)
    raise ValueError(f"{value} is not a finite number")


def finite(value: float | None) -> float | None:
    """None for what no JSON holds: it would be rejected, and with it every later row of the key."""
    return value if value is not None and math.isfinite(value) else None


def time_ms(row: Mapping[str, Any]) -> int:
    """Event time; streams carry it in whole milliseconds."""
    found: int = (row["_time"] - _EPOCH) // timedelta(milliseconds=1)
    return found


def moment(at_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at_ms)


def kept(value: Any) -> Any:
    """A value as the state, which is JSON, can hold it."""
    return {"time": value.isoformat()} if isinstance(value, datetime) else value


def given(stored: Any) -> Any:
    """The value that `kept` has stored."""
    return datetime.fromisoformat(stored["time"]) if isinstance(stored, dict) else stored
