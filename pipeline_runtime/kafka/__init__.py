"""Everything that uses kafka-python. Its errors leave this package as the few that the protocol knows."""

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import PeekedRecord, peek

__all__ = ["KafkaSettings", "PeekedRecord", "peek"]
