"""Laws of reading a pipeline document."""

import json

import pytest
import yaml

from pipeline_runtime.model.document import parse_document, parse_reference, to_yaml
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.templates import load_template, template_names

TEXT = """
apiVersion: fogline/v1
kind: Pipeline
metadata: {name: machine-power}
spec:
  elements:
    - id: readings
      type: csv-replay
      params: {path: "demo:debs2012", rate: 100, started: 2012-02-22}
      node: edge-a
      ui: {x: 1, y: 2}
    - {id: power, type: window-aggregate, inputs: {in: readings}}
  groups:
    - {id: edge-part, elements: [readings, power]}
"""


def faults(document):
    with pytest.raises(DocumentInvalid) as caught:
        parse_document(document)
    return {(fault.element, fault.path, fault.code) for fault in caught.value.faults}


def test_yaml_json_and_data_give_the_same_document():
    from_yaml = parse_document(TEXT)
    from_json = parse_document(json.dumps(from_yaml.to_data()))
    data = from_yaml.to_data()
    assert from_yaml == from_json == parse_document(data) == parse_document(to_yaml(data))


def test_a_date_in_yaml_stays_the_text_that_was_written():
    assert parse_document(TEXT).element("readings").params["started"] == "2012-02-22"


def test_every_structural_fault_is_told_at_once():
    document = yaml.safe_load(TEXT.replace("2012-02-22", "x"))
    document["specs"] = {}
    document["metadata"]["name"] = "Machine Power"
    document["spec"]["elements"][0]["parms"] = {}
    document["spec"]["elements"][0]["node"] = 3
    del document["spec"]["elements"][1]["type"]
    document["spec"]["groups"][0]["elements"] = []
    assert faults(document) == {
        (None, "specs", "unknown_field"),
        (None, "metadata.name", "invalid"),
        ("readings", "spec.elements[0].parms", "unknown_field"),
        ("readings", "spec.elements[0].node", "invalid"),
        ("power", "spec.elements[1].type", "missing"),
        (None, "spec.groups[0].elements", "invalid"),
    }


def test_an_unknown_field_names_the_near_one():
    with pytest.raises(DocumentInvalid, match='did you mean "params"'):
        parse_document(TEXT.replace("params", "parms"))


@pytest.mark.parametrize("name", ["", "A", "a_b", "a.b", "-a", "a-", "ä", "a" * 41, "a b"])
def test_a_name_that_is_no_part_of_a_topic_name_is_refused(name):
    data = {"metadata": {"name": name}}
    assert faults(data) == {(None, "metadata.name", "invalid")}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1", "line"),
        ("metadata: {name: a}\nmetadata: {name: b}", '"metadata" is there twice'),
        ("a: &x [1]\nb: *x", "aliases are not allowed"),
        ('{"metadata": ', "line"),
        ("[" * 5000, "deep"),
        ("x" * 1_000_001, "larger"),
    ],
)
def test_text_that_is_no_document_says_where(text, told):
    with pytest.raises(DocumentInvalid) as caught:
        parse_document(text)
    assert told in str(caught.value)


def test_what_json_cannot_say_is_refused():
    data = {
        "metadata": {"name": "a"},
        "spec": {"elements": [{"id": "e", "type": "t", "params": {"x": float("nan")}}]},
    }
    assert faults(data) == {("e", "spec.elements[0].params.x", "invalid")}


@pytest.mark.parametrize("document", ["", "3", "[]", [], None])
def test_what_is_no_mapping_is_refused(document):
    assert faults(document) == {(None, "", "invalid")}


def test_a_reference_without_a_port_means_out():
    assert parse_reference("a") == ("a", "out") == parse_reference("a.out")
    assert parse_reference("a.left") == ("a", "left")


def test_templates_are_valid_documents():
    assert {load_template(name).metadata.name for name in template_names()} == set(template_names())
    with pytest.raises(LookupError, match="machine-power"):
        load_template("nothing")
