"""Messages of the live view, without a database: old state + changes == new state."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from webapp.monitoring.live_state import COUNTED_MAX, LiveState, SharedReading, Watch, changes

names = st.sampled_from(["a", "b", "c"])
figures = st.integers(0, 2)
rows = st.dictionaries(names, figures, max_size=3).map(
    lambda found: [{"name": name, "id": name, "figure": figure} for name, figure in sorted(found.items())]
)
states = st.builds(
    LiveState,
    nodes=rows,
    pipelines=rows,
    elements=st.dictionaries(names, rows, max_size=3),
    handovers=rows,
    moves=rows,
    operations=rows,
    events=rows,
    alarms=rows,
)


def applied(state: LiveState, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What a client makes of messages: the reducer of static/shared/live-reducer.ts in short."""
    lists: dict[str, Any] = {"nodes": state.nodes, "pipelines": state.pipelines}
    lists["moves"] = state.moves
    elements = dict(state.elements)
    by_id = {
        "handover": {item["id"]: item for item in state.handovers},
        "operation": {item["id"]: item for item in state.operations},
        "event": {item["id"]: item for item in state.events},
    }
    alarms = {item["id"]: item for item in state.alarms}
    for message in messages:
        if message["type"] == "elements":
            elements[message["pipeline"]] = message["data"]
        elif message["type"] in lists:
            lists[message["type"]] = message["data"]
        elif message["type"] == "alarms":
            alarms |= {item["id"]: item for item in message["data"]["changed"]}
            alarms = {id: item for id, item in alarms.items() if id not in message["data"]["gone"]}
        else:
            by_id[message["type"]][message["data"]["id"]] = message["data"]
    by_id["alarms"] = alarms
    return {**lists, "elements": {name: items for name, items in elements.items() if items}, **by_id}


@given(states, states)
def test_old_state_and_changes_make_the_new_state(old: LiveState, new: LiveState) -> None:
    got, wanted = applied(old, list(changes(old, new))), applied(new, [])
    for name in ("nodes", "pipelines", "elements", "moves", "alarms"):
        assert got[name] == wanted[name]
    for name in ("handover", "operation", "event"):
        # What fell off the end of a list of the newest stays at the client until it drops it itself.
        assert {id: got[name][id] for id in wanted[name]} == wanted[name]


def alarm(id: int, count: int, **more: Any) -> dict[str, Any]:
    return {"id": id, "status": "raised", "count": count, "seen_at": f"{count:06}", **more}


def test_very_many_alarms_that_are_raised_again_come_one_part_after_another() -> None:
    """What people act on comes at once, and no alarm's count stays behind for ever."""
    many = 3 * COUNTED_MAX
    sent = LiveState(alarms=[alarm(id, 1) for id in range(many)])
    for round in range(2, 6):
        found = [alarm(id, round) for id in range(many)]
        found[-1]["status"] = f"of round {round}"
        found.append(alarm(many + round, 1))
        next = LiveState(alarms=found).paced(sent)
        [message] = changes(sent, next)
        assert message["type"] == "alarms"
        changed = {each["id"] for each in message["data"]["changed"]}
        assert len(changed) == COUNTED_MAX + 2
        assert {many - 1, many + round} <= changed
        assert [each["id"] for each in next.alarms] == [each["id"] for each in found]
        sent = next
    assert min(each["count"] for each in sent.alarms[:many]) >= 3


@given(states)
def test_no_change_sends_nothing(state: LiveState) -> None:
    assert list(changes(state, state)) == []


def test_a_client_that_watches_one_pipeline_gets_its_elements_only() -> None:
    state = LiveState(
        nodes=[{"name": "n"}],
        pipelines=[{"name": "a", "deployment": "d"}, {"name": "b", "deployment": None}],
        elements={"a": [{"id": "x"}], "b": [{"id": "y"}]},
    )
    assert set(state.seen_by(Watch()).elements) == {"a"}
    assert set(state.seen_by(Watch(pipeline="b")).elements) == {"b"}
    assert state.seen_by(Watch(nodes=False)).nodes == []


@pytest.mark.django_db  # the thread that reads closes connections that tests before have left it
async def test_who_asks_after_a_change_never_gets_a_reading_from_before_it() -> None:
    committed = 0
    readings = 0

    def read() -> LiveState:
        nonlocal readings
        readings += 1
        return LiveState(nodes=[{"committed": committed}])

    shared = SharedReading(read)

    async def change_and_ask(number: int) -> None:
        nonlocal committed
        await asyncio.sleep(0)
        committed = max(committed, number)
        state = await shared.get()
        assert state.nodes[0]["committed"] >= number

    await asyncio.gather(*(change_and_ask(number) for number in range(50)))
    assert readings < 50
