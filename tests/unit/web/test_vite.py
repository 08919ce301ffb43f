"""The tags of a bundle's entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from webapp.pages.vite import BundleMissing, vite

MANIFEST = {
    "views/node.tsx": {
        "file": "assets/node-1.js",
        "name": "node",
        "isEntry": True,
        "imports": ["_a.js", "_b.js"],
        "css": ["assets/node-1.css"],
    },
    "_a.js": {"file": "assets/a-1.js", "imports": ["_b.js"], "css": ["assets/a-1.css"]},
    "_b.js": {"file": "assets/b-1.js", "css": ["assets/b-1.css"]},
    "lazy.ts": {"file": "assets/lazy-1.js", "name": "lazy", "isDynamicEntry": True},
}


@pytest.fixture
def manifest(tmp_path: Path, settings: Any) -> Path:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(MANIFEST))
    settings.VITE_MANIFEST = path
    return path


@pytest.mark.usefixtures("manifest")
def test_an_entry_links_its_script_and_the_styles_of_all_it_imports_once() -> None:
    html = str(vite("node"))
    assert html.count("assets/node-1.js") == 1
    assert '<script type="module" src="/static/assets/node-1.js">' in html
    for css in ("assets/a-1.css", "assets/b-1.css", "assets/node-1.css"):
        assert html.count(css) == 1
    assert html.index("b-1.css") < html.index("a-1.css") < html.index("node-1.css")


@pytest.mark.usefixtures("manifest")
@pytest.mark.parametrize("name", ["lazy", "nothing"])
def test_an_entry_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(BundleMissing, match=name):
        vite(name)


def test_a_bundle_that_is_not_built_says_what_to_do(manifest: Path) -> None:
    manifest.unlink()
    with pytest.raises(BundleMissing, match="make up"):
        vite("node")
