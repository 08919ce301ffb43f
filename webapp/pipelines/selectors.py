"""Reads pipelines and their versions."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from webapp.pipelines import schemas
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.pipelines.schemas import VersionItem
from webapp.problems import Missing


def pipeline_named(name: str, *, for_update: bool = False) -> Pipeline:
    """Returns the pipeline, or raises Missing. `for_update` locks its row until the transaction ends. Others
    may refer to it meanwhile: control does, when it deploys it again."""
    rows = Pipeline.objects.select_related("updated_by")
    pipeline = (
        (rows.select_for_update(no_key=True, of=("self",)) if for_update else rows).filter(name=name).first()
    )
    if pipeline is None:
        raise Missing(f'There is no pipeline "{name}".', next="See the list of pipelines.")
    return pipeline


def no_element(pipeline: str, id: str) -> Missing:
    """Returns the error that the pipeline has no such element."""
    return Missing(
        f'There is no element "{id}" in the pipeline "{pipeline}".', next="See the elements of its draft."
    )


def version_of(pipeline: Pipeline, number: int) -> PipelineVersion:
    """Returns the version with this number, or raises Missing."""
    version = pipeline.versions.select_related("created_by").filter(number=number).first()
    if version is None:
        raise Missing(f'"{pipeline.title}" has no version {number}.', next="See the list of its versions.")
    return version


def document_key(document: Any) -> str:
    """Returns a text that is equal for documents that would run in the same way. Titles, notes and places in
    the drawing do not count."""
    if isinstance(document, dict):
        document = json.loads(json.dumps(document))
        if isinstance(document.get("metadata"), dict):
            document["metadata"].pop("title", None)
        spec = document.get("spec")
        for items in (spec.get("elements"), spec.get("groups")) if isinstance(spec, dict) else ():
            for item in items if isinstance(items, list) else ():
                if isinstance(item, dict):
                    item.pop("ui", None)
        if isinstance(spec, dict):
            spec.pop("notes", None)
            for empty in [key for key, value in spec.items() if value in ([], None)]:
                spec.pop(empty)
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def uploads_of(document: Any) -> set[str]:
    """Returns the ids of the data files that the elements' parameters name, in a document or a draft."""
    spec = document.get("spec") if isinstance(document, dict) else None
    elements = spec.get("elements") if isinstance(spec, dict) else None
    found: set[str] = set()
    waiting = [each.get("params") for each in elements or () if isinstance(each, dict)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and value.startswith("upload:"):
            found.add(value.removeprefix("upload:"))
    return found


def version_item(version: PipelineVersion) -> VersionItem:
    return {
        "number": version.number,
        "note": version.note,
        "created_at": version.created_at.isoformat(),
        "created_by": version.created_by.username if version.created_by else None,
    }


def version_json(version: PipelineVersion) -> schemas.PipelineVersion:
    return {**version_item(version), "document": version.document}
