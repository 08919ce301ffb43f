"""A replay beside a plain reckoning in whole microseconds: each row once, when it is due, with its time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators.csv_replay import CsvReplayParams, CsvReplayReader
from pipeline_runtime.operators.recording import Recording
from tests.chosen import examples
from tests.tables import as_table
from webapp.imports import convert_write

BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
US = timedelta(microseconds=1)
TEN_YEARS_US = 3_653 * 86_400_000_000
STEPS_US = [0, 1, 1_000, 50_000, 1_000_000, -2_000_000, 60_000_000, 108_000_000_000]
JUMP_S = 3_600.0


def recorded(steps: Sequence[int | None], cut: bool) -> list[int]:
    """Returns the time of each row, in microseconds after BEGIN. A step is None before a row without one."""
    times, usual = [0], 0
    for step in steps:
        by = step or 0
        if cut and abs(by) > JUMP_S * 1e6:
            by = int(JUMP_S * 1e6) if by > 0 else usual
        elif by > 0:
            usual = by
        times.append(times[-1] + by)
    return times


def due(times: Sequence[int], longest_us: float) -> list[int]:
    """Returns when each row is due after the first, in microseconds of the recording."""
    highest = list(itertools.accumulate(times, max))
    steps = [min(b - a, int(longest_us)) for a, b in itertools.pairwise(highest)]
    return list(itertools.accumulate([0, *steps]))


def round_us(last: int, rows: int) -> int:
    return last + (max(last // (rows - 1), 1) if last else 1_000_000)


def text_of(steps: Sequence[int | None], newest_first: bool) -> str:
    at, lines = BEGIN, [f"{BEGIN:%Y-%m-%d %H:%M:%S.%f},0"]
    for n, step in enumerate(steps, 1):
        at += (step or 0) * US
        lines.append(f"{at:%Y-%m-%d %H:%M:%S.%f},{n}" if step is not None else f"no,{n}")
    return "\n".join(["at,n", *(reversed(lines) if newest_first else lines), ""])


def table(path: Path, steps: Sequence[int | None], group: int, newest_first: bool, cut: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convert_write, "GROUP_ROWS", (group, group))
        as_table(
            text_of(steps, newest_first),
            path,
            {"at": "timestamp", "n": "integer"},
            time="at",
            newest_first=newest_first,
            **({"jump": "cut", "jump_s": JUMP_S} if cut else {}),
        )


@settings(max_examples=examples(60))
@given(
    steps=st.lists(
        st.one_of(st.none(), st.sampled_from(STEPS_US), st.sampled_from([TEN_YEARS_US, -TEN_YEARS_US])),
        max_size=25,
    ),
    group=st.integers(1, 7),
    newest_first=st.booleans(),
    cut=st.booleans(),
    loops=st.integers(0, 3),
    speed=st.sampled_from([0.25, 1, 2, 1000]),
    longest_pause_s=st.sampled_from([0.5, 5, 3600, 1e9]),
    restamp=st.booleans(),
    waits=st.lists(
        st.tuples(st.sampled_from([1, 10, 100, 1_000, 3_600_000, 10**8]), st.integers(1, 9)), max_size=20
    ),
)
def test_each_row_is_put_out_once_when_it_is_due(
    steps: list[int | None],
    group: int,
    newest_first: bool,
    cut: bool,
    loops: int,
    speed: float,
    longest_pause_s: float,
    restamp: bool,
    waits: list[tuple[int, int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("replay") / "f"
    table(path, steps, group, newest_first, cut)
    params = CsvReplayParams(
        path="upload:f", speed=speed, loops=loops, longest_pause_s=longest_pause_s, restamp=restamp
    )
    times = recorded(steps, cut)
    rows, whole = len(times), due(times, float("1e30"))
    due_us = due(times, longest_pause_s * speed * 1e6)
    period, apart = round_us(due_us[-1], rows), round_us(whole[-1], rows)
    total = rows * loops if loops else 10**9
    started_ms = now_ms = 1_700_000_000_000
    position = CsvReplayReader(Recording(path), params, ("at", "n")).initial(started_ms)
    sent: list[dict[str, Any]] = []
    for wait_ms, rows_max in [*waits, (10**9, 100)]:
        now_ms += wait_ms
        # Each time it goes on as on another node: from the position alone.
        reader = CsvReplayReader(Recording(path), params, ("at", "n"))
        position = json.loads(json.dumps(position))
        end = reader.advance(position, now_ms, rows_max)
        elapsed_us = int((now_ms - started_ms) * 1000 * speed)
        complete, rest = divmod(elapsed_us, period)
        is_due = min(complete * rows + sum(each <= rest for each in due_us), total)
        before = len(sent)
        assert end["row"] == max(before, min(is_due, before + rows_max))
        sent += [row for batch in reader.read(position, end) for row in batch.to_pylist()]
        assert len(sent) == end["row"]
        position = end
        assert reader.ended(position) == (end["row"] == total)
        if not reader.ended(position):
            loop, place = divmod(end["row"], rows)
            expected_ms = started_ms + (loop * period + due_us[place]) / 1000 / speed
            assert reader.due_ms(position, position) == pytest.approx(expected_ms, abs=1e-3, rel=0)
    for number, row in enumerate(sent):
        loop, place = divmod(number, rows)
        assert (row["_offset"], row["n"]) == (number, place)
        begins = EPOCH + timedelta(milliseconds=started_ms) if restamp else BEGIN
        assert row["_time"] == begins + (loop * apart + times[place]) * US
        assert (row["_reject"] is None) == (place == 0 or steps[place - 1] is not None)


@pytest.mark.parametrize("text", ["at,n\n2024-05-01,1\n", "at,n\n" + "2024-05-01,1\n" * 3])
def test_rounds_of_rows_with_one_time_follow_each_other_every_second(text: str, tmp_path: Path) -> None:
    as_table(text, tmp_path / "f", {"at": "timestamp", "n": "integer"}, time="at")
    recording = Recording(tmp_path / "f")
    reader = CsvReplayReader(recording, CsvReplayParams(path="upload:f", loops=0), ("at", "n"))
    start = reader.initial(0)
    ends = [reader.advance(start, now, 1_000)["row"] for now in (0, 999, 1_000, 5_999)]
    assert ends == [rows * recording.rows for rows in (1, 1, 2, 6)]


@pytest.mark.parametrize(
    ("type_", "cells"),
    [
        ("integer", ["1", "-9223372036854775808"]),
        ("number", ["1.5", "-0.0"]),
        ("string", ["0001", "a b"]),
        ("boolean", ["true", "false"]),
        ("timestamp", ["2024-05-01T00:00:00Z", "1999-12-31T23:59:59.999999Z"]),
    ],
)
def test_a_key_of_each_type_is_kept_and_a_row_without_one_is_refused(
    type_: str, cells: list[str], tmp_path: Path
) -> None:
    text = "k,n\n" + "".join(f"{cell},{n}\n" for n, cell in enumerate([*cells, ""]))
    as_table(text, tmp_path / "f", {"k": type_, "n": "integer"})
    params = CsvReplayParams(path="upload:f", rate=10, key="k", keep=("k",))
    reader = CsvReplayReader(Recording(tmp_path / "f"), params, ("k",))
    start = reader.initial(0)
    found = [row for batch in reader.read(start, {**start, "row": 3}) for row in batch.to_pylist()]
    assert [row["_reject"] for row in found] == [None, None, 'column "k" has no value, and it is the key']
    assert all(row["k"] is not None for row in found[:2])
    assert "n" not in found[0]


def test_a_thousand_columns_are_replayed(tmp_path: Path) -> None:
    names = [f"v{n}" for n in range(1_000)]
    text = "\n".join(
        [",".join(names), *(",".join(str(n + row) for n in range(1_000)) for row in range(3)), ""]
    )
    as_table(text, tmp_path / "f", dict.fromkeys(names, "number"))
    reader = CsvReplayReader(
        Recording(tmp_path / "f"), CsvReplayParams(path="upload:f", rate=10), tuple(names)
    )
    start = reader.initial(0)
    found = [row for batch in reader.read(start, {**start, "row": 3}) for row in batch.to_pylist()]
    assert [[row[name] for name in names] for row in found] == [
        [float(n + row) for n in range(1_000)] for row in range(3)
    ]
