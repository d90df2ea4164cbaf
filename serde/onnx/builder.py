"""Values, scopes and nodes of an ONNX model that is being written.

A scope is the main graph, a subgraph (a branch, the body of a loop) or a local
function. A scope sees the values of those around it, up to the main graph or
the function; names occur once in the whole model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any as AnyValue, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from serde.core import MAX_RANK, Array, Weight, dataclass, dtype_name, field, replace
from serde.errors import ConverterBug, Unsupported
from serde.onnx.interface import value_type_proto
from serde.onnx.schemas import require_dtype, result_dtypes
from serde.onnx.versions import CHANGES, Change
from serde.relay.ir import Any, SequenceType, TensorType, UniqueNames
from serde.walk.placement import Scope

__all__ = [
    "FUNCTION_DOMAIN", "SEQUENCE_IDENTITY", "SEQUENCE_SUBGRAPHS", "Draft", "GraphBuilder",
    "GraphScope", "Value", "ValueType", "require_sequences", "walk_nodes", "without_symbols",
]  # fmt: skip

_NAMELESS: Final = "value"
"""What had an empty name, by which ONNX means what is absent."""

_FORMS: Final = 2**12
"""Forms of nodes that are known to be sound; each is checked once."""

FUNCTION_DOMAIN: Final = "serde"
"""Domain of local functions."""

SEQUENCE_IDENTITY: Final = 14
"""First version at which Identity takes sequences."""

SEQUENCE_SUBGRAPHS: Final = 13
"""First version at which branches yield sequences and loops carry them."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor or a sequence of the ONNX graph.

    Attributes:
        name: Its name there.
        type: Its Relay type, where it stands for a Relay expression.
        data: Its value, where it is a constant of the graph.
    """

    name: str
    type: TensorType | SequenceType | None = None
    data: Array | None = field(default=None, compare=False)


ValueType = TensorType | SequenceType
"""What a value may be."""


def without_symbols(type_: ValueType) -> ValueType:
    """Return a type whose symbolic dimensions are anonymous."""
    if isinstance(type_, SequenceType):
        return SequenceType(without_symbols(type_.element))
    dims = [dim if isinstance(dim, int) else Any() for dim in type_.shape]
    return TensorType(dims, type_.dtype)


def require_sequences(what: str, types: Iterable[ValueType], version: int, since: int) -> None:
    """Refuse sequences where an operator only takes tensors yet.

    Raises:
        Unsupported: `version` is below `since`, and a sequence is among `types`.
    """
    if version < since and any(isinstance(type_, SequenceType) for type_ in types):
        hint = f"use opset {since} or later"
        raise Unsupported(f"{what} takes no sequence at version {version}", hint=hint)


@dataclass(slots=True)
class Draft:
    """A node before its message is made, which tells its names much more slowly.

    Attributes:
        op: Its operator.
        name: Its name, if it has one.
        inputs: Names of its inputs; "" for one that is left out.
        outputs: Names of its outputs.
        attributes: Its attributes.
        domain: Of its operator, where that is to be said.
        overload: Which of the functions of that name it calls; "" where there is one.
    """

    op: str
    name: str | None
    inputs: list[str]
    outputs: list[str]
    attributes: list[onnx.AttributeProto] = field(default_factory=list)
    domain: str | None = None
    overload: str = ""

    def inner(self) -> list[onnx.GraphProto]:
        """Return its subgraphs."""
        return inner_graphs(self.attributes)

    def add_to(self, graph: onnx.GraphProto | onnx.FunctionProto) -> None:
        """Add the node to a graph."""
        node = graph.node.add(
            op_type=self.op,
            name=self.name,
            input=self.inputs,
            output=self.outputs,
            domain=self.domain,
        )
        node.attribute.extend(self.attributes)
        if self.overload:
            node.overload = self.overload


class GraphScope(Scope):
    """A graph, a subgraph or a local function while its nodes are collected.

    Args:
        parent: The scope around it; None for the main graph and for a function.
        step: What it is in its parent, such as ``loop_1/body``; the name of a function.

    Attributes:
        nodes: Its nodes so far, in order.
        types: Types of values that stand for Relay expressions, by name.
        constants: The constants of the main graph or of the function, by their values.
    """

    __slots__ = ("_home", "constants", "nodes", "types")

    def __init__(self, parent: GraphScope | None = None, step: str = "") -> None:
        super().__init__(parent, step)
        self.nodes: list[Draft] = []
        self.types: dict[str, ValueType] = {}
        self.constants: dict[Hashable, Value] = {}
        # No reference to itself: the graph goes as soon as nothing needs it.
        self._home: GraphScope | None = None if parent is None else parent.home

    @property
    def home(self) -> GraphScope:
        """The main graph, or the function."""
        return self._home or self


def inner_graphs(attributes: Iterable[onnx.AttributeProto]) -> list[onnx.GraphProto]:
    """Return the subgraphs among the attributes of a node."""
    return [each.g for each in attributes if each.type == onnx.AttributeProto.GRAPH]


def walk_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of their subgraphs."""
    pending = [iter(nodes)]
    while pending:
        for node in pending[-1]:
            yield node
            inner = [attribute.g.node for attribute in node.attribute if attribute.HasField("g")]
            if inner:
                pending.extend(map(iter, reversed(inner)))
                break
        else:
            pending.pop()


