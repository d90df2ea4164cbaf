"""What the tensors and nodes of a source became in the target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from serde.bridge.summary import TensorNames
from serde.relay.ir import Call, RelayModel, TupleGetItem, post_order

__all__ = ["tensor_mapping"]

_NUMBERED = re.compile(r"(.+)_(?:\d+|folded\d*)")


def tensor_mapping(
    model: RelayModel, names: TensorNames
) -> dict[str, Mapping[str, str] | Mapping[str, list[str]]]:
    """Return names of a source with their names in the target, in the source's order.

    Inputs and outputs have one name each. A weight or node has a list: empty where it became
    part of another, several where it became several, which targets number (``conv_1``).

    Args:
        model: The source as Relay, before any pass.
        names: What the target calls its tensors and nodes.
    """
    nodes = (n for n in post_order(model.main.body) if isinstance(n, (Call, TupleGetItem)))
    sources = dict.fromkeys(n.span.source_name for n in nodes if n.span is not None)
    return {
        "inputs": dict(zip(model.meta.inputs, names.inputs, strict=False)),
        "outputs": dict(zip(model.meta.outputs, names.outputs, strict=False)),
        "weights": _match_numbered(model.params, names.weights, names.origins),
        "nodes": _match_numbered(sources, names.nodes, names.origins),
    }


def _match_numbered(
    sources: Iterable[str], targets: Iterable[str], origins: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return, for each name of the source, the target's names that are it or it with a number."""
    found: dict[str, list[str]] = {name: [] for name in sources if name}
    for target in targets:
        known = origins.get(target, target)
        numbered = _NUMBERED.fullmatch(known)
        if known in found:
            found[known].append(target)
        elif numbered is not None and numbered[1] in found:
            found[numbered[1]].append(target)
    return found
