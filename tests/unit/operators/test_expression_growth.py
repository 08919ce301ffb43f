"""No row needs more memory, or more time, than there is: what an expression makes of a text is bounded."""

import re

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pipeline_runtime.operators.expressions import ExpressionInvalid, compile_expression, parse, texts
from pipeline_runtime.operators.expressions.texts import HELD_MAX, TEXT_MAX
from tests.chosen import examples
from tests.oracles.expressions import is_like
from tests.unit.operators.conftest import evaluated, schema_of

SCHEMA = schema_of(s="string", p="string", i="integer")
BIG = "x" * 200_000


def replaced(text, times):
    for _ in range(times):
        text = f"replace({text}, 'a', '{'a' * 50}')"
    return text


def values(text, *rows):
    """The value of an expression for each row (s, p); "failed" where it has none but should have one."""
    return evaluated(compile_expression(text, SCHEMA), SCHEMA, [(n, *row, n) for n, row in enumerate(rows)])


@pytest.mark.parametrize(
    "text",
    [
        "length(" + replaced("'a'", 6) + ")",
        replaced("'a'", 3),
        "upper(" + replaced("substring(s, 1, 40)", 3) + ")",
        "concat(" + ", ".join([f"replace('{'a' * 200}', 'a', '{'b' * 300}')"] * 2) + ")",
        replaced("cast(1 as string)", 2) + " || 'b'",
        "replace('" + "a" * 400 + "', s, '" + "b" * 400 + "')",
        "if(i > 0, " + replaced("'a'", 3) + ", s)",
    ],
)
def test_a_text_of_literals_that_gets_too_long_is_refused_when_it_is_written(text):
    with pytest.raises(ExpressionInvalid, match="at most 100,000 are allowed"):
        compile_expression(text, SCHEMA)


@pytest.mark.parametrize("text", ["1e400", "-1" + "0" * 400 + ".5", "i < 1e999999"])
def test_a_number_that_is_none_is_refused(text):
    with pytest.raises(ExpressionInvalid, match="too large for a number"):
        compile_expression(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("length(" + replaced("s", 6) + ")", ["failed", 2, None, 200_000]),
        ("length(" + replaced("s", 2) + ")", [2500, 2, None, 200_000]),
        ("length(replace(s, '', p))", [1, 2, None, 200_000]),
        ("length(replace(s, 'x', ''))", [1, 2, None, 0]),
        ("length(replace(s, 'x', 'yy'))", [1, 2, None, "failed"]),
        ("length(replace(s, p, 'yy'))", [2, 2, None, 200_000]),
        ("length(s || s)", [2, 4, None, "failed"]),
        ("length(concat(s, '-', p, s))", [4, 6, None, "failed"]),
        ("length(" + " || ".join(["s"] * 70) + ")", [70, 140, None, "failed"]),
        ("length(upper(s))", [1, 2, None, 200_000]),
        ("upper(s) || lower(p)", ["Aa", "BBz", None, "failed"]),
        ("coalesce(s || null, 'none')", ["none"] * 4),
        ("contains(s, p)", [True, False, None, False]),
    ],
)
def test_a_row_whose_text_gets_too_long_has_no_value(text, expected):
    assert values(text, ("a", "a"), ("bb", "z"), (None, "z"), (BIG, "z")) == expected


