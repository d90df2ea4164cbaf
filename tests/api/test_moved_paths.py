"""Modules by the paths that they had before: the same objects, with a warning."""

import importlib
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest

MOVED = {
    "serde.weights": "serde.core.weights",
    "serde.options": "serde.bridge.options",
    "serde.batching.ledger": "serde.fleet.batching.ledger",
    "serde.serving": "serde.fleet.serving",
    "serde.quantization.options": "serde.bridge.quantizing",
    "serde.quantization.shrinking": "serde.checking.shrinking",
    "serde.target.runners": "serde.target.regions",
    "serde.relay.standard": "serde.relay.tvm.standard",
    "serde.relay.standard.texts": "serde.relay.tvm.standard.texts",
    "serde.relay.analysis.counting": "serde.relay.tvm.analysis.counting",
    "serde.relay.dataflow_pattern.patterns": "serde.relay.tvm.dataflow_pattern.patterns",
    "serde.relay.testing.programs": "serde.relay.tvm.programs",
    "serde.relay.transform.instrument": "serde.relay.tvm.passes.instrument",
    "serde.relay.transform.tvm.fold_constant": "serde.relay.tvm.passes.fold_constant",
    "serde.relay.transform.tvm.qnn.passes": "serde.relay.tvm.passes.qnn.passes",
}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Forget afterwards what was imported by a path of before."""
    yield
    aliases = [name for name, each in sys.modules.items() if _is_alias(name, each)]
    for name in aliases:
        parent, _, child = name.rpartition(".")
        # A package by a path of before is the package itself, which keeps its modules.
        home = f"{sys.modules[parent].__name__}.{child}"
        if home == name or home not in sys.modules:
            vars(sys.modules[parent]).pop(child, None)
    for name in aliases:
        del sys.modules[name]


def _is_alias(name: str, module: object) -> bool:
    own = getattr(module, "__name__", name)
    return name.startswith("serde.") and own.startswith("serde.") and name != own


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_path_of_before_gives_the_module_itself(old: str, new: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        module = importlib.import_module(old)
    assert f"{old} is {new} now" in [str(each.message) for each in told]
    assert module is importlib.import_module(new)
    assert module.__name__ == module.__spec__.name == new


@pytest.mark.wide
def test_the_warning_names_the_line_that_imports() -> None:
    code = "from serde.weights import as_weight\nfrom serde.bridge import Bridge\nprint(Bridge)"
    run = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stderr.startswith("<string>:1: DeprecationWarning: serde.weights is")
    assert run.stdout == "<class 'serde.bridge.contract.Bridge'>\n"


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"serde\.weight'"):
        importlib.import_module("serde.weight")
