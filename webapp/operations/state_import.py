"""A pipeline that comes with its state from another Fogline, and goes on there at its first deployment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from django.db import transaction

from pipeline_runtime.checkpoint import portable
from pipeline_runtime.checkpoint.portable import NotPortable
from pipeline_runtime.journal.records import TOPIC_IDS, Boundary, Commit, JournalDamaged, decode
from pipeline_runtime.kafka.clients import KafkaError
from pipeline_runtime.kafka.topics import TopicLook
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.spec import GroupSpec
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends.chunk_store import put_file
from webapp.backends.kafka import kafka_settings
from webapp.operations.models import CarriedState
from webapp.pipelines.actions import check_name, create_pipeline
from webapp.pipelines.checking import check, fault_json, planned
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.pipelines.selectors import document_key
from webapp.pipelines.upload_handler import HashedFile
from webapp.pipelines.written import read
from webapp.placements.models import Deployment
from webapp.problems import BackendAway, Conflict, Invalid

SAFE = "Nothing was imported."
AGAIN = "Export it again, and send the whole file as it is"
WITHOUT = "Export it as YAML there, and import that: it then begins without its state"


def import_state(actor: User, file: HashedFile, title: str, files: Mapping[str, str]) -> Pipeline:
    """Makes a draft of the pipeline, and keeps its state for the draft's first deployment. Raises Invalid,
    Conflict."""
    require(actor, Role.EDITOR, "import pipelines")
    header = _header(file)
    document = _document(actor, header, files)
    _check_groups(header, planned(parse_document(document), "imported"))
    put_file(file.sha256, _parts(file))
    with transaction.atomic():
        name = document["metadata"]["name"]
        check_name(name)
        pipeline = create_pipeline(
            actor, None if title else name, document, title=title, action="pipeline.import_state"
        )
        CarriedState.objects.create(
            pipeline=pipeline,
            sha256=file.sha256,
            groups=header["groups"],
            document=pipeline.draft,
            created_by=actor,
        )
        announce()
    return pipeline


def take_along(pipeline: Pipeline, version: PipelineVersion, deployment: Deployment) -> None:
    """Gives the state that came with the pipeline to its first deployment that starts. Raises Conflict if
    what is deployed is not what came."""
    carried = CarriedState.objects.select_for_update().filter(pipeline=pipeline).first()
    if carried is None:
        return
    former = Deployment.objects.filter(pk=carried.deployment).first() if carried.deployment else None
    if former is not None and former.status != Deployment.Status.FAILED:
        return
    if document_key(_unnamed(version.document)) != document_key(_unnamed(carried.document)):
        raise Conflict(
            f'"{pipeline.title}" came with its state, and was changed before its first deployment.',
            safe="Nothing was deployed. The state is kept.",
            next="Deploy it as it came, and change it then. Or give the state up: "
            f"DELETE /pipelines/{pipeline.name}/state.",
        )
    carried.deployment = deployment.pk
    carried.save(update_fields=["deployment"])


@transaction.atomic
def drop_state(actor: User, pipeline: Pipeline) -> None:
    """Gives up the state that came with the pipeline. A second call changes nothing."""
    require(actor, Role.EDITOR, "give up the state of pipelines")
    if CarriedState.objects.filter(pipeline=pipeline).delete()[0]:
        audit(actor, "pipeline.drop_state", pipeline.name)
        announce()


def _unnamed(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": {}}


def _header(file: HashedFile) -> dict[str, Any]:
    try:
        file.seek(0)
        header = portable.check(file)
        if not isinstance(header.get("document"), str) or not isinstance(header.get("groups"), dict):
            raise NotPortable("its header lacks the document or the groups")
        return header
    except NotPortable as error:
        raise _invalid("file", str(error), AGAIN) from error


def _document(actor: User, header: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    found = read(actor, header["document"], files)
    if found["missing"]:
        names = ", ".join(each["name"] for each in found["missing"])
        message = f"it reads files that are not here, or are here more than once: {names}"
        raise _invalid("files", message, "Import these files here first, each once")
    faults = [fault_json(fault) for fault in check(found["document"]).faults]
    if faults:
        raise Invalid(
            f"The pipeline cannot run here as it is: {faults[0]['message']}.",
            safe=SAFE,
            next="Correct the pipeline where it comes from, and export it again.",
            faults=faults,
        )
    return found["document"]


def _check_groups(header: Mapping[str, Any], specs: tuple[GroupSpec, ...]) -> None:
    told: dict[str, Any] = header["groups"]
    if set(told) != {spec.group for spec in specs}:
        raise _invalid("groups", "this Fogline runs other groups of it", WITHOUT)
    for spec in specs:
        was = told[spec.group]
        try:
            same = was["elements"] == [[each.id, each.type] for each in spec.elements]
            files, commit = was["files"], commit_of(was)
        except (KeyError, TypeError, JournalDamaged) as error:
            raise _invalid(f"groups.{spec.group}", "its part about a group cannot be read", AGAIN) from error
        if not same:
            raise _invalid(f"groups.{spec.group}", "this Fogline runs other elements in a group", WITHOUT)
        if files != sorted(spec.files.values()):
            raise _invalid(
                f"groups.{spec.group}",
                "a file that it reads is another one here",
                "Import the same original in the same way",
            )
        if commit is not None:
            _check_topics(spec, commit)


def commit_of(told: Mapping[str, Any]) -> Commit | None:
    """Returns the newest commit that a header has of a group. Raises KeyError, JournalDamaged."""
    if told["commit"] is None:
        return None
    record = decode(json.dumps(told["commit"]).encode())
    if not isinstance(record, Commit) or not _is_sound(record.boundary):
        raise JournalDamaged("no commit")
    return record


def _is_sound(boundary: Boundary) -> bool:
    whole = (boundary.seq, boundary.batch_time_ms)
    ends = boundary.ends
    return (
        all(type(each) is int for each in whole)
        and boundary.seq >= 1
        and isinstance(ends, dict)
        and isinstance(ends.get(TOPIC_IDS, {}), dict)
    )


def _check_topics(spec: GroupSpec, commit: Commit) -> None:
    """Its positions in topics of the users' own mean something only in these same topics."""
    outside = {stream.topic for stream in spec.inputs if stream.external and not stream.intake}
    if not outside:
        return
    try:
        with closing(TopicLook(kafka_settings())) as look:
            seen = look.ask(outside)
    except KafkaError as error:
        raise BackendAway(f"Kafka does not answer: {error}.", safe=SAFE, next="Try again.") from error
    known = commit.boundary.ends.get(TOPIC_IDS, {})
    for topic in sorted(outside):
        here = seen.get(topic)
        if here is None or not here.id or known.get(topic) != here.id:
            raise Conflict(
                f'The topic "{topic}" is not the one that the pipeline has read. It cannot continue there.',
                safe=SAFE,
                next="Import it without its state, or let this Fogline use the same Kafka.",
            )


def _parts(file: HashedFile) -> Iterator[bytes]:
    file.seek(0)
    yield from file.chunks()


def _invalid(path: str, message: str, next: str) -> Invalid:
    return Invalid(
        f"The state cannot be imported: {message}.",
        safe=SAFE,
        next=f"{next}.",
        faults=[{"element": None, "path": path, "message": message, "code": "invalid"}],
    )
