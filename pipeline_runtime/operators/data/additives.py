"""Writes debs2012-additives.csv.gz and its ground truth: `PYTHONPATH=. python
pipeline_runtime/operators/data/additives.py`.

SYNTHETIC: the sensors and valves of three chemical additives over a day. In the recording of the DEBS 2012
Grand Challenge that may be shipped, all of them are constant, so it has no example of what Query 1 is about.
Every 60 s a sensor of a pair rises and its valve follows after dt = dt0 (1 + drift t) + jitter, on a grid of
10 ms, and both fall again. These episodes are known: drift that has to be noticed, valves that do not follow,
edges that are there twice, rows that are out of order. A row has only the signal that changes. One row each
minute has the real power of the main phases, looped.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline_runtime.operators.data.packed import write_packed

HERE = Path(__file__).parent
BEGINS = datetime(2012, 2, 22, 16, 0, tzinfo=UTC)
HOURS = 24
CYCLE_S = 60
GRID_MS = 10
SEED = 2012
# Sensor, valve, dt0 in s, drift of dt in a day, and the hour from which it drifts.
PAIRS = (("bm05", "bm08", 2.5, 0.04, 12), ("bm06", "bm09", 3.0, 0.0, 0), ("bm07", "bm10", 4.0, -0.03, 6))
JITTER_MS = 10
MISSED_HOURS = (6, 7)  # in the second pair, each fifth valve does not follow
TWICE_HOURS = (9, 10)  # in the second pair, each tenth edge of the sensor is reported twice, 100 ms apart
DISORDERED_HOURS = (15, 16)  # in the third pair, rows of edges come up to 1 s late
LATE_MS = 1000


def main() -> None:
    chance = random.Random(SEED)
    edges, truth = _edges(chance)
    rows = _rows(edges, _powers())
    arrived = sorted(rows, key=lambda row: row[0] + row[1])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = sorted({name for sensor, valve, *_ in PAIRS for name in (sensor, valve)})
    writer.writerow(["ts", "mf01", "mf02", "mf03", *names])
    for at_ms, _, powers, signal, state in arrived:
        # The first row has the state of all signals, from which they change.
        signals = [int(state) if name == signal else "" if at_ms else 0 for name in names]
        writer.writerow([_iso(at_ms), *(powers or ("", "", "")), *signals])
    write_packed(HERE / "debs2012-additives.csv.gz", text.getvalue())
    write_packed(HERE / "debs2012-additives-truth.json.gz", json.dumps(truth, indent=0))


Edge = tuple[int, str, bool, int]
"""Ms from the beginning, signal, its state from then on, how late its row comes."""


def _edges(chance: random.Random) -> tuple[list[Edge], list[dict[str, object]]]:
    """Returns the edges, and the truth about each cycle."""
    edges: list[Edge] = []
    truth: list[dict[str, object]] = []
    for number, (sensor, valve, dt0_s, drift, from_h) in enumerate(PAIRS):
        for cycle in range(HOURS * 3600 // CYCLE_S):
            begin_ms = (cycle * CYCLE_S + 5 + 15 * number) * 1000
            hour = begin_ms / 3_600_000
            days = max(0.0, hour - from_h) / 24
            exact_ms = dt0_s * 1000 * (1 + drift * days) + chance.uniform(-JITTER_MS, JITTER_MS)
            dt_ms = round(exact_ms / GRID_MS) * GRID_MS
            missed = number == 1 and MISSED_HOURS[0] <= hour < MISSED_HOURS[1] and cycle % 5 == 0
            twice = number == 1 and TWICE_HOURS[0] <= hour < TWICE_HOURS[1] and cycle % 10 == 0
            disordered = number == 2 and DISORDERED_HOURS[0] <= hour < DISORDERED_HOURS[1]
            late_ms = [chance.randrange(0, LATE_MS, GRID_MS) if disordered else 0 for _ in range(4)]
            edges += [(begin_ms, sensor, True, late_ms[0]), (begin_ms + 20_000, sensor, False, late_ms[1])]
            if twice:
                edges += [(begin_ms + 50, sensor, False, 0), (begin_ms + 100, sensor, True, 0)]
            if not missed:
                opened_ms = begin_ms + dt_ms
                edges += [
                    (opened_ms, valve, True, late_ms[2]),
                    (opened_ms + 10_000, valve, False, late_ms[3]),
                ]
            truth.append(
                {
                    "pair": f"{sensor}-{valve}",
                    "first_at": _iso(begin_ms),
                    "interval_s": None if missed else dt_ms / 1000,
                    "twice": twice,
                }
            )
    return sorted(edges), truth


def _powers() -> list[tuple[str, ...]]:
    with gzip.open(HERE / "debs2012-sample.tsv.gz", "rt") as file:
        return [tuple(line.split("\t")[2:5]) for line in file][::100]


Row = tuple[int, int, tuple[str, ...], str, bool]
"""Ms, how late it comes, the powers (empty in a row for an edge), the signal ("" in a row for the powers),
its state."""


def _rows(edges: list[Edge], powers: list[tuple[str, ...]]) -> list[Row]:
    found: list[Row] = [(at_ms, late_ms, (), signal, state) for at_ms, signal, state, late_ms in edges]
    for minute in range(HOURS * 60):
        found.append((minute * 60_000, 0, powers[minute % len(powers)], "", False))
    return sorted(found)


def _iso(at_ms: int) -> str:
    return (BEGINS + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


if __name__ == "__main__":
    main()
