"""Uploaded files: their states, what a person orders, who uses them, their deletion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.wire import tasks
from tests.contract.web.conftest import PIPELINE, Caller, Central, audited, upload
from tests.contract.web.test_permissions import assert_problem
from webapp.imports.detect import look
from webapp.imports.reading import (
    Choice,
    ColumnReading,
    ColumnReport,
    Detection,
    Question,
    Reading,
    Report,
)
from webapp.pipelines import file_steps
from webapp.pipelines.models import DataFile, Pipeline, PipelineVersion
from webapp.placements.models import Deployment, GroupPlacement

Call = Callable[[str | None], Caller]
Commands = Callable[[], list[tuple[str, list[Any]]]]
CSV = b"power\n1.008\n2.016\n"
READING = Reading(columns=(ColumnReading(source=0, name="power", type="number"),))
ASKED = Question(
    id="thousands",
    text="Is 1.008 about one, or more than a thousand?",
    choices=(
        Choice(title="About one", changes={"thousands": ""}),
        Choice(title="More than a thousand", changes={"thousands": ".", "decimal": ","}),
    ),
)
FACTS = {"columns": [{"name": "power", "type": "number", "unit": None}], "time": False, "rows": 2}


def report(*questions: Question, read: int = 2, dead: int = 0) -> Report:
    column = ColumnReport(name="power", read=read, missing=0, unreadable=2 - read)
    return Report(rows=2, dead=dead, columns=(column,), questions=questions)


def uploaded(caller: Call, **form: Any) -> DataFile:
    response = upload(caller("editor").http, "power.csv", CSV, **form)
    assert response.status_code == 201
    return DataFile.objects.get(pk=response.json()["id"])


def looked(file: DataFile, *questions: Question) -> DataFile:
    assert file_steps.looked(file, Detection(reading=READING, questions=questions), {"lines": []})
    return DataFile.objects.get(pk=file.pk)


def imported(file: DataFile, *questions: Question) -> DataFile:
    assert file_steps.imported(file, report(*questions), FACTS, "ab" * 32, 100)
    return DataFile.objects.get(pk=file.pk)


def shown(caller: Call, file: DataFile) -> dict[str, Any]:
    response = caller("viewer").get(f"/files/{file.pk}")
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def test_a_file_that_can_be_read_in_one_way_is_imported_by_itself(
    caller: Call, central: Central, commands: Commands
) -> None:
    file = uploaded(caller)
    assert commands() == [(tasks.FILES, [])]
    file = looked(file)
    assert file_steps.progressed(file, 9, 18, 1)
    found = shown(caller, file)
    assert (found["state"], found["progress"]) == (
        "importing",
        {"bytes_done": 9, "bytes_total": 18, "rows": 1},
    )
    imported(file)
    found = shown(caller, file)
    assert (found["state"], found["rows"], found["progress"], found["table_bytes"]) == (
        "imported",
        2,
        None,
        100,
    )
    assert found["columns"] == FACTS["columns"]
    assert Reading.model_validate(found["reading"]) == READING
    assert caller("viewer").get(f"/files/{file.pk}/report").json()["columns"][0]["read"] == 2
    assert [each["state"] for each in caller("viewer").get("/files").json()] == ["imported"]


def test_a_question_is_asked_and_its_answer_is_what_is_imported(caller: Call, central: Central) -> None:
    file = looked(uploaded(caller), ASKED)
    assert shown(caller, file)["detection"]["questions"][0]["id"] == "thousands"
    editor = caller("editor")
    for answers in ({}, {"thousands": 2}, {"thousands": -1}, {"another": 0}):
        problem = assert_problem(editor.post(f"/files/{file.pk}/import", {"answers": answers}), 422)
        assert "Is 1.008 about one" in problem["detail"]
    assert shown(caller, file)["state"] == "asks"
    found = editor.post(f"/files/{file.pk}/import", {"answers": {"thousands": 1}}).json()
    assert (found["state"], found["reading"]["decimal"], found["reading"]["thousands"]) == (
        "importing",
        ",",
        ".",
    )
    assert audited("file.import") == 1
    assert_problem(editor.post(f"/files/{file.pk}/import", {}), 409)


def test_a_table_that_is_chosen_asks_its_own_questions(
    caller: Call, central: Central, tmp_path: Path
) -> None:
    time = "2024-05-01 00:00:0"
    tables = {
        "a.csv": "time;power;note\n" + "".join(f"{time}{n};{n}.5;some words\n" for n in range(9)),
        "b.csv": "time;flow\n" + "".join(f"{time}{n};{n + 1}.008\n" for n in range(9)),
    }
    path = tmp_path / "tables.zip"
    with ZipFile(path, "w") as archive:
        for name, text in tables.items():
            archive.writestr(name, text)
    found = look(path, path.name)
    for answers in ({"table": 1}, {"table": 1, "thousands": 0}):
        file = uploaded(caller)
        assert file_steps.looked(file, found.detection, found.head.model_dump(mode="json"))
        order = f"/files/{file.pk}/import"
        asked = caller("editor").post(order, {"answers": answers}).json()
        if "thousands" not in answers:
            assert asked["state"] == "asks"
            assert [each["id"] for each in asked["detection"]["questions"]] == ["thousands"]
            asked = caller("editor").post(order, {"answers": {"thousands": 0}}).json()
        assert asked["state"] == "importing"
        reading = Reading.model_validate(asked["reading"])
        assert [column.name for column in reading.columns] == ["time", "flow"]
        assert (reading.member, reading.decimal) == ("b.csv", ".")


def test_with_confirm_nothing_is_imported_before_a_person_says_so(caller: Call, central: Central) -> None:
    file = looked(uploaded(caller, confirm="true"))
    assert shown(caller, file)["state"] == "asks"
    reading = READING.model_copy(update={"delimiter": ";"}).model_dump(mode="json")
    found = caller("editor").post(f"/files/{file.pk}/import", {"reading": reading}).json()
    assert (found["state"], found["reading"]["delimiter"]) == ("importing", ";")


def test_what_only_the_whole_file_shows_is_asked_once(caller: Call, central: Central) -> None:
    late = Question(
        id="type.power",
        text="From line 6,001 on, power is text. Is it a number?",
        choices=(
            Choice(title="A number", changes={}),
            Choice(title="Text", changes={"columns.0.type": "string"}),
        ),
    )
    file = imported(looked(uploaded(caller)), late)
    found = shown(caller, file)
    assert (found["state"], [each["id"] for each in found["detection"]["questions"]]) == (
        "asks",
        ["type.power"],
    )
    other = imported(looked(uploaded(caller)), late)
    # As it was read: its table is there already.
    editor = caller("editor")
    found = editor.post(f"/files/{file.pk}/import", {"answers": {"type.power": 0}}).json()
    assert (found["state"], found["rows"]) == ("imported", 2)
    # A file that nobody could look at may be asked about after its import, too.
    unseen = uploaded(caller)
    file_steps.failed(unseen, file_steps.NOTHING_READ)
    reading = READING.model_dump(mode="json")
    assert editor.post(f"/files/{unseen.pk}/import", {"reading": reading}).json()["state"] == "importing"
    assert imported(DataFile.objects.get(pk=unseen.pk), late).state == "asks"
    # In another way: the same is not asked again.
    found = editor.post(f"/files/{other.pk}/import", {"answers": {"type.power": 1}}).json()
    assert (found["state"], found["rows"], found["report"]) == ("importing", None, None)
    assert imported(DataFile.objects.get(pk=other.pk), late).state == "imported"


def test_a_file_of_which_nothing_can_be_read_has_failed_and_says_so(caller: Call, central: Central) -> None:
    for nothing in (report(read=0), report(dead=2), Report(rows=0, dead=0, columns=())):
        file = looked(uploaded(caller))
        assert file_steps.imported(file, nothing, FACTS, "ab" * 32, 100)
        found = shown(caller, file)
        assert (found["state"], found["error"]["what"]) == ("failed", "No value of this file could be read.")
        assert found["report"] is not None


def test_what_is_cancelled_stops_and_can_be_ordered_again(
    caller: Call, central: Central, commands: Commands
) -> None:
    editor, file = caller("editor"), uploaded(caller)
    assert editor.post(f"/files/{file.pk}/cancel").json()["state"] == "cancelled"
    assert not file_steps.looked(file, Detection(reading=READING), {})  # it came too late
    assert_problem(editor.post(f"/files/{file.pk}/cancel"), 409)
    found = editor.post(f"/files/{file.pk}/import").json()
    assert found["state"] == "looking"
    file = looked(DataFile.objects.get(pk=file.pk))
    assert editor.post(f"/files/{file.pk}/cancel").json()["state"] == "cancelled"
    assert not file_steps.progressed(file, 1, 2, 3)
    assert not file_steps.imported(file, report(), FACTS, "ab" * 32, 100)
    assert editor.post(f"/files/{file.pk}/import").json()["state"] == "importing"
    assert not file_steps.failed(file, file_steps.NOTHING_READ)
    assert commands() == [(tasks.FILES, [])] * 5


def test_what_has_failed_says_why_and_can_be_tried_again(caller: Call, central: Central) -> None:
    file = uploaded(caller)
    trouble = {"what": "It is a picture.", "where": "byte 1", "next": "Upload a table."}
    assert file_steps.failed(file, trouble)  # type: ignore[arg-type]
    assert shown(caller, file)["error"] == trouble
    found = caller("editor").post(f"/files/{file.pk}/import").json()
    assert (found["state"], found["error"]) == ("looking", None)


def test_another_reading_makes_another_file_and_the_first_one_stays(caller: Call, central: Central) -> None:
    file, editor = imported(looked(uploaded(caller))), caller("editor")
    reading = READING.model_copy(update={"decimal": ","}).model_dump(mode="json")
    response = editor.post(f"/files/{file.pk}/again", {"reading": reading})
    assert response.status_code == 201
    other = response.json()
    assert (other["state"], other["sha256"], other["reading"]["decimal"]) == ("importing", file.sha256, ",")
    assert shown(caller, file)["state"] == "imported"
    assert Reading.model_validate(shown(caller, file)["reading"]) == READING
    assert len(caller("viewer").get("/files").json()) == 2


@pytest.mark.parametrize(
    "reading",
    [
        {"delimiter": ";;"},
        {"columns": [{"source": 0, "name": "a", "type": "number"}] * 2001},
        {"columns": [{"source": 0, "name": "", "type": "number"}]},
        {"nothing": 1},
        {"kind": "program"},
    ],
)
def test_a_reading_that_is_none_is_refused(caller: Call, central: Central, reading: Any) -> None:
    file = looked(uploaded(caller, confirm="true"))
    for body, path in (({"reading": reading}, "again"), ({"reading": reading}, "import")):
        assert_problem(caller("editor").post(f"/files/{file.pk}/{path}", body), 422)
    assert shown(caller, file)["state"] == "asks"


# --- who uses it --------------------------------------------------------------------------------
def with_file(document: dict[str, Any], file: DataFile) -> dict[str, Any]:
    first, *others = document["spec"]["elements"]
    first = first | {"params": {"path": file.reference, "rate": 1}}
    return document | {"spec": document["spec"] | {"elements": [first, *others]}}


def test_a_file_says_who_uses_it(
    caller: Call, central: Central, pipeline: Pipeline, document: dict[str, Any]
) -> None:
    file, editor = uploaded(caller), caller("editor")
    pipeline.draft = with_file(document, file)
    pipeline.save()
    draft = {"pipeline": PIPELINE, "where": "draft", "version": None}
    assert shown(caller, file)["uses"] == [draft]
    assert editor.post(f"/pipelines/{PIPELINE}/versions", {}).status_code == 201
    assert shown(caller, file)["uses"] == [draft, {"pipeline": PIPELINE, "where": "version", "version": 1}]
    other = uploaded(caller)
    assert shown(caller, other)["uses"] == []
    assert [len(each["uses"]) for each in caller("viewer").get("/files").json()] == [0, 2]


def test_what_a_draft_or_a_version_names_is_deleted_only_by_force(
    caller: Call, central: Central, pipeline: Pipeline, document: dict[str, Any]
) -> None:
    file, editor = uploaded(caller), caller("editor")
    pipeline.draft = with_file(document, file)
    pipeline.save()
    editor.post(f"/pipelines/{PIPELINE}/versions", {})
    problem = assert_problem(editor.delete(f"/files/{file.pk}"), 409)
    assert f"the draft of {PIPELINE}, version 1 of {PIPELINE}" in problem["detail"]
    assert DataFile.objects.count() == 1
    assert editor.delete(f"/files/{file.pk}?force=true").status_code == 204
    assert not DataFile.objects.exists()
    assert audited("file.delete") == 1
    faults = editor.post(f"/pipelines/{PIPELINE}/validate", {}).json()["faults"]
    assert "no longer exists" in faults[0]["message"]


def test_what_a_deployment_reads_is_never_deleted(
    caller: Call, central: Central, deployment: Deployment
) -> None:
    file, editor = uploaded(caller), caller("editor")
    placement = GroupPlacement.objects.get(deployment=deployment, group="readings")
    placement.spec["files"] = {file.reference: file.sha256}
    placement.save()
    for force in ("", "?force=true"):
        problem = assert_problem(editor.delete(f"/files/{file.pk}{force}"), 409)
        assert f"the deployment of {PIPELINE}" in problem["detail"]
    assert DataFile.objects.count() == 1


def test_a_file_that_nobody_uses_is_deleted(caller: Call, central: Central, commands: Commands) -> None:
    file, editor = uploaded(caller), caller("editor")
    assert editor.delete(f"/files/{file.pk}").status_code == 204
    assert_problem(editor.delete(f"/files/{file.pk}"), 404)
    assert_problem(caller("viewer").get(f"/files/{file.pk}"), 404)
    assert commands() == [(tasks.FILES, [])] * 2


def test_a_version_keeps_what_it_names_when_the_draft_no_longer_does(
    caller: Call, central: Central, pipeline: Pipeline, document: dict[str, Any]
) -> None:
    file = uploaded(caller)
    pipeline.draft = with_file(document, file)
    pipeline.save()
    caller("editor").post(f"/pipelines/{PIPELINE}/versions", {})
    Pipeline.objects.update(draft=document)
    assert PipelineVersion.objects.get().uploads == [file.pk]
    assert_problem(caller("editor").delete(f"/files/{file.pk}"), 409)


# --- its first rows -----------------------------------------------------------------------------
def test_the_first_rows_are_shown_as_they_lie_and_as_they_are_read(
    caller: Call, central: Central, tmp_path: Path
) -> None:
    path = tmp_path / "n.csv"
    path.write_text("machine;power\na;1,5\nb;full\n")
    found = look(path, "n.csv")
    file = uploaded(caller, confirm="true")
    viewer = caller("viewer")
    assert_problem(viewer.post(f"/files/{file.pk}/preview", {}), 409)
    file_steps.looked(file, found.detection, found.head.model_dump(mode="json"))
    assert_problem(caller(None).post(f"/files/{file.pk}/preview", {}), 401)
    reading = found.detection.reading
    power = reading.columns[1].model_copy(update={"type": FieldType.NUMBER, "decimal": ","})
    reading = reading.model_copy(update={"columns": (reading.columns[0], power)})
    answer = viewer.post(f"/files/{file.pk}/preview", {"reading": reading.model_dump(mode="json")}).json()
    assert answer["detection"] is None
    shown = answer["preview"]
    assert [line["text"] for line in shown["lines"]] == ["machine;power", "a;1,5", "b;full"]
    assert [row["values"] for row in shown["rows"]] == [["a", 1.5], ["b", None]]
    assert (shown["rows"][1]["unreadable"][0]["text"], shown["columns"][1]["unreadable"]) == ("full", 1)
    fixed = viewer.post(f"/files/{file.pk}/preview", {"fixed": {"header_line": None}}).json()
    assert fixed["detection"]["reading"]["header_line"] is None
    assert len(fixed["preview"]["rows"]) == 3
    for wrong in (
        {"nothing": 1},
        {"delimiter": 5},
        {"delimiter": ";;"},
        {"time.columns": 5},
        {"columns.0.type": "text"},
        {"columns.x.type": "string"},
        {"time.columns.0": 1},
        {"x" * 200: 1},
    ):
        assert_problem(viewer.post(f"/files/{file.pk}/preview", {"fixed": wrong}), 422)
    assert_problem(viewer.post(f"/files/{file.pk}/preview", {"reading": {"delimiter": 5}}), 422)
    assert DataFile.objects.get().state == "asks"


# --- before it can be read ----------------------------------------------------------------------
def fault_of(caller: Call, pipeline: Pipeline, document: dict[str, Any], file: DataFile) -> tuple[str, str]:
    changed = with_file(document, file)
    body = {"document": changed}
    faults = caller("editor").post(f"/pipelines/{PIPELINE}/validate", body).json()["faults"]
    (found,) = [fault for fault in faults if fault["path"].endswith("params.path")]
    return found["code"], found["message"]


def test_a_file_that_is_not_imported_is_a_fault_that_says_what_to_do(
    caller: Call, central: Central, pipeline: Pipeline, document: dict[str, Any]
) -> None:
    def words(file: DataFile, expected_code: str = "schema") -> str:
        code, message = fault_of(caller, pipeline, document, file)
        assert code == expected_code
        return message

    file = uploaded(caller)
    assert words(file, "waiting") == "power.csv: it is being looked at; wait a moment"
    asks = looked(uploaded(caller), ASKED)
    assert words(asks) == (
        "power.csv: a question about it is open: Is 1.008 about one, or more than a thousand?"
        " Open it and answer"
    )
    confirm = looked(uploaded(caller, confirm="true"))
    assert "somebody has to confirm how it is read" in words(confirm)
    file = looked(file)
    file_steps.progressed(file, 9, 18, 1)
    assert words(file, "waiting") == "power.csv: it is being imported, 50 % so far; wait until that is done"
    caller("editor").post(f"/files/{file.pk}/cancel")
    assert "its import was cancelled; import it" in words(file)
    failed = looked(uploaded(caller))
    file_steps.imported(failed, report(read=0), FACTS, "ab" * 32, 100)
    assert "could not be imported: No value of this file could be read." in words(failed)


def test_a_file_that_is_not_imported_is_not_deployed(
    caller: Call, central: Central, pipeline: Pipeline, document: dict[str, Any]
) -> None:
    file = looked(uploaded(caller), ASKED)
    pipeline.draft = with_file(document, file)
    pipeline.save()
    problem = assert_problem(caller("editor").post(f"/pipelines/{PIPELINE}/deploy", {}), 422)
    assert any("a question about it is open" in fault["message"] for fault in problem["faults"])
    assert not Deployment.objects.exists()
