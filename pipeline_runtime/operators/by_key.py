"""Shared by operators that look at one event after another, separately for each key.

They take rows in the order in which they arrive. Operators with a window look back from each row's own event
time, so that neither a late row nor one from a clock that is far ahead changes the results of other rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pipeline_runtime.model.schema import Field as SchemaField, StreamSchema
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.lineage import Fits, TracedRow, has_values
from pipeline_runtime.operators.sdk import Operator

EACH_KEY = "each value of this column is treated separately; empty: the stream's key"
KEPT_MAX = 20_000
"""The most events of one key that an operator keeps, since they are read and written with each batch."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TooManyKept(ValueError):
    """The event is rejected with this error. Later ones are accepted again when older ones have left."""


class KeyParameter(Operator):
    """What operators have in common whose `params.key` names the column to group by. Without that, the
    record's key counts."""

    params: Any

    def key_field(self) -> str | None:
        key: str | None = self.params.key
        return key

    def is_of_key(self, made: TracedRow) -> Fits:
        """Returns what tells whether an input row has the key of an output row."""
        key = self.key_field()
        return has_values(made, {} if key is None else {key: key})

    def resolve(self, inputs: Mapping[str, StreamSchema]) -> Any:
        return self.params.model_copy(update={"key": self.params.key or inputs["in"].key})

    def key_of(self, schema: StreamSchema, check: SchemaCheck) -> tuple[SchemaField, ...]:
        """Returns the key's field, if there is one."""
        key = self.params.key or schema.key
        field = check.column(schema, key, "params.key") if key is not None else None
        return () if field is None else (field,)


def finite(value: float | None) -> float | None:
    """Returns None for a number that JSON cannot hold. Otherwise the row would be rejected, and every later
    row of the key."""
    return value if value is not None and math.isfinite(value) else None


def to_state(value: Any) -> Any:
    """Returns a value in a form that a state can hold."""
    return {"time": value.isoformat()} if isinstance(value, datetime) else value


def from_state(stored: Any) -> Any:
    """Returns the value that `to_state` has stored."""
    return datetime.fromisoformat(stored["time"]) if isinstance(stored, dict) else stored
