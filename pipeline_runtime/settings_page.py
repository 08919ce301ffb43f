"""Makes docs/reference/settings.md from the declarations in settings.py: `make reference`."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from pipeline_runtime import settings
from pipeline_runtime.settings import Settings

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
_SECTIONS = {  # the first setting of each section -> its heading
    "data": "Where everything is kept",
    "host": "Dashboard",
    "kafka_port": "Kafka, Redis and the database",
    "nodes": "Nodes",
    "silence_s": "Moving and restoring elements",
    "latency_ms": "Latency",
    "checkpoint_s": "Checkpoints",
}
_COMPUTED = {  # the defaults that are computed, in words
    "secret_key": "made once",
    "cluster_key": "made once",
    "kafka": "Fogline's own",
    "redis_url": "Fogline's own",
    "database_url": "SQLite in `FOGLINE_DATA`",
}
READ_ELSEWHERE = {
    "FOGLINE_TOKEN": (
        "none",
        "The one-time token with which a machine joins. See [Add a machine](../how-to/add-a-machine.md).",
    ),
    "FOGLINE_JAVA_OPTIONS": (
        "for small machines",
        "The options of the nodes' Java. They replace Fogline's own, which suit machines with little memory.",
    ),
    "FOGLINE_IVY_SETTINGS": (
        "Maven Central",
        "The path of an `ivysettings.xml` that names the mirror from which Kafka is fetched.",
    ),
}
"""Variables that parts of Fogline read themselves: (default, description). `JAVA_HOME` counts as usual."""


def page() -> str:
    """Returns the whole page, with one table for each section."""
    descriptions = field_docstrings()
    lines = [
        "# Settings",
        "",
        "This page is made by `make reference` from the declarations in `pipeline_runtime/settings.py`.",
        "",
        "Settings are environment variables, for example `FOGLINE_PORT=9000 make up`.",
        "An empty variable counts as not given.",
        "A setting that cannot be used stops the start, with one line for each mistake.",
        "Two copies of Fogline run side by side if each has its own `FOGLINE_DATA` and ports.",
    ]
    for name in Settings.model_fields:
        if name in _SECTIONS:
            lines += _head(_SECTIONS[name])
        lines.append(f"| `{variable(name)}` | {_default(name)} | {descriptions[name]} |")
    lines += _head("Read where they are used")
    lines += [f"| `{name}` | {default} | {text} |" for name, (default, text) in READ_ELSEWHERE.items()]
    return "\n".join(lines) + "\n"


def variable(name: str) -> str:
    """Returns the environment variable of a field of Settings."""
    alias = Settings.model_fields[name].validation_alias
    return name.upper() if alias is not None else f"FOGLINE_{name.upper()}"


def field_docstrings() -> dict[str, str]:
    """Returns the text under each field's declaration, in one line.

    Python does not keep these texts, so they are read from the source.
    """
    (declaration,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(declaration, ast.ClassDef)
    found = {}
    for field, text in zip(declaration.body, declaration.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr), f"{field.target.id} has no description in {settings.__file__}"
            found[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return found


def _head(title: str) -> list[str]:
    return ["", f"## {title}", "", "| variable | default | what it decides |", "|---|---|---|"]


def _default(name: str) -> str:
    if name in _COMPUTED:
        return _COMPUTED[name]
    default = Settings.model_fields[name].default
    if default in ("", None, (), {}):
        return "none"
    if isinstance(default, bool):
        return f"`{int(default)}`"
    return f"`{','.join(default)}`" if isinstance(default, tuple) else f"`{default}`"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
