"""Which overload a call of Python is, once the walk knows what its arguments are.

Nodes of source name an operator and have arguments as Python gives them, by place and by name.
PyTorch's own schemas say what they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any as AnyValue
from typing import Protocol, TypeAlias

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import TensorType
from serde.torch.aliases import Values
from serde.torch.host.registry import EVALUATORS, evaluates
from serde.torch.import_context import ImportContext
from serde.torch.model import Argument, Node, Ref
from serde.torch.written.folder import DTYPES
from serde.walk.holes import Hole

__all__ = ["resolve"]

Parameter: TypeAlias = tuple[str, str, int]
"""Name, type, and in bits whether it may be left out (1) and goes by its name alone (2)."""

_SUBSCRIPT = "aten::__getitem__"
_ASSIGNMENT = "aten::setitem_"


class Walk(Protocol):
    """The walk, as far as it tells what arguments are."""

    numbers: set[Expr]

    def value(self, argument: Argument, scope: Values) -> AnyValue:
        """Return an argument with the values that it names."""


@cache
def _schemas() -> Mapping[str, list[tuple[str, list[Parameter], int]]]:
    path = Path(__file__).parent / "schemas.json"
    found: Mapping[str, list[tuple[str, list[Parameter], int]]] = json.loads(path.read_bytes())
    return found


def resolve(node: Node, scope: Values, walk: Walk) -> Iterator[Node]:
    """Yield what a node of source is in PyTorch's operators: one, or for brackets several."""
    if not node.op.startswith(("aten::", "prim::m", "prim::tolist")) or "." in node.op:
        yield node
        return
    values = {name: walk.value(each, scope) for name, each in node.arguments}
    holds = _is_hole if node.op == _SUBSCRIPT else _has_hole
    if any(map(holds, values.values())):
        yield _as(node, "source::missing", node.arguments)
        return
    try:
        if node.op in (_SUBSCRIPT, _ASSIGNMENT):
            for each in _Brackets(node, values, walk).nodes():
                scope.values.pop(each.outputs[0], None)
                yield each
        else:
            yield _call(node, values, walk)
    except Unsupported as error:
        yield _as(node, "source::refused", [("reason", error.reason)])


@evaluates("source::missing")
def miss(ctx: ImportContext, *values: AnyValue) -> None:
    """What is given results that are left out, and is left out itself."""


@evaluates("source::refused", moves=True)
def refuse(ctx: ImportContext, reason: str) -> None:
    """What no overload takes."""
    raise Unsupported(reason)


def _as(
    node: Node, op: str, arguments: Sequence[tuple[str, Argument]], outputs: Sequence[str] = (),
    *, gives_list: bool = False,
) -> Node:  # fmt: skip
    """Return a node in place of another."""
    return Node(op, node.name, arguments, outputs or node.outputs, gives_list, node.where)


# Overloads.


def _call(node: Node, values: Mapping[str, AnyValue], walk: Walk) -> Node:
    """Return a node with its overload, and its arguments by the names of the schema.

    Raises:
        Unsupported: No overload takes them.
    """
    base = node.op
    in_place = base.endswith("_") and not base.endswith("__")
    if base in _OF_NUMBERS and not any(_kind(x, walk) == "Tensor" for x in values.values()):
        return _as(node, _OF_NUMBERS[base], node.arguments)
    known = _schemas().get(base[:-1] if in_place else base)
    arguments = dict(node.arguments)
    for lenient in (False, True):
        for overload, parameters, several in known or ():
            for pairs in _bindings(parameters, arguments, values):
                if not all(
                    _fits(kind, values_of, walk, lenient) for kind, _, values_of in pairs.values()
                ):
                    continue
                given = [(name, _spread(kind, x, v)) for name, (kind, x, v) in pairs.items()]
                op = f"{base}.{overload}".rstrip(".")
                if in_place and not parameters[0][1].startswith(("Tensor", "t[")):
                    op = f"{base[:-1]}.{overload}"
                elif op not in EVALUATORS and parameters[0][1] == "Tensor" and not overload:
                    op = f"{base}.default"
                return _as(node, op, given, gives_list=bool(several))
    if known is None or base in EVALUATORS:
        return node
    kinds = ", ".join(f"{k}={_title(v, walk)}" if not k.isdigit() else _title(v, walk)
                      for k, v in values.items())  # fmt: skip
    raise Unsupported(f"no overload of PyTorch's takes ({kinds})")


_OF_NUMBERS = {
    "aten::__lshift__": "_operator::lshift", "aten::__rshift__": "_operator::rshift",
    "aten::abs": "prim::abs.Scalar", "aten::floor_divide": "aten::floordiv",
}  # fmt: skip
"""Operators that numbers have of their own."""

