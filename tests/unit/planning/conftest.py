import pytest

from pipeline_runtime.operators.registry import default_registry


@pytest.fixture(scope="session")
def registry():
    return default_registry()


@pytest.fixture
def pipeline():
    """A factory of document data from elements and groups."""

    def make(*elements, groups=()):
        return {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "test"},
            "spec": {"elements": list(elements), "groups": list(groups)},
        }

    return make


@pytest.fixture
def source():
    def make(id="source", **fields):
        return {"id": id, "type": "generator", "params": {"rate": 5}, **fields}

    return make


@pytest.fixture
def keep():
    """A factory of filter elements."""

    def make(id, input="source", **fields):
        return {
            "id": id,
            "type": "filter",
            "params": {"condition": "value > 0"},
            "inputs": {"in": input},
            **fields,
        }

    return make


@pytest.fixture
def window():
    def make(id, input="source", **fields):
        params = {"size_s": 1, "aggregates": [{"function": "avg", "column": "value", "as": "value"}]}
        return {"id": id, "type": "window-aggregate", "params": params, "inputs": {"in": input}, **fields}

    return make
