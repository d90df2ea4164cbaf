"""pyserde installs a package `serde` too; wherever files of both meet, one sentence says so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.distribution import build, empty_environment, environment, pip, third_party

from serde.core.installation import CLASH, LOST

PACKAGE = Path(__file__).parents[2] / "serde"
# What pyserde has since its first releases, and how its `__init__` begins.
PYSERDE_MODULES = ("core.py", "de.py", "se.py", "compat.py")
PYSERDE_INIT = "from .compat import SerdeError, SerdeSkip, T\nfrom .core import coerce\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with a copy of this one."""
    ignore = shutil.ignore_patterns("__pycache__", "*.pyi")
    shutil.copytree(PACKAGE, tmp_path / "serde", ignore=ignore)
    return tmp_path


def put_pyserde(site: Path) -> None:
    for name in PYSERDE_MODULES:
        (site / "serde" / name).write_text("raise RuntimeError('pyserde is run')\n")


def python(site: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *args],
        cwd=site,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.wide
def test_pyserde_beneath_is_warned_of(site: Path) -> None:
    put_pyserde(site)
    done = python(site, "-c", "import serde; print(serde.convert.__name__)")
    assert done.stdout == "convert\n"
    assert f"RuntimeWarning: {CLASH}" in done.stderr


@pytest.mark.wide
@pytest.mark.parametrize("args", [("-c", "import serde"), ("-m", "serde", "--version")])
def test_pyserde_above_is_an_error_that_names_both(site: Path, args: tuple[str, ...]) -> None:
    put_pyserde(site)
    (site / "serde" / "__init__.py").write_text(PYSERDE_INIT)
    done = python(site, *args)
    assert done.returncode == 1
    assert re.search(rf"(ImportError: |\(){re.escape(CLASH)}\)?$", done.stderr.rstrip())


@pytest.mark.wide
def test_a_console_script_says_what_uninstalling_pyserde_took(site: Path) -> None:
    (site / "serde" / "__init__.py").unlink()
    script = "from serde.command.cli import main; raise SystemExit(main())"
    done = python(site, "-c", script, "--version")
    assert (done.returncode, done.stderr) == (6, f"serde: {LOST}\n")


@pytest.mark.wide
def test_alone_nothing_is_said(site: Path) -> None:
    done = python(site, "-W", "error", "-m", "serde", "--version")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.wide
def test_a_name_that_is_nowhere_is_an_attribute_error(site: Path) -> None:
    done = python(site, "-c", "import serde.compat as c; c.SerdeSkip")
    assert "AttributeError: module 'serde.compat' has no attribute 'SerdeSkip'" in done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("built"))[0]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["pyserde", "serde-relay"])
def test_the_real_pyserde_is_found(first: str, wheel: Path, tmp_path: Path) -> None:
    packages = ["pyserde", str(wheel)] if first == "pyserde" else [str(wheel), "pyserde"]
    path = empty_environment(tmp_path / "environment")
    for package in packages:
        pip(path, "install", "--no-deps", package)
    asked: dict[str, Any] = {"cwd": tmp_path, "env": environment(third_party())}
    asked |= {"capture_output": True, "text": True}
    for command in ([path, "-c", "import serde"], [path.with_name("serde"), "--version"]):
        done = subprocess.run(command, check=False, **asked)
        assert CLASH in done.stderr
        assert done.returncode == (0 if first == "pyserde" else 1)
    pip(path, "uninstall", "-y", "pyserde")
    done = subprocess.run([path.with_name("serde"), "--version"], check=False, **asked)
    assert (done.returncode, done.stderr) == (6, f"serde: {LOST}\n")
    pip(path, "install", "--force-reinstall", "--no-deps", str(wheel))
    done = subprocess.run([path.with_name("serde"), "--version"], check=False, **asked)
    assert (done.returncode, done.stderr) == (0, "")
