"""Findings: made smaller, told and kept in files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from fuzz.case import Case
from fuzz.judge import Finding, Judge
from fuzz.mutators.mutate import reduce_case

__all__ = ["Keeper", "shrink"]

_SECONDS: Final = 20.0
"""What making one finding smaller may take."""


def shrink(
    judge: Judge, case: Case, found: Finding, *, base: float, detect: bool
) -> tuple[Case, Finding]:
    """Return the smallest case that has a finding, as far as it is found in time.

    A finding that does not come again is kept as it is, and says so.
    """
    end = time.monotonic() + _SECONDS

    def still(smaller: Case) -> bool:
        if time.monotonic() > end:
            raise TimeoutError
        other = judge.run(smaller, found.target, base=base, detect=detect)
        return other is not None and other.key == found.key

    if not still(case):
        return case, replace(found, message=f"{found.message} (not again)")
    return reduce_case(case, still), found


class Keeper:
    """Keeps one case for each finding.

    Args:
        folder: Where to.

    Attributes:
        findings: What was found, by key.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.findings: dict[tuple[str, str, str], Finding] = {}

    def keep(self, found: Finding, case: Case, facts: Mapping[str, Any]) -> None:
        """Print a finding and write its files, unless there is one like it."""
        if found.key in self.findings:
            return
        self.findings[found.key] = found
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{found.kind}-{case.digest}.zip"
        path.write_bytes(case.pack())
        told = {**asdict(found), "seed": case.name, **facts}
        path.with_suffix(".json").write_text(json.dumps(told, indent=2) + "\n")
        print(
            f"{case.format} {found.kind} {found.what} at {found.place} "
            f"[{case.name} -> {found.target}, {case.size} bytes] {found.message[:160]!r}\n"
            f"    {path}",
            flush=True,
        )
