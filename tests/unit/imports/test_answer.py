"""Tests how a person's answers change the reading of a file."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.imports.answer import answered, changed, check_places, leading, open_questions
from webapp.imports.reading import Choice, ColumnReading, Question, Reading, TimeReading

READING = Reading(
    columns=(
        ColumnReading(source=0, name="at", type="timestamp"),
        ColumnReading(source=1, name="power", type="number"),
    ),
    time=TimeReading(columns=(0,), format="iso"),
)
THOUSANDS = Question(
    id="thousands",
    text="Is 1.008 about one?",
    choices=(
        Choice(title="Yes", changes={}),
        Choice(title="No", changes={"thousands": ".", "decimal": ",", "columns.1.type": "integer"}),
    ),
)
DAY = Question(
    id="day",
    text="Is 03/04 in March?",
    choices=(
        Choice(title="Yes", changes={"time.format": "%m/%d/%Y"}),
        Choice(title="No", changes={"time.format": "%d/%m/%Y"}),
    ),
)


def test_answers_are_applied_in_turn_and_change_nothing_else() -> None:
    found = answered(READING, [THOUSANDS, DAY], {"thousands": 1, "day": 0})
    assert (found.thousands, found.decimal, found.columns[1].type.value) == (".", ",", "integer")
    assert found.time is not None
    assert found.time.format == "%m/%d/%Y"
    back = {"thousands": "", "decimal": ".", "columns.1.type": "number", "time.format": "iso"}
    assert changed(found, back) == READING
    assert answered(READING, [THOUSANDS], {"thousands": 0}) == READING


@pytest.mark.parametrize("answers", [{}, {"thousands": 2}, {"thousands": -1}, {"other": 0}])
def test_a_question_without_one_of_its_answers_is_named(answers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"Is 1\.008 about one\?"):
        answered(READING, [THOUSANDS], answers)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("nothing", 1),
        ("delimiter", 5),
        ("delimiter.x", ","),
        ("columns.2.type", "string"),
        ("columns.-1.type", "string"),
        ("columns.0.type", "text"),
        ("columns.0", {}),
        ("time.zone", 5),
        ("", 1),
        ("x" * 101, 1),
    ],
)
def test_a_place_that_a_reading_does_not_have_is_named(place: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        changed(READING, {place: value})


def test_what_is_fixed_need_not_be_in_this_reading_but_in_some() -> None:
    check_places({"columns.1999.type": "string", "time.columns": [1, 2], "time": None, "header_line": None})
    for place, value in (("columns.0.kind", 1), ("time.columns", []), ("kind", "program"), ("a.b", 1)):
        with pytest.raises(ValueError, match=r"."):
            check_places({place: value})


def test_a_question_that_was_answered_is_not_open() -> None:
    assert open_questions([THOUSANDS, DAY], ["day", "other"]) == (THOUSANDS,)


@pytest.mark.parametrize(
    ("changes", "fixed"),
    [
        ({"member": "b.csv", "delimiter": ";", "columns": []}, {"member": "b.csv"}),
        ({"first_line": 9, "last_line": None, "columns": []}, {"first_line": 9, "last_line": None}),
        ({"last_line": 9}, {}),
        ({"time.format": "iso"}, {}),
    ],
)
def test_an_answer_that_chooses_a_table_leads_on_to_it(
    changes: dict[str, Any], fixed: dict[str, Any]
) -> None:
    asked = Question(
        id="table", text="?", choices=(Choice(title="a", changes={}), Choice(title="b", changes=changes))
    )
    assert leading([asked, DAY], {"table": 1, "day": 0}) == fixed
    assert leading([asked], {"table": 0}) == leading([asked], {"table": 2}) == {}
