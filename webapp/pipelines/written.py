"""Writes and reads pipelines as text for people. The text names files by their file names.

`file:machines.csv` means the only upload with that name. If several uploads have the name, an id follows:
`file:machines.csv#h7k2m9q4`. Another Fogline does not know this id, and looks only at the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline_runtime.model.document import ValuesLeft, load_text, refusals, to_yaml
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry, params_schema
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.pipelines.checking import fault_json
from webapp.pipelines.models import DataFile
from webapp.pipelines.schemas import MissingFile, ReadPipeline
from webapp.pipelines.shape import elements_of, metadata_of
from webapp.problems import Fault, Invalid

_BY_ID, _BY_NAME = "upload:", "file:"


def written(drafts: Iterable[dict[str, Any]]) -> str:
    """Returns the drafts as YAML, with a line `---` between two. If an upload does not exist any more, its id
    stays in the text."""
    by_reference = {file.reference: file for file in DataFile.objects.only("id", "name")}
    names = [file.name for file in by_reference.values()]

    def by_name(text: str) -> str:
        file = by_reference.get(text)
        if file is None:
            return text
        return f"{_BY_NAME}{file.name}" + (f"#{file.pk}" if names.count(file.name) > 1 else "")

    return "---\n".join(to_yaml(_with_files(draft, by_name)) for draft in drafts)


def read(actor: User, text: str, chosen: Mapping[str, str]) -> ReadPipeline:
    """Returns the pipeline in a YAML or JSON text. Each named file becomes the upload of this Fogline. Stores
    nothing.

    `chosen` maps a name to an upload (`machines.csv` -> `upload:h7k2m9q4`). Without an entry, the only upload
    with that name counts. A name with no upload, or with several, is in `missing`, and stays in the document.
    Raises Invalid, which names the line with the error.
    """
    require(actor, Role.EDITOR, "import pipelines")
    return with_uploads(document_in(text), list(DataFile.objects.only("id", "name")), chosen)


def with_uploads(
    document: dict[str, Any], files: Sequence[DataFile], chosen: Mapping[str, str]
) -> ReadPipeline:
    """Returns the document with an upload of `files` in place of each named file."""
    missing: dict[str, list[str]] = {}

    def here(text: str) -> str:
        if not text.startswith(_BY_NAME):
            return text
        name, _, id = text.removeprefix(_BY_NAME).partition("#")
        like = [file for file in files if file.name == name]
        wanted = [file for file in files if file.reference == chosen.get(name)]
        found = wanted or [file for file in like if file.pk == id] or like
        if len(found) == 1:
            return found[0].reference
        missing[name] = [file.reference for file in like]
        return text

    resolved = _with_files(document, here)
    return {"document": resolved, "missing": _missing(resolved, missing)}


def _missing(document: dict[str, Any], names: Mapping[str, list[str]]) -> list[MissingFile]:
    """Returns the missing files in the order in which elements first name them."""
    users: dict[str, list[str]] = {name: [] for name in names}
    for element in elements_of(document):
        for text in _file_parameters(element).values():
            name = text.removeprefix(_BY_NAME).partition("#")[0]
            if name in users:
                users[name].append(element["id"])
    return [{"name": name, "elements": users[name], "choices": names[name]} for name in names]


def document_in(text: str, *, lines_before: int = 0, left: ValuesLeft | None = None) -> dict[str, Any]:
    """Returns the document in a text. It may have faults that a draft may have. Raises Invalid."""
    try:
        document = load_text(text, lines_before=lines_before, left=left)
        faults = [fault_json(fault) for fault in refusals(document)]
    except DocumentInvalid as error:
        faults = [fault_json(fault) for fault in error.faults]
    if not faults:
        faults = list(_not_drawn(document))
    if faults:
        said = "; ".join(": ".join(filter(None, (fault["path"], fault["message"]))) for fault in faults[:3])
        raise Invalid(
            f"The text is no pipeline that can be imported: {said}.",
            safe="Nothing was changed.",
            next="Mend the text there, or export the pipeline again.",
            faults=faults,
        )
    found: dict[str, Any] = document
    return found


def _not_drawn(document: dict[str, Any]) -> Iterator[Fault]:
    """Yields the faults that keep the editor from drawing the document. Other faults are allowed in a
    draft."""

    def fault(path: str, message: str) -> Fault:
        return {"element": None, "path": path, "message": message, "code": "invalid"}

    if document.get("kind") != "Pipeline":
        yield fault("kind", 'must be "Pipeline"')
    if not isinstance(metadata_of(document).get("name"), str):
        yield fault("metadata.name", "a pipeline has a name")
    spec = document.get("spec")
    for part in ("elements", "groups"):
        items = spec.get(part, []) if isinstance(spec, dict) else None
        if not isinstance(items, list) or not all(
            isinstance(item, dict) and isinstance(item.get("id"), str) for item in items
        ):
            yield fault(f"spec.{part}", "must be a list, each with an id")


def _with_files(document: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Returns the document with each reference to a file changed by `change`."""
    spec = document.get("spec")
    elements = spec.get("elements") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(elements, list):
        return document
    changed = []
    for element in elements:
        files = {name: change(text) for name, text in _file_parameters(element).items()}
        changed.append({**element, "params": {**element["params"], **files}} if files else element)
    return {**document, "spec": {**spec, "elements": changed}}


def _file_parameters(element: Any) -> dict[str, str]:
    """Returns the references to files in an element's parameters, by the names of the parameters."""
    params = element.get("params") if isinstance(element, dict) else None
    if not isinstance(params, dict):
        return {}
    fields = _file_fields(element.get("type"))
    return {name: params[name] for name in fields if isinstance(params.get(name), str)}


def _file_fields(type_: Any) -> list[str]:
    if not isinstance(type_, str):
        return []
    try:
        schema = params_schema(default_registry().get(type_))
    except OperatorUnknown:
        return []
    return [name for name, field in schema.get("properties", {}).items() if field.get("format") == "file"]
