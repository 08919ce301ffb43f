"""Laws of words: messages for people have titles, and paths are for machines only."""

import re

import pytest

from pipeline_runtime.model.names import (
    element_name,
    group_name,
    listed_and,
    parameter_title,
    place_words,
    sentence,
)
from pipeline_runtime.operators.registry import BUILT_IN
from pipeline_runtime.planning.validation import validate


@pytest.mark.parametrize(
    ("id", "type_", "title", "name"),
    [
        ("power", "filter", "Power of machines", "Power of machines"),
        ("power", "filter", None, "power"),
        ("power", "filter", "power", "power"),
        ("filter", "filter", " ", "Filter"),
        ("filter-2", "filter", None, "Filter 2"),
        ("filter-old", "filter", None, "filter-old"),
    ],
)
def test_an_element_is_called_by_its_title_else_its_operators_else_its_id(id, type_, title, name):
    assert element_name(id, type_, title, "Filter") == name


def test_a_group_is_called_by_its_title_else_by_its_elements():
    assert group_name("Edge part", ["a", "b"]) == "Edge part"
    assert group_name(None, ["a", "b"]) == "a and b"
    assert group_name(None, ["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert [listed_and([]), listed_and(["a"])] == ["", "a"]


def test_a_parameter_is_called_as_in_its_form():
    assert parameter_title("time_column", "Time Column") == "Time column"
    assert parameter_title("size_s") == "Size, in seconds"
    assert parameter_title("path", "File") == "File"


def test_a_place_is_called_as_in_the_form_and_what_has_no_form_by_its_path(registry):
    schema = registry.describe("window-aggregate")["params_schema"]
    element = "spec.elements[3]"
    assert place_words(f"{element}.params.aggregates[0].column", ["in"], schema) == "Aggregate 1, column"
    assert place_words(f"{element}.params.size_s", ["in"], schema) == "Length of a window, in seconds"
    assert place_words(f"{element}.params.keys[1]", ["in"], schema) == "Column 2"
    assert place_words(f"{element}.inputs.in", ["in"], schema) == "Reads from"
    assert place_words(f"{element}.inputs.left", ["left", "right"]) == "Input left"
    assert place_words(f"{element}.node") == "Node"
    assert place_words("metadata.name") == "Name"
    assert place_words("spec.groups[0].elements") == "Groups"
    assert place_words("something.else") == "something.else"


def test_a_fault_has_the_title_the_place_and_types_in_words(registry, pipeline, source):
    chart = {
        "id": "live-chart",
        "type": "live-chart",
        "title": "Power",
        "params": {"columns": ["value", "key"]},
        "inputs": {"in": "source"},
    }
    (fault,) = validate(pipeline(source(), chart), registry).faults
    assert (fault.element, fault.path) == ("live-chart", "spec.elements[1].params.columns[1]")
    assert (fault.title, fault.place) == ("Power", "Column 2")
    assert fault.message == '"key" is text, but a number is needed'
    assert fault.words == 'Power: Column 2: "key" is text, but a number is needed'


@pytest.mark.parametrize(
    ("type_", "params", "told"),
    [
        ("generator", {"rate": -1}, "Rows per second: has to be more than 0 (it is -1)"),
        ("generator", {"rate": "fast"}, 'Rows per second: has to be a number (it is "fast")'),
        (
            "generator",
            {"rate": "1,500"},
            'Rows per second: has to be a number: "1,500" can be read in two ways, write 1.500 or 1500',
        ),
        ("generator", {"rows": 1.5}, "Rows before it ends: has to be a whole number (it is 1.5)"),
        ("generator", {"keys": None}, "Different keys: has to be a whole number (it is empty)"),
        (
            "generator",
            {"catch_up": "perhaps"},
            "After a stop, send what was due in the meantime at once: has to be true or false"
            ' (it is "perhaps")',
        ),
        ("generator", {"speed": 1}, 'speed: unknown field "speed"; did you mean "seed"?'),
        ("generator", {"signals": [{"shape": "sine"}]}, "Signal 1, name: this is required"),
        ("csv-replay", {"path": ""}, 'File: choose a file or upload one (it is "")'),
        (
            "kafka-in",
            {"topic": "a b", "columns": [{"name": "x"}]},
            "Topic: a topic name consists of at most 249 letters, digits, dots, underscores and hyphens"
            ' (it is "a b")',
        ),
        ("kafka-in", {"topic": "a", "columns": []}, "Columns: name at least one column"),
        ("opcua-in", {"connection": "c", "columns": []}, "Columns: needs at least one entry"),
        (
            "kafka-in",
            {"topic": "a", "columns": [{"name": "x"}], "start": "now"},
            "Start: has to be 'earliest' or 'latest' (it is \"now\")",
        ),
    ],
)
def test_what_is_wrong_with_a_parameter_is_told_in_words(registry, pipeline, type_, params, told):
    result = validate(pipeline({"id": "x", "type": type_, "title": "It", "params": params}), registry)
    assert [fault.words for fault in result.faults] == [f"It: {told}"]


@pytest.mark.parametrize(
    ("text", "made"),
    [("disk full", "disk full."), ("Why?", "Why?"), ("It ended. ", "It ended."), ("Stop!", "Stop!")],
)
def test_a_sentence_ends_once(text: str, made: str) -> None:
    assert sentence(text) == made


def test_a_message_calls_parameters_as_the_form_does(registry, pipeline, source):
    band = {
        "id": "w",
        "type": "frequency-filter",
        "inputs": {"in": "source"},
        "params": {
            "column": "value",
            "kind": "band-pass",
            "sample_rate_hz": 100,
            "low_cutoff_hz": 20,
            "high_cutoff_hz": 10,
        },
    }
    (fault,) = validate(pipeline(source(), band), registry).faults
    assert fault.message == '"Remove below, in Hz" must be less than "Remove above, in Hz"'


def test_no_title_or_help_of_a_form_has_a_name_for_machines(registry):
    def texts(schema):
        for part in (schema, *schema.get("$defs", {}).values()):
            for name, field in part.get("properties", {}).items():
                yield parameter_title(name, field.get("title"))
                yield field.get("description", "")

    for type_ in BUILT_IN:
        found = registry.describe(type_)
        for text in (found["title"], found["summary"], *texts(found["params_schema"])):
            assert not re.search(r"[a-z]_[a-z]", text.replace("epoch_", "")), (type_, text)


def test_a_unit_of_a_form_is_a_word_and_not_a_letter_behind_a_comma(registry):
    for type_ in BUILT_IN:
        schema = registry.describe(type_)["params_schema"]
        for part in (schema, *schema.get("$defs", {}).values()):
            for name, field in part.get("properties", {}).items():
                title = parameter_title(name, field.get("title"))
                assert not re.search(r", (s|ms|us|min|h|hz|bytes|%)$", title), (type_, title)
                # a number with a unit in its name says the unit
                if name.endswith("_s") and field.get("type") == "number":
                    assert "econds" in title, (type_, title)
