"""Tests what a user can tick in an answer of HTTP, and the parameters that become of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline_runtime.connectors.http_browse import arrays, fields_of
from pipeline_runtime.model.connectors import Found
from pipeline_runtime.operators.http_poll import HttpPoll, HttpPollParams
from pipeline_runtime.operators.ticked_rows import RowsPlace, rows_at

PATH = "/api/stations?a=1"
BODY: dict[str, Any] = {
    "at": "2026-11-30T12:00:00Z",
    "count": 2,
    "data": {
        "stations": [
            {"id": "a", "temperature": None, "at": {"lat": 1, "lon": 2.5}, "tags": ["x"]},
            {"id": "b", "temperature": 21.5, "on": True, "a.b": "x"},
        ],
        "names": ["a", "b"],
    },
    "odd": [{"n": 1}, {"n": "one"}],
    "empty": [],
    "bad \ud800": [{"n": 1}],
}


def taken(*ticked: Found, **params: Any) -> HttpPollParams:
    made = HttpPoll.taken({"connection": "c", **params}, ticked, ())
    return HttpPollParams.model_validate(made)


def columns_of(params: HttpPollParams) -> list[tuple[str, str, str | None]]:
    return [(each.name, str(each.type), each.from_) for each in params.columns]


def test_an_answer_is_listed_as_one_row_and_as_its_arrays_of_rows() -> None:
    assert [(each.title, each.type, len(each.parts)) for each in arrays(PATH, BODY)] == [
        ("The answer", "one row", 2),
        ("data.stations", "array of 2 rows", 6),
        ("odd", "array of 2 rows", 1),
    ]
    assert [(each.title, each.type) for each in arrays(PATH, BODY["odd"])] == [
        ("The answer", "array of 2 rows")
    ]
    for nothing in ([], [1], 5, "text", None, {}):
        assert arrays(PATH, nothing) == []


def test_the_fields_of_rows_are_listed_with_their_types_and_first_values() -> None:
    [_, stations, odd] = arrays(PATH, BODY)
    place = rows_at(stations.path)
    assert place == RowsPlace(PATH, "data.stations")
    assert [(each.title, each.type, each.value) for each in fields_of(place, BODY)] == [
        ("id", "text", "a"),
        ("at.lat", "number", 1),
        ("at.lon", "number", 2.5),
        ("temperature", "number", 21.5),
        ("on", "boolean", True),
        ('["a.b"]', "text", "x"),
    ]
    [n] = fields_of(RowsPlace(PATH, "odd"), BODY)
    assert (n.type, odd.parts[0].name) == ("text", "n")
    assert fields_of(RowsPlace(PATH, "gone"), BODY) == []


def test_what_is_ticked_is_the_path_the_array_and_the_columns_of_the_element() -> None:
    [one_row, stations, _] = arrays(PATH, BODY)
    params = taken(one_row)
    assert (params.path, params.rows) == (PATH, None)
    assert columns_of(params) == [("at", "timestamp", None), ("count", "number", None)]
    whole = taken(stations)
    assert (whole.path, whole.rows, len(whole.columns)) == (PATH, "data.stations", 6)
    fields = {each.title: each for each in fields_of(RowsPlace(PATH, "data.stations"), BODY)}
    some = taken(fields["id"], fields["at.lat"], fields['["a.b"]'])
    assert columns_of(some) == [
        ("id", "string", None),
        ("lat", "number", "at.lat"),
        ("b", "string", '["a.b"]'),
    ]
    again = taken(fields["id"], fields["temperature"], **json.loads(some.model_dump_json(by_alias=True)))
    assert [each.name for each in again.columns] == ["id", "lat", "b", "temperature"]


def test_fields_of_two_arrays_do_not_go_together() -> None:
    [_, stations, odd] = arrays(PATH, BODY)
    with pytest.raises(ValueError, match="rows of one array, and more than one"):
        taken(stations, odd)
    with pytest.raises(ValueError, match="takes other rows already; empty its columns first"):
        taken(odd, columns=[{"name": "id"}], rows="data.stations")
    with pytest.raises(ValueError, match="tick an array of rows"):
        taken(Found(path="/x", title="x"))


@pytest.mark.parametrize(
    "text", ["", "/x", "/x#", "/x#[", "/x#[1, 2]", '/x#["a"]', "/x#5", "/x#" + "[" * 10_000]
)
def test_what_is_no_place_of_rows_is_only_a_path(text: str) -> None:
    assert rows_at(text) is None
