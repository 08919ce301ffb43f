"""axe-core, which judges a page as it stands in the browser: https://github.com/dequelabs/axe-core"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_SCRIPT = Path(__file__).resolve().parents[2] / "static" / "node_modules" / "axe-core" / "axe.min.js"
_THEMES = ("light", "dark")
# What axe counts as experimental, but people who speak to their machine need: a thing's visible words are in
# its name.
_MORE_RULES = {"label-content-name-mismatch": {"enabled": True}}
# The theme changes colours alone.
_COLOUR_RULES = ["color-contrast", "link-in-text-block"]
_RUN = """async ({ theme, options }) => {
  const shown = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = theme;
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  document.documentElement.dataset.theme = shown;
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`));
}"""


class Axe:
    """Gathers in `findings` what it finds in all that is shown to it, in light and dark.

    It comes into a page as the debugger's script, which the content security policy does not stop, with the
    next page that is opened.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.findings: list[str] = []
        self.looked: list[str] = []
        # colours fade in otherwise, and are judged on their way
        page.emulate_media(reduced_motion="reduce")
        page.add_init_script(path=_SCRIPT)

    def look(self, at: str) -> None:
        """Judges what is shown now; `at` says in the findings where it was."""
        self.looked.append(at)
        for theme in _THEMES:
            options: dict[str, Any] = {"rules": _MORE_RULES}
            if theme != _THEMES[0]:
                options = {"runOnly": {"type": "rule", "values": _COLOUR_RULES}}
            found: list[str] = self.page.evaluate(_RUN, {"theme": theme, "options": options})
            self.findings += [f"{at}, {theme}: {finding}" for finding in found]

    def expect_nothing(self) -> None:
        """Nothing was found in all that it looked at."""
        assert self.looked
        assert not self.findings, "\n".join(self.findings)
