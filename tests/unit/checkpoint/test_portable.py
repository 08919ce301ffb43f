"""States as a text: what goes out comes in again, and nothing else is taken."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint import portable
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.checkpoint.portable import NotPortable

END = {"seq": 7, "ends": {"in-0": 3}, "batch_time": 5}


def made(directory: Path) -> Path:
    KeyedState.create(directory / "keyed")
    state = KeyedState(directory / "keyed")
    state.begin()
    state.keep(["ä", "b", None], [b"\x00\xff", b"", b"whole"], [None] * 3)
    state.seal()
    state.commit({"seq": 1, "ends": {}, "batch_time": 0})
    state.close()
    sink = directory / "elements" / "file" / "out.csv"
    sink.parent.mkdir(parents=True)
    sink.write_bytes(bytes(range(256)) * 5000)
    return directory


def text_of(directory: Path) -> bytes:
    return b"".join(portable.write({"pipeline": "p"}, portable.state_lines("g", made(directory))))


def test_a_state_and_the_files_of_sinks_come_in_as_they_went_out(tmp_path: Path) -> None:
    text = io.BytesIO(text_of(tmp_path / "one"))
    assert portable.check(text) == {"format": 1, "pipeline": "p"}
    portable.unpack(text, "g", END, tmp_path / "two")
    state = KeyedState(tmp_path / "two" / "keyed")
    assert list(state.items()) == [("b", b""), ("ä", b"\x00\xff")]
    assert (state.get([None]), state.count, state.end) == ([b"whole"], 2, END)
    state.close()
    path = Path("elements", "file", "out.csv")
    assert (tmp_path / "two" / path).read_bytes() == (tmp_path / "one" / path).read_bytes()


def test_what_another_group_has_kept_stays_out(tmp_path: Path) -> None:
    portable.unpack(io.BytesIO(text_of(tmp_path / "one")), "other", END, tmp_path / "two")
    state = KeyedState(tmp_path / "two" / "keyed")
    assert (list(state.items()), state.end) == ([], END)
    state.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-1], "broken off"),
        (lambda text: text[: text.rindex(b"\n", 0, -1) + 1], "its end is missing"),
        (lambda text: text.replace(b'"key":"b"', b'"key":"c"'), "its hash does not fit"),
        (lambda text: text + b"{}\n", "its hash does not fit"),
        (lambda text: text.replace(b'"format":1', b'"format":2'), "the format 1"),
        (lambda text: b"\x80\x04" + text, "line 1"),
        (lambda text: b"[]\n", "no object"),
        (lambda text: b"", "its end is missing"),
    ],
)
def test_a_text_that_was_changed_or_cut_is_refused(
    tmp_path: Path, change: Callable[[bytes], bytes], said: str
) -> None:
    with pytest.raises(NotPortable, match=said):
        portable.check(io.BytesIO(change(text_of(tmp_path))))


@pytest.mark.parametrize(
    "name", ["../x", "/x", "keyed/CURRENT", "elements/../keyed/x", "elements\\x", 1, f"elements/{'x' * 256}"]
)
def test_no_file_comes_to_lie_anywhere_but_among_those_of_sinks(tmp_path: Path, name: object) -> None:
    text = with_line({"group": "g", "file": name, "piece": ""})
    with pytest.raises(NotPortable, match="line 2"):
        portable.check(text)
    with pytest.raises(NotPortable, match="line 2"):
        portable.unpack(text, "g", END, tmp_path / "state")
    assert {path.name for path in tmp_path.iterdir()} == {"state"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"group": "g", "key": "a", "state": "no"}, "no base64"),
        ({"group": "g", "key": "a", "state": 1}, "no base64"),
        ({"group": "g", "key": "a"}, "no base64"),
        ({"group": "g", "file": "elements/x", "state": ""}, "no base64"),
        ({"group": "g", "key": 1, "state": ""}, "are texts"),
        ({"group": ["g"], "key": "a", "state": ""}, "are texts"),
    ],
)
def test_a_line_that_cannot_be_unpacked_is_refused_with_the_whole_text(line: object, said: str) -> None:
    with pytest.raises(NotPortable, match=f"line 2: .*{said}"):
        portable.check(with_line(line))


def test_a_file_that_is_a_folder_too_is_refused() -> None:
    lines = [{"group": "g", "file": f"elements/{name}", "piece": ""} for name in ("a/b", "c", "a")]
    text = b"".join(portable.write({}, [json.dumps(line).encode() + b"\n" for line in lines]))
    with pytest.raises(NotPortable, match="a file and a folder of one name"):
        portable.check(io.BytesIO(text))


def test_more_files_than_a_group_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "FILES_MAX", 2)
    lines = [{"group": "g", "file": f"elements/{name}", "piece": ""} for name in ("a", "a", "b", "c")]
    text = [json.dumps(line).encode() + b"\n" for line in lines]
    portable.check(io.BytesIO(b"".join(portable.write({}, text[:3]))))
    with pytest.raises(NotPortable, match="more than 2 files"):
        portable.check(io.BytesIO(b"".join(portable.write({}, text))))


def test_the_header_is_no_state_of_a_group(tmp_path: Path) -> None:
    header = {"group": "g", "key": "a", "state": ""}
    portable.unpack(io.BytesIO(b"".join(portable.write(header, []))), "g", END, tmp_path / "state")
    state = KeyedState(tmp_path / "state" / "keyed")
    assert list(state.items()) == []
    state.close()


def with_line(line: object) -> io.BytesIO:
    return io.BytesIO(b"".join(portable.write({}, [json.dumps(line).encode() + b"\n"])))


def test_a_state_that_spark_keeps_is_not_carried(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    with pytest.raises(NotPortable, match="Spark"):
        list(portable.state_lines("g", tmp_path))
