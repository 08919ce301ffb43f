"""Rows that wait, in slots."""

from pipeline_runtime.operators.waiting import Waiting


def waiting(slots=(), kept=None):
    return Waiting(1000, slots, lambda begins: [kept[begin] for begin in begins])


def test_a_row_from_before_a_time_at_which_rows_were_dropped_may_still_wait():
    found = waiting()
    found.insert(100, 0)
    found.drop_before(130)
    found.insert(120, 1)
    assert found.take(0, 5000) == [(120, 1)]
    assert (found.count, found.kept(), found.changed()) == (0, [], {})


def test_only_slots_that_a_batch_touches_are_read_and_written():
    kept = {0: [[100, "a"], [200, "b"]], 2000: [[2500, "c"]]}
    found = waiting([[0, 2, None], [1000, 1, None], [2000, 1, None]], kept)
    found.insert(2100, 7)
    found.drop_before(1000)
    assert found.changed() == {0: None, 2000: [(2100, 7), (2500, [2500, "c"])]}
    assert found.kept() == [[1000, 1, None], [2000, 2, None]]
    assert found.count == 3


def test_rows_of_one_time_stay_in_the_order_in_which_they_came():
    found = waiting([[0, 1, None]], {0: [[5, "a"]]})
    for place in range(3):
        found.insert(5, place)
    assert found.take(5, 5) == [(5, [5, "a"]), (5, 0), (5, 1), (5, 2)]
