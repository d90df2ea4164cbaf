"""Steps from a model to the operators that a target has, the same in several formats."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from serde.core.lossy import LossyStep
from serde.core.report import Report
from serde.errors import raise_if_refused
from serde.relay import transform
from serde.relay.ir.expr import Call
from serde.relay.ir.model import RelayModel
from serde.walk.table import ConverterTable

__all__ = ["lower_to_static", "quantized_as_floats"]


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
