"""The actions of a person by mouse and keyboard, with a count of them."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Locator

# in the system's own dialog: the file, and Open
CHOOSING_A_FILE = 2
# a choice: the list, and the entry
CHOOSING = 2


class Hands:
    """Does what a person does by mouse and keyboard, and counts it."""

    def __init__(self) -> None:
        self.clicks = 0
        self.fields = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def type(self, field: Locator, text: str, *, clicked: bool = True) -> None:
        if clicked:
            self.click(field)
        field.press("ControlOrMeta+a")
        field.press_sequentially(text)
        self.fields += 1

    def choose(self, field: Locator, option: str) -> None:
        field.select_option(option)
        self.clicks += CHOOSING

    def upload(self, button: Locator, file: Path) -> None:
        with button.page.expect_file_chooser() as chooser:
            self.click(button)
        chooser.value.set_files(file)
        self.clicks += CHOOSING_A_FILE
