"""Sensors in halls: the rows, the pipeline over them, and what must come out of it, in plain Python.

readings -> good -> windows      of each hall: its rows; those not below zero; each 20 of a sensor as one
all -> results, totals           of all halls: their windows as one stream, and running totals per line
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from pipeline_runtime.journal.records import Commit
from tests.benchmarks.events import Output, Verdict, judge
from tests.handover.rig import Journal
from tests.handover.tail import Tail

NAME = "halls"
SENSORS = 20  # of each hall
LINES = 4  # of machines, each through all halls
WINDOW = 20  # rows of a sensor that become one
COLUMNS = [
    {"name": "sensor", "type": "string"},
    {"name": "line", "type": "string"},
    {"name": "n", "type": "integer"},
    {"name": "value", "type": "integer"},
]
_AGGREGATES = [
    {"function": "last", "column": "line", "as": "line"},
    {"function": "last", "column": "n", "as": "n"},
    {"function": "count", "as": "rows"},
    {"function": "sum", "column": "value", "as": "total"},
    {"function": "min", "column": "value", "as": "lowest"},
    {"function": "max", "column": "value", "as": "highest"},
    {"function": "avg", "column": "value", "as": "average"},
]
_TOTALS = [
    {"function": "count", "as": "windows"},
    {"function": "sum", "column": "rows", "as": "rows"},
    {"function": "sum", "column": "total", "as": "total"},
    {"function": "max", "column": "highest", "as": "highest"},
]

Row = dict[str, Any]


# -- the rows ----------------------------------------------------------------------------------------


def row(hall: str, n: int) -> Row:
    """The hall's n-th. One value in ten is below zero: a sensor's way to say that it knows none."""
    sensor = n % SENSORS
    value = crc32(f"{hall} {n}".encode()) % 1000 - 100  # no two stretches of it are alike
    return {"sensor": f"{hall}-{sensor:02d}", "line": f"line-{sensor % LINES}", "n": n, "value": value}


def csv_text(hall: str, count: int) -> str:
    lines = (",".join(str(cell) for cell in row(hall, n).values()) for n in range(count))
    return "\n".join([",".join(row(hall, 0)), *lines, ""])


# -- the pipeline ------------------------------------------------------------------------------------

Element = dict[str, Any]


def element(id: str, type_: str, params: Mapping[str, Any], site: str | None, **inputs: str) -> Element:
    place = {"site": site} if site is not None else {}
    return {"id": id, "type": type_, "params": dict(params), "inputs": inputs, **place}


def recorded(hall: str, reference: str, rate: float) -> Element:
    """The hall's rows as a source that stands there."""
    params = {"path": reference, "rate": rate, "key": "sensor"}
    return element(f"readings-{hall}", "csv-replay", params, hall)


def received(hall: str, topic: str, site: str) -> Element:
    """The hall's rows as something else sends them to the broker."""
    params = {"topic": topic, "key": "sensor", "columns": COLUMNS}
    return element(f"readings-{hall}", "kafka-in", params, site)


def local(hall: str, site: str) -> list[Element]:
    """What is done with the rows of a hall, at a site."""
    good = {"condition": "value >= 0"}
    windows = {"size": WINDOW, "every": WINDOW, "aggregates": _AGGREGATES}
    return [
        element(f"good-{hall}", "filter", good, site, **{"in": f"readings-{hall}"}),
        element(f"windows-{hall}", "count-window-aggregate", windows, site, **{"in": f"good-{hall}"}),
    ]


def merged(id: str, site: str | None, streams: Sequence[str]) -> Element:
    ports = {f"in{number}": stream for number, stream in enumerate(streams, 1)}
    return element(id, "merge", {}, site, **ports)


def totals(site: str | None, stream: str) -> Element:
    params = {"keys": ["line"], "aggregates": _TOTALS}
    return element("totals", "keyed-aggregate", params, site, **{"in": stream})


def results(site: str | None, stream: str) -> Element:
    """Who reads this has each window with whether it is one to look at."""
    params = {"columns": [{"name": "high", "expression": "highest > 890"}]}
    return element("results", "derive", params, site, **{"in": stream})


def document(elements: Iterable[Element], groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    grouped = [{"id": id, "elements": list(ids)} for id, ids in groups.items()]
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": NAME},
        "spec": {"elements": list(elements), "groups": grouped},
    }


# -- the oracle --------------------------------------------------------------------------------------


def windows_of(rows: Iterable[Row]) -> list[Output]:
    """Returns the windows over the rows of one hall."""
    kept: dict[str, list[Row]] = defaultdict(list)
    found: list[Output] = []
    for each in rows:
        if each["value"] < 0:
            continue
        window = kept[each["sensor"]]
        window.append(each)
        if len(window) == WINDOW:
            found.append((each["sensor"], _window(window)))
            window.clear()
    return found


def _window(rows: Sequence[Row]) -> Row:
    values = [each["value"] for each in rows]
    return {
        "sensor": rows[-1]["sensor"],
        "line": rows[-1]["line"],
        "n": rows[-1]["n"],
        "rows": len(rows),
        "total": sum(values),
        "lowest": min(values),
        "highest": max(values),
        "average": sum(values) / len(values),
    }


def results_of(windows: Iterable[Output]) -> list[Output]:
    return [(key, {**data, "high": data["highest"] > 890}) for key, data in windows]


def totals_of(windows: Iterable[Output]) -> dict[str, Row]:
    """Line -> its totals when all are in."""
    found: dict[str, Row] = {}
    for _, data in windows:
        line = data["line"]
        total = found.setdefault(line, {"line": line, "windows": 0, "rows": 0, "total": 0, "highest": 0})
        total["windows"] += 1
        total["rows"] += data["rows"]
        total["total"] += data["total"]
        total["highest"] = max(total["highest"], data["highest"])
    return found


def judge_windows(expected: Iterable[Output], got: Iterable[Output]) -> Verdict:
    """Each once, as computed, and in the order of its sensor."""
    return judge(expected, got, "n")


def judge_totals(expected: Mapping[str, Row], got: Sequence[Output]) -> list[str]:
    """What is wrong with a line's totals: each row has more windows than the one before, the last has all."""
    faults: list[str] = []
    last: dict[str, Row] = {}
    for line, data in got:
        if line in last and data["windows"] <= last[line]["windows"]:
            faults.append(f"{line}: {data['windows']} windows behind {last[line]['windows']}")
        last[line] = data
    for line in sorted(expected.keys() | last.keys()):
        if last.get(line) != expected.get(line):
            faults.append(f"{line}: {last.get(line)}, and should be {expected.get(line)}")
    return faults


# -- what came out -----------------------------------------------------------------------------------


@dataclass
class Stream:
    """All that a stream has had so far; read on by `poll`."""

    bootstrap: str
    topic: str
    outputs: list[Output] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tail = Tail(self.bootstrap, self.topic)

    def poll(self) -> list[Output]:
        self.outputs += [
            (record.key.decode() if record.key is not None else "", json.loads(record.value))
            for record in self._tail.records()
        ]
        return self.outputs

    def close(self) -> None:
        self._tail.close()


def rows_read(journal: Journal, hall: str) -> int:
    """How many rows of the hall its source has read, by the newest commit. AssertionError where the journal
    breaks the law."""
    journal.read()
    commits: list[Commit] = journal.commits()
    return int(commits[-1].boundary.ends[f"readings-{hall}"]["row"]) if commits else 0
