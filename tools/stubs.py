"""Writes the stubs that tell editors and type checkers what Python finds out when it runs.

Run it as ``make docs`` does: ``python tools/stubs.py``. With ``--check`` nothing is written,
and the exit code is 1 if a stub is not current.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from api_stubs import api_stubs
from relay_stubs import FOLDER, relay_stubs

ROOT = Path(__file__).resolve().parents[1]


def stubs() -> dict[Path, str]:
    """Return the text of every stub by its path."""
    texts = {**api_stubs(), **relay_stubs()}
    return {ROOT / name: _formatted(name, text) for name, text in sorted(texts.items())}


def outdated() -> list[Path]:
    """Return the stubs that are not there as they should be, or that should not be there."""
    wanted = stubs()
    found = set((ROOT / FOLDER).rglob("*.pyi"))
    stale = [path for path, text in wanted.items() if not _is(path, text)]
    return sorted({*stale, *(found - set(wanted))})


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def _formatted(name: str, text: str) -> str:
    """Return a stub as ruff sorts and formats it."""
    for command in (
        ["check", "--quiet", "--fix-only", "--select", "I,RUF022"],
        ["format", "--quiet"],
    ):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(ROOT / name), "-"]
        done = subprocess.run(
            ruff, input=text, capture_output=True, text=True, cwd=ROOT, check=True
        )
        text = done.stdout
    return text


def main() -> int:
    """Write the stubs, or say which are not current."""
    if sys.argv[1:] == ["--check"]:
        for path in outdated():
            print(f"{path.relative_to(ROOT)} is not current; run: make docs")
        return 1 if outdated() else 0
    wanted = stubs()
    for path in set((ROOT / FOLDER).rglob("*.pyi")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
