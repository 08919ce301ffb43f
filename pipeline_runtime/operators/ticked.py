"""Turns the items that a user has ticked in a system into parameters of an element. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.names import listed_and
from pipeline_runtime.model.schema import Field, FieldType

_NAME_MAX = 120

Entry = dict[str, Any]
"""An entry of a list of a draft's parameters."""


def entries(params: Mapping[str, Any], name: str, place: str) -> list[Entry]:
    """Returns the list `name` of the parameters without entries that say no `place` yet."""
    given = params.get(name)
    found = given if isinstance(given, list) else []
    return [
        each
        for each in found
        if isinstance(each, dict) and isinstance(each.get(place), str | int) and each[place] != ""
    ]


def column_name(titles: Sequence[str], taken: Collection[str]) -> str:
    """Returns a new name for a column, after the last of the titles. If that is taken, the titles before it
    are put in front of it. Capital letters make no other name."""
    given = {each.casefold() for each in taken}
    words = [re.sub(r"\W+", "_", each).strip("_") for each in titles]
    name = ""
    for word in reversed([each for each in words if each]):
        name = f"{word}_{name}" if name else word
        if name[:_NAME_MAX].casefold() not in given:
            return name[:_NAME_MAX]
    name = (name or "value")[: _NAME_MAX - 5]
    numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each.casefold() not in given)


def new_columns(
    before: Iterable[Entry], ticked: Iterable[tuple[Sequence[str], FieldType | None, str, Entry]]
) -> list[Entry]:
    """Returns the entries `before`, and one for each that is ticked: its titles, its type, its unit, and what
    else belongs into the entry. A type of None is left out."""
    made = list(before)
    names = {str(each.get("name")) for each in made}
    for titles, type_, unit, rest in ticked:
        name = column_name(titles, names)
        names.add(name)
        entry: Entry = {"name": name}
        if type_ is not None:
            entry["type"] = str(type_)
        if unit:
            entry["unit"] = unit[:40]
        made.append({**entry, **rest})
    return made


def new_targets(
    before: Sequence[Entry], places: Iterable[tuple[str, Entry]], columns: Sequence[Field]
) -> list[Entry]:
    """Returns the entries `before`, and one for each place: its title, and what belongs into the entry. It
    gets the column of the same name. Without one its column is empty, so that the form asks for it: a value
    must not go to a machine by chance."""
    made = list(before)
    for title, place in places:
        free = [
            each.name for each in columns if each.name not in {str(entry.get("column")) for entry in made}
        ]
        like = [each for each in free if each.casefold() == column_name([title], ()).casefold()]
        made.append({"column": next(iter(like), ""), **place})
    return made


def registers(params: Mapping[str, Any], ticked: Sequence[Found]) -> list[tuple[str, Entry]]:
    """Returns the title, and what says the place, of each register of Modbus that is not there yet."""
    counted_from = 1 if params.get("first_address") == 1 else 0
    known = {
        f"{each.get('unit_id', 1)}/{each.get('kind', 'holding')}/{each['address']}"
        for each in entries(params, "registers", "address")
    }
    made = []
    for each in ticked:
        place = re.fullmatch(r"(\d{1,3})/([a-z]+)/(\d{1,5})", each.path)
        if place is None:
            continue
        unit_id, kind, address = int(place[1]), place[2], int(place[3]) + counted_from
        if f"{unit_id}/{kind}/{address}" not in known:
            behind = {} if unit_id == 1 else {"unit_id": unit_id}
            made.append((each.title, {"kind": kind, "address": address, **behind}))
    return made


def topics(params: Mapping[str, Any], ticked: Sequence[Found]) -> dict[str, Any]:
    """Returns the parameters of MQTT in. Raises ValueError if some topics hold objects and others do not."""
    objects = [each.path for each in ticked if each.holds is None]
    if objects and len(objects) < len(ticked):
        plain = [each.path for each in ticked if each.holds is not None]
        raise ValueError(
            f"an element reads JSON objects or plain values, not both: {listed_and(objects[:3])} "
            f"{'have' if len(objects) > 1 else 'has'} objects, {listed_and(plain[:3])} "
            f"{'have' if len(plain) > 1 else 'has'} plain values"
        )
    given = params.get("topics")
    before = [each for each in given if each] if isinstance(given, list) else []
    payload = "json" if objects else "plain"
    if before and payload != (params.get("payload") or "json"):
        raise ValueError(
            "the element reads topics of another kind of payload already; empty its topics first"
        )
    wanted = [*before, *(each.path for each in ticked if each.path not in before)]
    columns = entries(params, "columns", "name")
    known = {str(each.get("from") or each.get("name")) for each in columns if each.get("level") is None}
    if len(wanted) > 1 and not any(each.get("level") is not None for each in columns):
        columns = new_columns(columns, [(["topic"], FieldType.STRING, "", {"level": 0})])
    if objects:
        columns = fields(columns, ticked, known)
    elif not known:
        kinds = {each.holds for each in ticked}
        type_ = kinds.pop() if len(kinds) == 1 else FieldType.STRING
        title = ticked[0].path.rpartition("/")[2] if len(wanted) == 1 else "value"
        columns = new_columns(columns, [([title], type_, "", {})])
    return {**params, "topics": wanted, "payload": payload, "columns": columns}


