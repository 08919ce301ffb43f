"""State: rows that have come before are left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX, TooManyKept, to_state
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyColumns
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.sdk import OtherColumns, Params


class DeduplicateParams(Params):
    columns: tuple[ColumnName, ...] = Field(
        default=(),
        max_length=50,
        description="rows with equal values in these columns are duplicates; empty: all columns",
    )
    within_s: float = Field(
        default=3600.0, gt=0, le=31 * 86_400, description="how long duplicates of a row are dropped"
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class Deduplicate(KeyColumns):
    """Passes on the first of several equal rows, and drops the others.

    Two rows of a key are equal if the given columns are. Null equals null. After a row was passed on, its
    duplicates are dropped if their event time is at most `within_s` later. The next one after that is passed
    on, and the time starts again. A duplicate that arrives late is dropped, too, as long as the row that was
    passed on is kept: until a row of the same key arrives whose event time is `within_s` later.

    At most 20,000 different rows are kept for each key (a digest of each). A further one goes to the dead
    letters until older ones have left.

    Output: the input's columns.
    """

    type = "deduplicate"
    title = "Deduplicate"
    summary = "Keeps the first of several equal rows"
    category = "state"
    icon = "copy-minus"
    Params = DeduplicateParams
    state_params = frozenset({"columns", "key"})
    keeps = "which rows it has passed on: their duplicates are passed on once more"
    example = {"columns": ["id"], "within_s": 3600}

    params: DeduplicateParams

    @classmethod
    def columns_may_change(cls, params: Mapping[str, Any]) -> OtherColumns:
        """Without `columns`, a row's duplicates are equal in all columns that there were when it came."""
        return "more" if params.get("columns") else "none"

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {"in": same_row(made, named(inputs["in"].names))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.columns):
                check.column(schema, name, f"params.columns[{index}]")
            self.key_of(schema, check)
        return StreamSchema(fields=schema.fields, key=self.params.key or schema.key)

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        within_ms, times_ms = round(self.params.within_s * 1000), rows.times_ms
        columns = [rows.values(name) for name in self.params.columns or rows.names]
        seen: dict[str, int] = state.setdefault("seen", {})
        for place in range(first, end):
            now_ms, what = times_ms[place], _digest([column[place] for column in columns])
            first_ms = seen.get(what)
            if first_ms is not None and now_ms - first_ms <= within_ms:
                continue
            # Each stands after those that came before it, so the oldest stand first.
            gone = _first_before(now_ms - within_ms, seen)
            if first_ms is not None and what not in gone:
                gone.append(what)
            if len(seen) - len(gone) < KEPT_MAX:
                for each in gone:
                    del seen[each]
            else:
                # Rows from a clock that is ahead stand before those that may go.
                kept = {each: at_ms for each, at_ms in seen.items() if 0 <= now_ms - at_ms <= within_ms}
                if len(kept) >= KEPT_MAX:
                    rows.reject(place, TooManyKept(_TOO_MANY.format(KEPT_MAX)))
                    continue
                seen = state["seen"] = kept
            seen[what] = now_ms
            rows.made.append((place, now_ms))

    def numbers_of(self) -> tuple[str, ...]:
        return ()


def _first_before(least_ms: int, seen: Mapping[str, int]) -> list[str]:
    """Returns those that stand before the first one of `least_ms` or later."""
    return [each for each, _ in takewhile(lambda item: item[1] < least_ms, seen.items())]


_TOO_MANY = "{} different rows are kept already; look for duplicates within a shorter time"
_text = json.JSONEncoder(separators=(",", ":"), default=to_state).encode


def _digest(values: Sequence[Any]) -> str:
    """Returns 128 bits that stand for the values."""
    return hashlib.blake2b(_text(values).encode(), digest_size=16).hexdigest()
