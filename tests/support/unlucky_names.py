"""Names that hurt: what written languages and tables of names may take for something else.

Generators of graphs draw the names of inputs, weights, outputs and nodes from here, so that a
format which writes names as text, or numbers them, meets those that it would choose itself.
"""

from __future__ import annotations

import keyword
import random
from typing import Final

__all__ = ["UNLUCKY", "Names", "draw_names"]

_NUMBERED: Final = [
    *(f"{stem}{n}" for stem in ("v", "x", "y", "w", "k", "t") for n in range(1, 6)),
    *(f"{stem}_{n}" for stem in ("v", "x", "add", "conv", "onnx", "block") for n in range(3)),
]
"""As writers number what has no name of its own."""

_OF_TORCH: Final = [
    *("self", "torch", "F", "nn", "math", "forward", "state_dict", "training", "weight", "bias"),
    *("num_batches_tracked", "relu", "size", "shape", "float", "range", "len", "tuple", "Net"),
]
_OF_NNEF: Final = [
    *("graph", "network", "fragment", "variable", "external", "label", "version", "extension"),
    *("true", "false", "if", "else", "for", "in", "yield", "lengthof", "shape_of", "range_of"),
    *("tensor", "scalar", "logical", "string", "integer", "output", "add", "copy", "matmul"),
]
_OF_OTHERS: Final = [
    *("main", "fn", "let", "def", "data", "meta", "Tensor", "R", "T", "I", "Module", "vars"),
    *("program", "func", "block0", "const", "cast", "arg", "aux", "null", "fwd", "label"),
    *("softmax_label", "data_0", "state_0", "input", "params", "__init__", "__class__", "None"),
]
_ODD: Final = [
    *("", " ", "_", "__", "0", "1x", "-", "a b", "a-b", "a_b", "a.b", "a/b", "a:b", "/a", "a/"),
    *(".", "..", "../a", "a//b", "x:0", "x:1", "con", "nul.dat", "graph.nnef", "A", "a", "X", "V1"),
    *("é", "e\u0301", "数据", "данные", "Ⅷ", "ﬁ", "fi", "ß", "ss", "😀", "\u200b", "x\u200b"),
    *('"', "'", "\\", "%", "%0", "@main", "#", "# x", "{", "${x}", "<a>", "x;y", "x,y", "(x)"),
    *("a\nb", "\t", "\x7f", "n" * 300, "n" * 299 + "m", "é" * 200),
]

UNLUCKY: Final[tuple[str, ...]] = tuple(
    dict.fromkeys([*_NUMBERED, *_OF_TORCH, *_OF_NNEF, *_OF_OTHERS, *sorted(keyword.kwlist), *_ODD])
)
"""Each once. Some are equal once characters are replaced, or but for their case."""


_GROUPS: Final = (_NUMBERED, _OF_TORCH, _OF_NNEF, _OF_OTHERS, sorted(keyword.kwlist), _ODD)


class Names:
    """Names that differ, most of them from one neighbourhood of the pool.

    Args:
        rng: The source of chance.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._near = rng.choice(_GROUPS)
        self.given: dict[str, None] = {}

    def any(self) -> str:
        """Draw a name that may have been given before."""
        return self._rng.choice(self._near if self._rng.random() < 0.6 else UNLUCKY)

    def new(self) -> str:
        """Draw a name that was not given before."""
        name = self.any()
        while name in self.given or self._rng.random() < 0.1:
            name = f"{name}{self._rng.choice(('_', '.', '/'))}{self._rng.randrange(4)}"
        self.given[name] = None
        return name


def draw_names(rng: random.Random, count: int) -> list[str]:
    """Return names that differ, most of them from one neighbourhood of the pool.

    Args:
        rng: The source of chance.
        count: How many.
    """
    names = Names(rng)
    return [names.new() for _ in range(count)]
