"""What a module goes through before TVM compiles it: fusion, records of tuning, loops."""

from __future__ import annotations

import importlib
import json
import math
import os
from importlib.util import find_spec
from typing import Any as AnyValue, Final

from serde.errors import OptionError
from serde.relax.approximations import approximate
from serde.relax.contractions import Expressions, axes_of, inline
from serde.relax.framework import Framework, load
from serde.relax.kernels import write_kernel

__all__ = ["apply_pipeline", "compile_fast", "host_target"]

_LONG: Final = 2**14
"""Elements for which threads are worth their start."""

_IMPORT: Final = 300
"""Seconds that TVM may take to import what it measures with, before the first of all."""

_WIDTHS: Final = (("avx512f", 512), ("avx", 256), ("", 128))
"""Bits of the vectors of processors with a feature."""


def host_target() -> str:
    """Return the processor at hand as a target, with all that it can do and nothing else."""
    ask = load().tvm.get_global_func
    target: dict[str, AnyValue] = {"kind": "llvm", "mcpu": str(ask("target.llvm_get_system_cpu")())}
    features = ask("tvm.codegen.llvm.GetHostCPUFeatures", True)
    if features is not None:  # A virtual machine may have less than its processor.
        here = {str(name): bool(there) for name, there in (features() or {}).items()}
        said = ask("target.llvm_get_cpu_features")(load().target(json.dumps(target)))
        target["mattr"] = sorted(f"-{each}" for each in map(str, said) if here.get(each) is False)
    return json.dumps(target)


def apply_pipeline(module: AnyValue, pipeline: AnyValue, target: str) -> AnyValue:
    """Return what a pipeline makes of a module: a name of TVM's, a pass, a function of modules.

    Raises:
        OptionError: There is none of that name, or it fails.
    """
    framework = load()
    try:
        named = isinstance(pipeline, str)
        with framework.target(target):
            made = (framework.relax.get_pipeline(pipeline) if named else pipeline)(module)
    except Exception as error:
        raise OptionError(f"pipeline: {framework.last_line(error)}") from error
    if not isinstance(made, framework.tvm.IRModule):
        raise OptionError(f"pipeline: expected a module, found {type(made).__name__}")
    return made


def compile_fast(
    framework: Framework,
    failed: list[str],
    tuning: str | None,
    trials: int,
    module: AnyValue,
    target: AnyValue,
) -> AnyValue:
    """Return the executable of a module in fused functions, with better loops.

    Args:
        framework: TVM.
        failed: Gets the functions that stay as TVM has them, and why.
        tuning: The folder of records, which are used where there are any.
        trials: How many measurements are to be made for them first.
        module: A module of operators.
        target: What it is compiled for.
    """
    transform, dispatch = framework.relax.transform, framework.relax.backend
    passes = [
        dispatch.DispatchSampling(), dispatch.DispatchSortScan(), transform.FuseTransposeMatmul(),
        transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FoldConstant(),
        transform.FuseOps(), transform.FuseTIR(),
    ]  # fmt: skip
    better: dict[AnyValue, AnyValue] = {}
    with target:
        fused = framework.tvm.transform.Sequential(passes)(module)
        if trials:
            search = importlib.import_module("tvm.s_tir.meta_schedule")
            learns = bool(find_spec("xgboost"))
            model, way = ("xgb", "evolutionary") if learns else ("random", "replay-trace")
            search.relax_integration.tune_relax(
                fused, {}, target, tuning, trials, cost_model=model, strategy=way,
                builder=search.builder.LocalBuilder(timeout_sec=_IMPORT),
                runner=search.runner.LocalRunner(timeout_sec=_IMPORT),
            )  # fmt: skip
        if tuning is not None and os.path.isdir(tuning):
            fused = transform.MetaScheduleApplyDatabase(tuning)(fused)
    functions = dict(fused.functions_items())
    for variable, function in functions.items():
        if target.kind.name != "llvm" or not _has_open_loops(framework, function):
            continue
        try:
            better[variable] = approximate(framework, _rewritten(framework, function, target))
        except Exception as error:  # What cannot be written better stays as it is.
            failed.append(f"{variable.name_hint}: {framework.last_line(error)}")
    compile_, made = framework.tvm.compile, framework.tvm.IRModule
    while True:
        try:
            return compile_(made({**functions, **better}), target=target)
        except Exception as error:
            told = framework.last_line(error)
        refused = {}
        for variable, function in better.items():
            try:
                alone = function.with_attr("global_symbol", variable.name_hint)
                compile_(made({variable: alone}), target=target)
            except Exception as error:
                refused[variable] = f"{variable.name_hint}: {framework.last_line(error)}"
        failed += refused.values()
        if not refused:  # It is what is fused: some lengths are computed nowhere then.
            failed.append(f"all: {told}")
            return compile_(module, target=target)
        better = {variable: each for variable, each in better.items() if variable not in refused}


def _has_open_loops(framework: Framework, function: AnyValue) -> bool:
    """Whether this is a function of TIR that can be scheduled, and that nobody scheduled yet."""
    known = isinstance(function, framework.tir.PrimFunc) and function.attrs
    names = [str(name) for name in known.keys()] if known else []  # noqa: SIM118
    return "s_tir" in names and not any(name.endswith("is_scheduled") for name in names)


def _rewritten(framework: Framework, function: AnyValue, target: AnyValue) -> AnyValue:
    """Return a function with better loops; of what sums no products, the outer run in threads."""
    schedule = importlib.import_module("tvm.s_tir").Schedule(function)
    exprs = Expressions(framework)
    has = framework.tvm.get_global_func("target.llvm_cpu_has_feature")
    bits = next(bits for name, bits in _WIDTHS if not name or has(name, target))
    blocks = inline(schedule)
    if written := write_kernel(exprs, schedule.mod["main"], blocks, bits):
        return written
    for name in schedule.get_child_blocks(schedule.get_sblock("root")):
        block, loops = schedule.get(name), schedule.get_loops(name)
        lengths = [exprs.known(each.dom.extent) for each in block.iter_vars]
        long = math.prod(x or _LONG for x in lengths) >= _LONG
        if axes_of(block) and long and len(loops) == len(lengths):
            schedule.parallel(schedule.fuse(*loops[: len(axes_of(block))]))
    return schedule.mod["main"]
