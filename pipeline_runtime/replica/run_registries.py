"""Answers the questions of one run of a group to schema registries, and remembers the answers.

A task may run code of any author. So it gets only what its group's definition needs: schemas of the
registries that the group's topics name, and numbers of the schemas that the group's outputs are written with.

A number stands for one schema in all batches of the group. Each COMMIT lists the numbers with digests of
their schemas (`Commit.schemas`). A registry may return another schema for a listed number, because it was set
up again or because its connection has another address. It may also return two schemas for one number in one
run. The batch is then not committed. So no two replicas read one record by two schemas.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pipeline_runtime.formats.schema_registry import (
    NoSuchSchema,
    RegisteredSchema,
    Registries,
    SchemaRegistryError,
)
from pipeline_runtime.formats.writing import avro_text
from pipeline_runtime.journal.records import Digests
from pipeline_runtime.model.desired import WayOn
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec

DIGESTS_MAX = 256
"""The most schemas of one registry that a COMMIT lists. It leaves out those that nobody has needed for the
longest time."""
_NAME_CHARACTERS_MAX = 100
_REFUSED_MAX = 1_000
"""The most unanswered questions that a run remembers. Without a limit, a task could ask any number."""
_NEEDED_MAX = 1_000
"""The most missing things that a run remembers. A task reports at most one for each partition."""


@dataclass(frozen=True)
class Place:
    """The place of the first waiting record of a partition."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Needed:
    """A schema or a number that a batch needs, and that the registry has not given."""

    why: str  # one line of sentences
    ask: Callable[[], object]  # asks the registry again; raises SchemaRegistryError while this is missing
    place: Place | None = None  # the record that waits, if one does
    unknown: bool = False  # the registry answers that it has no such schema
    way: WayOn | None = None  # a way to go on that a person may choose


class RunRegistries:
    """Implements formats.schema_registry.Registries. Safe for threads."""

    def __init__(self, spec: GroupSpec, registries: Registries, over: threading.Event) -> None:
        """`over`: set when the run is to end. After that, no registry is asked any more."""
        # Two inputs may read one topic by two registries.
        self._read = tuple(
            (item.topic, item.reading.registry)
            for item in spec.inputs
            if item.reading is not None and item.reading.registry is not None
        )
        self._written = tuple(
            (writing.format.registry, writing.subject, avro_text(writing.format, output.data_schema))
            for output in spec.outputs
            if (writing := output.writing) is not None
            and writing.format is not None
            and writing.format.registry is not None
        )
        self._registries = registries
        self._over = over
        self._lock = threading.Lock()  # guards what follows
        # Registry -> number -> the digests that this run was told, at most two, the newest last. A number
        # that somebody has asked for is the last one of its registry.
        self._told: dict[str, dict[str, tuple[str, ...]]] = {}
        self._asking = 0
        self._refused: dict[tuple[str, int], SchemaRegistryError] = {}
        self._needed: list[Needed] = []

    def __call__(self, name: str) -> _RunRegistry:
        return _RunRegistry(self, name)

    @property
    def is_asking(self) -> bool:
        """Returns whether a question to a registry is under way."""
        return self._asking > 0

    @property
    def needed(self) -> tuple[Needed, ...]:
        """Returns the missing schemas and numbers. It is empty if no batch of this run has failed for one."""
        with self._lock:
            return tuple(self._needed)

    # -- what is asked

    def schema(self, name: str, number: int) -> RegisteredSchema:
        """Returns the schema with a number in the registry of that name. Raises SchemaRegistryError."""
        if name not in [registry for _, registry in self._read]:
            raise SchemaRegistryError(f"this element reads no topic with the registry {_short(name)}.")
        try:
            with self._question():
                found = self._registries(name).schema(number)
        except SchemaRegistryError as error:
            with self._lock:
                self._refused[name, number] = error
                if len(self._refused) > _REFUSED_MAX:
                    del self._refused[next(iter(self._refused))]
            raise
        with self._lock:
            self._refused.pop((name, number), None)
            told = self._told.setdefault(name, {})
            others = [each for each in told.pop(str(number), ()) if each != found.digest]
            told[str(number)] = (*others[-1:], found.digest)
            if len(told) > DIGESTS_MAX:
                del told[next(iter(told))]
        return found

    def number(self, name: str, subject: str, schema: str) -> int:
        """Returns the number of a schema under a subject. Raises SchemaRegistryError."""
        if (name, subject, schema) not in self._written:
            raise SchemaRegistryError(f"this element has no such schema for the subject {_short(subject)}.")
        try:
            with self._question():
                return self._registries(name).number(subject, schema)
        except SchemaRegistryError as error:
            self._need(Needed(str(error), lambda: self._registries(name).number(subject, schema)))
            raise

    @contextmanager
    def _question(self) -> Iterator[None]:
        """Counts a question as under way while the context is open. Raises SchemaRegistryError if the run is
        to end."""
        if self._over.is_set():
            raise SchemaRegistryError("the element is being stopped, so no schema registry is asked.")
        with self._lock:
            self._asking += 1
        try:
            yield
        finally:
            with self._lock:
                self._asking -= 1

    # -- what records wait for

    def record_waits(self, place: Place, name: str, number: int) -> None:
        """Notes that the record at `place` waits for the schema with that number in the registry `name`."""
        if (place.topic, name) not in self._read:
            return
        with self._lock:
            error = self._refused.get((name, number))
        if error is None:
            return
        unknown = isinstance(error, NoSuchSchema)
        self._need(Needed(str(error), lambda: self._registries(name).schema(number), place, unknown))

    def _need(self, needed: Needed) -> None:
        with self._lock:
            if len(self._needed) < _NEEDED_MAX:
                self._needed.append(needed)

    def confirm(self, journal: Digests, seq: Seq, accepted: Collection[str] = ()) -> Digests:
        """Returns the digests for the COMMIT of the batch `seq`. `journal`: those of the last COMMIT.
        `accepted`: the `WayOn.id` of each way that a person has chosen.

        Raises SchemaRegistryError if a registry has returned another schema for a number than the journal
        has, and no person has accepted that for this batch. Raises it also if a registry has returned two
        schemas for one number in this run.
        """
        with self._lock:
            told = {name: dict(found) for name, found in self._told.items()}
        for name, number, known, digests in _others(told, journal):
            way = None if known in (None, digests[-1]) else _way(name, number, digests[-1], seq)
            if len(digests) > 1 or way is None or way.id not in accepted:
                raise self._differs(name, number, known, way)
        newest = {name: {number: each[-1] for number, each in found.items()} for name, found in told.items()}
        return joined(journal, newest)

    def _differs(self, name: str, number: str, known: str | None, way: WayOn | None) -> SchemaRegistryError:
        """Returns the error of a batch whose registry has another schema for a number than before. `known`:
        the digest in the journal, if it has one. Without one, any schema will do for the next run."""
        why = (
            f"The schema registry {_short(name)} says another schema {number} than when earlier records were"
            " read. It was set up again, or its connection leads to another one."
        )

        def ask() -> None:
            found = self._registries(name).schema(int(number))
            if known is not None and found.digest != known:
                raise SchemaRegistryError(why)

        self._need(Needed(why, ask, way=way))
        return SchemaRegistryError(why)


