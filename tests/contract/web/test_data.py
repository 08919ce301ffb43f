"""Files and checkpoints: what the web reads from the real chunk service."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.test import AsyncClient

from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.model.ids import Epoch, Seq
from tests.contract.web.conftest import PIPELINE, Caller, Central, report, upload
from tests.contract.web.test_permissions import assert_problem
from tests.unit.operators import onnx_models
from webapp.audit.models import AuditRecord
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.pipelines import files
from webapp.pipelines.checking import describe_file
from webapp.pipelines.models import DataFile
from webapp.placements.models import Deployment, GroupPlacement

Call = Callable[[str | None], Caller]
E = f"/pipelines/{PIPELINE}/elements"
CSV = b"ts,machine,power\n2012-02-22T16:46:00Z,a,1.5\n2012-02-22T16:46:01Z,b,2\n"


def imported(uploaded: Any, *columns: str) -> str:
    """Makes what the import makes of it, whole numbers. Returns its reference."""
    fields = [{"name": name, "type": "integer", "unit": None} for name in columns]
    file = DataFile.objects.get(pk=uploaded.json()["id"])
    file.state, file.table_sha256 = "imported", "ab" * 32
    file.facts = {"columns": fields, "time": False, "rows": 2}
    file.save()
    return file.reference


# --- files --------------------------------------------------------------------------------------
def test_a_file_goes_to_the_central_store_and_is_described(caller: Call, central: Central) -> None:
    response = upload(caller("editor").http, "../../readings.csv", CSV)
    assert response.status_code == 201
    shown = response.json()
    sha256 = hashlib.sha256(CSV).hexdigest()
    assert (shown["name"], shown["size"], shown["sha256"]) == ("readings.csv", len(CSV), sha256)
    assert shown["reference"] == f"upload:{shown['id']}"
    assert (shown["state"], shown["columns"], shown["uses"]) == ("looking", [], [])
    assert central.files.path(sha256).read_bytes() == CSV
    assert [file["id"] for file in caller("viewer").get("/files").json()] == [shown["id"]]
    assert AuditRecord.objects.filter(action="file.upload").count() == 1


def test_a_source_of_an_uploaded_file_knows_its_columns(caller: Call, central: Central) -> None:
    editor = caller("editor")
    reference = imported(upload(editor.http, "numbers.csv", b"number\n1\n2\n"), "number")
    element = {"id": "numbers", "type": "csv-replay", "params": {"path": reference, "rate": 10}}
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "numbers"},
        "spec": {"elements": [element]},
    }
    assert editor.post("/pipelines", {"document": document}).status_code == 201
    found = editor.post("/pipelines/numbers/validate").json()
    assert found["faults"] == []
    assert [field["name"] for field in found["schemas"]["numbers.out"]["fields"]] == ["number"]


def test_a_model_is_described_by_what_goes_in_and_out_and_stored_whole(
    caller: Call, central: Central
) -> None:
    content = onnx_models.linear([[float(n), 1.0] for n in range(20_000)]).SerializeToString()
    assert len(content) > 128 * 1024
    editor = caller("editor")
    shown = upload(editor.http, "Beats.ONNX", content)
    assert shown.status_code == 201
    model = shown.json()
    assert (model["name"], model["size"], model["state"]) == ("Beats.ONNX", len(content), "model")
    assert central.files.path(hashlib.sha256(content).hexdigest()).read_bytes() == content
    assert len(describe_file(model["reference"])) < 200
    for path in ("import", "again"):
        body = {"reading": {"columns": []}}
        assert_problem(editor.post(f"/files/{model['id']}/{path}", body), 409)


def test_a_model_that_does_not_fit_its_columns_is_told_by_its_name(caller: Call, central: Central) -> None:
    editor = caller("editor")
    content = onnx_models.linear([[1.0], [2.0]]).SerializeToString()
    model = upload(editor.http, "sum.onnx", content).json()["reference"]
    table = imported(upload(editor.http, "numbers.csv", b"a,b\n1,2\n"), "a", "b")
    answer = {"id": "asked", "type": "model", "inputs": {"in": "numbers"}}
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "asking"},
        "spec": {
            "elements": [
                {"id": "numbers", "type": "csv-replay", "params": {"path": table, "rate": 10}},
                answer,
            ]
        },
    }

    def found(path: str, *columns: str) -> Any:
        params = {"path": path, "inputs": [{"columns": columns}], "outputs": [{"name": "sum"}]}
        changed = {
            **document,
            "spec": {"elements": [document["spec"]["elements"][0], answer | {"params": params}]},
        }
        return editor.post("/pipelines/asking/validate", {"document": changed}).json()

    assert editor.post("/pipelines", {"document": document}).status_code == 201
    assert found(model, "a", "b")["faults"] == []
    fields = found(model, "a", "b")["schemas"]["asked.out"]["fields"]
    assert [(field["name"], field["type"]) for field in fields][-1] == ("sum", "number")
    (fault,) = found(model, "a")["faults"]
    assert "takes 2 of a row, but it gets 1" in fault["message"]
    (fault,) = found(table, "a", "b")["faults"]
    assert fault["message"] == "numbers.csv: it is not an ONNX model; choose another file"


@pytest.mark.parametrize("content", [CSV, b"\x89PNG\0\0", b"\x08\x08"])
def test_what_is_called_a_model_and_is_none_is_not_stored(
    caller: Call, central: Central, content: bytes
) -> None:
    problem = assert_problem(upload(caller("editor").http, "x.onnx", content), 422)
    assert "not an ONNX model" in problem["detail"]
    assert not DataFile.objects.exists()
    assert not central.files.directory.exists()


def test_a_model_that_is_too_large_is_refused(
    caller: Call, central: Central, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = onnx_models.linear([[1.0]]).SerializeToString()
    monkeypatch.setattr(files, "MODEL_BYTES_MAX", len(content) - 1)
    assert_problem(upload(caller("editor").http, "x.onnx", content), 413)
    assert not DataFile.objects.exists()


def test_who_may_not_upload_stores_nothing(caller: Call, central: Central) -> None:
    for role, status in ((None, 401), ("viewer", 403), ("operator", 403)):
        assert_problem(upload(caller(role).http, "x.csv", CSV), status)
    assert not DataFile.objects.exists()
    assert not central.files.directory.exists()


@pytest.mark.parametrize(("content", "status"), [(b"", 422), (b"x" * 2000, 413)])
def test_a_file_that_is_empty_or_too_large_is_refused(
    caller: Call, central: Central, settings: Any, content: bytes, status: int
) -> None:
    settings.UPLOAD_BYTES_MAX = 1000
    assert_problem(upload(caller("editor").http, "x.csv", content), status)
    assert not DataFile.objects.exists()


def test_without_the_central_store_an_upload_says_who_is_away(caller: Call, settings: Any) -> None:
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"chunk_port": 1})
    problem = assert_problem(upload(caller("editor").http, "x.csv", CSV), 503)
    assert "chunk service" in problem["detail"]
    assert not DataFile.objects.exists()


# --- checkpoints --------------------------------------------------------------------------------
def put_checkpoint(central: Central, group: str, seq: int) -> None:
    manifest = Manifest(
        group=group,
        seq=Seq(seq),
        epoch=Epoch(1),
        version="1",
        node="cloud",
        created_at_ms=int(time.time() * 1000),
        ends={},
        bytes_total=10,
        bytes_new=5,
        files=(),
    )
    central.database.put_manifest(manifest.sealed())


def test_checkpoints_are_those_of_the_central_store_and_one_can_be_restored(
    caller: Call, deployment: Deployment, central: Central
) -> None:
    operator = caller("operator")
    assert operator.get(f"{E}/power/checkpoints").json() == {"checkpoints": []}
    for seq in (5, 9):
        put_checkpoint(central, f"{deployment.pk}.power", seq)
    cloud = Node.objects.get(name="cloud")
    report(deployment, "power", cloud, checkpoint_seq=9, checkpoint_where=["central", "edge-b"])
    found = operator.get(f"{E}/power/checkpoints").json()["checkpoints"]
    assert [(item["seq"], item["node"], item["where"]) for item in found] == [
        (9, "cloud", ["central", "cloud", "edge-b"]),
        (5, "cloud", ["central"]),
    ]
    problem = assert_problem(operator.post(f"{E}/power/restore", {"target": "edge-a", "checkpoint": 7}), 422)
    assert problem["faults"][0]["path"] == "checkpoint"
    assert operator.post(f"{E}/power/restore", {"target": "edge-a", "checkpoint": 5}).status_code == 202
    assert Handover.objects.get().checkpoint_seq == 5


@pytest.mark.parametrize(
    ("reported", "kept"), [(7, 0), (0, 7)], ids=["as its owner says", "its owner was just started"]
)
def test_no_rewind_goes_before_a_restart_without_state(
    caller: Call, deployment: Deployment, central: Central, reported: int, kept: int
) -> None:
    for seq in (5, 7, 9):
        put_checkpoint(central, f"{deployment.pk}.power", seq)
    report(deployment, "power", Node.objects.get(name="cloud"), fresh_from=reported)
    GroupPlacement.objects.filter(deployment=deployment, group="power").update(fresh_from=kept)
    order = {"target": "edge-a", "rewind": True}
    operator = caller("operator")
    problem = assert_problem(operator.post(f"{E}/power/restore", order | {"checkpoint": 5}), 422)
    assert "begun fresh at 7" in problem["faults"][0]["message"]
    assert not Handover.objects.exists()
    assert operator.post(f"{E}/power/restore", order | {"checkpoint": 7}).status_code == 202


# --- outputs ------------------------------------------------------------------------------------
async def test_what_a_sink_wrote_is_streamed_from_its_node_and_only_downloaded(
    users: Any, deployment: Deployment, central: Central
) -> None:
    await Node.objects.filter(name="cloud").aupdate(url=central.url)
    client = AsyncClient()
    await client.aforce_login(users["viewer"])
    response = await client.get(f"/api/v1{E}/archive/output")
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/csv")
    assert response.headers["Content-Disposition"] == f'attachment; filename="{PIPELINE}-archive.csv"'
    assert sum([len(part) async for part in response]) == 400_000


def test_an_output_that_is_not_there_says_why(caller: Call, deployment: Deployment, central: Central) -> None:
    Node.objects.filter(name="cloud").update(url=central.url)
    assert_problem(caller("viewer").get(f"{E}/power/output"), 404)
    Node.objects.filter(name="cloud").update(up=False)
    problem = assert_problem(caller("viewer").get(f"{E}/archive/output"), 503)
    assert "checkpoints" in problem["safe"]
