"""Validates documents against the operators, nodes and uploaded files of this installation."""

from __future__ import annotations

import json
import re
from typing import Any

from django.conf import settings

from pipeline_runtime.model.document import PipelineDocument
from pipeline_runtime.model.faults import Fault
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.connections import NAME
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.planning.validation import Validation, validate
from webapp.connections.selectors import kinds_by_name, named_in
from webapp.imports.reading import Detection
from webapp.nodes.models import Node
from webapp.pipelines.models import DataFile
from webapp.pipelines.schemas import FileTrouble
from webapp.problems import Fault as FaultJson


def check(document: dict[str, Any]) -> Validation:
    """Returns every fault of a document or draft, and the schemas of its streams."""
    found = validate(
        document,
        default_registry(),
        nodes={node.name: node.place for node in Node.objects.only("name", "site")},
        describe_file=describe_file,
    )
    faults = [_with_file(document, fault) for fault in found.faults] + connection_faults(document)
    return found.model_copy(update={"faults": tuple(faults)})


def connection_faults(document: dict[str, Any]) -> list[Fault]:
    """Returns a fault for each element whose connection does not exist or is of another kind."""
    elements = document.get("spec", {}).get("elements") if isinstance(document.get("spec"), dict) else None
    named = [
        (place, element, each)
        for place, element in enumerate(elements if isinstance(elements, list) else ())
        if isinstance(element, dict) and isinstance(element.get("params"), dict)
        for each in sorted(named_in([element]))
        # Another name is a fault of the parameter, which is reported elsewhere.
        if re.fullmatch(NAME, each.name)
    ]
    there = kinds_by_name({each.name for _, _, each in named}) if named else {}
    faults = []
    for place, element, each in named:
        if there.get(each.name) == each.kind:
            continue
        what = (
            f'the connection "{each.name}" is of another kind; one of the kind {each.kind} is needed'
            if each.name in there
            else f'there is no connection "{each.name}"; an admin makes it under Connections'
        )
        faults.append(
            Fault(
                element=str(element.get("id") or ""),
                path=f"spec.elements[{place}].params.{each.parameter}",
                message=what,
                code="connection",
            )
        )
    return faults


def fault_json(fault: Fault) -> FaultJson:
    return {
        "element": fault.element,
        "path": fault.path,
        "message": fault.message,
        "code": fault.code,
        "title": fault.title,
        "place": fault.place,
        "instead": [{"column": each.column, "value": each.value} for each in fault.instead],
    }


_FILE_PARAMETER = re.compile(r"spec\.elements\[(\d+)\]\.params\.(\w+)")


def _with_file(document: dict[str, Any], fault: Fault) -> Fault:
    """Puts the name of the uploaded file before the message of a fault about the file. A fault that goes by
    itself, once the file is imported, gets the code `waiting`."""
    place = _FILE_PARAMETER.fullmatch(fault.path)
    if place is None or fault.code != "schema":
        return fault
    params = document["spec"]["elements"][int(place[1])].get("params") or {}
    reference = params.get(place[2])  # the fault may be about a missing reference
    if not isinstance(reference, str) or not reference.startswith("upload:"):
        return fault
    file = DataFile.objects.filter(pk=reference.removeprefix("upload:")).only("name", "state").first()
    if file is None:
        return fault
    code = "waiting" if file.state in (DataFile.State.LOOKING, DataFile.State.IMPORTING) else fault.code
    return fault.model_copy(update={"message": f"{file.name}: {fault.message}", "code": code})


def planned(document: PipelineDocument, deployment: str) -> tuple[GroupSpec, ...]:
    """Returns the groups that nodes run for a valid document. Raises DocumentInvalid."""
    rows = DataFile.objects.filter(state__in=[DataFile.State.IMPORTED, DataFile.State.MODEL])
    files = {
        file.reference: file.table_sha256 or file.sha256 for file in rows.only("id", "sha256", "table_sha256")
    }
    return plan_groups(
        document,
        deployment,
        default_registry(),
        files,
        describe_file=describe_file,
        latency_ms=settings.FOGLINE.latency_ms,
    )


def describe_file(reference: str) -> bytes:
    """Returns the description of the file `upload:<id>` without its bytes: the Facts of a table as JSON, or a
    model's description. Raises FileNotFoundError with the reason if the file is not imported yet."""
    file = DataFile.objects.filter(pk=reference.removeprefix("upload:")).defer("sample").first()
    if file is None or not reference.startswith("upload:"):
        raise FileNotFoundError("this uploaded file no longer exists; upload it again or choose another one")
    if file.state == DataFile.State.MODEL:
        return bytes(file.description)
    if file.state != DataFile.State.IMPORTED:
        raise FileNotFoundError(why_not_imported(file))
    return json.dumps(file.facts).encode()


def why_not_imported(file: DataFile) -> str:
    """Returns why an element cannot read the file's table yet, and what the user can do, as text for
    people."""
    state = DataFile.State
    if file.state == state.LOOKING:
        return "it is being looked at; wait a moment"
    if file.state == state.IMPORTING:
        done = 100 * file.bytes_done // file.bytes_total if file.bytes_total else 0
        return f"it is being imported, {done} % so far; wait until that is done"
    if file.state == state.CANCELLED:
        return "its import was cancelled; import it, or choose another file"
    if file.state == state.FAILED:
        error: FileTrouble = file.error
        return f"it could not be imported: {error['what']} {error['next']}"
    questions = Detection.model_validate(file.detection).questions if file.detection else ()
    if not questions:
        return "somebody has to confirm how it is read; open it and import it"
    more = f" (and {len(questions) - 1} more)" if len(questions) > 1 else ""
    return f"a question about it is open{more}: {questions[0].text} Open it and answer"