class GraphBuilder:
    """Collects the nodes of one model, under names that occur once.

    Args:
        version: Version of the operator set that is written.
        intermediate_shapes: Whether subgraphs note the types of their values.

    Attributes:
        main: The main graph.
        functions: Local functions, callees first.
        makers: Operator of the node that gives a value, by the value's name.
        domains: Versions of domains beside ONNX's own that nodes are of.
        declared: Types that no schema tells, by the value's name.
    """

    def __init__(self, version: int, *, intermediate_shapes: bool = False) -> None:
        self.version = version
        self.intermediate_shapes = intermediate_shapes
        self.main = GraphScope()
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.weights: dict[str, Weight] = {}
        self.functions: list[onnx.FunctionProto] = []
        self.makers: dict[str, str] = {}
        self.domains: dict[str, int] = {}
        self.declared: dict[str, TensorType] = {}
        self._names = UniqueNames()
        self._dtypes: dict[str, str] = {}
        self._held: set[str] = set()

    def hold(self, name: str) -> str:
        """Take a name for what comes later and return it; :meth:`reserve` then gives it out."""
        unique = self._names.reserve(name or _NAMELESS)
        self._held.add(unique)
        return unique

    def reserve(self, name: str) -> str:
        """Take and return `name`, or the first of ``name_1``, ``name_2``... that is free."""
        if name in self._held:
            self._held.discard(name)
            return name
        return self._names.reserve(name or _NAMELESS)

    def is_free(self, name: str) -> bool:
        """Whether nothing is called `name`."""
        return name not in self._names

    def constant(self, scope: GraphScope, data: Array) -> Value:
        """Return a constant that a scope sees; equal ones are one.

        It is an initializer of the main graph, which subgraphs see, or a node of a function.

        Raises:
            Unsupported: ONNX has no such dtype at the version that is written.
        """
        require_dtype(dtype_name(data.dtype), self.version)
        home = scope.home
        key = (data.dtype.str + data.dtype.name, data.shape, data.tobytes())
        if key not in home.constants:
            value = Value(self.reserve("const"), TensorType(data.shape, data.dtype), data)
            tensor = numpy_helper.from_array(
                np.ascontiguousarray(data).reshape(data.shape), value.name
            )
            if home is self.main:
                self.initializers[value.name] = tensor
            else:
                held = helper.make_attribute("value", tensor)
                home.nodes.append(Draft("Constant", None, [], [value.name], [held]))
            home.constants[key] = value
        return home.constants[key]

    def add(
        self,
        scope: GraphScope,
        op: str,
        inputs: Sequence[Value | None],
        outputs: int,
        attrs: Mapping[str, AnyValue],
        source: str,
    ) -> tuple[Value, ...]:
        """Append a node to a scope and return its outputs.

        Raises:
            Unsupported: The operator, or a dtype of it, does not exist in the version that is
                written.
            ConverterBug: The node does not have the form of that version.
        """
        in_force = _version_in_force(op, self.version)
        dtypes = result_dtypes(op, self.version, list(map(self._dtype, inputs)), attrs, outputs)
        given = tuple(name for name, value in attrs.items() if value is not None)
        _check_form(op, in_force, len(inputs), outputs, given)
        results = self._append(scope, op, inputs, outputs, attrs, self.reserve(source or op))
        self._dtypes |= {
            value.name: dtype
            for value, dtype in zip(results, dtypes, strict=True)
            if dtype is not None
        }
        return results

    def _dtype(self, value: Value | None) -> str | None:
        """Return the dtype of a tensor as far as it is known.

        What the schema of the node that gives it says holds; converters may give a value the type
        of what it is made of.
        """
        if value is None or value.name in self._dtypes:
            return None if value is None else self._dtypes[value.name]
        return value.type.dtype if isinstance(value.type, TensorType) else None

    def add_call(
        self, scope: GraphScope, function: onnx.FunctionProto, inputs: Sequence[Value], source: str
    ) -> tuple[Value, ...]:
        """Append a call of a local function to a scope and return its outputs."""
        name = self.reserve(source or function.name)
        attrs = {"domain": function.domain}
        return self._append(scope, function.name, inputs, len(function.output), attrs, name)

    def add_custom(
        self,
        scope: GraphScope,
        op: str,
        domain: tuple[str, int],
        inputs: Sequence[Value | None],
        attributes: Sequence[onnx.AttributeProto],
        types: Sequence[TensorType],
        source: str,
        outputs: Sequence[int] | None = None,
    ) -> tuple[Value, ...]:
        """Append a node of another domain, given with its version, and return its outputs.

        Raises:
            Unsupported: The domain is in use in another version.
        """
        name, version = domain
        if name and self.domains.setdefault(name, version) != version:
            raise Unsupported(
                f"the domain {name} in version {version}, beside {self.domains[name]}"
            )
        found = self._append(
            scope, op, inputs, len(types), {"domain": name}, self.reserve(source or op)
        )
        scope.nodes[-1].attributes.extend(attributes)
        if outputs is not None:
            names = {place: each.name for place, each in zip(outputs, found, strict=True)}
            scope.nodes[-1].outputs = [names.get(i, "") for i in range(max(outputs) + 1)]
        results = tuple(replace(each, type=t) for each, t in zip(found, types, strict=True))
        self.declared.update((each.name, t) for each, t in zip(found, types, strict=True))
        return results

    def _append(
        self,
        scope: GraphScope,
        op: str,
        inputs: Sequence[Value | None],
        outputs: int,
        attrs: Mapping[str, AnyValue],
        name: str,
    ) -> tuple[Value, ...]:
        plain = f"{name}_output"
        names = [self.reserve(plain if outputs == 1 else f"{plain}{i}") for i in range(outputs)]
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        read = ["" if x is None else x.name for x in inputs]
        given = sorted((key, value) for key, value in attrs.items() if value is not None)
        made = [_attribute(*each) for each in given if each[0] != "domain"]
        scope.nodes.append(Draft(op, name, read, names, made, attrs.get("domain")))
        self.makers.update(dict.fromkeys(names, op))
        return tuple(Value(each) for each in names)

    def own_outputs(self, scope: GraphScope, values: Iterable[Value], base: str) -> list[str]:
        """Return names of outputs for `values`, each of a node of `scope` and given once.

        Raises:
            Unsupported: A sequence would have to be copied by a version that cannot.
        """
        produced = {name for node in scope.nodes for name in node.outputs}
        constants = {value.name for value in scope.constants.values()}
        names: list[str] = []
        for value in values:
            name = value.name
            if name not in produced or name in constants:
                require_sequences("Identity", _known_types(value), self.version, SEQUENCE_IDENTITY)
                name = self.reserve(base)
                source = self.reserve(f"{base}_copy")
                scope.nodes.append(Draft("Identity", source, [value.name], [name]))
            produced.discard(name)
            names.append(name)
        return names

    def graph(
        self,
        scope: GraphScope,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        types: Sequence[ValueType],
    ) -> onnx.GraphProto:
        """Return a subgraph whose nodes are collected.

        Args:
            scope: Where they are.
            inputs: Typed inputs; none for a branch.
            outputs: What it yields: values of `scope`, or of a scope around it.
            types: Types of the outputs.
        """
        names = self.own_outputs(scope, outputs, "result")
        proto = helper.make_graph(
            nodes=(),
            name=scope.step,
            inputs=[_declare_input(value) for value in inputs],
            outputs=list(map(value_type_proto, names, types)),
        )
        for node in scope.nodes:
            node.add_to(proto)
        if self.intermediate_shapes:
            there = set(names)
            proto.value_info.extend(
                value_type_proto(name, type_)
                for name, type_ in scope.types.items()
                if name not in there
            )
        return proto


