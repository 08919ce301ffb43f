"""What Arrow makes of an expression is what Spark makes of it, to the last bit."""

import math
import random

import pytest

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions import compile_expression, parse
from pipeline_runtime.operators.expressions.arrow import Evaluation, can_evaluate
from pipeline_runtime.operators.expressions.types import column_types
from tests.unit.operators.conftest import at, schema_of

SCHEMA = schema_of(
    i="integer", j="integer", x="number", y="number", s="string", r="string", b="boolean", t="timestamp"
)
INTEGERS = [0, 1, -1, 3, 7, -12, 2**62, -(2**63), 2**63 - 1, None]
NUMBERS = [0.0, -0.0, 1.0, -2.5, 1e300, -1e300, 5e-324, 0.1, 2.0**62, None]
TEXTS = ["", "on", "off", "Grün", "a'b", "\U0001f600", " x ", None, "12", "b"]
EXPRESSIONS = 400
AT_ONCE = 50


def rows():
    """Enough of them for most pairs of strange values to meet."""
    chance = random.Random(1)
    return [
        (
            second / 3,
            *(chance.choice(values) for values in (INTEGERS, INTEGERS, NUMBERS, NUMBERS, TEXTS, TEXTS)),
            chance.choice([True, False, None]),
            chance.choice([at(0), at(-1e9), at(1e8 + 0.000001), at(-3e9 - 0.0005), None]),
        )
        for second in range(150)
    ]


class Grammar:
    """Random expressions, of a type."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def of(self, type_, depth):
        if depth == 0 or self.chance.random() < 0.15:
            return self.chance.choice(self.leaves[type_])
        return self.chance.choice(self.makers[type_])(self, depth - 1)

    leaves = {
        "integer": ["i", "j", "0", "1", "-3", "9223372036854775807", "unix_millis(t)"],
        "number": ["x", "y", "0.5", "1e3", "-2.0", "1e-320"],
        "string": ["s", "r", "'on'", "''", "_key"],
        "boolean": ["b", "true", "false", "(s = 'on')", "(x > y)"],
    }
    makers = {
        "integer": [
            *(
                lambda g, d, o=o: f"({g.of('integer', d)} {o} {g.of('integer', d)})"
                for o in ("+", "-", "*", "%")
            ),
            lambda g, d: f"(-{g.of('integer', d)})",
            *(
                lambda g, d, f=f: f"{f}({g.of('integer', d)}, {g.of('integer', d)})"
                for f in ("greatest", "least", "coalesce", "nullif")
            ),
            *(lambda g, d, f=f: f"{f}({g.of('number', d)})" for f in ("floor", "ceil")),
            lambda g, d: f"abs({g.of('integer', d)})",
            lambda g, d: f"length({g.of('string', d)})",
            lambda g, d: f"cast({g.of('number', d)} as integer)",
            lambda g, d: f"cast({g.of('boolean', d)} as integer)",
            lambda g, d: f"if({g.of('boolean', d)}, {g.of('integer', d)}, {g.of('integer', d)})",
            *(
                lambda g, d, f=f: f"{f}(t)"
                for f in ("year", "month", "day", "hour", "minute", "second", "weekday")
            ),
        ],
        "number": [
            *(
                lambda g, d, o=o: f"({g.of('number', d)} {o} {g.of('number', d)})"
                for o in ("+", "-", "*", "/", "%")
            ),
            lambda g, d: f"({g.of('integer', d)} / {g.of('integer', d)})",
            lambda g, d: f"({g.of('integer', d)} * {g.of('number', d)})",
            lambda g, d: f"sqrt({g.of('number', d)})",
            lambda g, d: f"round({g.of('number', d)}, {g.chance.randint(0, 15)})",
            lambda g, d: f"round({g.of('integer', d)})",
            lambda g, d: f"(-{g.of('number', d)})",
            lambda g, d: f"abs({g.of('number', d)})",
            *(
                lambda g, d, f=f: f"{f}({g.of('number', d)}, {g.of('integer', d)})"
                for f in ("greatest", "least", "coalesce", "nullif")
            ),
            lambda g, d: f"cast({g.of('integer', d)} as number)",
            lambda g, d: (
                f"case when {g.of('boolean', d)} then {g.of('number', d)} "
                f"when {g.of('boolean', d)} then {g.of('integer', d)} else null end"
            ),
        ],
        "string": [
            lambda g, d: f"({g.of('string', d)} || {g.of('string', d)})",
            lambda g, d: f"concat({g.of('string', d)}, cast({g.of('integer', d)} as string))",
            lambda g, d: f"cast({g.of('boolean', d)} as string)",
            lambda g, d: f"if({g.of('boolean', d)}, {g.of('string', d)}, {g.of('string', d)})",
            lambda g, d: f"greatest({g.of('string', d)}, {g.of('string', d)})",
            lambda g, d: f"coalesce({g.of('string', d)}, null, {g.of('string', d)})",
        ],
        "boolean": [
            *(
                lambda g, d, o=o, t=t: f"({g.of(t, d)} {o} {g.of(t, d)})"
                for o in ("=", "!=", "<", "<=", ">", ">=")
                for t in ("integer", "number", "string")
            ),
            lambda g, d: f"({g.of('integer', d)} < {g.of('number', d)})",
            lambda g, d: f"({g.of('boolean', d)} = {g.of('boolean', d)})",
            *(lambda g, d, o=o: f"({g.of('boolean', d)} {o} {g.of('boolean', d)})" for o in ("and", "or")),
            lambda g, d: f"(not {g.of('boolean', d)})",
            lambda g, d: f"({g.of('number', d)} is null)",
            lambda g, d: f"({g.of('string', d)} is not null)",
            lambda g, d: f"({g.of('integer', d)} in ({g.of('integer', d)}, 3, null))",
            lambda g, d: f"({g.of('number', d)} between {g.of('number', d)} and {g.of('integer', d)})",
            lambda g, d: f"({g.of('string', d)} not in ('on', {g.of('string', d)}))",
            lambda g, d: f"contains({g.of('string', d)}, 'n')",
            lambda g, d: f"startswith({g.of('string', d)}, 'o')",
            lambda g, d: f"endswith({g.of('string', d)}, '')",
            lambda g, d: f"cast({g.of('number', d)} as boolean)",
            lambda g, d: "(t > _time)",
        ],
    }


def alike(one, other):
    """To the bit, but for the sign of a zero and which NaN it is."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other and type(one) is type(other)


