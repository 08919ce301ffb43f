"""Templates on real nodes, while their elements move at random and a node dies: their output equals that of
their oracles."""

from __future__ import annotations

import random

import httpx
import pytest

from tests.integration.pipelines.driving import START_S, element
from tests.integration.pipelines.statistics import kill_process, node
from tests.integration.pipelines.template_runs import Run, template
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(1800)]

# Template -> rows per second of its source, so that it lasts a minute.
RATES = {
    "additive-control": 300,
    "base-load": 300,
    "ecg-alarm": 720,
    "power-recorder": 300,
    "wind-turbine": 200,
}
MOVES_OF_EACH = 2


def test_templates_put_out_what_their_oracles_say_while_their_elements_move_and_a_node_dies(
    fogline: RunningFogline, client: httpx.Client
) -> None:
    """All at once: apart, each would wait for its own start, moves and end."""
    chance = random.Random("templates")
    runs = [Run(client, template(client, name, rate), chance) for name, rate in RATES.items()]
    for run in runs:
        run.deploy()
        # It reads on while something moves, and waits in between: so it has not ended when the node dies,
        # however long that takes.
        run.source("pause")
    for number in range(MOVES_OF_EACH):
        for run in runs:
            run.source("resume")
            run.move()
            if number == 0 or run is runs[0]:
                run.source("pause")
    runs[0].source("resume")
    assert not all(element(client, run.name, run.source_id)["ended"] for run in runs)
    kill_a_node(fogline, client, chance.choice(["edge-a", "edge-b"]))
    chance.choice(runs).move()
    for run in runs:
        run.wait_until_ended()
        run.compare(fogline.bootstrap)


def kill_a_node(fogline: RunningFogline, client: httpx.Client, name: str) -> None:
    """SIGKILL of its process; the supervisor starts it again. Over when it is ready."""
    kill_process(fogline, name)
    wait_until(lambda: not node(client, name)["ready"], f"the end of {name} to be noticed", START_S)
    wait_until(lambda: node(client, name)["ready"], f"{name} to be ready again", START_S)
