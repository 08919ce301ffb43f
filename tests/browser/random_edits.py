"""A person who edits a draft at random, in lanes and as drawn, by mouse and keyboard, and undoes and redoes.

A model says after each edit what the draft has to be.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser.dashboard import Dashboard, middle
from tests.browser.drafts import Draft
from tests.waiting import wait_until

ELEMENTS_MOST = 7
TRIES_MAX = 20
LATENCIES_MS = (20, 200, 2000)
LANES_OF_CARDS = """() => {
  const lanes = [...document.querySelectorAll(".lane-box")].map((lane) =>
    [lane.dataset.lane, lane.getBoundingClientRect()]);
  return Object.fromEntries([...document.querySelectorAll(".react-flow__node-card")].map((card) => {
    const { left, right, top, bottom } = card.getBoundingClientRect();
    const lane = lanes.find(([, box]) =>
      box.left <= left && right <= box.right && box.top <= top && bottom <= box.bottom);
    return [card.dataset.id, lane ? lane[0] : null];
  }));
}"""
OUT_OF_VIEW = """canvas => {
  const room = canvas.getBoundingClientRect();
  return [...canvas.querySelectorAll(".react-flow__node-card, .lane-box")].filter((part) => {
    const { left, right, top, bottom } = part.getBoundingClientRect();
    return left < room.left || right > room.right || top < room.top + 50 || bottom > room.bottom - 60;
  }).length;
}"""
ZOOM = """canvas =>
  new DOMMatrix(getComputedStyle(canvas.querySelector(".react-flow__viewport")).transform).a"""
AT_REST = """async canvas => {
  const view = canvas.querySelector(".react-flow__viewport");
  const before = view.style.transform;
  for (let frame = 0; frame < 4; frame += 1) await new Promise(requestAnimationFrame);
  return view.style.transform === before;
}"""


class Editor:
    """Edits the draft as a person does, and keeps in `steps` what each step of undo has to lead to."""

    def __init__(self, dashboard: Dashboard, saved: Callable[[], dict[str, Any]], seed: int) -> None:
        self.dashboard = dashboard
        self.page = dashboard.page
        self.saved = saved
        self.random = random.Random(seed)
        self.steps = [Draft.of(saved())]
        self.at = 0
        # the whole document of some steps
        self.documents = {0: saved()}
        self.done: list[str] = []
        self.last = ""
        self.named = 0
        self.edits: list[tuple[Callable[[], bool], int]] = [
            (self.drop_on_a_lane, 6),
            (self.drop_two_on_a_lane, 2),
            (self.undo_some, 3),
            (self.undo_and_redo, 2),
            (self.move_as_drawn, 1),
            (self.rename, 2),
            (self.change_latency, 2),
            (self.pin_in_the_inspector, 1),
            (self.change_condition, 2),
            (self.add, 1),
            (self.remove, 2),
            (self.duplicate, 2),
            (self.copy_and_paste, 2),
            (self.connect, 3),
            (self.disconnect, 2),
            (self.run_as_one, 1),
            (self.write_a_note, 1),
        ]

    @property
    def draft(self) -> Draft:
        return self.steps[self.at]

    def edit(self) -> None:
        """Makes one edit. Those that are not possible now are drawn again."""
        edits, weights = zip(*self.edits, strict=True)
        for _ in range(TRIES_MAX):
            if self.random.choices(edits, weights)[0]():
                return
        raise AssertionError(f"no edit was possible after {self.done[-5:]}")

    # -- looks

    def look(self) -> None:
        """The server has the draft of this step, and the cards lie in the lanes that it says."""
        self.expect_draft()
        self.arrange("Lanes")
        wanted = {id: self.draft.lane(id) for id in self.draft.elements}
        found: dict[str, Any] = {}

        def lie() -> bool:
            found.update(now=self.page.evaluate(LANES_OF_CARDS))
            return bool(found["now"] == wanted)

        wait_until(lie, lambda: f"cards in {wanted}, not in {found['now']}; {self.story()}")

    def expect_draft(self) -> None:
        self.leave_fields()
        whole = self.documents.get(self.at)

        def same() -> bool:
            document = self.saved()
            return document == whole if whole else Draft.of(document) == self.draft

        wait_until(same, lambda: f"{whole or self.draft}, not {self.saved()}; {self.story()}")
        self.documents[self.at] = self.saved()

    def story(self) -> str:
        return "edits: " + ", ".join(self.done)

    # -- steps

    def step(self, what: str, draft: Draft) -> bool:
        """`draft` is what an edit has made. Nothing is a step that changes nothing."""
        self.done.append(what)
        if draft == self.draft:
            return True
        self.last = what
        self.steps = [*self.steps[: self.at + 1], draft]
        self.at += 1
        self.documents = {at: each for at, each in self.documents.items() if at < self.at}
        return True

    def undo_some(self) -> bool:
        return self.go(-self.random.randint(1, 4))

    def undo_and_redo(self) -> bool:
        back = min(self.at, self.random.randint(1, 8))
        return self.go(-back) and self.go(self.random.randint(0, back))

    def go(self, steps: int) -> bool:
        """Undoes or redoes so many steps by key. More than there are do nothing."""
        self.leave_fields()
        for _ in range(abs(steps)):
            self.dashboard.press("ControlOrMeta+z" if steps < 0 else "ControlOrMeta+y")
        self.at = max(0, min(len(self.steps) - 1, self.at + steps))
        self.done.append(f"{'undo' if steps < 0 else 'redo'} {abs(steps)}")
        self.last = ""
        return True

    # -- places

    def drop_on_a_lane(self) -> bool:
        id = self.some_that_runs()
        return id is not None and self.drop([id])

    def drop_two_on_a_lane(self) -> bool:
        ids = self.two_that_run()
        return ids is not None and self.drop(ids)

    def drop(self, ids: list[str]) -> bool:
        self.arrange("Lanes")
        self.select(*ids)
        lanes, dragged = self.dashboard.lane, ids[-1]
        place, target = self.random.choice(
            [
                ({"node": "edge-a"}, lanes("edge-a")),
                ({"node": "edge-b"}, lanes("edge-b")),
                ({"site": "Hall 1"}, lanes("Any node at Hall 1")),
                ({"site": "Yard"}, self.dashboard.canvas.get_by_label("Site Yard", exact=True)),
                ({}, lanes("Fogline chooses")),
            ]
        )
        self.hang_over(dragged, target)
        self.page.mouse.up()
        draft = deepcopy(self.draft)
        for id in draft.with_their_groups(ids):
            element = draft.elements[id]
            if element["type"] == "live-chart":
                continue
            for kind in ("node", "site"):
                element.pop(kind, None)
            element.update(place)
        return self.step(f"drop {' and '.join(ids)} on {place}", draft)

    def hang_over(self, id: str, target: Locator) -> None:
        """Drags the card until it hangs over the lane, or over what a site's frame has beside its lanes."""
        card, mouse = self.dashboard.card(id), self.page.mouse
        is_frame = "site-frame" in (target.get_attribute("class") or "")
        x, y = middle(card)
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + 12, y + 12, steps=2)
        expect(self.dashboard.canvas.locator(f'.hangs[data-id="{id}"]')).to_have_count(1)

        def over() -> bool:
            box = target.bounding_box()
            assert box is not None
            down = 4 if is_frame else box["height"] / 2
            mouse.move(box["x"] + box["width"] / 2, box["y"] + down, steps=3)
            return bool(target.evaluate("lane => /--over/.test(lane.className)"))

        wait_until(over, f"{id} to hang over {target}")

    def move_as_drawn(self) -> bool:
        id = self.any_element()
        what = f"move {id}"
        if self.last == what:
            return False  # two moves soon after each other are one step
        self.arrange("As drawn")
        self.select(id)
        card = self.dashboard.card(id)
        before = drawn_at(card)
        others = [each["ui"] for other, each in self.draft.elements.items() if other != id]
        by = [(dx, dy) for dx in (-64, 64) for dy in (-64, 64) if is_free(before, dx, dy, others)]
        if not by:
            return False
        (x, y), (dx, dy), mouse = middle(card), self.random.choice(by), self.page.mouse
        zoom = self.dashboard.canvas.evaluate(ZOOM)
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + dx * zoom, y + dy * zoom, steps=4)
        mouse.up()
        wait_until(lambda: drawn_at(card) != before, f"{id} to be moved")
        draft = deepcopy(self.draft)
        draft.elements[id]["ui"] = drawn_at(card)
        return self.step(what, draft)

    def pin_in_the_inspector(self) -> bool:
        id = self.some_that_runs()
        if id is None:
            return False
        self.select(id)
        now = self.draft.elements[id].get("node")
        node = self.random.choice([node for node in ("edge-a", "edge-b") if node != now])
        self.choice("node site").select_option(f"node {node}")
        self.dashboard.press("Escape")
        draft = deepcopy(self.draft)
        draft.elements[id].pop("site", None)
        draft.elements[id]["node"] = node
        return self.step(f"pin {id} to {node}", draft)

    # -- words and parameters

    def rename(self) -> bool:
        id = self.any_element()
        self.select(id)
        self.dashboard.press("F2")
        expect(self.dashboard.card(id).get_by_role("textbox")).to_be_focused()
        self.named += 1
        title = f"Step {self.named}"
        self.page.keyboard.type(title)
        self.dashboard.press("Enter")
        expect(self.dashboard.card(id)).to_be_focused()
        draft = deepcopy(self.draft)
        draft.elements[id]["title"] = title
        return self.step(f"rename {id}", draft)

    def change_latency(self) -> bool:
        id = self.some_that_runs()
        if id is None:
            return False
        self.select(id)
        now = self.draft.elements[id].get("latency_ms")
        latency_ms = self.random.choice([each for each in LATENCIES_MS if each != now])
        self.choice("latency_ms").select_option(str(latency_ms))
        self.dashboard.press("Escape")
        draft = deepcopy(self.draft)
        draft.elements[id]["latency_ms"] = latency_ms
        return self.step(f"latency of {id}", draft)

    def change_condition(self) -> bool:
        id = self.some("filter")
        what = f"condition of {id}"
        if id is None or self.last == what:
            return False  # what is typed in one field without a pause is one step
        self.select(id)
        condition = f"value > {self.random.randint(2, 1000)}"
        self.dashboard.field("Condition").fill(condition)
        self.dashboard.press("Escape")
        draft = deepcopy(self.draft)
        draft.elements[id]["params"] = {"condition": condition}
        return self.step(what, draft)

    def write_a_note(self) -> bool:
        if len(self.draft.notes) > 3:
            return False
        self.leave_fields()
        self.dashboard.press("n")
        texts = self.dashboard.canvas.get_by_role("textbox", name="Text of the note")
        expect(texts).to_have_count(len(self.draft.notes) + 1)
        expect(texts.last).to_be_focused()
        draft = deepcopy(self.draft)
        draft.notes.append("")
        self.step("note", draft)
        self.page.keyboard.insert_text(text := f"Ask Ada {len(self.done)}")
        draft = deepcopy(self.draft)
        draft.notes[-1] = text
        return self.step("text of the note", draft)

    # -- elements and streams

    def add(self) -> bool:
        """From the palette, into a node's lane."""
        if len(self.draft.elements) >= ELEMENTS_MOST:
            return False
        self.arrange("Lanes")
        node = self.random.choice(["edge-a", "edge-b"])
        (x, y), canvas = middle(self.dashboard.lane(node)), self.dashboard.canvas.bounding_box()
        assert canvas is not None
        self.dashboard.drag_from_palette("Filter", round(x - canvas["x"]), round(y - canvas["y"]))
        [fresh] = self.fresh_cards(1)
        draft = deepcopy(self.draft)
        at = drawn_at(self.dashboard.card(fresh))
        draft.elements[fresh] = {"type": "filter", "params": {}, "node": node, "ui": at}
        return self.step(f"add {fresh} to {node}", draft)

    def remove(self) -> bool:
        if len(self.draft.elements) < 4:
            return False
        id = self.any_element()
        self.select(id)
        self.dashboard.press("Delete")
        expect(self.dashboard.card(id)).to_have_count(0)
        draft = deepcopy(self.draft)
        draft.remove([id])
        return self.step(f"delete {id}", draft)

    def duplicate(self) -> bool:
        ids = self.two_that_run() or [self.any_element()]
        return self.copies("duplicate", ids, "ControlOrMeta+d")

    def copy_and_paste(self) -> bool:
        return self.copies("paste", [self.any_element()], "ControlOrMeta+c", "ControlOrMeta+v")

    def copies(self, what: str, ids: list[str], *keys: str) -> bool:
        if len(self.draft.elements) + len(ids) > ELEMENTS_MOST:
            return False
        self.select(*ids)
        self.dashboard.press(*keys)
        fresh = self.fresh_cards(len(ids))
        ordered = [id for id in self.draft.elements if id in ids]
        named = dict(zip(ordered, fresh, strict=True))
        draft = deepcopy(self.draft)
        for id, copied in named.items():
            element = deepcopy(draft.elements[id])
            source = element.pop("inputs", {}).get("in")
            if source in named:
                element["inputs"] = {"in": named[source]}
            draft.elements[copied] = {**element, "ui": drawn_at(self.dashboard.card(copied))}
        return self.step(f"{what} {' and '.join(ids)}", draft)

    def fresh_cards(self, count: int) -> list[str]:
        """The elements that the draft did not have, so many, as drawn."""
        cards = self.dashboard.canvas.locator(".react-flow__node-card")
        expect(cards).to_have_count(len(self.draft.elements) + count)
        self.arrange("As drawn")
        ids: list[str] = cards.evaluate_all("cards => cards.map(card => card.dataset.id)")
        return [id for id in ids if id not in self.draft.elements]

    def connect(self) -> bool:
        """By mouse, from the output of one to the input of another."""
        source, target = self.some("generator", "filter"), self.some("filter", "live-chart")
        if source is None or target is None or source == target or self.draft.reads(source, target):
            return False
        if self.draft.elements[target].get("inputs") == {"in": source}:
            return False
        self.bring_into_view()
        self.dashboard.draw_stream(source, target)
        expect(self.stream(source, target)).to_have_count(1)
        draft = deepcopy(self.draft)
        draft.elements[target]["inputs"] = {"in": source}
        return self.step(f"connect {source} to {target}", draft)

    def disconnect(self) -> bool:
        """By key, at the stream."""
        streams = [(each["inputs"]["in"], id) for id, each in self.draft.elements.items() if "inputs" in each]
        if not streams:
            return False
        source, target = self.random.choice(streams)
        stream = self.stream(source, target)
        stream.focus()
        self.dashboard.press("Enter", "Delete")
        expect(stream).to_have_count(0)
        draft = deepcopy(self.draft)
        del draft.elements[target]["inputs"]
        return self.step(f"disconnect {source} from {target}", draft)

    def run_as_one(self) -> bool:
        """Or separately again, if one of the two runs as one with others."""
        ids = self.two_that_run()
        if ids is None:
            return False
        self.select(*ids)
        self.dashboard.press("ControlOrMeta+g")
        draft = deepcopy(self.draft)
        apart = [group for group in draft.groups if not set(group) & set(ids)]
        draft.groups = apart if len(apart) < len(draft.groups) else [*apart, sorted(ids)]
        return self.step(f"run {' and '.join(ids)} as one or separately", draft)

    # -- hands

    def any_element(self) -> str:
        return self.random.choice([*self.draft.elements])

    def some(self, *types: str) -> str | None:
        """An element of one of the types; None if there is none."""
        found = [id for id, each in self.draft.elements.items() if each["type"] in types]
        return self.random.choice(found) if found else None

    def some_that_runs(self) -> str | None:
        return self.some("generator", "filter")

    def two_that_run(self) -> list[str] | None:
        found = [id for id, each in self.draft.elements.items() if each["type"] != "live-chart"]
        return self.random.sample(found, 2) if len(found) > 1 else None

    def choice(self, path: str) -> Locator:
        """A list of the selected element's form, which has a name that says more than its label."""
        return self.dashboard.inspector.locator(f'[data-path="{path}"] select')

    def stream(self, source: str, target: str) -> Locator:
        return self.dashboard.canvas.locator(f'.react-flow__edge[data-id="{source}>{target}.in"]')

    def arrange(self, how: str) -> None:
        button = self.page.get_by_role("button", name=how, exact=True)
        if button.get_attribute("aria-pressed") == "false":
            button.click()
        self.bring_into_view()

    def bring_into_view(self) -> None:
        """Everything lies in the canvas, which does not move any more."""
        self.leave_fields()
        canvas = self.dashboard.canvas
        box = canvas.bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + 6, box["y"] + 200)
        expect(self.page.locator(".passing")).to_have_count(0)  # it may lie over a card

        def is_seen() -> bool:
            if not canvas.evaluate(AT_REST):
                return False
            if canvas.evaluate(OUT_OF_VIEW) == 0:
                return True
            self.dashboard.press("f")
            return False

        wait_until(is_seen, "all cards and lanes to be in view")

    def select(self, *ids: str) -> None:
        self.bring_into_view()
        for number, id in enumerate(ids):
            self.dashboard.card(id).click(modifiers=["Shift"] if number else [])
        expect(self.dashboard.canvas.locator(".react-flow__node-card.selected")).to_have_count(len(ids))

    def leave_fields(self) -> None:
        """Keys are the canvas' afterwards."""
        typing = "() => document.activeElement.matches('input, textarea, select')"
        if self.page.evaluate(typing):
            self.dashboard.canvas.locator(".react-flow__pane").click(position={"x": 6, "y": 200})
            wait_until(lambda: not self.page.evaluate(typing), "the field to be left")


def is_free(place: dict[str, int], dx: int, dy: int, others: list[dict[str, int]]) -> bool:
    """Whether a card that is moved so far lies over no other card."""
    x, y = place["x"] + dx, place["y"] + dy
    return all(abs(other["x"] - x) > 244 or abs(other["y"] - y) > 80 for other in others)


def drawn_at(card: Locator) -> dict[str, int]:
    """Its place on the canvas as drawn."""
    x, y = card.evaluate("card => card.style.transform.match(/-?[\\d.]+/g).map(Number)")
    return {"x": x, "y": y}
