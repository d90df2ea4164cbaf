"""Single operators of MXNet by the names that files have: as a graph, and computed at once.

Operators whose shapes depend on values, and those that write into an input, run at once only;
for some others (``_npi_hstack``, ``_npi_insert_*``) the shape inference of a graph fails.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from support.mxnet_check import agree

from serde.compat import import_mxnet


def operator_graph(
    op: str, inputs: Sequence[str], attrs: Mapping[str, Any], outputs: int = 1
) -> Any:
    """Return a symbol of one node, as a file would give it."""
    nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in inputs]
    count = len(nodes)
    texts = {key: str(value) for key, value in attrs.items()}
    places = [[index, 0, 0] for index in range(count)]
    nodes.append({"op": op, "name": "node", "attrs": texts, "inputs": places})
    graph = {
        "nodes": nodes,
        "arg_nodes": list(range(count)),
        "node_row_ptr": list(range(count + 2)),
        "heads": [[count, index, 0] for index in range(outputs)],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    return import_mxnet().sym.load_json(json.dumps(graph))


def invoke(
    op: str,
    inputs: Sequence[np.ndarray],
    attrs: Mapping[str, Any],
    *,
    numpy: bool,
    in_place: bool = False,
) -> list[np.ndarray]:
    """Return what an operator computes at once.

    Args:
        op: Its name.
        inputs: Its inputs.
        attrs: Its attributes.
        numpy: Whether under NumPy's shapes.
        in_place: Whether it writes into its first input.
    """
    mx = import_mxnet()
    from mxnet._ctypes.ndarray import _imperative_invoke
    from mxnet.base import _LIB, c_str, check_call

    handle = ctypes.c_void_p()
    check_call(_LIB.NNGetOpHandle(c_str(op), ctypes.byref(handle)))
    texts = [str(value) for value in attrs.values()]
    with mx.util.np_shape(numpy):
        arrays = [mx.nd.array(each, dtype=each.dtype) for each in inputs]
        target = arrays[0] if in_place else None
        result = _imperative_invoke(handle.value, arrays, list(attrs), texts, target, False, False)
        found = result if isinstance(result, (list, tuple)) else [result]
        return [each.asnumpy() for each in found]


def agree_on(
    op: str,
    arrays: Sequence[np.ndarray],
    attrs: Mapping[str, Any],
    outputs: int = 1,
    *,
    numpy: bool,
    at_once: bool = False,
    in_place: bool = False,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    returns: bool = False,
) -> None:
    """Compare an operator of the inputs ``x0``, ``x1``...; see :func:`support.mxnet_check.agree`.

    Args:
        op: Its name.
        arrays: Its inputs.
        attrs: Its attributes.
        outputs: Number of its outputs.
        numpy: Whether under NumPy's shapes.
        at_once: Whether MXNet computes it at once only, not in a graph.
        in_place: Whether it writes into its first input.
        shapes: Shapes of inputs that are converted with lengths open, by name.
        returns: Whether what MXNet runs in a graph is written back to it.
    """
    names = [f"x{index}" for index in range(len(arrays))]
    alone = at_once or in_place
    agree(
        operator_graph(op, names, attrs, outputs),
        dict(zip(names, arrays, strict=True)),
        numpy=numpy,
        expected=invoke(op, arrays, attrs, numpy=numpy, in_place=in_place) if alone else None,
        shapes=shapes,
        returns=returns and not alone,
    )
