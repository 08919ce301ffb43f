"""A file of several pipelines: exported, read pipeline by pipeline, imported as a whole, undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.audit.models import AuditRecord
from webapp.pipelines.models import DataFile, Pipeline

Call = Callable[[str | None], Caller]


def text_of(name: str, *more: str, path: str = "") -> str:
    params = f"params: {{path: '{path}'}}, " if path else ""
    return "\n".join(
        [
            f"kind: Pipeline\nmetadata: {{name: {name}, title: Line {name}}}",
            f"spec: {{elements: [{{{params}id: e, type: csv-replay}}]}}",
            *more,
            "",
        ]
    )


def read(caller: Call, text: str, **more: Any) -> list[dict[str, Any]]:
    answer = caller("editor").post("/documents/read-several", {"text": text, **more})
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()
    return found


def bring(caller: Call, text: str, *pipelines: dict[str, Any], **more: Any) -> Any:
    return caller("editor").post("/documents/import", {"text": text, "pipelines": list(pipelines), **more})


def names() -> set[str]:
    return set(Pipeline.objects.values_list("name", flat=True))


def test_several_pipelines_go_out_and_come_back_as_the_same_documents(
    caller: Call, pipeline: Pipeline
) -> None:
    editor = caller("editor")
    editor.post("/pipelines", {"title": "Fräsen --- Überwachung"})
    other = Pipeline.objects.exclude(pk=pipeline.pk).get()
    answer = editor.get(f"/documents?pipeline={other.name}&pipeline={PIPELINE}&pipeline={PIPELINE}")
    text = answer.content.decode()
    drafts = {each.name: each.draft for each in (other, pipeline)}
    assert [(each["name"], each["there"]["same"], each["missing"]) for each in read(caller, text)] == [
        (other.name, True, []),
        (PIPELINE, True, []),
    ]
    Pipeline.objects.all().delete()
    assert bring(caller, text, {"at": 0}, {"at": 1}).status_code == 201
    assert {each.name: each.draft for each in Pipeline.objects.all()} == drafts
    assert AuditRecord.objects.filter(action="pipeline.import").count() == 2


def test_each_pipeline_that_cannot_be_imported_says_why_and_where(caller: Call, pipeline: Pipeline) -> None:
    DataFile.objects.create(id="aaaaaaaa", name="here.csv", sha256="a", size=1)
    text = "---\n".join(
        [
            "# what the line has\n",
            text_of("good", path="file:here.csv"),
            text_of("broken", "more: ["),
            text_of("Not A Name"),
            text_of("good"),
            text_of("lacks", path="file:gone.csv"),
            text_of(PIPELINE),
        ]
    )
    good, broken, unnamed, twice, lacks, there = read(caller, text)
    assert (good["refused"], good["missing"], good["there"]) == (None, [], None)
    assert good["line"] == 3
    assert "line 11" in broken["refused"]
    assert "not a name" in unnamed["refused"]
    assert twice["refused"] == 'The file has another pipeline "good", which begins at line 3.'
    assert lacks["missing"] == [{"name": "gone.csv", "elements": ["e"], "choices": []}]
    assert read(caller, text, files={"gone.csv": "upload:aaaaaaaa"})[4]["missing"] == []
    assert there["there"]["revision"] == pipeline.draft_revision
    assert not there["there"]["same"]
    for at in (1, 2, 3, 4, 9):
        problem = assert_problem(bring(caller, text, {"at": 0}, {"at": at}), 422)
        assert problem["safe"] == "Nothing was changed."
    assert names() == {PIPELINE}


def test_a_name_that_is_there_is_renamed_or_replaced_and_never_lost(caller: Call, pipeline: Pipeline) -> None:
    text = text_of(PIPELINE) + "---\n" + text_of("new")
    before, revision = pipeline.draft, pipeline.draft_revision
    assert_problem(bring(caller, text, {"at": 1}, {"at": 0}), 409)
    assert_problem(bring(caller, text, {"at": 1}, {"at": 0, "replaces": revision + 1}), 409)
    assert names() == {PIPELINE}

    title = read(caller, text)[0]["free_title"]
    assert bring(caller, text, {"at": 0, "title": title}).status_code == 201
    assert names() == {PIPELINE, "line-machine-power"}
    assert read(caller, text)[0]["free_title"] == f"Line {PIPELINE} 2"

    made = bring(caller, text, {"at": 0, "replaces": revision}, {"at": 1}).json()
    pipeline.refresh_from_db()
    assert pipeline.draft["metadata"]["title"] == f"Line {PIPELINE}"
    assert pipeline.versions.get(number=made[0]["version"]).document == before

    changed = [{**made[0], "revision": revision}, made[1]]
    assert_problem(caller("editor").post("/documents/undo-import", {"pipelines": changed}), 409)
    assert "new" in names()
    assert caller("editor").post("/documents/undo-import", {"pipelines": made}).status_code == 204
    pipeline.refresh_from_db()
    assert pipeline.draft == before
    assert names() == {PIPELINE, "line-machine-power"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "none"),
        ("--- \n" * 3 + "# nothing\n...\n", "none"),
        ("a: 1\n---\n" * 101, "101"),
    ],
)
def test_a_file_without_a_pipeline_or_with_too_many_is_refused(caller: Call, text: str, said: str) -> None:
    problem = assert_problem(caller("editor").post("/documents/read-several", {"text": text}), 422)
    assert said in problem["detail"]


def test_the_values_of_all_documents_together_have_a_bound(caller: Call) -> None:
    many = text_of("a", f"more: [{'a,' * 45_000}]")
    found = read(caller, many + "---\n" + many.replace("a", "b", 1) + "---\n" + text_of("c"))
    assert [bool(each["refused"]) for each in found] == [False, True, True]
    assert "more than 50,000 values" in found[1]["refused"]
