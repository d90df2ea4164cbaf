"""A wheel holds what is no module, and its modules are compiled when it is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_an_installed_wheel_has_indices_stubs_and_byte_code(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path / "wheel"), str(ROOT)]
    subprocess.run([*pip, *build], check=True, capture_output=True)
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    target = tmp_path / "site"
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", str(target), str(wheel)],
        check=True,
        capture_output=True,
    )
    for path in (ROOT / "serde").rglob("*"):
        if path.suffix in (".pyi", ".typed", ".css", ".js") or path.name == "index.json":
            assert (target / path.relative_to(ROOT)).is_file()
        elif path.suffix == ".py":
            compiled = list(
                (target / path.relative_to(ROOT).parent / "__pycache__").glob(f"{path.stem}.*.pyc")
            )
            assert compiled, path


@pytest.mark.slow
def test_a_release_has_the_same_bytes_from_any_checkout(tmp_path: Path) -> None:
    """Another folder, other times, another umask, another order of files."""
    found = []
    for number, umask in enumerate(("022", "077")):
        clone = tmp_path / f"clone {number}"
        script = f"umask {umask} && git clone -q --no-hardlinks {ROOT} '{clone}'"
        subprocess.run(["sh", "-c", script], check=True)
        for path in sorted(clone.rglob("*"), reverse=bool(number)):
            if ".git" not in path.parts:
                os.utime(path, (10**9 + number, 10**9 + number))
        build = [sys.executable, str(clone / "tools" / "release.py"), str(tmp_path / str(number))]
        subprocess.run(build, check=True, capture_output=True)
        built = sorted((tmp_path / str(number)).iterdir())
        assert [path.suffix for path in built] == [".whl", ".gz"]
        found.append([path.read_bytes() for path in built])
    assert found[0] == found[1]
