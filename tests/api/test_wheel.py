"""A wheel holds what is no module, and its modules are compiled when it is installed."""

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
        if path.suffix in (".pyi", ".typed") or path.name == "index.json":
            assert (target / path.relative_to(ROOT)).is_file()
        elif path.suffix == ".py":
            compiled = list(
                (target / path.relative_to(ROOT).parent / "__pycache__").glob(f"{path.stem}.*.pyc")
            )
            assert compiled, path
