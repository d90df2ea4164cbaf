"""Names of blocks, of their parameters and of what they hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Final

from serde.torch import program as tree
from serde.torch.names import attribute, is_free
from serde.torch.written.classes import LayerMember
from serde.torch.written.runs import Run, inside

__all__ = ["common_prefix", "member_names", "parameter_name", "title_of"]


def common_prefix(names: Sequence[str]) -> str:
    """Return what names have in common before an underscore, without it."""
    columns = zip(*(each.split("_") for each in names), strict=False)
    common = [each[0] for each in takewhile(lambda each: len(set(each)) == 1, columns)]
    if len(names) == 1:
        common.pop()
    return "_".join(common)


def member_names(names: Sequence[str]) -> dict[str, str]:
    """Return what members are called in a class of their own.

    What they have in common goes, and numbers count from 1: ``stage2_conv3`` is ``conv1``.
    """
    skipped = len(common_prefix(names))
    short = {name: name[skipped:].lstrip("_") for name in names}
    bases = {name: each.rstrip("0123456789") for name, each in short.items()}
    counts = Counter(bases.values())
    places: Counter[str] = Counter()
    found: dict[str, str] = {}
    for name, each in short.items():
        base = bases[name]
        places[base] += 1
        if base != each or counts[base] > 1:
            each = base if counts[base] == 1 else f"{base}{places[base]}"
        each = each.rstrip("_")
        found[name] = attribute(each if is_free(each) else f"layer_{name}", found.values())
    return found


def parameter_name(run: Run, places: Collection[int]) -> str:
    """Return what a number is called that differs from block to block.

    Args:
        run: A block.
        places: Which of its numbers it is.
    """
    ends = [n for n, hole in enumerate(run.holes) if hole.label in _WIDTHS]
    holes = [run.holes[each] for each in places]
    noun = next((_WIDTHS[hole.label] for hole in holes if hole.label in _WIDTHS), "")
    if noun:
        ends = [n for n in ends if run.holes[n].label.partition("_")[0] in ("in", "out", "num")]
        first, last = (ends[0] in places, ends[-1] in places) if ends else (True, True)
        if first and last:
            return noun
        return f"in_{noun}" if first else f"out_{noun}" if last else f"mid_{noun}"
    label = re.sub(r"\W", "_", holes[0].label)
    return label if is_free(label) else "size"


_WIDTHS: Final = {
    "in_channels": "channels",
    "out_channels": "channels",
    "num_features": "channels",
    "num_channels": "channels",
    "channels": "channels",
    "mid_channels": "channels",
    "in_features": "features",
    "out_features": "features",
    "normalized_shape": "features",
    "features": "features",
    "mid_features": "features",
}
"""Numbers of channels or features by their names in constructors."""


def title_of(run: Run) -> str:
    """Return what a class is called, by what it holds."""
    kinds = [each.kind for each in run.members.values() if isinstance(each, LayerMember)]
    values = inside(each.value for each in run.body)
    adds = any(isinstance(each, tree.Infix) and each.operator == "+" for each in values)
    for part, title in _TITLES:
        if any(part in kind for kind in kinds):
            return f"Residual{title}" if adds and title == "Block" else title
    return "Block"


_TITLES: Final = (
    ("Attention", "AttentionBlock"),
    ("LSTM", "RecurrentBlock"),
    ("GRU", "RecurrentBlock"),
    ("Conv", "Block"),
    ("LayerNorm", "EncoderLayer"),
    ("Linear", "DenseBlock"),
)
