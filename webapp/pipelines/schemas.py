"""Responses about documents, versions, files and operators."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from pipeline_runtime.model.schema import StreamSchema
from webapp.imports.reading import Detection, Preview, Reading, Report
from webapp.json_types import Document, Follow
from webapp.problems import Fault


class Elsewhere(TypedDict):
    """An element that does not run on its home node."""

    element: str
    home: str
    """the node to which the draft pins the element; without a pin, the node from which a drain or a failure
    moved it"""
    pinned: bool
    node: str
    why: str
    at: str | None
    """since when the element runs on `node`"""


class VersionItem(TypedDict):
    """A numbered copy of a draft, made by a deployment or by a user who saved it."""

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
    """the feature of Fogline that the template shows; empty for a saved template"""
    runs: str
    """how long the template runs; empty for a saved template"""
    data: str
    """the data that the template uses, real or synthetic; empty for a saved template"""
    replace: list[str]
    """the elements that users replace by their own source, or whose parameters they set"""
    made: TemplateMade | None
    """null for a template that comes with Fogline"""
    document: Document


class TemplatePage(Template):
    text: str
    """the page of the template, in Markdown"""
    elements: dict[str, str]
    """a text in Markdown for each element, in the order of the page"""


class Copies(TypedDict):
    """A document in which elements have copies at sites."""

    document: Document
    elements: list[str]
    """all elements of the document, including the copies that were added"""


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
    """the pipeline's name; for a template, its title"""
    where: Literal["draft", "version", "deployment", "template"]
    version: int | None
    """the version's number; null for the draft and for a template"""


class FileProgress(TypedDict):
    bytes_done: int
    bytes_total: int
    rows: int


class FileTrouble(TypedDict):
    """Why Fogline could not look at a file, or could not import it."""

    what: str
    where: str | None
    next: str


FileState = Literal["looking", "asks", "importing", "imported", "failed", "cancelled", "model"]


class StoredFile(TypedDict):
    id: str
    reference: str
    """the name by which an element refers to the file"""
    name: str
    size: int
    """the size of the original file in bytes"""
    sha256: str
    """the hash of the original file"""
    kind: Literal["table", "model"]
    state: FileState
    progress: FileProgress | None
    """the progress of the import; null if the file is not being imported"""
    error: FileTrouble | None
    columns: list[FileColumn]
    """the columns of the table; empty until the file is imported"""
    rows: int | None
    dead_rows: int | None
    """the number of rows that could not be read and become dead letters; null until the file is imported"""
    unread_cells: int | None
    """the number of unreadable cells in the other rows, which have no value; null until the file is
    imported"""
    has_time: bool | None
    table_bytes: int
    """the size of the table on the disk"""
    uses: list[FileUse]
    created_at: str
    created_by: str | None


class FileDetail(StoredFile):
    detection: Detection | None
    """the ways to read the file, and the questions for a person"""
    reading: Reading | None
    """the way in which the file is or was read"""
    report: Report | None


class FilePreview(TypedDict):
    preview: Preview
    detection: Detection | None
    """the detected way to read the file, with the choices that the user has fixed"""
    encodings: dict[str, str]
    """the encodings that a user can choose, with their names"""


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
    """whether `follow` may differ with other parameters or input types"""
    delivery: Literal["exactly once", "at least once"]
    """how often a row comes in, or goes out, if a part fails"""
    delivery_why: str
    """the reason for `delivery`, in one line; empty for an element without a connector"""
    ticks: Literal["none", "one", "many"]
    """how many items of its system a user may tick"""
    browsed_from: str
    """the parameter that says where a look into its system begins; empty: the whole system"""
    view: bool
    """whether the dashboard shows it, and no node runs it"""
    version: int


class Taken(TypedDict):
    """The parameters of an element after a user has ticked items of its system."""

    params: dict[str, Any]


class MissingFile(TypedDict):
    name: str
    elements: list[str]
    """the elements that name the file"""
    choices: list[str]
    """the references of the uploaded files with that name; empty if there is none"""


class ReadPipeline(TypedDict):
    document: dict[str, Any]
    missing: list[MissingFile]


class DraftThere(TypedDict):
    """The pipeline of the same name that this Fogline already has."""

    title: str
    revision: int
    same: bool
    """whether the draft of that pipeline is the same document"""


class ReadItem(TypedDict):
    """One pipeline of a file with several pipelines."""

    at: int
    """the place of the pipeline in the file, from 0"""
    line: int
    """the line at which the pipeline begins"""
    name: str
    title: str
    elements: int
    refused: str | None
    """why the pipeline cannot be imported; null if it can"""
    missing: list[MissingFile]
    there: DraftThere | None
    free_title: str
    """a title that no pipeline here has: the pipeline's own title if that is free"""


class ImportedPipeline(TypedDict):
    name: str
    title: str
    revision: int
    version: int | None
    """the version with the draft that was replaced; null for a new pipeline"""
