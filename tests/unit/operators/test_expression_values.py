"""Tests that expressions have the values that the documentation gives: a plain program computes them, too."""

import math
import random

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.expressions import compile_expression
from pipeline_runtime.operators.expressions.calls import STRICT
from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.expressions.functions import FUNCTIONS
from pipeline_runtime.operators.expressions.types import column_types
from tests.oracles.expressions import CALLS, FailedError, cast, number_text, rounded, value_of
from tests.unit.operators.conftest import arrow_values, at, evaluated, schema_of

SCHEMA = schema_of(
    i="integer", j="integer", x="number", y="number", s="string", r="string", b="boolean", t="timestamp"
)
INTEGERS = [0, 1, -1, 3, 7, -12, 2**62, -(2**63), 2**63 - 1, None]
NUMBERS = [0.0, -0.0, 1.0, -2.5, 1e300, -1e300, 5e-324, 0.1, 2.0**62, None]
TEXTS = ["", "on", "off", "Grün", "a'b", "\U0001f600", " x ", None, "12", "b"]
READABLE = [" -7 ", "+3.5", "1e400", "2024-02-30", "1969-12-31T23:59:59.1234567Z", "yes", "ß"]
EXPRESSIONS = 1000
AT_ONCE = 50


def rows():
    """Enough of them for most pairs of strange values to meet."""
    chance = random.Random(1)
    return [
        (
            second / 3,
            *(
                chance.choice(values)
                for values in (INTEGERS, INTEGERS, NUMBERS, NUMBERS, TEXTS, TEXTS + READABLE)
            ),
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
            lambda g, d: f"cast({g.of('string', d)} as integer)",
            lambda g, d: "cast(t as integer)",
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
            *(
                lambda g, d, f=f: f"{f}({g.of('number', d)})"
                for f in ("exp", "ln", "log10", "log2", "sin", "cos", "tan")
            ),
            lambda g, d: f"pow({g.of('number', d)}, {g.of('integer', d)})",
            lambda g, d: f"cast({g.of('string', d)} as number)",
            lambda g, d: "cast(t as number)",
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
            lambda g, d: f"cast({g.of('number', d)} as string)",
            lambda g, d: "cast(t as string)",
            *(lambda g, d, f=f: f"{f}({g.of('string', d)})" for f in ("lower", "upper", "trim")),
            lambda g, d: f"replace({g.of('string', d)}, {g.of('string', d)}, {g.of('string', d)})",
            lambda g, d: f"substring({g.of('string', d)}, {g.of('integer', d)}, {g.of('integer', d)})",
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
            *(
                lambda g, d, f=f: f"{f}({g.of('string', d)}, {g.of('string', d)})"
                for f in ("contains", "startswith", "endswith")
            ),
            lambda g, d: f"({g.of('string', d)} like '%{g.chance.choice('on_%1')}_%')",
            lambda g, d: f"cast({g.of('number', d)} as boolean)",
            lambda g, d: f"cast({g.of('string', d)} as boolean)",
            lambda g, d: f"(cast({g.of('string', d)} as timestamp) > t)",
            lambda g, d: f"(cast({g.of('number', d)} as timestamp) > t)",
            lambda g, d: "(t > _time)",
        ],
    }


