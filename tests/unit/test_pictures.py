"""Every picture of docs/images is shown on a page, and frames that repeat cost nothing."""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image

from tests.pictures.__main__ import IMAGES
from tests.pictures.frames import BYTES_MAX, without_repetition
from tests.running import PROJECT

SHOWN = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def _shown() -> set[Path]:
    pages = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")]
    return {
        (page.parent / link).resolve() for page in pages for link in SHOWN.findall(page.read_text("utf-8"))
    }


def test_every_picture_is_shown_on_a_page() -> None:
    pictures = set(IMAGES.iterdir())
    assert pictures
    assert pictures - _shown() == set()


def test_the_moving_picture_is_small_enough_for_a_page() -> None:
    with Image.open(IMAGES / "drag.webp") as picture:
        assert picture.n_frames > 10
    assert (IMAGES / "drag.webp").stat().st_size <= BYTES_MAX


def test_a_frame_that_repeats_the_one_before_is_shown_for_longer_instead() -> None:
    white, black = (Image.new("RGB", (2, 2), colour) for colour in ("white", "black"))
    frames = [(white, 100), (white.copy(), 50), (black, 70), (white, 30)]
    assert without_repetition(frames) == [(white, 150), (black, 70), (white, 30)]
