"""Laws of the keyed aggregate."""

from tests.unit.operators.conftest import at, schema_of

SCHEMA = schema_of(key="k", k="string", n="integer", x="number")
AGGREGATES = [
    {"function": "sum", "column": "n", "as": "total"},
    {"function": "last", "column": "x", "as": "newest"},
    {"function": "count", "as": "rows"},
]


def test_each_key_has_its_own_aggregates_and_its_newest_time(operator, run):
    rows = [(0, "a", 1, 1.0), (1, "b", 2, 2.0), (2, "a", 3, 3.0)]
    found = run(operator("keyed-aggregate", {"keys": ["k"], "aggregates": AGGREGATES}), rows, SCHEMA)
    assert [(r["k"], r["total"], r["newest"], r["rows"], r["_time"]) for r in found] == [
        ("b", 2, 2.0, 1, at(1)),
        ("a", 4, 3.0, 2, at(2)),
    ]


def test_it_updates_rows_and_keeps_the_key(operator):
    keyed = operator("keyed-aggregate", {"keys": ["k"], "aggregates": AGGREGATES})
    assert (keyed.output_mode, keyed.stateful) == ("update", True)
    assert keyed.output_schema({"in": SCHEMA}).key == "k"
    assert keyed.follows({"in": SCHEMA}) == "coalesced"


def test_missing_keys_are_told(operator, mismatch):
    keyed = operator("keyed-aggregate", {"keys": ["kk"], "aggregates": AGGREGATES})
    assert mismatch(keyed, **{"in": SCHEMA}) == ["params.keys[0]"]


def test_a_stream_emits_the_keys_that_changed(operator, stream):
    batches = [[(0, "a", 1, 1.0), (1, "b", 2, 2.0)], [(2, "a", 3, 3.0), (3, "a", 4, None)]]
    found = stream(operator("keyed-aggregate", {"keys": ["k"], "aggregates": AGGREGATES}), SCHEMA, batches)
    assert sorted((row["k"], row["total"], row["newest"], row["rows"]) for row in found) == [
        ("a", 1, 1.0, 1),
        ("a", 8, 3.0, 3),
        ("b", 2, 2.0, 1),
    ]
