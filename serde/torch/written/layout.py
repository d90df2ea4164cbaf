"""Expressions as text, and statements in lines as ruff's formatter breaks them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core.records import dataclass, field, replace
from serde.errors import ConverterBug
from serde.torch import program as tree
from serde.torch.program import Expression

__all__ = ["WIDTH", "Writer", "break_lines", "literal"]

WIDTH: Final = 88
"""Columns of a line, as the formatter has them by default."""

_SIMPLE: Final = (tree.Local, tree.Stored, tree.Literal, tree.Dtype)


def literal(value: AnyValue) -> str:
    """Return the text of a number, a text, a truth value or None."""
    if value is Ellipsis:
        return "..."
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        # What JSON writes is a text of Python, too, without line breaks.
        return json.dumps(value)
    return repr(value).replace("e+", "e")


@dataclass
class Writer:
    """Makes text of expressions.

    Attributes:
        variables: Names of variables.
        stored: What is written for weights and constants, without ``self.``.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)

    def text(self, each: Expression) -> str:
        """Return an expression on one line."""
        head, items, tail = self.bracket(each)
        return head + ", ".join(items) + tail

    def bracket(self, each: Expression) -> tuple[str, list[str], str]:
        """Return what is before the last bracket of an expression, in it, and behind it.

        Where there is no bracket all is before it.
        """
        if isinstance(each, tree.Apply):
            return f"{each.function}(", self._arguments(each), ")"
        if isinstance(each, tree.Method):
            return f"{self._operand(each.x)}.{each.name}(", self._arguments(each), ")"
        if isinstance(each, tree.Submodule):
            return f"self.{each.name}(", [self.text(x) for x in each.arguments], ")"
        if isinstance(each, tree.Repeated):
            item = f"{self.text(each.item)} {_times(each)}"
            return ("*(", [item], ")") if each.starred else ("", [item], "")
        if isinstance(each, tree.Index):
            return f"{self._operand(each.x)}[", [self.text(x) for x in each.items], "]"
        if isinstance(each, tree.Items):
            items = [self.text(x) for x in each.items]
            if each.is_list:
                return "[", items, "]"
            return "(", items, ",)" if len(items) == 1 else ")"
        return self._plain(each), [], ""

    def _plain(self, each: Expression) -> str:
        if isinstance(each, tree.Local):
            return self.variables.get(each.name, each.name)
        if isinstance(each, tree.Stored):
            return f"self.{self.stored[each.name]}"
        if isinstance(each, tree.Literal):
            return literal(each.value)
        if isinstance(each, tree.Dtype):
            return f"torch.{each.name}"
        if isinstance(each, tree.Length):
            return f"{self._operand(each.x)}.shape[{each.axis}]"
        if isinstance(each, tree.Infix):
            return self._infix(each)
        if isinstance(each, tree.Prefix):
            return f"{each.operator}{self._operand(each.x)}"
        if isinstance(each, (tree.Attribute, tree.Parameter)):
            return f"self.{each.name}" if isinstance(each, tree.Attribute) else each.name
        if isinstance(each, tree.Slice):
            return self._slice(each)
        raise ConverterBug(f"{each!r} has no text")

    def _infix(self, each: tree.Infix) -> str:
        left, right = self._operand(each.left), self._operand(each.right)
        if each.operator == "**" and all(isinstance(x, _SIMPLE) for x in (each.left, each.right)):
            return f"{left}**{right}"
        return f"{left} {each.operator} {right}"

    def _slice(self, each: tree.Slice) -> str:
        ends = each.start, each.stop, each.step
        spaced = any(x is not None and not isinstance(x, (tree.Local, tree.Literal)) for x in ends)
        texts = ["" if x is None else self.text(x) for x in ends]
        if not texts[2]:
            texts.pop()
        if not spaced:
            return ":".join(texts)
        found = texts[0]
        for text in texts[1:]:
            found += (" :" if found else ":") + (f" {text}" if text else "")
        return found

    def _arguments(self, each: tree.Apply | tree.Method) -> list[str]:
        named = [f"{name}={self.text(x)}" for name, x in each.keywords]
        return [*map(self.text, each.arguments), *named]

    def _operand(self, each: Expression) -> str:
        text = self.text(each)
        negative = isinstance(each, tree.Literal) and text.startswith("-")
        return f"({text})" if isinstance(each, (tree.Infix, tree.Prefix)) or negative else text

    def lines(self, head: str, each: Expression, tail: str, indent: int) -> list[str]:
        """Return an expression between a head and a tail, in as many lines as it takes."""
        flat = " " * indent + head + self.text(each) + tail
        if len(flat) <= WIDTH:
            return [flat]
        if isinstance(each, tree.Infix):
            return self._broken_infix(head, each, tail, indent)
        if isinstance(each, tree.Repeated):
            return self._broken_repeated(head, each, tail, indent)
        before, items, after = self.bracket(each)
        if not items:
            return [flat]
        if head.endswith(" ") and self._goes_below(head, before, each, indent):
            pad = " " * indent
            return [f"{pad}{head}(", f"{pad}    {self.text(each)}", f"{pad}){tail}"]
        inner = self._inner_lines(each, items, indent + 4)
        return [" " * indent + head + before, *inner, " " * indent + after[-1:] + tail]

    def _goes_below(self, head: str, before: str, each: Expression, indent: int) -> bool:
        """Whether not even the bracket fits on the line of a statement, but all does below it."""
        least = max(len(head) + 1, 4 + len(self.text(each)))
        return indent + len(head) + len(before) > WIDTH >= indent + least

    def _inner_lines(self, each: Expression, items: Sequence[str], indent: int) -> list[str]:
        """Return what is in a bracket: on one line if there is room, else an item a line."""
        flat = " " * indent + ", ".join(items)
        single = isinstance(each, tree.Items) and not each.is_list and len(items) == 1
        if len(flat) <= WIDTH and not single and not isinstance(each, tree.Items):
            return [flat]
        names = [""] * len(items)
        if isinstance(each, (tree.Apply, tree.Method)):
            parts = [*each.arguments, *(value for _, value in each.keywords)]
            names = [*names[: len(each.arguments)], *(f"{name}=" for name, _ in each.keywords)]
        elif isinstance(each, tree.Index):
            parts = list(each.items)
        else:
            parts = list(tree.parts(each))
        found: list[str] = []
        for name, part in zip(names, parts, strict=True):
            found += self.lines(name, part, ",", indent)
        return found

    def _broken_infix(self, head: str, each: tree.Infix, tail: str, indent: int) -> list[str]:
        pad = " " * indent
        inside = f"{pad}    {self.text(each)}"
        if len(inside) <= WIDTH:
            return [f"{pad}{head}(", inside, f"{pad}){tail}"]
        left, right = self._operand(each.left), self._operand(each.right)
        body = [f"{pad}    {left}", f"{pad}    {each.operator} {right}"]
        return [f"{pad}{head}(", *body, f"{pad}){tail}"]

    def _broken_repeated(self, head: str, each: tree.Repeated, tail: str, indent: int) -> list[str]:
        """Return the item in lines of its own, and behind it how often it is there."""
        pad = " " * indent
        if not each.starred:  # The only argument of a call, behind which no comma may be.
            return [*self.lines(head, each.item, "", indent), f"{pad}{_times(each)}"]
        inner = self._broken_repeated("", replace(each, starred=False), "", indent + 4)
        if len(flat := f"{pad}    {self.text(each.item)} {_times(each)}") <= WIDTH:
            inner = [flat]
        return [f"{pad}{head}*(", *inner, f"{pad}){tail}"]


def _times(each: tree.Repeated) -> str:
    return f"for _ in range({each.count})"


def break_lines(head: str, items: Sequence[str], tail: str, indent: int) -> list[str]:
    """Return items in a bracket: on the line, on one line of their own, or a line each."""
    pad = " " * indent
    flat = f"{pad}{head}{', '.join(items)}{tail}"
    if len(flat) <= WIDTH:
        return [flat]
    inner = f"{pad}    {', '.join(items)}"
    if len(inner) <= WIDTH:
        return [f"{pad}{head}", inner, f"{pad}{tail}"]
    return [f"{pad}{head}", *(f"{pad}    {each}," for each in items), f"{pad}{tail}"]