def alike(one, other):
    """To the bit, but for the sign of a zero, and for the last digits of what the C library computes."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return one == other and type(one) is type(other)


def expressions(seeds):
    for seed in seeds:
        grammar = Grammar(seed)
        yield grammar.of(grammar.chance.choice(["integer", "number", "string", "boolean"]), 3)


def meant(node, row, schema=SCHEMA):
    try:
        return value_of(node, row, column_types(schema))
    except FailedError:
        return "failed"


@pytest.mark.parametrize("part", range(EXPRESSIONS // AT_ONCE))
def test_an_expression_gives_what_it_means(part):
    given = rows()
    names = ["_time", *SCHEMA.names]
    for text in expressions(range(part * AT_ONCE, (part + 1) * AT_ONCE)):
        compiled = compile_expression(text, SCHEMA)
        for row, found in zip(given, evaluated(compiled, SCHEMA, given), strict=True):
            data = dict(zip(names, (at(row[0]), *row[1:]), strict=True)) | {"_key": None}
            assert alike(found, meant(compiled.node, data)), (text, data)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.datetimes().map(lambda time: time.replace(tzinfo=at(0).tzinfo))


@given(st.lists(FLOATS | st.integers(-(2**63), 2**63 - 1).map(float)))
def test_the_text_of_a_number_is_the_shortest_that_reads_back_as_it(numbers):
    found = texts(arrow_values(numbers, "number")).to_pylist()
    assert found == [number_text(number) for number in numbers]
    assert found == [text_of(number) for number in numbers]
    assert [float(text) for text in found] == numbers


@given(st.lists(TIMES))
def test_the_text_of_a_time_reads_back_as_it(times):
    found = texts(arrow_values(times, "timestamp")).to_pylist()
    assert found == [cast(time, FieldType.STRING) for time in times]
    assert found == [text_of(time) for time in times]
    schema = schema_of(s="string")
    compiled = compile_expression("cast(s as timestamp)", schema)
    assert evaluated(compiled, schema, [(0, text) for text in found]) == times


def test_the_text_of_other_values_is_as_they_are_written():
    assert [text_of(value) for value in (True, False, 12, "a", None)] == ["true", "false", "12", "a", None]


WRITTEN = st.text("0123456789.+-eE \t_xinfa", max_size=12) | st.floats().map(str) | st.integers().map(str)
MOMENTS = st.from_regex(
    r"[012]\d{3}-[01]\d-[0-3]\d([ T][0-2]\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?\Z"
)


@given(st.lists(WRITTEN | MOMENTS | st.sampled_from(TEXTS + READABLE).filter(bool), min_size=1))
@pytest.mark.parametrize("target", ["integer", "number", "boolean", "timestamp"])
def test_a_text_is_read_as_the_documentation_says(target, values):
    schema = schema_of(s="string")
    compiled = compile_expression(f"cast(s as {target})", schema)
    found = evaluated(compiled, schema, [(0, value) for value in values])
    assert found == [meant(compiled.node, {"s": value}, schema) for value in values]


def test_a_half_is_rounded_away_from_zero_as_it_is_written():
    schema = schema_of(x="number")
    rows = [(0, 1.005), (0, -2.675), (0, 1e300), (0, -0.001)]
    found = evaluated(compile_expression("round(x, 2)", schema), schema, rows)
    assert found == [1.01, -2.68, 1e300, 0.0]


NEAR_HALVES = st.builds(
    lambda whole, digits: (whole + 0.5) / 10**digits, st.integers(-(10**6), 10**6), st.integers(0, 6)
)


@given(st.lists(FLOATS | NEAR_HALVES, min_size=1), st.integers(0, 15))
def test_all_rows_are_rounded_as_they_are_written(numbers, digits):
    schema = schema_of(x="number")
    compiled = compile_expression(f"round(x, {digits})", schema)
    found = evaluated(compiled, schema, [(0, number) for number in [*numbers, None]])
    assert found == [*(rounded(number, digits) for number in numbers), None]


def test_each_function_has_a_meaning_and_is_computed():
    chosen = {"if", "coalesce", "nullif", "greatest", "least"}  # which may be null, or not, as they choose
    assert set(STRICT) == set(CALLS) == set(FUNCTIONS) - chosen


def test_what_is_equal_in_python_is_not_of_one_type():
    schema = schema_of(b="boolean")
    text = (
        "cast(if(b, 1, 0) as string) || cast(if(b, true, false) as string) || cast(if(b, 1.0, 0.0) as string)"
    )
    assert evaluated(compile_expression(text, schema), schema, [(0, True)]) == ["1true1.0"]
