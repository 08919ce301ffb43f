from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, strategies as st

from pipeline_runtime.checkpoint.trimming import Kept, TrimGroup, journal_mark, trim_points
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec, InputStream, OutputStream

SCHEMA = StreamSchema(fields=())


def output(topic: str, *, external: bool = False, partitions: int = 1) -> OutputStream:
    return OutputStream(
        source="a.out", topic=topic, data_schema=SCHEMA, external=external, partitions=partitions
    )


def reads(topic: str, partitions: int = 1) -> InputStream:
    return InputStream(source="a.out", topic=topic, data_schema=SCHEMA, consumer="c", partitions=partitions)


def group(
    name: str,
    *,
    inputs: tuple[InputStream, ...] = (),
    outputs: tuple[OutputStream, ...] = (),
    ends: dict[str, object] | None = None,
    seq: int = 10,
    mark: int | None = 20,
    replicas_at: int | None = 50,
) -> TrimGroup:
    spec = GroupSpec(deployment="d", pipeline="p", group=name, elements=(), inputs=inputs, outputs=outputs)
    kept = Kept(Seq(seq), ends or {}, mark, granted_after=True)
    return TrimGroup(spec, kept, None if replicas_at is None else Seq(replicas_at))


SOURCE = group("source", outputs=(output("s"), output("user", external=True)))
FAST = group("fast", inputs=(reads("s"),), ends={"s-0": 70})
SLOW = group("slow", inputs=(reads("s"),), ends={"s-0": 40})


def test_a_stream_is_trimmed_behind_the_slowest_of_its_readers() -> None:
    assert trim_points([SOURCE, FAST, SLOW])[("s", 0)] == 40
    assert trim_points([SOURCE, FAST])[("s", 0)] == 70


def test_a_journal_is_trimmed_behind_the_mark_of_the_oldest_checkpoint() -> None:
    assert trim_points([SOURCE, FAST])[(FAST.spec.journal, 0)] == 20


def test_a_journal_keeps_its_newest_grant_and_one_that_is_read_from_its_beginning_all() -> None:
    assert FAST.oldest is not None
    for kept in (replace(FAST.oldest, granted_after=False), replace(FAST.oldest, journal_offset=None)):
        assert (FAST.spec.journal, 0) not in trim_points([replace(FAST, oldest=kept)])


def test_a_reader_of_which_nothing_is_known_holds_everything_back() -> None:
    for unknown in (
        replace(SLOW, oldest=None),
        replace(SLOW, replicas_at=None),  # one that is wanted has not said where it stands
        replace(SLOW, replicas_at=Seq(9)),  # one stands further back than the oldest checkpoint
        group("slow", inputs=(reads("s"),), ends={"other-0": 7}),
    ):
        points = trim_points([SOURCE, FAST, unknown])
        assert ("s", 0) not in points
        assert (FAST.spec.journal, 0) in points, "others are trimmed all the same"


def test_what_nobody_reads_and_what_the_user_owns_is_never_trimmed() -> None:
    reader = group("reader", inputs=(reads("user"),), ends={"user-0": 9})
    assert ("s", 0) not in trim_points([SOURCE, reader])
    assert ("user", 0) not in trim_points([SOURCE, reader])
    foreign = reads("theirs").model_copy(update={"external": True})
    assert ("theirs", 0) not in trim_points([group("x", inputs=(foreign,), ends={"theirs-0": 9})])


def test_another_deployments_reader_of_our_stream_counts() -> None:
    foreign = group("far", inputs=(reads("s").model_copy(update={"external": True}),), ends={"s-0": 3})
    assert trim_points([SOURCE, FAST, foreign])[("s", 0)] == 3


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=5))
def test_no_reader_ever_finds_its_start_gone(ends: list[tuple[int, int]]) -> None:
    source = group("source", outputs=(output("s", partitions=2),))
    readers = [
        group(f"r{index}", inputs=(reads("s", 2),), ends={"s-0": first, "s-1": second})
        for index, (first, second) in enumerate(ends)
    ]
    points = trim_points([source, *readers])
    for partition in (0, 1):
        assert points.get(("s", partition), 0) == min(pair[partition] for pair in ends)


def test_the_mark_of_a_checkpoint_is_the_one_that_its_replica_would_use() -> None:
    written = json.dumps({"journal_offset": 31, "view": {"last_seq": 12}}).encode()
    assert journal_mark(written, Seq(12)) == 31
    assert journal_mark(written, Seq(11)) is None, "a view that is ahead of the state is not used"
    for unusable in (b"", b"[]", b"{}", b'{"journal_offset": 3, "view": null}'):
        assert journal_mark(unusable, Seq(12)) is None


def test_a_stream_that_was_read_before_is_kept_for_what_still_reads_it() -> None:
    left = replace(SLOW, spec=SLOW.spec.model_copy(update={"inputs": ()}))
    assert trim_points([SOURCE, FAST, left])[("s", 0)] == 70
    for until in (None, Seq(10**6)):
        assert trim_points([SOURCE, FAST, replace(left, former=(("s", until),))])[("s", 0)] == 40
    assert SLOW.oldest is not None
    passed = replace(left, former=(("s", SLOW.oldest.seq),))
    assert trim_points([SOURCE, FAST, passed])[("s", 0)] == 70
    unknown = replace(left, oldest=None, former=(("s", Seq(1)),))
    assert ("s", 0) not in trim_points([SOURCE, FAST, unknown])
