"""Parts of a model as ONNX: how they are lowered and written."""

from __future__ import annotations

from serde.core.report import Report
from serde.onnx.exporter import write_lowered
from serde.onnx.lowering import Takes, arrange, spell_out
from serde.onnx.model import OnnxModel
from serde.relay.ir.expr import Call
from serde.relay.ir.model import RelayModel
from serde.target.alternatives import expansion_of

__all__ = ["lower_part", "write_part"]


def _take_all(_node: Call) -> bool:
    return True


def lower_part(
    model: RelayModel, opset: int, takes: Takes = _take_all, report: Report | None = None
) -> RelayModel:
    """Return a part of a model in the operators that ONNX has.

    No layers are raised in it: that is done once, where the whole model is seen. What is lowered
    already stays as it is.

    Args:
        model: The part, as a model of its own.
        opset: Version of the operator set that is written.
        takes: Which operators that can be made of others may be written as they are.
        report: Gets notes on large weights.
    """
    report = Report() if report is None else report
    model = arrange(model, opset, keep_functions=False, takes=None)
    return spell_out(model, opset, report, takes=takes, expansion=expansion_of, share=False)


def write_part(
    model: RelayModel, opset: int, takes: Takes = _take_all, report: Report | None = None
) -> OnnxModel:
    """Return a part of a model as ONNX.

    Raises:
        UnsupportedModelError: ONNX cannot say some of it at that version.
    """
    report = Report() if report is None else report
    return write_lowered(lower_part(model, opset, takes, report), opset, report)
