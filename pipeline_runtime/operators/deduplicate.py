"""State: what has come before is left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX, ByKey, TooManyKept, kept, time_ms
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.sdk import Params, Timers


class DeduplicateParams(Params):
    columns: tuple[ColumnName, ...] = Field(
        default=(), max_length=50, description="rows that have these alike are the same; empty: all columns"
    )
    within_s: float = Field(default=3600.0, gt=0, le=31 * 86_400, description="so long the same is left out")
    key: ColumnName | None = Field(default=None, description=EACH_KEY)


class Deduplicate(ByKey):
    """Hands on the first of rows that are the same, and leaves out the others.

    Rows of a key are the same if the given columns are; null is the same as null. From one that was handed
    on, all with an event time of at most `within_s` later are left out; the next one after that is handed on,
    and counts anew. One that comes late is left out, too, as long as the one that was handed on is kept:
    until others of the key come whose time is `within_s` later.

    Of each key at most 20,000 different rows are kept (a digest of each); one beyond goes to the dead letters
    until older ones have left.

    Output: the input's columns.
    """

    type = "deduplicate"
    title = "Deduplicate"
    summary = "The first of rows that are the same"
    category = "state"
    icon = "copy-minus"
    Params = DeduplicateParams
    state_params = frozenset({"columns", "key"})
    keeps = "which rows it has handed on: the same ones are handed on once more"
    example = {"columns": ["id"], "within_s": 3600}

    params: DeduplicateParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.columns):
                check.column(schema, name, f"params.columns[{index}]")
            self.key_of(schema, check)
        return StreamSchema(fields=schema.fields, key=self.params.key or schema.key)

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        now_ms, within_ms = time_ms(row), round(self.params.within_s * 1000)
        seen: dict[str, int] = state.setdefault("seen", {})
        names = self.params.columns or [name for name in row if name != "_time"]
        text = json.dumps([kept(row[name]) for name in names], separators=(",", ":"))
        what = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        first_ms = seen.get(what)
        if first_ms is not None and now_ms - first_ms <= within_ms:
            return
        # Each stands behind those that came before it, so the oldest stand first.
        seen.pop(what, None)
        for old in [*takewhile(lambda each: now_ms - seen[each] > within_ms, seen)]:
            del seen[old]
        if len(seen) >= KEPT_MAX:
            # What is from a clock that is ahead stands before those that may go.
            seen = state["seen"] = {each: at for each, at in seen.items() if 0 <= now_ms - at <= within_ms}
        if len(seen) >= KEPT_MAX:
            raise TooManyKept(f"{KEPT_MAX} different rows are kept already; lessen within_s")
        seen[what] = now_ms
        yield row
