"""Laws of the operator that asks a model, and of what is read of a model's file."""

import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pipeline_runtime.operators import model as module, onnx_file
from pipeline_runtime.operators.onnx_file import (
    ModelUnreadable,
    Signature,
    Slot,
    described,
    read_signature,
)
from pipeline_runtime.operators.recording import DATA
from pipeline_runtime.operators.registry import parameter_faults
from pipeline_runtime.trial import at, trial
from tests.unit.operators import onnx_models
from tests.unit.operators.conftest import schema_of, table

SCHEMA = schema_of(key="k", k="string", v0="number", v1="number", v2="integer")
WEIGHTS = [[0.5, -1.0], [2.0, 0.25], [-3.0, 1.0]]
LINEAR = onnx_models.linear(WEIGHTS).SerializeToString()
FED = [{"columns": ["v0", "v1", "v2"]}]
FIRST = [{"name": "y", "index": 0}]
BOTH = [{"name": "first", "index": 0}, {"name": "second", "output": "y", "index": 1}]


@pytest.fixture
def asking(operator, tmp_path):
    """An operator that asks a model, which is an uploaded file: described to whoever checks, whole where it
    runs."""

    def make(content, inputs=FED, outputs=FIRST):
        file = tmp_path / "model.onnx"
        file.write_bytes(content)
        params = {"path": "upload:x", "inputs": inputs, "outputs": outputs}
        return operator("model", params, describe_file=lambda reference: described(content))

    return make


@pytest.fixture
def answers(asking, tmp_path):
    """What it makes of rows (seconds, *columns): dicts, rejected ones too, in the order of time."""

    def of(content, rows, schema=SCHEMA, **params):
        made = asking(content, **params)
        inputs = {"in": schema}
        made = type(made)(made.resolve(inputs))  # a node has no more
        output = made.output_schema(inputs)
        context = module.OperatorContext(
            "element", output, inputs, tmp_path, lambda ref: tmp_path / "model.onnx"
        )
        found = made.arrow(context)({"in": table(schema, rows)})
        return found.sort_by("_time").to_pylist()

    return of


def numpys(values):
    return np.array(values, np.float32) @ np.array(WEIGHTS, np.float32)


def test_a_row_gets_what_the_model_computes_and_keeps_the_rest(answers):
    rows = [(0, "a", 1.5, 2.0, 3), (1, "b", -0.25, 4.0, 0)]
    found = answers(LINEAR, rows, outputs=BOTH)
    for row, (second, key, *values) in zip(found, rows, strict=True):
        first, second_one = numpys(values)
        assert (row["first"], row["second"]) == pytest.approx((first, second_one), rel=1e-6)
        assert (row["k"], row["v0"], row["_time"], row["_reject"]) == (key, values[0], at(second), None)


def test_numbered_columns_are_named_by_the_first_and_their_count(answers, mismatch, asking):
    row = [(0, "a", 1.5, 2.0, 3)]
    counted = answers(LINEAR, row, inputs=[{"columns": ["v0"], "count": 3}])
    assert counted == answers(LINEAR, row)
    (path,) = mismatch(asking(LINEAR, [{"columns": ["v1"], "count": 3}]), **{"in": SCHEMA})
    assert path == "params.inputs[0].columns[0]"


@pytest.mark.parametrize("columns", [["k"], ["v0", "v1"]])
def test_a_count_goes_with_one_numbered_column(operator, columns):
    with pytest.raises(ValueError, match="count needs exactly one column"):
        operator(
            "model",
            {"path": "demo:beats", "inputs": [{"columns": columns, "count": 2}], "outputs": FIRST},
        )


def test_a_model_may_have_an_input_for_each_column(answers):
    found = answers(
        onnx_models.difference().SerializeToString(),
        [(0, "a", 7.0, 2.0, 0)],
        inputs=[{"input": "b", "columns": ["v1"]}, {"input": "a", "columns": ["v0"]}],
        outputs=[{"name": "less", "output": "less"}, {"name": "share", "output": "share"}],
    )
    assert [(row["less"], row["share"]) for row in found] == [(5.0, 3.5)]


