"""With which definition a replica begins, when its group was upgraded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_runtime.journal.records import Boundary, Claim, Commit
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.replica.definitions import keep, kept, next_definition
from pipeline_runtime.replica.local_state import LocalStateDamaged


def definition(version: str) -> GroupSpec:
    element = ElementSpec(id="g", type="filter", params={"version": version})
    return GroupSpec(deployment="d", pipeline="p", group="g", elements=(element,), version=version)


OLD, NEW = definition("old"), definition("new")


def journal(*versions: str) -> JournalView:
    """A batch of each definition."""
    view = JournalView()
    view.apply(Claim(Epoch(1), "o", "a", definition=versions[0] if versions else ""))
    for seq, version in enumerate(versions, 1):
        view.apply(Commit(Epoch(1), Boundary(Seq(seq), {}, seq), definition=version))
    return view


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Of a replica that had the former definition, and now has the new one."""
    keep(tmp_path, OLD)
    keep(tmp_path, NEW)
    return tmp_path


@pytest.mark.parametrize(("local", "expected"), [(0, OLD), (1, OLD), (2, NEW), (3, NEW)])
def test_a_batch_is_followed_with_the_definition_that_it_was_processed_by(
    directory: Path, local: int, expected: GroupSpec
) -> None:
    assert next_definition(journal("old", "old", "new"), Seq(local), NEW, directory) == expected


def test_at_the_journals_end_it_is_the_one_that_is_wanted(directory: Path) -> None:
    assert next_definition(journal("old", "old"), Seq(2), NEW, directory) == NEW
    assert next_definition(journal(), Seq(0), NEW, directory) == NEW


def test_a_journal_of_before_says_nothing_of_definitions(directory: Path) -> None:
    assert next_definition(journal("", ""), Seq(0), NEW, directory) == NEW


def test_a_state_without_the_definition_it_needs_is_of_no_use(tmp_path: Path) -> None:
    keep(tmp_path, NEW)
    with pytest.raises(LocalStateDamaged, match="seq 1 was processed by definition old"):
        next_definition(journal("old"), Seq(0), NEW, tmp_path)


def test_a_file_that_cannot_be_read_is_as_good_as_none(directory: Path) -> None:
    (directory / "definitions" / "old.json").write_text("{")
    assert kept(directory) == {"new": NEW}
