"""Values in texts look as Spark writes them."""

import random

import pyarrow as pa
import pytest

from pipeline_runtime.operators.expressions.javatexts import rounded, text_of
from tests.unit.operators.conftest import at


def numbers():
    chance = random.Random(1)
    yield from [
        0.0,
        -0.0,
        1.0,
        1e7,
        9999999.0,
        0.001,
        0.00099,
        1e-7,
        -12.5,
        1e22,
        123456789.125,
        1.005,
        2.675,
        -0.125,
    ]
    for _ in range(500):
        yield round(chance.uniform(-1000, 1000), chance.choice([0, 1, 2, 3]))
        yield chance.uniform(-1, 1) * 10 ** chance.randint(-8, 12)


def test_numbers_are_written_and_rounded_as_spark_does(spark):
    frame = spark.createDataFrame(pa.table({"x": list(numbers())}))
    found = frame.selectExpr("x", "round(x, 2) AS r", "cast(round(x, 2) as string) AS text").collect()
    assert [(row["x"], rounded(row["x"], 2), text_of(rounded(row["x"], 2))) for row in found] == [
        (row["x"], row["r"], row["text"]) for row in found
    ]


def test_times_and_truths_too(spark):
    values = [at(0), at(0.25), at(1.000001), at(-1e9)]
    frame = spark.createDataFrame(pa.table({"t": pa.array(values, pa.timestamp("us", "UTC"))}))
    found = [row["s"] for row in frame.selectExpr("cast(t as string) AS s").collect()]
    assert [text_of(value) for value in values] == found
    assert [text_of(value) for value in (True, False, 12, "a", None)] == ["true", "false", "12", "a", "null"]


@pytest.mark.parametrize(
    ("value", "digits", "expected"), [(1.005, 2, 1.01), (-2.5, 0, -3.0), (1e300, 2, 1e300)]
)
def test_a_half_is_rounded_away_from_zero(value, digits, expected):
    assert rounded(value, digits) == expected
