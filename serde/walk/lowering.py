"""Steps from a model to the operators that a target has, and biases that belong to layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from serde.core.lossy import LossyStep
from serde.core.report import Report
from serde.errors import raise_if_refused
from serde.relay import transform
from serde.relay.ir import Call, Expr, Layout, Linear, OpDef, RelayModel, has_trait, trait_of
from serde.relay.ir.types import TensorType
from serde.walk.table import ConverterTable

__all__ = ["fused_biases", "lower_to_static", "quantized_as_floats"]


def lower_to_static(
    model: RelayModel,
    table: ConverterTable,
    supported: Callable[[Call], bool],
    report: Report,
    *,
    before: Sequence[transform.Pass] = (),
    after: Sequence[transform.Pass] = (),
    share: bool = True,
    packing: Collection[str] = (),
    keep_training: bool = False,
    keep_functions: bool = False,
    layout: transform.Pass | None = None,
) -> RelayModel:
    """Return the model in operators of a target without ``dyn.`` forms.

    Args:
        model: The model.
        table: The converters, for what they expand.
        supported: Whether the target has an operator for a call.
        report: Gets notes on large weights.
        before: Passes before operators are made of others.
        after: Passes behind that.
        share: See :func:`serde.relay.transform.fold_weights`.
        packing: Likewise.
        keep_training: Whether operators that only matter in training stay.
        keep_functions: Whether global and composite functions stay.
        layout: Brings channels to where the target has them, if not behind the batch.
    """
    passes = transform.Sequential(
        [
            transform.InlineCalls(opaque=not keep_functions, keep_globals=keep_functions),
            transform.ToGraphNormalForm(),
            transform.RaiseRecursion(),
            transform.FoldShape(),
            *before,
            layout or transform.channels_first(),
            transform.Decompose(supported, table.expansion, usual_layouts=layout is None),
            transform.RemoveIdentities(keep_training),
            *after,
            transform.EvaluateConstants(),
        ]
    )
    model = model.evolve(mod=passes.run(model.mod)[0])
    return transform.fold_weights(model, report=report, share=share, packing=packing)


def quantized_as_floats(
    model: RelayModel,
    step: LossyStep,
    allow: frozenset[str],
    report: Report,
    *,
    after: Sequence[transform.Pass] = (),
) -> RelayModel:
    """Return the model with quantised operators computed on floats, between linear operators.

    Args:
        model: The model.
        step: The step.
        allow: Names of the steps that are allowed.
        report: Gets the step, allowed or not.
        after: Passes behind that.

    Raises:
        UnsupportedModelError: Something changes, and the step is not allowed.
    """
    mod, changed = transform.Sequential([transform.QuantizedAsFloat(), *after]).run(model.mod)
    if not changed:
        return model
    what = "quantised operators are computed on floats and round halves to even"
    step.record(report, allow, op="qnn", node="main", reason=what)
    raise_if_refused(report)
    return model.evolve(mod=mod)


def fused_biases(
    uses: Mapping[Expr, int], *, dense_rank: int | None = 2
) -> dict[Expr, tuple[Call, Expr]]:
    """Return the additions of a bias that can be part of their only producer.

    Args:
        uses: How often each node is used, as :func:`serde.relay.ir.visit.use_counts` says.
        dense_rank: Rank of a dense layer's result with which the target adds a bias; None: any.

    Returns:
        For each addition, the producer and the bias.
    """
    found: dict[Expr, tuple[Call, Expr]] = {}
    for node in uses:
        if not isinstance(node, Call) or not isinstance(node.op, OpDef):
            continue
        if node.op.name != "nn.bias_add":
            continue
        producer = node.args[0]
        if not isinstance(producer, Call) or not has_trait(producer, Linear) or uses[producer] != 1:
            continue
        layout = trait_of(producer, Layout)
        type_ = producer.type
        if not isinstance(type_, TensorType):
            continue
        if layout is None and dense_rank not in (None, type_.rank):
            continue
        channel = producer.attrs[layout.attribute].index("C") if layout else type_.rank - 1
        if node.attrs["axis"] % type_.rank == channel:
            found[node] = (producer, node.args[1])
    return found
