"""Builds the documentation site: ``python tools/site/build.py [FOLDER]``, as ``make site`` does.

A project for Zensical is put together in a folder of its own: the pages of docs/, the texts of the
repository, the reference, and pictures of what serde shows, made by Chromium where that is
installed. Then Zensical makes pages of it, a warning being an error, and the search is set up: it
works where no server is, has guides before what is generated, and takes one spelling for the other.
"""

from __future__ import annotations

import json
import posixpath
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pages import ROOT, write_pages
from screenshots import make_pictures

# What the search of files loads where no server is; bundled with its licence.
WORKER = ROOT / "tools" / "site" / "iframe-worker" / "shim.js"
WORKER_ADDRESS = "https://unpkg.com/iframe-worker/shim"
GENERATED = ("reference/", "operators.html", "changelog.html")
# In the worker of Zensical's search: what makes words alike, and what puts pages in order.
WORDS, ORDER = "transform:B(Pt)", "l.items.sort(ht(...s))"


def build(target: Path) -> None:
    """Build the site.

    Args:
        target: The folder for it, which is replaced.
    """
    with tempfile.TemporaryDirectory() as made:
        project = Path(made)
        for name in ("serde", "tools"):
            (project / name).symlink_to(ROOT / name)
        shutil.copy(ROOT / "mkdocs.yml", project)
        docs = project / "docs"
        shutil.copytree(ROOT / "docs", docs)
        write_pages(docs, make_pictures(docs / "screenshots"))
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        subprocess.run(command, cwd=project, check=True)
        site = project / "site"
        search_without_server(site)
        order_search(site)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(site, target)


def search_without_server(site: Path) -> None:
    """Take the script by which files search from the site and not from a CDN."""
    place = site / "assets" / "iframe-worker"
    place.mkdir()
    for path in (WORKER, WORKER.with_name("LICENSE")):
        shutil.copy(path, place)
    for path in site.rglob("*.html"):
        # A server shows 404.html at any address.
        folder = path.relative_to(site).parent.as_posix()
        own = posixpath.relpath("assets/iframe-worker/shim.js", folder)
        text = path.read_text(encoding="utf-8")
        shown = "/assets/iframe-worker/shim.js" if path.name == "404.html" else own
        path.write_text(text.replace(WORKER_ADDRESS, shown), encoding="utf-8")


def order_search(site: Path) -> None:
    """Put guides before what is generated, and let ``quantise`` find ``quantize``."""
    index: dict[str, Any] = json.loads((site / "search.json").read_text(encoding="utf-8"))
    index["items"].sort(key=lambda item: item["location"].startswith(GENERATED))
    guides = sum(not item["location"].startswith(GENERATED) for item in index["items"])
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (site / "search.json").write_text(text, encoding="utf-8")
    (site / "search.js").write_text(f"var __index = {text}", encoding="utf-8")
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.js")
    script = worker.read_text(encoding="utf-8")
    for known in (WORDS, ORDER):
        if script.count(known) != 1:
            raise SystemExit(f"{worker.name}: {known} is not there once; Zensical has changed")
    script = script.replace(WORDS, 'transform:B(t=>Pt(t).replaceAll("is","iz"))')
    ordered = f"l.items.sort((a,b)=>(a.id>={guides})-(b.id>={guides})||ht(...s)(a,b))"
    worker.write_text(script.replace(ORDER, ordered), encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
