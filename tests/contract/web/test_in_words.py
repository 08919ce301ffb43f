"""Tests what the web returns for the overview and the audit log, and its messages about faulty files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import redis

from pipeline_runtime.wire import keys
from webapp.audit.models import AuditRecord
from webapp.monitoring.throughput import SPAN_MS, STEP_MS
from webapp.pipelines.models import DataFile
from webapp.placements.models import Deployment

Call = Callable[[str | None], Any]


def test_the_audit_log_is_folded_and_filtered_by_pipeline_person_and_kind(caller: Call) -> None:
    def done(who: str, action: str, target: str) -> None:
        AuditRecord.objects.create(username=who, action=action, target=target)

    for _ in range(5):
        done("ada", "pipeline.save", "p")
    done("bob", "element.pause", "p/x")
    done("bob", "node.drain", "p")  # a node may be called as a pipeline is
    done("ada", "pipeline.save", "p-2")
    operator = caller("operator")

    def told(query: str) -> list[tuple[str, str, int]]:
        found = operator.get(f"/audit?{query}").json()
        return [(entry["user"], entry["action"], entry["times"]) for entry in found]

    save, pause, drain = ("ada", "pipeline.save", 5), ("bob", "element.pause", 1), ("bob", "node.drain", 1)
    assert told("fold=true&pipeline=p") == [pause, save]
    assert told("fold=true&user=bob") == [drain, pause]
    assert told("fold=true&kind=node") == [drain]
    assert told("pipeline=p&limit=3") == [pause, *[("ada", "pipeline.save", 1)] * 2]
    assert {"ada", "bob"} <= set(operator.get("/audit/people").json())


def test_the_overview_has_what_the_sources_gave_lately(
    caller: Call, deployment: Deployment, real_redis: redis.Redis
) -> None:
    now_ms = int(time.time() * 1000)
    point = {"t": now_ms - STEP_MS, "rows_out_per_s": 25.0}
    real_redis.rpush(keys.element_history(deployment.pk, "readings"), json.dumps(point))
    real_redis.rpush(keys.element_history(deployment.pk, "power"), json.dumps(point))  # no source
    found = caller("viewer").get("/overview").json()["throughput"]["machine-power"]
    assert (found["sources"], len(found["rows_per_s"])) == (["readings"], SPAN_MS // STEP_MS)
    assert [rate for rate in found["rows_per_s"] if rate is not None] == [25.0]


def only_fault(editor: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Returns the fault of a pipeline of one CSV replay with these parameters."""
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "p"},
        "spec": {"elements": [{"id": "in", "type": "csv-replay", "params": params}]},
    }
    editor.post("/pipelines", {"name": "p", "document": document})
    (fault,) = editor.post("/pipelines/p/validate", {"document": document}).json()["faults"]
    return dict(fault)


def test_what_is_wrong_with_a_file_begins_with_its_name_not_with_its_reference(caller: Call) -> None:
    file = DataFile.objects.create(name="numbers.csv", sha256="0" * 64, size=1)
    fault = only_fault(caller("editor"), {"path": file.reference, "rate": 1})
    assert (fault["path"], fault["place"]) == ("spec.elements[0].params.path", "File")
    assert fault["message"].startswith("numbers.csv: ")
    assert file.reference not in fault["message"]


def test_a_fault_at_a_parameter_that_is_not_given_is_told_at_its_place(caller: Call) -> None:
    facts = {"columns": [{"name": "n", "type": "integer", "unit": None}], "time": False, "rows": 1}
    file = DataFile.objects.create(name="numbers.csv", sha256="0" * 64, size=4, state="imported", facts=facts)
    fault = only_fault(caller("editor"), {"path": file.reference})
    assert (fault["path"], fault["place"]) == ("spec.elements[0].params.rate", "Playback pace")
