"""``index.json`` says which module registers what; registry and tables load by it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "operator_index.py"
PACKAGES = (
    "serde.relay.op",
    "serde.onnx.ops",
    "serde.mxnet.ops",
    "serde.coreml.mlprogram.ops",
    "serde.coreml.neuralnetwork.ops",
    "serde.bridge",
)


def run_python(*args: str) -> str:
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


@pytest.fixture(scope="module")
def built() -> dict[str, Any]:
    """The indices made of everything loaded, which also checks every registration."""
    found: dict[str, Any] = json.loads(run_python(str(TOOL), "--print"))
    return found


@pytest.mark.wide
@pytest.mark.parametrize("package", PACKAGES)
def test_the_index_is_current(built: dict[str, Any], package: str) -> None:
    path = ROOT.joinpath(*package.split("."), "index.json")
    assert json.loads(path.read_text(encoding="utf-8")) == built[package], (
        "run python tools/operator_index.py"
    )


FIND_ALL = """
from serde.relay.ir import builders, registry
assert not registry._OPS
names = registry.op_names()
assert all(registry.get(name).name == name for name in names)
assert all(builders.lookup_builder(path) for path in registry._index().builders)
assert sorted(registry.all_ops()) == names
"""

FIND_CONVERTERS = """
from serde.coreml.mlprogram.ops import TABLE as mil
from serde.coreml.neuralnetwork.ops import DIRECT, LAYERS
from serde.mxnet.ops import TABLE as mxnet
from serde.onnx.ops import TABLES
for table in (mil, DIRECT, LAYERS, mxnet, *TABLES.values()):
    for name in table._modules["imports"]:
        table.importer(name, 1)
        known = [version for op, version in table._imports if op == name]
        assert name in table._refusals or table.importer(name, max(known)), name
    for name in table._modules["exports"]:
        assert table.exporter(name, 99) is not None, name
    for name in table._modules["expands"]:
        assert table.expansion(name) is not None, name
    imports, exports = dict(table._imports), dict(table._exports)
    assert len(table.imported()) == len(imports)
    assert list(table.exported()) == sorted(exports)
"""


@pytest.mark.wide
@pytest.mark.parametrize("code", [FIND_ALL, FIND_CONVERTERS], ids=["relay", "converters"])
def test_everything_is_found_through_the_index(code: str) -> None:
    run_python("-c", code)


@pytest.mark.wide
def test_a_builder_loads_the_module_of_its_operator_only() -> None:
    code = (
        "import sys; from serde import relay; relay.nn.softmax(relay.var('x', shape=(2, 3)))\n"
        "print(*(m for m in sys.modules if m.startswith('serde.relay.op.')))"
    )
    loaded = set(run_python("-c", code).split())
    assert "serde.relay.op.activation" in loaded
    assert not loaded & {"serde.relay.op.conv", "serde.relay.op.norm", "serde.relay.op.vision"}
    assert len(loaded) <= 6


@pytest.mark.wide
def test_an_operator_of_another_package_may_not_take_a_name_that_is_not_loaded_yet() -> None:
    code = (
        "from serde.errors import RelayError\n"
        "from serde.relay.ir.registry import relay_op, Array\n"
        "def softmax(data: Array) -> Array: return data\n"
        "try: relay_op('nn.softmax', infer=lambda x: x, samples=())(softmax)\n"
        "except RelayError as error: print(error)\n"
    )
    assert run_python("-c", code) == "nn.softmax is declared twice\n"
