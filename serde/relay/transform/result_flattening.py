"""Results that are tuples inside tuples as one tuple of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from serde.relay.ir import Expr, RelayModel, Tuple, TupleGetItem, TupleType, output_names
from serde.relay.ir.unique_names import UniqueNames

__all__ = ["flatten_results"]


def flatten_results(model: RelayModel) -> RelayModel:
    """Return a model whose ``main`` gives a tensor or a tuple of tensors.

    Those of a tuple inside the result stand where the tuple stood, in order; the second tensor
    of an output ``out`` is called ``out_1``.

    Args:
        model: A model with inferred types.
    """
    main = model.main
    result = main.body.type
    if not isinstance(result, TupleType):
        return model
    if not any(isinstance(field, TupleType) for field in result.fields):
        return model
    body = Tuple(_leaves(main.body))
    function = main.evolve(body=body, ret_type=None)
    names = _different(output_names(model.meta.outputs, result))
    meta = replace(model.meta, outputs=tuple(names))
    return model.evolve(mod=model.mod.with_main(function), meta=meta)


def _leaves(body: Expr) -> Iterator[Expr]:
    """Yield the tensors of a tuple of tuples, in order."""
    pending = [body]
    while pending:
        node = pending.pop()
        if not isinstance(node.type, TupleType):
            yield node
        elif isinstance(node, Tuple):
            pending.extend(reversed(node.fields))
        else:
            fields = [TupleGetItem(node, index) for index in range(len(node.type.fields))]
            pending.extend(reversed(fields))


def _different(names: Sequence[str]) -> list[str]:
    """Return names of which no two are equal, as ``a_1`` may be an output's and a field's."""
    taken, seen = UniqueNames(names), set[str]()
    found = []
    for name in names:
        found.append(taken.reserve(f"{name}_", "") if name in seen else name)
        seen.add(name)
    return found
