"""ONNX as a target: :func:`build` makes a runtime module of a partitioned one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde.core import Report, Weight, pause_garbage_collection
from serde.errors import OptionError
from serde.onnx.judge import write_part
from serde.onnx.versions import DEFAULT_TARGET
from serde.relay.ir import IRModule, ModelMeta, RelayModel, leaf_names, rewrite, value_types
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Var
from serde.relay.ir.types import TensorType, Type
from serde.relay.transform.infer_type import InferType
from serde.relayfile.graph import lift_constants
from serde.target.cutting import keep
from serde.target.module import OnnxModule
from serde.target.partition import COMPILER, OPSET_KEY, as_model, partition_for_onnx
from serde.target.program import Port, compiled_functions, output_names, schedule
from serde.target.regions import RegionModule

__all__ = ["OnnxModule", "build", "partition_for_onnx"]

_LIFTED_BYTES = 256
"""Constants of a region that are larger become initializers without a copy."""


@pause_garbage_collection()
def build(
    mod: AnyValue,
    params: Mapping[str, AnyValue] | None = None,
    *,
    opset: int | None = None,
    report: Report | None = None,
) -> OnnxModule:
    """Return the runtime module of a partitioned module.

    Args:
        mod: A module whose regions are global functions with ``Compiler="onnx"``, as
            :func:`partition_for_onnx` makes them, or a model with such a module.
        params: Values of parameters of ``main`` by name; for a model they are its own.
        opset: Version of the operator set of the regions; if left out, the one that they were
            judged by.
        report: Filled with notes.

    Raises:
        OptionError: An option cannot be used.
        UnsupportedModelError: ONNX cannot say a region at that version; all gaps are listed.
        Unsupported: A region is called inside a conditional, a loop or another function.
    """
    report = Report() if report is None else report
    model = _as_model(mod, params, report)
    functions = compiled_functions(model.mod, COMPILER)
    version = _opset_of([*functions.values(), model.main], opset)
    found = schedule(model, COMPILER)
    regions = {
        name: _build_region(name, call, functions[_name_of(call)], model, version, report)
        for name, call in found.calls.items()
    }
    return OnnxModule(found.program, regions, found.hosts, found.others, version)


def _as_model(mod: AnyValue, params: Mapping[str, AnyValue] | None, report: Report) -> RelayModel:
    if isinstance(mod, RelayModel):
        if params is not None:
            raise OptionError("a RelayModel has its own parameters; give its module instead")
        return mod if mod.mod.checked else mod.evolve(mod=InferType().run(mod.mod)[0])
    return as_model(mod, params, report)


def _opset_of(functions: Sequence[Function], opset: int | None) -> int:
    known = {int(f.attrs[OPSET_KEY]) for f in functions if OPSET_KEY in f.attrs}
    if opset is not None:
        return opset
    if len(known) > 1:
        raise OptionError(f"the regions are for opsets {sorted(known)}; name one")
    return next(iter(known), DEFAULT_TARGET)


def _name_of(call: Call) -> str:
    return call.op.name_hint if isinstance(call.op, GlobalVar) else ""


def _build_region(
    name: str, call: Call, function: Function, model: RelayModel, opset: int, report: Report
) -> RegionModule:
    """Return a region as ONNX: weights and constants among its arguments are its own."""
    memo: dict[Expr, Expr] = {}
    params: dict[str, Weight] = {}
    inputs: list[Var] = []
    for param, arg in zip(function.params, call.args, strict=True):
        if isinstance(arg, Constant):
            memo[param] = arg
        else:
            inputs.append(param)
            if isinstance(arg, Var) and arg.name_hint in model.params:
                params[param.name_hint] = model.params[arg.name_hint]
    body = rewrite(function.body, keep, memo)
    main = Function(inputs, body)
    mod = IRModule({GlobalVar("main", main.type): main}, checked=True)
    mod = lift_constants(mod, params, _LIFTED_BYTES)
    fed = [param for param in inputs if param.name_hint not in params]
    names = output_names(name, len(value_types(body.type)))
    meta = ModelMeta(tuple(param.name_hint for param in fed), tuple(names), extra={"name": name})
    native = write_part(RelayModel(mod, params, meta), opset, report=report)
    named = [(param.name_hint, param.checked_type) for param in fed]
    ins = [port for each, type_ in named for port in _ports(leaf_names(each, type_), type_)]
    outs = _ports(names, body.checked_type)
    return RegionModule(name, native, ins, outs)


def _ports(names: Sequence[str], type_: Type) -> list[Port]:
    pairs = zip(names, value_types(type_), strict=True)
    return [Port(name, each) for name, each in pairs if isinstance(each, TensorType)]
