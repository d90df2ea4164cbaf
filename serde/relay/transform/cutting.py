"""Cutting a part out of a model: what lies between some of its values and others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from serde.core.records import dataclass, field, replace
from serde.errors import OptionError
from serde.relay.ir import Call, Expr, Function, Let, Op, RelayModel, Span, Tuple, TupleGetItem, Var
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.ir.visit import children, free_vars, post_order, rewrite
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.inline_calls import ToGraphNormalForm
from serde.relay.transform.remove_dead_code import unused_params

__all__ = [
    "NamedValue", "cut", "find_values", "nameable_values", "named_values", "results_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value that can be an input or output of a part of a model.

    Attributes:
        name: What the source calls the node that gives it, or else the value.
        also: What else it can be called.
        operator: The Relay operator that yields it; empty for an input.
        type: Its type.
    """

    name: str
    also: tuple[str, ...]
    operator: str
    type: TensorType


def cut(model: RelayModel, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> RelayModel:
    """Return the part of a model that computes `outputs` from `inputs`.

    A value is called as the source calls it: an input, an output, a weight, a value inside
    (``RelayModel.values``), or a node, whose result it is; ``name:1`` is the second result
    of a node that has several. A value named as an input becomes one of its own name, with
    the type that was inferred. Inputs and weights that nothing depends on any more go.

    Args:
        model: The model, with inferred types.
        inputs: The inputs of the part, in their order; if empty, those of the model that
            `outputs` depend on.
        outputs: The outputs of the part, in their order; if empty, those of the model.

    Raises:
        OptionError: A name is unknown, ambiguous or given twice; an output depends on an
            input that is not among `inputs`; or no output depends on one that is.
    """
    if not inputs and not outputs:
        return model
    for option, given in (("inputs", inputs), ("outputs", outputs)):
        twice = sorted({name for name in given if given.count(name) > 1})
        if twice:
            raise OptionError(f"{option}: {twice[0]} is given twice")
    model = _normalize(model)
    names = _names(model)
    results = [names.find("outputs", name) for name in outputs] or [model.main.body]
    replaced: dict[Expr, Expr] = {}
    for name in inputs:
        _replace(names.find("inputs", name), name, replaced)
    results = [rewrite(result, lambda _node, new: new, replaced) for result in results]
    params = _params(model, results, [replaced[names.find("inputs", name)] for name in inputs])
    _check(model, params, results, inputs, outputs or model.meta.outputs)
    body = results[0] if len(results) == 1 else Tuple(results)
    if body.type is None:
        body.type = TupleType([result.checked_type for result in results])
    main = model.main.evolve(params=params, body=body, ret_type=None)
    weights = {p.name_hint for p in params} - set(inputs)
    kept = {name: weight for name, weight in model.params.items() if name in weights}
    whole = not outputs or tuple(outputs) == model.meta.outputs
    meta = replace(
        model.meta,
        inputs=tuple(p.name_hint for p in params if p.name_hint not in kept),
        outputs=tuple(outputs) if outputs else model.meta.outputs,
        labels=model.meta.labels if whole else (),
    )
    mod = InferType()(model.mod.with_main(main))
    return RelayModel(mod, kept, meta)


def named_values(model: RelayModel) -> tuple[RelayModel, Mapping[str, Expr]]:
    """Return a model without lets, and what can be named in it, as :func:`cut` names it."""
    model = _normalize(model)
    return model, _names(model).values


def find_values(
    model: RelayModel, option: str, names: Sequence[str]
) -> tuple[RelayModel, list[Expr]]:
    """Return a model without lets, and its tensors of some names, as :func:`cut` finds them."""
    model = _normalize(model)
    return model, [_names(model).find(option, name) for name in names]


def nameable_values(model: RelayModel) -> list[NamedValue]:
    """Return the tensors that :func:`cut` takes by name as outputs, in order, weights left out.

    What lies inside a function that the model calls cannot be cut out.
    """
    model = _normalize(model)
    names: dict[Expr, list[str]] = {}
    for name, value in _names(model).values.items():
        names.setdefault(value, []).append(name)
    inside = _inside_functions(model.main)
    inputs = set(model.inputs())
    order = [*model.inputs(), *(n for n in post_order(model.main.body) if not isinstance(n, Var))]
    known = set(order)
    # A field of a tuple result has no node of its own; it stands where its call does.
    order += [value for value in names if value not in known and not isinstance(value, Var)]
    found = []
    for value in order:
        if value not in names or value in inside or not isinstance(value.type, TensorType):
            continue
        label = _label(value)
        own = sorted(names[value], key=lambda name: name != label)
        operator = "" if value in inputs else _operator(value)
        found.append(NamedValue(own[0], tuple(own[1:]), operator, value.type))
    return found


def _operator(value: Expr) -> str:
    node = value.tuple_value if isinstance(value, TupleGetItem) else value
    if isinstance(node, Call):
        return node.op.name if isinstance(node.op, Op) else "call"
    return type(node).__name__.lower()


def _inside_functions(main: Function) -> set[Expr]:
    """Return the nodes of a body that depend on a parameter of a function inside it."""
    own = set(main.params)
    free: dict[Expr, frozenset[Var]] = {}
    for node in post_order(main.body):
        if isinstance(node, Var):
            needed = frozenset() if node in own else frozenset([node])
        else:
            needed = frozenset().union(*(free[child] for child in node.below if child in free))
        if isinstance(node, Function):
            needed -= frozenset(node.params)
        if needed:
            free[node] = needed
    return set(free)


def results_of(model: RelayModel) -> list[Expr]:
    """Return the results of ``main``, tuples inside tuples taken apart."""
    pending, found = _fields(model.main.body)[::-1], []
    while pending:
        value = pending.pop()
        if isinstance(value.type, TupleType):
            pending.extend(reversed(_fields(value)))
        else:
            found.append(value)
    return found


def _normalize(model: RelayModel) -> RelayModel:
    """Return the model with types, and without lets, whose values could not leave their scope."""
    if model.main.body.type is None:
        model = replace(model, mod=InferType()(model.mod))
    if not any(isinstance(node, Let) for node in post_order(model.main)):
        return model
    return model.evolve(mod=InferType()(ToGraphNormalForm()(model.mod)))


def _replace(value: Expr, name: str, replaced: dict[Expr, Expr]) -> None:
    """Enter the input that stands for a value; an input of that name stands for itself."""
    if value in replaced:
        other = replaced[value]
        called = other.name_hint if isinstance(other, Var) else "another"
        raise OptionError(f"inputs: {called} and {name} are the same value")
    same = isinstance(value, Var) and value.name_hint == name
    replaced[value] = value if same else Var(name, value.type, value.span or Span(name))


def _params(model: RelayModel, results: Sequence[Expr], inputs: Sequence[Expr]) -> list[Var]:
    """Return the inputs given, or those of the model that are used, and the weights used."""
    used = {node for node in post_order(*results) if isinstance(node, Var)}
    params = [node for node in inputs if isinstance(node, Var)]
    own = [param for param in model.main.params if param in used and param not in params]
    if inputs:
        own = [param for param in own if param.name_hint in model.params]
    return [*params, *own]


def _check(
    model: RelayModel,
    params: Sequence[Var],
    results: Sequence[Expr],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> None:
    """Refuse a cut whose part depends on values outside of it."""
    left = [variable for variable in free_vars(*results) if variable not in params]
    if left:
        missing = left[0]
        if missing not in model.main.params:
            raise OptionError(f"{missing.name_hint}: lies inside a function that the model calls")
        fields = _fields(results[0]) if len(results) == 1 else results
        which = [
            name
            for name, result in zip(outputs, fields, strict=False)
            if missing in free_vars(result)
        ]
        raise OptionError(
            f"inputs: {', '.join(inputs)} do not separate the part: "
            f"{', '.join(which) or 'an output'} also depends on {missing.name_hint}; "
            "name it too, or the values between"
        )
    unused = set(unused_params(Function(params, Tuple(results))))
    for name, param in zip(inputs, params, strict=False):
        if param in unused:
            raise OptionError(f"inputs: no output depends on {name}")


def _fields(body: Expr) -> list[Expr]:
    """Return the fields of a result, or the result itself."""
    if isinstance(body, Tuple):
        return list(body.fields)
    if not isinstance(body.type, TupleType):
        return [body]
    found: list[Expr] = []
    for index, type_ in enumerate(body.type.fields):
        found.append(TupleGetItem(body, index))
        found[-1].type = type_
    return found


@dataclass
class _Names:
    """What the values of a model are called.

    Attributes:
        values: Values by name.
        several: Nodes that have several results, and how to name one.
    """

    values: dict[str, Expr] = field(default_factory=dict)
    several: dict[str, str] = field(default_factory=dict)

    def find(self, option: str, name: str) -> Expr:
        """Return the value called `name`."""
        value = self.values.get(name)
        node, _colon, index = name.rpartition(":")
        if value is None and index == "0" and node in self.values and node not in self.several:
            value = self.values[node]
        if value is None and name in self.several:
            raise OptionError(f"{option}: {name} has several results; {self.several[name]}")
        if value is None:
            near = get_close_matches(name, list(self.values), n=3, cutoff=0.5)
            known = near or list(self.values)[:10]
            word = "near it" if near else "there are, for example"
            raise OptionError(
                f"{option}: no value or node is called {name!r}; {word}: {', '.join(known)}"
            )
        if not isinstance(value.type, TensorType):
            raise OptionError(f"{option}: expected a tensor, {name} is {value.type!r}")
        return value


def _names(model: RelayModel) -> _Names:
    """Collect what can be named: parameters and outputs first, then values, then nodes."""
    found = _Names()
    body = model.main.body
    nodes = post_order(body)
    for param in model.main.params:
        found.values.setdefault(param.name_hint, param)
    if model.meta.outputs:
        for name, value in zip(model.meta.outputs, _fields(body), strict=False):
            found.values.setdefault(name, value)
    present = set(nodes)
    for name, value in model.values.items():
        if value in present:
            found.values.setdefault(name, value)
    for name, results in _results_of_nodes(nodes, body).items():
        _enter_node(found, name, results)
    return found


def _enter_node(found: _Names, name: str, results: Sequence[Expr]) -> None:
    if name in found.values:
        return
    if len(results) == 1 and not isinstance(results[0].type, TupleType):
        found.values[name] = results[0]
        return
    of = [result.tuple_value for result in results if isinstance(result, TupleGetItem)]
    if len(of) < len(results) or any(value is not of[0] for value in of):
        found.several[name] = "name what they go into, or come from"
        return
    found.several[name] = f"say {name}:0 for the first"
    for result in results:
        if isinstance(result, TupleGetItem):
            found.values.setdefault(f"{name}:{result.index}", result)


def _results_of_nodes(nodes: Iterable[Expr], body: Expr) -> Mapping[str, list[Expr]]:
    """Return, for each node of the source, its results: what other nodes or the model use."""
    order = list(nodes)
    labels = {node: _label(node) for node in order}
    found: dict[str, dict[Expr, None]] = {}

    def note(value: Expr) -> None:
        label = labels.get(value)
        if label is not None:
            found.setdefault(label, {})[value] = None

    for node in order:
        for child in children(node):
            if isinstance(node, (Tuple, Function)) or labels[node] != labels[child]:
                note(child)
    for value in (body, *_fields(body)):
        note(value)
    return {label: list(values) for label, values in found.items()}


def _label(node: Expr) -> str | None:
    """Return the name of the source's node that a value comes from."""
    if isinstance(node, TupleGetItem) and node.span is None:
        node = node.tuple_value
    if not isinstance(node, (Call, TupleGetItem)) or node.span is None:
        return None
    return node.span.source_name or None
