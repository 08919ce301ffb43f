"""Responses about documents, versions, files and operators."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from pipeline_runtime.model.schema import StreamSchema
from webapp.imports.reading import Detection, Preview, Reading, Report
from webapp.json_types import Document, Follow
from webapp.problems import Fault


class Elsewhere(TypedDict):
    """An element that runs on another node than where it belongs."""

    element: str
    home: str
    """the node that the draft pins it to; without a pin, the one that a drain or a failure moved it from"""
    pinned: bool
    node: str
    why: str
    at: str | None
    """since when"""


class VersionItem(TypedDict):
    """A draft as it was deployed or saved."""

    number: int
    note: str
    created_at: str
    created_by: str | None


class PipelineVersion(VersionItem):
    document: Document


class TemplateMade(TypedDict):
    """Who saved a template of this installation, and when."""

    by: str | None
    at: str


class Template(TypedDict):
    name: str
    title: str
    description: str
    shows: str
    """empty for a saved template, and so are the next two"""
    runs: str
    """how long"""
    data: str
    """which data, real or synthetic"""
    replace: list[str]
    """the elements that users replace by their own source, or set for themselves"""
    made: TemplateMade | None
    """null for a template that comes with Fogline"""
    document: Document


class TemplatePage(Template):
    text: str
    """Markdown"""
    elements: dict[str, str]
    """what each element does, in Markdown, in the order of the page"""


class Copies(TypedDict):
    """A document in which elements have copies at sites."""

    document: Document
    elements: list[str]
    """including those that were added"""


class Validation(TypedDict):
    faults: list[Fault]
    schemas: dict[str, StreamSchema]


Change = TypedDict("Change", {"path": str, "from": Any, "to": Any})


class ChangedElement(TypedDict):
    id: str
    changes: list[Change]


GroupsChange = TypedDict("GroupsChange", {"from": list[Any], "to": list[Any]})


class Difference(TypedDict):
    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    changed: list[ChangedElement]
    groups: GroupsChange | None


NamedDifference = TypedDict(
    "NamedDifference",
    {
        "from": str,
        "to": str,
        "added": list[dict[str, Any]],
        "removed": list[dict[str, Any]],
        "changed": list[ChangedElement],
        "groups": GroupsChange | None,
    },
)


class FileColumn(TypedDict):
    name: str
    type: str
    unit: str | None


class FileUse(TypedDict):
    pipeline: str
    """of a template: its title"""
    where: Literal["draft", "version", "deployment", "template"]
    version: int | None
    """null for the draft and for a template"""


class FileProgress(TypedDict):
    bytes_done: int
    bytes_total: int
    rows: int


class FileTrouble(TypedDict):
    """Why a file could not be looked at or imported."""

    what: str
    where: str | None
    next: str


FileState = Literal["looking", "asks", "importing", "imported", "failed", "cancelled", "model"]


class StoredFile(TypedDict):
    id: str
    reference: str
    """what an element names it by"""
    name: str
    size: int
    """bytes of the original"""
    sha256: str
    """of the original"""
    kind: Literal["table", "model"]
    state: FileState
    progress: FileProgress | None
    """while it is imported"""
    error: FileTrouble | None
    columns: list[FileColumn]
    """of its table, once it is imported"""
    rows: int | None
    dead_rows: int | None
    """rows that could not be read, and become dead letters; null until it is imported"""
    unread_cells: int | None
    """cells of the other rows that could not be read, and have no value; null until it is imported"""
    has_time: bool | None
    table_bytes: int
    """what its table takes on the disk"""
    uses: list[FileUse]
    created_at: str
    created_by: str | None


class FileDetail(StoredFile):
    detection: Detection | None
    """how it can be read, and what a person has to decide"""
    reading: Reading | None
    """how it is or was imported"""
    report: Report | None


class FilePreview(TypedDict):
    preview: Preview
    detection: Detection | None
    """what is detected around the places that are fixed"""
    encodings: dict[str, str]
    """those that can be chosen, with what people call them"""


class Port(TypedDict):
    name: str
    description: str
    optional: bool


class Operator(TypedDict):
    type: str
    title: str
    summary: str
    category: str
    icon: str
    inputs: list[Port]
    outputs: list[Port]
    params_schema: dict[str, Any]
    docs: str
    example: dict[str, Any]
    stateful: bool
    follow: Follow
    follow_depends: bool
    """it may differ with other parameters or input types"""
    delivery: Literal["exactly once", "at least once"]
    """how often a row comes in or goes out when something fails"""
    delivery_why: str
    """why, in one line; empty for an element without a connector"""
    ticks: Literal["none", "one", "many"]
    """how many of the things that its system has may be ticked for it"""
    version: int


class Taken(TypedDict):
    """The parameters of an element after something was ticked in its system."""

    params: dict[str, Any]


class MissingFile(TypedDict):
    name: str
    elements: list[str]
    """the elements that name it"""
    choices: list[str]
    """references of the uploads with that name; empty if there is none"""


class ReadPipeline(TypedDict):
    document: dict[str, Any]
    missing: list[MissingFile]


class DraftThere(TypedDict):
    """The pipeline of the same name that is here already."""

    title: str
    revision: int
    same: bool
    """its draft is the same document"""


class ReadItem(TypedDict):
    """One pipeline of a file that has several."""

    at: int
    """its place in the file, from 0"""
    line: int
    """where it begins"""
    name: str
    title: str
    elements: int
    refused: str | None
    """why it cannot be imported"""
    missing: list[MissingFile]
    there: DraftThere | None
    free_title: str
    """a title that no pipeline here has; its own one if that is free"""


class ImportedPipeline(TypedDict):
    name: str
    title: str
    revision: int
    version: int | None
    """the version that keeps the draft that was replaced; null for a new pipeline"""