def fields(columns: list[Entry], ticked: Sequence[Found], known: set[str]) -> list[Entry]:
    """Returns the columns, and one for each field of the messages that none of them holds yet. A field whose
    type differs between topics is a text."""
    types: dict[str, FieldType | None] = {}
    for part in (part for each in ticked for part in each.parts):
        types[part.name] = part.type if types.get(part.name, part.type) is part.type else FieldType.STRING
    names = {str(each["name"]) for each in columns}
    made = list(columns)
    for path, type_ in types.items():
        if path in known:
            continue
        name = column_name(re.split(r"[.\[\]]+", path), names)
        names.add(name)
        made.append({"name": name, "type": str(type_), **({} if path == name else {"from": path})})
    return made


AVRO = "Avro, or another format of a schema registry"
"""What a topic of Kafka is said to hold whose newest record begins as with a schema registry. Its
JSON Schema and Protobuf begin in the same way."""


def kafka_topic(params: Mapping[str, Any], ticked: Found) -> dict[str, Any]:
    """Returns the parameters of a reader of the topic: its format, and columns for the fields of its newest
    record. What that record does not tell stays as it was."""
    made = {**params, "topic": ticked.path}
    if ticked.parts:
        return {**made, "format": "json", "columns": fields([], [ticked], set())}
    if ticked.holds is not None:
        return {**made, "format": "text", "columns": [{"name": "value", "type": str(ticked.holds)}]}
    return {**made, "format": "avro"} if ticked.type == AVRO else made


def table_path(namespace: str, name: str) -> str:
    """Returns schema.table. A schema with a point in its name is quoted as in SQL. `table_at` reads it."""
    quoted = namespace.replace('"', '""')
    return f'"{quoted}".{name}' if "." in namespace or namespace.startswith('"') else f"{namespace}.{name}"


def table_at(path: str) -> tuple[str, str]:
    """Returns the schema and the name of a table. Without a schema it is that of all: "public"."""
    if quoted := re.fullmatch(r'"((?:[^"]|"")*)"\.(.*)', path, re.DOTALL):
        return quoted[1].replace('""', '"'), quoted[2]
    namespace, point, name = path.partition(".")
    return (namespace, name) if point else ("public", path)


def table(params: Mapping[str, Any], ticked: Found, columns: Sequence[Field]) -> dict[str, Any]:
    """Returns the parameters of PostgreSQL out: the table, the column for the event time if one of the
    table's columns waits for it, and the keys if the rows have them."""
    namespace, name = table_at(ticked.path)
    given = {each.name for each in columns}
    times = [
        each.name for each in ticked.parts if each.type is FieldType.TIMESTAMP and each.name not in given
    ]
    time = next(iter(times), None)
    keys = [each.name for each in ticked.parts if each.key]
    fits = set(keys) <= given | ({time} if time else set())
    return {
        **params,
        "namespace": namespace,
        "table": name,
        "time_column": time,
        "keys": keys if fits else [],
    }


def table_to_read(params: Mapping[str, Any], ticked: Found) -> dict[str, Any]:
    """Returns the parameters of PostgreSQL in: the table, its columns, and as rising column its key, if that
    is one whole number. Else the rising column is empty, so that the form asks for it: rows would be lost
    without a word by a column that does not rise."""
    namespace, name = table_at(ticked.path)
    keys = [each for each in ticked.parts if each.key]
    rises = len(keys) == 1 and keys[0].type is FieldType.INTEGER
    rising = keys[0].name if rises else ""
    columns = [{"name": each.name, "type": str(each.type)} for each in ticked.parts if each.type is not None]
    return {**params, "namespace": namespace, "table": name, "rising": rising, "columns": columns}
