"""Literals of a graph that hold a length of its inputs which a caller has opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import Final

from serde.core.report import Report
from serde.errors import TypeInferenceError
from serde.relay.ir import RelayModel, TypeOnly, call, carried, infer_call, set_type, trait_of
from serde.relay.ir.dims import Any, Dim, SymDim, product, substitute, symbol
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from serde.relay.ir.types import TensorType, TupleType, Type, substitute_type
from serde.relay.ir.visit import children, post_order, rebuild
from serde.relay.op.index.slicing import FAR
from serde.relay.op.shape.reshape import new_shape
from serde.relay.transform.input_types import resolve_attribute

__all__ = ["open_lengths"]

_MOST_TRIES: Final = 60
"""How many ways of repeating operands are tried at one call."""

_FIXED_HINT: Final = "give the length that the source has"


def open_lengths(
    model: RelayModel,
    lengths: Mapping[str, int],
    report: Report,
    *,
    trials: Sequence[Mapping[str, int]] = (),
    batch: str | None = None,
    rewriting: bool = True,
) -> tuple[RelayModel, list[str]]:
    """Return a model whose literals follow lengths that were opened, and the nodes that changed.

    The graph is looked at with other lengths than the source has. A literal of a reshape, a
    broadcast or a slice that is such a length by its place becomes the symbol; an operand of one
    entry, as the initial state of an LSTM, is repeated where the call takes as many as there are.
    Whatever fits at none of the other lengths is an issue, as is an output that the entries of a
    batch of one do not reach.

    Args:
        model: The model, its inputs with symbols for these lengths.
        lengths: The length in the source by symbol.
        report: Gets the issues.
        trials: The other lengths; some that windows and tables usually allow, if left out.
        batch: The symbol that counts the entries of a batch, of which the source has one.
        rewriting: Whether literals may be changed.
    """
    found = Report()
    walk = _Walk(lengths, trials or _usual_trials(lengths), found, rewriting)
    main = model.main
    body = walk.run(main.body)
    if batch is not None:
        walk.check_outputs(body, model.meta.outputs, batch)
    if found.issues and walk.changed:  # As it stands it fits as well, or says itself what does not.
        return open_lengths(model, lengths, report, trials=trials, batch=batch, rewriting=False)
    report.issues += found.issues
    if body is main.body or found.issues:
        return model, walk.changed
    new = Function(main.params, body, None, attrs=main.attrs, span=main.span)
    mod = model.mod.with_functions(
        {v: new if f is main else f for v, f in model.mod.functions.items()}
    )
    values = {name: walk.memo.get(value, value) for name, value in model.values.items()}
    return model.evolve(mod=mod, values=values), walk.changed


def _usual_trials(lengths: Mapping[str, int]) -> list[dict[str, int]]:
    """Return other lengths, near enough for the windows and tables that the source has."""
    options = [[2 * n, 3 * n, n // 2 or 5, n + 1] for n in lengths.values()]
    return [dict(zip(lengths, each, strict=True)) for each in zip(*options, strict=True)]


class _Walk:
    """One walk over a graph, beside its types at each of the other lengths.

    Attributes:
        memo: What each node has become.
        changed: What was changed, for people.
    """

    def __init__(
        self,
        lengths: Mapping[str, int],
        trials: Sequence[Mapping[str, int]],
        report: Report,
        rewriting: bool,
    ) -> None:
        self.memo: dict[Expr, Expr] = {}
        self.changed: list[str] = []
        self._lengths = lengths
        self._trials = trials
        self._alive = list(range(len(trials)))
        self._types: list[dict[Expr, Type]] = [{} for _ in trials]
        self._wrong: set[Expr] = set()
        self._report = report
        self._rules = _RULES if rewriting else {}

    def run(self, body: Expr) -> Expr:
        for node in post_order(body):
            new = self.memo[node] = self._visit(node, [self.memo[each] for each in children(node)])
            if new in self._wrong:
                continue
            if not isinstance(new, Call) or not isinstance(new.op, Op):
                for index in self._alive:
                    self._note(new, index)
        return self.memo[body]

    def _visit(self, node: Expr, parts: Sequence[Expr]) -> Expr:
        if any(part in self._wrong for part in parts):
            self._wrong.add(node)
            return node
        try:
            if not isinstance(node, Call) or not isinstance(node.op, Op):
                return rebuild(node, parts)
            if not any(part in types for part in parts for types in self._types):
                return node
            new = self._rewritten(node, parts)
        except TypeInferenceError as error:
            return self._refuse(node, error)
        failure = self._infer(new)
        if failure is None:
            return new
        repeated = next(
            (each for each in self._repeated(new) if self._rules and self._infer(each) is None),
            None,
        )
        if repeated is None:
            return self._refuse(node, failure)
        self.changed.append(f"{_label(node)} takes operands of one entry, repeated")
        return repeated

    def _refuse(self, node: Expr, error: TypeInferenceError) -> Expr:
        names = ", ".join(f"{name}={length}" for name, length in self._lengths.items())
        op = node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else "call"
        reason = f"holds a length of the source ({names}): {error}"
        self._report.add(op, _label(node), reason, _FIXED_HINT)
        self._wrong.add(node)
        return node

    # Types at the other lengths.

    def _note(self, node: Expr, index: int) -> None:
        """Note the type of what is no call, where it is another than at the source's lengths."""
        types = self._types[index]
        found: Type | None
        if isinstance(node, Tuple):
            found = TupleType([self._type(field, index) for field in node.fields])
        elif isinstance(node, TupleGetItem):
            whole = self._type(node.tuple_value, index)
            found = whole.fields[node.index] if isinstance(whole, TupleType) else node.type
        else:
            found = node.type and substitute_type(node.type, self._trials[index])
        if found is not None and found != node.type:
            types[node] = found

    def _type(self, node: Expr, index: int) -> Type:
        return self._types[index].get(node, node.checked_type)

    def _infer(self, new: Call) -> TypeInferenceError | None:
        """Note the types of a call where it fits, and go on with the lengths at which it does."""
        found: dict[int, Type] = {}
        failure = None
        for index in self._alive:
            try:
                found[index] = self._type_at(new, index)
            except TypeInferenceError as error:
                failure = failure or error
        if not found:
            return failure
        self._alive = list(found)
        for index, type_ in found.items():
            self._types[index][new] = type_
        return None

    def _type_at(self, new: Call, index: int) -> Type:
        if carried(new):
            return substitute_type(new.checked_type, self._trials[index])
        args = [
            arg if isinstance(arg, Constant) else Var("", self._type(arg, index))
            for arg in new.args
        ]
        attrs = {k: resolve_attribute(v, self._trials[index]) for k, v in new.attrs.items()}
        found = infer_call(Call(new.op, args, Attrs(attrs)))
        return new.checked_type if found is None else found

    # Literals.

    def _rewritten(self, node: Call, parts: Sequence[Expr]) -> Call:
        """Return a call of other operands, its literals following the lengths."""
        new = rebuild(node, parts)
        type_ = parts[0].type if parts else None
        rule = self._rules.get(node.op.name if isinstance(node.op, Op) else "")
        if not isinstance(new, Call) or rule is None or not isinstance(type_, TensorType):
            return new if isinstance(new, Call) else node
        changes = rule(new.attrs, type_.shape, self._lengths)
        if not changes:
            return new
        made = set_type(Call(new.op, new.args, Attrs({**new.attrs, **changes}), span=node.span))
        for name, value in changes.items():
            self.changed.append(
                f"{_label(node)} {name} {_shown(node.attrs[name])}: {_shown(value)}"
            )
        return made

    def _repeated(self, new: Call) -> Iterator[Call]:
        """Yield the call with operands of one entry repeated: one operand, then two."""
        places = [
            (operand, name)
            for name, length in self._lengths.items()
            if length == 1
            for operand in self._single(new)
        ]
        chosen = chain(combinations(places, 1), combinations(places, 2))
        for group in islice(chosen, _MOST_TRIES):
            wider: dict[Expr, Expr] = {}
            for (operand, axis), name in group:
                if operand in wider:
                    break
                shape = list(_shape(operand))
                shape[axis] = symbol(name)
                wider[operand] = call("broadcast_to", operand, shape=tuple(shape))
            else:
                for index, operand in ((i, o) for i in self._alive for o in wider.values()):
                    self._types[index][operand] = substitute_type(
                        operand.checked_type, self._trials[index]
                    )
                try:
                    args = [_with_fields(arg, wider) for arg in new.args]
                    for arg in args:
                        for index in self._alive:
                            self._note(arg, index) if isinstance(arg, Tuple) else None
                    made = set_type(Call(new.op, args, new.attrs, span=new.span))
                except TypeInferenceError:
                    continue
                yield made

    def _single(self, new: Call) -> list[tuple[Expr, int]]:
        """Return the operands that no opened length reaches, and their axes of one entry."""
        fields = [
            field
            for arg in new.args
            for field in (arg.fields if isinstance(arg, Tuple) else (arg,))
        ]
        return [
            (field, axis)
            for field in dict.fromkeys(fields)
            if not any(field in types for types in self._types)
            for axis, dim in enumerate(_shape(field))
            if dim == 1
        ]

    # Outputs.

    def check_outputs(self, body: Expr, names: Sequence[str], batch: str) -> None:
        """Refuse outputs that depend on the inputs, and are as long for all numbers of entries."""
        if body in self._wrong or len(self._alive) < 1:
            return
        outputs = body.fields if isinstance(body, Tuple) else (body,)
        for name, output in zip(names, outputs, strict=False):
            node = self._losing(output, batch)
            if node is not None:
                reason = (
                    f"keeps no axis for the entries of a batch ({batch}), "
                    f"and output {name} has but one"
                )
                op = node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else "call"
                self._report.add(op, _label(node), reason, _FIXED_HINT)

    def _losing(self, output: Expr, batch: str) -> Expr | None:
        """Return the node that has the batch in its operands, where the output has it no more."""
        node = output
        while self._reached(node) and not self._has_batch(node, batch):
            hidden = trait_of(node, TypeOnly)
            skipped = () if hidden is None else hidden.operands
            below = [each for i, each in enumerate(children(node)) if i not in skipped]
            reached = [each for each in below if self._reached(each)]
            if not reached:
                return None
            if any(self._has_batch(each, batch) for each in reached):
                return node
            node = reached[0]
        return None

    def _reached(self, node: Expr) -> bool:
        return any(node in types for types in self._types)

    def _has_batch(self, node: Expr, batch: str) -> bool:
        """Whether a length of a value is another for another number of entries, or may be."""
        if not isinstance(node.type, TensorType):
            return True
        return any(
            isinstance(dim, Any) or (isinstance(dim, SymDim) and batch in dim.symbols())
            for dim in node.type.shape
        )


