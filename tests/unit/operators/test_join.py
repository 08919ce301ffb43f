"""Laws of the join."""

from tests.unit.operators.conftest import at, schema_of

LEFT = schema_of(key="k", k="string", x="integer")
RIGHT = schema_of(key="id", id="string", x="number", note="string")
PARAMS = {"left_key": "k", "right_key": "id", "within_s": 2}


def test_rows_pair_by_key_within_the_time(operator, run):
    left = [(0, "a", 1), (10, "a", 2), (20, "b", 3), (30, None, 4)]
    right = [
        (2, "a", 0.5, "late"),
        (7.9, "a", 0.6, "too early"),
        (9, "a", 0.7, "early"),
        (20, "c", 1.0, ""),
        (30, None, 1.0, ""),
    ]
    found = run(operator("join", PARAMS), {"left": left, "right": right}, {"left": LEFT, "right": RIGHT})
    assert [(r["k"], r["x"], r["right_x"], r["note"], r["_time"]) for r in found] == [
        ("a", 1, 0.5, "late", at(2)),
        ("a", 2, 0.7, "early", at(10)),
    ]


def test_the_right_key_is_left_out_and_a_taken_name_gets_the_prefix(operator):
    schema = operator("join", PARAMS).output_schema({"left": LEFT, "right": RIGHT})
    assert (schema.names, schema.key) == (("k", "x", "right_x", "note"), "k")


def test_keys_of_different_types_and_missing_ones_are_told(operator, mismatch):
    def paths(**params):
        return mismatch(operator("join", PARAMS | params), left=LEFT, right=RIGHT)

    assert paths(left_key="x") == ["params.right_key"]
    assert paths(left_key="y", right_key="z") == ["params.left_key", "params.right_key"]


def test_a_stream_pairs_rows_of_different_batches_and_forgets_the_old(operator, stream):
    batches = [
        {"left": [(0, "a", 1)], "right": []},
        {"left": [], "right": [(1, "a", 0.5, "next batch")]},
        {"left": [(60, "z", 0)], "right": [(60, "y", 0.0, "")]},
        {"left": [], "right": [(61, "z", 0.1, "")]},
        {"left": [(0.5, "a", 2)], "right": []},  # far behind the watermark: its partners are forgotten
    ]
    found = stream(operator("join", PARAMS), {"left": LEFT, "right": RIGHT}, batches)
    assert [(row["x"], row["note"]) for row in found] == [(1, "next batch"), (0, "")]
