"""What the tree holds: nothing that every clone would have to carry."""

from __future__ import annotations

import subprocess

import pytest
from support.distribution import ROOT


def test_no_tracked_file_is_large() -> None:
    """A wheel or a model that slips in is carried by every clone from then on."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout")
    command = ["git", "ls-files", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for name in names.split("\0") if (path := ROOT / name).is_file()]
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in paths}
    assert {name: size for name, size in sizes.items() if size > 500_000} == {}
