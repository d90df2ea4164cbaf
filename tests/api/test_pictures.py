"""The pictures and the table of README.md are what the code says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "site"), str(ROOT / "examples")]

import pictures  # noqa: E402
import screenshots  # noqa: E402
from support.accuracy import FACES, ZOO  # noqa: E402

import serde  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def texts(name: str) -> list[str]:
    """The texts of a picture."""
    tree = ET.parse(ROOT / "docs" / "pictures" / f"{name}.svg")
    found = ["".join(each.itertext()) for each in tree.iter(f"{SVG}text")]
    return [text.replace("\N{NO-BREAK SPACE}", " ") for text in found]


def test_formats_are_drawn_and_listed_as_they_are() -> None:
    drawn = (ROOT / "docs" / "pictures" / "formats.svg").read_text(encoding="utf-8")
    assert drawn == pictures.formats_picture(), "python tools/pictures.py"
    assert pictures.with_table(README) == README, "python tools/pictures.py"
    assert "| ONNX | yes | yes | 272 |" in README


def test_nets_are_counted_as_benchmarks_have_them() -> None:
    from support import nnef_zoo, relax_zoo, zoo

    own = len(ZOO)
    found = {
        "onnx": own + len(zoo.NAMES),
        "coreml": own + len(FACES) + len(zoo.NAMES),
        "torch": own + len(FACES) + len(zoo.NAMES),
        "nnef": len(nnef_zoo.NAMES),
        "relax": len(relax_zoo.NAMES),
    }
    assert found == pictures.NETS


def test_the_terminal_ran_the_command_that_stands_below_it() -> None:
    assert f"\n{pictures.COMMAND}\n" in README
    shown = texts("check")
    assert f"$ {pictures.COMMAND}" in " ".join(shown)
    assert [line for line in shown if re.search(r"checked mxnet .* the output agrees", line)]


def test_the_page_is_drawn_with_its_own_operators(tmp_path: Path) -> None:
    page = serde.view(screenshots.residual_net(tmp_path / "net.onnx")).html
    shown = set(texts("view"))
    assert {"Conv", "Relu", "stem/conv1", "stem", "head"} < shown
    assert [
        text
        for text in shown
        if not text.startswith("\N{MULTIPLICATION SIGN}") and not in_page(text, page)
    ] == []


def in_page(text: str, page: str) -> bool:
    """Whether each word of a text of a drawing stands in the data of a page."""
    return all(word in page for word in re.split(r"[ ·…]+|(?<=\d)(?= nodes)", text) if word)


@pytest.mark.parametrize("name", ["formats", "check", "view"])
def test_pictures_ask_for_nothing_and_are_small(name: str) -> None:
    path = ROOT / "docs" / "pictures" / f"{name}.svg"
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert re.findall(r"https?://(?!netron.app)|url\((?!#)|href|<script", text) == []
    assert path.stat().st_size < 24_000
    assert f"](docs/pictures/{name}.svg)" in README
