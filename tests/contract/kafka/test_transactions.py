"""Tests that a read_committed consumer reads exactly the records that a transaction writes, of any size and
shape.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import urandom
from socket import SHUT_RDWR
from time import time
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic
from kafka.partitioner import murmur2

from pipeline_runtime.kafka import transactions as transactions_module
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.outgoing import columns_of
from pipeline_runtime.kafka.reading import TopicEnd
from pipeline_runtime.kafka.transactions import (
    END_HEADER,
    Doubtful,
    Fenced,
    OutgoingRecord,
    OutgoingRows,
    RecordsRefused,
    Transactions,
)
from pipeline_runtime.kafka.whole_batches import read_whole_batches
from tests.open_transactions import leave_open
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration


def opened(kafka: str, transactional_id: str) -> Transactions:
    transactions = Transactions(KafkaSettings(kafka), transactional_id)
    transactions.initialise()
    return transactions


def new_topic(kafka: str, partitions: int) -> str:
    name = f"tx-{uuid4().hex[:8]}"
    ensure_topics(KafkaSettings(kafka), [Topic(name, partitions=partitions)])
    return name


def users_topic(kafka: str, configs: dict[str, str]) -> str:
    name = f"tx-{uuid4().hex[:8]}"
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    # The times of these tests are those of 1970, and the broker deletes by them.
    admin.create_topics([NewTopic(name, 1, 1, topic_configs={"retention.ms": "-1", **configs})])
    admin.wait_for_topics([name])
    admin.close()
    return name


def delete_topic(kafka: str, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    admin.delete_topics([name])
    # The answer comes when it is decided: a record that is sent at once may still be taken.
    wait_until(lambda: name not in admin.list_topics(), f"{name} to be gone")
    admin.close()


def read(kafka: str, topic: str, partitions: int) -> dict[int, list[Any]]:
    consumer = open_consumer(KafkaSettings(kafka), max_partition_fetch_bytes=8 << 20)
    parts = [TopicPartition(topic, number) for number in range(partitions)]
    consumer.assign(parts)
    consumer.seek_to_beginning(*parts)
    # A broker answers a commit before it has told all partitions: their committed ends may be older.
    whole = open_consumer(KafkaSettings(kafka), isolation_level="read_uncommitted")
    ends = whole.end_offsets(parts)
    whole.close()
    found: dict[int, list[Any]] = {number: [] for number in range(partitions)}
    while any(consumer.position(part) < ends[part] for part in parts):
        for part, records in consumer.poll(200).items():
            found[part.partition] += records
    consumer.close()
    return found


def test_many_records_small_and_large_keep_their_order(kafka: str) -> None:
    topic = new_topic(kafka, 1)
    sizes = [30] * 9_000 + [500_000, 10, 80_000, 10, 10] + [200] * 3_000
    sent = [
        OutgoingRecord(
            topic, str(n).encode() + b"." * size, None if n % 7 == 0 else b"k%d" % (n % 50), 1_000 + n
        )
        for n, size in enumerate(sizes)
    ]
    sent.append(OutgoingRecord(topic, b"", partition=0, headers=(END_HEADER,)))
    transactions = opened(kafka, f"{topic}-id")
    transactions.commit(sent)
    transactions.commit(sent[:2])
    transactions.close()

    got = read(kafka, topic, 1)[0]

    assert [(r.key, r.value) for r in got] == [(r.key, r.value) for r in [*sent, *sent[:2]]]
    assert [r.timestamp for r in got[: len(sizes)]] == [r.timestamp_ms for r in sent[: len(sizes)]]
    assert [list(r.headers) for r in got if r.headers] == [[END_HEADER]]


def test_columns_are_written_before_the_last_record_of_their_stream(kafka: str) -> None:
    topic = new_topic(kafka, 1)
    few, many = (
        [OutgoingRecord(topic, b"%d" % n, None if n % 3 else b"k", 1_000 - n) for n in range(count)]
        for count in (2, 5_000)
    )
    end = OutgoingRecord(topic, b"", partition=0, headers=(END_HEADER,))
    transactions = opened(kafka, f"{topic}-id")
    transactions.commit([OutgoingRows(topic, columns_of(few)), OutgoingRows(topic, columns_of(many)), end])
    transactions.close()

    got = read(kafka, topic, 1)[0]

    assert [(r.key, r.value) for r in got] == [(r.key, r.value) for r in [*few, *many, end]]
    assert [r.timestamp for r in got[:-1]] == [r.timestamp_ms for r in [*few, *many]]


@pytest.mark.parametrize("as_columns", [False, True])
def test_keys_choose_the_partitions_that_other_producers_choose(kafka: str, as_columns: bool) -> None:
    topic = new_topic(kafka, 3)
    sent = [OutgoingRecord(topic, b"%d" % n, b"key-%d" % (n % 40)) for n in range(2_000)]
    rows = [OutgoingRows(topic, columns_of(sent))] if as_columns else list(sent)
    ends = [OutgoingRecord(topic, b"", partition=number, headers=(END_HEADER,)) for number in range(3)]
    sent += ends
    transactions = opened(kafka, f"{topic}-id")
    transactions.commit([*rows, *ends])
    transactions.close()

    found = read(kafka, topic, 3)

    for number, records in found.items():
        assert records[-1].headers
        assert {(murmur2(record.key) & 0x7FFFFFFF) % 3 for record in records[:-1]} == {number}
        values = [int(record.value) for record in records[:-1]]
        assert values == sorted(values)
    assert sum(len(records) for records in found.values()) == len(sent)


def test_the_last_record_of_a_stream_comes_behind_those_without_a_key(kafka: str) -> None:
    topic = new_topic(kafka, 2)
    sent = [OutgoingRecord(topic, b"keyed", b"a"), *(OutgoingRecord(topic, b"%d" % n) for n in range(100))]
    sent += [OutgoingRecord(topic, b"", partition=number, headers=(END_HEADER,)) for number in range(2)]
    transactions = opened(kafka, f"{topic}-id")
    transactions.commit(sent)
    transactions.close()

    found = read(kafka, topic, 2)

    assert sum(len(records) for records in found.values()) == len(sent)
    assert all(records[-1].headers for records in found.values())


def test_of_a_fenced_owners_batch_nothing_is_readable(kafka: str) -> None:
    topic = new_topic(kafka, 1)
    first = opened(kafka, f"{topic}-id")
    second = opened(kafka, f"{topic}-id")
    with pytest.raises(Fenced):
        first.commit([OutgoingRecord(topic, b"old", b"k", 1)] * 10_000)
    second.commit([OutgoingRecord(topic, b"new", b"k", 1)] * 3)
    first.close()
    second.close()

    assert [record.value for record in read(kafka, topic, 1)[0]] == [b"new"] * 3


def test_what_is_not_written_in_time_is_not_committed_in_part(kafka: str) -> None:
    gone, journal = users_topic(kafka, {}), new_topic(kafka, 1)
    transactions = opened(kafka, f"{journal}-id")
    transactions.keep_open([gone, journal])
    transactions._requests.timeout_s = 2.0  # it gives up before the broker does
    delete_topic(kafka, gone)
    with pytest.raises(Doubtful):
        transactions.commit([OutgoingRecord(gone, b"output"), OutgoingRecord(journal, b"commit")])
    transactions.close()
    # Who is next ends what was left open.
    successor = opened(kafka, f"{journal}-id")
    successor.commit([OutgoingRecord(journal, b"next")])
    successor.close()
    assert [record.value for record in read(kafka, journal, 1)[0]] == [b"next"]


def test_it_is_told_when_all_is_written_and_not_yet_committed(kafka: str) -> None:
    name = new_topic(kafka, 1)
    transactions = opened(kafka, f"writer-{name}")
    ends: list[int] = []
    topic_end = TopicEnd(KafkaSettings(kafka), name)
    transactions.commit(
        [OutgoingRecord(name, b"1"), OutgoingRecord(name, b"2")],
        written=lambda: ends.extend((topic_end.ask(hidden=True), topic_end.ask())),
    )
    transactions.close()
    assert ends == [2, 0]
    wait_until(lambda: topic_end.ask() == 3, "the commit to be seen")
    topic_end.close()


def test_what_a_failed_commit_has_written_is_never_committed(kafka: str) -> None:
    own, other = new_topic(kafka, 1), users_topic(kafka, {"max.message.bytes": "1000"})
    transactions = opened(kafka, f"{own}-id")
    with pytest.raises(RecordsRefused, match=other):
        transactions.commit([OutgoingRecord(own, b"written"), OutgoingRecord(other, urandom(2_000))])
    with pytest.raises(RecordsRefused, match=other):
        transactions.commit([OutgoingRecord(own, b"behind it")])
    transactions.close()
    successor = opened(kafka, f"{own}-id")
    successor.commit([OutgoingRecord(own, b"next")])
    successor.close()
    assert [record.value for record in read(kafka, own, 1)[0]] == [b"next"]


def test_a_batch_that_is_too_large_for_its_topic_is_cut(kafka: str) -> None:
    topic = users_topic(kafka, {"max.message.bytes": "3000"})
    values = [urandom(500) for _ in range(40)]
    transactions = opened(kafka, f"{topic}-id")
    for _ in range(2):
        transactions.commit([OutgoingRecord(topic, value, b"k", 7) for value in values])
    transactions.close()
    found = read(kafka, topic, 1)[0]
    assert [(each.key, each.value, each.timestamp) for each in found] == [(b"k", v, 7) for v in values * 2]


class Losing:
    """Loses the connections of some transactions."""

    def __init__(self, transactions: Transactions) -> None:
        self._requests = transactions._requests
        self._answer_of = self._requests.answer_of
        self._left = -1
        self._requests.answer_of = self._answer  # type: ignore[method-assign]

    def now(self) -> None:
        for connection in list(self._requests._client._manager._conns.values()):
            connection.transport._sock.shutdown(SHUT_RDWR)

    def before_answer(self, number: int) -> None:
        """Once, after the broker has got the request, and before its answer is read. `number`: from 0."""
        self._left = number

    def _answer(self, future: Any) -> Any:
        if self._left == 0:
            self._requests._net.poll(timeout_ms=0)  # hands to the kernel what is to be sent
            self.now()
        self._left -= 1
        return self._answer_of(future)


def test_a_topic_that_is_missing_holds_up_no_commit(kafka: str) -> None:
    topic = new_topic(kafka, 1)
    transactions = opened(kafka, f"{topic}-id")
    with ThreadPoolExecutor(1) as pool:
        warm = pool.submit(transactions.warm, [f"{topic}-missing"])
        transactions.commit([OutgoingRecord(topic, b"meanwhile")])
        assert not warm.done()
        ensure_topics(KafkaSettings(kafka), [Topic(f"{topic}-missing")])
        warm.result(PATIENCE_S)
    transactions.close()
    assert len(read(kafka, topic, 1)[0]) == 1


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_transaction_that_was_expected_and_did_not_come_is_ended(kafka: str, is_lost: bool) -> None:
    topic = new_topic(kafka, 1)
    transactions = opened(kafka, f"{topic}-id")
    losing = Losing(transactions)
    transactions.commit([OutgoingRecord(topic, b"first")])
    transactions.expect_another()
    if is_lost:
        losing.now()
    transactions.close_unused(0)
    transactions.close_unused(0)
    transactions.commit([OutgoingRecord(topic, b"second")])
    transactions.close()
    assert [record.value for record in read(kafka, topic, 1)[0]] == [b"first", b"second"]


@pytest.mark.parametrize("moment", ["between two commits", "before an answer", "before the end"])
def test_a_connection_that_is_lost_loses_and_repeats_nothing(kafka: str, moment: str) -> None:
    topics = [new_topic(kafka, 1) for _ in range(2)]
    transactions = opened(kafka, f"{topics[0]}-id")
    losing = Losing(transactions)
    transactions.commit([OutgoingRecord(topic, b"0") for topic in topics])
    for number in range(3):
        if moment == "between two commits":
            losing.now()
        elif moment == "before an answer":  # to what partitions there are, to the records, to the end
            losing.before_answer(number)
        written = losing.now if moment == "before the end" else (lambda: None)
        transactions.commit(
            [OutgoingRecord(topic, b"%d" % (number + 1)) for topic in topics], written=written
        )
    transactions.close()
    for topic in topics:
        assert [record.value for record in read(kafka, topic, 1)[0]] == [b"0", b"1", b"2", b"3"]


def test_a_commit_that_waits_ends_when_its_transactions_are_closed(kafka: str) -> None:
    gone = users_topic(kafka, {})
    transactions = opened(kafka, f"{gone}-id")
    transactions.keep_open([gone])
    delete_topic(kafka, gone)
    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(transactions.commit, [OutgoingRecord(gone, b"cannot be written")])
        wait_until(transactions._lock.locked, "the commit to be tried")
        transactions.close()
        assert isinstance(commit.exception(PATIENCE_S), Doubtful)
    sent = transactions._requests.sent
    with pytest.raises(Doubtful):
        transactions.commit([OutgoingRecord(gone, b"after the end")])
    assert transactions._requests.sent == sent


def test_rows_of_the_future_are_taken_by_own_topics_and_refused_for_good_by_others(kafka: str) -> None:
    own, other = new_topic(kafka, 1), users_topic(kafka, {})
    ahead_ms = int(time() * 1000) + 2 * 3_600_000
    transactions = opened(kafka, f"{own}-id")
    transactions.commit([OutgoingRecord(own, b"a window's end", timestamp_ms=ahead_ms)])
    with pytest.raises(RecordsRefused, match=rf"{other}.*timestamp"):
        transactions.commit([OutgoingRecord(other, b"too early", timestamp_ms=ahead_ms)])
    transactions.close()
    assert len(read(kafka, own, 1)[0]) == 1


def test_a_new_owner_that_has_nothing_to_commit_is_not_fenced_by_the_broker(kafka: str) -> None:
    topic, neighbours = new_topic(kafka, 1), new_topic(kafka, 1)
    quiet, forgotten = opened(kafka, f"{topic}-id"), opened(kafka, f"{neighbours}-id")
    quiet.keep_open([topic])
    leave_open(forgotten, OutgoingRecord(neighbours, b"never committed"))
    ends = TopicEnd(KafkaSettings(kafka), neighbours)
    quiet.close_unused(0)
    # A reader gets past it when the broker has ended it: that was begun after the other one.
    wait_until(lambda: ends.ask() == ends.ask(hidden=True), "the broker to end what was forgotten")
    with pytest.raises((Fenced, Doubtful)):
        forgotten.commit([OutgoingRecord(neighbours, b"too late")])
    quiet.commit([OutgoingRecord(topic, b"the first row")])
    assert [record.value for record in read(kafka, topic, 1)[0]] == [b"the first row"]
    for each in (quiet, forgotten, ends):
        each.close()


def test_far_from_the_broker_a_commit_waits_for_two_answers(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, other = new_topic(kafka, 1), new_topic(kafka, 1)
    transactions = opened(kafka, f"{topic}-id")
    transactions.warm([topic, other])

    committed = {topic: 0, other: 0}

    def requests_of(to: str, *, again: bool) -> int:
        committed[to] += 1
        return transactions.commit([OutgoingRecord(to, b"row")], again=again)

    def is_expected() -> None:
        wait_until(lambda: transactions._told, "the coordinator to expect the next commit")

    assert requests_of(topic, again=True) == 3, "the partitions, the records and the end"
    assert not transactions._told, "it is near, so no thread tells the next one"
    monkeypatch.setattr(transactions_module, "FAR_MS", 0.0)
    # While the broker ends the transaction before, it has to be told the partitions more than once.
    assert requests_of(topic, again=True) >= 3, "it was not expected, and the next one is"
    is_expected()
    ends = TopicEnd(KafkaSettings(kafka), topic)
    wait_until(lambda: ends.ask() == ends.ask(hidden=True), "the open transaction to hide nothing")
    assert requests_of(topic, again=True) == 2, "the records and the end"
    is_expected()
    assert requests_of(other, again=False) >= 3, "not what was expected: it is told then"
    for name, count in committed.items():
        assert len(read(kafka, name, 1)[0]) == count
    transactions.close()
    ends.close()


def test_so_many_rows_as_are_read_whole_are_one_request(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transactions, topic = opened(kafka, f"tx-{uuid4().hex[:8]}"), new_topic(kafka, 1)
    client = transactions._requests._client
    send, sent = client.send, []

    def noted(node: Any, request: Any, **options: Any) -> Any:
        sent.append(type(request).__name__)
        return send(node, request, **options)

    monkeypatch.setattr(client, "send", noted)

    def writes_of(rows: int) -> int:
        columns = columns_of([OutgoingRecord(topic, b"x" * 90, b"key", 1) for _ in range(rows)])
        sent.clear()
        transactions.commit([OutgoingRows(topic, columns)])
        return sum(name.startswith("ProduceRequest") for name in sent)

    writes_of(1)  # the broker may answer first that it does not lead the new topic yet
    assert writes_of(4_500) == 1, "about 470,000 bytes"
    assert writes_of(9_000) == 2
    assert len(read(kafka, topic, 1)[0]) == 13_501
    transactions.close()


def test_an_owner_that_is_taken_over_between_two_commits_is_fenced(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its next transaction is open already."""
    monkeypatch.setattr(transactions_module, "FAR_MS", 0.0)
    topic = new_topic(kafka, 1)
    owner = opened(kafka, f"{topic}-id")
    owner.commit([OutgoingRecord(topic, b"first")], again=True)
    wait_until(lambda: owner._told, "the coordinator to expect the next commit")
    claimant = opened(kafka, f"{topic}-id")
    with pytest.raises(Fenced):
        owner.commit([OutgoingRecord(topic, b"late")], again=True)
    claimant.commit([OutgoingRecord(topic, b"second")])
    owner.close()
    claimant.close()
    assert [record.value for record in read(kafka, topic, 1)[0]] == [b"first", b"second"]


def test_what_is_written_is_compressed(kafka: str) -> None:
    topic = new_topic(kafka, 1)
    transactions = opened(kafka, f"{topic}-id")
    rows = [b'{"machine":"m1","power":%d,"on":true}' % n for n in range(100)]
    transactions.commit(OutgoingRecord(topic, row) for row in rows)
    transactions.close()
    consumer, partition = open_consumer(KafkaSettings(kafka)), TopicPartition(topic, 0)
    read_whole_batches(consumer)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    batches: list[Any] = []
    wait_until(lambda: batches.extend(consumer.poll(200).get(partition, ())) or batches, "a batch")
    consumer.close()
    assert sum(each.value.batch.size_in_bytes for each in batches) < sum(map(len, rows)) / 3
