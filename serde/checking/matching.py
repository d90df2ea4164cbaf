"""Which output of the target stands for which output of the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

__all__ = ["match_outputs"]


def match_outputs(
    names: Sequence[str], others: Sequence[str], recorded: Sequence[str] | None = None
) -> list[int | None]:
    """Return where among the target's outputs each one of the source's stands, None for nowhere.

    A name that the conversion recorded counts, else the source's own. Where the target has
    exactly these names, they decide, several of one name by their order. Otherwise exporters
    have renamed them (MXNet's makes ``out_output`` of ``out``), and their places decide, as
    long as both models have as many. Where they do not, names are all there is.

    Args:
        names: Names of the source's outputs, in order.
        others: Names of the target's outputs, in order.
        recorded: What the conversion called them, in the order of `names`, where that is known.
    """
    wanted = names if recorded is None or len(recorded) != len(names) else recorded
    if Counter(wanted) != Counter(others) and len(names) == len(others):
        return list(range(len(others)))
    left: dict[str, list[int]] = {}
    for place, name in enumerate(others):
        left.setdefault(name, []).append(place)
    return [left[name].pop(0) if left.get(name) else None for name in wanted]