def test_whole_numbers_and_further_dimensions_go_in_and_whole_ones_come_out(answers):
    schema = schema_of(a="integer", b="integer", c="integer")
    big = 2**53 + 1  # no float has it
    found = answers(
        onnx_models.largest(3).SerializeToString(),
        [(0, 1, 5, 2), (1, big - 1, 7, big)],
        schema,
        inputs=[{"columns": ["a", "b", "c"]}],
        outputs=[{"name": "place"}],
    )
    assert [row["place"] for row in found] == [1, 2]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((None, 2.0, 3), 'column "v0" has no value'),
        ((1.0, math.nan, 3), 'column "v1" is not a finite number'),
        ((-math.inf, 2.0, 3), 'column "v0" is not a finite number'),
        ((1.0, 1e39, 3), 'column "v1" is too large for the model'),
        ((1.0, 2.0, None), 'column "v2" has no value'),
        ((3e38, 3e38, 0), 'the model\'s output "y" is not a finite number'),
    ],
)
def test_a_row_that_the_model_cannot_take_is_rejected_with_the_reason_and_no_other(answers, values, why):
    good = (1.0, 2.0, 3)
    found = answers(LINEAR, [(0, "a", *good), (1, "a", *values), (2, "a", *good)])
    assert [row["_reject"] for row in found] == [None, why, None]
    assert [row["y"] for row in found] == [numpys(good)[0], None, numpys(good)[0]]


def test_a_whole_number_that_the_model_cannot_hold_is_rejected(answers):
    schema = schema_of(a="integer", b="integer")
    found = answers(
        onnx_models.largest(2, TensorProto.INT32).SerializeToString(),
        [(0, 1, 2), (1, 2**31, 2)],
        schema,
        inputs=[{"columns": ["a", "b"]}],
        outputs=[{"name": "place"}],
    )
    assert [row["_reject"] for row in found] == [None, 'column "a" is too large for the model']


def test_a_row_on_which_the_model_fails_is_rejected(answers):
    node = helper.make_node("Gather", ["table", "x"], ["y"])
    table = {"table": [[10.0], [20.0]]}
    chosen = onnx_models.model([node], {"x": (TensorProto.INT64, [None])}, {"y": (1, [None, 1])}, table)
    found = answers(
        chosen.SerializeToString(),
        [(0, 1), (1, 5)],
        schema_of(a="integer"),
        inputs=[{"columns": ["a"]}],
        outputs=[{"name": "y"}],
    )
    assert [row["y"] for row in found] == [20.0, None]
    assert found[0]["_reject"] is None
    assert "out of data bounds" in found[1]["_reject"]


@pytest.mark.parametrize("seed", range(3))
def test_what_a_row_gets_does_not_depend_on_the_rows_beside_it(operator, seed, tmp_path):
    """Cut at random, and of a model that would look at all rows of a batch."""
    rows = [
        {"_time": at(n), "qrs": 0.2 + n / 40, "ecg": (n % 7) / 3 - 1, "since_last_s": 0.5 + (n % 5) / 10}
        for n in range(40)
    ]
    schema = schema_of(qrs="number", ecg="number", since_last_s="number")
    judged = operator("model", module.Model.example)
    once, cut = (trial(judged, rows, schema, seed=chosen) for chosen in (None, seed))
    assert once == cut
    assert {row["beat"] for row in once.rows} == {"normal", "abnormal"}


def test_each_row_is_asked_by_itself(answers):
    found = answers(
        onnx_models.mean_of_all(3).SerializeToString(), [(n, "a", n * 1.0, 2.0, 3) for n in range(3)]
    )
    assert [row["y"] for row in found] == [0.0, 0.0, 0.0]


