"""Finds the position at which a group begins in its inputs, for a CLAIM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from pipeline_runtime.batch.inputs import GroupInput, as_positioned, group_inputs, position_keys
from pipeline_runtime.journal.records import Boundary, Ends
from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings
from pipeline_runtime.kafka.topics import TopicMissing
from pipeline_runtime.kafka.transactions import Doubtful
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.input_offsets import InputOffsets
from pipeline_runtime.replica.stalls import skipped
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.topic_changes import TopicChange, renewed
from pipeline_runtime.replica.topic_guard import TopicGuard


class Places:
    def __init__(
        self,
        spec: GroupSpec,
        kafka: KafkaSettings,
        state: ReplicaState,
        guard: TopicGuard,
        check_not_rewound: Callable[[], None],
    ) -> None:
        self._spec = spec
        self._kafka = kafka
        self._state = state
        self._guard = guard
        self._check_not_rewound = check_not_rewound

    def inputs(self, definition: GroupSpec, ends: Ends) -> tuple[GroupInput, ...]:
        """Returns the definition's inputs, with as many partitions of the users' topics as `ends` has. If the
        group has no position in such a topic yet, it reads all partitions that the topic has now. Raises
        Doubtful."""
        inputs = as_positioned(group_inputs(definition), ends)
        new = [
            item
            for item in inputs
            if item.all_partitions and item.topic is not None and not position_keys(ends, item.topic)
        ]
        if not new:
            return inputs
        try:
            seen = self._guard.look(new)
        except KafkaError as error:
            raise Doubtful(f"Kafka did not say how the topics of {self._spec.id} are ({error})") from error
        return tuple(
            replace(item, partitions=max(item.partitions, len(found.first)))
            if item in new and (found := seen.get(item.topic or "")) is not None
            else item
            for item in inputs
        )

    def start_ends(self, offsets: InputOffsets | None, now_ms: int, starts: Mapping[str, Any]) -> Ends:
        """Returns where the group's first batch begins, after the journal has been read to its end.

        The journal says so, or else the order (`ClaimOrder.positions`), or else it is the beginning of the
        inputs. Raises Doubtful. Raises LocalStateDamaged or RewindUndone if another replica has meanwhile
        rewound the batch from which this one would continue, or to which it would rewind.
        """
        with self._state.changed:
            self._check_not_rewound()
            if self._state.view.start is not None:
                return self._state.view.start
        assert offsets is not None, "a replica claims while it runs"
        try:
            beginning = offsets.beginning(now_ms, self._guard.look(group_inputs(self._spec)))
            return beginning | {key: at for key, at in starts.items() if key in beginning}
        except KafkaError as error:
            if isinstance(error, TopicMissing):
                self._guard.misses(error)
            raise Doubtful(
                f"Kafka did not say where the inputs of {self._spec.id} begin ({error})"
            ) from error

    def moves(self, starts: Mapping[str, Any], accepted: Collection[str]) -> Ends | None:
        """Returns where this definition's first batch begins, if that is not the end of the journal's last
        batch. That is so if the definition has other inputs, or if the users' topics have changed. Inputs
        that stay continue at their position. Raises Doubtful."""
        with self._state.changed:
            view = self._state.view
            if view.start is None:
                return None
            ends = view.moved(Boundary(view.last_seq, view.last_ends or view.start, 0)).ends
        inputs = _at_least(group_inputs(self._spec), ends)
        offsets = InputOffsets(self._kafka, inputs, {}, 0, self._state.poke)
        try:
            seen = self._guard.look(inputs)
            moved = offsets.moved(ends, starts, seen)
        except KafkaError as error:
            raise Doubtful(
                f"Kafka did not say where the new inputs of {self._spec.id} end ({error})"
            ) from error
        finally:
            offsets.close()
        found, changes = renewed(inputs, ends if moved is None else moved, seen, accepted)
        found, count = skipped(found, accepted)
        if count:
            text = f"{count:,} records were left out, as a person has chosen."
            changes = [*changes, TopicChange("skipped", "", text)]
        self._guard.passed(changes)
        return found if changes else moved


def _at_least(inputs: tuple[GroupInput, ...], ends: Ends) -> tuple[GroupInput, ...]:
    """Returns the inputs with as many partitions as the definition or the position has, whichever has
    more."""
    return tuple(
        replace(item, partitions=max(item.partitions, len(position_keys(ends, item.topic))))
        if item.topic is not None and item.external
        else item
        for item in inputs
    )
