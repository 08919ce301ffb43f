"""Laws of folding: the saves of one sitting are one entry, and nothing else is hidden by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import django

django.setup()

from webapp.audit.models import AuditRecord  # noqa: E402
from webapp.monitoring.audit_log import PAUSE, folded  # noqa: E402

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def log(*lines: str, apart: timedelta = timedelta(seconds=1)) -> list[AuditRecord]:
    """Newest first, each "who action target"."""
    rows = []
    for index, line in enumerate(lines):
        username, action, target = line.split()
        at = NOW - index * apart
        rows.append(AuditRecord(id=index, at=at, username=username, action=action, target=target))
    return rows


def told(rows: list[AuditRecord], limit: int = 100) -> list[tuple[str, int]]:
    return [(entry["action"], entry["times"]) for entry in folded(rows, limit)]


def test_the_saves_of_one_sitting_are_one_entry_with_its_first_and_its_last() -> None:
    [entry] = folded(log(*["ada pipeline.save p"] * 15), 10)
    assert (entry["times"], entry["at"]) == (15, NOW.isoformat())
    assert entry["since"] == (NOW - timedelta(seconds=14)).isoformat()


def test_what_else_was_done_to_the_pipeline_ends_a_sitting_and_what_was_done_to_another_does_not() -> None:
    save, deploy, pause = "ada pipeline.save p", "ada pipeline.deploy p", "bob element.pause p/x"
    assert told(log(save, save, deploy, save)) == [
        ("pipeline.save", 2),
        ("pipeline.deploy", 1),
        ("pipeline.save", 1),
    ]
    assert [times for _, times in told(log(save, pause, save))] == [1, 1, 1]
    assert told(log(save, "bob pipeline.deploy q", save)) == [("pipeline.save", 2), ("pipeline.deploy", 1)]


def test_another_person_and_a_long_pause_begin_another_sitting() -> None:
    assert [times for _, times in told(log("ada pipeline.save p", "bob pipeline.save p"))] == [1, 1]
    saves = ["ada pipeline.save p"] * 2
    assert len(folded(log(*saves, apart=PAUSE), 10)) == 1
    assert len(folded(log(*saves, apart=PAUSE + timedelta(seconds=1)), 10)) == 2


def test_what_others_did_ends_a_sitting_also_where_one_person_or_kind_is_looked_at() -> None:
    rows = log("ada pipeline.save p", "bob pipeline.deploy p", "ada pipeline.save p", "bob element.pause p/x")
    assert [entry["times"] for entry in folded(rows, 10, user="ada")] == [1, 1]
    rows = log("ada pipeline.save p", "bob element.pause p/x", "ada pipeline.save p")
    assert [entry["times"] for entry in folded(rows, 10, kind="pipeline")] == [1, 1]
    assert [entry["user"] for entry in folded(rows, 10, kind="element")] == ["bob"]


def test_other_actions_are_not_folded_and_no_more_come_than_are_asked_for() -> None:
    rows = log(*["ada pipeline.deploy p"] * 3, *["ada pipeline.save p"] * 5, "ada node.drain edge-a")
    assert [times for _, times in told(rows)] == [1, 1, 1, 5, 1]
    assert told(rows, limit=4)[-1] == ("pipeline.save", 5), "the last one counts all that it stands for"
