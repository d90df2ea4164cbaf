"""Which overload a call of Python is, once the walk knows what its arguments are.

Nodes of source name an operator and have arguments as Python gives them, by place and by name.
PyTorch's own schemas say what they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any as AnyValue, Final, Protocol, TypeAlias

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr, tensor_type
from serde.torch.aliases import Values
from serde.torch.host.registry import EVALUATORS, evaluates
from serde.torch.import_context import ImportContext
from serde.torch.model import Argument, Node, Ref
from serde.torch.safetensors import DTYPES
from serde.walk.holes import Hole

__all__ = ["resolve"]

Parameter: TypeAlias = tuple[str, str, int]
"""Name, type, and in bits whether it may be left out (1) and goes by its name alone (2)."""

Pairs: TypeAlias = list[tuple[str, Argument]]

_SUBSCRIPT: Final = "aten::__getitem__"
_ASSIGNMENT: Final = "aten::setitem_"

_OF_NUMBERS: Final = {
    "aten::__lshift__": "_operator::lshift", "aten::__rshift__": "_operator::rshift",
    "aten::abs": "prim::abs.Scalar", "aten::floor_divide": "aten::floordiv",
}  # fmt: skip
"""Operators that numbers have of their own."""

_WIDENED: Final = {("int", "float"), ("bool", "int"), ("bool", "float"), ("int", "bool")}
"""Numbers that PyTorch takes for others."""


class Walk(Protocol):
    """The walk, as far as it tells what arguments are."""

    numbers: set[Expr]

    def value(self, argument: Argument, scope: Values) -> AnyValue:
        """Return an argument with the values that it names."""


@cache
def _schemas() -> Mapping[str, list[tuple[str, list[Parameter], int]]]:
    """Return the overloads of operators: name, parameters, whether there are several results."""
    path = Path(__file__).parent / "schemas.json"
    return json.loads(path.read_bytes())


@evaluates("source::missing")
def miss(ctx: ImportContext, *values: AnyValue) -> None:
    """What is given results that are left out, and is left out itself."""


@evaluates("source::refused", moves=True)
def refuse(ctx: ImportContext, reason: str) -> None:
    """What no overload takes."""
    raise Unsupported(reason)


def resolve(node: Node, scope: Values, walk: Walk) -> Iterator[Node]:
    """Yield what a node of source is in PyTorch's operators: one, or for brackets several."""
    if not node.op.startswith(("aten::", "prim::m", "prim::tolist")) or "." in node.op:
        yield node
        return
    values = {name: walk.value(each, scope) for name, each in node.arguments}
    try:
        looks = node.op == _SUBSCRIPT  # into a list, some of whose items may be left out
        if any(_is_missing(x, deep=not looks or key != "0") for key, x in values.items()):
            yield _as(node, "source::missing", list(node.arguments))
        elif node.op not in (_SUBSCRIPT, _ASSIGNMENT):
            yield _call(node, values, walk)
        elif isinstance(values["0"], (list, tuple)):
            yield _of_list(node, dict(node.arguments))
        else:
            for each in _of_tensor(node, values, walk):
                scope.values.pop(each.outputs[0], None)
                yield each
    except Unsupported as error:
        yield _as(node, "source::refused", [("reason", error.reason)])


def _is_missing(value: AnyValue, *, deep: bool) -> bool:
    if deep and isinstance(value, (list, tuple)):
        return any(_is_missing(each, deep=True) for each in value)
    return isinstance(value, Hole)


def _as(node: Node, op: str, pairs: Pairs, output: str = "", *, several: bool = False) -> Node:
    """Return a node in place of another."""
    return Node(op, node.name, pairs, [output] if output else node.outputs, several, node.where)


# Overloads.


