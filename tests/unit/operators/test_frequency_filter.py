"""Laws of the frequency filter."""

import cmath
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy.signal import butter, lfilter, lfilter_zi

from pipeline_runtime.operators.frequency_filter import FrequencyFilter, FrequencyFilterParams, sections
from pipeline_runtime.trial import processed, trial
from tests.unit.operators.conftest import at, dicts, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", x="number")
LOW = {"column": "x", "kind": "low-pass", "sample_rate_hz": 100, "high_cutoff_hz": 5}
HIGH = {"column": "x", "kind": "high-pass", "sample_rate_hz": 100, "low_cutoff_hz": 5}
BAND = {"column": "x", "kind": "band-pass", "sample_rate_hz": 100, "low_cutoff_hz": 2, "high_cutoff_hz": 20}


def filtered(params, values):
    rows = [(index / params["sample_rate_hz"], {"k": "a", "x": value}) for index, value in enumerate(values)]
    return [row["filtered"] for row in keyed_output(FrequencyFilter(FrequencyFilterParams(**params)), rows)]


def gain(params, hz):
    """Returns the gain for a tone by the transfer function, instead of by running the filter."""
    z = cmath.exp(-2j * math.pi * hz / params["sample_rate_hz"])
    found = 1.0
    for s in sections(FrequencyFilterParams(**params)):
        found *= abs((s.b0 + s.b1 * z + s.b2 * z * z) / (1 + s.a1 * z + s.a2 * z * z))
    return found


@pytest.mark.parametrize(
    ("params", "hz", "expected"),
    [
        (LOW, 5, math.sqrt(0.5)),
        (HIGH, 5, math.sqrt(0.5)),
        (LOW, 0.1, 1.0),
        (HIGH, 40, 1.0),
        (LOW, 45, 0.0),
        (HIGH, 0.05, 0.0),
        (BAND, 6.3, 1.0),
    ],
)
def test_tones_pass_as_a_butterworth_filter_lets_them(params, hz, expected):
    assert gain(params, hz) == pytest.approx(expected, abs=0.02)
    tone = [math.sin(2 * math.pi * hz * n / 100) for n in range(6000)]
    last = filtered(params, tone)[4000:]
    effective = math.sqrt(2 * sum(value * value for value in last) / len(last))
    assert effective == pytest.approx(gain(params, hz), abs=0.02)


def test_what_is_constant_passes_a_low_filter_from_the_first_row_on_and_no_other():
    assert filtered(LOW, [7.0] * 20) == pytest.approx([7.0] * 20)
    assert filtered(HIGH, [7.0] * 20) == pytest.approx([0.0] * 20)
    assert filtered(LOW, [7.0, None, 7.0]) == [pytest.approx(7.0), None, pytest.approx(7.0)]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.floats(-5, 5))
def test_it_is_linear(values, factor):
    for params in (LOW, HIGH, BAND):
        once, scaled = filtered(params, values), filtered(params, [factor * value for value in values])
        assert scaled == pytest.approx([factor * value for value in once], abs=1e-6)


def expected(params, values):
    """The plain oracle of one key: SciPy's Butterworth filters, over all values at once.

    A Butterworth filter of SciPy's order 2 has one second-order section. A band-pass is two filters.
    """
    found = np.array(values)
    for kind, cutoff in (("high", "low_cutoff_hz"), ("low", "high_cutoff_hz")):
        if cutoff in params and len(found):
            b, a = butter(2, params[cutoff], kind, fs=params["sample_rate_hz"])
            found, _ = lfilter(b, a, found, zi=lfilter_zi(b, a) * found[0])
    return found.tolist()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.floats(-1e3, 1e3))), max_size=60),
    st.sampled_from([LOW, HIGH, BAND]),
    st.lists(st.integers(0, 60), max_size=4),
)
def test_it_equals_a_plain_oracle(given_rows, params, cuts):
    rows = dicts([(n / 100, key, value) for n, (key, value) in enumerate(given_rows)], SCHEMA)
    ends = sorted({min(cut, len(rows)) for cut in cuts} | {0, len(rows)})
    batches = [{"in": rows[first:end]} for first, end in pairwise(ends)]
    element = FrequencyFilter(FrequencyFilterParams(**params, key="k"))
    found = processed(element, batches, {"in": SCHEMA}).rows
    for key in "abc":
        mine = [row for row in found if row["k"] == key]
        assert [row["x"] for row in mine] == [value for k, value in given_rows if k == key]
        assert all((row["x"] is None) == (row["filtered"] is None) for row in mine)
        filtered_ = [row["filtered"] for row in mine if row["x"] is not None]
        assert filtered_ == pytest.approx(
            expected(params, [row["x"] for row in mine if row["x"] is not None]), abs=1e-6
        )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (LOW | {"high_cutoff_hz": None}, "high_cutoff_hz is needed"),
        (LOW | {"high_cutoff_hz": 50}, "less than half"),
        (LOW | {"high_cutoff_hz": 1e-5}, "a millionth"),
        (BAND | {"low_cutoff_hz": 30, "high_cutoff_hz": 20}, "less than high_cutoff_hz"),
    ],
)
def test_corners_that_make_no_filter_are_refused(operator, wrong, says):
    with pytest.raises(ValidationError, match=says):
        operator("frequency-filter", wrong)


def test_a_value_that_is_too_large_is_rejected_and_the_next_ones_are_not():
    values = [1.1e308, 1.7e308, 1.7e308, 5.0, 6.0]
    schema = schema_of(x="number")
    found = trial(
        FrequencyFilter(FrequencyFilterParams(**LOW)),
        [{"_time": at(n), "x": v} for n, v in enumerate(values)],
        schema,
    )
    assert [row["x"] for row in found.rows][-2:] == [5.0, 6.0]
    assert found.rejected


def test_what_does_not_fit_is_told(operator, mismatch):
    assert operator("frequency-filter", LOW).output_schema({"in": SCHEMA}).names == ("k", "x", "filtered")
    assert mismatch(operator("frequency-filter", LOW | {"column": "k"}), **{"in": SCHEMA}) == [
        "params.column"
    ]
