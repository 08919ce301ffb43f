"""Copies of elements at several sites, each near its part of the sources, and the merges that join them.
Pure.

The rules are SpanEdge's (H. P. Sajjad et al., SEC 2016, doi:10.1109/SEC.2016.17). A local element has a copy
at each site. The copies at one site are connected with each other. An element that is not local reads the
copies of all sites. The editor asks for copies of the selected elements. A policy asks for copies at a site
that was added.

Each copy names the element that it is a copy of (`copy_of` in the document), so that a site that is added
later gets the same copies. Documents are plain data in a valid form, as they are stored. No argument is
changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pipeline_runtime.model.document import NAME_MAX, TITLE_MAX, parse_reference
from pipeline_runtime.operators.merge import Merge
from pipeline_runtime.planning.canvas import CARD_WIDTH, Point, beside_offset, free_place

SITE_MARK = "{site}"
"""Stands for the site in a text parameter, as in the topic "readings-{site}"."""
PORTS = tuple(port.name for port in Merge.inputs)
GAP = 80
Data = dict[str, Any]
Names = Mapping[str, str]
"""Element id -> the name that the user sees."""


def site_word(site: str) -> str:
    """Returns the site as it is written in parameters and ids: "Hall 1" becomes hall-1."""
    return _clean(site) or "site"


def parts(document: Data) -> dict[str, dict[str, list[str]]]:
    """Returns part -> site -> the elements of its copy at that site, in the document's order."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in _elements(document):
        if each.get("copy_of") and each.get("site"):
            found.setdefault(each["copy_of"]["part"], {}).setdefault(each["site"], []).append(each["id"])
    return found


def refusal(document: Data, names: Names, ids: Collection[str]) -> str | None:
    """Returns why these elements cannot have copies at sites, or None if they can."""
    for group in _groups(document):
        others = [id for id in group["elements"] if id not in ids]
        inside = next((id for id in group["elements"] if id in ids), None)
        if inside and others:
            return f"{_name(names, inside)} runs as one with {_name(names, others[0])}: select that, too."
    sites = {each["site"] for each in _elements(document) if each["id"] in ids and each.get("site")}
    if len(sites) > 1:
        return f"They are at several sites already: {', '.join(sorted(sites))}."
    return None


def with_copies(
    document: Data, names: Names, ids: Collection[str], sites: Sequence[str], spent: Collection[str] = ()
) -> tuple[Data, list[str]]:
    """Returns the document with copies of the elements at each of the sites, and the ids of originals and
    copies.

    The originals stay at their own site; without one they go to the first of `sites`. Streams among the
    copied elements stay within a site. An element outside that reads them reads the copies of all sites,
    merged. No new element gets an id in `spent`.
    """
    originals = [each for each in _elements(document) if each["id"] in ids]
    own = next((each["site"] for each in originals if each.get("site")), sites[0])
    part = _part(document, originals)
    standing = [_at(_marked(each, part), own, names) for each in originals]
    by_id = {each["id"]: each for each in standing}
    elements = [by_id.get(each["id"], each) for each in _elements(document)]
    groups = list(_groups(document))
    copies = {each["id"]: [each["id"]] for each in originals}
    for site in dict.fromkeys(site for site in sites if site != own):
        taken = {*spent, *(each["id"] for each in elements), *(group["id"] for group in groups)}
        fresh = _ids_at(site, standing, taken)
        offset = beside_offset(_places(elements), _places(standing))
        elements += [_copy(_at(each, site, names), fresh, offset) for each in standing]
        groups += _groups_at(groups, site, fresh, taken | {*fresh.values()})
        for id, name in fresh.items():
            copies[id].append(name)
    elements = _Readers(elements, names, copies, spent).read_all()
    return _replaced(document, elements, groups), [id for each in copies.values() for id in each]


def lacking(document: Data, site: str) -> list[str]:
    """Returns the parts that have no copy at this site."""
    return [part for part, sites in parts(document).items() if site not in sites]


