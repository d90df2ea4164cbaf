"""Text from a compiled decoder, whose caches stay on the device between its calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any as AnyValue

import numpy as np

from serde.bridge.summary import TensorSummary
from serde.core import Array
from serde.errors import OptionError
from serde.relax.interface import Interface

__all__ = ["generate"]

_TOKENS, _POSITION, _SCORES = "input_ids", "cache_position", "logits"


def generate(
    call: Callable[[Mapping[str, AnyValue]], list[AnyValue]],
    interface: Interface,
    ids: Array,
    mask: Array,
    count: int,
    ends: Collection[int],
) -> Array:
    """Return `count` tokens, or fewer if all texts end: see :meth:`Runnable.generate`.

    `call` runs the decoder on inputs by name, arrays or what it has returned itself.
    """
    shapes = {each.name: each.shape or () for each in interface.inputs}
    outputs = [each.name for each in interface.outputs]
    states = {x: x.replace("past_key_values", "present") for x in shapes if x.startswith("past")}
    if not states or not {_SCORES, *states.values()} <= {*outputs} or _TOKENS not in shapes:
        raise OptionError(f"generate: expected a decoder with its caches, found {[*shapes]}")
    length, fixed = ids.shape[1], _POSITION in shapes
    if not ids.size:
        raise OptionError("generate: expected prompts of one token or more")
    if "attention_mask" not in shapes and not mask.all():
        raise OptionError("generate: the decoder reads one text at once, which is not padded")
    total = length + count
    room = (
        int(next(x[2] for name, x in shapes.items() if name.endswith(".key"))) if fixed else total
    )
    if room < total:
        raise OptionError(f"generate: caches for {room} tokens have no room for {total}")
    mask = np.pad(mask, ((0, 0), (0, room - length)), constant_values=1)
    numbers = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    own = [each for each in interface.inputs if each.name in states]
    kept: dict[str, AnyValue] = {x.name: _empty(x, shapes[_TOKENS][0], len(ids)) for x in own}
    step = 1 if shapes[_TOKENS][1] == 1 else length
    ended, first = np.zeros(len(ids), bool), 0
    while ids.shape[1] < total and not ended.all():
        last = min(first + step, ids.shape[1])
        given = {
            _TOKENS: ids[:, first:last],
            "attention_mask": mask if fixed else mask[:, :last],
            "position_ids": numbers[:, first:last],
            _POSITION: np.arange(first, last),
        }
        asked = {name: x for name, x in given.items() if name in shapes}
        found = dict(zip(outputs, call({**asked, **kept}), strict=True))
        kept, first = {name: found[output] for name, output in states.items()}, last
        if first == ids.shape[1]:
            best = found[_SCORES].numpy()[:, -1].argmax(-1)
            best = np.where(ended, next(iter(ends), 0), best)
            ended |= np.isin(best, [*ends])
            ids = np.concatenate([ids, best[:, None]], axis=1)
    return ids[:, length:]


def _empty(tensor: TensorSummary, batch: int | str, count: int) -> Array:
    """Return a cache of no length for some texts."""
    lengths = [x if isinstance(x, int) else count * (x == batch) for x in tensor.shape or ()]
    return np.zeros(lengths, tensor.dtype)
