"""A pipeline goes out as YAML and comes back, with a file that is not here any more by that name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "carried"


def test_a_pipeline_is_exported_and_imported_and_a_missing_file_is_chosen(
    dashboard: Dashboard, fogline: RunningFogline, tmp_path: Path
) -> None:
    page = dashboard.page
    axe = Axe(page)
    with fogline.client() as client:
        sent = client.post("/api/v1/files", files={"file": ("machines.csv", b"power\n1.5\n2.5\n")})
        reference = sent.raise_for_status().json()["reference"]
        element = {"id": "readings", "type": "csv-replay", "params": {"path": reference}}
        document: dict[str, Any] = {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": NAME},
            "spec": {"elements": [element]},
        }
        client.post("/api/v1/pipelines", json={"name": NAME, "document": document}).raise_for_status()
    page.goto(f"/pipelines/{NAME}")
    expect(dashboard.card("readings")).to_be_visible()

    with page.expect_download() as download:
        choose(dashboard, "Export as YAML")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert "path: file:machines.csv\n" in text

    other = tmp_path / "other.yaml"
    other.write_text(text.replace("machines.csv", "gone.csv").replace("id: readings", "id: imported"))
    bring_in(dashboard, other)
    dialog = page.get_by_role("dialog", name="Which files does it read?")
    expect(dialog.get_by_text("It is not here. Used by imported.")).to_be_visible()
    axe.look("the files that an imported pipeline names")
    dialog.get_by_label("gone.csv", exact=True).select_option(reference)
    dialog.get_by_role("button", name="Import").click()
    expect(dialog).to_be_hidden()
    expect(dashboard.card("imported")).to_be_visible()
    expect(dashboard.card("readings")).to_be_hidden()
    dashboard.select("imported")
    expect(dashboard.inspector.get_by_text(re.compile("^machines.csv, .*, ready$"))).to_be_attached()


def choose(dashboard: Dashboard, entry: str) -> None:
    dashboard.page.get_by_role("button", name=re.compile("pipeline menu$")).click()
    dashboard.page.get_by_role("menuitem", name=entry).click()


def bring_in(dashboard: Dashboard, file: Path) -> None:
    with dashboard.page.expect_file_chooser() as chooser:
        choose(dashboard, "Import a file")
    chooser.value.set_files(file)


@pytest.mark.full
def test_several_pipelines_go_out_in_one_file_and_come_in_with_conflicts_asked(
    dashboard: Dashboard, fogline: RunningFogline, tmp_path: Path
) -> None:
    page = dashboard.page
    axe = Axe(page)
    with fogline.client() as client:
        for title in ("Press north", "Press south"):
            client.post("/api/v1/pipelines", json={"title": title}).raise_for_status()
    page.goto("/pipelines/?q=press")
    page.get_by_role("checkbox", name="Choose all").check()
    axe.look("pipelines that are chosen")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export 2 pipelines as YAML").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    with fogline.client() as client:
        client.delete("/api/v1/pipelines/press-south").raise_for_status()

    file = tmp_path / "plant.yaml"
    file.write_text(text.replace("elements: []", "notes: []") + "---\nkind: Other\n", encoding="utf-8")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import").click()
    chooser.value.set_files(file)
    dialog = page.get_by_role("dialog", name="Import from plant.yaml")
    expect(dialog.get_by_text('kind: must be "Pipeline"')).to_be_visible()
    expect(dialog.get_by_text("Choose what to do with Press north.")).to_be_visible()
    axe.look("pipelines that are imported")
    dialog.get_by_label("What to do with Press north").select_option("Import as a new pipeline")
    dialog.get_by_label(re.compile("^Name of the new pipeline")).fill("Press west")
    dialog.get_by_role("button", name="Import 2 pipelines").click()
    expect(dialog).to_be_hidden()
    for title in ("Press north", "Press south", "Press west"):
        expect(page.get_by_role("link", name=title, exact=True)).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("The import was undone")).to_be_visible()
    expect(page.get_by_role("link", name="Press west", exact=True)).to_be_hidden()
    expect(page.get_by_role("link", name="Press north", exact=True)).to_be_visible()
