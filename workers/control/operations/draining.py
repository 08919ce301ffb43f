"""In which order the groups of an undeployment end, if some of them deliver to systems outside. Pure.

Those end first for which no other group writes. Each of the others ends when it has read what the groups
before it have put out, and what its own ingesters have taken in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pipeline_runtime.model.spec import GroupSpec
from workers.control.operations.deliveries import rows_words
from workers.control.operations.limits import asks_again, enter, has_failed, in_vain, wait
from workers.control.operations.model import Enter, Observed, Progress, ReadPositions, Step
from workers.control.operations.phases import OperationPhase as P

READ_MS = 90_000
"""How long groups that end together may take to read the last rows."""


def next_to_end(specs: Sequence[GroupSpec], going: Collection[str]) -> tuple[str, ...]:
    """Returns which groups end next, of those in `going`, which are all to end: those that read from no other
    of them. Groups that read from each other end together."""
    writer = {stream.topic: spec.group for spec in specs if spec.group in going for stream in spec.outputs}
    free = tuple(
        spec.group
        for spec in specs
        if spec.group in going
        and all(stream.external or writer.get(stream.topic) is None for stream in spec.inputs)
    )
    return free or tuple(going)


def enter_read(now_ms: int) -> Enter:
    return Enter(P.READ, now_ms + READ_MS)


def read_last(progress: Progress, seen: Observed, now_ms: int) -> Step:
    """Waits until the groups that end next have read all that is there for them. Kafka's answer counts if it
    was asked for when nothing was taken in any more."""
    reading = {
        each.group: each
        for each in seen.groups
        if not each.paused and not has_failed(each, progress, seen, now_ms)
    }
    if progress.hurries or not reading or in_vain(progress, seen, now_ms):
        return enter(P.RETIRE, now_ms)
    if ingesting := [each for each in reading.values() if each.takes_in]:
        awaited = (f"{each.title} on {each.takes_in} to take in nothing more" for each in ingesting)
        return replace(wait(seen, *awaited), outdated=True)
    answer = seen.kafka
    if answer is None:
        return ReadPositions()
    behind = [
        f"{each.title} to read {rows_words(each)}"
        for each in answer.undelivered
        if each.rows and each.group in reading
    ]
    trouble = [f"Kafka to say what is not read: {answer.away}"] if answer.away else behind
    if not trouble:
        return enter(P.RETIRE, now_ms)
    return ReadPositions() if asks_again(answer, now_ms) else wait(seen, *trouble)
