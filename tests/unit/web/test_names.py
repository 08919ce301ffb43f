"""Laws of names: what people read of a document has titles, whatever is missing in it."""

from __future__ import annotations

import django

django.setup()

from webapp.pipelines.shape import names_of  # noqa: E402


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
