"""Values that are no plain data are refused by name, wherever they stand. Plain data is read as in JSON."""

import json

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from pipeline_runtime.model.document import load_text, parse_document
from pipeline_runtime.model.faults import DocumentInvalid, join_path
from pipeline_runtime.model.plain_data import (
    DEPTH_MAX,
    PLACES_MAX,
    NotPlainData,
    data_in,
    object_in,
    read_json,
    unfit,
)
from pipeline_runtime.operators.registry import BUILT_IN
from pipeline_runtime.planning.validation import validate

HOSTILE = {
    "half a surrogate pair": "\ud800",
    "two halves in the wrong order": "a\udc00\ud800",
    "NUL": "a\0b",
    "NaN": float("nan"),
    "infinity": float("inf"),
    "an integer of 65 bits": 1 << 64,
    "an integer of 5,000 digits": 10**5000,
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(codec="utf-8")), children),
    max_leaves=20,
)


def test_what_is_only_looked_at_is_shown_as_data_with_escapes_or_as_its_text():
    assert data_in('{"a\\u0000": ["b\\u0000\\ud800"]}') == {"a\\x00": ["b\\x00\\ud800"]}
    assert data_in('{"a": NaN, "b": "\0"}') == '{"a": NaN, "b": "\\x00"}'
    assert (object_in("[1]"), object_in("{"), object_in('{"a": 1}')) == ({}, {}, {"a": 1})


@settings(deadline=None)
@given(JSON)
def test_plain_data_is_read_as_it_is(value):
    if not unfit(value):  # a name may have a NUL
        assert read_json(json.dumps(value)) == value
        assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        '{"a": -Infinity}',
        "1e999999",
        "[-1e400]",
        "9" * 5000,
        str(1 << 63),
        "[" * 500 + "]" * 500,
        "[" * 100_000,
        '{"a":' * 20_000,
        r'"\ud800"',
        r'{"\udfff": 1}',
        r'"\u0000"',
        b'"\xed\xa0\x80"',  # the bytes of a surrogate
        b"\xff\xfe1\x00",
        b'"\xff"',
        "",
        "{",
    ],
    ids=lambda text: repr(text)[:30],
)
def test_what_is_not_plain_is_refused_in_valid_text(text):
    with pytest.raises(NotPlainData) as refusal:
        read_json(text)
    assert len(str(refusal.value).encode()) < 300
    for place in refusal.value.places:
        json.dumps(place, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "text", [r'{"a\u0000": ["\u0000b\ud800", 1]}', b'{"a\\u0000": ["\\u0000b\\ud800", 1]}']
)
def test_what_is_only_looked_at_has_escapes_for_what_cannot_be_kept(text):
    assert read_json(text, is_kept=False) == {"a\\x00": ["\\x00b\\ud800", 1]}
    with pytest.raises(NotPlainData):
        read_json("[" * 500 + "]" * 500, is_kept=False)


def test_as_deep_as_allowed_goes_and_one_more_does_not():
    nested = "x"
    for _ in range(DEPTH_MAX):
        nested = [nested]
    assert unfit(nested) == []
    assert len(unfit([nested])) == 1


def test_places_are_named_and_not_without_end():
    found = unfit({"b": ["ok", "\ud800"], "a\0": 1})
    assert [place.loc for place in found] == [("a\\x00",), ("b", 1)]
    assert len(unfit(["\0"] * 100_000)) == PLACES_MAX


def leaves(value, path=()):
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, list | tuple):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, (*path, index))]
    return [path]


def replaced(value, path, by):
    if not path:
        return by
    if isinstance(value, dict):
        return {key: replaced(item, path[1:], by) if key == path[0] else item for key, item in value.items()}
    return [replaced(item, path[1:], by) if index == path[0] else item for index, item in enumerate(value)]


@pytest.mark.parametrize("type_", BUILT_IN)
def test_each_parameter_of_each_operator_is_refused_by_its_place(type_, registry, pipeline):
    params = {**registry.get(type_).example, "delimiter": ","}
    for path in leaves(params):
        for hostile in HOSTILE.values():
            element = {"id": "it", "type": type_, "params": replaced(params, path, hostile)}
            (fault,) = validate(pipeline(element), registry).faults
            assert fault.element == "it"
            assert fault.path == join_path("spec", "elements", 0, "params", *path)


@pytest.mark.parametrize(
    "path",
    [
        ("metadata", "name"),
        ("metadata", "description"),
        ("spec", "elements", 0, "id"),
        ("spec", "elements", 0, "type"),
        ("spec", "elements", 0, "title"),
        ("spec", "elements", 0, "node"),
        ("spec", "elements", 0, "ui", "note"),
        ("spec", "elements", 0, "inputs", "in"),
        ("spec", "groups", 0, "id"),
        ("spec", "groups", 0, "elements", 0),
    ],
)
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_each_text_of_a_document_is_refused_in_data_yaml_and_json(path, hostile, registry, pipeline, keep):
    element = keep("a", title="t", node="edge-a", ui={"note": "n"})
    document = pipeline(element, groups=[{"id": "g", "elements": ["a"]}])
    document["metadata"]["description"] = "d"
    document = replaced(document, path, hostile)
    (fault,) = validate(document, registry).faults
    assert fault.path == join_path(*path)
    fault.model_dump_json()
    with pytest.raises(DocumentInvalid) as refusal:
        parse_document(document)
    str(refusal.value).encode()
    if hostile != 10**5000:  # no text has it: Python does not write it
        for text in (yaml.safe_dump(document), json.dumps(document)):
            with pytest.raises(DocumentInvalid):
                parse_document(text)


@pytest.mark.parametrize("text", ["a: " + "9" * 5000, "a: " + "[" * 900 + "]" * 900, "a: 0x" + "f" * 5000])
def test_a_text_that_cannot_be_read_is_a_fault(text):
    with pytest.raises(DocumentInvalid) as refusal:
        parse_document(load_text(text) or {})
    assert refusal.value.faults
