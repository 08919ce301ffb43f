"""The definitions that a replica's group has had: an upgrade gives it another, and its state goes on.

    <directory>/definitions/<version>.json

What the journal has from before an upgrade is followed with the definition that it was processed by. So a
replica keeps those that it was started with and those that it reads of in a CLAIM, before its mark goes
past that; and each checkpoint takes them along. So whoever starts from one has, of each batch behind it, the
definition: in the checkpoint, or from the CLAIM under which that definition was taken up.
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
    """Unless it is there already, whole: what a power cut has left of it is replaced."""
    target = directory / "definitions" / f"{spec.version}.json"
    text = spec.model_dump_json()
    with suppress(FileNotFoundError):
        if target.read_bytes() == text.encode():
            return
    target.parent.mkdir(exist_ok=True)  # no parents: a state that was discarded stays away
    replace_text(target, text, durable=True)


def keep_claimed(directory: Path, claim: Claim) -> None:
    """The definition that a CLAIM carries, if it carries one that can be read."""
    if claim.spec is None:
        return
    try:
        spec = GroupSpec.model_validate(claim.spec)
    except ValidationError as error:
        # A later version wrote it. Whether it is needed is for what follows to say.
        log.warning("%s: cannot read the definition in the CLAIM of %d: %s", directory, claim.epoch, error)
        return
    keep(directory, spec)


def kept(directory: Path) -> dict[str, GroupSpec]:
    """By version."""
    found = {}
    for path in sorted((directory / "definitions").glob("*.json")):
        try:
            found[path.stem] = GroupSpec.model_validate_json(path.read_text())
        except (OSError, ValueError):
            continue  # as good as none: whether it is needed is for the journal to say
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
    """What a replica at `local` that shall run `spec` begins with: the definition of the batch that it has
    to follow next, or else `spec`. Raises LocalStateDamaged when it has no such definition.

    `rewinds_to`: as in ReplicaState; what lies behind it is not followed. `fresh`: it is going to leave its
    state behind, of which `spec` can make nothing: until its CLAIM says so, it is a replica of the former.
    """
    commit = to_follow(view, local, rewinds_to)
    if commit is None and fresh:
        return kept(directory).get(view.definition, spec)
    if commit is None or commit.definition == spec.version:
        return spec
    found = kept(directory).get(commit.definition)
    if found is None:
        raise LocalStateDamaged(
            f"{spec.id}: seq {commit.seq} was processed by definition {commit.definition}, before an upgrade,"
            f" and the state at {local} came without it"
        )
    return found
