"""Writes a running pipeline with its state as one text, for another Fogline.

The text is taken at one boundary: each element is paused, has read all rows that the elements before it
wrote, and has a checkpoint of that place in the central store. So no row is on its way between two elements.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from pipeline_runtime.checkpoint import chunks, portable
from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.store import materialize
from pipeline_runtime.journal.reader import read_once
from pipeline_runtime.journal.records import END_STAGE, ENDED, Commit, Retire, encode
from pipeline_runtime.kafka.reading import has_unread
from pipeline_runtime.kafka.transactions import Doubtful
from pipeline_runtime.model.ids import position_key
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.backends.chunk_store import bearer, checkpoint_summaries
from webapp.backends.control_state import control_state
from webapp.backends.kafka import kafka_settings
from webapp.handovers.elements import set_paused
from webapp.handovers.facts import group_facts
from webapp.operations.schemas import StateReady
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.written import written
from webapp.placements.group_state import GroupFacts
from webapp.placements.models import Deployment
from webapp.placements.selectors import active_deployment, specs_of
from webapp.problems import BackendAway, Conflict, Missing


@dataclass
class _Group:
    spec: GroupSpec
    facts: GroupFacts
    commit: Commit | None  # the newest one

    @property
    def settled(self) -> bool:
        """Returns whether the element is paused and no batch of it runs."""
        status: Mapping[str, Any] = self.facts.owner.status if self.facts.owner else {}
        return self.facts.paused and bool(status.get("paused")) and self.facts.handover is None

    @property
    def id(self) -> str:
        return self.spec.elements[0].id


def prepare_state(actor: User, name: str) -> StateReady:
    """Does everything that is possible now to bring the pipeline to a boundary, and says what it waits for.
    Call it again until the pipeline is ready: sources pause first, and each other element once it has read
    all of its rows. To undo this, resume the elements."""
    require(actor, Role.EDITOR, "export the state of pipelines")
    deployment, groups = _groups(name)
    before = {stream.topic: group for group in groups for stream in group.spec.outputs}
    waits = []
    for group in groups:
        title = deployment.name_of(group.id)
        if group.settled:
            if _unread(group):
                raise Conflict(
                    f"{title} is paused and has rows to read.",
                    safe="Nothing is lost: the rows wait for it.",
                    next=f"Resume {title}, then export again.",
                )
            continue
        inner = [before[stream.topic] for stream in group.spec.inputs if stream.topic in before]
        if not all(each.settled for each in inner):
            waits.append(f"the elements before {title} to pause")
        elif group.facts.paused:
            waits.append(f"{title} to pause")
        elif _unread(group):
            waits.append(f"{title} to read its last rows")
        else:
            set_paused(actor, name, group.id, True)
            waits.append(f"{title} to pause")
    if not waits:
        for group in groups:
            if not _has_checkpoint(group):
                commands.send(tasks.CHECKPOINT, deployment.pk, group.spec.group, has_row=False)
                waits.append(f"the checkpoint of {deployment.name_of(group.id)}")
    return {"ready": not waits, "waits_for": waits}


def export_state(actor: User, name: str) -> Iterator[bytes]:
    """Returns the text, and makes it while the caller reads it. Raises Conflict if the pipeline stands at no
    boundary."""
    require(actor, Role.EDITOR, "export the state of pipelines")
    deployment, groups = _groups(name)
    if not all(group.settled and not _unread(group) and _has_checkpoint(group) for group in groups):
        raise Conflict(
            f'"{deployment.pipeline.title}" does not stand at one boundary.',
            safe="Nothing was exported.",
            next=f"Send POST /pipelines/{name}/state until it is ready.",
        )
    header = {
        "fogline": settings.FOGLINE_VERSION,
        "pipeline": name,
        "document": written([deployment.version.document]),
        "groups": {group.spec.group: _told(group) for group in groups},
    }
    with transaction.atomic():
        audit(actor, "pipeline.export_state", name, deployment=deployment.pk)
    return portable.write(header, _states(groups))


def _told(group: _Group) -> dict[str, Any]:
    spec = group.spec
    return {
        "elements": [[each.id, each.type] for each in spec.elements],
        "inputs": [
            {"topic": each.topic, "partitions": each.partitions, "external": each.external}
            for each in spec.inputs
        ],
        "files": sorted(spec.files.values()),
        "commit": None if group.commit is None else json.loads(encode(group.commit)),
    }


def _states(groups: list[_Group]) -> Iterator[bytes]:
    with closing(ChunkClient(settings.FOGLINE.chunk_url, bearer)) as client:
        for group in groups:
            if group.commit is not None:
                with tempfile.TemporaryDirectory(dir=settings.FILE_UPLOAD_TEMP_DIR) as work:
                    directory = Path(work) / "state"
                    _unpacked(client, group, directory)
                    yield from portable.state_lines(group.spec.group, directory)


def _unpacked(client: ChunkClient, group: _Group, directory: Path) -> None:
    assert group.commit is not None
    manifest = client.manifest(group.spec.id, group.commit.seq)

    def fetch(sha: str) -> bytes:
        found: dict[str, bytes] = {}
        client.fetch_chunks(group.spec.id, [sha], found.__setitem__)
        return chunks.decode(sha, found[sha])

    materialize(manifest, fetch, directory)


def _groups(name: str) -> tuple[Deployment, list[_Group]]:
    """Returns the groups in the order in which rows flow."""
    pipeline = pipeline_named(name)
    deployment = active_deployment(pipeline)
    if deployment is None or deployment.status != Deployment.Status.RUNNING:
        raise Conflict(
            f'"{pipeline.title}" does not run, so it has no state to export.',
            safe="Nothing was changed.",
            next="Export it as YAML, or deploy it first.",
        )
    facts = group_facts([deployment], heard=control_state().hears)[deployment.pk]
    found = [_Group(spec, facts[spec.group], None) for spec in specs_of(deployment)]
    _check_sources(deployment, found)
    for group in found:
        group.commit = _last_commit(deployment, group)
    return deployment, _in_order(found)


def _check_sources(deployment: Deployment, groups: list[_Group]) -> None:
    """Raises Conflict if a connector keeps a position in its system, because the text cannot hold such a
    position."""
    once = [stream.consumer for group in groups for stream in group.spec.inputs if stream.once]
    if once:
        raise Conflict(
            f"{deployment.name_of(once[0])} would read its rows once more in another Fogline.",
            safe="Nothing was exported.",
            next="Export it as YAML. The element then begins as if it were new: where its parameters say.",
        )


def _in_order(groups: list[_Group]) -> list[_Group]:
    left, done = list(groups), list[_Group]()
    while left:
        written_by_left = {stream.topic for group in left for stream in group.spec.outputs}
        free = [g for g in left if written_by_left.isdisjoint(stream.topic for stream in g.spec.inputs)]
        done += free
        left = [group for group in left if group not in free]
    return done


def _last_commit(deployment: Deployment, group: _Group) -> Commit | None:
    """Returns the group's last commit. Raises Conflict if the group has ended, because it cannot go on."""
    last: Commit | None = None
    try:
        for record in read_once(kafka_settings(), group.spec.journal, hidden=True):
            last = record if isinstance(record, Commit) else last
            ended = isinstance(record, Retire) or (
                isinstance(record, Commit)
                and (record.ended or {END_STAGE, ENDED}.intersection(record.boundary.ends))
            )
            if ended:
                raise Conflict(
                    f"{deployment.name_of(group.id)} has read an input to its end.",
                    safe="Nothing was exported.",
                    next="Export it as YAML: it has no state to continue with.",
                )
    except Doubtful as error:
        raise _away(error) from error
    return last


def _unread(group: _Group) -> bool:
    """Returns whether rows of Fogline's own streams wait for the group."""
    ends = group.commit.boundary.ends if group.commit else {}
    inner = [stream for stream in group.spec.inputs if not stream.external or stream.intake]
    try:
        return any(
            has_unread(kafka_settings(), stream.topic, ends.get(position_key(stream.topic, 0), 0))
            for stream in inner
        )
    except Doubtful as error:
        raise _away(error) from error


def _has_checkpoint(group: _Group) -> bool:
    if group.commit is None:
        return True
    try:
        return any(each["seq"] == group.commit.seq for each in checkpoint_summaries(group.spec.id))
    except Missing:
        return False


def _away(error: Exception) -> BackendAway:
    return BackendAway(
        f"Kafka does not answer: {error}.",
        safe="Running pipelines are not affected.",
        next="See whether it runs, then try again.",
    )
