"""Tests that the work for a document grows in proportion to its size, and that a too large document costs no
work.

The tests count steps and not seconds: how often the graph's edges are read, and how often costly questions
are asked.
"""

from itertools import pairwise

import pytest

from pipeline_runtime.model import faults as model_faults
from pipeline_runtime.model.document import ELEMENTS_MAX, INPUTS_MAX
from pipeline_runtime.model.faults import FAULTS_MAX
from pipeline_runtime.model.schema import COLUMNS_MAX
from pipeline_runtime.planning import validation
from pipeline_runtime.planning.graph import find_cycles, topological_order
from pipeline_runtime.planning.validation import SCHEMAS_SIZE_MAX, validate


class Counted(dict):
    """Edges that count how often they are read."""

    steps = 0

    def get(self, node, default=()):
        for previous in super().get(node, default):
            self.steps += 1
            yield previous


def chain(n, last_first):
    names = [f"n{i}" for i in range(n)]
    before = Counted({f"n{i}": [f"n{i - 1}"] for i in range(1, n)})
    return (names[::-1] if last_first else names), before


def ring_with_tail(n):
    """A cycle, behind which everything else hangs."""
    names, before = chain(n, last_first=False)
    return names[::-1], Counted({**before, "n0": ["n1"]})


def rings_in_a_row(n):
    names, before = chain(n, last_first=True)
    return names, Counted({**before, **{f"n{i}": [f"n{i + 1}", f"n{i - 1}"] for i in range(2, n - 1, 2)}})


def one_ring(n):
    names, before = chain(n, last_first=False)
    return names, Counted({**before, "n0": [f"n{n - 1}"]})


@pytest.mark.parametrize(
    "graph",
    [lambda n: chain(n, False), lambda n: chain(n, True), ring_with_tail, rings_in_a_row, one_ring],
    ids=["chain", "chain backwards", "ring with a tail", "rings in a row", "one ring"],
)
@pytest.mark.parametrize("walk", [topological_order, find_cycles])
def test_a_graph_is_walked_in_proportion_to_its_edges(graph, walk):
    for size in (500, 4000):
        nodes, before = graph(size)
        edges = sum(len(list(dict.get(before, node, ()))) for node in nodes)
        walk(nodes, before)
        assert before.steps <= 4 * (edges + size)


def test_the_order_is_by_layers_and_in_a_layer_as_given():
    before = {"d": ["b", "c"], "b": ["a"], "c": ["a"], "z": ["a"], "e": ["y"]}
    assert topological_order(["d", "z", "c", "b", "y", "a", "e"], before) == (
        "y",
        "a",
        "z",
        "c",
        "b",
        "e",
        "d",
    )
    assert topological_order(["b", "a", "c"], {"a": ["a"], "b": ["a", "gone"], "c": ["gone"]}) == ("c",)


def test_each_knot_has_one_cycle_and_what_is_between_has_none():
    before = {"b": ["a"], "a": ["b"], "between": ["a"], "c": ["between", "d"], "d": ["c"], "e": ["e", "d"]}
    assert find_cycles(["e", "between", "d", "c", "b", "a"], before) == [
        ("e", "e"),
        ("d", "c", "d"),
        ("b", "a", "b"),
    ]


@pytest.fixture
def asked(monkeypatch):
    """What was asked of the costly parts."""
    calls = {"operators": 0, "hints": 0}

    def counted(module, name, key):
        real = getattr(module, name)

        def wrapper(*args, **kwargs):
            calls[key] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, wrapper)

    counted(validation, "parameter_faults", "operators")
    counted(model_faults, "get_close_matches", "hints")
    return calls


