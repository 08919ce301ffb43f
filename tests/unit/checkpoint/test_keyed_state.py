"""The state of a processor: it stands at the end of a batch that was committed, whatever happens."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.checkpoint import keyed_state
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import NothingCommitted, SnapshotFailed
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.keyed_state import KeyedState, KeyedStateClosed, read_end
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import materialize, store
from pipeline_runtime.model.ids import Epoch
from tests.waiting import PATIENCE_S

GROUP = "d.g"


def end(seq: int) -> dict[str, Any]:
    return {"seq": seq, "ends": {"in-0": seq * 10}, "batch_time": seq * 1000}


def begun(path: Path) -> KeyedState:
    KeyedState.create(path)
    return KeyedState(path)


def commit(state: KeyedState, seq: int, **texts: str) -> None:
    state.begin()
    keep(state, {key: text.encode() for key, text in texts.items()})
    settle(state, seq)


def settle(state: KeyedState, seq: int) -> None:
    state.seal()
    state.commit(end(seq))


def keep(state: KeyedState, states: Mapping[str | None, bytes | None], *, unread: bool = False) -> None:
    """As a task does that has read what it replaces, or that has not."""
    before = state.get(list(states))
    sizes = [None if unread else -1 if data is None else len(data) for data in before]
    state.keep(list(states), list(states.values()), sizes)


def kept_bytes(state: KeyedState) -> int:
    """Counted from what it holds: a key has one byte before it."""
    whole = state.get([None])[0]
    return sum(1 + len(key.encode()) + len(data) for key, data in state.items()) + (
        0 if whole is None else 1 + len(whole)
    )


def test_its_size_is_that_of_what_is_kept_whatever_was_kept_before(tmp_path: Path) -> None:
    state, chance = begun(tmp_path / "keyed"), random.Random(3)
    keys: list[str | None] = [None, "", "a", "ü", "key"]
    for seq in range(1, 200):
        asked = chance.sample(keys, 3)
        state.begin()
        kept = {key: chance.choice([None, b"x" * chance.randrange(50)]) for key in asked}
        keep(state, kept, unread=chance.random() < 0.2)  # a batch may replace what it has not read
        settle(state, seq)
        assert state.bytes == kept_bytes(state)
    state.close()
    again = KeyedState(tmp_path / "keyed")
    assert again.bytes == kept_bytes(again)
    again.close()


def test_with_the_same_keys_its_size_stays_however_long_it_runs(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    sizes = []
    for seq in range(1, 1_201):  # ten minutes of two batches a second
        commit(state, seq, window=f"{seq % 10}" * 400)
        if seq % 120 == 0:
            state.link(tmp_path / f"checkpoint-{seq}")
            sizes.append(state.bytes)
    assert len(set(sizes)) == 1
    state.close()


def test_a_batch_counts_once_it_is_committed(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    assert (state.end, read_end(tmp_path / "keyed")) == (None, None)
    commit(state, 1, a="1", b="1")
    assert state.get(["c", "a", "b", "x"]) == [None, b"1", b"1", None]
    keep(state, {"a": b"2", "c": b"2"})
    assert state.get(["a"]) == [b"1"]
    assert (state.count, read_end(tmp_path / "keyed")) == (2, end(1))
    settle(state, 2)
    assert state.get(["a", "c"]) == [b"2", b"2"]
    assert state.count == 3
    assert (state.end, read_end(tmp_path / "keyed")) == (end(2), end(2))
    assert state.get([]) == []


def test_the_next_batch_sees_what_the_last_one_has_changed_before_that_is_committed(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    commit(state, 1, a="1", b="1", d="1")
    state.begin()
    keep(state, {"a": b"22", "b": None, "c": b"2", None: b"2"})
    state.seal()
    state.begin()
    assert state.get(["d", "c", "b", "a", None, "x"]) == [b"1", b"2", None, b"22", b"2", None]
    assert state.between("", "z") == [("a", b"22"), ("c", b"2"), ("d", b"1")]
    assert state.between("b", "d") == [("c", b"2")]
    assert (state.keys("", "z", 2), state.keys("b", "z", 9)) == (["a", "c"], ["c", "d"])
    keep(state, {"a": b"333", "c": None})
    assert list(state.items()) == [("a", b"1"), ("b", b"1"), ("d", b"1")], "nobody else sees it"
    assert (state.end, read_end(tmp_path / "keyed")) == (end(1), end(1))
    state.commit(end(2))
    assert list(state.items()) == [("a", b"22"), ("c", b"2"), ("d", b"1")]
    assert (state.count, state.bytes) == (3, kept_bytes(state))
    settle(state, 3)
    assert list(state.items()) == [("a", b"333"), ("d", b"1")]
    assert (state.count, state.bytes, state.end) == (2, kept_bytes(state), end(3))


def test_a_batch_that_runs_ahead_and_says_no_sizes_is_counted_by_what_is_committed_then(
    tmp_path: Path,
) -> None:
    state = begun(tmp_path / "keyed")
    state.begin()
    keep(state, {"a": b"1"}, unread=True)
    state.seal()
    state.begin()
    keep(state, {"a": b"22"}, unread=True)
    state.commit(end(1))
    settle(state, 2)
    assert (state.count, state.bytes) == (1, kept_bytes(state))


def test_what_a_batch_that_came_to_nothing_has_left_is_gone(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    commit(state, 1, a="1")
    keep(state, {"a": b"void", "x": b"void"})
    commit(state, 2, b="2")
    assert list(state.items()) == [("a", b"1"), ("b", b"2")]
    assert state.count == 2


def test_what_is_kept_no_more_is_gone_and_counts_no_more(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    commit(state, 1, a="1", b="1", c="1")
    assert state.between("b", "z") == [("b", b"1"), ("c", b"1")]
    keep(state, {"b": None, "never": None})
    assert state.between("", "c") == [("a", b"1"), ("b", b"1")], "until it is committed"
    settle(state, 2)
    assert (list(state.items()), state.count) == ([("a", b"1"), ("c", b"1")], 2)
    commit(state, 3, b="3")
    assert (state.between("b", "c"), state.count) == ([("b", b"3")], 3)
    assert (state.keys("a", "c", 9), state.keys("a", "z", 2), state.keys("b", "z", 9)) == (
        ["a", "b"],
        ["a", "b"],
        ["b", "c"],
    )


def test_what_is_kept_of_the_element_is_beside_its_keys(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    commit(state, 1, a="1")
    keep(state, {None: b"whole"})
    settle(state, 2)
    assert (list(state.items()), state.count) == ([("a", b"1")], 1)
    assert state.between("", "z") == [("a", b"1")]
    state.close()
    assert KeyedState(tmp_path / "keyed").get([None, ""]) == [b"whole", None]


def test_keys_and_states_may_be_anything(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    states = {"": b"the key of rows without one", "e": b"\xff\n\x00", "k": b"{}", "ü\x00ß": b""}
    keep(state, states)
    settle(state, 1)
    state.close()
    again = KeyedState(tmp_path / "keyed")
    assert dict(again.items()) == states
    assert again.count == 4
    assert again.get(list(states)) == list(states.values())


_KILLED = """
import os, signal, sys
from pathlib import Path
from tests.unit.checkpoint.test_keyed_state import begun, commit, keep
state = begun(Path(sys.argv[1]))
for seq in range(1, 200):
    commit(state, seq, **{f"k{n}": f"{seq}" for n in range(100)})
