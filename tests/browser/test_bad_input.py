"""A wrong document: the editor shows each fault at its place, and deploys nothing."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_wrong_parameter_is_told_at_its_field_and_in_the_drawer_and_is_not_deployed(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    dashboard.create_pipeline("wrong-parameters")
    dashboard.drag_from_palette("Generator", 160, 160)
    dashboard.field("Rows per second").fill("10")
    dashboard.drag_from_palette("Count window aggregate", 420, 320)
    size = dashboard.field("Rows in a window")
    size.fill("0")
    dashboard.add_average("no_such_column", "average")
    dashboard.connect("generator", "count-window-aggregate")

    # at the field ...
    expect(size).to_have_attribute("aria-invalid", "true")
    expect(size).to_have_accessible_description(re.compile("greater than or equal to 1|at least 1"))
    expect(
        dashboard.card("count-window-aggregate").get_by_role("img", name=re.compile("problem"))
    ).to_be_visible()

    # ... and at deploying, in the drawer
    dashboard.deploy_button.click()
    expect(dashboard.toast).to_contain_text("Not deployed")
    expect(dashboard.toast).to_contain_text("Nothing was changed on the nodes.")
    listed = dashboard.problems.get_by_role("listitem")
    expect(listed.filter(has_text="Rows in a window")).to_contain_text("Count window aggregate")

    # one click leads from the drawer to the field
    dashboard.canvas.locator(".react-flow__pane").click(position={"x": 30, "y": 280})
    expect(size).not_to_be_visible()
    listed.filter(has_text="Rows in a window").get_by_role("button").click()
    expect(size).to_be_focused()

    # the size mended, the column's turn comes
    size.fill("10")
    expect(dashboard.problems.get_by_role("listitem")).to_contain_text(["no_such_column"])
    dashboard.dismiss_toasts()
    dashboard.deploy_button.click()
    expect(dashboard.toast).to_contain_text("Not deployed")
    with fogline.client() as client:
        pipeline = client.get("/api/v1/pipelines/wrong-parameters").raise_for_status().json()
        nodes = client.get("/api/v1/nodes").raise_for_status().json()
    assert (pipeline["status"], pipeline["deployment"]) == ("draft", None)
    assert not [each for node in nodes for each in node["elements"] if each["pipeline"] == "wrong-parameters"]


def test_a_stream_back_to_its_own_origin_is_not_drawn(dashboard: Dashboard) -> None:
    dashboard.create_pipeline("circle")
    dashboard.drag_from_palette("Filter", 120, 160)
    dashboard.drag_from_palette("Derive", 480, 160)
    dashboard.connect("filter", "derive")
    dashboard.draw_stream("derive", "filter")
    expect(dashboard.toast).to_contain_text("this would make a cycle")
    expect(dashboard.canvas.locator(".react-flow__edge")).to_have_count(1)
