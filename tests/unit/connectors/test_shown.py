"""What a test of a connection shows of the rows that it has found."""

from __future__ import annotations

from pipeline_runtime.connectors.sdk import shown_rows
from pipeline_runtime.model.connectors import PARTS_MAX, ROWS_SHOWN, VALUE_MAX, TestAnswer


def test_rows_are_cut_to_what_people_read() -> None:
    wide = {f"k{number}": number for number in range(PARTS_MAX + 1)}
    deep = {"of": [{"names": ["ä" * 1_000]}] * 1_000}
    rows = shown_rows([wide, {"long " * 100: "x" * 1_000, "deep": deep}, *[{}] * ROWS_SHOWN])
    assert rows[0] == {f"k{number}": number for number in range(PARTS_MAX)}
    assert rows[1] == {
        ("long " * 100)[:VALUE_MAX]: "x" * VALUE_MAX,
        "deep": f'{{"of": [{{"names": ["{"ä" * VALUE_MAX}'[:VALUE_MAX],
    }
    assert rows[2:] == ({},) * (ROWS_SHOWN - 2)


def test_a_broken_text_spoils_no_answer() -> None:
    rows = shown_rows([{"name \ud800": "\udfff", "in": ["\ud800"]}])
    assert rows == ({"name ?": "?", "in": '["?"]'},)
    sent = TestAnswer(works=True, words="", rows=rows).model_dump_json()
    assert TestAnswer.model_validate_json(sent).rows == rows
