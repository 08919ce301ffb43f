"""Laws of the operator that puts a signal's last values beside each other."""

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators.last_values import LastValues, LastValuesParams
from pipeline_runtime.operators.sdk import OperatorContext
from pipeline_runtime.trial import at, trial
from tests.unit.operators import onnx_models
from tests.unit.operators.conftest import keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", x="number")


def rows(values):
    return [(second, {"k": "a", "x": value}) for second, value in enumerate(values)]


@given(st.lists(st.none() | st.integers(-9, 9).map(float), max_size=40), st.integers(2, 6), st.integers(1, 7))
def test_each_so_many_th_row_has_the_values_up_to_its_own(values, size, every):
    chosen = LastValues(LastValuesParams(column="x", size=size, every=every))
    found = keyed_output(chosen, rows(values))
    known = [(second, value) for second, value in enumerate(values) if value is not None]
    wanted = [
        (known[last][0], [value for _, value in known[last + 1 - size : last + 1]])
        for last in range(len(known))
        if last + 1 >= size and (last + 1) % every == 0
    ]
    assert [(row["_time"], [row[f"v{place}"] for place in range(size)]) for row in found] == [
        (at(second), window) for second, window in wanted
    ]
    assert all(row["x"] == row[f"v{size - 1}"] for row in found)


def test_what_does_not_fit_is_told(operator, mismatch):
    chosen = operator("last-values", {"column": "x", "size": 3, "name": "w"})
    assert chosen.output_schema({"in": SCHEMA}).names == ("k", "x", "w0", "w1", "w2")
    taken = schema_of(x="number", v1="string")
    assert mismatch(operator("last-values", {"column": "x", "size": 2}), **{"in": taken}) == ["params.name"]
    assert mismatch(operator("last-values", {"column": "k", "size": 2}), **{"in": SCHEMA}) == [
        "params.column"
    ]


@pytest.mark.parametrize("seed", range(2))
def test_a_model_gets_a_window_of_a_signal_however_it_is_cut(operator, seed, tmp_path):
    """Moving average and slope, as a model of two outputs a row."""
    size = 4
    signal = [
        {"_time": at(n), "k": "ab"[n % 2], "x": float(n * n % 11)} for n in range(40)
    ]  # fmt: skip
    windows = operator("last-values", {"column": "x", "size": size})
    schema = windows.output_schema({"in": SCHEMA})
    file = tmp_path / "model.onnx"
    file.write_bytes(
        onnx_models.linear([[0.25, -1.0], [0.25, 0.0], [0.25, 0.0], [0.25, 1.0]]).SerializeToString()
    )
    asked = operator(
        "model",
        {
            "path": f"upload:{file.name}",
            "inputs": [{"columns": ["v0"], "count": size}],
            "outputs": [{"name": "average", "index": 0}, {"name": "rise", "index": 1}],
        },
        describe_file=lambda reference: file.read_bytes(),
    )
    found = trial(windows, signal, SCHEMA, seed=seed).rows
    assert asked.output_schema({"in": schema}).names[-2:] == ("average", "rise")
    by_key = {key: [row["x"] for row in signal if row["k"] == key] for key in "ab"}
    wanted = {
        (key, place): (sum(values[place - 3 : place + 1]) / 4, values[place] - values[place - 3])
        for key, values in by_key.items()
        for place in range(3, len(values))
    }
    answers = answered(asked, found, schema, file)
    assert len(answers) == len(wanted)
    for key in "ab":
        mine = [(row["average"], row["rise"]) for row in answers if row["k"] == key]
        assert mine == [wanted[key, place] for place in range(3, 3 + len(mine))]


def answered(asked, rows, schema, file):
    """Rows with the model's answers."""
    inputs = {"in": schema}
    node = OperatorContext("model", asked.output_schema(inputs), inputs, file.parent, lambda reference: file)
    return asked.arrow(node)({"in": pa.Table.from_pylist(rows)}).to_pylist()