def expressions():
    for seed in range(EXPRESSIONS):
        grammar = Grammar(seed)
        yield grammar.of(grammar.chance.choice(["integer", "number", "string", "boolean"]), 3)


@pytest.mark.parametrize("part", range(EXPRESSIONS // AT_ONCE))
def test_arrow_and_spark_give_the_same(frame, part):
    texts = list(expressions())[part * AT_ONCE : (part + 1) * AT_ONCE]
    compiled = [compile_expression(text, SCHEMA) for text in texts]
    given = frame(SCHEMA, rows())
    columns = [f"{one.sql} AS v{n}" for n, one in enumerate(compiled)]
    columns += [f"{one.failed_sql or 'false'} AS f{n}" for n, one in enumerate(compiled)]
    expected = given.selectExpr("_offset", *columns).toArrow().sort_by("_offset")
    table = given.toArrow().sort_by("_offset")
    types = column_types(SCHEMA)
    for n, (text, one) in enumerate(zip(texts, compiled, strict=True)):
        assert can_evaluate(one.node, types), text
        evaluation = Evaluation(table, types)
        values = evaluation.column(one.node, one.type).to_pylist()
        failed = [False] * table.num_rows
        if one.failed is not None:
            assert can_evaluate(one.failed, types), text
            failed = evaluation.column(one.failed, FieldType.BOOLEAN).to_pylist()
        assert failed == expected[f"f{n}"].to_pylist(), text
        for row, (value, spark_value) in enumerate(zip(values, expected[f"v{n}"].to_pylist(), strict=True)):
            # What a failed row holds is nobody's business.
            assert failed[row] or alike(value, spark_value), (text, table.slice(row, 1).to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        "s like 'a%'",
        "ln(x)",
        "cast(s as number)",
        "cast(x as string)",
        "contains(s, r)",
        "lower(s)",
    ],
)
def test_what_the_two_make_differently_is_left_to_spark(text):
    assert not can_evaluate(parse(text), column_types(SCHEMA))
