"""`import serde` stays cheap: NumPy and the standard library, nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper
from support.tiers import first_of

PROBE = """
import json, sys
import numpy
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def modules_loaded_by(statement: str) -> set[str]:
    """Top-level packages that a statement loads in a fresh interpreter after NumPy."""
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def third_party(names: set[str]) -> set[str]:
    # C extensions' internals such as _cython_3 are counted too: only these are expected.
    return names - set(sys.stdlib_module_names) - {"serde", "numpy"}


def test_import_serde_loads_numpy_and_the_standard_library_only() -> None:
    assert third_party(modules_loaded_by("import serde")) == set()


@pytest.mark.parametrize(
    "name",
    first_of(["errors", "limits", "weights", "report", "relay", "compat"], ["relay", "compat"]),
)
def test_the_lower_layers_load_no_third_party_package(name: str) -> None:
    assert third_party(modules_loaded_by(f"import serde.{name}")) == set()


@pytest.mark.parametrize("package", ["relay", "relay.ir", "relay.text", "relay.transform"])
def test_packages_of_relay_load_nothing_of_themselves(package: str) -> None:
    """A thread that asks for a part and one that asks for the package would deadlock."""
    statement = f"import serde.{package}; own = [m for m in sys.modules if 'serde.' in m]"
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*own)"],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = package.split(".")
    parents = {f"serde.{'.'.join(parts[:end])}" for end in range(1, len(parts) + 1)}
    # Nothing but the package itself asks for its table of names.
    tables = {f"{parent}.homes" for parent in parents}
    ground = {"serde.core", "serde.core.homes", "serde.core.lazy", "serde._moved"}
    ground |= {"serde._version", "serde.relay.ir", "serde.relay.ir.homes", "serde.relay.ir.hooks"}
    assert set(run.stdout.split()) <= {*parents, *tables, *ground}


@pytest.mark.wide
def test_the_probe_sees_a_third_party_package() -> None:
    assert "onnx" in third_party(modules_loaded_by("import onnx"))


def loaded_by(*args: str) -> set[str]:
    """Modules that a command line loads, in full."""
    code = (
        "import json, sys\nfrom serde.command.cli import main\n"
        "try: code = main(sys.argv[1:])\nexcept SystemExit as end: code = end.code\n"
        "print(json.dumps([code, *sorted(sys.modules)]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
    )
    status, *modules = json.loads(run.stdout.splitlines()[-1])
    assert not status, run.stderr
    return set(modules)


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_do_not_load_numpy(flag: str) -> None:
    assert not loaded_by(flag) & {"numpy", "onnx", "serde.bridge", "serde.relay"}


def test_the_table_of_formats_is_shown_without_loading_any() -> None:
    modules = loaded_by("formats")
    assert not modules & {"numpy", "onnx", "serde.relay.ir", "serde.walk"}
    assert [name for name in modules if name.endswith(".bridge")] == ["serde.bridge"]


@pytest.fixture(scope="module")
def small_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dense layer as ONNX."""
    x, y, w = (helper.make_tensor_value_info(n, 1, s) for n, s in zip("xyw", SHAPES, strict=True))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x, w], [y])
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


SHAPES = ([2, 3], [2, 4], [3, 4])


@pytest.mark.wide
@pytest.mark.parametrize("target", ["net-symbol.json", "net.mlpackage", "other.onnx"])
def test_a_conversion_loads_what_its_graph_needs(small_net: Path, target: str) -> None:
    modules = loaded_by("convert", str(small_net), str(small_net.parent / target))
    own = {name for name in modules if name.startswith("serde.")}
    unused = ("serde.relay.text", "serde.relay.tvm.passes", "serde.testing", "serde.compat")
    assert [name for name in sorted(own) if name.startswith(unused)] == []
    assert not own & {"serde.checking.verdict", "serde.checking.checks", "serde.engine.process"}
    assert "rich.console" not in modules
    own = {name for name in own if "mxnet.ops.recurrent" not in name}  # a pass merges its stacks
    for operator in ("conv", "norm", "recurrent", "vision", "control"):
        assert [name for name in own if f".ops.{operator}" in name] == []
        assert [name for name in own if f".op.{operator}" in name] == []
    assert len(own) <= 274
