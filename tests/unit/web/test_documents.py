"""Documents: which are equal, what differs, names and columns of files."""

from __future__ import annotations

import pytest

from webapp.pipelines.difference import difference
from webapp.pipelines.files import safe_name
from webapp.pipelines.selectors import document_key
from webapp.pipelines.shape import elements_of, group_of, groups_of


def document(*elements: dict, groups: list | None = None) -> dict:
    return {"metadata": {"name": "x"}, "spec": {"elements": list(elements), "groups": groups or []}}


def test_where_an_element_was_drawn_makes_no_difference() -> None:
    left = document({"id": "a", "type": "filter", "ui": {"x": 1, "y": 2}})
    right = document({"id": "a", "type": "filter", "ui": {"x": 9, "y": 9}})
    assert document_key(left) == document_key(right)
    assert difference(left, right) == {"added": [], "removed": [], "changed": [], "groups": None}
    assert left["spec"]["elements"][0]["ui"] == {"x": 1, "y": 2}


def test_a_note_makes_no_difference_to_what_runs() -> None:
    left, right = document({"id": "a", "type": "filter"}), document({"id": "a", "type": "filter"})
    right["spec"]["notes"] = [{"id": "n", "kind": "note", "text": "why", "x": 1, "y": 2}]
    assert document_key(left) == document_key(right)
    assert difference(left, right) == {"added": [], "removed": [], "changed": [], "groups": None}


def test_a_parameter_makes_a_difference_and_is_named() -> None:
    left = document({"id": "a", "params": {"rate": 1, "path": "x"}}, {"id": "gone"})
    right = document({"id": "a", "params": {"rate": 2, "path": "x"}}, {"id": "new"})
    assert document_key(left) != document_key(right)
    found = difference(left, right)
    assert found["changed"] == [{"id": "a", "changes": [{"path": "params.rate", "from": 1, "to": 2}]}]
    assert [element["id"] for element in found["added"]] == ["new"]
    assert [element["id"] for element in found["removed"]] == ["gone"]


@pytest.mark.parametrize(
    "broken", [{}, {"spec": None}, {"spec": {"elements": "x"}}, {"spec": {"elements": [1]}}]
)
def test_a_broken_draft_can_be_read(broken: dict) -> None:
    assert elements_of(broken) == []
    assert group_of(broken, "a") == "a"


def test_an_element_is_its_own_group_unless_it_is_drawn_in_one() -> None:
    grouped = document({"id": "a"}, {"id": "b"}, {"id": "c"}, groups=[{"id": "g", "elements": ["a", "b"]}])
    assert [group_of(grouped, id) for id in "abc"] == ["g", "g", "c"]
    assert groups_of(grouped) == {"g": ["a", "b"], "c": ["c"]}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("readings.csv", "readings.csv"),
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\täglich 1.csv", "täglich 1.csv"),
        ('a"\r\nSet-Cookie: x.csv', "a___Set-Cookie_ x.csv"),
        ("...", "file"),
        ("", "file"),
        ("x" * 300 + ".csv", "x" * 116 + ".csv"),
    ],
)
def test_a_file_name_can_neither_leave_its_place_nor_break_a_header(given: str, kept: str) -> None:
    assert safe_name(given) == kept
