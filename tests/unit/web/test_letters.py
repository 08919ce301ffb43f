"""Dead letters, grouped by what is the matter with their rows."""

from __future__ import annotations

import json

import pytest

from pipeline_runtime.kafka.peek import PeekedRecord
from pipeline_runtime.model.dead_letters import REASON_MAX, reason_of
from webapp.monitoring.letters import GROUPS_MAX, grouped


def letter(reason: object, offset: int = 0) -> PeekedRecord:
    return PeekedRecord(0, offset, 0, None, json.dumps({"reason": reason, "raw": "x"}))


@pytest.mark.parametrize(
    ("told", "group"),
    [
        ("no JSON object: it begins with no JSON 2", "no JSON object: it begins with …"),
        ('its column "n 1" is the text "seven 7"', 'its column "n 1" is the text "…"'),
        ("its time 2012-02-22T16:46:00Z is 3.5 s ahead", "its time … is … s ahead"),
        ("row 12: column_2 is -1e9, and x9 is not", "row …: column_2 is …, and x9 is not"),
        ("too late", "too late"),
        ("no text: a\0b", r"no text: a\x00b"),
        ("", "No reason given"),
        (None, "No reason given"),
        ({"deep": [1]}, "{'deep': […]}"),
    ],
)
def test_a_group_leaves_out_what_a_reason_quotes_of_the_row(told: object, group: str) -> None:
    assert reason_of(letter(told).value) == group


def test_rows_with_the_same_fault_are_one_group_and_the_rest_are_counted() -> None:
    letters = [letter(f"it begins with {n}", n) for n in range(3)]
    letters += [letter("fault " + "a" * (n + 1), 3 + n) for n in range(GROUPS_MAX)]
    found = grouped(letters, 2)
    first = found["groups"][0]
    assert (first["reason"], first["count"], first["newest"]["offset"]) == ("it begins with …", 3, 2)
    assert (len(found["groups"]), found["groups_left_out"]) == (GROUPS_MAX, 1)
    # its rows are found by the group's name
    assert [each["offset"] for each in grouped(letters, 2, reason="it begins with …")["records"]] == [1, 2]


def test_a_long_reason_is_cut_and_its_rows_are_still_found() -> None:
    long = letter('"' * 100_000)
    (group,) = grouped([long], 1)["groups"]
    assert len(group["reason"]) <= REASON_MAX
    assert len(grouped([long], 1, reason=group["reason"])["records"]) == 1
