"""Programs of ``torch.export`` in memory, and graphs of ``torch.fx`` in ATen operators."""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue

from serde.core import Weight, require
from serde.errors import FormatError
from serde.relay.ir import Dim, TensorType, substitute
from serde.torch.arguments import Call
from serde.torch.dimensions import Range, fixed_symbols, parse_dim
from serde.torch.model import OWN_NAMESPACES, Argument, Graph, Input, Node, Ref, TorchModel
from serde.torch.signature import Given, name_leaves, name_results
from serde.torch.source_lines import source_line
from serde.torch.strided import is_same_view
from serde.torch.tensors import tensor_weight

__all__ = ["call_of", "from_exported_program", "read_graph"]


def from_exported_program(
    program: AnyValue,
    weight_of: Callable[[str, AnyValue], Weight] = lambda _name, tensor: tensor_weight(tensor),
    *,
    prefix: str = "",
) -> TorchModel:
    """Return an ``ExportedProgram``, whose weights stay where they are.

    Args:
        program: The program.
        weight_of: Returns what a parameter or buffer is, by its name and tensor.
        prefix: What is taken from the beginning of names of weights.

    Raises:
        FormatError: It holds what no operator of ATen is.
    """
    torch = require("torch")
    placeholders = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    ranges = _read_ranges(program.range_constraints)
    symbols = fixed_symbols(ranges)
    inputs: list[Input] = []
    targets: dict[str, str] = {}
    constants: dict[str, Argument] = {}
    for each in program.graph_signature.input_specs:
        name, kind = each.arg.name, each.kind.name
        if kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            targets[name] = each.target
        elif kind == "CUSTOM_OBJ":
            raise FormatError(f"{name}: holds the object {each.target!r}, which is not read")
        elif kind == "USER_INPUT" and hasattr(each.arg, "value"):
            constants[name] = each.arg.value
        elif kind == "USER_INPUT":
            inputs.append(_input(name, placeholders[name].meta.get("val"), symbols))
    used = {name: target for name, target in targets.items() if placeholders[name].users}
    state: dict[str, AnyValue] = {**program.constants, **program.state_dict}
    first: dict[int, str] = {}
    named = {
        name: first.setdefault(id(state[target]), target.removeprefix(prefix))
        for name, target in used.items()
    }
    weights = {named[name]: weight_of(named[name], state[target]) for name, target in used.items()}
    graph = _Reader(program.graph_module, constants).graph()
    specs = program.graph_signature.output_specs
    given = [
        Given(each.kind.name.lower(), value, each.target or "")
        for each, value in zip(specs, graph.outputs, strict=True)
    ]
    results = name_results(_with_names(given, program), [each.name for each in inputs])
    graph.inputs = [each.value for each in inputs]
    graph.outputs = results.values
    graph.weights = named
    return TorchModel(
        graph, inputs, results.names, weights, "exported program", torch.__version__, live=program,
        notes=results.notes, ranges=ranges,
    )  # fmt: skip


def call_of(program: AnyValue, model: TorchModel, function: AnyValue) -> Call:
    """Return how the function that a program was made of is called with tensors by name."""
    specs = [each for each in program.graph_signature.input_specs if each.kind.name == "USER_INPUT"]
    leaves = [(each.arg.value,) if hasattr(each.arg, "value") else each.arg.name for each in specs]
    numbers = frozenset(each.name for each in model.inputs if each.number)
    return Call(function, program.call_spec.in_spec, leaves, numbers)


def _read_ranges(constraints: Mapping[AnyValue, AnyValue]) -> dict[str, Range]:
    """Return the least and the greatest value of each symbol."""
    found: dict[str, Range] = {}
    for symbol, each in constraints.items():
        low, high = (
            int(text) if text.isdigit() else None for text in map(str, (each.lower, each.upper))
        )
        if low is not None:
            found[str(symbol)] = low, high
    return found


def _with_names(given: list[Given], program: AnyValue) -> list[Given]:
    """Return what a program gives with the keys that it gives it by.

    Some of PyTorch's own tuples, as ``topk`` returns them, it cannot write as a text.
    """
    torch = require("torch")
    try:
        spec = torch.utils._pytree.treespec_dumps(program.call_spec.out_spec)
    except NotImplementedError:
        return given
    return name_leaves(given, spec)


def _input(name: str, value: AnyValue, symbols: Mapping[str, Dim]) -> Input:
    """Return an input as the value says it, with which the program was exported."""
    torch = require("torch")
    if isinstance(value, torch.Tensor):
        shape = [substitute(parse_dim(str(each)), symbols) for each in value.shape]
        return Input(name, name, shape, str(value.dtype).removeprefix("torch."))
    kinds = {bool: "bool", torch.SymBool: "bool", float: "float64", torch.SymFloat: "float64"}
    return Input(name, name, (), kinds.get(type(value), "int64"), number=True)


