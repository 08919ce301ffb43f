"""Which rows of a stream are shown for one of its readers."""

from __future__ import annotations

from pipeline_runtime.kafka.peek import PeekedRecord
from pipeline_runtime.kafka.queue import Wanted, chosen


def record(offset: int, time_ms: int = 0, key: str | None = None, value: str = "{}") -> PeekedRecord:
    return PeekedRecord(0, offset, time_ms or offset, key, value)


TEN = [record(offset) for offset in range(10)]


def shown(position: int | None, limit: int, records: list[PeekedRecord] = TEN, **wanted: int) -> list[int]:
    at = None if position is None else {0: position}
    return [each.offset for each in chosen(records, at, Wanted(limit=limit, **wanted))]


def test_as_many_rows_stand_before_the_readers_place_as_behind_it() -> None:
    assert shown(5, 4) == [3, 4, 5, 6]


def test_where_one_side_has_few_rows_the_other_has_more() -> None:
    assert shown(1, 4) == [0, 1, 2, 3]
    assert shown(9, 4) == [6, 7, 8, 9]
    assert shown(10, 4) == [6, 7, 8, 9]
    assert shown(0, 4) == [0, 1, 2, 3]
    assert shown(5, 100) == [*range(10)]


def test_where_nobody_knows_the_place_the_newest_rows_stand() -> None:
    assert shown(None, 3) == [7, 8, 9]


def test_from_a_time_on_the_first_rows_stand_and_of_a_search_the_newest() -> None:
    assert shown(5, 3, from_ms=1) == [0, 1, 2]
    assert [each.offset for each in chosen(TEN, {0: 5}, Wanted(limit=2, key="a"))] == [8, 9]


def test_a_search_finds_the_whole_key_and_any_part_of_a_row() -> None:
    row = record(0, 7, "press 1", '{"Name": "Öl"}')
    assert Wanted(key="press 1").takes(row)
    assert not Wanted(key="press").takes(row)
    assert Wanted(text="öl").takes(row)
    assert Wanted(text="PRESS").takes(row)
    assert not Wanted(text="name 2").takes(row)
    assert Wanted(from_ms=7).takes(row)
    assert not Wanted(from_ms=8).takes(row)