def _call(node: Node, values: Mapping[str, AnyValue], walk: Walk) -> Node:
    """Return a node with its overload, and its arguments by the names of the schema."""
    kinds = {name: _kind(each, walk) for name, each in values.items()}
    if node.op in _OF_NUMBERS and "Tensor" not in kinds.values():
        return _as(node, _OF_NUMBERS[node.op], list(node.arguments))
    plain = node.op.removesuffix("_") if not node.op.endswith("__") else node.op
    known, arguments = _schemas().get(plain), dict(node.arguments)
    for lenient in (False, True):
        for overload, parameters, several in known or ():
            for given in _bindings(parameters, arguments):
                pairs = [
                    (name, kind, key) for name, kind, _ in parameters if (key := given.get(name))
                ]
                if not all(_fits(k, _pick(values, x), walk, lenient) for _, k, x in pairs):
                    continue
                in_place = parameters[0][1].startswith(("Tensor", "t["))
                op = f"{node.op if in_place else plain}.{overload}".rstrip(".")
                if op not in EVALUATORS and not overload and parameters[0][1] == "Tensor":
                    op += ".default"
                found = [(x, _spread(k, arguments, values, y)) for x, k, y in pairs]
                return _as(node, op, found, several=bool(several))
    if known is None or node.op in EVALUATORS:
        return node
    shown = (f"{name}={kind}" if not name.isdigit() else kind for name, kind in kinds.items())
    raise Unsupported(f"no overload of PyTorch's takes ({', '.join(shown)})")


Key: TypeAlias = str | list[str]
"""The name of an argument of the node, or the names of those that are a list together."""


def _bindings(
    parameters: Sequence[Parameter], arguments: Mapping[str, Argument]
) -> Iterator[dict[str, Key]]:
    """Yield the arguments of parameters; where one takes a list, so that it takes the rest."""
    places = [name for name in arguments if name.isdigit()]
    named: dict[str, Key] = {name: name for name in arguments if not name.isdigit()}
    names = [name for name, _, _ in parameters]
    if "input" in named and "input" not in names:
        named["self"] = named.pop("input")
    plain = [each for each in parameters if not each[2] & 2]
    heads: list[dict[str, Key]] = []
    if len(places) <= len(plain):
        heads.append(dict(zip(names, places, strict=False)))
    lists = [i for i, x in enumerate(plain) if x[1] in ("int[]", "int[]?", "Tensor[]")]
    if lists and lists[0] < len(places):
        first = lists[0]
        heads.append(
            {**dict(zip(names, places[:first], strict=False)), names[first]: places[first:]}
        )
    for head in heads:
        found = {**head, **named}
        given = all(flags & 1 or name in found for name, _, flags in parameters)
        if given and found.keys() <= set(names) and not head.keys() & named.keys():
            yield found


def _pick(given: Mapping[str, AnyValue], key: Key) -> AnyValue:
    return [given[each] for each in key] if isinstance(key, list) else given[key]


def _spread(
    kind: str, arguments: Mapping[str, Argument], values: Mapping[str, AnyValue], key: Key
) -> Argument:
    """Return an argument, a single number for a list of a fixed length as that list."""
    count = kind.rstrip("?").rpartition("[")[2].rstrip("]")
    found, value = _pick(arguments, key), _pick(values, key)
    single = count.isdigit() and value is not None and not isinstance(value, (list, tuple))
    return [found] * int(count) if single else found


def _fits(kind: str, value: AnyValue, walk: Walk, lenient: bool) -> bool:
    """Whether a value is of a type of PyTorch's; leniently also what it is made by itself."""
    if kind.endswith("?"):
        return value is None or _fits(kind[:-1], value, walk, lenient)
    if kind.endswith("]"):
        element, _, count = kind[:-1].rpartition("[")
        if isinstance(value, (list, tuple)):
            return element == "t" or all(_fits(element, x, walk, lenient) for x in value)
        return bool(count) and _fits(element, value, walk, lenient)
    found = _kind(value, walk)
    if kind in ("device", "layout", "format"):
        return found == "str" and value not in DTYPES
    if kind == "ScalarType":
        return found == "int" or (found == "str" and value in DTYPES)
    if kind == "Scalar" or (lenient and kind == "Tensor" and found != "Tensor"):
        return found in ("int", "float", "bool", "complex", "DynamicEntries")
    widened = lenient and (found, kind) in _WIDENED
    return kind in (found, "t", "Any") or found == "DynamicEntries" or widened


def _kind(value: AnyValue, walk: Walk) -> str:
    """Return the type of a value as PyTorch calls it."""
    if not isinstance(value, Expr):
        return type(value).__name__
    if value not in walk.numbers:
        return "Tensor"
    kinds = {"bool": "bool", "float64": "float", "complex128": "complex"}
    return kinds.get(tensor_type(value).dtype, "int")


