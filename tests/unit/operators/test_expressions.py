"""Laws of expressions: what is accepted is computed, never raises, and says where it failed."""

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators.expressions import (
    ExpressionInvalid,
    columns_of,
    compile_expression,
    parse,
    with_column,
)
from pipeline_runtime.operators.expressions.types import column_types
from tests.chosen import examples
from tests.oracles.expressions import FailedError, value_of
from tests.unit.operators.conftest import evaluated, schema_of

SCHEMA = schema_of(
    i="integer", x="number", s="string", b="boolean", t="timestamp", **{"odd `name": "integer"}
)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("i + 1", "integer"),
        ("i / 2", "number"),
        ("i % 2 = 0", "boolean"),
        ("i + x", "number"),
        ("s || 'a'", "string"),
        ("case when b then i else x end", "number"),
        ("coalesce(i, 0)", "integer"),
        ("cast(s as integer)", "integer"),
        ("t", "timestamp"),
        ("`odd ``name` * 2", "integer"),
        ("if(b, 'yes', 'no')", "string"),
        ("_key = 'a'", "boolean"),
        ("round(x, 2)", "number"),
    ],
)
def test_an_expression_has_a_type(text, type_):
    assert compile_expression(text, SCHEMA).type == type_


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("xx > 1", 'did you mean "x"'),
        ("s > 1", "cast"),
        ("i and b", "compare it"),
        ("sqr(x)", 'did you mean "sqrt"'),
        ("i = null", "is null"),
        ("sqrt(x, 1)", "sqrt(x)"),
        ("cast(i as decimal)", "not a type"),
        ("i +", "the expression ends"),
        ("i ; drop", "';"),
        ("(select 1)", '")"'),
        ("null", "always null"),
        ("t + 1", '+ needs a number, but "t" is a time'),
        ("round(x, i)", "digits"),
        ("s like x", "pattern"),
        ("99999999999999999999", "too large"),
        ("(" * 50 + "i" + ")" * 50, "nested"),
        ("i + " * 1000 + "i", "longer"),
        ("i+" * 900 + "i", "too many parts"),
        ("Rand()", "another value"),
        ("current_timestamp", "another value"),
        ("unix_timestamp()", "another value"),
    ],
)
def test_a_wrong_expression_says_what_to_do(text, told):
    with pytest.raises(ExpressionInvalid) as caught:
        compile_expression(text, SCHEMA)
    assert told in str(caught.value)


def test_the_columns_of_an_expression_are_known():
    assert columns_of(parse("a + case when b > 1 then c else a end")) == ("a", "b", "c")


ROWS = [
    # i, x, s, b
    (0, 6, 3.0, "12", True),
    (1, 0, 0.0, "no", False),
    (2, None, None, None, None),
    (3, 2**62, 1e300, "", True),
]
ROW_SCHEMA = schema_of(i="integer", x="number", s="string", b="boolean")


@pytest.mark.parametrize(
    ("text", "values", "failed"),
    [
        ("i * 4", [24, 0, None, None], [3]),
        ("x / i", [0.5, None, None, 1e300 / 2**62], [1]),
        ("12 % i", [0, None, None, 12], [1]),
        ("cast(s as integer)", [12, None, None, None], [1, 3]),
        ("x * x", [9.0, 0.0, None, None], [3]),
        ("i = 0 or x / i > 0", [True, True, None, True], []),
        ("i != 0 and x / i > 0", [True, False, None, True], []),
        ("case when i = 0 then -1.0 else x / i end", [0.5, -1.0, None, 1e300 / 2**62], []),
        ("if(i = 0, 0, 12 / i)", [2.0, 0.0, None, 12 / 2**62], []),
        ("coalesce(i, 12 / 0)", [6.0, 0.0, None, float(2**62)], [2]),
        ("ln(x)", [1.0986122886681098, None, None, 690.7755278982137], [1]),
        ("sqrt(i - 7)", [None, None, None, 2147483648.0], [0, 1]),
        ("-i", [-6, 0, None, -(2**62)], []),
        ("abs(0 - i)", [6, 0, None, 2**62], []),
        ("s like '1%'", [True, False, None, False], []),
        ("s in ('no', 'it''s')", [False, True, None, False], []),
        ("i between 1 and 10", [True, False, None, False], []),
        ("not b", [False, True, None, False], []),
        ("i is null or s is not null", [True, True, True, True], []),
        ("concat(s, '\\', \"'\")", ["12\\'", "no\\'", None, "\\'"], []),
        ("substring(s, 1, 1)", ["1", "n", None, ""], []),
        ("length(s) + i", [8, 2, None, 2**62], []),
        ("hour(_time) * 60 + minute(_time)", [720] * 4, []),
        ("round(x / 7, 2)", [0.43, 0.0, None, 1e300 / 7], []),
        ("floor(x) + ceil(x)", [6, 0, None, None], [3]),
        ("floor(i + 9007199254740987)", [2**53 + 1, 2**53 - 5, None, 2**62 + 2**53 - 5], []),
        ("greatest(x, 1) - least(i, 2)", [1.0, 1.0, -1.0, 1e300], []),
        ("pow(x, 2)", [9.0, 0.0, None, None], [3]),
        ("1e3 + .5", [1000.5] * 4, []),
        ("2 - -3 - -(1)", [6] * 4, []),
        ("1 + nullif(i, 0)", [7, None, None, 2**62 + 1], []),
        ("cast(s as number) / i + 1", [3.0, None, None, None], [1, 3]),
        ("not (i / 0 > 1)", [None, None, None, None], [0, 1, 3]),
        ("i in (1, 12 / i)", [False, None, None, False], [1]),
        ("x" + " + 0 * i" * 90, [3.0, 0.0, None, 1e300], []),
        ("nullif(i, 0)", [6, None, None, 2**62], []),
    ],
)
def test_a_value_or_a_failure_never_an_error(text, values, failed):
    found = evaluated(compile_expression(text, ROW_SCHEMA), ROW_SCHEMA, ROWS)
    expected = ["failed" if n in failed else value for n, value in enumerate(values)]
    assert found == [pytest.approx(value) if isinstance(value, float) else value for value in expected]