def test_a_session_is_opened_once_in_a_process(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(LINEAR)
    opened = module._open(str(file))
    assert module._open(str(file)) is opened
    options = opened.session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    file.write_bytes(onnx_models.linear([[1.0], [2.0], [30.0]]).SerializeToString())
    assert module._open(str(file)) is not opened


def test_what_onnxruntime_does_not_know_stops_the_element_and_says_so(tmp_path):
    file = tmp_path / "model.onnx"
    node = helper.make_node("NoSuchThing", ["x"], ["y"])
    unknown = onnx_models.model([node], {"x": (1, [None, 3])}, {"y": (1, [None, 1])}, {})
    file.write_bytes(unknown.SerializeToString())
    with pytest.raises(ModelUnreadable, match="NoSuchThing"):
        module._open(str(file))


def faults(made, **inputs):
    try:
        made.output_schema(inputs)
    except module.SchemaMismatch as error:
        return [(fault.path, fault.message) for fault in (error, *error.more)]
    return []


TWO = onnx_models.difference().SerializeToString()
WHOLE = onnx_models.largest(2).SerializeToString()


@pytest.mark.parametrize(
    ("content", "inputs", "outputs", "path", "words"),
    [
        (LINEAR, [{"columns": ["v0", "v1"]}], FIRST, "inputs[0].columns", "takes 3 of a row, but it gets 2"),
        (LINEAR, [{"columns": ["v0", "v1", "v9"]}], FIRST, "inputs[0].columns[2]", 'no column "v9"'),
        (LINEAR, [{"columns": ["v0", "v1", "k"]}], FIRST, "inputs[0].columns[2]", "a number is needed"),
        (LINEAR, [{"input": "z", **FED[0]}], FIRST, "inputs[0].input", "no input \"z\""),
        (LINEAR, [*FED, *FED], FIRST, "inputs[1].input", "given twice"),
        (LINEAR, FED, [{"name": "y"}], "outputs[0].index", "has 2 values a row"),
        (LINEAR, FED, [{"name": "y", "index": 2}], "outputs[0].index", "counted from 0"),
        (LINEAR, FED, [{"name": "y", "output": "Y", "index": 0}], "outputs[0].output", 'no output "Y"'),
        (LINEAR, FED, [{"name": "y", "index": 0, "type": "string"}], "outputs[0].type", "is a number"),
        (LINEAR, FED, [{"name": "v0", "index": 0}], "outputs", 'two columns are named "v0"'),
        (TWO, [{"columns": ["v0"]}], [{"name": "y", "output": "less"}], "inputs[0].input", "say which"),
        (TWO, [{"input": "a", "columns": ["v0"]}, {"input": "b", "columns": ["v1"]}], [{"name": "y"}],
         "outputs[0].output", "has 2 outputs: say which"),
        (TWO, [{"input": "a", "columns": ["v0"]}], [{"name": "y", "output": "less"}], "inputs", "needs b"),
        (WHOLE, [{"columns": ["v0", "v2"]}], [{"name": "y"}], "inputs[0].columns", "takes whole ones"),
    ],
)  # fmt: skip
def test_a_mapping_that_does_not_fit_the_model_is_refused(asking, content, inputs, outputs, path, words):
    found = faults(asking(content, inputs, outputs), **{"in": SCHEMA})
    assert [place for place, _ in found] == [f"params.{path}"]
    assert words in found[0][1]


def test_texts_and_what_is_no_tensor_are_refused(asking):
    node = helper.make_node("Identity", ["x"], ["y"])
    texts = onnx_models.model([node], {"x": (TensorProto.STRING, [None, 1])}, {"y": (1, [None, 1])}, {})
    maps = onnx.ModelProto.FromString(LINEAR)
    del maps.graph.output[:]
    kind = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(1, None))
    )
    maps.graph.output.append(helper.make_value_info("y", kind))
    (one,) = faults(
        asking(texts.SerializeToString(), [{"columns": ["v0"]}], [{"name": "y"}]), **{"in": SCHEMA}
    )
    assert "is of string" in one[1]
    (one,) = faults(asking(maps.SerializeToString(), FED, [{"name": "y"}]), **{"in": SCHEMA})
    assert "zipmap=False" in one[1]


def test_a_file_that_is_missing_or_no_model_is_told_at_the_path(operator):
    def gone(reference):
        raise FileNotFoundError("this uploaded file no longer exists")

    for describe, path, words in (
        (gone, "upload:x", "no longer exists"),
        (lambda reference: b"a,b\n1,2\n", "upload:x", "not an ONNX model"),
        (None, "demo:beat", 'did you mean "demo:beats"'),
    ):
        params = {"path": path, "inputs": FED, "outputs": FIRST}
        found = faults(operator("model", params, describe_file=describe), **{"in": SCHEMA})
        assert [place for place, _ in found] == ["params.path"]
        assert words in found[0][1]
    outside = {"path": "../../etc/passwd", "inputs": FED, "outputs": FIRST}
    assert [path for path, *_ in parameter_faults(module.Model, outside)] == ["path"]


def test_a_node_is_told_all_that_follows_from_the_file(asking, operator):
    made = asking(LINEAR)
    told = made.resolve({"in": SCHEMA}).model_dump(mode="json")
    assert told["inputs"][0]["input"] == "x"
    assert (told["outputs"][0]["output"], told["outputs"][0]["type"]) == ("y", "number")
    assert operator("model", told).output_schema({"in": SCHEMA}) == made.output_schema({"in": SCHEMA})
    unknown = operator("model", {"path": "upload:x", "inputs": FED, "outputs": FIRST})
    assert faults(unknown, **{"in": SCHEMA}) == [
        ("params.outputs", "the types of the outputs are not known here; list them")
    ]


