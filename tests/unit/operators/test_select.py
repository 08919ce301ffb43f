"""Laws of select."""

from tests.unit.operators.conftest import schema_of

SCHEMA = schema_of(key="k", k="string", a="integer", b="number")


def test_columns_are_kept_in_order_and_renamed(operator, run):
    select = operator("select", {"columns": [{"column": "b", "as": "power"}, {"column": "k"}]})
    output = select.output_schema({"in": SCHEMA})
    assert (output.names, output.key) == (("power", "k"), "k")
    (row,) = run(select, [(0, "x", 1, 2.5)], SCHEMA)
    assert (row["power"], row["k"], "a" in row) == (2.5, "x", False)


def test_the_key_follows_its_column(operator):
    renamed = operator("select", {"columns": [{"column": "k", "as": "machine"}]})
    dropped = operator("select", {"columns": [{"column": "a"}]})
    chosen = operator("select", {"columns": [{"column": "a", "as": "n"}], "key": "n"})
    assert [o.output_schema({"in": SCHEMA}).key for o in (renamed, dropped, chosen)] == ["machine", None, "n"]


def test_unknown_and_doubled_columns_are_told(operator, mismatch):
    columns = [{"column": "zz"}, {"column": "a", "as": "B"}, {"column": "b"}]
    assert mismatch(operator("select", {"columns": columns, "key": "a"}), **{"in": SCHEMA}) == [
        "params.columns[0].column",
        "params.columns",
        "params.key",
    ]
