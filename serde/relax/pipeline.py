"""What a module goes through before TVM compiles it: fusion, records of tuning, loops."""

from __future__ import annotations

import importlib
import json
import math
import os
from importlib.util import find_spec
from typing import Any as AnyValue, Final

from serde.core import dataclass, field
from serde.errors import OptionError
from serde.relax.contractions import Expressions, find_contraction, is_reduction
from serde.relax.framework import Framework, load
from serde.relax.kernels import write_kernel

__all__ = ["Optimised", "apply_pipeline", "host_target", "optimise"]

_LONG: Final = 2**14
"""Elements for which threads are worth their start."""

_WIDTHS: Final = (("avx512f", 512), ("avx", 256))
"""Bits of the vectors of processors with a feature; those of others have 128."""


def host_target() -> str:
    """Return the processor at hand as a target, with all that it can do and nothing else."""
    ask = load().tvm.get_global_func
    target = {"kind": "llvm", "mcpu": str(ask("target.llvm_get_system_cpu")())}
    features = ask("tvm.codegen.llvm.GetHostCPUFeatures", True)
    if features is not None:  # A virtual machine may have less than its processor.
        here = {str(name): bool(there) for name, there in (features() or {}).items()}
        said = ask("target.llvm_get_cpu_features")(load().target(json.dumps(target)))
        without = sorted(f"-{each}" for each in map(str, said) if here.get(each) is False)
        target |= {"mattr": without} if without else {}
    return json.dumps(target)


def apply_pipeline(module: AnyValue, pipeline: AnyValue, target: str) -> AnyValue:
    """Return what a pipeline makes of a module, in this process.

    Args:
        module: The module.
        pipeline: A name that ``relax.get_pipeline`` knows, a pass, or a function of modules.
        target: What is compiled for.

    Raises:
        OptionError: There is none of that name, or it fails.
    """
    framework = load()
    try:
        if isinstance(pipeline, str):
            pipeline = framework.relax.get_pipeline(pipeline)
        with framework.target(target):
            made = pipeline(module)
    except Exception as error:
        raise OptionError(f"pipeline: {framework.last_line(error)}") from error
    if not isinstance(made, framework.tvm.IRModule):
        raise OptionError(f"pipeline: expected a module, found {type(made).__name__}")
    return made


@dataclass(frozen=True, slots=True)
class Optimised:
    """A module in fused functions, and better ones for some of them.

    Attributes:
        plain: The module as TVM has it.
        better: Functions in place of its own.
        failed: What could not be written better, and why.
    """

    plain: AnyValue
    better: dict[AnyValue, AnyValue] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @property
    def module(self) -> AnyValue:
        """The module with what is better."""
        made = dict(self.plain.functions_items())
        return self.plain.__class__({**made, **self.better}, attrs=self.plain.attrs)

    def drop_refused(self, framework: Framework, target: AnyValue) -> bool:
        """Leave what TVM does not compile as it was; whether there is any."""
        for variable, function in [*self.better.items()]:
            alone = framework.tvm.IRModule({variable: function})
            try:
                framework.tvm.compile(alone, target=target)
            except Exception as error:
                del self.better[variable]
                self.failed.append(f"{variable.name_hint}: {framework.last_line(error)}")
        return bool(self.failed)


def optimise(
    framework: Framework, module: AnyValue, target: AnyValue, tuning: str | None, trials: int
) -> Optimised:
    """Return a module in fused functions whose loops are written for a processor.

    Args:
        framework: TVM.
        module: A module of operators.
        target: What it is compiled for.
        tuning: The folder of records, which are used where there are any.
        trials: How many measurements are to be made for them first.
    """
    relax = framework.relax
    transform, dispatch = relax.transform, relax.backend
    passes = [
        dispatch.DispatchSampling(), dispatch.DispatchSortScan(), transform.FuseTransposeMatmul(),
        transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FoldConstant(),
        transform.FuseOps(), transform.FuseTIR(),
    ]  # fmt: skip
    with target:
        module = framework.tvm.transform.Sequential(passes)(module)
        if tuning is not None:
            module = _tuned(framework, module, target, tuning, trials)
    if target.kind.name != "llvm" or not hasattr(framework.tvm, "s_tir"):
        return Optimised(module)
    found, exprs = Optimised(module), Expressions(framework)
    for variable, function in module.functions_items():
        if not isinstance(function, framework.tir.PrimFunc) or _is_scheduled(function):
            continue
        try:
            found.better[variable] = _rewritten(exprs, function, target)
        except Exception as error:  # What cannot be written better stays as it is.
            found.failed.append(f"{variable.name_hint}: {framework.last_line(error)}")
    return found


def _is_scheduled(function: AnyValue) -> bool:
    return "is_scheduled" in str(function.attrs)


def _rewritten(exprs: Expressions, function: AnyValue, target: AnyValue) -> AnyValue:
    """Return a function with better loops."""
    schedule = importlib.import_module("tvm.s_tir").Schedule(function)
    found = find_contraction(exprs, schedule)
    if found is None:
        return _in_threads(exprs, schedule)
    ask = exprs.framework.tvm.get_global_func("target.llvm_cpu_has_feature")
    bits = next((bits for name, bits in _WIDTHS if ask(name, target)), 128)
    size = exprs.framework.tvm.DataType(exprs.dtype(found.main.body.value)).bits
    return write_kernel(exprs, found, bits // size)


def _in_threads(exprs: Expressions, schedule: AnyValue) -> AnyValue:
    """Return a function of anything else, whose outer loops run in threads."""
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        found, loops = schedule.get(block), schedule.get_loops(block)
        lengths = [exprs.known(each.dom.extent) for each in found.iter_vars]
        if len(loops) != len(lengths) or math.prod(x or _LONG for x in lengths) < _LONG:
            continue
        count = next((i for i, x in enumerate(found.iter_vars) if x.iter_type), len(loops))
        if outer := loops[: count if is_reduction(found) else count - 1]:
            schedule.parallel(schedule.fuse(*outer))
    return schedule.mod["main"]


def _tuned(
    framework: Framework, module: AnyValue, target: AnyValue, folder: str, trials: int
) -> AnyValue:
    """Return a module whose functions are as records have them, of which more may be made first."""
    search = importlib.import_module("tvm.s_tir.meta_schedule")
    os.makedirs(folder, exist_ok=True)
    if trials:
        model = "xgb" if find_spec("xgboost") else "random"
        tune = search.relax_integration.tune_relax
        tune(module, {}, target, folder, trials, cost_model=model)
    return framework.relax.transform.MetaScheduleApplyDatabase(folder)(module)