Bound: TypeAlias = dict[str, tuple[str, Argument, AnyValue]]


def _bindings(
    parameters: Sequence[Parameter], arguments: Mapping[str, Argument],
    values: Mapping[str, AnyValue],
) -> Iterator[Bound]:  # fmt: skip
    """Yield the parameters that are given; where one takes a list, so that it takes the rest."""
    places = [name for name in arguments if name.isdigit()]
    plain = [each for each in parameters if not each[2] & 2]
    named = {name: name for name in arguments if not name.isdigit()}
    if "input" in named and all(each[0] != "input" for each in parameters):
        named["self"] = named.pop("input")
    found = _bound(parameters, dict(zip((x[0] for x in plain), places, strict=False)) | named,
                   arguments, values)  # fmt: skip
    if found is not None and len(places) <= len(plain):
        yield found
    lists = ("int[]", "int[]?", "Tensor[]")
    first = next((i for i, x in enumerate(plain) if x[1] in lists), len(places))
    if first < len(places):
        names = [x[0] for x in plain]
        head = dict(zip(names[:first], places[:first], strict=True))
        found = _bound(parameters, head | named, arguments, values, names[first])
        if found is not None:
            rest = places[first:]
            kind = plain[first][1]
            joined = kind, [arguments[x] for x in rest], [values[x] for x in rest]
            yield {
                name: joined if name == names[first] else found[name]
                for name, _, _ in parameters
                if name in found or name == names[first]
            }


def _bound(
    parameters: Sequence[Parameter], given: Mapping[str, str], arguments: Mapping[str, Argument],
    values: Mapping[str, AnyValue], rest: str = "",
) -> Bound | None:  # fmt: skip
    """Return parameters by name in order; None where one is unknown or missing."""
    names = {name for name, _, _ in parameters}
    missing = any(not f & 1 and n not in given and n != rest for n, _, f in parameters)
    if missing or not given.keys() <= names or rest in given:
        return None
    return {
        name: (kind, arguments[given[name]], values[given[name]])
        for name, kind, _ in parameters
        if name in given
    }


def _spread(kind: str, argument: Argument, value: AnyValue) -> Argument:
    """Return a single number where a list of a fixed length is wanted as that list."""
    count = kind.rstrip("?").rpartition("[")[2].rstrip("]")
    if count.isdigit() and value is not None and not isinstance(value, (list, tuple)):
        return [argument] * int(count)
    return argument


def _fits(kind: str, value: AnyValue, walk: Walk, lenient: bool) -> bool:
    """Whether a value is of a type of PyTorch's; leniently also what it is made by itself."""
    if kind.endswith("?"):
        return value is None or _fits(kind[:-1], value, walk, lenient)
    if kind.endswith("]"):
        element, _, count = kind[:-1].rpartition("[")
        if isinstance(value, (list, tuple)):
            return element == "t" or all(_fits(element, each, walk, lenient) for each in value)
        return bool(count) and _fits(element, value, walk, lenient)
    if kind in ("t", "any", "Any"):
        return True
    if kind in ("device", "layout", "format"):
        return isinstance(value, str) and value not in DTYPES
    found = _kind(value, walk)
    if lenient and kind == "Tensor":
        return found in ("Tensor", "int", "float", "bool")
    if kind == "Scalar":
        return found in ("int", "float", "bool", "complex")
    if kind == "ScalarType":
        return found == "int" or (found == "str" and value in DTYPES)
    return found == kind or (lenient and (found, kind) in _WIDENED) or found == "entries"


_WIDENED = {("int", "float"), ("bool", "int"), ("bool", "float"), ("int", "bool")}


def _kind(value: AnyValue, walk: Walk) -> str:
    """Return the type of a value as PyTorch calls it."""
    if isinstance(value, Expr):
        if value not in walk.numbers:
            return "Tensor"
        dtype = value.type.dtype if isinstance(value.type, TensorType) else ""
        return {"bool": "bool", "float64": "float", "complex128": "complex"}.get(dtype, "int")
    if type(value).__name__ == "DynamicEntries":
        return "entries"
    return type(value).__name__ if value is not None else "None"


def _title(value: AnyValue, walk: Walk) -> str:
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    return _kind(value, walk)


def _is_hole(value: AnyValue) -> bool:
    return isinstance(value, Hole)


def _has_hole(value: AnyValue) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_hole, value))
    return isinstance(value, Hole)


# Brackets.


