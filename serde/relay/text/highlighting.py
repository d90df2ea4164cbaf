"""Relay text as HTML, its parts marked, for notebooks."""

from __future__ import annotations

import re
from typing import Final

from serde.core.markup import escaped, figure, folded
from serde.relay.ir.module import IRModule

__all__ = ["module_html"]

_MOST_LINES: Final = 300
_MOST_CHARACTERS: Final = 30_000
_OPEN_LINES: Final = 30
_TOKEN: Final = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<variable>[%@][\w.]+)
    |(?P<keyword>\b(?:fn|def|let|if|else|match|type|Tensor|True|False|None)\b)
    |(?P<operator>\b[A-Za-z_][\w.]*(?=\())
    |(?P<number>(?<![\w.])-?\d[\w.+-]*)""",
    re.VERBOSE | re.DOTALL,
)
_STYLES: Final = {
    "comment": "color:#7a8288",
    "string": "color:#3c8a4f",
    "variable": "color:#3b6fb6",
    "keyword": "color:#8b5fb8;font-weight:600",
    "operator": "color:#b5562c",
    "number": "color:#8a7320",
}


def module_html(module: IRModule) -> str:
    """Return the text of a module as HTML: its beginning where it is long, folded if not short."""
    text = module.astext(show_meta_data=False)
    lines = text.splitlines()
    shown = "\n".join(lines[:_MOST_LINES])[:_MOST_CHARACTERS]
    count = shown.count("\n") + 1
    more = f"<p>{count:,} of {len(lines):,} lines</p>" if len(shown) < len(text.rstrip()) else ""
    body = f'<pre style="line-height:1.35">{_highlighted(shown)}</pre>{more}'
    names = ", ".join(f"@{variable.name_hint}" for variable in module.get_global_vars()[:5])
    title = f"IRModule of {names}" + (", ..." if len(module.functions) > 5 else "")
    if len(lines) <= _OPEN_LINES:
        return figure(title, body)
    return figure(title, folded(f"{len(lines):,} lines of text", body))


def _highlighted(text: str) -> str:
    parts = []
    end = 0
    for found in _TOKEN.finditer(text):
        parts.append(escaped(text[end : found.start()], len(text)))
        inner = escaped(found[0], len(text))
        parts.append(f'<span style="{_STYLES[found.lastgroup or "comment"]}">{inner}</span>')
        end = found.end()
    parts.append(escaped(text[end:], len(text)))
    return "".join(parts)
