"""The pages that build something: their blocks are files, and what they build passes its tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import serde

ROOT = Path(serde.__file__).parents[1]
BLOCK = re.compile(
    r"^```(?:python|toml)\n# (?P<path>\S+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
ENTRY_POINT = re.compile(r'entry-points\."(?P<group>[^"]+)"\]\n(?P<name>\S+) = "(?P<value>[^"]+)"')


def blocks(page: str) -> dict[str, str]:
    """The blocks of a page that name a file; those of one file in a row."""
    found: dict[str, str] = {}
    for each in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        found[each["path"]] = found.get(each["path"], "") + each["body"]
    return found


def build(folder: Path, files: dict[str, str]) -> None:
    """Write files, and install their entry point as pip does."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    entry = ENTRY_POINT.search(files["pyproject.toml"])
    assert entry is not None
    info = folder / "page-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: page\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{entry['group']}]\n{entry['name']} = {entry['value']}\n"
    )


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Python in a folder whose packages it finds, and serde's."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package that docs/add-a-format.md builds."""
    folder = tmp_path_factory.mktemp("package")
    build(folder, blocks("docs/add-a-format.md"))
    return folder


@pytest.mark.wide
def test_the_format_of_the_page_passes_the_suite(package: Path) -> None:
    done = run(package, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_jsongraph.py")
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(r"^\d\d+ passed in", done.stdout, re.MULTILINE), done.stdout[-5000:]


@pytest.mark.wide
def test_the_format_of_the_page_is_known_to_the_command_line(package: Path) -> None:
    done = run(package, "-m", "serde", "formats")
    assert re.search(r"jsongraph +.*JSON graph.*yes.*yes.*\.jsongraph", done.stdout)
    done = run(package, "-m", "serde", "convert", "--help-all")
    assert re.search(r"--indent .*Columns by which each level", re.sub(r"\s+", " ", done.stdout))


WRITTEN = """
import sys

sys.path.append({tests!r})

from jsongraph.bridge import BRIDGE
from jsongraph.ops import OPS
from serde.core import Report
from serde.errors import UnsupportedModelError
from serde.relay import IRModule
from serde.relay.ir.model import ModelMeta, RelayModel
from support.samples import all_samples, build


def is_written(function):
    fields = getattr(function.body.type, "fields", (None,))
    inputs = tuple(each.name_hint for each in function.params)
    outputs = tuple(f"output{{index}}" for index in range(len(fields)))
    model = RelayModel(IRModule.from_expr(function), {{}}, ModelMeta(inputs, outputs, "relay", "1"))
    try:
        BRIDGE.from_relay(model, BRIDGE.bind_export({{}}), report=Report())
    except UnsupportedModelError:
        return False
    return True


found = [(each.values[0].name, is_written(build(*each.values).function)) for each in all_samples()]
written = [name for name, is_there in found if is_there]
print(len(set(OPS.exported())), len(set(written)), len(dict(found)), len(written) / len(found))
"""


@pytest.mark.wide
def test_the_format_of_the_page_writes_what_the_page_says(package: Path) -> None:
    (package / "written.py").write_text(WRITTEN.format(tests=str(ROOT / "tests")))
    done = run(package, "written.py")
    assert done.returncode == 0, done.stderr[-5000:]
    own, whole, known, share = map(float, done.stdout.split())
    page = " ".join((ROOT / "docs/add-a-format.md").read_text(encoding="utf-8").split())
    assert f"write {own:.0f} of Relay's {known:.0f} operators themselves" in page
    assert f"of all {known:.0f} they write {whole:.0f}," in page
    assert share >= 0.64


OPERATOR_TESTS = """
from jsongraph.bridge import BRIDGE
from serde.bridge.formats import get_bridge
from serde.testing import BridgeSuite


class TestJsonGraph(BridgeSuite):
    bridge = BRIDGE
    operators = ("serde.squareplus",)


class TestOnnx(BridgeSuite):
    bridge = get_bridge("onnx")
    operators = ("serde.squareplus",)
"""

DECLARE = """
import serde.relay.op.activation as module

exec(compile({source!r}, module.__file__, "exec"), vars(module))
"""


@pytest.mark.wide
def test_the_operator_of_the_page_goes_out_and_back(tmp_path: Path) -> None:
    files, added = blocks("docs/add-a-format.md"), blocks("CONTRIBUTING.md")
    files["jsongraph/ops.py"] += added["jsongraph/ops.py"]
    files["conftest.py"] = DECLARE.format(source=added["serde/relay/op/activation.py"])
    files["test_operator.py"] = OPERATOR_TESTS
    build(tmp_path, files)
    args = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_operator.py", "-k", "sample")
    done = run(tmp_path, *args)
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(r"^[4-9] passed", done.stdout, re.MULTILINE), done.stdout[-5000:]


def test_the_operator_of_the_page_takes_few_lines() -> None:
    declared = blocks("CONTRIBUTING.md")["serde/relay/op/activation.py"]
    assert len([line for line in declared.splitlines() if line]) <= 14
