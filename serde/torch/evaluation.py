"""Runs a program that was read from an archive by PyTorch's own operators, node by node.

``torch.export.load`` unpickles inputs that an archive has as samples and evaluates texts in it.
Here nothing of a file is executed but operators for which serde has a converter.
"""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any as AnyValue, Final

from serde.core.optional import require
from serde.errors import CheckError
from serde.torch.aliases import functional_name
from serde.torch.functional import FILLS, PASSES
from serde.torch.host import find_evaluator
from serde.torch.model import Argument, Graph, Node, Ref
from serde.torch.ops import TABLE as OPS

__all__ = ["Evaluation"]

_NUMBERS: Final[Mapping[str, Callable[..., AnyValue]]] = {
    **{
        name: getattr(operator, name)
        for name in (
            "add", "sub", "mul", "floordiv", "truediv", "mod", "neg", "pos", "eq", "ne", "lt",
            "le", "gt", "ge", "and_", "or_", "not_", "lshift", "rshift", "getitem", "pow",
        )
    },
    **{name: getattr(math, name) for name in ("trunc", "floor", "ceil", "sqrt")},
    "_sym_sqrt": math.sqrt,
    "float_pow": math.pow,
    "pow_by_natural": operator.pow,
    "sym_float": float,
    "sym_int": int,
    "sym_ite": lambda condition, one, other: one if condition else other,
    "sym_max": max,
    "sym_min": min,
    "sym_not": operator.not_,
    "sym_sqrt": math.sqrt,
    "sym_sum": sum,
}  # fmt: skip
"""What computes numbers."""

_HOMES: Final = {
    "quantized_decomposed": "torch.ao.quantization.fx._decomposed",
    "torchvision": "torchvision",
}
"""Modules that register operators, by the namespaces of these."""

_OBJECTS: Final = ("ScalarType", "Layout", "MemoryFormat", "Device")
"""Kinds of arguments that are objects of PyTorch's."""


class Evaluation:
    """Runs the graphs of a program.

    Args:
        weights: Tensors by the names of weights.
    """

    def __init__(self, weights: Mapping[str, AnyValue]) -> None:
        self._torch = require("torch")
        self._weights = weights

    def run(
        self,
        graph: Graph,
        inputs: Sequence[AnyValue],
        around: Mapping[str, AnyValue] | None = None,
        kept: MutableMapping[str, AnyValue] | None = None,
    ) -> list[AnyValue]:
        """Return the outputs of a graph.

        Args:
            graph: Its nodes.
            inputs: What it is given.
            around: Values of the graph around it, by name.
            kept: Gets what nodes give under the names that are its keys, before anything is
                written to it.

        Raises:
            CheckError: PyTorch has no such operator, or serde no converter of it.
        """
        values = dict(around or {})
        values |= {name: self._weights[weight] for name, weight in graph.weights.items()}
        values |= zip(graph.inputs, inputs, strict=True)
        for node in graph.nodes:
            found = self._call(node, values)
            several = not node.gives_list and (
                len(node.outputs) != 1 or isinstance(found, (list, tuple))
            )
            results = found if several and isinstance(found, (list, tuple)) else [found]
            values |= zip(node.outputs, results, strict=False)
            if kept:
                kept.update((x, values[x].clone()) for x in kept.keys() & {*node.outputs})
        return [_value(each, values) for each in graph.outputs]

    def _call(self, node: Node, values: Mapping[str, AnyValue]) -> AnyValue:
        given = {name: _value(each, values) for name, each in node.arguments}
        namespace, _, name = node.op.partition("::")
        if namespace == "_operator" and name in _NUMBERS:
            return _NUMBERS[name](*given.values())
        if namespace == "higher_order":
            return self._call_higher(name, list(given.values()), values)
        return self._call_operator(node.op, given)

    def _call_operator(self, op: str, given: Mapping[str, AnyValue]) -> AnyValue:
        if not _is_known(op):
            raise CheckError(f"{op} is not run: serde has no converter of it")
        namespace, _, rest = op.partition("::")
        name, _, overload = rest.partition(".")
        if namespace in _HOMES:
            importlib.import_module(_HOMES[namespace])
        try:
            packet = getattr(getattr(self._torch.ops, namespace), name)
            target = getattr(packet, overload or "default")
        except AttributeError as error:
            raise CheckError(f"PyTorch has no operator {op}") from error
        kinds = {each.name: each for each in target._schema.arguments}
        decoded = {key: self._decode(each, kinds.get(key)) for key, each in given.items()}
        positional = []
        for each in target._schema.arguments:
            if each.kwarg_only or each.name not in decoded:
                break
            positional.append(decoded.pop(each.name))
        return target(*positional, **decoded)

    def _decode(self, value: AnyValue, argument: AnyValue) -> AnyValue:
        """Return a text that stands for an object of PyTorch's as that object."""
        kind = "" if argument is None else str(argument.real_type)
        if not isinstance(value, str) or not any(each in kind for each in _OBJECTS):
            return value
        if "Device" in kind:
            return self._torch.device("cpu")
        return getattr(self._torch, value)

    # Operators that are given graphs.

    def _call_higher(
        self, name: str, given: list[AnyValue], around: Mapping[str, AnyValue]
    ) -> AnyValue:
        def run(graph: Graph, operands: Sequence[AnyValue]) -> list[AnyValue]:
            return self.run(graph, operands)

        if name == "cond":
            condition, yes, no, *rest = given
            return run(yes if bool(condition) else no, rest[0] if rest else ())
        if name == "while_loop":
            return self._loop(*given)
        if name in ("scan", "map_impl"):
            return self._scan(name, given)
        graph = next((each for each in given if isinstance(each, Graph)), None)
        if graph is None:
            raise CheckError(f"higher_order::{name} is not run")
        rest = given[given.index(graph) + 1 :]
        if name == "invoke_subgraph":
            rest = rest[1:]
        elif name in ("hints_wrapper", "run_const_graph"):
            rest = rest[0]
        return run(graph, rest)

    def _loop(
        self,
        condition: Graph,
        body: Graph,
        state: Sequence[AnyValue],
        others: Sequence[AnyValue] = (),
    ) -> list[AnyValue]:
        values = list(state)
        while bool(self.run(condition, [*values, *others])[0]):
            values = self.run(body, [*values, *others])
        return values

    def _scan(self, name: str, given: list[AnyValue]) -> list[AnyValue]:
        body, *rest = given
        state = list(rest.pop(0)) if name == "scan" else []
        scanned = rest.pop(0)
        others = rest[0] if rest else ()
        kept = len(state)
        rows: list[Sequence[AnyValue]] = []
        for each in zip(*scanned, strict=True):
            found = self.run(body, [*state, *each, *others])
            state = found[:kept]
            rows.append(found[kept:])
        return [*state, *(self._torch.stack(list(column)) for column in zip(*rows, strict=True))]


def _is_known(op: str) -> bool:
    """Whether serde has a converter of an operator, or of what it writes."""
    plain = functional_name(op)
    names = {op, plain, op.partition(".")[0], plain.partition(".")[0]}
    if names & (FILLS | PASSES):
        return True
    return any(OPS.importer(each, 1) or find_evaluator(each) for each in names)


def _value(argument: Argument, values: Mapping[str, AnyValue]) -> AnyValue:
    if isinstance(argument, Ref):
        return values[argument.name]
    if isinstance(argument, (list, tuple)):
        return [_value(each, values) for each in argument]
    return argument
