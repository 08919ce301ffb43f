"""Payloads of Sparkplug B, and messages that need a birth."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from pipeline_runtime.connectors import sparkplug_in
from pipeline_runtime.connectors.mqtt import matcher_of
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sparkplug import (
    Address,
    Births,
    NotBorn,
    address_of,
    metric_names,
    missed_before,
    new_payload,
    parsed,
)
from pipeline_runtime.connectors.sparkplug_chosen import ChosenMetrics
from pipeline_runtime.connectors.sparkplug_host import state, state_of
from pipeline_runtime.connectors.sparkplug_in import EdgeMessages
from pipeline_runtime.connectors.trial import MemoryIntake, Taken

# Made by another implementation, pysparkplug 0.6.1.
NBIRTH = bytes.fromhex(
    "0880d0dfb4ab3312120a0562645365711880d0dfb4ab332008580712120a02693810011880d0dfb4ab33200150fe0112160a03"
    "69333210021880d0dfb4ab33200350b0f0ffff0f121b0a0369363410031880d0dfb4ab332004588080808080e0ffffff011216"
    "0a0375333210041880d0dfb4ab3320075080d0acf30e12130a016610051880d0dfb4ab332009650000ac4112170a0164100618"
    "80d0dfb4ab33200a699a9999999999b93f12110a026f6e10071880d0dfb4ab33200b700112150a047465787410081880d0dfb4"
    "ab33200c7a02c3bc12160a02617410091880d0dfb4ab33200d58f4e9edbfca3312130a046e6f6e65100a1880d0dfb4ab332003"
    "380112150a03726177100b1880d0dfb4ab33201182010201ff12180a0469313673100c1880d0dfb4ab332017820104ffff2c01"
    "121a0a05626f6f6c73100d1880d0dfb4ab33202082010503000000a012190a057465787473100e1880d0dfb4ab332021820104"
    "6100620012160a026673100f1880d0dfb4ab33201e8201040000003f121d0a0574696d657310101880d0dfb4ab332022820108"
    "f474fba79c0100001800"
)
NDATA = bytes.fromhex(
    "0889d0dfb4ab33120c10011885d0dfb4ab3350fd01120e10051885d0dfb4ab33650000b041120b10071885d0dfb4ab33380112"
    "1410061898c8dfb4ab332801699a9999999999c93f1801"
)
BORN_MS = 1_764_000_000_000
NODE = "spBv1.0/plant/{}/press"


def birth_of(payload: bytes) -> Births:
    births = Births()
    births.note(parsed(payload).metrics)
    return births


def test_a_birth_is_a_row_of_all_its_metrics_in_their_types() -> None:
    [(row, historical)] = birth_of(NBIRTH).rows(parsed(NBIRTH), 0)
    assert not historical
    assert row.time_us == BORN_MS * 1000
    texts = {
        "at": "2026-03-01T06:00:00.500000+00:00",
        "raw": "01ff",
        "i16s": "[-1, 300]",
        "bools": "[true, false, true]",
        "texts": '["a", "b"]',
        "fs": "[0.5]",
        "times": '["2026-03-01T06:00:00.500000+00:00"]',
    }
    assert {name: row.values.pop(name) for name in texts} == texts
    assert row.values == {
        **{"bdSeq": 7, "i8": -2, "i32": -2000, "i64": -(2**40), "u32": 4_000_000_000},
        **{"f": 21.5, "d": 0.1, "on": True, "text": "ü", "none": None},
    }


def test_data_is_read_by_the_aliases_and_types_of_the_birth_a_row_for_each_time() -> None:
    rows = birth_of(NBIRTH).rows(parsed(NDATA), 0)
    assert [(row.time_us // 1000 - BORN_MS, row.values, historical) for row, historical in rows] == [
        (-1000, {"d": 0.2}, True),
        (5, {"i8": -3, "f": 22.0, "on": None}, False),
    ]
    with pytest.raises(NotBorn, match="alias 1"):
        Births().rows(parsed(NDATA), 0)


def test_a_whole_number_without_a_type_needs_a_birth_and_others_do_not() -> None:
    payload = new_payload()
    payload.metrics.add(name="f", float_value=0.5)
    assert Births().rows(payload, 7)[0][0].values == {"f": 0.5}
    assert Births().rows(payload, 7)[0][0].time_us == 7000
    payload.metrics.add(name="n", int_value=2**32 - 1)
    with pytest.raises(NotBorn, match="the type of n"):
        Births().rows(payload, 7)
    assert Births(types={"n": 3}).rows(payload, 7)[0][0].values["n"] == -1
    assert Births(types={"n": 7}).rows(payload, 7)[0][0].values["n"] == 2**32 - 1


def test_a_data_set_is_a_text_and_a_template_is_its_metrics() -> None:
    payload = new_payload()
    table = payload.metrics.add(name="table", datatype=16).dataset_value
    table.columns.extend(["n", "s"])
    table.types.extend([3, 12])
    cells = table.rows.add().elements
    cells.add(int_value=2**32 - 5)
    cells.add(string_value="x")
    payload.metrics.add(name="motor", datatype=19).template_value.metrics.add(
        name="rpm", datatype=10, double_value=1.5
    )
    assert Births().rows(payload, 7)[0][0].values == {"table": '[{"n": -5, "s": "x"}]', "motor/rpm": 1.5}


@pytest.mark.parametrize("payload", [b"\xff\xff", b'{"v": 1}', NBIRTH[:-9], bytes(5 << 20)])
def test_what_is_no_payload_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"payload|bytes"):
        parsed(payload)


@pytest.mark.parametrize("type_", [22, 32, 34])
def test_a_broken_array_is_refused(type_: int) -> None:
    payload = new_payload()
    payload.metrics.add(name="a", datatype=type_, bytes_value=b"\xff\xff\xff\x7f\xff" if type_ != 22 else b"")
    if type_ == 22:
        assert Births().rows(payload, 7)[0][0].values == {"a": "[]"}
        return
    with pytest.raises(ValueError, match="array"):
        Births().rows(payload, 7)


def test_topics_say_who_sends() -> None:
    assert address_of("spBv1.0/g/DDATA/n/d") == Address("g", "DDATA", "n", "d")
    assert address_of("spBv1.0/g/NBIRTH/n") == Address("g", "NBIRTH", "n")
    for topic in ("spBv1.0/STATE/host", "spBv1.0/g/NCMD/n", "spBv1.0/g/DCMD/n/d"):
        assert address_of(topic) is None
    for topic in ("plant/a", "spBv1.0/g/NDATA/n/d", "spBv1.0/g/DDATA/n", "spBv1.0/g/OTHER/n", "spBv1.0"):
        with pytest.raises(ValueError):
            address_of(topic)
    assert metric_names(NODE.format("NDATA"), NDATA) == "alias 1, alias 5, alias 7, alias 6"
    assert metric_names("plant/a", NDATA) is None


@pytest.mark.parametrize(
    ("last", "seq", "missed"),
    [
        *((None, 9, 0), (1, 2, 0), (255, 0, 0), (1, 5, 3), (254, 1, 2), (0, 201, 200), (8, 255, 246)),
        *((5, 5, None), (5, 3, None), (8, 0, None), (3, 254, None)),
    ],
)
def test_numbers_of_messages_say_how_many_are_missing(last: int | None, seq: int, missed: int | None) -> None:
    assert missed_before(last, seq) == missed


class Trial:
    """Messages to an intake, with who was asked for births and what was acknowledged."""

    def __init__(self, *topics: str, may_ask: bool = True, metrics: Collection[str] = ()) -> None:
        self.taken, self.asked, self.done = Taken(), [], []  # type: ignore[var-annotated]
        self.report = Report("e", self.taken.told)
        intake = MemoryIntake(self.taken, self.report, 100)
        wanted = matcher_of(topics or ["spBv1.0/plant/#"])
        ask = (lambda group, node: self.asked.append((group, node))) if may_ask else None
        self.messages = EdgeMessages(intake, wanted, "the broker", ask, ChosenMetrics(metrics))

    def send(self, kind: str, payload: Any, name: str = "") -> None:
        raw = payload if isinstance(payload, bytes) else payload.SerializeToString()
        assert self.messages.take(NODE.format(kind), raw, lambda: self.done.append(name or kind))

    @property
    def values(self) -> list[Any]:
        return [row["value"] for row in self.taken.rows]

    @property
    def letters(self) -> list[str]:
        return [each.value.decode() for each in self.taken.records if not each.value.startswith(b"{")]


def data(seq: int, **fields: Any) -> Any:
    payload = new_payload(timestamp=BORN_MS, seq=seq)
    payload.metrics.add(**{"alias": 5, "float_value": 1.5, **fields})
    return payload


def numbered(payload: Any, number: int) -> Any:
    """Gives a payload its number as an encoder does that leaves zeros out."""
    payload.ClearField("seq")
    if number:
        payload.seq = number
    return payload


def test_data_waits_for_a_birth_that_is_asked_for_once() -> None:
    trial = Trial()
    trial.send("NDATA", data(8), "first")
    trial.send("NDATA", data(9, float_value=2.5), "second")
    assert (trial.asked, trial.done) == ([("plant", "press")], [])
    assert trial.messages.look()
    assert "messages of plant/press, and no birth says the metric with the alias 5" in trial.report.status.why
    trial.send("NBIRTH", NBIRTH)
    assert [row.get("f") for row in trial.values] == [21.5, 1.5, 2.5]
    assert trial.done == ["NBIRTH", "first", "second"]
    assert trial.messages.look()
    assert trial.report.status.state == "connected"


def test_without_a_birth_data_becomes_a_dead_letter_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial()
    trial.send("NDATA", data(8))
    monkeypatch.setattr(sparkplug_in, "WAIT_S", -1.0)
    assert trial.messages.look()
    [letter] = trial.letters
    assert letter.startswith("spBv1.0/plant/NDATA/press: no birth has come that says the metric with")
    assert trial.done == ["NDATA"]
    silent = Trial(may_ask=False)
    silent.send("NDATA", data(8))
    assert len(silent.letters) == 1
    assert silent.messages.look()
    assert "Let the connection ask for births" in silent.report.status.why


def test_of_those_that_wait_the_oldest_is_given_up_and_those_that_come_no_more_at_the_end() -> None:
    trial = Trial()
    for number in range(sparkplug_in.UNACKNOWLEDGED_MAX + 1):
        trial.send("NDATA", data(number), str(number))
    assert (len(trial.letters), trial.done) == (1, ["0"])
    assert trial.messages.take(NODE.format("NDATA"), data(9).SerializeToString(), None)
    trial.messages.close()
    assert len(trial.letters) == 2


def test_missing_messages_are_counted_and_end_the_trust_in_aliases() -> None:
    trial = Trial()
    trial.send("NBIRTH", NBIRTH)
    trial.send("NDATA", NDATA)
    trial.send("NDATA", NDATA, "again")
    assert trial.report.status.gap_rows_total == 0
    trial.send("NDATA", data(5), "late")
    assert trial.report.status.gap_rows_total == 3
    assert "late" not in trial.done
    part = Trial("spBv1.0/plant/+/press")  # of its devices nothing is known
    part.send("NBIRTH", NBIRTH)
    part.send("NDATA", data(5))
    assert (part.report.status.gap_rows_total, part.values[1]) == (0, {"f": 1.5})


def test_after_missing_messages_an_edge_node_is_asked_for_its_births_until_they_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [1000.0]
    monkeypatch.setattr(sparkplug_in, "monotonic", lambda: now_s[0])
    trial = Trial()
    trial.send("NBIRTH", NBIRTH)
    asked_at: list[float] = []
    trial.send("NDATA", data(5, name="f", datatype=9))  # its name says all: it waits for no birth
    assert trial.done == ["NBIRTH", "NDATA"]
    for _ in range(20):
        asked_at += [now_s[0] - 1000] * (len(trial.asked) - len(asked_at))
        now_s[0] += 1.0
        assert trial.messages.look()
    assert asked_at == [0, 4, 12]
    trial.send("NBIRTH", NBIRTH)
    now_s[0] += 60.0
    assert trial.messages.look()
    assert len(trial.asked) == 3


@pytest.mark.parametrize("metric", [{"name": "f", "datatype": 9}, {}])  # by its name, and by its alias
def test_messages_that_are_missing_each_second_do_not_bring_a_birth_each_second(
    monkeypatch: pytest.MonkeyPatch, metric: dict[str, Any]
) -> None:
    now_s = [1000.0]
    monkeypatch.setattr(sparkplug_in, "monotonic", lambda: now_s[0])
    trial = Trial()
    trial.send("NBIRTH", NBIRTH)
    for _ in range(300):
        trial.send("NDATA", data(9, **metric))
        trial.send("NBIRTH", NBIRTH)
        now_s[0] += 1.0
    assert trial.report.status.gaps_total == 300
    assert len(trial.asked) == 7  # after 0, 4, 12, 28, 60, 124, 252 s
    # After a calm it is asked again at once.
    now_s[0] += sparkplug_in.CALM_S
    trial.send("NDATA", data(9, **metric))
    assert len(trial.asked) == 8


def test_an_edge_node_whose_encoder_leaves_zeros_out_misses_nothing() -> None:
    trial = Trial()
    birth = numbered(parsed(NBIRTH), 0)
    trial.send("NBIRTH", birth)
    for number in range(1, 2 * 256):
        trial.send("NDATA", numbered(data(0), number % 256))
    trial.send("NBIRTH", birth)
    trial.send("NDATA", data(1))
    assert (trial.report.status.gaps_total, trial.asked) == (0, [])
    trial.send("NDATA", data(5))
    assert trial.report.status.gap_rows_total == 3
    trial.send("NBIRTH", birth)
    assert trial.messages.look()
    assert (len(trial.asked), trial.report.status.state) == (1, "connected")


def test_only_the_metrics_that_are_wanted_become_rows_and_deaths_always_do() -> None:
    trial = Trial(metrics={"f", "on", "unknown"})
    trial.send("NBIRTH", NBIRTH)
    trial.send("NDATA", NDATA)
    trial.send("NDATA", data(2, name="other", datatype=9), "unwanted")
    trial.send("NDEATH", new_payload(timestamp=1))
    assert trial.values == [{"f": 21.5, "on": True}, {"f": 22.0, "on": None}, {}]
    assert trial.done == ["NBIRTH", "NDATA", "unwanted", "NDEATH"]


def test_births_that_name_none_of_the_metrics_that_are_wanted_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [1000.0]
    monkeypatch.setattr(sparkplug_in, "monotonic", lambda: now_s[0])
    trial = Trial(metrics={"speed"})
    trial.send("NBIRTH", NBIRTH)
    assert trial.messages.look()
    assert trial.report.status.state == "connected"
    now_s[0] += sparkplug_in.WAIT_S + 1
    assert trial.messages.look()
    assert "none of them names a metric that a column holds (speed)" in trial.report.status.why
    assert "The first one names at, bdSeq, bools, ..." in trial.report.status.why
    birth = new_payload(timestamp=BORN_MS, seq=1)
    birth.metrics.add(name="speed", datatype=10, double_value=1.0)
    assert trial.messages.take(NODE.format("DBIRTH") + "/motor", birth.SerializeToString(), None)
    assert trial.messages.look()
    assert trial.report.status.state == "connected"


def test_a_metric_that_one_of_several_edge_nodes_names_no_longer_is_told_once() -> None:
    trial = Trial(metrics={"speed", "load"})

    def born(node: str, *names: str) -> None:
        payload = new_payload(timestamp=BORN_MS, seq=0)
        for name in names:
            payload.metrics.add(name=name, datatype=10, double_value=1.0)
        assert trial.messages.take(f"spBv1.0/plant/NBIRTH/{node}", payload.SerializeToString(), None)

    for node in ("one", "two"):
        born(node, "speed", "load", "other")
    born("two", "speed", "load")
    assert trial.taken.notes == []
    for _ in range(2):
        born("two", "Speed", "load")
        assert trial.taken.notes == [
            "The edge node plant/two no longer names speed, so its rows have no value there"
        ]
    assert trial.values[-1] == {"load": 1.0}
    born("two", "speed", "load")
    born("two")
    assert trial.taken.notes[1:] == [
        "The edge node plant/two no longer names load, speed, so its rows have no value there"
    ]


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (b'{"online": true, "timestamp": 5}', (True, 5)),
        (state(online=False, at_ms=7), (False, 7)),
        *((each, None) for each in (b"", b"ONLINE", b"[1]", b"\xff", b'{"online": true}')),
        (b'{"online": 1, "timestamp": 5}', None),
        (b'{"online": true, "timestamp": 1e3}', None),
        (b'{"online": true, "timestamp": true}', None),
        (b'{"online": true, "timestamp": 99999999999999999999}', None),
        (b"[" * 100_000, None),
    ],
)
def test_a_state_says_whether_a_host_is_online_and_since_when(
    payload: bytes, found: tuple[bool, int] | None
) -> None:
    assert state_of(payload) == found


def test_a_death_is_an_empty_row_that_ends_the_aliases_unless_it_is_of_an_earlier_life() -> None:
    trial = Trial()
    trial.send("NBIRTH", NBIRTH)
    death = new_payload(timestamp=1)
    death.metrics.add(name="bdSeq", datatype=8, long_value=6)
    trial.send("NDEATH", death)
    assert len(trial.values) == 1
    death.metrics[0].long_value = 7
    trial.send("NDEATH", death)
    last = trial.taken.rows[-1]
    assert (last["levels"][2], last["value"]) == ("NDEATH", {})
    assert last["time"] > BORN_MS * 1000
    trial.send("NDATA", NDATA)
    assert trial.asked == [("plant", "press")]


def test_an_edge_node_that_is_born_again_ends_the_failure_of_a_device_that_is_silent_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = Trial()
    trial.send("NBIRTH", NBIRTH)
    device = NODE.format("DDATA") + "/gone"
    assert trial.messages.take(device, data(2).SerializeToString(), None)
    monkeypatch.setattr(sparkplug_in, "WAIT_S", -1.0)
    assert trial.messages.look()
    assert trial.messages.look()
    assert "messages of plant/press/gone" in trial.report.status.why
    trial.send("NBIRTH", NBIRTH)
    assert trial.messages.look()
    assert trial.report.status.state == "connected"


@pytest.mark.parametrize(
    ("bound", "most", "words"),
    [("NODES_MAX", 1, "more than 1 edge nodes"), ("METRICS_MAX", 2, "have more than 2 metrics")],
)
def test_what_is_known_of_edge_nodes_is_bounded(
    monkeypatch: pytest.MonkeyPatch, bound: str, most: int, words: str
) -> None:
    trial = Trial()
    birth = new_payload(timestamp=BORN_MS, seq=0)
    for name in ("a", "b"):
        birth.metrics.add(name=name, datatype=10, float_value=1.0)
    monkeypatch.setattr(sparkplug_in, bound, most)
    trial.send("NBIRTH", birth)
    trial.send("NBIRTH", birth)  # of the same edge node: it takes the place of the first
    assert trial.letters == []
    assert trial.messages.take("spBv1.0/plant/NBIRTH/other", birth.SerializeToString(), None)
    [letter] = trial.letters
    assert words in letter


def test_the_birth_of_a_template_says_the_types_of_its_metrics() -> None:
    trial = Trial()
    for kind, told in (("NBIRTH", {"datatype": 3}), ("NDATA", {})):
        payload = new_payload(timestamp=BORN_MS, seq=0 if told else 1)
        inner = payload.metrics.add(name="motor").template_value.metrics
        inner.add(name="rpm", int_value=(1 << 32) - 5, **told)
        trial.send(kind, payload)
    assert trial.values == [{"motor/rpm": -5}, {"motor/rpm": -5}]


@pytest.mark.parametrize(
    ("depth", "names", "words"),
    [
        (1, ["x" * 1_995] * 9, ""),
        (1, ["x" * 2_000], "letters"),
        (9, ["x"], "deep"),
        (1, ["x"] * 20_000, "metrics"),
    ],
)
def test_a_short_message_that_names_very_much_is_refused(depth: int, names: list[str], words: str) -> None:
    payload = new_payload()
    metrics = payload.metrics
    for _ in range(depth):
        metrics = metrics.add(name="t").template_value.metrics
    for name in names:
        metrics.add(name=name)
    if words:
        with pytest.raises(ValueError, match=words):
            parsed(payload.SerializeToString())
    else:
        assert parsed(payload.SerializeToString()) == payload


def test_a_birth_whose_names_are_no_text_is_a_dead_letter() -> None:
    trial = Trial()
    trial.send("NBIRTH", b"\x12\x05\x0a\x03a\xffb")
    assert trial.letters[0].startswith("spBv1.0/plant/NBIRTH/press: it holds a text that is no UTF-8")
    assert trial.done == ["NBIRTH"]


def test_an_edge_node_whose_births_do_not_help_is_asked_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [1000.0]
    monkeypatch.setattr(sparkplug_in, "monotonic", lambda: now_s[0])
    trial = Trial()
    asked_at: list[float] = []
    for _ in range(600):
        before = len(trial.asked)
        trial.send("NDATA", data(8, alias=99))
        assert trial.messages.look()
        trial.send("NBIRTH", NBIRTH)
        if len(trial.asked) > before:
            asked_at.append(now_s[0] - 1000)
        now_s[0] += 1.0
    assert asked_at[:5] == [0, 4, 12, 28, 60]
    assert len(asked_at) < 10


def test_what_is_no_message_of_an_edge_node_is_left_out_or_a_dead_letter() -> None:
    trial = Trial()
    trial.send("NCMD", b"")
    trial.send("NDATA", b"\xff\xff")
    trial.send("OTHER", b"")
    assert trial.done == ["NCMD", "NDATA", "OTHER"]
    assert [each.split(": ")[1].split(";")[0] for each in trial.letters] == [
        "it is no payload of Sparkplug B",
        "this is no topic of Sparkplug B",
    ]