keep(state, {"k0": b"void"})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_leaves_the_newest_batch_whole(tmp_path: Path) -> None:
    path = tmp_path / "keyed"
    done = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    state = KeyedState(path)
    assert state.end == end(199)
    assert {data for _, data in state.items()} == {b"199"}


def test_a_checkpoint_is_made_between_two_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_state, "_BATCH_S", PATIENCE_S)
    state, waits = begun(tmp_path / "keyed"), threading.Event()
    commit(state, 1, a="1")
    monkeypatch.setattr(state, "_between_batches", Told(state._between_batches, waits))
    assert state.link(tmp_path / "none runs") == end(1)
    assert not waits.is_set()
    state.begin()
    found: list[Any] = []
    linking = threading.Thread(target=lambda: found.append(state.link(tmp_path / "linked")))
    linking.start()
    assert waits.wait(PATIENCE_S)
    keep(state, {"a": b"2"})
    settle(state, 2)
    linking.join(PATIENCE_S)
    assert found == [end(2)]
    assert read_end(tmp_path / "linked") == end(2)


class Told:
    """An event that tells when somebody waits for it in earnest."""

    def __init__(self, event: threading.Event, waits: threading.Event) -> None:
        self.set, self.clear, self._event, self._waits = event.set, event.clear, event, waits

    def wait(self, timeout_s: float) -> bool:
        if not self._event.is_set():
            self._waits.set()
        return self._event.wait(timeout_s)


