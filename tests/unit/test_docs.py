"""Tests that all things exist that the documentation names: pages, headings, paths, and names in code."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = r"(?:pipeline_runtime|workers|webapp|static|templates|tests|docs|\.ci)"
NAMES = r"((?:\s+`\w[\w.]*`(?:,(?=\s+`))?)*)"
CODE_PATH = re.compile(rf"`({FOLDERS}/[\w./*-]*)`{NAMES}")
SHORT_PATH = re.compile(rf"`(?!{FOLDERS}/)((?:[a-z_][\w-]*/)+[\w-]+\.(?:py|tsx?|json|yaml|sh))`{NAMES}")
"""A file from the root or below pipeline_runtime/, such as `model/desired.py`."""
DOCS_PATH = re.compile(r"(?<![\w/])docs/[\w/-]+\.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")
MADE_BY_BUILDS = ("static/dist", "static/node_modules")


@cache
def _tracked() -> tuple[str, ...]:
    """The repository's files, as paths from its root: tracked ones and new ones that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(path for path in listed.stdout.splitlines() if (ROOT / path).is_file())


def _pages() -> list[str]:
    return [path for path in _tracked() if path.endswith(".md")]


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _prose(text: str) -> str:
    """The text without its fenced blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings, but for those of repeated headings."""
    headings = re.findall(r"^#+ +(.+?) *$", _prose(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    spoken = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in spoken}


def _broken_links(page: str) -> Iterator[str]:
    for link in LINK.findall(_prose(_text(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and target.suffix == ".md" and anchor not in _anchors(target):
            yield f"{link}: that page has no such heading"


def _exists(path: str) -> bool:
    if path.startswith(MADE_BY_BUILDS):
        return True
    return any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()


def _defines(path: str, name: str) -> bool:
    """Returns whether the file has a definition of each part of a dotted name. A mention is not enough."""
    text = _text(path)
    words = "def|class|function|const|let|interface|type|enum"
    return all(
        re.search(rf"\b(?:{words})\s+{part}\b|^\s*(?:self\.)?{part}\b[^=\n(]*[:=]", text, re.MULTILINE)
        for part in name.split(".")
    )


def _missing_code(page: str) -> Iterator[str]:
    for path, names in CODE_PATH.findall(_text(page)):
        if not _exists(path):
            yield f"{path}: there is no such file or folder"
        else:
            yield from _missing_names(path, names)
    for short, names in SHORT_PATH.findall(_text(page)):
        path = next((path for path in (short, f"pipeline_runtime/{short}") if _exists(path)), None)
        if path is None:
            yield f"{short}: there is no such file, neither from the root nor below pipeline_runtime/"
        else:
            yield from _missing_names(path, names)


def _missing_names(path: str, names: str) -> Iterator[str]:
    for name in re.findall(r"`([\w.]+)`", names):
        if (ROOT / path).is_file() and not _defines(path, name):
            yield f"{path}: nothing in there is called {name}"


@pytest.mark.parametrize("page", _pages())
def test_each_link_of_a_page_leads_to_a_page_and_a_heading(page: str) -> None:
    assert list(_broken_links(page)) == []


@pytest.mark.parametrize("page", _pages())
def test_each_code_path_of_a_page_exists_and_has_the_name_that_follows_it(page: str) -> None:
    assert list(_missing_code(page)) == []


def test_a_name_counts_where_it_is_defined_and_not_where_it_is_mentioned() -> None:
    path = "pipeline_runtime/handover/phases.py"
    assert all(_defines(path, name) for name in ("Phase.WARM", "Strategy.restores", "BEFORE_CUT"))
    assert not any(_defines(path, name) for name in ("json", "Phase.WARMER", "passing"))


def test_each_page_that_code_names_exists() -> None:
    kinds = (".py", ".ts", ".tsx", ".toml", ".sh", ".html", ".yaml", "Makefile", ".ci/install")
    named = [
        (path, page) for path in _tracked() if path.endswith(kinds) for page in DOCS_PATH.findall(_text(path))
    ]
    assert named
    assert [(path, page) for path, page in named if not (ROOT / page).exists()] == []


def test_the_index_leads_to_every_page_of_the_four_shelves() -> None:
    linked = {link.partition("#")[0] for link in LINK.findall(_text("docs/README.md"))}
    shelves = ("tutorial", "how-to", "reference", "explanation")
    pages = {
        path.removeprefix("docs/")
        for path in _pages()
        if path.startswith(tuple(f"docs/{s}/" for s in shelves))
    }
    assert pages - linked == set()


def test_the_index_of_decisions_has_each_by_its_title() -> None:
    index = _text("docs/decisions/README.md")
    for page in (ROOT / "docs/decisions").glob("[0-9]*.md"):
        number, _, title = (
            page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(". ")
        )
        assert f"| {number} | [{title}]({page.name}) |" in index
