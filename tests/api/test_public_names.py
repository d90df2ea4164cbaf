"""What `serde` offers by name."""

import pkgutil
import subprocess
import sys

import pytest
from support.tiers import first_of

import serde

FORMATS = {"onnx", "mxnet", "coreml", "nnef", "torch", "tvm"}
PUBLIC = {
    "FormatError",
    "HybridExecutor",
    "MissingDependency",
    "OptionError",
    "Report",
    "Runnable",
    "SerdeError",
    "UnsupportedModelError",
    "exports",
    "imports",
    "register_kernel",
    "__version__",
    "batch",
    "bisect",
    "check",
    "compile",
    "convert",
    "diff",
    "export_model",
    "from_relay",
    "import_model",
    "import_to_gluon",
    "register_runner",
    "relay",
    "serving",
    "target",
    "route",
    "to_relay",
    "view",
}


def test_public_names_are_these() -> None:
    assert set(serde.__all__) == PUBLIC
    assert len(serde.__all__) == len(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(serde, name) is not None


def test_dir_lists_the_public_names() -> None:
    assert set(dir(serde)) >= PUBLIC


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = serde.no_such_name


def test_no_public_name_is_also_a_submodule() -> None:
    submodules = {module.name for module in pkgutil.iter_modules(serde.__path__)}
    # `serde.relay` and `serde.target` are meant as the modules they are.
    assert PUBLIC & submodules - FORMATS == {"relay", "target"}


@pytest.mark.wide
@pytest.mark.parametrize(
    "name", first_of(sorted(PUBLIC - {"__version__"}), ["convert", "RelayModel", "SerdeError"])
)
def test_a_name_resolves_alone_in_a_fresh_interpreter(name: str) -> None:
    code = f"import serde; assert serde.{name}.__name__.rpartition('.')[2] == {name!r}"
    subprocess.run([sys.executable, "-c", code], check=True)
