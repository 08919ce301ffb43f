"""Frames of a window, and the animated picture that they make."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, Page

BYTES_MAX = 2_000_000
# An arrow that follows the mouse, with a ring while a button is down: a screenshot has no pointer of its own.
_POINTER = """() => {
  const pointer = document.createElement("div");
  pointer.style.cssText =
    "position:fixed;left:0;top:0;width:0;height:0;z-index:2147483647;pointer-events:none;border-radius:50%";
  pointer.innerHTML =
    '<svg width="20" height="24"><path d="M1 1v18l5-5 3 7 3-1-3-7h7z" fill="#111" stroke="#fff"/></svg>';
  document.body.append(pointer);
  const show = ({ clientX, clientY }) => {
    pointer.style.transform = `translate(${clientX}px, ${clientY}px)`;
  };
  const ring = (shadow) => () => {
    pointer.style.boxShadow = shadow;
  };
  addEventListener("mousemove", show, true);
  addEventListener("mousedown", ring("0 0 0 14px rgba(49, 84, 215, 0.35)"), true);
  addEventListener("mouseup", ring("none"), true);
}"""


class Camera:
    """Takes frames of one window. Each is shown for as long as passed until the next, or as `hold` says."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[tuple[Image.Image, int]] = []
        page.evaluate(_POINTER)
        page.mouse.move(640, 420)

    def hold(self, ms: int) -> None:
        """Adds the window as it is now, shown for `ms`."""
        shot = Image.open(io.BytesIO(self._page.screenshot())).convert("RGB")
        self._frames.append((shot, ms))

    def click(self, target: Locator) -> None:
        """Goes to the control in a few frames, and clicks it."""
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert box is not None, f"{target} is not visible"
        x, y = box["x"] + min(box["width"] / 2, 60), box["y"] + box["height"] / 2
        for step in range(1, 5):
            self._page.mouse.move(*self._between(x, y, step / 4))
            self.hold(70)
        self._at = (x, y)
        self._page.mouse.down()
        self.hold(160)
        self._page.mouse.up()

    def drag(self, card: Locator, to: Locator) -> None:
        """Takes hold of a card and brings it over a place, where it hangs."""
        (x, y), (to_x, to_y) = _middle(card), _middle(to)
        for step in range(1, 5):
            self._page.mouse.move(*self._between(x, y, step / 4))
            self.hold(70)
        self._at = (x, y)
        self._page.mouse.down()
        self.hold(250)
        for step in range(1, 11):
            self._page.mouse.move(*self._between(to_x, to_y, step / 10))
            self.hold(60)
        self._at = (to_x, to_y)

    def drop(self) -> None:
        self._page.mouse.up()
        self.hold(160)

    def record(self, done: Callable[[], bool], seconds_max: float) -> None:
        """Adds frames at their own pace until `done` says so."""
        end = time.monotonic() + seconds_max
        while not done():
            assert time.monotonic() < end, f"not done after {seconds_max} s"
            began = time.monotonic()
            self.hold(0)
            self._page.wait_for_timeout(60)
            self._frames[-1] = (self._frames[-1][0], round((time.monotonic() - began) * 1000))

    def save(self, path: Path) -> None:
        """Writes an animated WebP that repeats, without loss; fails if it is larger than BYTES_MAX."""
        first, *others = frames = without_repetition(self._frames)
        first[0].save(
            path,
            save_all=True,
            append_images=[frame for frame, _ in others],
            duration=[ms for _, ms in frames],
            loop=0,
            lossless=True,
            method=4,
        )
        size = path.stat().st_size
        assert size <= BYTES_MAX, f"{path.name} has {size:,} bytes, more than {BYTES_MAX:,}"

    _at = (640.0, 420.0)

    def _between(self, x: float, y: float, part: float) -> tuple[float, float]:
        return self._at[0] + (x - self._at[0]) * part, self._at[1] + (y - self._at[1]) * part


def _middle(target: Locator) -> tuple[float, float]:
    box = target.bounding_box()
    assert box is not None, f"{target} is not visible"
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def without_repetition(frames: list[tuple[Image.Image, int]]) -> list[tuple[Image.Image, int]]:
    """Joins frames that are equal to the one before; their times add up."""
    kept: list[tuple[Image.Image, int]] = []
    for frame, ms in frames:
        if kept and kept[-1][0].tobytes() == frame.tobytes():
            kept[-1] = (kept[-1][0], kept[-1][1] + ms)
        else:
            kept.append((frame, ms))
    return kept
