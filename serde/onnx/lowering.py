"""From Relay's operators to those that ONNX has at a version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any as AnyValue, ClassVar, Final, Literal

from serde.core.lossy import QUANTISED_AS_QDQ, UINT8_AS_INT8
from serde.core.report import Report
from serde.errors import raise_if_refused
from serde.onnx.linear_pairs import (
    LevelsAsPairs,
    SignedPairs,
    SumsBetweenPairs,
    UnsignedPairs,
    loses_levels,
)
from serde.onnx.ops import TABLE
from serde.relay import transform
from serde.relay.ir import (
    IRModule,
    OpDef,
    RelayModel,
    TensorType,
    call,
    called_name,
    get,
    tensor_type,
)
from serde.relay.ir.bodies import inner_first
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Let, Span, Tuple, Var
from serde.relay.ir.visit import free_vars, has_kind, rewrite, rewrite_function
from serde.relay.transform.compose import Pattern
from serde.relay.transform.positions import FoldLookups
from serde.walk.lowering import quantized_as_floats

__all__ = ["Takes", "arrange", "as_qdq", "for_runtime", "lower", "spell_out", "take_all"]

FIRST_WITH_NIBBLES: Final = 21
"""First version of the operator set that has integers of 4 bits."""

_BYTES: Final = {"int4": "int8", "uint4": "uint8"}

_WHOLE: Final = ("serde.qlinear_conv2d", "serde.qlinear_matmul")


def as_qdq(model: RelayModel, report: Report, allow: frozenset[str], *, whole: bool) -> RelayModel:
    """Return the model on floats; products in one step may stay `whole`."""
    after = [] if whole else [transform.Decompose(supported=_is_no_whole)]
    return quantized_as_floats(model, QUANTISED_AS_QDQ, allow, report, after=after)


def for_runtime(
    model: RelayModel, runtime: str, report: Report, allow: frozenset[str]
) -> RelayModel:
    """Return a model that is between linear operators in the form that a runtime fuses.

    Args:
        model: What :func:`as_qdq` gave.
        runtime: ``onnxruntime`` or ``tensorrt``.
        report: Gets the step that loses levels.
        allow: Names of lossy steps that may be taken.

    Raises:
        UnsupportedModelError: Such a step is not allowed.
    """
    weights = frozenset(model.params)
    passes: list[transform.Pass]
    if runtime == "onnxruntime":
        passes = [LevelsAsPairs(), SumsBetweenPairs(), UnsignedPairs(weights)]
    else:
        passes = [LevelsAsPairs(), SignedPairs(weights)]
        if loses_levels(model.main):
            reason = "activations of uint8 become int8"
            UINT8_AS_INT8.record(report, allow, op="quantize", node="main", reason=reason)
            raise_if_refused(report)
    mod = transform.Sequential([*passes, transform.RemoveDeadCode()]).run(model.mod)[0]
    return transform.fold_weights(model.evolve(mod=mod), report=report)


def _is_no_whole(node: Call) -> bool:
    return not isinstance(node.op, OpDef) or node.op.name not in _WHOLE


_WHOLE_SINCE: Final = {
    "nn.layer_norm": 17, "serde.gelu": 20, "serde.layer_norm": 17,
    "serde.rms_norm": 23, "serde.rotary_embedding": 23,
}  # fmt: skip
"""Versions from which on a layer is one operator that models spell out for older ones."""


Takes = Callable[[Call], bool]
"""Whether a call may be written as the operator that it is."""


def lower(
    model: RelayModel,
    opset: int,
    local_functions: bool,
    report: Report,
    *,
    in_place: bool = False,
    runtime: Literal["any", "onnxruntime"] = "any",
    judged: Callable[[RelayModel], Takes] | None = None,
    expansion: Callable[[str], Callable[..., AnyValue] | None] = TABLE.expansion,
) -> RelayModel:
    """Return the model in operators that ONNX has at that version, or that runtime besides.

    See :func:`serde.relay.transform.fold_weights` for `in_place`, and :func:`spell_out`; `judged`
    tells what may be written of a model as it is.
    """
    takes = take_all if judged is None else judged(model)
    if runtime == "any":
        model = arrange(model, opset, keep_functions=local_functions, takes=takes)
    else:
        from serde.onnx.runtime import WHOLE, fuse

        model = arrange(model, opset, keep_functions=local_functions, takes=takes, also=WHOLE)
        model = fuse(model, opset, report)
    if judged is not None:
        model = transform.fold_weights(model, report=report, share=False, in_place=in_place)
        takes = judged(model)
    return spell_out(model, opset, report, takes=takes, expansion=expansion, in_place=in_place)


def take_all(_node: Call) -> bool:
    return True


def arrange(
    model: RelayModel,
    opset: int,
    *,
    keep_functions: bool,
    takes: Takes | None,
    also: Collection[str] = (),
) -> RelayModel:
    """Return the model with whole layers, and with channels where ONNX has them.

    Args:
        model: The model.
        opset: Version of the operator set that is written.
        keep_functions: Whether global and composite functions stay.
        takes: Which layers that ONNX has may be made of what spells them out; None for none.
        also: Layers that are made besides, whether ONNX has them or not.
    """
    model = model.evolve(mod=_without_calls(model.mod, keep=keep_functions))

    def whole(node: Call) -> bool:
        name = node.op.name if isinstance(node.op, OpDef) else ""
        if name == "nn.dense":
            known = isinstance(node.type, TensorType) and node.type.rank == 2
        else:
            known = opset >= _WHOLE_SINCE.get(name, opset + 1) and TABLE.can_export(node, opset)
            known |= name in also
        return known and takes is not None and takes(node)

    passes = transform.Sequential(
        [
            *([] if takes is None else [transform.RaiseLayers(whole, frozenset(model.params))]),
            _GroupHeads(),
            FoldLookups(),
            transform.channels_first(),
        ]
    )
    return model.evolve(mod=passes.run(model.mod)[0])


def spell_out(
    model: RelayModel,
    opset: int,
    report: Report,
    *,
    takes: Takes = take_all,
    expansion: Callable[[str], Callable[..., AnyValue] | None] = TABLE.expansion,
    share: bool = True,
    in_place: bool = False,
) -> RelayModel:
    """Return an arranged model with operators that cannot be written made of others.

    Args:
        model: The model.
        opset: Version of the operator set that is written.
        report: Gets notes on large weights.
        takes: Which operators that can be made of others may be written as they are.
        expansion: What these are made of, by name, before their own decompositions.
        share: See :func:`serde.relay.transform.fold_weights`.
        in_place: Likewise.
    """

    def supported(node: Call) -> bool:
        return TABLE.can_export(node, opset) and takes(node)

    if opset < FIRST_WITH_NIBBLES:
        _note_widened(model, report)
    passes = transform.Sequential(
        [
            *([] if opset >= FIRST_WITH_NIBBLES else [_BytesForNibbles()]),
            transform.Decompose(supported=supported, expansion=expansion),
            _DenseAsProduct(),
        ]
    )
    lowered = passes.run(model.mod)[0]
    return transform.fold_weights(
        model.evolve(mod=lowered), report=report, share=share, in_place=in_place
    )


_REPEATED: Final = Pattern(
    "repeated",
    Call(get("reshape"), [Call(get("broadcast_to"), [Call(get("expand_dims"), [Var("x")])])]),
    lambda match: match.bound["x"],
)


class _GroupHeads(transform.FunctionPass):
    """Keys and values that heads share stand once."""

    name: ClassVar[str] = "GroupHeads"
    changes: ClassVar[Sequence[str | type]] = ("serde.attention",)

    def transform(self, function: Function) -> Function:
        """Rewrite the calls of attention."""
        return rewrite_function(function, lambda _old, node: _group_heads(node))


def _group_heads(node: Expr) -> Expr:
    if not isinstance(node, Call) or called_name(node) != "serde.attention":
        return node
    single = []
    for each in node.args[1:3]:
        match = _REPEATED.match(each) if isinstance(each, Call) else None
        if match is None or not isinstance(match.root.args[0], Call):
            return node
        own, wide = tensor_type(match.bound["x"]).shape, tensor_type(match.root.args[0]).shape
        if len(own) != 4 or len(wide) != 5 or (*wide[:2], *wide[3:]) != own:
            return node
        if tensor_type(each).shape != (own[0], own[1] * wide[2], *own[2:]):
            return node
        single.append(match.bound["x"])
    return call(
        "serde.attention", node.args[0], *single, node.args[3], span=node.span, **node.attrs
    )


class _BytesForNibbles(transform.FunctionPass):
    """Hold weights of 4 bits in 8 where they become floats; their values are the same.

    Scales for blocks are scales for the columns of the weight with the places within a block
    as its rows, which versions without blocks have.
    """

    name: ClassVar[str] = "BytesForNibbles"
    changes: ClassVar[Sequence[str | type]] = ("serde.dequantize_linear",)

    def transform(self, function: Function) -> Function:
        """Rewrite the calls that make floats of them."""
        return rewrite_function(function, lambda _node, new: _widen_nibbles(new))


def _widen_nibbles(node: Expr) -> Expr:
    """Return a dequantisation of stored integers of 4 bits as one of bytes.

    Blocks came to ONNX with 4 bits. Where there are any, the data is brought into a matrix with
    a block in each column, dequantised with a scale a column, and brought back.
    """
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return node
    if node.op.name != "serde.dequantize_linear" or not isinstance(node.args[0].type, TensorType):
        return node
    data, scale, zero = node.args
    wider = _BYTES.get(data.type.dtype if isinstance(data.type, TensorType) else "")
    if wider is None or not isinstance(data, (Constant, Var)):
        return node
    if not isinstance(zero, (Constant, Tuple, Var)):
        return node
    held = call("cast", data, dtype=wider)
    point = None if isinstance(zero, Tuple) else call("cast", zero, dtype=wider)
    attrs = dict(node.attrs)
    shape = data.type.concrete_shape if isinstance(data.type, TensorType) else None
    if not attrs["block_size"]:
        return call("serde.dequantize_linear", held, scale, point, span=node.span, **attrs)
    length, block = (shape or ())[attrs["axis"]], attrs["block_size"]
    if shape is None or length % block:
        return node
    axis = attrs["axis"] % len(shape)
    parts = (*shape[:axis], length // block, block, *shape[axis + 1 :])
    order = (axis + 1, *(each for each in range(len(parts)) if each != axis + 1))
    rows = call("reshape", held, newshape=parts)
    rows = call("reshape", call("transpose", rows, axes=order), newshape=(block, -1))
    flat = [
        each if each is None else call("reshape", each, newshape=(-1,)) for each in (scale, point)
    ]
    attrs |= {"axis": 1, "block_size": 0}
    floats = call("serde.dequantize_linear", rows, *flat, span=node.span, **attrs)
    moved = tuple(parts[each] for each in order)
    back = tuple(order.index(each) for each in range(len(parts)))
    floats = call("transpose", call("reshape", floats, newshape=moved), axes=back)
    return call("reshape", floats, newshape=shape)


def _note_widened(model: RelayModel, report: Report) -> None:
    """Tell how many weights of 4 bits take 8."""
    used = {each.name_hint for each in free_vars(model.main.body)}
    count = sum(weight.dtype in _BYTES for name, weight in model.params.items() if name in used)
    if count:
        report.notes.append(
            f"weights of 4 bits that are stored in 8: {count}; opset {FIRST_WITH_NIBBLES} has 4 "
            "bits, and products have for runtime='onnxruntime'"
        )


def _without_calls(mod: IRModule, *, keep: bool) -> IRModule:
    """Return a module without lets, and with functions only where `keep` or recursion asks.

    What is inlined may bring calls of functions that were arguments until then, and functions
    that call themselves last, so it goes on until nothing changes.
    """
    main = mod["main"]
    if len(mod.functions) == 1 and not any(
        has_kind(each, Function, Let) for each in (main, *inner_first(main))
    ):
        return mod
    step = transform.Sequential(
        [
            transform.ToGraphNormalForm(),
            _CallsIntoBranches(),
            transform.InlineCalls(opaque=not keep, keep_globals=keep),
            transform.RemoveDeadCode(),
            transform.InferType(),
            transform.RaiseRecursion(),
        ]
    )
    result, changed = step.run(mod)
    if not changed:
        return mod
    while changed:
        result, changed = step.run(result)
    again = transform.Sequential(
        [transform.InferType(), transform.FoldShape(), transform.MergeEqualNodes()]
    )
    return again.run(result.with_functions(result.functions, checked=False))[0]


class _CallsIntoBranches(transform.FunctionPass):
    """A call of the function that a condition chooses becomes a choice between two calls."""

    name: ClassVar[str] = "CallsIntoBranches"
    changes: ClassVar[Sequence[str | type]] = (If,)

    def transform(self, function: Function) -> Function:
        return rewrite_function(function, lambda _old, node: _into_branches(node))


def _into_branches(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, If):
        return node
    chosen = node.op
    calls = [
        Call(branch, node.args, span=node.span)
        for branch in (chosen.true_branch, chosen.false_branch)
    ]
    for each in calls:
        each.type = node.type
    return If(chosen.cond, calls[0], calls[1], chosen.span)


class _DenseAsProduct(transform.FunctionPass):
    """A dense layer on other than two axes becomes a product with the weight turned."""

    name: ClassVar[str] = "DenseAsProduct"
    changes: ClassVar[Sequence[str | type]] = ("nn.dense",)

    def transform(self, function: Function) -> Function:
        body = rewrite(function.body, lambda _old, node: _as_product(node))
        if body is function.body:
            return function
        return function.evolve(body=body)


def _as_product(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.op.name != "nn.dense":
        return node
    data = node.args[0].type
    if not isinstance(data, TensorType) or data.rank == 2:
        return node
    turned = _turned(node.args[1], node.span)
    attrs = {name: node.attrs[name] for name in ("units", "out_dtype")}
    return call("nn.matmul", node.args[0], turned, span=node.span, **attrs)


def _turned(weight: Expr, span: Span | None) -> Expr:
    """Return a weight transposed; blocks are stored so, which runtimes look for at a product."""
    is_blocks = called_name(weight) == "serde.dequantize_linear"
    if not isinstance(weight, Call) or not is_blocks or not weight.attrs["block_size"]:
        return call("transpose", weight, axes=(1, 0), span=span)
    parts = [None if isinstance(x, Tuple) else _turned(x, x.span) for x in weight.args]
    attrs = {**weight.attrs, "axis": 1 - weight.attrs["axis"] % 2}
    return call("serde.dequantize_linear", *parts, span=weight.span, **attrs)