def with_site(document: Data, names: Names, site: str, spent: Collection[str] = ()) -> Data:
    """Returns the document with a copy of each part at this site. The model for a copy is the first site that
    has all elements of the part."""
    for part in lacking(document, site):
        there = parts(document)[part]
        most = max(map(len, there.values()))
        model = next(ids for ids in there.values() if len(ids) == most)
        if refusal(document, names, model) is None:
            document, _ = with_copies(document, names, model, [site], spent)
    return document


def without_site(document: Data, site: str) -> Data:
    """Returns the document without the copies at this site, and without what merges read from them. An
    element that has no other copy stays."""
    there = (sites for sites in parts(document).values() if len(sites) > 1)
    gone = {id for sites in there for id in sites.get(site, ())}
    if not gone:
        return document
    elements = _elements(document)
    while True:
        kept = [_without(each, gone) for each in elements if each["id"] not in gone]
        empty = {each["id"] for each in kept if each["type"] == Merge.type and not each.get("inputs")}
        empty -= {each["id"] for each in elements if not each.get("inputs")}
        if not empty:
            break
        gone |= empty
    groups = [
        {**group, "elements": [id for id in group["elements"] if id not in gone]}
        for group in _groups(document)
    ]
    return _replaced(document, kept, [group for group in groups if group["elements"]])


# -- a copy ------------------------------------------------------------------------------------------


def _part(document: Data, originals: Sequence[Data]) -> str:
    """Returns the name of the elements' part: the name that they already have in common, else one made from
    the first element's id."""
    called = {each["copy_of"]["part"] if each.get("copy_of") else None for each in originals}
    if len(called) == 1 and (known := called.pop()) is not None:
        return str(known)
    return _free_id(parts(document), originals[0]["id"])


def _marked(element: Data, part: str) -> Data:
    """Returns the element with its mark as a copy: its part, which element of the part it is, and those of
    its parameters that name the site, as drawn."""
    before, site = element.get("copy_of"), element.get("site")
    if before:
        return {**element, "copy_of": {**before, "part": part}}
    mark = SITE_MARK if site is None else site_word(site)
    params = {
        key: marked
        for key, value in (element.get("params") or {}).items()
        if (marked := _with_word(value, mark, SITE_MARK)) != value or (site is None and _says(value))
    }
    return {
        **element,
        "copy_of": {"part": part, "element": element["id"], **({"params": params} if params else {})},
    }


def _says(value: Any) -> bool:
    return bool(_with_word(value, SITE_MARK, "") != value)


def _at(element: Data, site: str, names: Names) -> Data:
    """Returns the element at that site: its title, its place, and its parameters with the site's name."""
    before = element.get("site")
    if before == site:
        return element
    name = _name(names, element["id"])
    name = name.removesuffix(f", {before}") if before else name
    drawn = element["copy_of"].get("params") or {}
    params = dict(element.get("params") or {})
    for key in drawn.keys() & params.keys():
        as_drawn = before is None or params[key] == _with_word(drawn[key], SITE_MARK, site_word(before))
        # A parameter that was changed since it was copied names its site wherever the site's word stands
        # alone.
        source, mark = (drawn[key], SITE_MARK) if as_drawn else (params[key], site_word(before or ""))
        params[key] = _with_word(source, mark, site_word(site))
    rest = {key: value for key, value in element.items() if key != "node"}
    title = f"{name[: TITLE_MAX - len(site) - 2]}, {site}"
    return {**rest, "title": title, "site": site, **({"params": params} if params else {})}


def _with_word(value: Any, mark: str, word: str) -> Any:
    """Returns the value with `word` in place of `mark`, in each text, wherever `mark` stands alone."""
    if isinstance(value, str):
        if mark == SITE_MARK:
            return value.replace(mark, word)
        return re.sub(rf"(?<![A-Za-z0-9]){re.escape(mark)}(?![A-Za-z0-9])", word, value)
    if isinstance(value, list):
        return [_with_word(each, mark, word) for each in value]
    if isinstance(value, dict):
        return {key: _with_word(each, mark, word) for key, each in value.items()}
    return value


