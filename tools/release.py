"""Builds the wheel and the source archive of a commit, the same bytes every time.

    python tools/release.py [FOLDER]

What is built is what git has of the commit, with one date (that of the commit), one owner and
two modes of files, so that neither the checkout nor the user that builds leaves a trace. The
versions of the tools that build are those that ``constraints/`` pins.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Build into the folder that is named, ``dist`` if none is, and print digests."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    for path in build(ROOT, target):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path)


def build(root: Path, target: Path) -> list[Path]:
    """Build the commit that is checked out.

    Args:
        root: The checkout.
        target: The folder for what is built.

    Returns:
        The wheel and the source archive.
    """
    date = int(_git(root, "show", "--no-patch", "--format=%ct", "HEAD"))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(date), "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as scratch:
        source, built = Path(scratch) / "source", Path(scratch) / "built"
        _export(root, source, date)
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(built), "."]
        subprocess.run(command, cwd=source, env=environment, check=True, stdout=sys.stderr)
        target.mkdir(parents=True, exist_ok=True)
        return [_put(path, target, date) for path in sorted(built.iterdir())]


def _git(root: Path, *command: str) -> bytes:
    return subprocess.run(["git", *command], cwd=root, check=True, capture_output=True).stdout


def _export(root: Path, source: Path, date: int) -> None:
    """Write the files of a commit, with a date, for everybody to read."""
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", "HEAD"))) as archive:
        for member in archive:
            path = source / member.name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            content = archive.extractfile(member)
            if content is None:
                raise ValueError(f"{member.name}: expected a file")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
            path.chmod(_mode(member))
            os.utime(path, (date, date))


def _mode(member: tarfile.TarInfo) -> int:
    return 0o755 if member.isdir() or member.mode & 0o100 else 0o644


def _put(path: Path, target: Path, date: int) -> Path:
    """Put what was built into its folder, a source archive packed anew."""
    data = path.read_bytes()
    if path.name.endswith(".tar.gz"):
        data = _repack(data, date)
    final = target / path.name
    final.write_bytes(data)
    return final


def _repack(packed: bytes, date: int) -> bytes:
    """Return an archive with its members in order, of one date and of nobody."""
    plain = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(packed)) as old,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            entry = tarfile.TarInfo(member.name)
            entry.type, entry.size, entry.mtime = member.type, member.size, date
            entry.mode = _mode(member)
            new.addfile(entry, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(plain.getvalue(), 9, mtime=date)


if __name__ == "__main__":
    main()
