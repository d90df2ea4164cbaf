"""Broadcasts and reductions over no more groups of axes than MXNet takes at once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby
from typing import Final

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext

__all__ = ["MOST_GROUPS", "align", "split_axes"]

MOST_GROUPS: Final = 5
"""MXNet 1.9.1 merges adjacent axes that change, and such as stay, and takes as many groups."""


def split_axes(axes: Iterable[int], rank: int) -> list[tuple[int, ...]]:
    """Return `axes` in parts that MXNet broadcasts or reduces in one operation each.

    It refuses more than five groups, and gives wrong numbers where more than three of them are
    broadcast, for axes of length 1 between them form none.

    Args:
        axes: What is broadcast or reduced.
        rank: Number of axes in all.
    """
    named = sorted(axes)
    runs: list[list[int]] = []
    for axis in named:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    staying = len(runs) + 1 - (0 in named) - (rank - 1 in named)
    if len(runs) + staying <= MOST_GROUPS:
        return [tuple(named)]
    return [tuple(chain(*runs[start : start + 2])) for start in range(0, len(runs), 2)]


def align(ctx: ExportContext, *operands: Value) -> tuple[Value, ...]:
    """Return operands as they are if MXNet broadcasts them at once, else all in one shape."""
    shape = ctx.result_type().shape
    if len(shape) <= MOST_GROUPS:
        return operands
    lengths = [(1,) * (len(shape) - ctx.type(x).rank) + ctx.type(x).shape for x in operands]
    broadcast = [
        tuple(each[axis] == 1 for each in lengths)
        for axis, length in enumerate(shape)
        if length != 1
    ]
    if len(list(groupby(broadcast))) <= MOST_GROUPS:
        return operands
    return tuple(ctx.spell(lambda x: relay.broadcast_to(x, shape), each) for each in operands)
