"""Walls over REST: made, saved, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.web.conftest import PIPELINE, audited
from tests.contract.web.test_permissions import assert_problem
from tests.contract.web.walls import (
    CHART,
    FIGURE,
    LOAD,
    NOTE,
    PICTURE,
    SERIES,
    TABLE,
    TEXT,
    Call,
    made,
    put,
    saved,
)
from webapp.walls import actions


def test_a_wall_has_the_id_of_its_first_title_and_is_listed(caller: Call) -> None:
    wall = made(caller, " Fräsen  Halle 1 ")
    assert (wall["id"], wall["title"], wall["revision"]) == ("fraesen-halle-1", "Fräsen Halle 1", 1)
    assert made(caller, "警報")["id"] == "wall"
    assert_problem(caller("operator").post("/walls", {"title": "FRÄSEN halle 1"}), 409)
    renamed = put(caller, wall["id"], 1, title="Other", tiles=[TEXT]).json()
    assert (renamed["id"], renamed["title"], renamed["revision"]) == ("fraesen-halle-1", "Other", 2)
    assert [(each["title"], each["tiles"]) for each in caller("viewer").get("/walls").json()] == [
        ("Other", 1),
        ("警報", 0),
    ]
    assert caller("operator").delete("/walls/wall").status_code == 204
    assert_problem(caller("operator").delete("/walls/wall"), 404)
    assert [audited(f"wall.{action}") for action in ("create", "save", "delete")] == [2, 1, 1]


def test_tiles_follow_a_pipeline_that_gets_another_id(caller: Call) -> None:
    caller("editor").post("/pipelines", {"name": "press"})
    of_press = {**SERIES, "pipeline": "press"}
    tiles = [
        {**CHART, "series": [of_press, SERIES]},
        {**FIGURE, "series": of_press},
        {**TABLE, "pipeline": "press"},
        {**PICTURE, "pipeline": "press"},
        TEXT,
    ]
    wall = made(caller, "Hall", *tiles)
    other = made(caller, "Other", TABLE)
    assert caller("editor").post("/pipelines/press/rename", {"name": "press-2"}).status_code == 200
    found = caller("viewer").get(f"/walls/{wall['id']}").json()
    chart, figure, table, picture, _ = found["tiles"]
    assert [each["pipeline"] for each in chart["series"]] == ["press-2", PIPELINE]
    assert [each["pipeline"] for each in (figure["series"], table, picture)] == ["press-2"] * 3
    assert found["revision"] == wall["revision"] + 1
    assert caller("viewer").get(f"/walls/{other['id']}").json() == other


def test_a_wall_that_has_the_title_of_its_pipeline_gets_its_new_one(caller: Call) -> None:
    editor = caller("editor")
    pipeline = editor.post("/pipelines", {"title": "Halle"}).json()
    shows = {**PICTURE, "pipeline": pipeline["name"]}
    wall, second = made(caller, "Halle", shows), made(caller, "Halle 2", TEXT | {"id": "text"}, shows)
    others = [made(caller, "Halle Süd", shows), made(caller, "Halle 3", TEXT)]
    document = pipeline["document"] | {"metadata": {"name": pipeline["name"], "title": "Halle Nord"}}
    saving = {"If-Match": f'"{pipeline["revision"]}"'}
    assert editor.put(f"/pipelines/{pipeline['name']}", {"document": document}, **saving).status_code == 200
    shown = {each["id"]: each["title"] for each in caller("viewer").get("/walls").json()}
    assert (shown[wall["id"]], shown[second["id"]]) == ("Halle Nord", "Halle Nord 2")
    assert [shown[other["id"]] for other in others] == ["Halle Süd", "Halle 3"]


def test_a_tile_has_the_limit_of_an_alarm_or_numbers(caller: Call) -> None:
    alarm = {"pipeline": PIPELINE, "element": "alarm"}
    wall = made(caller, "Hall", CHART | {"limit_of": alarm})
    assert wall["tiles"][0]["limit_of"] == alarm
    both = put(caller, "hall", wall["revision"], title="Hall", tiles=[CHART | {"limit_of": alarm, "high": 3}])
    assert "give one of the two" in str(assert_problem(both, 422)["faults"])


def test_a_save_of_an_older_revision_is_refused_and_the_same_save_changes_nothing(caller: Call) -> None:
    wall = made(caller, "Hall", TEXT)
    again = put(caller, "hall", wall["revision"], title="Hall", tiles=wall["tiles"])
    assert (again.status_code, again.headers["ETag"]) == (200, f'"{wall["revision"]}"')
    problem = assert_problem(put(caller, "hall", 1, title="Hall", tiles=[]), 409)
    assert (problem["code"], problem["revision"]) == ("wall-overtaken", wall["revision"])
    assert problem["theirs"] == wall
    assert_problem(caller("operator").put("/walls/hall", {"title": "Hall", "tiles": []}), 428)
    assert caller("viewer").get("/walls/hall").json() == wall
    assert audited("wall.save") == 1


def test_each_kind_of_tile_comes_back_as_it_was_saved(caller: Call) -> None:
    tiles = [CHART | {"annotations": [NOTE], "low": 1, "high": 2.5}, FIGURE, TABLE, PICTURE, LOAD, TEXT]
    wall = made(caller, "Hall", *tiles)
    for tile, stored in zip(tiles, wall["tiles"], strict=True):
        assert {name: stored[name] for name in tile if name not in ("series", "annotations")} == {
            name: value for name, value in tile.items() if name not in ("series", "annotations")
        }
    [series] = wall["tiles"][0]["series"]
    assert series == SERIES | {
        "output": "",
        "key": None,
        "by": None,
        "axis": "left",
        "compare_yesterday": False,
    }
    assert saved(caller, wall, *wall["tiles"]) == wall


def test_an_annotation_says_who_wrote_it_whatever_is_sent(caller: Call) -> None:
    wall = made(caller, "Hall", CHART | {"annotations": [NOTE]})
    [note] = wall["tiles"][0]["annotations"]
    assert note["by"] == "operator-user"
    more = wall["tiles"][0] | {"annotations": [note, NOTE | {"text": "later"}]}
    response = caller("editor").put(
        "/walls/hall", {"title": "Hall", "tiles": [more]}, **{"If-Match": f'"{wall["revision"]}"'}
    )
    assert [each["by"] for each in response.json()["tiles"][0]["annotations"]] == [
        "operator-user",
        "editor-user",
    ]


WRONG: dict[str, Any] = {
    "no place": {"id": "a", "kind": "text", "text": ""},
    "beyond the right edge": TEXT | {"x": 20, "w": 5},
    "outside": TEXT | {"x": 24},
    "too far down": TEXT | {"y": 201},
    "no width": TEXT | {"w": 0},
    "a kind that is not there": TEXT | {"kind": "video"},
    "a field that is not there": TEXT | {"html": "<b>"},
    "too long a text": TEXT | {"text": "x" * 2001},
    "an id with a slash": TEXT | {"id": "a/b"},
    "no series": CHART | {"series": []},
    "too many series": CHART | {"series": [SERIES] * 9},
    "too long a range": CHART | {"range_s": 32 * 86_400},
    "too short a range": CHART | {"range_s": 59},
    "limits that cross": FIGURE | {"low": 2, "high": 2},
    "an output that is no port": FIGURE | {"series": SERIES | {"output": "a.b"}},
    "too many annotations": CHART | {"annotations": [NOTE] * 51},
    "too long an annotation": CHART | {"annotations": [NOTE | {"text": "x" * 121}]},
    "a time without a zone": CHART | {"annotations": [NOTE | {"at": "2026-11-20T12:00:00"}]},
    "too many columns": TABLE | {"columns": ["a"] * 13},
    "too many rows": TABLE | {"rows": 51},
    "load of nothing": LOAD | {"element": ""},
    "load of two things": LOAD | {"node": "edge-a"},
    "load of a node that only elements have": LOAD | {"pipeline": "", "element": "", "node": "edge-a"},
    "load of an element that only nodes have": LOAD | {"figure": "cpu"},
    "too long a load": LOAD | {"range_s": 3601},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_tile_that_is_wrong_is_refused_with_its_place(caller: Call, what: str) -> None:
    wall = made(caller)
    faults = assert_problem(put(caller, "hall", 1, title="Hall", tiles=[WRONG[what]]), 422)["faults"]
    assert all(fault["path"].startswith("tiles.0") for fault in faults)
    assert caller("viewer").get("/walls/hall").json() == wall


def test_a_wall_has_bounds(caller: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    made(caller)
    tiles = [TEXT | {"id": f"t{n}"} for n in range(61)]
    assert_problem(put(caller, "hall", 1, title="Hall", tiles=tiles), 422)
    assert put(caller, "hall", 1, title="Hall", tiles=tiles[:60]).status_code == 200
    assert_problem(put(caller, "hall", 2, title="Hall", tiles=[TEXT, TEXT]), 422)  # two of one id
    monkeypatch.setattr(actions, "CHARACTERS_MAX", 50)
    assert_problem(put(caller, "hall", 2, title="Hall", tiles=[TEXT]), 422)
    monkeypatch.setattr(actions, "WALLS_MAX", 1)
    assert_problem(caller("operator").post("/walls", {"title": "More"}), 409)
    monkeypatch.setattr(actions, "LINKS_MAX", 0)
    assert_problem(caller("operator").post("/walls/hall/links", {"name": "x"}), 409)