class _RunRegistry:
    """Implements formats.schema_registry.Registry."""

    def __init__(self, run: RunRegistries, name: str) -> None:
        self._run = run
        self._name = name

    def schema(self, number: int) -> RegisteredSchema:
        return self._run.schema(self._name, number)

    def number(self, subject: str, schema: str) -> int:
        return self._run.number(self._name, subject, schema)


def joined(before: Digests, told: Digests) -> Digests:
    """Returns `before` with the digests in `told` added: registry -> number -> digest. The newest come last,
    and each registry has at most DIGESTS_MAX."""
    found = {}
    for name in before | told:
        new = told.get(name, {})
        known = {number: digest for number, digest in before.get(name, {}).items() if number not in new}
        found[name] = dict([*known.items(), *new.items()][-DIGESTS_MAX:])
    return found


def _others(
    told: Mapping[str, Mapping[str, tuple[str, ...]]], journal: Digests
) -> list[tuple[str, str, str | None, tuple[str, ...]]]:
    """Returns the numbers that do not stand for one schema: the registry, the number, its digest in the
    journal if that has one, and the digests that the run was told."""
    return [
        (name, number, known, digests)
        for name, found in told.items()
        for number, digests in found.items()
        for known in [journal.get(name, {}).get(number)]
        if len(digests) > 1 or known not in (None, digests[-1])
    ]


def _way(name: str, number: str, digest: str, seq: Seq) -> WayOn:
    """The choice is for one batch. So it does not act again if the registry is set up a second time."""
    return WayOn(
        id=f"schema {number} {digest} {seq} {name}",
        title="Read by the new schema",
        cost=f"From here on, records with the number {number} are read by the schema that the registry has"
        " now. If they were written with the earlier one, their values are wrong.",
    )


def _short(name: object) -> str:
    return f'"{str(name)[:_NAME_CHARACTERS_MAX]}"'
