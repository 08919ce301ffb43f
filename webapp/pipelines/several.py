"""Exports and imports a file with several pipelines: a YAML stream, with a line `---` between two
documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from typing_extensions import TypedDict

from pipeline_runtime.model.document import TITLE_MAX, ValuesLeft, documents_in
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.pipelines.actions import check_name, create_pipeline, overtaken, set_draft, snapshot
from webapp.pipelines.models import DataFile, Pipeline
from webapp.pipelines.schemas import ImportedPipeline, MissingFile, ReadItem
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.shape import elements_of
from webapp.pipelines.titles import title_of
from webapp.pipelines.written import document_in, with_uploads, written
from webapp.problems import Conflict, Invalid

TEXT_CHARACTERS_MAX = 2_000_000  # as JSON, this is less than a request may have
PIPELINES_MAX = 100


class Choice(TypedDict):
    """What to do with one pipeline of the file."""

    at: int
    """the place of the pipeline in the file, from 0"""
    title: str
    """the title of the new pipeline; if it is empty, the title in the file"""
    replaces: int | None
    """the revision of the present draft that the pipeline replaces; null makes a new pipeline"""


@dataclass(frozen=True)
class _Read:
    """A document of the file, or the reason why it cannot be read."""

    at: int
    line: int
    document: dict[str, Any] | None = None
    missing: Sequence[MissingFile] = ()
    refused: str | None = None

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"]) if self.document else ""


def export(names: Sequence[str]) -> str:
    """Returns the drafts of these pipelines as one text. Raises Missing, Invalid."""
    if not 0 < len(names) <= PIPELINES_MAX:
        raise _invalid("pipeline", f"name 1 to {PIPELINES_MAX} pipelines", "Choose fewer, or some.")
    return written([pipeline_named(name).draft for name in dict.fromkeys(names)])


def read_several(actor: User, text: str, chosen: Mapping[str, str]) -> list[ReadItem]:
    """Returns the pipelines of the file, and for each the pipeline of this Fogline with the same name. Stores
    nothing. Raises Invalid if there is no pipeline, or if there are too many."""
    require(actor, Role.EDITOR, "import pipelines")
    here = {pipeline.name: pipeline for pipeline in Pipeline.objects.only("name", "draft", "draft_revision")}
    taken = {pipeline.title.lower() for pipeline in here.values()}
    return [_item(read, here.get(read.name), taken) for read in _read(text, chosen)]


def _item(read: _Read, there: Pipeline | None, taken: set[str]) -> ReadItem:
    document = read.document or {}
    title = title_of(document) or read.name
    free = title
    number = 2
    while free.lower() in taken:
        end = f" {number}"
        free, number = title[: TITLE_MAX - len(end)] + end, number + 1
    return {
        "at": read.at,
        "line": read.line,
        "name": read.name,
        "title": title,
        "elements": len(elements_of(document)),
        "refused": read.refused,
        "missing": list(read.missing),
        "there": there
        and {
            "title": there.title,
            "revision": there.draft_revision,
            "same": there.draft == document,
        },
        "free_title": free,
    }


def _read(text: str, chosen: Mapping[str, str]) -> list[_Read]:
    parts = documents_in(text)
    if not 0 < len(parts) <= PIPELINES_MAX:
        count = f"{len(parts):,}" if parts else "none"
        said = f"a file has 1 to {PIPELINES_MAX} pipelines, and this one has {count}"
        raise _invalid("text", said, "Divide the file." if parts else "Choose a file of exported pipelines.")
    files, left = list(DataFile.objects.only("id", "name")), ValuesLeft()
    found: list[_Read] = []
    for at, (before, part) in enumerate(parts):
        read = _read_one(at, before, part, left, files, chosen)
        earlier = next((each for each in found if read.name and each.name == read.name), None)
        if earlier is not None:
            why = f'The file has another pipeline "{read.name}", which begins at line {earlier.line}.'
            read = _Read(at, read.line, read.document, refused=why)
        found.append(read)
    return found


def _read_one(
    at: int,
    lines_before: int,
    text: str,
    left: ValuesLeft,
    files: Sequence[DataFile],
    chosen: Mapping[str, str],
) -> _Read:
    line = lines_before + text[: len(text) - len(text.lstrip())].count("\n") + 1
    try:
        document = document_in(text, lines_before=lines_before, left=left)
        check_name(document["metadata"]["name"])
    except Invalid as error:
        return _Read(at, line, refused=error.detail)
    found = with_uploads(document, files, chosen)
    return _Read(at, line, found["document"], found["missing"])


@transaction.atomic
def import_several(
    actor: User, text: str, chosen: Mapping[str, str], wanted: Sequence[Choice]
) -> list[ImportedPipeline]:
    """Imports the `wanted` pipelines of the file: all of them, or none. A replaced draft becomes a version.
    Raises Invalid and Conflict."""
    require(actor, Role.EDITOR, "import pipelines")
    read = dict(enumerate(_read(text, chosen)))
    return [_import(actor, choice, read.get(choice["at"])) for choice in _each_once(wanted)]


def _each_once(wanted: Iterable[Choice]) -> list[Choice]:
    by_place = {choice["at"]: choice for choice in wanted}
    if not by_place:
        raise _invalid("pipelines", "no pipeline is chosen", "Choose at least one.")
    return [by_place[at] for at in sorted(by_place)]


def _import(actor: User, choice: Choice, read: _Read | None) -> ImportedPipeline:
    where = f"pipelines[{choice['at']}]"
    if read is None:
        raise _invalid(where, "the file has no such pipeline", "Read the file again.")
    if read.document is None or read.refused:
        said = read.refused or "it cannot be read"
        raise _invalid(where, said, "Correct it in the file, or leave it out.")
    if read.missing:
        names = ", ".join(each["name"] for each in read.missing)
        said = f'"{read.name}" names files that are not here: {names}'
        raise _invalid(where, said, "Upload these files, or choose others for them.")
    if choice["replaces"] is not None:
        return _replace(actor, read.name, read.document, choice["replaces"])
    if choice["title"]:
        made = create_pipeline(actor, None, read.document, title=choice["title"], action="pipeline.import")
    else:
        made = create_pipeline(actor, read.name, read.document, action="pipeline.import")
    return _imported(made, None)


def _replace(actor: User, name: str, document: dict[str, Any], revision: int) -> ImportedPipeline:
    pipeline = pipeline_named(name, for_update=True)
    if pipeline.draft_revision != revision:
        raise Conflict(
            overtaken(pipeline, revision),
            safe="Nothing was imported.",
            next="Read the file again to see the present draft.",
        )
    version = snapshot(actor, pipeline, "before an import replaced it")
    set_draft(actor, pipeline, document)
    audit(actor, "pipeline.import", name, version=version.number)
    announce()
    return _imported(pipeline, version.number)


def _imported(pipeline: Pipeline, version: int | None) -> ImportedPipeline:
    return {
        "name": pipeline.name,
        "title": pipeline.title,
        "revision": pipeline.draft_revision,
        "version": version,
    }


def _invalid(path: str, message: str, next: str) -> Invalid:
    return Invalid(
        f"The pipelines cannot be carried: {message.removesuffix('.')}.",
        safe="Nothing was changed.",
        next=next,
        faults=[{"element": None, "path": path, "message": message, "code": "invalid"}],
    )