def read_graph(module: AnyValue, weights: Mapping[str, str] | None = None) -> Graph:
    """Return the graph of a ``GraphModule``, those inside it likewise.

    Args:
        module: The module.
        weights: Names of weights by the inputs that stand for them.

    Raises:
        FormatError: It holds what no operator is.
    """
    known = weights or {}
    graph = _Reader(module, {}).graph()
    graph.inputs = [name for name in graph.inputs if name not in known]
    graph.weights = dict(known)
    return graph


class _Reader:
    """The nodes of a ``GraphModule`` as a graph.

    Args:
        module: The module.
        constants: Values of inputs that are no tensors.
    """

    def __init__(self, module: AnyValue, constants: Mapping[str, Argument]) -> None:
        self._torch = require("torch")
        self._module = module
        self._values: dict[str, Argument] = dict(constants)
        self._unpacked: set[str] = set()

    def graph(self) -> Graph:
        """Return the graph."""
        inputs: list[str] = []
        nodes: list[Node] = []
        outputs: Sequence[AnyValue] = ()
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                inputs.append(node.name)
            elif node.op == "get_attr":
                inner = getattr(self._module, node.target)
                self._values[node.name] = _Reader(inner, {}).graph()
            elif node.op == "call_function":
                if node.name not in self._unpacked:
                    nodes.append(self._node(node))
            elif node.op == "output":
                (found,) = node.args
                outputs = found if isinstance(found, (list, tuple)) else [found]
            else:
                raise FormatError(f"{node.name}: {node.op} {node.target} calls no operator")
        return Graph(inputs, nodes, [self._argument(each) for each in outputs])

    def _node(self, node: AnyValue) -> Node:
        op, names, several = self._operator(node)
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        order = {name: place for place, name in enumerate(names)}
        arguments = sorted(given.items(), key=lambda pair: order.get(pair[0], len(order)))
        read = [(name, self._argument(each)) for name, each in arguments]
        if op == "aten::as_strided":
            value = node.args[0].meta.get("val")
            if value is not None and is_same_view(dict(read), value.shape, value.stride()):
                op, read = "aten::alias", read[:1]
        outputs = self._outputs(node, several)
        return Node(
            op, node.name, read, [node.name] if outputs is None else outputs, outputs is None,
            source_line(node.meta.get("stack_trace") or ""), types=self._types(op, node),
        )  # fmt: skip

    def _types(self, op: str, node: AnyValue) -> list[TensorType | None]:
        """Return the recorded types of what an operator of a library gives."""
        if op.partition("::")[0] in OWN_NAMESPACES:
            return []
        value = node.meta.get("val")
        found: list[TensorType | None] = []
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if not isinstance(each, self._torch.Tensor):
                return []
            shape = [parse_dim(str(length)) for length in each.shape]
            found.append(TensorType(shape, str(each.dtype).removeprefix("torch.")))
        return found

    def _operator(self, node: AnyValue) -> tuple[str, Sequence[str], bool]:
        """Return an operator, names of its parameters, and whether it gives several values."""
        torch, target = self._torch, node.target
        if isinstance(target, torch._ops.OpOverload):
            schema = target._schema
            name = schema.name if target._overloadname == "default" else str(target._name)
            returned = [each.type for each in schema.returns]
            several = len(returned) != 1 or isinstance(returned[0], torch.ListType)
            return name, [each.name for each in schema.arguments], several
        places = [f"arg{place}" for place in range(len(node.args))]
        if isinstance(target, torch._ops.HigherOrderOperator):
            several = not isinstance(node.meta.get("val"), torch.Tensor)
            return f"higher_order::{target.name()}", places, several
        with contextlib.suppress(TypeError, ValueError):
            places = list(inspect.signature(target).parameters)
        return f"_operator::{target.__name__}", places, False

    def _outputs(self, node: AnyValue, several: bool) -> Sequence[str] | None:
        """Return names of what a node gives; None for a list that nodes behind it take apart.

        A list of which every part is asked for by its place is taken apart here.
        """
        if not several:
            return [node.name]
        values = node.meta.get("val", None if node.users else ())
        if not isinstance(values, (list, tuple)):
            return None if node.users else []
        users = [(each, each.args[1:]) for each in node.users]
        places = range(len(values))
        if any(each.target is not operator.getitem or at[0] not in places for each, at in users):
            return None
        if any(isinstance(each, (list, tuple)) for each in values):
            return None
        outputs = [
            "" if each is None else f"{node.name}_unused_{place}"
            for place, each in enumerate(values)
        ]
        first: dict[int, str] = {}
        for each, (place,) in users:
            outputs[place] = first.setdefault(place, each.name)
            self._unpacked.add(each.name)
            self._values[each.name] = Ref(outputs[place])
        return outputs

    def _argument(self, value: AnyValue) -> Argument:
        torch = self._torch
        if isinstance(value, torch.fx.Node):
            return self._values.get(value.name, Ref(value.name))
        if isinstance(value, (list, tuple)):
            return [self._argument(each) for each in value]
        if isinstance(value, dict):
            return {key: self._argument(each) for key, each in value.items()}
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value).removeprefix("torch.")
        if isinstance(value, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
            return f"{value.__module__.replace('torch._ops', 'torch.ops')}.{value.__name__}"
        return str(value) if isinstance(value, torch.device) else value
