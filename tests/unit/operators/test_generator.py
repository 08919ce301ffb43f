"""Laws of the generator."""

import itertools

import pytest

SIGNALS = [
    {"name": "wave", "shape": "sine", "low": -1, "high": 1, "period_s": 10},
    {"name": "walk", "shape": "walk", "low": 10, "high": 20},
    {"name": "noise", "shape": "uniform", "high": 5},
    {"name": "count", "shape": "counter"},
]


@pytest.fixture
def generate(operator, context):
    def make(**params):
        source = operator("generator", {"signals": SIGNALS, **params})
        return source.open(context(source))

    return make


def rows(reader, first, last):
    positions = ({"row": row, "t0": 0, "shifts": []} for row in (first, last))
    return [row for batch in reader.read(*positions) for row in batch.to_pylist()]


def test_a_row_depends_on_the_seed_and_its_number_alone(generate):
    whole = rows(generate(keys=3), 0, 500)
    assert rows(generate(keys=3), 0, 123) + rows(generate(keys=3), 123, 500) == whole
    assert rows(generate(keys=3, seed=2), 0, 500) != whole


def test_values_stay_in_their_range_and_walks_are_smooth(generate):
    found = rows(generate(rate=100), 0, 20_000)
    for name, low, high in (("wave", -1, 1), ("walk", 10, 20), ("noise", 0, 5)):
        values = [row[name] for row in found]
        assert low <= min(values) < max(values) <= high
        assert max(values) - min(values) > (high - low) / 4
    steps = [abs(b["walk"] - a["walk"]) for a, b in itertools.pairwise(found)]
    assert max(steps) < 1


def test_keys_take_turns_and_each_counts_for_itself(generate):
    found = rows(generate(keys=2, key_prefix="m"), 0, 4)
    assert [(row["key"], row["n"], row["count"]) for row in found] == [
        ("m0", 0, 0),
        ("m1", 1, 0),
        ("m0", 2, 1),
        ("m1", 3, 1),
    ]


def test_rows_come_evenly_and_end_when_told(generate):
    reader = generate(rate=4, rows=6)
    start = reader.initial(1000)
    assert [reader.advance(start, now, 100)["row"] for now in (1000, 1499, 1500, 99_999)] == [1, 2, 3, 6]
    end = reader.advance(start, 99_999, 100)
    assert (reader.ended(start), reader.ended(end), reader.rows_between(start, end)) == (False, True, 6)
    assert [row["_time"].timestamp() for row in rows(reader, 0, 6)] == [0, 0.25, 0.5, 0.75, 1, 1.25]


def test_two_signals_of_one_name_are_told(operator, mismatch):
    assert mismatch(operator("generator", {"signals": [{"name": "n"}]})) == ["params.signals"]


@pytest.mark.parametrize(("before", "after"), [(20, 50), (50, 20), (0.5, 1000)])
def test_another_rate_goes_on_where_it_stands(generate, before, after):
    slow, fast = generate(rate=before), generate(rate=after)
    begun = {"row": 0, "t0": 1_000_000, "shifts": []}
    now_ms = 1_000_000 + 10_000
    stands = slow.advance(begun, now_ms, 100_000)
    due_ms = slow.due_ms(stands, stands)
    assert fast.due_ms(stands, stands) == pytest.approx(due_ms, abs=1), "the next row is due when it was"
    later = fast.advance(stands, int(due_ms) + 10_000, 100_000)
    assert later["row"] - stands["row"] == pytest.approx(10 * after, abs=1.1)
    [*_, last_before] = [row for batch in slow.read(begun, stands) for row in batch.to_pylist()]
    made = [row for batch in fast.read(stands, later) for row in batch.to_pylist()]
    gap_s = (made[0]["_time"] - last_before["_time"]).total_seconds()
    assert gap_s == pytest.approx(1 / before, abs=0.002), "its time goes on as well"
    assert fast.advance(later, int(due_ms) + 20_000, 100_000)["shifts"] == later["shifts"]