# -- what is read of the file ------------------------------------------------------------------------


def test_a_signature_is_the_same_of_a_model_and_of_what_is_described_of_it():
    content = onnx_models.linear([[float(n)] for n in range(5000)]).SerializeToString()
    assert len(described(content)) < 200 < len(content)
    assert read_signature(described(content)) == read_signature(content)
    wanted = Signature((Slot("x", "float", (None, 5000)),), (Slot("y", "float", (None, 1)),))
    assert read_signature(content) == wanted


def test_a_constant_that_old_formats_list_among_the_inputs_is_none():
    listed = onnx.ModelProto.FromString(LINEAR)
    listed.graph.input.append(helper.make_tensor_value_info("weights", 1, [3, 2]))
    assert read_signature(listed.SerializeToString()) == read_signature(LINEAR)
    assert read_signature(described(listed.SerializeToString())) == read_signature(LINEAR)


def outside(place):
    """A tensor whose numbers lie in another file."""
    tensor = helper.make_tensor("weights", 1, [1], [0.0])
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    found = onnx.ModelProto.FromString(LINEAR)
    if place == "constant":
        found.graph.initializer[0].CopyFrom(tensor)
    elif place == "attribute":
        found.graph.node.append(helper.make_node("Constant", [], ["c"], value=tensor))
    elif place == "sparse":
        found.graph.sparse_initializer.add().values.CopyFrom(tensor)
    elif place == "branch":
        inner = helper.make_graph([helper.make_node("Constant", [], ["c"], value=tensor)], "inner", [], [])
        found.graph.node.append(helper.make_node("If", ["x"], ["z"], then_branch=inner, else_branch=inner))
    else:
        node = helper.make_node("Constant", [], ["c"], value=tensor)
        found.functions.add(name="f", domain="d").node.append(node)
    return found.SerializeToString()


@pytest.mark.parametrize("place", ["constant", "attribute", "sparse", "branch", "function"])
def test_a_model_that_reads_other_files_is_refused_before_it_runs(place, tmp_path):
    for reader in (read_signature, described):
        with pytest.raises(ModelUnreadable, match="another file"):
            reader(outside(place))
    file = tmp_path / "model.onnx"
    file.write_bytes(outside(place))
    with pytest.raises(ModelUnreadable, match="another file"):
        module._open(str(file))


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\x89PNG\r\n", b"\x0a" * 100, LINEAR[:-9]])
def test_what_is_no_model_is_refused(content):
    for reader in (read_signature, described):
        with pytest.raises(ModelUnreadable, match="not an ONNX model"):
            reader(content)


def test_a_model_is_no_larger_than_it_may_be(monkeypatch):
    many = onnx.ModelProto.FromString(LINEAR)
    for number in range(onnx_file.SLOTS_MAX + 1):
        many.graph.input.append(helper.make_tensor_value_info(f"x{number}", 1, [None, 1]))
    named = onnx.ModelProto.FromString(LINEAR)
    named.graph.output[0].name = "y" * 70_000
    for content, words in ((many, "inputs or outputs"), (named, "too long")):
        with pytest.raises(ModelUnreadable, match=words):
            described(content.SerializeToString())
    monkeypatch.setattr(onnx_file, "PARTS_MAX", 3)
    with pytest.raises(ModelUnreadable, match="more than 3 parts"):
        read_signature(LINEAR)
    monkeypatch.setattr(onnx_file, "MODEL_BYTES_MAX", len(LINEAR) - 1)
    with pytest.raises(ModelUnreadable, match="larger than"):
        read_signature(LINEAR)


@pytest.mark.parametrize(
    ("shape", "count", "wanted"),
    [
        (None, 3, (1, 3)),
        ((None,), 1, (1,)),
        ((None,), 2, None),
        ((1, 3), 3, (1, 3)),
        ((2, 3), 3, None),
        ((None, None), 3, (1, 3)),
        ((None, 2, None), 6, (1, 2, 3)),
        ((None, 2, None), 5, None),
        ((None, None, None), 6, None),
        ((), 1, None),
    ],
)
def test_columns_fill_the_tensor_of_one_row(shape, count, wanted):
    assert Slot("x", "float", shape).shape_for(count) == wanted


def test_the_shipped_model_is_small_and_what_its_script_says():
    content = (DATA / "beats.onnx").read_bytes()
    assert len(content) < 50 * 1024
    onnx.checker.check_model(onnx.load_from_string(content))
    assert [slot.name for slot in read_signature(content).outputs] == ["label", "probabilities"]
