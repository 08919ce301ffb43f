"""Whether a journal that begins at an offset still says which epoch owns."""

from __future__ import annotations

from pipeline_runtime.journal.records import Claim, Commit, Release, decode
from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings, TopicPartition, open_consumer
from pipeline_runtime.kafka.transactions import Doubtful

_POLL_MS = 500


def grants_from(kafka: KafkaSettings, topic: str, offset: int) -> bool:
    """Whether a COMMIT, CLAIM or RELEASE stands at `offset` or behind it: each tells the highest epoch.

    Doubtful when the broker does not answer.
    """
    consumer = None
    try:
        consumer = open_consumer(kafka)
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        consumer.seek(tp, max(offset, consumer.beginning_offsets([tp])[tp]))
        while consumer.position(tp) < end:
            records = consumer.poll(_POLL_MS).get(tp, [])
            if any(isinstance(decode(record.value), Commit | Claim | Release) for record in records):
                return True
        return False
    except KafkaError as error:
        raise Doubtful(f"{topic}: it could not be read ({error})") from error
    finally:
        if consumer is not None:
            consumer.close()
