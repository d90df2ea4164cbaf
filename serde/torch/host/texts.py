"""Texts of TorchScript."""

from __future__ import annotations

import re
from typing import Any as AnyValue, Final

from serde.errors import Unsupported
from serde.torch.host.lists import draw_entries
from serde.torch.host.registry import evaluates
from serde.torch.import_context import ImportContext

_PERCENT: Final = re.compile(r"(?:[^%]|%[%sdifFegEGcxX])*", re.DOTALL)


def _made(parts: list[str]) -> str:
    """Return texts as one."""
    draw_entries(sum(map(len, parts)))
    return "".join(parts)


@evaluates("aten::format", moves=True)
def format_text(ctx: ImportContext, self: str, *values: AnyValue) -> str:
    """PyTorch fills in ``{}`` and keeps all else as it is."""
    parts = self.split("{}")
    shown = [str(_shown(each)) for each in values[: len(parts) - 1]]
    if len(shown) < len(parts) - 1:
        raise Unsupported(f"{len(values)} values for {len(parts) - 1} places of a text")
    return _made([x for pair in zip(parts, [*shown, ""], strict=True) for x in pair])


@evaluates("aten::percentFormat", moves=True)
def format_percent(ctx: ImportContext, self: str, *values: AnyValue) -> str:
    if not _PERCENT.fullmatch(self):
        raise Unsupported(f"the text {self!r:.80} that is filled in otherwise than by %s, %d or %f")
    given = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    return self % tuple(map(_shown, given))


@evaluates("aten::str", moves=True)
def as_text(ctx: ImportContext, elem: AnyValue) -> str:
    return str(_shown(elem))


def _shown(value: AnyValue) -> AnyValue:
    """Return what a text says of a value; it only goes into messages if that is a tensor."""
    return value if isinstance(value, (bool, int, float, complex, str)) else "..."


@evaluates("aten::add.str")
def join_texts(ctx: ImportContext, a: str, b: str) -> str:
    return _made([a, b])


@evaluates("aten::join")
def join_text_list(ctx: ImportContext, self: str, values: list[str]) -> str:
    draw_entries(len(self) * len(values))
    return self.join([_made([each]) for each in values])


@evaluates("aten::len.str")
def length_of_text(ctx: ImportContext, s: str) -> int:
    return len(s)


def _register_method(name: str) -> None:
    """Let a method of texts be the one of Python."""

    def call_method(ctx: ImportContext, self: str, *args: AnyValue) -> AnyValue:
        if name == "replace" and len(args) > 1:
            draw_entries((len(self) + 1) * len(args[1]))
        return getattr(self, name)(*args)

    evaluates(f"aten::{name}")(call_method)


for _name in ("lower", "upper", "startswith", "endswith", "strip", "replace"):
    _register_method(_name)
