"""The definitions that a replica's group has had: an upgrade gives it another, and its state goes on.

    <directory>/definitions/<version>.json

What the journal has from before an upgrade is followed with the definition that it was processed by, so a
replica keeps those that it was started with, and each checkpoint takes them along.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.local_state import LocalStateDamaged, replace_text


def keep(directory: Path, spec: GroupSpec) -> None:
    """Once for each version."""
    target = directory / "definitions" / f"{spec.version}.json"
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_text(target, spec.model_dump_json())


def kept(directory: Path) -> dict[str, GroupSpec]:
    """By version."""
    found = {}
    for path in sorted((directory / "definitions").glob("*.json")):
        try:
            found[path.stem] = GroupSpec.model_validate_json(path.read_text())
        except (OSError, ValidationError):
            continue  # as good as none: whether it is needed is for the journal to say
    return found


def next_definition(view: JournalView, local: Seq, spec: GroupSpec, directory: Path) -> GroupSpec:
    """What a replica at `local` that shall run `spec` begins with: the definition of the batch that it has
    to follow next, or else `spec`. Raises LocalStateDamaged when it has no such definition."""
    commit = view.next_commit(local)
    if commit is None or commit.is_of(spec.version):
        return spec
    found = kept(directory).get(commit.definition)
    if found is None:
        raise LocalStateDamaged(
            f"{spec.id}: seq {commit.seq} was processed by definition {commit.definition}, before an upgrade,"
            f" and the state at {local} came without it"
        )
    return found
