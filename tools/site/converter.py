"""Puts the page that converts models in the browser into the site: ``convert.html``.

    python tools/site/converter.py site

Beside it, in ``convert/``, lie its scripts and all of the Python that they run: Pyodide from npm,
ONNX's wheel from PyPI, a wheel of this checkout, and from Pyodide's own distribution NumPy and
what else they need. That is fetched from Pyodide's servers, or taken from a folder
(``--distribution``); each file must have the digest that Pyodide's lock file says.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = Path(__file__).resolve().parent / "convert"
PYODIDE: Final = "0.29.5"
ONNX: Final = "1.22.0"
"""The newest whose wheel is for that Pyodide."""

DISTRIBUTION: Final = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
RUNTIME: Final = (
    *("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip"),
    "pyodide-lock.json",
)
WHEEL_TAGS: Final = ("--platform=pyemscripten_2025_0_wasm32", "--python-version=3.13", "--abi=abi3")
NEEDED: Final = ("numpy", "ml-dtypes", "protobuf", "typing-extensions")
"""Of Pyodide's distribution, what serde and ONNX import."""


def main() -> None:
    """Make the page as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("site", type=Path, help="the folder of the site")
    parser.add_argument(
        "--distribution", default=DISTRIBUTION, help="a folder, or a URL that ends in a slash"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        runtime = fetch_runtime(room)
        wheels = [fetch_onnx(room), build_serde(room)]
        write_page(given.site, runtime, wheels, given.distribution)


def fetch_runtime(room: Path) -> Path:
    """Return the folder of Pyodide's own files, from npm."""
    run("npm", "pack", "--silent", f"pyodide@{PYODIDE}", folder=room)
    with tarfile.open(room / f"pyodide-{PYODIDE}.tgz") as archive:
        archive.extractall(room, filter="data")
    return room / "package"


def fetch_onnx(room: Path) -> Path:
    """Return ONNX's wheel for Pyodide, from PyPI."""
    pip("download", "--only-binary=:all:", *WHEEL_TAGS, f"--dest={room / 'onnx'}", f"onnx=={ONNX}")
    return next((room / "onnx").iterdir())


def build_serde(room: Path) -> Path:
    """Return a wheel of this checkout."""
    tree = room / "tree"
    shutil.copytree(ROOT / "serde", tree / "serde", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tree / name)
    pip("wheel", f"--wheel-dir={room / 'serde'}", str(tree))
    return next((room / "serde").iterdir())


def pip(command: str, *arguments: str) -> None:
    """Run a command of pip for packages alone, without what they need."""
    run(sys.executable, "-m", "pip", command, "--quiet", "--no-deps", *arguments)


def run(*command: str, folder: Path | None = None) -> None:
    """Run a program.

    Raises:
        SystemExit: It fails.
    """
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")


def write_page(
    site: Path,
    runtime: Path,
    wheels: Iterable[Path],
    distribution: str,
    needed: Iterable[str] = NEEDED,
) -> None:
    """Write the page, its scripts and the Python that they run.

    Args:
        site: The folder of the site.
        runtime: The folder of Pyodide's own files.
        wheels: Of ONNX and of serde; each may import those before it, and what is needed.
        distribution: Where the files of Pyodide's packages are.
        needed: Names of these packages.

    Raises:
        SystemExit: A file is not there, or is another one than the lock file says.
    """
    files = {name: (runtime / name).read_bytes() for name in RUNTIME}
    lock = json.loads(files["pyodide-lock.json"])
    depends = list(closure(lock["packages"], needed))
    for name in depends:
        entry = lock["packages"][name]
        data = files[entry["file_name"]] = read_from(distribution, entry["file_name"])
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise SystemExit(f"{entry['file_name']}: is not the one of the lock file")
    for wheel in wheels:
        files[wheel.name] = wheel.read_bytes()
        entry = lock_entry(wheel, depends)
        lock["packages"][entry["name"]] = entry
        depends = [*depends, entry["name"]]
    files["pyodide-lock.json"] = json.dumps(lock).encode()
    place = site / "convert"
    shutil.rmtree(place, ignore_errors=True)
    (place / "pyodide").mkdir(parents=True)
    for name, data in files.items():
        (place / "pyodide" / name).write_bytes(data)
    for name in ("convert.css", "convert.js", "worker.js", "browser.py"):
        shutil.copyfile(SOURCE / name, place / name)
    text = (SOURCE / "convert.html").read_text(encoding="utf-8")
    parts = {"policy": html.escape(policy(), quote=True), "pyodide": PYODIDE}
    page = re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], text)
    (site / "convert.html").write_text(page, encoding="utf-8")


def closure(packages: dict[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Yield packages with what they depend on, each once."""
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            seen.add(name)
            yield name
            waiting += packages[name]["depends"]


def read_from(place: str, name: str) -> bytes:
    """Return the bytes of a file in a folder or at a URL.

    Raises:
        SystemExit: It is not there.
    """
    try:
        if place.startswith("https://"):
            with urllib.request.urlopen(place + name) as answer:
                return bytes(answer.read())
        return (Path(place) / name).read_bytes()
    except OSError as error:
        raise SystemExit(f"{name}: cannot be had from {place}: {error}") from None


def lock_entry(wheel: Path, depends: list[str]) -> dict[str, Any]:
    """Return what Pyodide's lock file says of a wheel."""
    name, version = wheel.name.split("-")[:2]
    return {
        "name": name.replace("_", "-"),
        "version": version,
        "file_name": wheel.name,
        "install_dir": "site",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "package_type": "package",
        "imports": [name.partition("_")[0]],
        "depends": depends,
        "unvendored_tests": False,
    }


def policy() -> str:
    """Return the policy of the page: what lies beside it, and the view of a model in its frame.

    That has its scripts and its style within, which are named by their digests.
    """
    sys.path.insert(0, str(ROOT))
    from serde.viewing.page import make_page

    shown = html.unescape(make_page("", {}))
    styles = re.findall(r"style-src ([^;]*);", shown)[0]
    scripts = re.findall(r"script-src ([^;]*);", shown)[0]
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' blob: 'wasm-unsafe-eval' {scripts}",
            f"style-src 'self' {styles}",
            "connect-src 'self'",
            "worker-src blob:",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


if __name__ == "__main__":
    main()