def test_the_longest_text_is_allowed_and_no_longer_one():
    half = "y" * (TEXT_MAX // 2)
    assert values("length(s || p)", (half, half), (half, half + "y")) == [TEXT_MAX, "failed"]
    assert values("length(replace(s, 'y', p))", (half, "zz"), (half + "y", "zz")) == [TEXT_MAX, "failed"]


def test_letters_that_get_longer_count_as_what_they_become():
    # One letter becomes two, of the second three.
    assert values("upper(s)", ("straße", ""), ("ΐ", "")) == ["STRASSE", "\u0399\u0308\u0301"]
    text = "length(upper(upper(lower(upper(s)))))"
    assert values(text, ("ß" * TEXT_MAX, ""), ("ΐ" * 10, "")) == [2 * TEXT_MAX, 30]


@pytest.mark.parametrize("function", ["contains(s, p)", "length(replace(s, p, ''))", "startswith(s, p)"])
def test_a_search_for_a_long_text_in_a_longer_one_comes_to_an_end(function):
    """Compared place by place, each of these rows would take ten thousand million steps."""
    part = "x" * (len(BIG) // 2) + "y"
    found = values(function, *[(BIG, part)] * 20, (part, part))
    assert found == [200_000 if "replace" in function else False] * 20 + [
        0 if "replace" in function else True
    ]


def test_no_more_rows_are_evaluated_at_once_than_memory_allows():
    long = "y" * TEXT_MAX
    asked = texts.makers(parse("length(s || p) + length(replace(s, 'a', p))"))
    assert len(asked) == 2
    assert texts.rows_at_once(asked, 20) > 10_000
    assert texts.rows_at_once(asked, len(long)) == HELD_MAX // TEXT_MAX // 2
    rows = [(long, ""), ("a", "b")] * (HELD_MAX // TEXT_MAX + 7)
    assert values("length(s || p)", *rows) == [TEXT_MAX, 2] * (HELD_MAX // TEXT_MAX + 7)
    assert values("length(p || s || p)", *rows[:2], (long, "a"), *rows[:2]) == [
        TEXT_MAX,
        3,
        "failed",
        TEXT_MAX,
        3,
    ]


def test_calls_within_calls_keep_their_size_and_work():
    """Cleaning a text takes many replacements."""
    letters = "abcdefghijklmnopqrst"
    text = "s"
    for letter in letters:
        text = f"replace({text}, '{letter}', '{letter.upper()}!')"
    assert values(text, (letters, "")) == ["".join(f"{letter.upper()}!" for letter in letters)]


@pytest.mark.parametrize(
    "text",
    [
        "concat(" * 38 + "s" + ")" * 38,
        "upper(" * 38 + "s" + ")" * 38,
        "(" * 38 + "s" + ")" * 38,
        "replace(" * 38 + "s" + ", p, 'b')" * 38,
        "case when s = '' then 'e' else " * 38 + "s" + " end" * 38,
        "i" + "+i" * 99 + " > 0",
        "not " * 90 + "(i > 0)",
        "i in (" + ",".join(["i"] * 900) + ")",
        "s like '" + "%a" * 900 + "'",
        "s like '" + "_%" * 900 + "'",
    ],
)
def test_the_deepest_and_the_longest_expressions_do_no_harm(text):
    """Refused, or computed."""
    try:
        found = values(text, ("a", "a"), (None, None))
    except ExpressionInvalid:
        return
    assert len(found) == 2


# --- like


LETTERS = st.sampled_from("ab.\\\n*$^(éß😀 \x00\u0301'\"")
PATTERN = st.lists(st.sampled_from("%%%_ab.\n*$^(éß😀\u0301'"), max_size=10).map("".join)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_like_means_what_sql_says(data):
    texts = data.draw(st.lists(st.text(LETTERS, max_size=8), min_size=20, max_size=40))
    pattern = data.draw(PATTERN)
    # Texts that are nearly like it: some letters for each %, one for each _.
    for _ in range(10):
        fill = {"%": st.text(LETTERS, max_size=3), "_": LETTERS}
        texts.append("".join(data.draw(fill[char]) if char in fill else char for char in pattern))
    quoted = pattern.replace("'", "''")
    found = values(f"s like '{quoted}'", *((text, "") for text in texts))
    assert found == [is_like(text, pattern) for text in texts]


@pytest.mark.parametrize("pattern", ["%a" * 10, "%a%" * 20 + "b", "a_%" * 12 + "b", "%" + "_%" * 50 + "b"])
def test_a_pattern_of_many_parts_comes_to_an_end(pattern):
    """Tried every way, one row of these texts would outlast the sun."""
    texts = ["a" * 3000, "a" * 3000 + "b", "b" + "a" * 3000 + "c"]
    assert values(f"s like '{pattern}'", *((text, "") for text in texts)) == [
        bool(re.fullmatch(_python(pattern), text)) for text in texts
    ]


def _python(pattern):
    """Without a choice, too: Python has groups that are not tried again."""
    parts = [part.replace("_", ".") for part in pattern.split("%")]
    middle = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return f"(?s:{parts[0]}{middle}.*?{parts[-1]})"