@given(st.text(alphabet="ix s()+-*/%'\"`.,<>=!&|0123456789eE\n", max_size=60) | st.text(max_size=20))
def test_no_text_breaks_the_parser(text):
    try:
        told = str(compile_expression(text, SCHEMA).node)
    except ExpressionInvalid as error:
        told = str(error)
    assert told


WORDS = [
    "i",
    "x",
    "s",
    "b",
    "and",
    "or",
    "not",
    "case",
    "when",
    "then",
    "else",
    "end",
    "(",
    ")",
    "+",
    "/",
    "is",
    "null",
]
WORDS += ["in", "between", "like", "cast(", "as", "integer", "'a'", "1", ",", "=", "if(", "coalesce("]


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_no_order_of_words_breaks_the_parser(text):
    test_no_text_breaks_the_parser.hypothesis.inner_test(text)


EXTREMES = [
    # seconds, i, x, s, b
    (0, 2**63 - 1, 1.7e308, "1e308", True),
    (1, -(2**63), -1.7e308, "9" * 400, False),
    (2, 0, 5e-324, "294247-01-10T04:00:54Z", True),
    (3, 86_400 * 400 * 10**6, -0.0, "-290308-12-21", False),
]


CASTS = [f"cast({name} as {type_})" for name in "ixs" for type_ in ("integer", "number", "timestamp")]


@pytest.mark.parametrize(
    "texts",
    [
        CASTS,
        [f"cast({cast} as string)" for cast in CASTS],
        [f"{part}(cast(s as timestamp))" for part in ("year", "month", "day", "weekday", "unix_millis")],
        [f"{part}(cast(x as timestamp))" for part in ("year", "hour", "minute", "second", "unix_millis")],
        [f"{name}(x)" for name in ("abs", "sqrt", "exp", "ln", "log10", "log2", "sin", "floor", "ceil")],
        ["abs(i)", "-i", "i + 1", "i - 1", "i * i", "i / i", "i % -1", "x % 1e-300", "pow(x, i)", "x * x"],
        ["round(x, 15)", "round(i, 15)", "substring(s, i, i)", "greatest(i, x)", "x / 5e-324"],
    ],
    ids=lambda texts: texts[0],
)
def test_no_extreme_value_is_an_error(texts):
    """The largest, the smallest and the strangest there are."""
    for text in texts:
        compiled = compile_expression(text, ROW_SCHEMA)
        found = evaluated(compiled, ROW_SCHEMA, EXTREMES)
        names = ("i", "x", "s", "b")
        rows = [dict(zip(names, row[1:], strict=True)) for row in EXTREMES]
        assert found == [pytest.approx(v) if isinstance(v, float) else v for v in meant(compiled, rows)], text


def meant(compiled, rows):
    for row in rows:
        try:
            yield value_of(compiled.node, row, column_types(ROW_SCHEMA))
        except FailedError:
            yield "failed"


@pytest.mark.parametrize("text", ["(" * 36 + "b" + " between b and b)" * 36, "i" + " % 7 + i" * 45 + " > 0"])
def test_the_work_does_not_double_with_each_level(text):
    assert evaluated(compile_expression(text, ROW_SCHEMA), ROW_SCHEMA, ROWS)[0] is True


@pytest.mark.parametrize("new", ["now", "RAND", "uuid", "case", "a b", "a`b", "abs", "x"])
def test_an_expression_reads_another_column_whatever_its_name_is(new):
    changed = with_column("old + abs(`old`) > 1", "old", new)
    assert columns_of(parse(changed)) == (new,)
