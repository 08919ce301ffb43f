"""The harness: what it gives is what a node would, and it finds operators that are not repeatable."""

import pytest

from pipeline_runtime.operators.csv_sink import CsvSink
from pipeline_runtime.operators.sdk import DataFrameOperator, KeyedProcessor, Params
from pipeline_runtime.trial import at, trial
from tests.unit.operators.conftest import schema_of

SCHEMA = schema_of(key="k", k="string", x="number", t="timestamp")
ROWS = [{"_time": at(n / 2), "k": "ab"[n % 2], "x": float(n), "t": at(n)} for n in range(30)]


class Forgetful(KeyedProcessor):
    """Keeps in itself what belongs into the state."""

    type, title, summary, category, icon = "forgetful", "Forgetful", "", "state", "sigma"
    Params = Params

    def __init__(self, params, describe_file=None):
        super().__init__(params, describe_file)
        self.seen = 0

    def key_field(self):
        return None

    def output_schema(self, inputs):
        return inputs["in"]

    def process(self, key, row, state, timers):
        self.seen += 1
        if row["x"] == 7:
            raise ValueError("seven")
        yield {**row, "x": float(self.seen)}


@pytest.mark.parametrize("seed", range(3))
def test_a_processor_gives_the_same_however_it_is_cut_and_moved(operator, seed):
    trend = operator("trend", {"column": "x", "window_s": 5})
    once, cut = (trial(trend, ROWS, SCHEMA, seed=chosen).rows for chosen in (None, seed))
    assert len(once) == 28
    by_key = [[row for row in rows if row["k"] == "a"] for rows in (once, cut)]
    assert by_key[0] == by_key[1]
    assert by_key[0][0]["line_from"] == at(0)


def test_an_operator_that_is_not_repeatable_is_found_out_and_what_it_rejects_is_told():
    once, cut = (trial(Forgetful(Params()), ROWS, SCHEMA, seed=chosen) for chosen in (None, 1))
    assert once.rejected == cut.rejected == ["ValueError: seven"]
    assert once.rows != cut.rows


class Distinct(DataFrameOperator):
    """The first row of each `x`, by a state that Spark keeps."""

    type, title, summary, category, icon = "distinct", "Distinct", "", "state", "sigma"
    Params = Params
    stateful = True

    def output_schema(self, inputs):
        return inputs["in"]

    def transform(self, inputs, ctx):
        return inputs["in"].dropDuplicates(["x"])


def test_a_dataframe_gives_the_same_however_it_is_cut_and_moved():
    rows = [{**row, "x": float(place % 7)} for place, row in enumerate(ROWS[:12])]
    once, cut = (trial(Distinct(Params()), rows, SCHEMA, seed=chosen).rows for chosen in (None, 3))
    assert [row["x"] for row in once] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert once == cut


def test_a_transform_gives_the_same_however_it_is_cut(operator):
    chosen = operator("filter", {"condition": "100 / (x - 3) > 10"})
    once, cut = (trial(chosen, ROWS, SCHEMA, seed=seed) for seed in (None, 2))
    assert [row["x"] for row in once.rows] == [float(n) for n in range(4, 13)]
    assert len(once.rejected) == 1
    assert (once.rows, once.rejected) == (cut.rows, cut.rejected)


def test_windows_are_the_same_however_they_are_cut_and_moved(operator):
    params = {"size_s": 2, "aggregates": [{"function": "sum", "column": "x", "as": "sum"}]}
    window = operator("window-aggregate", params)
    rows = [*ROWS, {"_time": at(99), "k": "a", "x": 0.0, "t": None}]
    once, cut = (trial(window, rows, SCHEMA, seed=chosen).rows for chosen in (None, 11))
    assert [row["sum"] for row in cut][:3] == [6.0, 22.0, 38.0]
    assert once == cut


def test_a_sink_is_not_tried_so(operator):
    with pytest.raises(TypeError, match="csv-sink gives no rows"):
        trial(CsvSink(CsvSink.Params.model_validate(CsvSink.example)), ROWS, SCHEMA)
