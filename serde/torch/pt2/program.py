"""The program of a ``.pt2`` archive: its graph, what it is given and what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from serde.core import MAX_RANK, budget, dataclass, field
from serde.relay.ir import Dim, TensorType, substitute
from serde.torch.dimensions import Range, fixed_symbols, parse_dim
from serde.torch.model import OWN_NAMESPACES, Argument, Graph, Input, Node, Ref
from serde.torch.pt2.arguments import CONSTANTS, decode
from serde.torch.pt2.document import Document
from serde.torch.pt2.versions import DTYPES
from serde.torch.signature import Given, Results, name_leaves, name_results
from serde.torch.source_lines import source_line
from serde.torch.strided import is_same_view

__all__ = ["Program", "operator_name", "read_program", "read_ranges"]

_NUMBERS: Final = {"as_sym_int": "int64", "as_sym_float": "float64", "as_sym_bool": "bool"}
"""Kinds of inputs that are numbers, with their dtypes."""

_STATE: Final = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
}
"""Kinds of inputs that are tensors of the archive, with the key of their names."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program as the archive has it.

    Attributes:
        graph: Its graph, with the names of weights.
        inputs: What it is given.
        results: What it gives.
        constant: Which of the weights are among the archive's constants.
    """

    graph: Graph
    inputs: list[Input]
    results: Results
    constant: frozenset[str]


@dataclass(slots=True)
class _Names:
    """Names of a graph that have a value so far.

    Attributes:
        known: The names.
        constants: Values of those that are constants.
        read: Those that were read.
        depth: How many graphs are around it.
        around: Those of the graph around it.
    """

    known: set[str] = field(default_factory=set)
    constants: dict[str, Argument] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    depth: int = 0
    around: _Names | None = None

    def give(self, name: str, document: Document) -> None:
        """Give a name a value."""
        if not name:
            raise document.fault("a value without a name")
        if name in self.known:
            raise document.fault(f"the name {name[:200]!r} is given twice")
        self.known.add(name)

    def resolve(self, value: Argument, document: Document) -> Argument:
        """Return an argument, all of whose names have a value."""
        if isinstance(value, list):
            return [self.resolve(each, document) for each in value]
        if isinstance(value, dict):
            return {key: self.resolve(each, document) for key, each in value.items()}
        if not isinstance(value, Ref):
            return value
        names: _Names | None = self
        while names is not None:
            if value.name in names.known:
                names.read.add(value.name)
                return names.constants.get(value.name, value)
            names = names.around
        raise document.fault(f"reads {value.name[:200]!r}, which nothing before it gives")


def read_program(document: Document) -> Program:
    """Return the program of ``models/<name>.json``.

    Raises:
        FormatError: It is malformed.
    """
    module = document.field("graph_module")
    graph, signature = module.field("graph"), module.field("signature")
    names = _Names()
    weights: dict[str, str] = {}
    inputs: list[Input] = []
    constant: set[str] = set()
    symbols = fixed_symbols(read_ranges(document))
    for spec in signature.field("input_specs").items():
        kind, value = spec.choice()
        if kind in _STATE:
            name = value.field("arg").field("name").text()
            names.give(name, spec)
            weights[name] = value.field(_STATE[kind]).text()
            if kind == "tensor_constant" or _is_temporary(value):
                constant.add(weights[name])
        elif kind == "user_input":
            inputs += _user_input(value.field("arg"), graph, names, symbols)
        elif kind == "constant_input":
            name = value.field("name").text()
            names.give(name, spec)
            names.constants[name] = decode(value.field("value"), _no_graph)
        elif kind == "token":
            names.give(value.field("arg").field("name").text(), spec)
        elif kind == "custom_obj":
            found = value.field("custom_obj_name").text()
            raise spec.fault(f"holds the object {found[:100]!r}, which is not read")
        else:
            raise spec.fault(f"an input of the unknown kind {kind[:100]!r}")
    nodes = list(_nodes(graph, names))
    given = _with_names(list(_given(graph, signature, names)), module)
    results = name_results(given, [each.name for each in inputs])
    used = {name: target for name, target in weights.items() if name in names.read}
    whole = Graph([each.value for each in inputs], nodes, results.values, used)
    return Program(whole, inputs, results, frozenset(constant))


def _is_temporary(buffer: Document) -> bool:
    """Whether a buffer is left out of the state dictionary, so that it is among the constants."""
    persistent = buffer.optional("persistent")
    return persistent is not None and not persistent.boolean()


def read_ranges(document: Document) -> dict[str, Range]:
    """Return the least and the greatest value of each symbol.

    Raises:
        FormatError: They are malformed.
    """
    found: dict[str, Range] = {}
    for name, limits in document.field("range_constraints").entries():
        low, high = limits.optional("min_val"), limits.optional("max_val")
        try:
            parse_dim(name)
        except ValueError as error:
            raise limits.fault(str(error)) from None
        least, most = (None if each is None else each.integer() for each in (low, high))
        if least is not None and most is not None and least > most:
            raise limits.fault(f"a range from {least} to {most}")
        if least is not None:
            found[name] = least, most
    return found


def _user_input(
    argument: Document, graph: Document, names: _Names, symbols: Mapping[str, Dim]
) -> Iterator[Input]:
    """Yield what users give; a constant is no input."""
    kind, value = argument.choice()
    if kind == "as_tensor":
        name = value.field("name").text()
        names.give(name, argument)
        meta = graph.field("tensor_values").field(name)
        dtype = DTYPES.get(meta.field("dtype").integer())
        if dtype is None:
            raise meta.fault(f"the unknown dtype {meta.field('dtype').value}")
        yield Input(name, name, _shape(meta.field("sizes"), symbols), dtype)
    elif kind in _NUMBERS:
        name = value.field("as_name").text()
        names.give(name, argument)
        yield Input(name, name, (), _NUMBERS[kind], number=True)
    elif kind == "as_custom_obj":
        decode(argument, _no_graph)
    elif kind not in CONSTANTS:
        raise argument.fault(f"an input of the unknown kind {kind[:100]!r}")


def _shape(sizes: Document, symbols: Mapping[str, Dim]) -> list[Dim]:
    found = sizes.items()
    if len(found) > MAX_RANK:
        raise sizes.fault(f"{len(found)} axes, at most {MAX_RANK}")
    return [_length(each, symbols) for each in found]


def _length(document: Document, symbols: Mapping[str, Dim]) -> Dim:
    kind, value = document.choice()
    if kind == "as_expr":
        try:
            length = substitute(parse_dim(value.field("expr_str").text()), symbols)
        except ValueError as error:
            raise document.fault(str(error)) from None
    else:
        length = value.integer()
    if isinstance(length, int) and length < 0:
        raise document.fault(f"a length of {length}")
    return length


def _no_graph(document: Document) -> Argument:
    raise document.fault("a graph where there can be none")


def _nodes(graph: Document, names: _Names) -> Iterator[Node]:
    """Yield the nodes of a graph, each after those that it reads from."""
    inner = partial(_inner_graph, around=names)
    for document in graph.field("nodes").items():
        arguments: list[tuple[str, Argument]] = []
        for place, each in enumerate(document.field("inputs").items()):
            value = names.resolve(decode(each.field("arg"), inner), each)
            arguments.append((each.field("name").text() or f"arg{place}", value))
        if len(dict(arguments)) < len(arguments):
            raise document.fault("two arguments of one name")
        outputs = list(_outputs(document, names))
        name = document.optional("name")
        first = next((each for each in outputs if each), "")
        metadata = document.field("metadata").optional("stack_trace")
        op = operator_name(document.field("target").text())
        if op == "aten::as_strided" and _is_same_view(arguments, graph):
            op, arguments = "aten::alias", arguments[:1]
        yield Node(
            op,
            first if name is None else name.text(),
            arguments,
            outputs,
            where="" if metadata is None else source_line(metadata.text()),
            types=[] if op.partition("::")[0] in OWN_NAMESPACES else _types(outputs, graph),
        )


def _types(outputs: Sequence[str], graph: Document) -> list[TensorType | None]:
    """Return the types that the archive has of what an operator of a library gives."""
    found: list[TensorType | None] = []
    for name in outputs:
        meta = graph.field("tensor_values").optional(name)
        dtype = None if meta is None else DTYPES.get(meta.field("dtype").integer())
        if meta is None or dtype is None:
            return []
        found.append(TensorType(_shape(meta.field("sizes"), {}), dtype))
    return found


def _is_same_view(arguments: Sequence[tuple[str, Argument]], graph: Document) -> bool:
    """Whether ``as_strided`` gives the tensor that it is given."""
    given = dict(arguments)
    target = given.get("self")
    if not isinstance(target, Ref):
        return False
    meta = graph.field("tensor_values").optional(target.name)
    if meta is None:
        return False
    shape, strides = (_shape(meta.field(key), {}) for key in ("sizes", "strides"))
    return is_same_view(given, shape, strides)


def _outputs(document: Document, names: _Names) -> Iterator[str]:
    """Yield names of what a node gives: "" for what is None."""
    for each in document.field("outputs").items():
        found = decode(each, _no_graph)
        for value in found if isinstance(found, list) else [found]:
            if value is None:
                yield ""
            elif isinstance(value, Ref):
                names.give(value.name, each)
                yield value.name
            else:
                raise each.fault(f"a node that gives {str(value)[:100]}")


def _inner_graph(graph: Document, around: _Names) -> Graph:
    """Return a graph inside a node."""
    names = _Names(depth=around.depth + 1, around=around)
    budget().check("depth", names.depth, "a graph inside of graphs")
    inputs = []
    for place, each in enumerate(graph.field("inputs").items()):
        value = decode(each, _no_graph)
        inputs.append(value.name if isinstance(value, Ref) else f"constant_{place}")
        names.give(inputs[-1], each)
    nodes = list(_nodes(graph, names))
    outputs = [
        names.resolve(decode(each, _no_graph), each) for each in graph.field("outputs").items()
    ]
    return Graph(inputs, nodes, outputs)


def _given(graph: Document, signature: Document, names: _Names) -> Iterator[Given]:
    """Yield what the program gives, in its own order."""
    values = graph.field("outputs").items()
    specs = signature.field("output_specs").items()
    if len(values) != len(specs):
        raise signature.fault(f"{len(specs)} outputs, where the graph has {len(values)}")
    for spec, each in zip(specs, values, strict=True):
        kind, found = spec.choice()
        value = names.resolve(decode(each, _no_graph), each)
        names_of_targets = ("buffer_name", "parameter_name", "user_input_name")
        targets = [name for key in names_of_targets if (name := found.optional(key)) is not None]
        yield Given(kind, value, targets[0].text() if targets else "")


def _with_names(given: list[Given], module: Document) -> list[Given]:
    """Return what a program gives with the keys that it gives it by."""
    calls = module.optional("module_call_graph")
    whole = [each for each in calls.items() if each.field("fqn").text() == ""] if calls else []
    called = whole[0].optional("signature") if whole else None
    spec = None if called is None else called.optional("out_spec")
    return given if spec is None else name_leaves(given, spec.text())


def operator_name(target: str) -> str:
    """Return an operator as nodes have it: ``torch.ops.aten.add.Tensor`` is ``aten::add.Tensor``.

    Operators of numbers are Python's, as ``_operator.mul`` and ``math.trunc``, or PyTorch's own for
    what Python does at once, as ``torch.sym_max``: all of them are ``_operator::...``.
    """
    parts = target.split(".")
    if parts[:2] == ["torch", "ops"] and len(parts) > 3:
        rest = [each for each in parts[3:] if each != "default"]
        return f"{parts[2]}::{'.'.join(rest)}"
    if len(parts) == 2:
        return f"_operator::{parts[1]}"
    return target
