"""Laws of names: what people read of a document has titles, whatever is missing in it."""

from __future__ import annotations

import django
import pytest
from hypothesis import given, strategies as st

django.setup()

from pipeline_runtime.model.document import NAME_MAX, Metadata  # noqa: E402
from webapp.pipelines.shape import names_of  # noqa: E402
from webapp.pipelines.titles import name_from, title_of, titled  # noqa: E402


def test_elements_and_groups_have_the_names_that_people_know() -> None:
    elements = [
        {"id": "readings", "type": "csv-replay", "title": "Machine readings"},
        {"id": "filter-2", "type": "filter"},
        {"id": "old", "type": "gone-with-its-package"},
        {"id": "bare"},
    ]
    groups = [
        {"id": "edge-part", "elements": ["readings", "filter-2"]},
        {"id": "rest", "title": "The rest", "elements": ["old"]},
        {"id": "empty", "elements": []},
        "no group",
    ]
    assert names_of({"spec": {"elements": elements, "groups": groups}}) == {
        "readings": "Machine readings",
        "filter-2": "Filter 2",
        "old": "old",
        "bare": "bare",
        "edge-part": "Machine readings and Filter 2",
        "rest": "The rest",
    }
    assert names_of({}) == {}


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Fräsen Überwachung", "fraesen-ueberwachung"),
        ("  Straße 7 + Öl/Gas!  ", "strasse-7-oel-gas"),
        ("Crème brûlée", "creme-brulee"),
        ("Fra\u0308sen", "fraesen"),
        ("監視", "pipeline"),
        ("case-1", "case-1"),
        ("a" * 39 + " b", "a" * 39),
    ],
)
def test_a_name_is_made_of_a_title(title: str, name: str) -> None:
    assert name_from(title, []) == name


@given(st.text(max_size=120))
def test_a_name_of_any_title_is_one_and_nobody_elses(title: str) -> None:
    first = name_from(title, [])
    second = name_from(title, [first])
    for name in (first, second):
        Metadata(name=name)
        assert len(name) <= NAME_MAX
    assert first != second


def test_a_title_that_repeats_the_name_is_none() -> None:
    document = {"metadata": {"name": "case-1", "title": "Old", "description": "d"}}
    assert titled(document, "case-1")["metadata"] == {"name": "case-1", "description": "d"}
    assert title_of(titled(document, "Case 1")) == "Case 1"
    assert title_of({"metadata": {"title": 7}}) == title_of({"metadata": 7}) == title_of({}) == ""
