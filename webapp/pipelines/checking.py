"""Validation of documents against what this installation has: operators, nodes, uploaded files."""

from __future__ import annotations

from typing import Any

from pipeline_runtime.model.document import PipelineDocument
from pipeline_runtime.model.plan import plan_groups
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.model.validation import Validation, validate
from pipeline_runtime.operators.registry import default_registry
from webapp.nodes.models import Node
from webapp.pipelines.models import DataFile


def check(document: dict[str, Any]) -> Validation:
    """Every fault of a document or draft, and the schemas of its streams."""
    return validate(
        document,
        default_registry(),
        nodes=set(Node.objects.values_list("name", flat=True)),
        describe_file=describe_file,
    )


def planned(document: PipelineDocument, deployment: str) -> tuple[GroupSpec, ...]:
    """What nodes run of a valid document; raises DocumentInvalid."""
    files = {file.reference: file.sha256 for file in DataFile.objects.only("id", "sha256")}
    return plan_groups(document, deployment, default_registry(), files, describe_file=describe_file)


def describe_file(reference: str) -> bytes:
    """The first bytes of `upload:<id>`; FileNotFoundError when there is none."""
    file = DataFile.objects.filter(pk=reference.removeprefix("upload:")).only("head").first()
    if file is None or not reference.startswith("upload:"):
        raise FileNotFoundError(f"there is no uploaded file {reference}; upload it, or choose another one")
    return bytes(file.head)
