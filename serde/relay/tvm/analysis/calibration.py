"""What goes into the functions of a module, and what comes out, when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue

from serde.relay.ir import Call, Expr, Function, GlobalVar, IRModule, Tuple, TupleGetItem
from serde.relay.run.executor import create_executor
from serde.relay.tvm.analysis.variables import post_order

__all__ = ["get_calibration_data"]

Data = dict[GlobalVar, dict[str, list[AnyValue]]]


def get_calibration_data(mod: IRModule, data: Mapping[str, AnyValue]) -> Data:
    """Run a module and return operands and results of the functions that ``main`` calls.

    Args:
        mod: The module; ``main`` has no control flow, and its functions take tensors.
        data: Values of all parameters of ``main``, by name.

    Returns:
        For each function that is called: ``"inputs"``, and ``"outputs"``, of which there are
        several where the function yields a tuple. A function that is called more than once has
        the values of its last call.

    Raises:
        RelayError: A parameter has no value, or more than one of them bears a name.
    """
    main = mod["main"]
    wanted: list[Expr] = []
    places: dict[GlobalVar, tuple[int, int, int]] = {}
    for node in post_order(main.body):
        if isinstance(node, Call) and isinstance(node.op, GlobalVar):
            results = _results(node, mod[node.op])
            places[node.op] = (len(wanted), len(node.args), len(results))
            wanted += [*node.args, *results]
    whole = Function(main.params, Tuple(wanted))
    values = create_executor("graph", mod).evaluate(whole)(**data)
    return {
        variable: {
            "inputs": list(values[start : start + inputs]),
            "outputs": list(values[start + inputs : start + inputs + outputs]),
        }
        for variable, (start, inputs, outputs) in places.items()
    }


def _results(call: Call, function: Function) -> list[Expr]:
    if not isinstance(function.body, Tuple):
        return [call]
    return [TupleGetItem(call, index) for index in range(len(function.body.fields))]
