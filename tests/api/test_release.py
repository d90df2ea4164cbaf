"""What a release holds: an archive that is tested and built, a wheel that types and runs alone."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.distribution import ROOT, build, empty_environment, environment, pip, third_party

pytestmark = pytest.mark.slow

CONSUMER = """
import numpy as np

import serde
from serde import relay
from serde.errors import SerdeError


def convert(path: str) -> list[str]:
    report: serde.Report = serde.convert(path, "net.onnx", input_shapes={"data": ("N", 3, 8, 8)})
    try:
        model = serde.to_relay(path)
    except SerdeError as error:
        return [str(error)]
    y = relay.nn.softmax(relay.var("x", shape=(2, 3)), axis=-1)
    relay.create_executor("graph", mod=relay.IRModule.from_expr(y)).evaluate()(np.ones((2, 3)))
    return [verdict.output for verdict in report.verdicts] + list(model.params)


wrong: int = convert("net-symbol.json")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def python(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel."""
    path = empty_environment(tmp_path_factory.mktemp("environment") / "venv")
    pip(path, "install", "--no-deps", str(built[0]))
    return path


def run(command: list[Any], folder: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        env=environment(*paths),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_index_takes_both(built: tuple[Path, Path]) -> None:
    done = run([sys.executable, "-m", "twine", "check", "--strict", *built], built[0].parent)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_has_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
        (told,) = (name for name in names if name.endswith("dist-info/METADATA"))
        metadata = wheel.read(told).decode()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"serde"}
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "serde").rglob("*")
        if path.is_file() and not {"__pycache__", ".ruff_cache"} & {*path.parts}
    }
    assert wanted - names == {"serde/torch/written/functions/ruff.toml"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for line in ("License-Expression: Apache-2.0", "Author: The serde authors"):
        assert f"\n{line}\n" in metadata
    assert len(re.findall(r"^Project-URL: ", metadata, re.MULTILINE)) >= 5


@pytest.fixture(scope="module")
def unpacked(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the source archive."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(built[1]) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


def test_the_archive_has_what_git_has(unpacked: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout")
    done = run(["git", "ls-files"], ROOT)
    wanted = {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}
    wanted -= {".gitignore", ".dockerignore"}
    assert {name for name in wanted if not (unpacked / name).is_file()} == set()


def test_a_sample_of_the_tests_runs_from_the_archive(unpacked: Path) -> None:
    tests = ["tests/relay/test_text.py", "tests/api/test_verdict.py", "tests/api/test_rename.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    done = run([*command, *tests], unpacked, unpacked)
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(r"^\d{2,} passed", done.stdout, re.MULTILINE), done.stdout[-5000:]


def test_the_wheel_runs_alone(python: Path, tmp_path: Path) -> None:
    done = run([python.with_name("serde"), "formats"], tmp_path, third_party())
    assert done.returncode == 0, done.stderr
    assert "onnx" in done.stdout
    where = run([python, "-c", "import serde; print(serde.__file__)"], tmp_path, third_party())
    assert Path(where.stdout.strip()).is_relative_to(python.parents[1])


def test_mypy_knows_the_types_of_the_wheel(python: Path, tmp_path: Path) -> None:
    (tmp_path / "consumer.py").write_text(CONSUMER)
    flags = ["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}"]
    flags += ["--python-executable", str(python)]
    done = run([sys.executable, "-m", "mypy", *flags, "consumer.py"], tmp_path)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    wrong = CONSUMER[1:].count("\n", 0, CONSUMER.index("wrong: int")) + 2
    errors = [line for line in errors if '"numpy"' not in line]
    assert len(errors) == 1, done.stdout
    assert f"consumer.py:{wrong}: " in errors[0]
    assert 'variable has type "int"' in errors[0]


def test_basedpyright_knows_the_types_of_the_wheel(python: Path, tmp_path: Path) -> None:
    (tmp_path / "consumer.py").write_text(CONSUMER)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    checker = Path(sys.executable).with_name("basedpyright")
    done = run([checker, "--pythonpath", python, "consumer.py"], tmp_path)
    errors = [line for line in done.stdout.splitlines() if " - error: " in line]
    errors = [line for line in errors if "numpy" not in line]
    assert len(errors) == 1, done.stdout
    assert '"int"' in errors[0]
