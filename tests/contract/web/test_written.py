"""A pipeline as YAML: exported with the names of its files, and read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline_runtime.model.templates import load_template, template_names
from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.pipelines.models import DataFile, Pipeline

Call = Callable[[str | None], Caller]


def stored(id: str, name: str = "machines.csv") -> DataFile:
    return DataFile.objects.create(id=id, name=name, sha256=id, size=1, state=DataFile.State.IMPORTED)


def draft_with(pipeline: Pipeline, *references: str) -> dict[str, Any]:
    elements = [
        {
            "id": f"readings-{number}",
            "type": "csv-replay",
            "params": {"path": reference, "note": "file:machines.csv"},
        }
        for number, reference in enumerate(references)
    ]
    pipeline.draft = {**pipeline.draft, "spec": {"elements": elements}}
    pipeline.save()
    return pipeline.draft


def test_a_text_that_only_looks_like_a_files_name_stays(caller: Call, pipeline: Pipeline) -> None:
    stored("aaaaaaaa")
    element = {"id": "e", "type": "filter", "params": {"path": "file:machines.csv"}}
    pipeline.draft = {**pipeline.draft, "spec": {"elements": [element, {"id": "f", "type": 1, "params": {}}]}}
    pipeline.save()
    assert read(caller, exported(caller)).json() == {"document": pipeline.draft, "missing": []}


def exported(caller: Call) -> str:
    return str(caller("viewer").get(f"/pipelines/{PIPELINE}/export").content.decode())


def read(caller: Call, text: str, files: dict[str, str] | None = None) -> Any:
    return caller("editor").post("/documents/read", {"text": text, "files": files or {}})


def paths(answer: Any) -> list[str]:
    return [element["params"]["path"] for element in answer["document"]["spec"]["elements"]]


@pytest.mark.parametrize("name", template_names())
def test_what_was_exported_is_read_as_the_same_document(caller: Call, pipeline: Pipeline, name: str) -> None:
    document = load_template(name).to_data()
    document["metadata"]["name"] = PIPELINE
    pipeline.draft = document
    pipeline.save()
    assert read(caller, exported(caller)).json() == {"document": document, "missing": []}


def test_files_and_models_stand_there_by_their_names(caller: Call, pipeline: Pipeline) -> None:
    stored("aaaaaaaa"), stored("bbbbbbbb", "beats.onnx")
    draft = draft_with(pipeline, "upload:aaaaaaaa", "upload:bbbbbbbb", "demo:debs2012", "upload:gone")
    text = exported(caller)
    assert "file:machines.csv\n" in text
    assert "file:beats.onnx\n" in text
    assert "upload:aaaaaaaa" not in text
    assert read(caller, text).json() == {"document": draft, "missing": []}


def test_of_two_files_with_one_name_each_is_found_again(caller: Call, pipeline: Pipeline) -> None:
    stored("aaaaaaaa"), stored("bbbbbbbb")
    draft = draft_with(pipeline, "upload:bbbbbbbb", "upload:aaaaaaaa")
    assert read(caller, exported(caller)).json() == {"document": draft, "missing": []}


def test_on_another_fogline_the_name_counts_and_a_missing_file_is_chosen(
    caller: Call, pipeline: Pipeline
) -> None:
    stored("aaaaaaaa"), stored("bbbbbbbb")
    draft_with(pipeline, "upload:bbbbbbbb", "upload:aaaaaaaa")
    text = exported(caller).replace("#bbbbbbbb", "#elsewhere").replace("#aaaaaaaa", "")
    answer = read(caller, text).json()
    choices = {"upload:aaaaaaaa", "upload:bbbbbbbb"}
    (missing,) = answer["missing"]
    assert (missing["name"], missing["elements"]) == ("machines.csv", ["readings-0", "readings-1"])
    assert set(missing["choices"]) == choices
    assert paths(answer) == ["file:machines.csv#elsewhere", "file:machines.csv"]

    other = stored("cccccccc", "other.csv").reference
    assert paths(read(caller, text, {"machines.csv": other}).json()) == [other, other]

    DataFile.objects.filter(pk="aaaaaaaa").delete()
    assert paths(read(caller, text).json()) == ["upload:bbbbbbbb", "upload:bbbbbbbb"]
    DataFile.objects.filter(name="machines.csv").delete()
    assert read(caller, text).json()["missing"][0]["choices"] == []


GOOD = "kind: Pipeline\nmetadata: {name: a}\nspec: {elements: []}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Pipeline\nkind: Pipeline\n", 'line 2, column 1: "kind" is there twice'),
        ("a: &a [1]\nb: *a\n", "line 2, column 4: aliases are not allowed"),
        ("a:\n  - b\n - c\n", "line 3"),
        (f"{GOOD}---\n{GOOD}", "line 4"),
        (f"a: !!python/object/apply:os.system [ls]\n{GOOD}", "line 1"),
        (f"{GOOD}more: {'[' * 70}{']' * 70}", "more than 64 levels"),
        (f"{GOOD}more: [{'a,' * 60_000}]", "more than 50,000 values"),
        ("x" * 1_000_001, "1000000"),
        ("[]", "a pipeline document is a mapping"),
        ("{}", 'kind: must be "Pipeline"'),
        ("kind: Pipeline\nmetadata: {name: a}\nspec: {elements: [{}]}\n", "spec.elements"),
        (f"{GOOD}more: .nan\n", "more"),
    ],
)
def test_what_cannot_be_read_is_refused_and_says_where(
    caller: Call, pipeline: Pipeline, text: str, said: str
) -> None:
    before = pipeline.draft
    problem = assert_problem(read(caller, text), 422)
    assert said in problem["detail"]
    assert problem["safe"] == "Nothing was changed."
    pipeline.refresh_from_db()
    assert pipeline.draft == before