def _copy(element: Data, fresh: Mapping[str, str], offset: Point) -> Data:
    """Returns the copy with its new id, beside the other cards. It reads the copies of the elements that the
    original reads."""
    copy = {**element, "id": fresh[element["id"]]}
    if element.get("inputs"):
        copy["inputs"] = {port: _renamed(each, fresh) for port, each in element["inputs"].items()}
    if element.get("apart"):
        copy["apart"] = [fresh.get(id, id) for id in element["apart"]]
    if element.get("ui"):
        copy["ui"] = {**element["ui"], **_place(element).moved(offset)._asdict()}
    return copy


def _ids_at(site: str, originals: Iterable[Data], taken: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in originals:
        base = f"{each['copy_of']['element']}-{site_word(site)}"
        found[each["id"]] = _free_id({*taken, *found.values()}, base)
    return found


def _groups_at(
    groups: Iterable[Data], site: str, fresh: Mapping[str, str], taken: Collection[str]
) -> list[Data]:
    made: list[Data] = []
    for group in groups:
        if not all(id in fresh for id in group["elements"]):
            continue
        id = _free_id({*taken, *(each["id"] for each in made)}, f"{group['id']}-{site_word(site)}")
        title = {"title": f"{group['title']}, {site}"[:TITLE_MAX]} if group.get("title") else {}
        made.append({**group, **title, "id": id, "elements": [fresh[each] for each in group["elements"]]})
    return made


# -- who reads them ----------------------------------------------------------------------------------


class _Readers:
    """Makes each reader outside the copies read all of them: through the merge that the reader is, if it has
    enough free inputs, else through a merge put in front of it."""

    def __init__(
        self,
        elements: list[Data],
        names: Names,
        copies: Mapping[str, Sequence[str]],
        spent: Collection[str],
    ) -> None:
        self._elements = elements
        self._names = names
        self._copies = copies
        self._inside = {id for ids in copies.values() for id in ids}
        self._spent = spent
        self._made: list[Data] = []
        self._joined: dict[str, str] = {}  # stream -> the merge that joins the stream's copies

    def read_all(self) -> list[Data]:
        self._move_on()
        found = [each if each["id"] in self._inside else self._read(each) for each in self._elements]
        return [*found, *self._made]

    def _others(self, reference: str) -> list[str]:
        """Returns the same stream of the other copies."""
        id, port = parse_reference(reference)
        return [_reference(other, port) for other in self._copies.get(id, ()) if other != id]

    def _read(self, reader: Data) -> Data:
        inputs = dict(reader.get("inputs") or {})
        for port, reference in list(inputs.items()):
            streams = self._others(reference)
            free = _free_ports(reader, inputs)
            if len(free) >= len(streams):
                inputs |= dict(zip(free, streams, strict=False))
            elif streams:
                if reference not in self._joined:
                    self._joined[reference] = self._merge([reference, *streams], reference, reader)
                inputs[port] = self._joined[reference]
        return {**reader, "inputs": inputs} if inputs != (reader.get("inputs") or {}) else reader

    def _merge(self, streams: Sequence[str], of: str, reader: Data) -> str:
        """Adds a merge of the streams and returns its id. More streams than a merge has inputs take several
        merges."""
        most = len(PORTS)
        if len(streams) > most:
            streams = [*streams[: most - 1], self._merge(streams[most - 1 :], of, reader)]
        all_of = [*self._elements, *self._made]
        first = parse_reference(streams[0])[0]
        id = _free_id({*self._spent, *(each["id"] for each in all_of)}, f"{first}-all")
        made = {
            "id": id,
            "type": Merge.type,
            "title": f"{self._title(of)}, all sites",
            "inputs": dict(zip(PORTS, streams, strict=False)),
        }
        if reader.get("ui"):
            wanted = _place(reader).moved(Point(-CARD_WIDTH - GAP, 0))
            made["ui"] = free_place(_places(all_of), wanted)._asdict()
        self._made.append(made)
        return id

    def _title(self, reference: str) -> str:
        """Returns the element's name without its site, as the title of a merge."""
        id = parse_reference(reference)[0]
        site = next((each.get("site") for each in self._elements if each["id"] == id), None)
        return _name(self._names, id).replace(f", {site}", "")[: TITLE_MAX - 11]

    def _move_on(self) -> None:
        """Moves cards to the right, to make room for merges: those of the first reader that needs a merge,
        and all that stand as far right."""
        readers = [
            each
            for each in self._elements
            if each["id"] not in self._inside and each.get("ui") and self._needs_a_merge(each)
        ]
        if not readers:
            return
        from_x, by = min(_place(each).x for each in readers), Point(CARD_WIDTH + GAP, 0)
        self._elements = [
            {**each, "ui": {**each["ui"], **_place(each).moved(by)._asdict()}}
            if each["id"] not in self._inside and each.get("ui") and _place(each).x >= from_x
            else each
            for each in self._elements
        ]

    def _needs_a_merge(self, reader: Data) -> bool:
        inputs = reader.get("inputs") or {}
        more = sum(len(self._others(reference)) for reference in inputs.values())
        return more > len(_free_ports(reader, inputs))


def _free_ports(element: Data, inputs: Mapping[str, str]) -> list[str]:
    return [port for port in PORTS if port not in inputs] if element["type"] == Merge.type else []


def _without(element: Data, gone: Collection[str]) -> Data:
    """Returns the element without the inputs that read elements in `gone`. The other inputs of a merge move
    up."""
    if any(id in gone for id in element.get("apart") or ()):
        element = {**element, "apart": [id for id in element["apart"] if id not in gone]}
    inputs = element.get("inputs") or {}
    kept = {port: each for port, each in inputs.items() if parse_reference(each)[0] not in gone}
    if len(kept) == len(inputs):
        return element
    if element["type"] == Merge.type:
        kept = dict(zip(PORTS, (kept[port] for port in PORTS if port in kept), strict=False))
    rest = {key: value for key, value in element.items() if key != "inputs"}
    return {**rest, "inputs": kept} if kept else rest


# -- small things ------------------------------------------------------------------------------------


def _elements(document: Data) -> list[Data]:
    return list((document.get("spec") or {}).get("elements") or ())


def _groups(document: Data) -> list[Data]:
    return list(document["spec"].get("groups") or ())


def _replaced(document: Data, elements: list[Data], groups: list[Data]) -> Data:
    spec = {key: value for key, value in document["spec"].items() if key != "groups"}
    return {
        **document,
        "spec": {**spec, "elements": elements, **({"groups": groups} if groups else {})},
    }


def _place(element: Data) -> Point:
    ui = element.get("ui") or {}
    return Point(ui.get("x") or 0, ui.get("y") or 0)


def _places(elements: Iterable[Data]) -> list[Point]:
    return [_place(each) for each in elements if each.get("ui")]


def _name(names: Names, id: str) -> str:
    return names.get(id, id)


def _reference(id: str, port: str) -> str:
    return id if port == "out" else f"{id}.{port}"


def _renamed(reference: str, fresh: Mapping[str, str]) -> str:
    id, port = parse_reference(reference)
    return _reference(fresh[id], port) if id in fresh else reference


def _clean(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _free_id(taken: Collection[str], base: str) -> str:
    """Returns the first id that is not taken: base, base-2, base-3 …"""
    clean = _clean(base)[: NAME_MAX - 4].strip("-") or "element"
    number, found = 1, clean
    while found in taken:
        number += 1
        found = f"{clean}-{number}"
    return found