def test_a_checkpoint_does_not_wait_for_a_batch_that_takes_long(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    commit(state, 1, a="1")
    state.begin()
    assert state.link(tmp_path / "linked") == end(1)


def test_damaged_files_are_told_from_such_as_are_in_use(tmp_path: Path) -> None:
    path = tmp_path / "keyed"
    state = begun(path)
    with pytest.raises(OSError, match="lock"):
        KeyedState(path)
    commit(state, 1, a="1")
    state.link(tmp_path / "linked")
    state.close()
    [data, *_] = (tmp_path / "linked").glob("*.sst")
    data.unlink()
    with pytest.raises(ValueError, match="Corruption"):
        KeyedState(tmp_path / "linked")
    with pytest.raises(KeyedStateClosed):
        state.link(tmp_path / "again")


def test_one_that_is_opened_again_has_the_options_of_all(tmp_path: Path) -> None:
    begun(tmp_path / "keyed").close()
    KeyedState(tmp_path / "keyed").close()
    newest = max((tmp_path / "keyed").glob("OPTIONS-*"), key=lambda path: path.name)
    assert "filter_policy=bloomfilter" in newest.read_text()


def test_a_close_that_fails_raises_nothing(tmp_path: Path) -> None:
    class Full:
        def close(self) -> None:
            raise Exception("No space left on device")

    state = begun(tmp_path / "keyed")
    state.close()
    state._db = Full()  # type: ignore[assignment]
    state.close()
    with pytest.raises(KeyedStateClosed):
        state.get(["a"])


# -- in a checkpoint ---------------------------------------------------------------------------------


class Group:
    """A replica's directory, and where its checkpoints go."""

    def __init__(self, tmp_path: Path) -> None:
        self.replica, self.work = tmp_path / "replica", tmp_path / "work"
        (self.replica / "spark" / "offsets").mkdir(parents=True)
        (self.replica / "spark" / "offsets" / "0").write_text("of no use to anybody")
        (self.replica / "replica.json").write_text("{}")
        self.work.mkdir()
        self.state = begun(self.replica / "keyed")
        self.growing = GrowingFiles(self.state)
        self.database = StateDatabase(tmp_path / "database")

    def checkpoint(self) -> Manifest:
        with take_snapshot(self.replica, self.work, self.growing) as taken:
            assert taken.seq == taken.ends["in-0"] // 10
            return store(taken, self.database, group=GROUP, epoch=Epoch(1), version="v", node="a", now_ms=0)

    def unpacked(self, manifest: Manifest, target: Path) -> dict[str, str]:
        materialize(manifest, lambda sha: self.database.get_chunk(GROUP, sha), target)
        assert sorted(path.name for path in target.iterdir()) == ["keyed", "replica.json"]
        state = KeyedState(target / "keyed")
        assert state.end == end(manifest.seq)
        commit(state, manifest.seq + 1, new="1")  # and it can go on
        state.close()
        return {key: data.decode() for key, data in state_items(target / "keyed") if key != "new"}


def state_items(path: Path) -> list[tuple[str, bytes]]:
    state = KeyedState(path, read_only=True)
    try:
        return list(state.items())
    finally:
        state.close()


@pytest.fixture
def group(tmp_path: Path) -> Any:
    made = Group(tmp_path)
    yield made
    made.state.close()
    made.database.close()


def test_a_checkpoint_is_of_one_batch_while_others_are_committed(group: Group, tmp_path: Path) -> None:
    with pytest.raises(NothingCommitted):
        group.checkpoint()
    for seq in range(1, 60):
        commit(group.state, seq, **{f"k{n}": str(seq) for n in range(50)})
        if seq % 20 == 0:
            manifest = group.checkpoint()
            assert manifest.seq == seq
            found = group.unpacked(manifest, tmp_path / f"copy-{seq}")
            assert found == {f"k{n}": str(seq) for n in range(50)}
    assert not list(group.work.iterdir())


def test_a_checkpoint_stores_what_has_changed(group: Group) -> None:
    chance = random.Random(1)
    keys = [f"k{n:05}" for n in range(20_000)]
    commit(group.state, 1, **{key: chance.randbytes(100).hex() for key in keys})
    whole, stored = group.checkpoint().bytes_total, []
    for seq in range(2, 22):
        commit(group.state, seq, **{key: chance.randbytes(100).hex() for key in chance.sample(keys, 200)})
        stored.append(group.checkpoint().bytes_new)
    # At times everything is merged with later changes, and stored again.
    assert sorted(stored)[len(stored) // 2] < whole / 20
    assert sum(stored) < 3 * whole


def test_after_its_query_has_ended_it_is_opened_for_the_checkpoint(group: Group, tmp_path: Path) -> None:
    commit(group.state, 1, a="1")
    group.state.close()
    assert group.unpacked(group.checkpoint(), tmp_path / "copy") == {"a": "1"}
    group.growing = GrowingFiles()
    assert group.checkpoint().seq == 1


def test_a_query_that_has_started_again_is_left_alone(group: Group) -> None:
    commit(group.state, 1, a="1")
    group.state.close()
    other = KeyedState(group.replica / "keyed")
    try:
        with pytest.raises(SnapshotFailed, match="Take the next checkpoint later"):
            group.checkpoint()
    finally:
        other.close()


def test_a_damaged_state_is_told(group: Group) -> None:
    commit(group.state, 1, a="1")
    group.checkpoint()
    group.state.close()
    for path in (group.replica / "keyed").glob("*.sst"):
        os.truncate(path, 10)
    with pytest.raises(SnapshotFailed, match="its state cannot be read"):
        group.checkpoint()


def looked_at(state: KeyedState, first: str = "", prefix: str = "", **bounds: int) -> Any:
    bounds = {"most": 10, "keys_max": 10} | bounds
    return state.look(first, prefix, lambda key: key != "unwanted", **bounds)


def test_a_look_goes_on_where_the_one_before_has_ended(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    assert looked_at(state) == ([], None)
    commit(state, 1, a="1", ab="2", b="3", unwanted="4")
    assert looked_at(state, most=2) == ([("a", b"1"), ("ab", b"2")], "ab")
    assert looked_at(state, "ab\0") == ([("b", b"3")], None)
    assert looked_at(state, most=3, keys_max=2) == ([("a", b"1"), ("ab", b"2")], "ab")
    assert looked_at(state, "b", most=1) == ([("b", b"3")], "b"), "there may be more that is wanted"
    assert looked_at(state, "", "a", most=2) == ([("a", b"1"), ("ab", b"2")], None), "none behind the last"
    assert looked_at(state, "aa", "a") == ([("ab", b"2")], None)
    assert looked_at(state, "b", "a") == ([], None)


def test_a_look_sees_what_was_committed_and_no_batch_waits_for_it(tmp_path: Path) -> None:
    state = begun(tmp_path / "keyed")
    commit(state, 1, a="1" * 100, b="1")
    keep(state, {"a": b"void"})

    def commits_meanwhile(key: str) -> bool:
        if key == "a":
            batch = threading.Thread(target=commit, args=(state, 2), kwargs={"b": "2", "c": "2"})
            batch.start()
            batch.join(PATIENCE_S)
            assert not batch.is_alive()
        return True

    found = state.look("", "", commits_meanwhile, most=9, keys_max=9)
    assert found == ([("a", b"1" * 100), ("b", b"1")], None), "as it was when the look began"
    assert (looked_at(state, "b")[0], state.count) == ([("b", b"2"), ("c", b"2")], 3)
    state.close()
    with pytest.raises(KeyedStateClosed):
        looked_at(state)