def test_above_the_maximum_nothing_is_looked_at(registry, pipeline, source, asked):
    whole = [source(f"s{number}") for number in range(ELEMENTS_MAX)]
    assert validate(pipeline(*whole), registry).valid
    assert asked["operators"] == ELEMENTS_MAX
    groups = [{"id": f"g{number}", "elements": ["s1"]} for number in range(ELEMENTS_MAX + 1)]
    many_inputs = source(inputs={f"p{number}": "nobody" for number in range(INPUTS_MAX + 1)})
    members = {"id": "g", "elements": ["s1"] * (ELEMENTS_MAX + 1)}
    for document, path in (
        (pipeline(*whole, source("more")), "spec.elements"),
        (pipeline(source(), groups=groups), "spec.groups"),
        (pipeline(many_inputs), "spec.elements[0].inputs"),
        (pipeline(source(), groups=[members]), "spec.groups[0].elements"),
    ):
        asked.update(operators=0, hints=0)
        assert [fault.path for fault in validate(document, registry).faults] == [path]
        assert asked == {"operators": 0, "hints": 0}


def test_a_document_full_of_wrong_names_gets_few_hints(registry, pipeline, keep, asked):
    elements = [
        keep(
            f"wrong-name-{number}", inputs={f"port{port}": f"wrong-nam-{port}" for port in range(INPUTS_MAX)}
        )
        for number in range(100)
    ]
    found = validate(pipeline(*elements), registry).faults
    assert len(found) == FAULTS_MAX + 1
    assert "more mistakes" in found[-1].message
    assert 0 < asked["hints"] <= 50


def test_a_document_full_of_unknown_fields_gets_few_faults(registry, pipeline, asked):
    document = pipeline()
    document["metadata"] |= {f"descriptio{number}": 1 for number in range(50_000)}
    assert len(validate(document, registry).faults) <= FAULTS_MAX + 1
    assert asked["hints"] <= FAULTS_MAX


@pytest.fixture
def topic(source):
    """An element that reads so many columns from a topic."""

    def make(columns):
        read = [{"name": f"column_{number}", "type": "number"} for number in range(columns)]
        return source(type="kafka-in", params={"topic": "wide", "columns": read})

    return make


def filters(keep, count):
    names = ["source", *(f"f{number}" for number in range(count))]
    return [keep(name, before, params={"condition": "column_1 > 0"}) for before, name in pairwise(names)]


def test_a_stream_with_too_many_columns_is_named_where_it_begins(registry, pipeline, topic, keep):
    found = validate(pipeline(topic(40_000), *filters(keep, 100)), registry)
    assert [(f.element, f.path, f.code) for f in found.faults] == [
        ("source", "spec.elements[0].params.columns", "invalid")
    ]
    assert found.schemas == {}


def test_a_column_too_much_is_named_at_the_element_that_adds_it(registry, pipeline, topic, keep):
    more = {"columns": [{"name": "more", "expression": "column_1 + 1"}]}
    derive = {"id": "more", "type": "derive", "params": more, "inputs": {"in": "source"}}
    found = validate(pipeline(topic(COLUMNS_MAX), derive, keep("f", "more")), registry)
    assert [(f.element, f.path, f.code) for f in found.faults] == [
        ("more", "spec.elements[1].params", "too_many_columns")
    ]
    assert "2,001" in found.faults[0].message
    assert list(found.schemas) == ["source.out"]


def test_streams_with_too_many_columns_together_are_named_where_it_is_exceeded(
    registry, pipeline, topic, keep
):
    found = validate(pipeline(topic(COLUMNS_MAX), *filters(keep, 400)), registry)
    [fault] = found.faults
    assert fault.code == "too_many_columns"
    assert fault.element == f"f{len(found.schemas) - 1}"
    assert 20 < len(found.schemas) < 100
    assert len(found.model_dump_json()) < 1.2 * SCHEMAS_SIZE_MAX


def test_the_widest_stream_goes_through_many_elements(registry, pipeline, topic, keep):
    assert validate(pipeline(topic(COLUMNS_MAX), *filters(keep, 20)), registry).valid


def test_no_answer_is_large_however_long_the_names_are(registry, pipeline, keep):
    elements = [keep("x" * 7_000, inputs={"y" * 100: "z" * 300 + str(number)}) for number in range(400)]
    found = validate(pipeline(*elements), registry)
    assert len(found.faults) > 400
    assert len(found.model_dump_json()) < 3_000_000
