"""A processor's state from before the replica kept it itself is read once, and gone on with.

`data/*kept-by-spark.tar.gz` are directories of replicas as Fogline left them, after three waves of the rows
below: of a keyed processor at commit eea5232; of windows and aggregates at commit 2e9faeb, and of a join at
commit e170673, with all that had come of them by then (`emitted.json`).
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.aggregates import Function, evaluate
from pipeline_runtime.replica.local_state import keyed_path, open_state, spark_directory
from pipeline_runtime.replica.replica import Replica
from tests.integration.runtime.documents import Row, events
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Element,
    Node,
    create_topic,
    owning,
    produce,
    wait_for_status,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

DATA = Path(__file__).parent / "data"
WAVES = 3
BEGIN = datetime.fromisoformat("2023-11-14T22:13:20Z")


@dataclass
class Kept:
    """A group whose replica has processed the waves, and has stopped."""

    deployed: Deployed
    topic: str
    spec: GroupSpec
    directory: Path

    def send(self, replica: Replica, rows: Sequence[Row], time_ms: Callable[[Row], int]) -> None:
        owning(replica)
        before = self._rows_in()
        produce(self.deployed.kafka, self.topic, rows, time_ms=time_ms)
        wait_until(lambda: self._rows_in() == before + len(rows), lambda: f"{self._rows_in()} rows came")
        seq = self.deployed.commits(self.spec.group)[-1].seq
        wait_for_status(replica, lambda status: status.seq >= seq, "to have committed a wave")

    def _rows_in(self) -> int:
        return sum(commit.rows_in for commit in self.deployed.commits(self.spec.group))

    def states(self) -> dict[str, Any]:
        """Of each key, with numbers as far as the order does not matter in which they were added up."""
        state = KeyedState(keyed_path(self.directory), read_only=True)
        try:
            return {key: json.loads(text, parse_float=_rounded) for key, text in state.items()}
        finally:
            state.close()

    def put_former(self, archive: str) -> Path:
        """What Spark has kept instead of what the replica has; the directory of the archive."""
        stood = open_state(self.directory)
        shutil.rmtree(self.directory)
        with tarfile.open(DATA / archive) as opened:
            opened.extractall(self.directory.parent, filter="data")
        (self.directory.parent / "replica").rename(self.directory)
        # Of another journal: this one says where its batch has ended.
        (self.directory / "replica.json").unlink(missing_ok=True)
        shutil.rmtree(self.directory / "definitions")
        newest = max((spark_directory(self.directory) / "ends").iterdir(), key=lambda path: int(path.name))
        newest.write_text(json.dumps(stood.to_json()))
        return self.directory


def _rounded(text: str) -> float:
    return float(f"{float(text):.12g}")


def processed(
    kafka: str,
    node: Node,
    elements: Sequence[Element],
    columns: dict[str, Any],
    waves: Iterable[Sequence[Row]],
) -> Kept:
    """`elements`: of one group, one behind the other where they do not say what they read."""
    topic, ids = create_topic(kafka), [each["id"] for each in elements]
    chained = [
        {"inputs": {"in": before}, **each}
        for before, each in zip(["events", *ids[:-1]], elements, strict=True)
    ]
    group, groups = ("group", {"group": ids}) if len(ids) > 1 else (ids[0], {})
    deployed = Deployed(kafka, [events(topic, **columns), *chained], groups)
    replica, spec = deployed.run(node)[group], deployed.specs[group]
    kept = Kept(deployed, topic, spec, node.replica_directory(spec))
    for wave in waves:
        kept.send(replica, wave, at_ms)
    replica.stop(STOP_S)
    return kept


def at_ms(row: Row) -> int:
    return round(BEGIN.timestamp() * 1000) + int(row.get("at", row.get("v"))) * 100


# --- a keyed processor

ROWS = [{"k": f"k{n % 5}", "v": n} for n in range(20)]
STATS = {"id": "stats", "type": "running-statistics", "params": {"column": "v", "every_s": 3}}


def test_a_state_that_spark_kept_is_gone_on_with(kafka: str, node: Node) -> None:
    kept = processed(kafka, node, [STATS], {}, [ROWS] * WAVES)
    expected = kept.states()
    kept.put_former("kept-by-spark.tar.gz")

    again = node.own(kept.spec, over=1)
    owning(again)
    assert kept.states() == expected
    assert not list(spark_directory(kept.directory).glob("state")), "nobody needs what Spark has kept"
    kept.send(again, ROWS, at_ms)
    assert {key: each["state"]["count"] for key, each in kept.states().items()} == {
        f"k{n}": 4 * (WAVES + 1) for n in range(5)
    }
    assert again.status().state_keys == 5
    kept.deployed.assert_journal_lawful("stats")


# --- windows and aggregates

TYPES = {
    "k": "string",
    "half": "number",
    "day": "timestamp",
    "i": "integer",
    "big": "integer",
    "x": "number",
    "s": "string",
    "t": "timestamp",
    "b": "boolean",
}
COLUMNS = {"columns": [{"name": name, "type": type_} for name, type_ in TYPES.items()]}
ANY_TYPE = ("count", "min", "max", "first", "last")
ALL = (*ANY_TYPE, "avg", "sum", "stddev", "relative_variation")
FUNCTIONS = {
    "i": ALL,
    "x": tuple(reversed(ALL)),
    "big": ("sum", "avg"),
    "s": ANY_TYPE,
    "t": ANY_TYPE,
    "b": ANY_TYPE,
}
AGGREGATES: list[dict[str, Any]] = [
    {"function": function, "column": column, "as": f"{column}_{function}"}
    for column, functions in FUNCTIONS.items()
    for function in functions
] + [{"function": "count", "as": "rows"}]
IN_WAVE = 25


def row(n: int, at: float | None = None) -> Row:
    return {
        "at": n if at is None else at,  # tenths of a second
        "k": ("ä", None, "k2")[n % 3],
        "half": n % 2 / 2,
        "day": "2026-03-29T01:30:00Z" if n % 4 < 2 else None,
        "i": None if n % 5 == 0 else 3 * n - 20,
        "big": 2**62,  # two of them are too large for a sum
        "x": None if n % 3 == 2 else n / 8,
        "s": None if n % 4 == 0 else f"ö{n % 9}",
        "t": f"2026-10-25T00:{n % 60:02d}:30.123456Z",
        "b": None if n % 6 == 0 else n % 2 == 0,
    }


def wave(number: int) -> list[Row]:
    return [row(n) for n in range(number * IN_WAVE, (number + 1) * IN_WAVE)]


PAST = [wave(number) for number in range(WAVES)]
NEXT = wave(WAVES)
PAST_ROWS = list(chain(*PAST))


def value(name: str, given: Any) -> Any:
    """Of a row's or a record's field: of the texts that an instant may have, one."""
    is_instant = TYPES.get(name.partition("_")[0]) == "timestamp" or name.startswith("window_")
    return datetime.fromisoformat(given).isoformat() if is_instant and isinstance(given, str) else given


def group_of(given: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(value(name, given[name]) for name in keys)


def aggregated(rows: Sequence[Row]) -> Row:
    """The oracle."""
    made = {}
    for item in AGGREGATES:
        column = item.get("column")
        values = [value(column, each[column]) for each in rows] if column is not None else []
        made[item["as"]] = evaluate(Function(item["function"]), values, len(rows))
    return made


def assert_same(records: Iterable[Row], expected: dict[tuple[Any, ...], Row], keys: Sequence[str]) -> None:
    """One record for each."""
    found = [{name: value(name, given) for name, given in record.items()} for record in records]
    assert sorted(map(repr, (group_of(each, keys) for each in found))) == sorted(map(repr, expected))
    for each in found:
        wanted = expected[group_of(each, keys)]
        assert {name: each[name] for name in wanted} == pytest.approx(wanted), each


SIZE, SLIDE, DELAY = 15, 5, 4  # tenths of a second
WINDOWS = {
    "id": "windows",
    "type": "window-aggregate",
    "params": {
        "size_s": SIZE / 10,
        "slide_s": SLIDE / 10,
        "delay_s": DELAY / 10,
        "keys": ["k", "day"],
        "aggregates": AGGREGATES,
    },
}
WINDOW = ("window_start", "k", "day")


def windows(rows: Sequence[Row]) -> tuple[dict[tuple[Any, ...], Row], int]:
    """Those that are complete at the end, and how many are not. A row that comes when its window is complete
    is left out."""
    within: dict[tuple[int, Any, Any], list[Row]] = defaultdict(list)
    complete = -SIZE
    for each in rows:
        last = int(each["at"] // SLIDE) * SLIDE
        for start in range(last, last - SIZE, -SLIDE):
            if start + SIZE > complete:
                within[start, *group_of(each, WINDOW[1:])].append(each)
        complete = max(complete, each["at"] - DELAY)
    made = {
        ((BEGIN + timedelta(seconds=start / 10)).isoformat(), *group): aggregated(each)
        for (start, *group), each in within.items()
        if start + SIZE <= complete
    }
    return made, len(within) - len(made)


def test_windows_that_spark_kept_are_gone_on_with(kafka: str, node: Node) -> None:
    kept = processed(kafka, node, [WINDOWS], COLUMNS, PAST)
    directory = kept.put_former("windows-kept-by-spark.tar.gz")
    emitted = json.loads((directory / "emitted.json").read_text())
    before = len(kept.deployed.records("windows"))
    # The rows of the second wave had left Spark's last watermark, and those of the third the one behind it.
    of_two_waves, _ = windows([*PAST[0], *PAST[1]])
    assert_same(emitted, of_two_waves, WINDOW)
    assert windows(PAST_ROWS)[0].keys() > of_two_waves.keys(), "Spark has kept windows that are complete"

    again = node.own(kept.spec, over=1)
    # One comes for windows that were emitted, one for a window that Spark had yet to emit, and for open ones.
    late = [row(40, at=35), row(68, at=68)]
    kept.send(again, [*late, *NEXT], at_ms)
    expected, open_ = windows([*PAST_ROWS, *late, *NEXT])
    assert_same([*emitted, *kept.deployed.records("windows")[before:]], expected, WINDOW)
    assert again.status().state_keys == open_
    kept.deployed.assert_journal_lawful("windows")


BY_KEY = ("k", "half", "b")
KEYED = {
    "id": "aggregates",
    "type": "keyed-aggregate",
    "params": {"keys": list(BY_KEY), "aggregates": AGGREGATES},
}


def test_aggregates_that_spark_kept_are_gone_on_with(kafka: str, node: Node) -> None:
    kept = processed(kafka, node, [KEYED], COLUMNS, PAST)
    expected = kept.states()
    kept.put_former("aggregates-kept-by-spark.tar.gz")
    before = len(kept.deployed.records("aggregates"))

    again = node.own(kept.spec, over=1)
    owning(again)
    assert without_overflow(kept.states()) == without_overflow(expected)
    kept.send(again, NEXT, at_ms)
    of: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for each in [*PAST_ROWS, *NEXT]:
        of[group_of(each, BY_KEY)].append(each)
    newest = {group_of(each, BY_KEY): each for each in kept.deployed.records("aggregates")[before:]}
    assert_same(newest.values(), {group: aggregated(rows) for group, rows in of.items()}, BY_KEY)
    assert again.status().state_keys == len(of)
    kept.deployed.assert_journal_lawful("aggregates")


def without_overflow(states: dict[str, Any]) -> dict[str, Any]:
    """Of a sum that was too large Spark knew no more than that."""
    return {
        key: [None if isinstance(part, int) and part > 2**63 else part for part in each["state"]]
        for key, each in states.items()
    }


# --- a join

WITHIN, JOIN_DELAY = 3, 4  # tenths of a second
JOIN = {
    "id": "pairs",
    "type": "join",
    "inputs": {"left": "events", "right": "events"},
    "params": {
        "left_key": "k",
        "right_key": "k",
        "within_s": WITHIN / 10,
        "delay_s": JOIN_DELAY / 10,
    },
}


def pairs(rows: Iterable[Row]) -> list[Row]:
    """The oracle: of each row with itself, and with those about it."""
    in_time: list[Row] = []
    newest = -1.0
    for each in rows:
        if each["at"] >= newest - JOIN_DELAY and each["k"] is not None:
            in_time.append(each)
        newest = max(newest, each["at"])
    made = []
    for left in in_time:
        for right in in_time:
            if left["k"] == right["k"] and abs(left["at"] - right["at"]) <= WITHIN:
                others = {f"right_{name}": value(name, right[name]) for name in TYPES if name != "k"}
                made.append({**{name: value(name, left[name]) for name in TYPES}, **others})
    return made


def test_rows_of_a_join_that_spark_kept_are_gone_on_with(kafka: str, node: Node) -> None:
    kept = processed(kafka, node, [JOIN], COLUMNS, PAST)
    directory = kept.put_former("join-kept-by-spark.tar.gz")
    emitted = json.loads((directory / "emitted.json").read_text())
    before = len(kept.deployed.records("pairs"))
    assert paired(emitted) == Counter(map(repr, pairs(PAST_ROWS)))

    again = node.own(kept.spec, over=1)
    owning(again)
    assert kept.states()
    assert not list(spark_directory(kept.directory).glob("state")), "nobody needs what Spark has kept"
    late = [row(40, at=35), row(68, at=72)]
    kept.send(again, [*late, *NEXT], at_ms)
    found = paired([*emitted, *kept.deployed.records("pairs")[before:]])
    assert found == Counter(map(repr, pairs([*PAST_ROWS, *late, *NEXT])))
    kept.deployed.assert_journal_lawful("pairs")


def paired(records: Iterable[Row]) -> Counter[str]:
    return Counter(
        repr({name: value(name.removeprefix("right_"), given) for name, given in record.items()})
        for record in records
    )


DERIVE = {
    "id": "derive",
    "type": "derive",
    "params": {
        "columns": [
            {"name": "full", "expression": "coalesce(i, 0)"},
            {"name": "empty", "expression": "i is null"},
        ]
    },
}
COUNTS: list[dict[str, Any]] = [
    {"function": "count", "column": "full"},
    {"function": "count", "column": "i"},
    {"function": "count", "as": "rows"},
    {"function": "count", "column": "empty"},
    {"function": "min", "column": "full"},
]
WINDOWS_OF_DERIVED = {
    "id": "windows",
    "type": "window-aggregate",
    "params": {"size_s": SIZE / 10, "delay_s": DELAY / 10, "aggregates": COUNTS},
}
KEYED_OF_DERIVED = {
    "id": "aggregates",
    "type": "keyed-aggregate",
    "params": {"keys": ["k"], "aggregates": COUNTS},
}


@pytest.mark.parametrize("element", [WINDOWS_OF_DERIVED, KEYED_OF_DERIVED], ids=lambda each: each["id"])
def test_what_spark_counted_as_rows_is_known(kafka: str, node: Node, element: Element) -> None:
    """In a column that is never null."""
    kept = processed(kafka, node, [DERIVE, element], COLUMNS, PAST)
    expected = kept.states()
    kept.put_former(f"derived-{element['id']}-kept-by-spark.tar.gz")
    owning(node.own(kept.spec, over=1))
    found = kept.states()  # there are complete windows, too
    assert expected
    assert {key: found[key] for key in expected} == expected
