"""{% vite "overview" %}: the tags of one entry of the browser bundle, from Vite's manifest."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from django import template
from django.conf import settings
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()
Manifest = dict[str, dict[str, Any]]


class BundleMissing(RuntimeError):
    """The browser bundle is not built, or lacks the entry."""


@register.simple_tag
def vite(name: str) -> SafeString:
    """Returns the stylesheets and the module script of the entry `name`. Raises BundleMissing."""
    found = manifest(settings.VITE_MANIFEST)
    key = next((key for key, item in found.items() if item.get("isEntry") and item.get("name") == name), None)
    if key is None:
        raise BundleMissing(f'The browser bundle has no entry "{name}": run `make up`, which builds it.')
    styles = format_html_join(
        "", '<link rel="stylesheet" href="{}{}">', ((settings.STATIC_URL, css) for css in _styles(found, key))
    )
    preloads = format_html_join(
        "",
        '<link rel="modulepreload" href="{}{}">',
        ((settings.STATIC_URL, found[item]["file"]) for item in _imports(found, key)),
    )
    script = format_html(
        '<script type="module" src="{}{}"></script>', settings.STATIC_URL, found[key]["file"]
    )
    return styles + preloads + script


@register.simple_tag
def bundle_is_built() -> bool:
    return Path(settings.VITE_MANIFEST).is_file()


def manifest(path: Path) -> Manifest:
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, ValueError) as error:
        raise BundleMissing(
            f"The browser bundle is not built ({path.name} is missing): run `make up`."
        ) from error


@lru_cache(maxsize=2)
def _read(path: Path, mtime_ns: int) -> Manifest:
    found: Manifest = json.loads(path.read_text())
    return found


def _imports(found: Manifest, key: str) -> list[str]:
    """Returns all chunks that the entry imports, each once, imports before importers."""
    seen: dict[str, None] = {}

    def visit(item: str) -> None:
        for imported in found[item].get("imports", ()):
            if imported not in seen and imported in found:
                seen[imported] = None
                visit(imported)

    visit(key)
    return list(seen)


def _styles(found: Manifest, key: str) -> list[str]:
    css: dict[str, None] = {}
    for item in [*reversed(_imports(found, key)), key]:
        css.update(dict.fromkeys(found[item].get("css", ())))
    return list(css)
