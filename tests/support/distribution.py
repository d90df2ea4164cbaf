"""The wheel and the source archive of the checkout, as released: one is built from the other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What git does not have, anywhere and at the top.
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "*.egg-info")
_MADE = {"build", "dist", "site"}


def _left_out(folder: str, names: list[str]) -> set[str]:
    return _LEFT_OUT(folder, names) | (_MADE if Path(folder) == ROOT else set())


def build(folder: Path) -> tuple[Path, Path]:
    """Build a copy of the checkout, which stays as it is.

    Args:
        folder: Where the copy and what is built go.

    Returns:
        The wheel and the source archive.
    """
    shutil.copytree(ROOT, folder / "tree", ignore=_left_out)
    command = [sys.executable, "-m", "build", "-q", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(folder / "tree")], check=True, env=environment())
    shutil.rmtree(folder / "tree")
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


def environment(*paths: Path) -> dict[str, str]:
    """The variables of a process that finds packages in these folders, and no checkout."""
    found = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    found.pop("PYTHONPATH", None)
    return found | ({"PYTHONPATH": os.pathsep.join(map(str, paths))} if paths else {})


def empty_environment(folder: Path) -> Path:
    """Make a virtual environment without packages and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def pip(python: Path, *args: str) -> None:
    """Run this environment's pip for another environment."""
    command = [sys.executable, "-m", "pip", "--python", str(python), *args]
    subprocess.run(command, check=True, capture_output=True, env=environment())


def third_party() -> Path:
    """The folder of packages of this environment, for another that is not to install them again."""
    return Path(sysconfig.get_paths()["purelib"])
