"""The page: one file of HTML that holds its data, its style and its scripts, and asks for nothing.

The policy in its head allows the very style and scripts that stand in it, by their digests, and no
request at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core.records import dataclass, field

__all__ = ["Page", "ShownModel", "embedded_json", "make_page", "quoted_digest"]

_SCRIPTS: Final = (
    *("dagre.min.js", "model.js", "layout.js", "drawing.js", "panel.js", "page.js", "export.js"),
)
_STYLE: Final = "page.css"
_LICENSE: Final = "dagre.LICENSE.txt"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SOURCE_MAP: Final = re.compile("^//# sourceMappingURL=.*$", re.MULTILINE)
_NOTEBOOK_HEIGHT: Final = 640

_ESCAPED: Final = str.maketrans(
    {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"}
)
"""What could end the element that JSON stands in, or is a line of a script."""


@dataclass(frozen=True)
class ShownModel:
    """A model on a page.

    Attributes:
        title: What it is called there.
        nodes: Number of its nodes, inputs and outputs included.
        gaps: Number of reasons why nodes cannot be converted.
    """

    title: str
    nodes: int
    gaps: int


@dataclass(frozen=True)
class Page:
    """A page that shows a model.

    Attributes:
        html: All of it.
        path: Where it was written, if it was.
        models: What is shown.
    """

    html: str = field(repr=False)
    path: Path | None = None
    models: tuple[ShownModel, ...] = ()

    def _repr_html_(self) -> str:
        """Return the page for a notebook, in a frame that can reach nothing of it."""
        return (
            '<iframe sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{_NOTEBOOK_HEIGHT}px;border:1px solid #8884" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def make_page(title: str, data: Mapping[str, AnyValue]) -> str:
    """Return the page of `data`, which ``model.js`` describes."""
    style = _asset(_STYLE)
    scripts = [_asset(name) for name in _SCRIPTS]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {quoted_digest(style)}",
            f"script-src {' '.join(map(quoted_digest, scripts))}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    shell = _asset("page.html")
    parts = {
        "title": html.escape(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", title)),
        "policy": html.escape(policy, quote=True),
        "license": _asset(_LICENSE).replace("--", "- -"),
        "style": f"<style>{style}</style>",
        "data": embedded_json(data),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], shell)


def quoted_digest(text: str) -> str:
    """Return what a policy calls the content of an element."""
    found = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(found).decode('ascii')}'"


def embedded_json(data: Mapping[str, AnyValue]) -> str:
    """Return JSON that can end no element, open none and break no line, whatever it holds."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub("\\\\ufffd", text.translate(_ESCAPED))


@cache
def _asset(name: str) -> str:
    text = files("serde.viewing").joinpath("assets", name).read_text("utf-8")
    return _SOURCE_MAP.sub("", text).strip("\n")
