"""Cases of onnx's backend suite, compiled by TVM: as serde writes them, and as TVM reads them.

``python tests/support/relax_suite.py [--tvm] [--frozen] [case or pattern ...]`` prints which are
right, refused with what reason, or wrong. Each is run in a process that another takes the place
of when it crashes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from typing import Any

import numpy as np
from support.onnx_suite import (
    SuiteCase,
    feeds,
    frozen,
    imported,
    judge as judge_results,
    load_cases,
)
from support.relax_apart import answer, count, judge_apart, verdict_of

from serde.conversion.prepare import PrepareOptions, prepare
from serde.core.report import Report
from serde.errors import Unsupported
from serde.relax.engine import RelaxEngine
from serde.relax.exporter import from_relay
from serde.relax.framework import load
from serde.relax.options import RelaxExportOptions

__all__ = ["WAYS", "counted", "run_apart", "select"]


def check_serde(case: SuiteCase) -> None:
    """Compile what serde makes of a case, and compare its results with those of the suite.

    Raises:
        UnsupportedModelError: It is refused.
        CheckError: TVM does not compile or run it.
        AssertionError: A result is wrong.
    """
    model = prepare(imported(case), PrepareOptions(), report=Report())
    native = from_relay(model, RelaxExportOptions(), Report())
    weights = [each.array() for each in native.weights.values()]
    engine = RelaxEngine(native.module, native.inputs, native.outputs, weights)
    for inputs, outputs in case.data():
        given = feeds(case.model(), inputs)
        found = engine.run({name: given[name] for name in model.meta.inputs})
        judge_results(case, outputs, found)


def check_tvm(case: SuiteCase) -> None:
    """Compile what TVM's own importer makes of a case, as TVM's tests of it do.

    Raises:
        Unsupported: TVM's importer refuses it, by whatever exception.
        AssertionError: A result is wrong.
    """
    framework = load()
    tvm, relax = framework.tvm, framework.relax
    from tvm.relax.frontend.onnx import from_onnx

    try:
        module = from_onnx(case.model())
    except Exception as error:
        said = " ".join(str(error).split())
        raise Unsupported(f"{type(error).__name__}: {said:.200}") from error
    module = relax.transform.DecomposeOpsForInference()(module)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    for inputs, outputs in case.data():
        given = [np.ascontiguousarray(each).reshape(np.shape(each)) for each in inputs]
        found = machine["main"](*map(tvm.runtime.tensor, given))
        judge_results(case, outputs, _arrays(found) if len(outputs) > 1 else [_array(found)])


def _array(found: Any) -> Any:
    """Return a result, a tuple of tensors as a list of arrays."""
    return found.numpy() if hasattr(found, "numpy") else [_array(each) for each in found]


def _arrays(found: Any) -> list[Any]:
    return [_array(each) for each in found]


WAYS: dict[str, Callable[[SuiteCase], None]] = {"serde": check_serde, "tvm": check_tvm}


def counted() -> dict[str, SuiteCase]:
    """Return the cases that count, by names."""
    return {f"{each.kind}/{each.name}": each for each in load_cases() if each.left_out is None}


def select(patterns: Sequence[str]) -> list[str]:
    """Return the names of cases that patterns fit, whole nets last; all if there are none."""
    found = [
        name
        for name in counted()
        if not patterns or any(fnmatch(name.partition("/")[2], each) for each in patterns)
    ]
    return sorted(found, key=lambda name: name.startswith("real/"))


def run_apart(
    names: Sequence[str], *, way: str = "serde", freeze: bool = False
) -> Iterator[tuple[str, str, str]]:
    """Yield each case with its verdict and reason; see :func:`judge_apart`."""
    flags = [f"--{way}", *(["--frozen"] if freeze else [])]
    yield from judge_apart(__file__, names, flags)


def judge(case: SuiteCase, *, way: str, freeze: bool) -> None:
    """Check a case by one of the ways; one without data is refused."""
    case = frozen(case) if freeze else case
    if not case.data():
        raise Unsupported("the suite has no data of it")
    WAYS[way](case)


def main() -> None:
    """Print the verdicts."""
    warnings.simplefilter("ignore")
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    way, freeze = "tvm" if "--tvm" in sys.argv else "serde", "--frozen" in sys.argv
    if "--here" in sys.argv:
        cases = counted()
        answer(
            arguments, lambda name: verdict_of(lambda: judge(cases[name], way=way, freeze=freeze))
        )
        return
    found = []
    for name, verdict, said in run_apart(select(arguments), way=way, freeze=freeze):
        found.append(verdict)
        if verdict != "right":
            print(f"{verdict} {name}: {said}", flush=True)
    print(count(found))


if __name__ == "__main__":
    main()
