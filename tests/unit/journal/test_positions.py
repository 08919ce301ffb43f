"""Where a group stands, or stopped, in each stream that its journal names."""

from dataclasses import replace

from pipeline_runtime.journal.positions import last_positions
from pipeline_runtime.journal.records import ENDED, Boundary, Claim, Commit, Ends
from pipeline_runtime.model.ids import Epoch, Seq


def claim(start: Ends, moves: Ends | None = None, rewind: int | None = None) -> Claim:
    return Claim(Epoch(1), "o", "a", start, None if rewind is None else Seq(rewind), moves=moves)


def commit(seq: int, **ends: int) -> Commit:
    return Commit(Epoch(1), Boundary(Seq(seq), {f"{topic}-0": at for topic, at in ends.items()}, 0))


def test_it_stands_where_its_last_batch_ended() -> None:
    assert last_positions([claim({"a-0": 3})]) == {"a-0": 3}
    assert last_positions([claim({"a-0": 3}), commit(1, a=5), commit(2, a=9)]) == {"a-0": 9}
    assert last_positions([commit(7, a=5), claim({"a-0": 3})]) == {"a-0": 5}, "its beginning was trimmed"


def test_what_it_has_left_it_left_where_it_stood_last() -> None:
    records = [claim({"a-0": 0}), commit(1, a=5), claim({"a-0": 0}, moves={"b-0": 2}), commit(2, b=4)]
    assert last_positions(records[:3]) == {"a-0": 5, "b-0": 2}
    assert last_positions(records) == {"a-0": 5, "b-0": 4}


def test_what_was_rewound_does_not_count() -> None:
    records = [claim({"a-0": 0}), commit(1, a=5), commit(2, a=9)]
    assert last_positions([*records, claim({"a-0": 0}, rewind=1)]) == {"a-0": 5}
    assert last_positions([*records, claim({"a-0": 0}, rewind=0)]) == {"a-0": 0}
    assert last_positions([*records, claim({"a-0": 0}, rewind=1), commit(3, a=6)]) == {"a-0": 6}


def test_inputs_whose_end_was_read_are_named_until_that_is_rewound() -> None:
    records = [
        claim({"a-0": 0, "b-0": 0}),
        commit(1, a=5),
        replace(commit(2, a=6), ended=("a-0",)),
        commit(3, b=4),
    ]
    assert ENDED not in last_positions(records[:2])
    assert last_positions(records) == {"a-0": 6, "b-0": 4, ENDED: ["a-0"]}
    assert ENDED not in last_positions([*records, claim({"a-0": 0}, rewind=1)])


def test_who_goes_on_from_one_that_has_read_an_end_hands_that_on() -> None:
    began = replace(claim({"a-0": 6, "b-0": 4}), ended=("a-0",))
    assert last_positions([began, commit(1, b=9)]) == {"a-0": 6, "b-0": 9, ENDED: ["a-0"]}
