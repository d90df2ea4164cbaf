"""Writes the pictures and the table of README.md: ``python tools/pictures.py [--recorded]``.

Always those of the formats, which FORMATS determines. With ``--recorded`` those of a terminal and
of a page too, which take MXNet, ONNX Runtime, Chromium and Selenium.
"""

from __future__ import annotations

import html
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tools" / "site")]

from serde.bridge.contract import AnyBridge  # noqa: E402
from serde.bridge.formats import FORMATS, PIVOT, get_bridge  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
README = ROOT / "README.md"
COMMAND = "serde convert resnet50-symbol.json resnet50.onnx --input-shape data:1,3,224,224 --check"
TABLE = re.compile(r"(?<=<!-- formats -->\n\n).*?(?=\n\n<!-- /formats -->)", re.DOTALL)

# Nets of MXNet's, GluonCV's and GluonNLP's zoos that benchmarks convert from MXNet's files and
# compare with it; a test holds these numbers to the lists.
NETS = {"onnx": 272, "coreml": 277, "torch": 277, "nnef": 76, "relax": 71}

_WIDTH, _BOX, _ROW, _TOP = 620, 210, 58, 46
_FONT = 'font-family="system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, sans-serif"'


def title(bridge: AnyBridge) -> str:
    """What a format is called in a picture."""
    return bridge.title.partition(" (")[0]


def suffixes(bridge: AnyBridge, *, written: bool) -> list[str]:
    """The ends of the names of the files that a format reads or writes."""
    return [each for each in bridge.suffixes if not written or each not in bridge.read_suffixes]


def formats_picture() -> str:
    """Return the picture of what is read and written, as SVG."""
    bridges = [get_bridge(name) for name in sorted(FORMATS)]
    read = [bridge for bridge in bridges if bridge.import_options is not None]
    written = [bridge for bridge in bridges if bridge.export_options is not None]
    height = _TOP + max(len(read), len(written)) * _ROW + 6
    middle = (_TOP + height) / 2
    right = _WIDTH - _BOX - 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" {_FONT}>',
        "<title>Formats that serde reads and writes, all by way of Relay</title>",
        f'<rect width="{_WIDTH}" height="{height}" rx="12" fill="#f6f7f9"/>',
        *_column("reads", read, 8, height, written=False),
        *_column("writes", written, right, height, written=True),
    ]
    for bridge_count, start, end in ((len(read), 8 + _BOX, 262), (len(written), right, 358)):
        for place in range(bridge_count):
            y = _center(place, bridge_count, height)
            bend = (start + end) / 2
            parts.append(
                f'<path d="M{start} {y:g}C{bend:g} {y:g} {bend:g} {middle:g} {end} {middle:g}" '
                'fill="none" stroke="#9aa5b1" stroke-width="1.5"/>'
            )
    parts += [
        f'<rect x="260" y="{middle - 34:g}" width="100" height="68" rx="14" fill="#2563eb"/>',
        _text("Relay", 310, middle - 2, 19, "#ffffff", bold=True),
        _text("to look at", 310, middle + 18, 13, "#ffffff"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _center(place: int, count: int, height: float) -> float:
    """The middle of a box in a column."""
    return _TOP + (height - _TOP - 6) / count * (place + 0.5)


def _column(
    head: str, bridges: Sequence[AnyBridge], left: float, height: float, *, written: bool
) -> list[str]:
    parts = [_text(head, left + _BOX / 2, 30, 15, "#5c6875", bold=True)]
    for place, bridge in enumerate(bridges):
        y = _center(place, len(bridges), height)
        parts += [
            f'<rect x="{left:g}" y="{y - 24:g}" width="{_BOX}" height="48" rx="8" '
            'fill="#ffffff" stroke="#cfd6de"/>',
            _text(title(bridge), left + _BOX / 2, y - 3, 14, "#1d2733", bold=True),
            _text(
                " ".join(suffixes(bridge, written=written)[:3]),
                left + _BOX / 2,
                y + 15,
                12,
                "#5c6875",
            ),
        ]
    return parts


def _text(text: str, x: float, y: float, size: int, fill: str, *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="middle"{weight}>'
        f"{html.escape(text)}</text>"
    )


def formats_table() -> str:
    """Return the table of what is read and written, as Markdown."""
    rows = ["| format | read | written | nets compared with MXNet |", "|---|---|---|--:|"]
    for name in sorted(FORMATS, key=lambda name: (-NETS.get(name, 0), name)):
        bridge = get_bridge(name)
        known = (bridge.import_options, bridge.export_options)
        sides = ["" if options is None else "yes" for options in known]
        figure = {"mxnet": "the source", PIVOT: "between all"}.get(name, "")
        rows.append(f"| {title(bridge)} | {' | '.join(sides)} | {NETS.get(name, figure)} |")
    return "\n".join(rows)


def with_table(text: str) -> str:
    """Return README.md with the table of formats as it must be."""
    return TABLE.sub(lambda _: formats_table(), text)


def terminal_picture(command: str, folder: Path) -> str:
    """Return what a command prints on a terminal, as SVG.

    Args:
        command: The command of serde.
        folder: Where it runs.
    """
    from rich.console import Console
    from rich.text import Text

    raw = bytearray()

    def keep(handle: int) -> bytes:
        data = os.read(handle, 65536)
        raw.extend(data)
        return data

    os.environ |= {"COLUMNS": "90", "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    os.chdir(folder)
    pty.spawn([sys.executable, "-m", *command.split()], keep)
    shown: list[str] = []
    for line in raw.decode().replace("\r\n", "\n").split("\n"):
        for _ in range(line.count("\x1b[1A")):  # up, to write over what was there
            shown.pop()
        shown.append(re.sub(r".*(?:\x1b\[2K|\x1b\[\?25[lh]|\r)", "", line))
    console = Console(record=True, width=90, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"\x1b[1m$ {command}\x1b[0m\n" + "\n".join(shown).strip()))
    # Rich's own frame asks a CDN for a font.
    from rich._export_format import CONSOLE_SVG_FORMAT

    plain = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    plain = re.sub(r"<!-- Generated .*? -->\s*", "", plain).replace(
        "Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace"
    )
    return console.export_svg(title="serde", code_format=plain, unique_id="check")


def page_picture(folder: Path) -> str:
    """Return a network as ``serde view`` draws it, as SVG."""
    from screenshots import residual_net

    import serde

    serde.view(residual_net(folder / "net.onnx"), path=folder / "view.html")
    browsers: Any = import_module("support.browser")  # of the tests
    with browsers.chromium() as browser:
        browser.open(folder / "view.html")
        browser.run("foldAll(); go(models[0].find('stem/conv1')); select(-1)")
        return str(browser.run("return new Picture(drawing).svg()")) + "\n"


def main(recorded: bool) -> None:
    """Write the pictures."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "formats.svg").write_text(formats_picture(), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    if not recorded:
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (PICTURES / "view.svg").write_text(page_picture(folder), encoding="utf-8")
        build = [sys.executable, str(ROOT / "examples" / "build_resnet50.py"), "."]
        subprocess.run(build, cwd=folder, check=True)
        (PICTURES / "check.svg").write_text(terminal_picture(COMMAND, folder), encoding="utf-8")


if __name__ == "__main__":
    main("--recorded" in sys.argv[1:])
