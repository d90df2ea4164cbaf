"""Runs the blocks of a page in the working folder: ``python page_run.py PAGE [--without-torch]``.

First comes ``tests/pages/<name of the page>.py``, which makes the files and the names that the page
takes for granted. Blocks of Python share their names, as on one prompt; commands of serde run in
this process, other commands of a shell in one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.pages import ROOT, Block, blocks

# Commands that install or build, which the test looks at, and servers of others.
ELSEWHERE = ("pip", "make", "docker", "torchserve", "tritonserver")
# Hosts that stand for somebody's own: a store, a scheduler, a server.
OUTSIDE = re.compile(r"\bexample\.com\b|//10\.0\.0\.|//localhost:")


def main(page: str, *flags: str) -> None:
    """Run a page from top to bottom and print how many blocks ran."""
    names: dict[str, Any] = {"__name__": "__main__"}
    prepared = ROOT / "tests" / "pages" / f"{Path(page).stem.lower().replace('-', '_')}.py"
    if prepared.exists():
        exec(compile(prepared.read_text(encoding="utf-8"), str(prepared), "exec"), names)
    sys.path.insert(0, os.getcwd())
    ran = 0
    for block in blocks(page):
        if block.reason or (block.wants_torch and "--without-torch" in flags):
            continue
        if block.language == "python":
            # The lines of a traceback are those of the page.
            text = "\n" * (block.line - 1) + block.body
            exec(compile(text, str(ROOT / page), "exec"), names)
        elif block.language == "sh":
            run_shell(block)
        else:
            continue
        ran += 1
    print(f"{ran} blocks ran")


def run_shell(block: Block) -> None:
    """Run the commands of a block; installing and building are judged by the test."""
    lines = [each for each in block.body.replace("\\\n", " ").splitlines() if each.strip()]
    for line in lines:
        words = shlex.split(line, comments=True)
        if not words or words[0] in ELSEWHERE or OUTSIDE.search(line):
            continue
        if words[0] == "serde" and not set("|<>;&$*") & set(line):
            code = run_serde(words[1:])
        else:
            code = run_other(line)
        if code:
            raise SystemExit(f"{block.page}:{block.line}: exit code {code}: {line}")


def run_serde(words: list[str]) -> int:
    """Run a command of serde in this process, and return its exit code."""
    from serde.command.cli import main as serde

    return serde(words)


def run_other(line: str) -> int:
    """Run a line of a shell in which ``serde`` is the command of this Python."""
    script = f'set -euo pipefail\nserde() {{ "{sys.executable}" -m serde "$@"; }}\n{line}'
    return subprocess.run(["bash", "-c", script], check=False).returncode


if __name__ == "__main__":
    main(*sys.argv[1:])
