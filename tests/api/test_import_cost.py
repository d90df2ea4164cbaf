"""`import serde` stays cheap: NumPy and the standard library, nothing else."""

import json
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("name", ["errors", "limits", "weights", "report", "relay", "compat"])
def test_the_lower_layers_load_no_third_party_package(name: str) -> None:
    assert third_party(modules_loaded_by(f"import serde.{name}")) == set()


def test_the_probe_sees_a_third_party_package() -> None:
    assert "onnx" in third_party(modules_loaded_by("import onnx"))
