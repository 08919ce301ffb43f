"""Keeps the definitions that a replica's group has had. An upgrade gives the group another definition, and
its state goes on.

    <directory>/definitions/<version>.json

A replica follows a batch from before an upgrade with the definition that has processed the batch. So a
replica keeps each definition with which it is started, and each that it reads in a CLAIM, before its mark
goes past that CLAIM. Every checkpoint holds them. So a replica that starts from a checkpoint has the
definition of each later batch: from the checkpoint, or from the CLAIM that introduced the definition.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from pipeline_runtime.journal.records import Claim
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.core import to_follow
from pipeline_runtime.replica.local_state import LocalStateDamaged, replace_text

log = logging.getLogger(__name__)


def keep(directory: Path, spec: GroupSpec) -> None:
    """Keeps the definition, unless it is there already. Replaces a file that a power cut has damaged."""
    target = directory / "definitions" / f"{spec.version}.json"
    text = spec.model_dump_json()
    with suppress(FileNotFoundError):
        if target.read_bytes() == text.encode():
            return
    target.parent.mkdir(exist_ok=True)  # without parents: a state that was discarded must not come back
    replace_text(target, text, durable=True)


def keep_claimed(directory: Path, claim: Claim) -> None:
    """Keeps the definition that a CLAIM carries, if it carries one that can be read."""
    if claim.spec is None:
        return
    try:
        spec = GroupSpec.model_validate(claim.spec)
    except ValidationError as error:
        # A later version of Fogline wrote it. Whether it is needed shows when its batches are to be followed.
        log.warning("%s: cannot read the definition in the CLAIM of %d: %s", directory, claim.epoch, error)
        return
    keep(directory, spec)


def kept(directory: Path) -> dict[str, GroupSpec]:
    """Returns the definitions that are kept, by their versions."""
    found = {}
    for path in sorted((directory / "definitions").glob("*.json")):
        try:
            found[path.stem] = GroupSpec.model_validate_json(path.read_text())
        except (OSError, ValueError):
            continue  # it cannot be read; whether it is needed shows when its batches are to be followed
    return found


def to_begin_with(
    view: JournalView,
    local: Seq,
    spec: GroupSpec,
    directory: Path,
    rewinds_to: Seq | None = None,
    *,
    fresh: bool = False,
) -> GroupSpec:
    """Returns the definition with which a replica at `local` begins, if it is to run `spec`.

    This is the definition of the batch that the replica has to follow next, or `spec` if there is no such
    batch. The replica follows nothing after `rewinds_to` (see ReplicaState). With `fresh`, it will leave its
    state behind, because `spec` cannot use it; until its CLAIM says so, the replica runs the definition
    before. Raises LocalStateDamaged if the replica does not have the definition.
    """
    commit = to_follow(view, local, rewinds_to)
    if commit is None and fresh:
        return kept(directory).get(view.definition, spec)
    if commit is None or commit.definition == spec.version:
        return spec
    found = kept(directory).get(commit.definition)
    if found is None:
        raise LocalStateDamaged(
            f"batch {commit.seq} of {spec.id} was processed by definition {commit.definition}, before an"
            f" upgrade, and the state at batch {local} came without that definition"
        )
    return found