def _label(node: Expr) -> str:
    if node.span is not None:
        return node.span.source_name
    return node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else "call"


def _shown(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _shape(node: Expr) -> Sequence[Dim]:
    return node.type.shape if isinstance(node.type, TensorType) else ()


def _with_fields(arg: Expr, wider: Mapping[Expr, Expr]) -> Expr:
    if not isinstance(arg, Tuple):
        return wider.get(arg, arg)
    new = Tuple([wider.get(field, field) for field in arg.fields], arg.span)
    new.type = TupleType([field.checked_type for field in new.fields])
    return new


def _opened(shape: Sequence[Dim], lengths: Mapping[str, int]) -> Iterator[tuple[int, str, Dim]]:
    """Yield the axes that are a multiple of an opened length, its symbol and the multiple."""
    for axis, dim in enumerate(shape):
        for name in sorted(dim.symbols() & lengths.keys()) if isinstance(dim, SymDim) else ():
            times = dim // symbol(name)
            if times * symbol(name) == dim:
                yield axis, name, substitute(times, lengths)


def _reshape(
    attrs: Attrs, shape: Sequence[Dim], lengths: Mapping[str, int]
) -> Mapping[str, object]:
    """Opened axes of the operand go to the literals that stand where they end up, row by row."""
    before = tuple(substitute(dim, lengths) for dim in shape)
    allowzero = attrs["allowzero"]
    codes = list(attrs["newshape"])
    if any(isinstance(code, int) and code < -1 for code in codes):
        codes = list(new_shape(shape, codes, allowzero))
    after = new_shape(before, [substitute(code, lengths) for code in codes], allowzero)
    new = list(codes)
    for axis, name, times in _opened(shape, lengths):
        rows = product(before[:axis])
        found = _holders(new, after, lengths[name], (rows, rows * times), allowzero)
        if not found:
            continue
        place = axis if axis in found else found[0]
        behind = len(shape) - axis - (1 if times == 1 else 0)
        if place and new[place] != lengths[name] and len(after) - place <= behind:
            place -= 1  # What follows the axis is not split: it joins what comes before.
        new[place] = new[place] // lengths[name] * symbol(name)
    return {} if new == codes else {"newshape": tuple(new)}


def _holders(
    codes: Sequence[Dim], after: Sequence[Dim], length: int, rows: Sequence[Dim], allowzero: bool
) -> list[int] | None:
    """Return which literals may hold an opened axis, the best first; None if -1 follows it.

    Args:
        codes: The codes of the reshape.
        after: What they make in the source.
        length: The opened length.
        rows: How many rows come before the axis, and how many before what it is made of.
        allowzero: Whether 0 is a length.
    """
    fitting: list[int] = []
    exact: list[int] = []
    free = False
    count: Dim = 1
    for index, (code, dim) in enumerate(zip(codes, after, strict=True)):
        is_literal = isinstance(code, int) and (code > 0 or (code == 0 and allowzero))
        free = free or not is_literal
        if count in rows:
            if not is_literal and dim == length and not exact:
                return None
            if is_literal and code == length:
                exact.append(index)
            elif isinstance(code, int) and not free and count == rows[0] and code % length == 0:
                fitting.append(index)
        count = count * dim
    return exact or (fitting if -1 not in codes else [])


def _broadcast(
    attrs: Attrs, shape: Sequence[Dim], lengths: Mapping[str, int]
) -> Mapping[str, object]:
    """Opened axes stay as long as they are."""
    new = list(attrs["shape"])
    for axis, _, _ in _opened(shape, lengths):
        place = len(new) - len(shape) + axis
        if isinstance(new[place], int) and new[place] == substitute(shape[axis], lengths):
            new[place] = shape[axis]
    return {} if tuple(new) == tuple(attrs["shape"]) else {"shape": tuple(new)}


def _slice(attrs: Attrs, shape: Sequence[Dim], lengths: Mapping[str, int]) -> Mapping[str, object]:
    """What is the whole of an opened axis in the source is all of it."""
    begin, end, strides = (attrs[name] or () for name in ("begin", "end", "strides"))
    over = [axis % len(shape) for axis in attrs["axes"] or range(len(end))]
    axes = {axis for axis, _, _ in _opened(shape, lengths)}
    new = list(end)
    for index, axis in enumerate(over):
        stride = strides[index] if index < len(strides) else 1
        length = substitute(shape[axis], lengths)
        whole = isinstance(length, int) and length <= end[index] < FAR
        if axis in axes and begin[index] == 0 and stride == 1 and whole:
            new[index] = -1 if attrs["slice_mode"] == "size" else FAR
    return {} if tuple(new) == tuple(end) else {"end": tuple(new)}


_RULES: Final = {"broadcast_to": _broadcast, "reshape": _reshape, "strided_slice": _slice}