class _Brackets:
    """Takes ``x[...]``, and ``x[...] = y``, apart into views and indexing."""

    def __init__(self, node: Node, values: Mapping[str, AnyValue], walk: Walk) -> None:
        arguments = dict(node.arguments)
        self._node = node
        self._walk = walk
        self._x, self._base = arguments["0"], values["0"]
        self._items: list[AnyValue] = list(values["1"])
        self._given: list[Argument] = list(arguments["1"])
        self._kinds: str = arguments["kinds"]
        self._value = (arguments["2"], values["2"]) if node.op == _ASSIGNMENT else None
        self._count = 0

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes.

        Raises:
            Unsupported: What is in brackets fits no list or tensor.
        """
        if isinstance(self._base, (list, tuple, str)):
            yield self._of_list()
        elif _kind(self._base, self._walk) == "Tensor":
            yield from self._of_tensor()
        else:
            raise Unsupported(f"{_kind(self._base, self._walk)} has no items")

    def _of_list(self) -> Node:
        node = self._node
        if self._kinds == "s" and self._value is None:
            names = ("l", "start", "end", "step")
            ends = [1 if x is None and i == 2 else x for i, x in enumerate(self._given)]
            return _as(node, "aten::slice.t", list(zip(names, [self._x, *ends], strict=True)))
        if self._kinds != "v":
            raise Unsupported("a list with several places in brackets")
        given = [("list", self._x), ("idx", self._given[0])]
        if self._value is None:
            return _as(node, "aten::__getitem__.t", given)
        return _as(node, "aten::_set_item.t", [*given, ("el", self._value[0])])

    def _of_tensor(self) -> Iterator[Node]:
        type_ = self._base.type
        rank = type_.rank if isinstance(type_, TensorType) else 0
        steps, indices = self._steps(rank)
        views = [*steps]
        x = self._x
        last = len(views) - 1 + bool(indices) + (self._value is not None)
        for place, (op, rest) in enumerate(views):
            self._count += 1
            name = self._node.outputs[0] if place == last else f"{self._node.name}.{self._count}"
            yield _as(self._node, op, [("self", x), *rest], [name])
            x = Ref(name)
        if self._value is not None:
            yield self._write(x, indices)
        elif indices:
            yield _as(self._node, "aten::index.Tensor", [("self", x), ("indices", indices)])
        elif not views:
            yield _as(self._node, "prim::unchecked_cast", [("x", x)])

    def _write(self, x: Argument, indices: list[Argument]) -> Node:
        assert self._value is not None
        argument, value = self._value
        is_tensor = _kind(value, self._walk) == "Tensor"
        if indices:
            pairs = [("self", x), ("indices", indices), ("values", argument)]
            return _as(self._node, "aten::index_put_", pairs)
        op, name = ("aten::copy_", "src") if is_tensor else ("aten::fill_.Scalar", "value")
        return _as(self._node, op, [("self", x), (name, argument)])

    def _steps(
        self, rank: int
    ) -> tuple[list[tuple[str, list[tuple[str, Argument]]]], list[Argument]]:
        """Return views, one behind the other, and then indices of axes."""
        items = iter(zip(self._items, self._given, strict=True))
        steps: list[tuple[str, list[tuple[str, Argument]]]] = []
        indices: dict[int, Argument] = {}
        axis, taken = 0, self._taken()
        for kind in self._kinds:
            if kind == ".":
                axis += max(rank - taken, 0)
                continue
            if kind == "s":
                ends = [next(items) for _ in range(3)]
                if any(x is not None for x, _ in ends):
                    names = ("dim", "start", "end", "step")
                    given = [axis, *(x for _, x in ends[:2]), 1 if ends[2][0] is None else ends[2][1]]
                    steps.append(("aten::slice.Tensor", list(zip(names, given, strict=True))))
                axis += 1
                continue
            value, argument = next(items)
            found = _kind(value, self._walk)
            if value is None:
                steps.append(("aten::unsqueeze", [("dim", axis)]))
                axis += 1
            elif found == "int":
                steps.append(("aten::select.int", [("dim", axis), ("index", argument)]))
            elif found == "Tensor":
                indices[axis] = argument
                axis += self._width(value)
            else:
                raise Unsupported(f"a {found} in brackets")
        return steps, [indices.get(i) for i in range(max(indices, default=-1) + 1)]

    def _width(self, value: AnyValue) -> int:
        """Return how many axes a mask takes the place of; 1 for places."""
        type_ = value.type
        return type_.rank if isinstance(type_, TensorType) and type_.dtype == "bool" else 1

    def _taken(self) -> int:
        """Return how many axes what is in brackets speaks of."""
        places = iter(self._items)
        total = 0
        for kind in self._kinds.replace(".", ""):
            given = [next(places) for _ in range(3 if kind == "s" else 1)]
            masks = kind == "v" and _kind(given[0], self._walk) == "Tensor"
            total += self._width(given[0]) if masks else kind == "s" or given[0] is not None
        return total
