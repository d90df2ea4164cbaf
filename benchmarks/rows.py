"""Rows of tables, each from a process of its own, so that memory stays bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

__all__ = ["values_from_process"]


def values_from_process(script: str, name: str, *options: str) -> dict[str, Any]:
    """Return what a script prints last as JSON, given ``--only`` and the name of a row.

    If it fails, the values are the name and a fault.
    """
    command = [sys.executable, script, *options, "--only", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {"name": name, "faults": [f"the process ended with {done.returncode}"]}
    found: dict[str, Any] = json.loads(lines[-1])
    return found