def _attribute(name: str, value: AnyValue) -> onnx.AttributeProto:
    """Return an attribute; that of an integer, a text or a row of integers is made once."""
    is_row = isinstance(value, (list, tuple)) and len(value) <= MAX_RANK
    known = tuple(value) if is_row else value
    if {*map(type, known if is_row else (known,))} in ({int}, {str}):
        return _made_attribute(name, known)
    return helper.make_attribute(name, value)


_made_attribute = lru_cache(maxsize=_FORMS)(helper.make_attribute)


def _known_types(value: Value) -> tuple[ValueType, ...]:
    return () if value.type is None else (value.type,)


def _declare_input(value: Value) -> onnx.ValueInfoProto:
    """Return the declaration of an input of a subgraph."""
    if value.type is None:
        raise ConverterBug(f"the input {value.name} of a subgraph has no type")
    return value_type_proto(value.name, value.type)


@cache
def _version_in_force(op: str, version: int) -> int:
    """Return the last version up to `version` at which an operator changed."""
    changes = CHANGES.get(op)
    if changes is None:
        raise ConverterBug(f"{op} is no operator of ONNX")
    known = sorted(changes)
    index = bisect_right(known, version)
    if index == 0 or changes[known[index - 1]] is Change.REMOVED:
        hint = None if index else f"use opset {known[0]} or later"
        what = f"ONNX has {op} from version {known[0]} on, the target is {version}"
        raise Unsupported(what, hint=hint)
    return known[index - 1]


@lru_cache(maxsize=_FORMS)
def _check_form(op: str, version: int, inputs: int, outputs: int, attrs: tuple[str, ...]) -> None:
    """Compare a node with the form of the operator that is in force."""
    schema = onnx.defs.get_schema(op, version, "")
    unknown = sorted(name for name in attrs if name not in schema.attributes)
    if unknown:
        raise ConverterBug(f"{op}-{version} has no attribute {unknown[0]}")
    if not schema.min_input <= inputs <= schema.max_input:
        raise ConverterBug(f"{op}-{version} does not take {inputs} inputs")
    if not schema.min_output <= outputs <= schema.max_output:
        raise ConverterBug(f"{op}-{version} does not give {outputs} outputs")
