"""Every block of code on every page runs, or says why it cannot."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import setuptools
from packaging.requirements import Requirement
from support.distribution import environment
from support.pages import ROOT, Block, blocks, pages

PAGES = pages()
LANGUAGES = {"json", "python", "sh", "sql", "swift", "text", "toml", "yaml"}
# Pages whose own tests run every block, and look at what comes of it.
RUN_ELSEWHERE = {
    "CONTRIBUTING.md": "api/test_pages.py",
    "docs/add-a-format.md": "api/test_pages.py",
    "docs/compile-with-tvm.md": "formats/guides/test_relax_guide.py",
    "docs/generate.md": "formats/guides/test_generate_guide.py",
    "docs/nnef.md": "formats/guides/test_nnef_guide.py",
    "docs/onnx-target.md": "target/test_page.py",
    "docs/pytorch.md": "formats/guides/test_torch_guide.py",
    "docs/relay.md": "relay/test_docs_relay.py",
    "docs/tvm-importers.md": "formats/guides/test_relax_importers_page.py",
    "docs/unknown-operators.md": "formats/guides/test_unknown_operators_page.py",
    "docs/vendor-compiler.md": "target/test_vendor.py",
}
# What stands on a page with a comment that says why it is not run.
NOT_RUN = {
    ("docs/onnx-files.md", "@OPS.imports("): "as it stands in serde, where it is registered once",
    (
        "docs/command-line.md",
        "serde bisect net.onnx --runtime --shrink bug.onnx",
    ): "ONNX Runtime is right here",
    (
        "docs/quantize.md",
        "serde convert llama/ llama-int4/ --to onnx --task text-generation --int4",
    ): "it takes a checkpoint",
    (
        "docs/quantize.md",
        "serde convert llama/ llama-int4/ --to onnx --task text-generation --int4 "
        "--perplexity-text wiki.txt --max-perplexity 12",
    ): "it takes a checkpoint",
}
RUN_HERE = sorted(
    page
    for page in set(PAGES) - set(RUN_ELSEWHERE)
    if any(each.language in ("python", "sh") for each in blocks(page))
)


def run_page(page: str, folder: Path, *flags: str) -> str:
    """Run a page in a process of its own and return what it printed last."""
    script = ROOT / "tests" / "support" / "page_run.py"
    done = subprocess.run(
        [sys.executable, str(script), page, *flags],
        cwd=folder,
        env=environment(ROOT / "tests", ROOT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout.splitlines()[-1]


@pytest.mark.wide
@pytest.mark.parametrize("page", RUN_HERE)
def test_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    if page == "docs/relax.md":
        pytest.importorskip("tvm")
    wanted = [
        each
        for each in blocks(page)
        if each.language in ("python", "sh") and not each.reason and not each.wants_torch
    ]
    assert run_page(page, tmp_path, "--without-torch") == f"{len(wanted)} blocks ran"


@pytest.mark.wide
@pytest.mark.parametrize(
    "page", [page for page in RUN_HERE if any(each.wants_torch for each in blocks(page))]
)
def test_a_page_with_torch_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tvm")
    assert run_page(page, tmp_path).endswith(" blocks ran")


def every_block() -> list[Any]:
    found = [each for page in PAGES for each in blocks(page)]
    return [pytest.param(each, id=f"{each.page}:{each.line}") for each in found]


def test_every_block_has_a_language() -> None:
    unknown = [(each.page, each.line) for page in PAGES for each in blocks(page)]
    found = {(b.page, b.line) for page in PAGES for b in blocks(page) if b.language in LANGUAGES}
    assert set(unknown) - found == set()
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert 2 * len(blocks(page)) == len(re.findall(r"^ *```", text, re.MULTILINE)), page


def test_what_is_not_run_is_listed_with_its_reason() -> None:
    found = {
        (each.page, start): each.reason
        for page in PAGES
        for each in blocks(page)
        if each.reason
        for start in [each.body.split('"')[0].split("\n")[0]]
    }
    assert found == NOT_RUN


def test_pages_that_are_run_elsewhere_are_read_there() -> None:
    for page, test in RUN_ELSEWHERE.items():
        assert Path(page).name in (ROOT / "tests" / test).read_text(encoding="utf-8"), page


@pytest.mark.parametrize(
    "block", [each for each in every_block() if each.values[0].language == "python"]
)
def test_a_block_of_python_parses(block: Block) -> None:
    ast.parse(block.body)


@pytest.fixture(scope="module")
def extras() -> dict[str, list[str]]:
    """The extras of the distribution."""
    found: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setuptools, "setup", found.update)
        patch.chdir(ROOT)
        runpy.run_path(str(ROOT / "setup.py"))
    return dict(found["extras_require"])


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "block", [each for each in every_block() if each.values[0].language == "sh"]
)
def test_a_block_of_a_shell_parses(block: Block, extras: dict[str, list[str]]) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=block.body, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for line in block.body.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            goals = [word for word in words[1:] if "=" not in word]
            assert set(goals) <= set(targets), line
        if words[:2] == ["pip", "install"]:
            for word in words[2:]:
                if word.startswith("serde-relay"):
                    assert Requirement(word).extras <= set(extras), line


def test_extras_that_pages_name_are_there(extras: dict[str, list[str]]) -> None:
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for named in re.findall(r"serde-relay\[([\w,]+)\]", text):
            assert set(named.split(",")) <= set(extras), page
