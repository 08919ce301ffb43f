"""Whether a wall can be read at 4 m, on a screen of 55 inches or more."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.waiting import wait_until

LEAST = 0.024
"""The least size of a letter, as part of the shorter side of the screen; static/walls/walls.css has it."""
FIGURE = 0.048
"""The size of a figure."""
_FAULTS = """([least, figure]) => {
  const side = Math.min(innerWidth, innerHeight);
  const wall = document.querySelector(".wall");
  const found = [];
  const texts = document.createTreeWalker(wall, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { data, parentElement: of } = texts.currentNode;
    const seen = of.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!data.trim() || !seen || of.closest(".visually-hidden")) continue;
    const scale = of.closest("foreignObject")?.getScreenCTM().a ?? 1;
    const size = scale * parseFloat(getComputedStyle(of).fontSize);
    const needed = side * (of.matches(".wall-figure__value") ? figure : least);
    if (size < needed - 0.1) found.push(`${data} is ${size} px of ${needed}`);
  }
  for (const table of wall.querySelectorAll(".rowtable"))
    if (table.scrollWidth > table.clientWidth + 1 || table.scrollHeight > table.clientHeight + 1)
      found.push(`a table of ${table.scrollWidth}x${table.scrollHeight} px is cut`);
  for (const tile of wall.querySelectorAll(".wall-tile"))
    if (tile.getBoundingClientRect().bottom > innerHeight + 1) found.push("a tile ends below the screen");
  return found;
}"""


def look_from_afar(page: Page) -> None:
    """Shows the wall on a whole screen, by its button. It can be read, and nothing is cut or below."""
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.get_by_role("button", name="Full screen").click()
    expect(page.locator('.wall-grid[data-afar="true"]')).to_be_visible()
    faults: list[str] = []

    def is_legible() -> bool:
        faults[:] = page.evaluate(_FAULTS, [LEAST, FIGURE])
        return not faults

    # The charts are drawn again for this size.
    wait_until(is_legible, lambda: "a wall that can be read: " + "; ".join(faults))


def leave(page: Page) -> None:
    """Leaves the whole screen."""
    page.evaluate("document.exitFullscreen()")
    expect(page.locator('.wall-grid[data-afar="false"]')).to_be_visible()
