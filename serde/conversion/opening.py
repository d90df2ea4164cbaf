"""Lengths that a caller gives where the source has others: a batch, a sequence, an image."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any as AnyValue

from serde.bridge.contract import AnyBridge
from serde.bridge.ranges import BoundedName, bounded_axes, declared_ranges
from serde.bridge.summary import TensorSummary
from serde.core import Report, dataclass, field, replace
from serde.core.lossy import OTHER_LENGTHS
from serde.errors import OptionError, UnsupportedModelError, raise_if_refused
from serde.relay.ir import Constant, Expr, Function, TensorType, TupleType, rewrite
from serde.relay.ir.dims import DimLike, SymDim, as_dim, substitute, symbol
from serde.relay.ir.model import OpenedLengths, RelayModel
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.input_types import with_input_types
from serde.relay.transform.open_lengths import open_lengths, usual_trials
from serde.walk.inputs import fixed_value

__all__ = ["read_as_told"]

_MOST_NAMED = 5
"""How many changes a note names."""

_USUAL_COUNTS = (2, 3, 2**4 * 3**2 * 5**2 * 7 * 11)
"""Entries of a batch, the last of which groups of most sizes divide."""


@dataclass(slots=True)
class _Opened:
    """What is read otherwise than the source has it.

    Attributes:
        shapes: Shapes with a symbol for every length that differs.
        lengths: The length in the source by symbol.
        wanted: Lengths that symbols of no caller stand for.
        batch: The symbol of the entries of a batch, of which the source has one.
        guessed: Whether the source declares no shapes, and a batch of one is a guess.
        bounds: The least and the greatest length by symbol, where a caller gives them.
        entries: How many entries the inputs have, by the symbol that counts them.
    """

    shapes: dict[str, list[DimLike]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    batch: str | None = None
    guessed: bool = False
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)


def read_as_told(
    bridge: AnyBridge, native: AnyValue, options: AnyValue, report: Report
) -> RelayModel:
    """Return a model as Relay, with the lengths and the values of inputs that the caller gives.

    Literals that hold lengths which were opened follow them.

    Args:
        bridge: The source's format.
        native: The model.
        options: How it is read; shapes and values of inputs among them.
        report: Filled with gaps, and with notes on what was changed.

    Raises:
        OptionError: A value fits no input.
        UnsupportedModelError: Some nodes cannot be converted, or hold a length.
    """
    model = _read_opened(bridge, native, options, report)
    model = _with_ranges(model, options.input_shapes, report)
    return _with_fixed(model, options.fix_inputs)


def _with_ranges(model: RelayModel, shapes: Mapping[str, AnyValue], report: Report) -> RelayModel:
    """Return a model with facts ``<symbol>.range`` of the bounds that a caller gives.

    The default is the length that the source has, where it has one within them.
    """
    types: dict[str, AnyValue] = {each.name_hint: each.type for each in model.inputs()}
    own = {} if model.meta.opened is None else model.meta.opened.lengths
    before, extra, told = declared_ranges(model.meta.extra), dict(model.meta.extra), set[str]()
    for key, axis, name in bounded_axes(shapes):
        input_, (low, high) = key or next(iter(types), ""), name.ends
        dim = types[input_].shape[axis] if input_ in types else None
        least, most, _ = before.get(f"{input_}_{axis}", before.get(str(dim), (1, None, 1)))
        if not isinstance(dim, SymDim) or dim.name is None or low < least or high > (most or high):
            what = f"{least}..{most or ''}" if isinstance(dim, SymDim) else dim
            where = f"input_shapes: {input_}: axis {axis}"
            raise OptionError(f"{where} is {what} in the source, found {low}..{high}")
        default = own.get(dim.name, low)
        extra[f"{dim.name}.range"] = f"{low}:{high}:{default if low <= default <= high else low}"
        told.add(f"{dim.name} is {low} to {high}")
    if told:
        report.notes.append(f"lengths as they were given: {'; '.join(sorted(told))}")
    return replace(model, meta=replace(model.meta, extra=extra)) if told else model


def _with_fixed(model: RelayModel, given: Mapping[str, AnyValue]) -> RelayModel:
    """Return a model with constants for inputs that its format did not fix while it was read."""
    inputs = {each.name_hint: each for each in model.inputs()}
    left = {name: each for name, each in given.items() if name not in model.meta.fixed}
    memo: dict[Expr, Expr] = {}
    fixed = dict(model.meta.fixed)
    for name, each in left.items():
        type_ = inputs[name].type if name in inputs else None
        if not isinstance(type_, TensorType):
            raise OptionError(f"fix_inputs: no input {name}; inputs: {', '.join(inputs)}")
        fixed[name] = fixed_value(name, each, type_.shape, type_.dtype)
        memo[inputs[name]] = Constant(fixed[name], inputs[name].span)
    if not memo:
        return model
    main = model.main
    params = [each for each in main.params if each not in memo]
    body = rewrite(main.body, lambda _node, new: new, memo)
    new = Function(params, body, None, attrs=main.attrs, span=main.span)
    names = tuple(each for each in model.meta.inputs if each not in left)
    meta = replace(model.meta, inputs=names, fixed=fixed)
    return model.evolve(mod=InferType()(model.mod.with_main(new)), meta=meta)


def _read_opened(
    bridge: AnyBridge, native: AnyValue, options: AnyValue, report: Report
) -> RelayModel:
    """Return a model whose literals follow the lengths that the caller gives."""
    opened = _find_opened(bridge, native, options) if options.input_shapes else _Opened()
    if not opened.lengths:
        return bridge.to_relay(native, options, report=report)
    given = {name: list(shape) for name, shape in options.input_shapes.items()}
    if opened.shapes == given:
        model = bridge.to_relay(native, options, report=report)
        return _follow(model, opened, report, options.allow)
    trial = Report(report.title)
    try:
        model = bridge.to_relay(native, replace(options, input_shapes=opened.shapes), report=trial)
    except (OptionError, UnsupportedModelError):
        plain = bridge.to_relay(native, options, report=report)
        if {*opened.lengths} - {opened.batch}:
            raise  # Nobody has looked at its literals.
        return plain
    told = len(trial.allowed)
    try:
        model = _follow(model, opened, trial, options.allow)
    except UnsupportedModelError:
        with suppress(UnsupportedModelError):
            bridge.to_relay(native, options, report=Report())
        report.issues += trial.issues
        raise_if_refused(report)
    if model.meta.opened is None or not model.meta.opened.rewritten:
        report.allowed += trial.allowed[told:]
        plain = bridge.to_relay(native, options, report=report)
        return replace(plain, meta=replace(plain.meta, opened=model.meta.opened))
    report.notes += trial.notes
    report.allowed += trial.allowed
    report.fallbacks += trial.fallbacks
    shapes = {
        each.name_hint: [substitute(dim, opened.wanted) for dim in each.type.shape]
        for each in model.inputs()
        if isinstance(each.type, TensorType)
    }
    mod = with_input_types(model.mod, set(model.params), shapes, {})
    return model.evolve(mod=mod)


def _find_opened(bridge: AnyBridge, native: AnyValue, options: AnyValue) -> _Opened:
    """Return the lengths that are given where the source has others."""
    declared = {each.name: each for each in bridge.summary(native).inputs or ()}
    found = _Opened()
    for key, shape in options.input_shapes.items():
        name = key or next(iter(declared), "")
        known = declared.get(name, TensorSummary(name)).shape
        if known is not None and len(known) != len(shape):
            return _Opened()
        # Recurrent layers have steps before entries.
        first = int(known is not None and len(known) == 3 and known[0] != 1 and known[1] == 1)
        found.shapes[key] = [
            _open_axis(found, name, axis, given, None if known is None else known[axis], first)
            for axis, given in enumerate(shape)
        ]
    if set(found.entries.values()) == {1}:  # Where one has several, one entry is no batch.
        found.batch = next(iter(found.entries))
    return found


def _open_axis(
    found: _Opened, name: str, axis: int, given: DimLike, known: int | str | None, first: int
) -> DimLike:
    """Return what an axis is read as; `first` is the one that counts entries."""
    dim = as_dim(given)
    if not isinstance(known, int):
        if known is not None or axis or not isinstance(dim, SymDim) or dim.name is None:
            return given
        found.guessed, known = True, 1
    if dim == known or known == 0:
        return given
    label = min(dim.symbols()) if isinstance(dim, SymDim) else None
    times = dim // symbol(label) if label is not None else 1
    if not isinstance(times, int) or known % times or (label and times * symbol(label) != dim):
        raise OptionError(f"input_shapes: {name}: {given} cannot stand for a length of {known}")
    if label is None:
        label = f"{name}_{axis}" if not isinstance(dim, int) else f"{known}to{dim}"
        if isinstance(dim, int):
            found.wanted[label] = dim
    if isinstance(given, BoundedName):
        found.bounds[label] = given.ends
    if found.lengths.setdefault(label, known // times) != known // times:
        raise OptionError(f"input_shapes: {name}: {label} stands for two lengths of the source")
    if axis == first:
        found.entries[label] = known
    return given if times != 1 or (isinstance(given, str) and given == label) else label


def _follow(
    model: RelayModel, opened: _Opened, report: Report, allow: Collection[str]
) -> RelayModel:
    """Return a model whose literals follow the lengths, or stay where the caller allows it."""
    found, changed = model, list[str]()
    dims = [d for each in model.inputs() for d in getattr(each.type, "shape", ())]
    kept = {name for dim in dims if isinstance(dim, SymDim) for name in dim.symbols()}
    for name in sorted(opened.lengths.keys() - kept):
        if name != opened.batch or name not in opened.wanted:
            raise OptionError(f"input_shapes: {name} is {opened.lengths[name]} in the source")
        return model
    if not opened.guessed or _is_one_entry(model, opened):
        batch = None if opened.guessed else opened.batch
        among = {name: [length] * 4 for name, length in opened.wanted.items()}
        for name, (least, most) in opened.bounds.items():
            among[name] = [most, least, (least + most) // 2, least + 1]
        needed, trials = 2 if opened.bounds else 0, usual_trials(opened.lengths, among)
        open_ = partial(open_lengths, model, opened.lengths, trials=trials, needed=needed)
        trial, plain = Report(), Report()
        found, changed = open_(trial, batch=batch)
        if trial.issues and OTHER_LENGTHS.name in allow:
            open_(plain, rewriting=False)
            if not plain.issues:
                report.allowed += trial.issues
                trial.issues, changed = [], []
        report.issues += trial.issues
    raise_if_refused(report)
    if changed:
        changed = [_with_lengths(each, opened.wanted) for each in changed]
        more = f", and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
        shown = "; ".join(changed[:_MOST_NAMED]) + more
        report.notes.append(f"what held a length of the source follows it now: {shown}")
    if opened.guessed and not changed:
        return model
    result = found.main.body.type
    types = result.fields if isinstance(result, TupleType) else (result,)
    inputs = {each.name_hint: _axis_of(each.type, opened.batch) for each in found.inputs()}
    entries = {name: axis for name, axis in inputs.items() if axis is not None}
    outputs = tuple(_axis_of(type_, opened.batch) for type_ in types)
    meta = replace(
        found.meta,
        opened=OpenedLengths(opened.lengths, opened.batch, entries, outputs, bool(changed)),
    )
    return found.evolve(mod=found.mod, meta=meta, values=found.values)


def _is_one_entry(model: RelayModel, opened: _Opened) -> bool:
    """Whether a graph that declares no lengths can take one entry alone."""
    one, many = Report(), Report()
    fits = [dict.fromkeys(opened.lengths, 1)]
    others = [dict.fromkeys(opened.lengths, count) for count in _USUAL_COUNTS]
    open_lengths(model, opened.lengths, many, trials=others, rewriting=False)
    if many.issues:
        open_lengths(model, opened.lengths, one, trials=fits, rewriting=False)
    return bool(many.issues) and not one.issues


def _with_lengths(text: str, wanted: Mapping[str, int]) -> str:
    for name, length in wanted.items():
        text = text.replace(name, str(length))
    return text


def _axis_of(type_: AnyValue, name: str | None) -> int | None:
    """Return the axis of a tensor that counts the entries of a batch."""
    shape = type_.shape if isinstance(type_, TensorType) and name is not None else ()
    return next((axis for axis, dim in enumerate(shape) if dim == symbol(name or "?")), None)
