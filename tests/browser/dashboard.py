"""The actions of a person in the dashboard, by mouse and keyboard."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import APIResponse, Locator, Page, expect

from tests.waiting import wait_until

# Spark's first query on a node takes up to 40 s on two busy cores; a handover waits for one too.
SLOW_MS = 180_000


class Dashboard:
    def __init__(self, page: Page) -> None:
        self.page = page

    def open(self) -> None:
        """Where one is signed in already."""
        self.page.goto("/")
        expect(self.page.locator("#root")).to_be_visible()

    def sign_in(self, username: str, password: str) -> None:
        self.page.goto("/")
        self.page.get_by_label("User name").fill(username)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.locator("#root")).to_be_visible()

    def create_pipeline(self, name: str) -> None:
        """By its dialog; the empty editor is open afterwards."""
        self.page.get_by_role("navigation", name="Main").get_by_role("link", name="Pipelines").click()
        self.page.get_by_role("button", name="New pipeline").first.click()
        dialog = self.page.get_by_role("dialog", name="New pipeline")
        dialog.get_by_label("Name").fill(name)
        dialog.get_by_role("button", name="Create pipeline").click()
        expect(self.page.get_by_text("Draw your pipeline")).to_be_visible()

    # -- the editor

    @property
    def canvas(self) -> Locator:
        return self.page.locator(".canvas")

    @property
    def inspector(self) -> Locator:
        return self.page.get_by_role("complementary", name="Inspector")

    def card(self, element: str) -> Locator:
        return self.canvas.locator(f'.react-flow__node[data-id="{element}"]')

    def drag_from_palette(self, title: str, x: int, y: int) -> None:
        """Drops it at a place of the canvas, in pixels from its upper left corner."""
        palette = self.page.get_by_role("complementary", name="Elements")
        item = palette.get_by_role("button", name=title, exact=True)
        item.drag_to(self.canvas, target_position={"x": x, "y": y})

    def connect(self, source: str, target: str) -> None:
        streams = self.canvas.locator(".react-flow__edge")
        before = streams.count()
        self.draw_stream(source, target)
        expect(streams).to_have_count(before + 1)

    def draw_stream(self, source: str, target: str) -> None:
        """Drags from the output of one element to the input of the other, whether it is taken or not."""
        start = middle(self.card(source).get_by_label(re.compile("^Output ")))
        end = middle(self.card(target).get_by_label(re.compile("^Input ")))
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move(*end, steps=12)
        mouse.up()

    def select(self, element: str) -> None:
        self.card(element).click()

    def field(self, label: str) -> Locator:
        """The control with this label, in the selected element's form."""
        return self.inspector.get_by_label(re.compile(rf"^{re.escape(label)}( \(optional\))?$"))

    def upload(self, file: Path) -> None:
        """By the upload button of the selected element's file parameter; returns when it is imported."""
        self.choose_file(file)
        self.expect_uploaded(file)

    def choose_file(self, file: Path) -> None:
        with self.page.expect_file_chooser() as chooser:
            self.inspector.get_by_role("button", name="Upload").click()
        chooser.value.set_files(file)

    def expect_uploaded(self, file: Path) -> None:
        """The file is there, and imported."""
        expect(self.inspector.get_by_role("status").filter(has_text=file.name)).to_contain_text(
            re.compile(rf"^{re.escape(file.name)}, .*, ready$")
        )

    def add_average(self, column: str, name: str) -> None:
        """The first aggregate of the selected element: the average of a column."""
        self.inspector.get_by_role("button", name="Add aggregate").click()
        aggregate = self.inspector.get_by_role("group", name="Aggregate 1").first
        aggregate.get_by_label("Function").select_option("avg")
        aggregate.get_by_label("Column").fill(column)
        aggregate.get_by_label("Name of the result (optional)").fill(name)

    def open_more_parameters(self) -> None:
        """Opens the selected element's. A click may miss, as what the form says of faults moves them."""
        more = self.inspector.locator("details.form-more")

        def is_open() -> bool:
            if not more.evaluate("details => details.open"):
                more.locator("summary").click()
            return bool(more.evaluate("details => details.open"))

        wait_until(is_open, "More parameters to open")

    # -- by keyboard

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, target: Locator, most: int = 120) -> None:
        """Presses Tab until the control has the focus."""
        expect(target).to_be_visible()
        for _ in range(most):
            if target.evaluate("control => control === document.activeElement"):
                return
            self.press("Tab")
        raise AssertionError(f"the Tab key does not lead to {target}")

    def type_into(self, target: Locator, text: str) -> None:
        self.tab_to(target)
        self.press("ControlOrMeta+a")
        self.page.keyboard.type(text)

    def add_by_keyboard(self, title: str, id: str) -> None:
        """By the search of the elements; its card has the focus then."""
        self.press("/")
        expect(self.page.get_by_label("Search elements")).to_be_focused()
        self.page.keyboard.type(title)
        self.press("Enter")
        expect(self.card(id)).to_be_focused()

    def open_parameters(self) -> None:
        """Opens the parameters of the card that has the focus."""
        self.press("Enter")
        expect(self.inspector.locator(":focus")).to_have_count(1)

    def run_command(self, words: str, title: str | re.Pattern[str]) -> None:
        """In the command palette: types the words, and runs what they lead to."""
        palette = self.open_palette(words)
        expect(palette.get_by_role("option", selected=True)).to_have_text(title)
        self.press("Enter")

    def open_palette(self, words: str) -> Locator:
        # the shell starts it after what the page itself needs, and its live indicator last
        expect(self.page.locator("[data-shell=live]")).not_to_be_empty()
        self.press("ControlOrMeta+k")
        palette = self.page.get_by_role("dialog", name="Command palette")
        # what is typed before is the page's
        expect(palette.get_by_role("combobox")).to_be_focused()
        self.page.keyboard.type(words)
        return palette

    @property
    def problems(self) -> Locator:
        return self.page.get_by_role("region", name="Problems")

    @property
    def deploy_button(self) -> Locator:
        return self.page.get_by_role("button", name=re.compile("^Deploy( changes)?$"))

    def deploy(self) -> None:
        """By the button, and the dialog that says what it will do."""
        self.deploy_button.click()
        dialog = self.page.get_by_role("dialog", name=re.compile("^Deploy "))
        dialog.get_by_role("button", name=re.compile("^Deploy( changes)?$")).click()
        expect(dialog).to_have_count(0)

    @property
    def toast(self) -> Locator:
        """The newest message."""
        return self.page.locator(".toast").last

    def dismiss_toasts(self) -> None:
        toasts = self.page.locator(".toast")
        for _ in range(toasts.count()):
            toasts.last.get_by_role("button", name="Dismiss").click()
        expect(toasts).to_have_count(0)

    # -- live

    @property
    def live_panel(self) -> Locator:
        return self.page.get_by_role("complementary", name="Live state")

    def expect_status(self, element: str, status: str | re.Pattern[str]) -> None:
        """The word at the element's card, within the time that a slow start takes."""
        expect(self.card(element).locator(".status")).to_have_text(status, timeout=SLOW_MS)

    def migrate(self, element: str, target: str, way: str = "Live, with a standby (almost no pause)") -> None:
        """By the button and its dialog; returns when the order is given."""
        self.select(element)
        self.live_panel.get_by_role("button", name="Migrate").click()
        dialog = self.page.get_by_role("dialog", name=re.compile("^Migrate "))
        dialog.get_by_role("radio", name=target, exact=True).check()
        dialog.get_by_role("radio", name=way, exact=True).check()
        dialog.get_by_role("button", name=f"Migrate to {target}").click()
        expect(dialog).to_have_count(0)

    def arrange_in_lanes(self) -> None:
        self.page.get_by_role("button", name="Lanes", exact=True).click()
        expect(self.canvas.locator(".lane-box").first).to_be_visible()

    def lane(self, node: str) -> Locator:
        return self.canvas.get_by_role("region", name=node, exact=True)

    def drag_to_lane(self, element: str, node: str) -> None:
        """Leaves it hanging there: the caller drops it."""
        start, end = middle(self.card(element)), middle(self.lane(node))
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(*end, steps=12)

    def drag_to_lane_by_finger(self, element: str, node: str) -> None:
        """And lets it go there."""
        (x, y), (to_x, to_y) = middle(self.card(element)), middle(self.lane(node))
        session = self.page.context.new_cdp_session(self.page)
        touch = "Input.dispatchTouchEvent"
        for step in range(13):
            at = {"x": x + (to_x - x) * step / 12, "y": y + (to_y - y) * step / 12}
            kind = "touchMove" if step else "touchStart"
            session.send(touch, {"type": kind, "touchPoints": [at]})
        session.send(touch, {"type": "touchEnd", "touchPoints": []})
        session.detach()

    @property
    def told_moves(self) -> Locator:
        """What a screen reader hears of moves."""
        return self.page.get_by_role("status", name="Moves")

    def open_tab(self, name: str) -> None:
        """Opens a tab of the selected element's details; those that are seldom opened are in a menu."""
        more = self.live_panel.get_by_role("button", name="More details")
        tab = self.live_panel.get_by_role("tab", name=name)
        expect(tab.or_(more).first).to_be_visible()
        if not tab.is_visible():
            more.click()
            self.page.get_by_role("menuitem", name=name, exact=True).click()
        tab.click()

    def expect_handover_done(self, target: str) -> None:
        """The newest handover's card, within the time that a slow start takes."""
        done = self.live_panel.locator(".handover--done").filter(has_text=f"runs on {target}")
        expect(done).to_be_visible(timeout=SLOW_MS)

    def download_output(self, element: str, to: Path) -> Path:
        self.select(element)
        with self.page.expect_download() as download:
            self.live_panel.get_by_role("link", name="Download output").click()
        download.value.save_as(to)
        return to

    def hover(self, target: Locator) -> None:
        """Comes as a hand does, in many small moves: one jump onto it opens no tooltip."""
        x, y = middle(target)
        self.page.mouse.move(x - 6, y)
        self.page.mouse.move(x, y, steps=6)

    def post(self, path: str, body: object) -> APIResponse:
        """A request made with this page's session and token."""
        token = json.loads(self.page.locator("#root").get_attribute("data-props") or "{}")["csrf"]
        headers = {"X-CSRFToken": token, "Referer": self.page.url}
        return self.page.request.post(path, data=body, headers=headers)


def middle(locator: Locator) -> tuple[float, float]:
    box = locator.bounding_box()
    assert box is not None, f"{locator} is not visible"
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
