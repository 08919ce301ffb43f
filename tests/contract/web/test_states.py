"""A pipeline that comes from another Fogline with its state: taken whole, or refused with what to do."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from pipeline_runtime.checkpoint import portable
from pipeline_runtime.journal.records import Boundary, Commit, encode
from pipeline_runtime.model.ids import Epoch, Seq
from tests.contract.web.conftest import Caller, Central, audited
from tests.contract.web.test_permissions import assert_problem
from webapp.pipelines.models import Pipeline

Call = Callable[[str | None], Caller]

TEXT = """kind: Pipeline
apiVersion: fogline/v1
metadata: {name: carried}
spec: {elements: [{id: numbers, type: generator, params: {rate: 5}}]}
"""
NUMBERS: dict[str, Any] = {"elements": [["numbers", "generator"]], "files": [], "commit": None}
BROKEN = json.loads(encode(Commit(Epoch(1), Boundary(Seq(5), {}, 7)))) | {
    "boundary": {"seq": 2.5, "ends": {}, "batch_time": 7}
}
STATE = {"group": "numbers", "key": None, "state": base64.b64encode(b"\x01").decode()}


def carried(*states: dict[str, Any], **header: Any) -> bytes:
    """A whole text, whose hash fits."""
    header = {"document": TEXT, "groups": {"numbers": NUMBERS}, **header}
    return b"".join(portable.write(header, [json.dumps(state).encode() + b"\n" for state in states]))


def send(caller: Caller, text: bytes, **form: str) -> Any:
    return caller.http.post("/api/v1/states", {"file": SimpleUploadedFile("x.state", text), **form})


def test_it_is_a_draft_with_a_state_that_can_be_given_up(caller: Call, central: Central) -> None:
    answer = send(caller("editor"), carried(STATE), title="Fräsen 2")
    assert answer.status_code == 201, answer.content
    assert (answer.json()["name"], answer.json()["title"]) == ("fraesen-2", "Fräsen 2")
    assert answer.headers["ETag"] == '"1"'
    assert audited("pipeline.import_state") == 1
    for _ in range(2):
        assert caller("editor").delete("/pipelines/fraesen-2/state").status_code == 204
    assert audited("pipeline.drop_state") == 1


def test_a_viewer_imports_nothing(caller: Call) -> None:
    assert_problem(send(caller("viewer"), carried(STATE)), 403)


@pytest.mark.parametrize(
    ("text", "said", "then"),
    [
        (carried(STATE)[:-20], "broken off", "Export it again"),
        (carried({**STATE, "state": "?"}), "line 2: no base64", "Export it again"),
        (carried({**STATE, "key": 1}), "line 2: groups and keys are texts", "Export it again"),
        (carried(document=1), "lacks the document", "Export it again"),
        (carried(groups={"numbers": {}}), "about a group cannot be read", "Export it again"),
        (carried(groups={"numbers": {**NUMBERS, "commit": 1}}), "about a group cannot be read", "Export it"),
        (
            carried(groups={"numbers": {**NUMBERS, "commit": BROKEN}}),
            "about a group cannot be read",
            "Export it",
        ),
        (carried(groups={}), "other groups", "import that"),
        (carried(groups={"numbers": {**NUMBERS, "elements": []}}), "other elements", "import that"),
        (carried(groups={"numbers": {**NUMBERS, "files": ["f"]}}), "another one here", "the same original"),
        (
            carried(document=TEXT.replace("generator", "csv-replay").replace("rate: 5", "path: file:a.csv")),
            "files that are not here, or are here more than once: a.csv",
            "Import these files here first",
        ),
    ],
)
def test_what_cannot_go_on_here_is_refused_with_what_to_do(
    caller: Call, text: bytes, said: str, then: str
) -> None:
    found = assert_problem(send(caller("editor"), text), 422)
    assert said in found["detail"]
    assert then in found["next"]
    assert found["safe"] == "Nothing was imported."
    assert not Pipeline.objects.exists()