# Brackets. Their contents stand in a list; of what kinds they are, says a text: a slice of three
# is ``s``, ``...`` is ``.``, all else ``v``.


def _of_list(node: Node, given: Mapping[str, AnyValue]) -> Node:
    """Return what takes an item of a list, or several, or writes one."""
    x, items, kinds = given["0"], given["1"], given["kinds"]
    if kinds == "s" and "2" not in given:
        ends = [items[0], items[1], 1 if items[2] is None else items[2]]
        slices = zip(("l", "start", "end", "step"), (x, *ends), strict=True)
        return _as(node, "aten::slice.t", list(slices))
    if kinds != "v":
        raise Unsupported("a list with several places in brackets")
    pairs = [("list", x), ("idx", items[0])]
    if "2" in given:
        return _as(node, "aten::_set_item.t", [*pairs, ("el", given["2"])])
    return _as(node, "aten::__getitem__.t", pairs)


def _of_tensor(node: Node, values: Mapping[str, AnyValue], walk: Walk) -> Iterator[Node]:
    """Yield views of a tensor, one behind the other, and what takes or writes their elements."""
    if _kind(values["0"], walk) != "Tensor":
        raise Unsupported(f"{_kind(values['0'], walk)} has no items")
    given = dict(node.arguments)
    views, indices = _views(given, values, walk)
    writes = "2" in given
    x: Argument = given["0"]
    for place, (op, pairs) in enumerate(views):
        is_last = place == len(views) - 1 and not indices and not writes
        name = node.outputs[0] if is_last else f"{node.name}.{place}"
        yield _as(node, op, [("self", x), *pairs], name)
        x = Ref(name)
    if writes and indices:
        pairs = [("self", x), ("indices", indices), ("values", given["2"])]
        yield _as(node, "aten::index_put_", pairs)
    elif writes and _kind(values["2"], walk) == "Tensor":
        yield _as(node, "aten::copy_", [("self", x), ("src", given["2"])])
    elif writes:
        yield _as(node, "aten::fill_.Scalar", [("self", x), ("value", given["2"])])
    elif indices:
        yield _as(node, "aten::index.Tensor", [("self", x), ("indices", indices)])
    elif not views:
        yield _as(node, "prim::unchecked_cast", [("x", x)])


def _views(
    given: Mapping[str, AnyValue], values: Mapping[str, AnyValue], walk: Walk
) -> tuple[list[tuple[str, Pairs]], list[Argument]]:
    """Return views, and indices of axes behind them."""
    items = list(zip(given["1"], values["1"], strict=True))
    parts = [[items.pop(0) for _ in range({"s": 3, "v": 1}.get(x, 0))] for x in given["kinds"]]
    widths = [_width(kind, x, walk) for kind, x in zip(given["kinds"], parts, strict=True)]
    views: list[tuple[str, Pairs]] = []
    indices: dict[int, Argument] = {}
    axis = 0
    for kind, part, width in zip(given["kinds"], parts, widths, strict=True):
        if kind == ".":
            axis += max(tensor_type(values["0"]).rank - sum(widths), 0)
        elif kind == "s" and any(value is not None for _, value in part):
            (start, _), (end, _), (step, known) = part
            ends = [("start", start), ("end", end), ("step", 1 if known is None else step)]
            views.append(("aten::slice.Tensor", [("dim", axis), *ends]))
        elif kind == "v" and width == 0:
            views.append(("aten::unsqueeze", [("dim", axis)]))
            axis += 1
        elif kind == "v" and _kind(part[0][1], walk) == "int":
            views.append(("aten::select.int", [("dim", axis), ("index", part[0][0])]))
            axis -= 1
        elif kind == "v":
            indices[axis] = part[0][0]
        axis += width
    return views, [indices.get(i) for i in range(max(indices, default=-1) + 1)]


def _width(kind: str, part: Sequence[tuple[Argument, AnyValue]], walk: Walk) -> int:
    """Return of how many axes something in brackets speaks."""
    value = part[0][1] if part else None
    found = _kind(value, walk)
    if kind != "v" or value is None:
        return int(kind == "s")
    if found not in ("int", "Tensor"):
        raise Unsupported(f"{found} in brackets")
    return (
        tensor_type(value).rank if found == "Tensor" and tensor_type(value).dtype == "bool" else 1
    )
