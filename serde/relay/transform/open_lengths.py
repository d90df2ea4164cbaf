"""Literals of a graph that hold a length of its inputs which a caller has opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import Final

from serde.core.report import Report
from serde.errors import TypeInferenceError
from serde.relay.ir import RelayModel, TypeOnly, call, carried, infer_call, set_type, trait_of
from serde.relay.ir.dims import Any, Dim, SymDim, substitute, symbol
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from serde.relay.ir.types import TensorType, TupleType, Type, substitute_type
from serde.relay.ir.visit import children, post_order, rebuild
from serde.relay.transform.input_types import resolve_attribute
from serde.relay.transform.length_literals import LITERALS, Place, Reader

__all__ = ["open_lengths", "usual_trials"]

_MOST_TRIES: Final = 60
"""How many ways of repeating operands are tried at one call."""

_MOST_READINGS: Final = 3
"""How many readings of all literals are tried, where the likeliest do not fit."""

_FIXED_HINT: Final = "give the length that the source has"

_INDEXED: Final = {
    "gather": None, "gather_nd": 0, "scatter_elements": None, "scatter_nd": 0, "serde.gather_nd": -1
}  # fmt: skip
"""Operators that indices of one entry fit where there are more, with the axis of the indices that
counts the axes of the data which they are of; None where these are all."""


def open_lengths(
    model: RelayModel,
    lengths: Mapping[str, int],
    report: Report,
    *,
    trials: Sequence[Mapping[str, int]] = (),
    needed: int = 0,
    batch: str | None = None,
    rewriting: bool = True,
) -> tuple[RelayModel, list[str]]:
    """Return a model whose literals follow lengths that were opened, and the nodes that changed.

    The graph is looked at with other lengths than the source has. A literal of a reshape, a
    broadcast, a resizing or a slice that is such a length by its place becomes what it stands for;
    an operand of one entry, as the initial state of an LSTM, is repeated where the call takes as
    many as there are. Whatever fits at none of the other lengths is an issue, as are an output that
    the entries of a batch of one do not reach, and a literal that may stand for two lengths.

    Args:
        model: The model, its inputs with symbols for these lengths.
        lengths: The length in the source by symbol.
        report: Gets the issues.
        trials: The other lengths; some that windows and tables usually allow, if left out.
        needed: How many of the first of these must fit.
        batch: The symbol that counts the entries of a batch, of which the source has one.
        rewriting: Whether literals may be changed.
    """
    trials = trials or usual_trials(lengths, {})

    def walk(usual: int = 0, chosen: Mapping[Place, int] | None = None) -> _Walk:
        found = _Walk(Reader(lengths, usual, chosen or {}), trials, needed, rewriting)
        found.run(model.main.body, model.meta.outputs, batch)
        return found

    best = walk()
    if best.reader.several and len(best.fitting) < len(trials):
        best = max([best, *map(walk, range(1, _MOST_READINGS))], key=lambda each: len(each.fitting))
    if best.report.issues and best.changed and rewriting and {*lengths.values()} == {1}:
        # As it stands it fits as well, or says itself what does not.
        return open_lengths(model, lengths, report, trials=trials, batch=batch, rewriting=False)
    if best.fitting:
        _refuse_doubtful(best, walk)
    report.issues += best.report.issues
    main, body = model.main, best.memo[model.main.body]
    if body is main.body or best.report.issues:
        return model, best.changed
    new = Function(main.params, body, None, attrs=main.attrs, span=main.span)
    values = {name: best.memo.get(value, value) for name, value in model.values.items()}
    return model.evolve(mod=model.mod.with_main(new), values=values), best.changed


def usual_trials(
    lengths: Mapping[str, int], among: Mapping[str, Sequence[int]]
) -> list[dict[str, int]]:
    """Return other lengths, near enough for the windows and tables that the source has.

    Symbols that `among` has get one of the four lengths that it gives them.
    """
    options = [among.get(k) or [2 * n, 3 * n, n // 2 or 5, n + 1] for k, n in lengths.items()]
    trials = [dict(zip(lengths, each, strict=True)) for each in zip(*options, strict=True)]
    return [each for index, each in enumerate(trials) if each not in trials[:index]]


def _refuse_doubtful(best: _Walk, walk: Callable[..., _Walk]) -> Expr | None:
    """Make an issue of a literal that fits in another reading, too, and is another length then.

    Images become larger though they would fit as well at a size that is always the same.
    """
    tried = 0
    for place, readings in best.reader.several.items():
        own = readings[min(best.reader.usual, len(readings) - 1)]
        for other, reading in enumerate(readings[:-1] if place[1] == "size" else readings):
            differing = {at for at in best.fitting if best.differ(reading, own, at)}
            tried += bool(differing)
            if differing and (
                tried > _MOST_TRIES
                or differing & {*walk(best.reader.usual, {place: other}).fitting}
            ):
                what = f"{place[1]} may stand for {own} and for {reading}"
                return best.refuse(place[0], TypeInferenceError(what))
    return None


class _Walk:
    """One walk over a graph, beside its types at each of the other lengths.

    Attributes:
        memo: What each node has become.
        changed: What was changed, for people.
        alive: The other lengths at which all fits so far.
        reader: What literals stand for.
        report: Gets the issues.
    """

    def __init__(
        self, reader: Reader, trials: Sequence[Mapping[str, int]], needed: int, rewriting: bool
    ) -> None:
        self.memo: dict[Expr, Expr] = {}
        self.changed: list[str] = []
        self.alive = list(range(len(trials)))
        self.reader = reader
        self.report = Report()
        self._lengths = reader.lengths
        self._trials = trials
        self._needed = needed
        # What rounds lengths may not tell one more from as many.
        nearly = {name: length + 1 for name, length in reader.lengths.items()}
        self._telling = {i for i in self.alive if trials[i] != nearly} or {*self.alive}
        self._types: list[dict[Expr, Type]] = [{} for _ in trials]
        self._wrong: set[Expr] = set()
        self._rewriting = rewriting

    def run(self, body: Expr, names: Sequence[str], batch: str | None) -> None:
        for node in post_order(body):
            new = self.memo[node] = self._visit(node, [self.memo[each] for each in children(node)])
            if new in self._wrong:
                continue
            if not isinstance(new, Call) or not isinstance(new.op, Op):
                for index in self.alive:
                    self._note(new, index)
            self.reader.note(_shape(new))
        self._check_outputs(self.memo[body], names, batch)

    @property
    def fitting(self) -> Sequence[int]:
        """The other lengths at which the whole graph fits."""
        return () if self.report.issues else self.alive

    def differ(self, one: Dim, other: Dim, index: int) -> bool:
        """Whether two readings of a literal differ at lengths that are tried."""
        trial = self._trials[index]
        return substitute(one, trial) != substitute(other, trial)

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
            return self.refuse(node, error)
        failure = self._failure(new)
        if failure is None:
            return new
        repeated = next(
            (each for each in self._repeated(new) if self._rewriting and self._infer(each) is None),
            None,
        )
        if repeated is None:
            return self.refuse(node, failure)
        self.changed.append(f"{_label(node)} takes operands of one entry, repeated")
        return repeated

    def _failure(self, new: Call) -> TypeInferenceError | None:
        """Return what is wrong with a call; operands of the source's lengths may fit, too."""
        name = new.op.name if isinstance(new.op, Op) else ""
        shapes = [_shape(arg) for arg in new.args]
        kept = [_shape(arg) for arg in new.args if not self._reached(arg)]
        if name in _INDEXED and shapes[1] in kept:
            place = _INDEXED[name]
            count = len(shapes[0]) if place is None else shapes[1][place]
            batch = [symbol(each) for each, length in self._lengths.items() if length == 1]
            if any(dim in batch for dim in shapes[0][: count if isinstance(count, int) else None]):
                return TypeInferenceError("indices are of one entry")
        failure = self._infer(new)
        made = new.type.shape if isinstance(new.type, TensorType) else None
        is_new = failure is None and made is not None and not self.reader.longer(made)
        if is_new and self._rewriting:
            lengths = [{*self.reader.longer(shape).values()} for shape in shapes]
            if any(each and each.issubset(shape) for each in lengths for shape in kept):
                return TypeInferenceError("an operand is as long as another was")
        return failure

    def refuse(self, node: Expr, error: TypeInferenceError) -> Expr:
        names = ", ".join(f"{name}={length}" for name, length in self._lengths.items())
        self._add_issue(node, f"holds a length of the source ({names}): {error}")
        self._wrong.add(node)
        return node

    def _add_issue(self, node: Expr, reason: str) -> None:
        op = node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else "call"
        self.report.add(op, _label(node), reason, _FIXED_HINT)

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
        for index in self.alive:
            try:
                found[index] = self._type_at(new, index)
            except TypeInferenceError as error:
                failure = failure or error
        if not self._telling.intersection(found) or not found.keys() >= {*range(self._needed)}:
            return failure
        self.alive = list(found)
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
        rule = LITERALS.get(node.op.name if isinstance(node.op, Op) else "")
        if not isinstance(new, Call) or rule is None or not (parts and self._rewriting):
            return new if isinstance(new, Call) else node
        self.reader.node = node
        changes = rule(new.attrs, _shape(parts[0]), self.reader)
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
        by_entry = isinstance(new.op, Op) and new.op.name in _INDEXED
        places = [
            (operand, name)
            for name, length in self._lengths.items()
            if length == 1
            for operand in self._single(new)
            if not by_entry or _shape(new.args[0])[operand[1]] == symbol(name)
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
                for index, operand in ((i, o) for i in self.alive for o in wider.values()):
                    self._types[index][operand] = substitute_type(
                        operand.checked_type, self._trials[index]
                    )
                try:
                    args = [_with_fields(arg, wider) for arg in new.args]
                    for arg in args:
                        for index in self.alive:
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

    def _check_outputs(self, body: Expr, names: Sequence[str], batch: str | None) -> None:
        """Refuse outputs that depend on the inputs, and are as long for all numbers of entries.

        Those that depend on none must not be as long as others were.
        """
        if body in self._wrong or len(self.alive) < 1:
            return
        outputs = body.fields if isinstance(body, Tuple) else (body,)
        known = {n for each in outputs for n in self.reader.longer(_shape(each)).values()}
        for output in outputs:
            if not self._reached(output) and not known.isdisjoint(_shape(output)):
                self.refuse(output, TypeInferenceError("an output that no input bears on"))
        if batch is None:
            return
        for name, output in zip(names, outputs, strict=False):
            node = self._losing(output, batch)
            if node is not None:
                kept = f"keeps no axis for the entries of a batch ({batch})"
                self._add_issue(node, f"{kept}, and output {name} has but one")

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
