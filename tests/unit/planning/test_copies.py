"""Copies of elements at sites: what is added when one comes, what is taken out when one goes."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.planning.canvas import CARD_HEIGHT, CARD_WIDTH
from pipeline_runtime.planning.copies import (
    lacking,
    parts,
    refusal,
    site_word,
    with_copies,
    with_site,
    without_site,
)

NAMES = {"readings": "readings", "big": "big", "file": "file"}
LOCAL = ["readings", "big"]


def drawn() -> dict[str, Any]:
    """A source and a filter that run as one, and who reads them."""
    elements = [
        {
            "id": "readings",
            "type": "csv-replay",
            "params": {"path": "demo:{site}.csv", "rate": 5},
            "node": "edge-a",
            "ui": {"x": 0, "y": 0},
        },
        {
            "id": "big",
            "type": "filter",
            "params": {"condition": "value > 1"},
            "inputs": {"in": "readings"},
            "ui": {"x": 300, "y": 0},
        },
        {
            "id": "file",
            "type": "csv-sink",
            "params": {"file": "out.csv"},
            "inputs": {"in": "big"},
            "ui": {"x": 600, "y": 0},
        },
    ]
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "test"},
        "spec": {"elements": elements, "groups": [{"id": "edge-part", "elements": LOCAL}]},
    }


def at(*sites: str, document: dict[str, Any] | None = None, ids: list[str] = LOCAL) -> dict[str, Any]:
    return with_copies(document or drawn(), NAMES, ids, sites)[0]


def element(document: dict[str, Any], id: str) -> dict[str, Any]:
    return next(each for each in document["spec"]["elements"] if each["id"] == id)


def ids(document: dict[str, Any]) -> list[str]:
    return [each["id"] for each in document["spec"]["elements"]]


def test_each_copy_says_its_site_and_reads_within_it() -> None:
    given = drawn()
    document, copied = with_copies(given, NAMES, LOCAL, ["Hall 1", "yard"])
    assert given == drawn()
    assert copied == ["readings", "readings-yard", "big", "big-yard"]
    first, other = element(document, "readings"), element(document, "readings-yard")
    assert (first["title"], first["site"], first["params"]["path"]) == (
        "readings, Hall 1",
        "Hall 1",
        "demo:hall-1.csv",
    )
    assert "node" not in first
    assert first["copy_of"] == {
        "part": "readings",
        "element": "readings",
        "params": {"path": "demo:{site}.csv"},
    }
    assert (other["copy_of"], other["params"]) == (first["copy_of"], {"path": "demo:yard.csv", "rate": 5})
    assert element(document, "big-yard")["inputs"] == {"in": "readings-yard"}
    assert document["spec"]["groups"] == [
        {"id": "edge-part", "elements": LOCAL},
        {"id": "edge-part-yard", "elements": ["readings-yard", "big-yard"]},
    ]
    assert parts(document) == {"readings": {"Hall 1": LOCAL, "yard": ["readings-yard", "big-yard"]}}
    parse_document(document)


def test_who_reads_them_from_outside_reads_all_of_them() -> None:
    document = at("Hall 1", "yard")
    assert element(document, "file")["inputs"] == {"in": "big-all"}
    merge = element(document, "big-all")
    assert (merge["type"], merge["title"]) == ("merge", "big, all sites")
    assert merge["inputs"] == {"in1": "big", "in2": "big-yard"}
    before, all_of, reader = (element(document, id)["ui"]["x"] for id in ("big", "big-all", "file"))
    assert before + CARD_WIDTH < all_of < all_of + CARD_WIDTH < reader
    for a, b in itertools.combinations((each["ui"] for each in document["spec"]["elements"]), 2):
        assert abs(a["x"] - b["x"]) >= CARD_WIDTH or abs(a["y"] - b["y"]) >= CARD_HEIGHT


def test_a_site_that_comes_gets_its_copy_and_nothing_else_is_touched() -> None:
    document = at("Hall 1", "yard")
    kept = copy.deepcopy(document)
    later = with_site(document, NAMES, "Barn")
    assert document == kept
    assert set(ids(later)) - set(ids(document)) == {"readings-barn", "big-barn"}
    assert element(later, "readings-barn")["params"]["path"] == "demo:barn.csv"
    assert element(later, "readings-barn")["title"] == "readings, Barn"
    assert element(later, "big-all")["inputs"] == {"in1": "big", "in2": "big-yard", "in3": "big-barn"}
    untouched = [id for id in ids(document) if id != "big-all"]
    assert [element(later, id) for id in untouched] == [element(document, id) for id in untouched]
    assert with_site(later, NAMES, "Barn") == later, "done twice, it is done once"


def test_in_which_order_sites_are_named_changes_nothing() -> None:
    document = at("Hall 1", "yard")
    together = with_site(with_site(document, NAMES, "Barn"), NAMES, "Attic")
    turned = with_site(with_site(document, NAMES, "Attic"), NAMES, "Barn")

    def runs(found: dict[str, Any]) -> Any:
        return {
            each["id"]: (
                each["type"],
                each.get("params"),
                each.get("site"),
                set((each.get("inputs") or {}).values()),
            )
            for each in found["spec"]["elements"]
        }

    assert runs(together) == runs(turned)


def test_what_goes_is_given_back_and_what_comes_again_has_other_ids() -> None:
    document = with_site(at("Hall 1", "yard"), NAMES, "Barn")
    without = without_site(document, "yard")
    assert set(ids(document)) - set(ids(without)) == {"readings-yard", "big-yard"}
    assert element(without, "big-all")["inputs"] == {"in1": "big", "in2": "big-barn"}
    assert [group["id"] for group in without["spec"]["groups"]] == ["edge-part", "edge-part-barn"]
    assert without_site(without, "yard") == without
    again = with_site(without, NAMES, "yard", {"readings-yard", "big-yard"})
    assert lacking(without, "yard") == ["readings"]
    assert {"readings-yard-2", "big-yard-2"} < set(ids(again))
    assert element(again, "big-yard-2")["inputs"] == {"in": "readings-yard-2"}
    assert element(again, "big-all")["inputs"]["in3"] == "big-yard-2"
    third = with_site(without_site(again, "yard"), NAMES, "yard")
    assert {"readings-yard", "big-yard"} < set(ids(third))


def test_the_first_site_may_go_but_never_the_last() -> None:
    document = without_site(at("Hall 1", "yard"), "Hall 1")
    assert ids(document) == ["file", "readings-yard", "big-yard", "big-all"] or "big" not in ids(document)
    assert element(document, "big-all")["inputs"] == {"in1": "big-yard"}
    assert element(document, "file")["inputs"] == {"in": "big-all"}
    assert without_site(document, "yard") == document
    back = with_site(document, NAMES, "Hall 1")
    assert element(back, "readings-hall-1")["params"]["path"] == "demo:hall-1.csv"
    assert element(back, "big-all")["inputs"] == {"in1": "big-yard", "in2": "big-hall-1"}


@pytest.mark.parametrize("sites", [["a", "b", "c", "d", "e", "f"], ["a", "b"]])
def test_more_streams_than_a_merge_has_inputs_are_merged_in_steps_each_once(sites: list[str]) -> None:
    document = at(*sites)
    for site in ("c", "d", "e", "f"):
        document = with_site(document, NAMES, site)

    def streams(id: str) -> list[str]:
        each = element(document, id)
        if each["type"] != "merge":
            return [id]
        return [stream for source in each["inputs"].values() for stream in streams(source)]

    assert sorted(streams("file")) == ["file"]
    read = sorted(streams(element(document, "file")["inputs"]["in"]))
    assert read == ["big", "big-b", "big-c", "big-d", "big-e", "big-f"]
    for site in ("b", "d", "e", "f", "c"):
        document = without_site(document, site)
    assert streams(element(document, "file")["inputs"]["in"]) == ["big"]
    parse_document(document)


def test_two_that_read_the_same_stream_share_what_joins_it() -> None:
    document = drawn()
    document["spec"]["elements"].append({"id": "again", "type": "csv-sink", "inputs": {"in": "big"}})
    document = at("a", "b", document=document)
    assert [each["type"] for each in document["spec"]["elements"]].count("merge") == 1
    assert element(document, "again")["inputs"] == element(document, "file")["inputs"]


def test_what_was_changed_at_a_site_is_what_the_next_one_gets() -> None:
    document = at("a", "yard")
    element(document, "readings")["params"].update({"path": "demo:plant-a.csv", "rate": 9})
    element(document, "readings")["title"] = "mine"
    later = with_site(document, {"readings": "mine", "big": "big, a"}, "Barn")
    barn = element(later, "readings-barn")
    assert (barn["params"], barn["title"]) == ({"path": "demo:plant-barn.csv", "rate": 9}, "mine, Barn")
    assert element(later, "readings")["title"] == "mine"
    # Nothing but the parameters that named the site when they were drawn.
    assert element(later, "big-barn")["params"] == {"condition": "value > 1"}


def test_elements_that_stood_at_a_site_when_they_were_copied_name_it_in_their_parameters() -> None:
    document = drawn()
    for each in document["spec"]["elements"][:2]:
        each.pop("node", None)
        each["site"] = "Hall 1"
    document["spec"]["elements"][0]["params"]["path"] = "demo:hall-1.csv"
    document = at("yard", document=document)
    assert element(document, "readings-yard")["params"]["path"] == "demo:yard.csv"
    assert element(with_site(document, NAMES, "Barn"), "readings-barn")["params"]["path"] == "demo:barn.csv"


def test_what_runs_as_one_is_copied_as_one_and_what_stands_at_several_sites_is_not() -> None:
    assert refusal(drawn(), NAMES, ["big"]) == "big runs as one with readings: select that, too."
    document = at("a", "b")
    assert refusal(document, {}, ids(document)) == "They are at several sites already: a, b."
    assert refusal(document, {}, LOCAL) is None


def test_what_is_to_be_apart_is_so_at_each_site() -> None:
    document = at("a", "b")
    element(document, "readings")["apart"] = ["big", "file"]
    element(document, "file")["apart"] = ["big-b"]
    later = with_site(document, NAMES, "c")
    assert element(later, "readings-c")["apart"] == ["big-c", "file"]
    assert element(without_site(later, "b"), "file")["apart"] == []


def test_of_two_parts_each_gets_its_copy_and_reads_all_of_the_other() -> None:
    document = drawn()
    document["spec"]["groups"] = []
    document = at("a", "b", document=document, ids=["readings"])
    document = at("a", "b", document=document, ids=["big"])
    assert list(parts(document)) == ["readings", "big"]
    later = with_site(document, NAMES, "c")
    assert set(ids(later)) - set(ids(document)) == {"readings-c", "big-c"}
    assert element(later, "readings-all")["inputs"] == {
        "in1": "readings",
        "in2": "readings-b",
        "in3": "readings-c",
    }
    assert element(later, "big-c")["inputs"] == {"in": "readings-all"}


def test_a_sites_name_becomes_a_word_of_topics_and_ids() -> None:
    assert [site_word(site) for site in ("Hall 1", "Küche / Süd", "…")] == ["hall-1", "k-che-s-d", "site"]
