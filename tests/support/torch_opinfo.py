"""PyTorch's own samples of its operators (OpInfo), read into Relay and run by its interpreter.

``python tests/support/torch_opinfo.py --only add,mul`` prints pass rates by operator, and why the
other samples do not pass; see ``--help``.

A sample is traced into a graph of ATen operators, as ``torch.export`` records them or decomposed
(``core``). A floating-point result passes within the tolerances of ``torch.testing.assert_close``
(or those that PyTorch's own tests have for the operator), or where it is no further than PyTorch's
own from the result of float64, as in PyTorch's test of its decompositions; anything else must be
equal. Of random results, dtype and shape are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_device_type import toleranceOverride
from torch.utils import _pytree as pytree

from serde.core.report import Report
from serde.engine.interpreter import RelayEngine
from serde.errors import ConverterBug, SerdeError, UnsupportedModelError
from serde.torch.importer import to_relay
from serde.torch.live.exported import read_graph
from serde.torch.model import Input, TorchModel
from serde.torch.options import TorchImportOptions
from serde.torch.tensors import tensor_weight

DTYPES = ("float32", "int64", "bool", "float16", "int32", "float64")
"""Dtypes of samples."""

HALVES = (torch.float32, torch.float16, torch.bfloat16)

COMPLEX = {"complex32", "complex64", "complex128"}
"""Dtypes that Relay does not have."""


@dataclass
class Outcome:
    """What became of the samples of an operator in one dtype: how many passed, the others why."""

    passed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many samples there are."""
        return self.passed + self.reasons.total()

    def add(self, reason: str, example: str) -> None:
        """Note why a sample did not pass, or that it did."""
        if not reason:
            self.passed += 1
            return
        self.reasons[reason] += 1
        self.examples.setdefault(reason, example)


@cache
def operators() -> dict[str, Any]:
    """Return PyTorch's descriptions of operators by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {full_name(info): info for info in op_db}


def full_name(info: Any) -> str:
    """Return the name of an operator with that of its variant."""
    return f"{info.name}:{info.variant_test_name}" if info.variant_test_name else info.name


def dtypes_of(info: Any, wanted: Sequence[str] = DTYPES) -> list[str]:
    """Return the dtypes that an operator takes on the CPU."""
    given = info.supported_dtypes("cpu")
    return [each for each in wanted if getattr(torch, each) in given]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How samples are taken.

    Attributes:
        core: Whether operators are decomposed into those of ATen's core.
        reference: Whether the samples are those that PyTorch compares with NumPy.
        symbolic: Whether the program is told of no length but 0 and 1; equal ones have one name.
        limit: How many samples are taken at most.
    """

    core: bool = False
    reference: bool = False
    symbolic: bool = False
    limit: int = 30


def run_operator(name: str, dtype: str, options: Options = Options()) -> Outcome:
    """Return what becomes of the samples of an operator in one dtype.

    Args:
        name: The operator.
        dtype: The dtype.
        options: How its samples are taken.
    """
    info = operators()[name]
    outcome = Outcome()
    for sample in itertools.islice(_samples(info, dtype, options.reference), options.limit):
        reason = _check(info, sample, options)
        if reason is not None:
            outcome.add(_short(reason), sample.summary())
    return outcome


def _samples(info: Any, dtype: str, reference: bool = False) -> Iterator[Any]:
    torch.manual_seed(0)
    source = info.reference_inputs if reference else info.sample_inputs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from source("cpu", getattr(torch, dtype), requires_grad=False)


def _check(info: Any, sample: Any, options: Options) -> str | None:
    """Return why a sample does not pass, "" if it does, None if it says nothing."""
    flat, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    places = [i for i, each in enumerate(flat) if isinstance(each, torch.Tensor)]
    tensors = [flat[i] for i in places]
    if any(each.layout != torch.strided or each.is_quantized for each in tensors):
        return None
    if any(_dtype_name(each) in COMPLEX for each in tensors):
        return None

    def call(*values: Any, exact: bool = False) -> list[Any]:
        given = [torch.float64 if exact and each in HALVES else each for each in flat]
        for place, value in zip(places, values, strict=True):
            given[place] = value
        first, args, kwargs = pytree.tree_unflatten(given, spec)
        found = info.op(first, *args, **kwargs)
        return pytree.tree_leaves(sample.output_process_fn_grad(found))

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            expected = call(*[each.clone() for each in tensors])
        except Exception:
            return None
        if not expected or not all(isinstance(each, torch.Tensor) for each in expected):
            return None
        if any(_dtype_name(each) in COMPLEX for each in expected):
            return "complex numbers"
        try:
            model = _trace(call, tensors, options)
        except Exception as error:
            return f"not traced: {type(error).__name__}"
        found = _run(model, tensors)
        if isinstance(found, str):
            return found
        random = not info.supports_out and "random" in info.name
        tolerance = _tolerance(info, expected[0].dtype)
        return _compare(found, expected, lambda: _exact(call, tensors), model, random, tolerance)


def _tolerance(info: Any, dtype: torch.dtype) -> dict[str, float]:
    """Return the tolerances that PyTorch's own tests give an operator in a dtype."""
    given = [
        each.d[dtype]
        for decorator in info.decorators
        for each in getattr(decorator, "decorators", ())
        if isinstance(each, toleranceOverride) and dtype in each.d
    ]
    usual = default_tolerances(dtype)
    rtol = max([usual[0], *(each.rtol for each in given)])
    return {"rtol": rtol, "atol": max([usual[1], *(each.atol for each in given)])}


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _trace(
    call: Callable[..., list[Any]], tensors: Sequence[torch.Tensor], options: Options
) -> Any:
    """Return a function as a program of ATen operators."""
    table = None
    if options.core:
        from torch._decomp import core_aten_decompositions

        table = dict(core_aten_decompositions())
    given = [each.clone() for each in tensors]
    module = make_fx(call, decomposition_table=table, pre_dispatch=not options.core)(*given)
    module.graph.eliminate_dead_code()
    weights, names = {}, {}
    for node in list(module.graph.nodes):
        value = getattr(module, node.target, None) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            with module.graph.inserting_before(node):
                stand_in = module.graph.placeholder(node.name)
            node.replace_all_uses_with(stand_in)
            module.graph.erase_node(node)
            weights[stand_in.name] = tensor_weight(value)
            names[stand_in.name] = stand_in.name
    graph = read_graph(module, weights=names)
    inputs = [
        Input(name, name, _shape(each, options.symbolic), _dtype_name(each))
        for name, each in zip(graph.inputs, tensors, strict=True)
    ]
    outputs = [f"output{i}" for i in range(len(graph.outputs))]
    return TorchModel(graph, inputs, outputs, weights, "module", torch.__version__)


def _shape(tensor: torch.Tensor, symbolic: bool) -> list[int | str]:
    """Return the shape of an input, with names for lengths above 1 if asked."""
    return [f"n{length}" if symbolic and length > 1 else length for length in tensor.shape]


def _run(model: TorchModel, tensors: Sequence[torch.Tensor]) -> list[np.ndarray] | str:
    """Return the results of a program in Relay, or why there are none."""
    try:
        relay_model = to_relay(model, TorchImportOptions(), Report())
    except UnsupportedModelError as error:
        issues = error.report.issues
        return "; ".join(sorted({f"{each.op}: {each.reason}" for each in issues}))
    except ConverterBug as error:
        return f"bug: {error}"
    except SerdeError as error:
        return f"not read: {error}"
    except Exception as error:
        return f"bug: {type(error).__name__}: {error}"
    engine = RelayEngine(relay_model)
    arrays = {entry.name: _array(each) for entry, each in zip(model.inputs, tensors, strict=True)}
    try:
        return engine.run(arrays)
    except Exception as error:
        return f"not run: {type(error).__name__}: {error}"


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor_weight(tensor.resolve_conj().resolve_neg()).array()


_RANDOM = ("rand", "normal", "bernoulli", "multinomial", "dropout", "poisson", "exponential",
           "geometric", "cauchy", "uniform", "rrelu", "log_normal")  # fmt: skip
_EMPTY = ("aten::empty", "aten::new_empty", "aten::empty_like")


def _compare(
    found: Sequence[np.ndarray],
    expected: Sequence[torch.Tensor],
    exact: Callable[[], Sequence[torch.Tensor] | None],
    model: TorchModel,
    random: bool,
    tolerance: dict[str, float],
) -> str:
    """Return what is wrong with results; "" for nothing.

    What a program writes into its inputs are further results, behind these.
    """
    if len(found) < len(expected):
        return f"differs: {len(found)} results for {len(expected)}"
    ops = [node.op.partition(".")[0].partition("::")[2] for node in model.nodes()]
    drawn = random or any(word in op for word in _RANDOM for op in ops)
    undefined = any(node.op.startswith(_EMPTY) for node in model.nodes())
    for place, (one, other) in enumerate(zip(found, expected, strict=False)):
        if one.dtype.name != _dtype_name(other):
            return f"differs: dtype {one.dtype.name} for {_dtype_name(other)}"
        if one.shape != tuple(other.shape):
            return "differs: shape"
        if drawn or undefined or _is_close(one, other, tolerance):
            continue
        if not _is_as_exact(one, other, exact, place):
            return "differs: values"
    return ""


def _tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array, order="C"))


def _is_close(found: np.ndarray, expected: torch.Tensor, tolerance: dict[str, float]) -> bool:
    wanted = expected.contiguous()
    try:
        torch.testing.assert_close(_tensor(found), wanted, equal_nan=True, **tolerance)
    except AssertionError:
        return False
    return True


def _is_as_exact(
    found: np.ndarray,
    expected: torch.Tensor,
    exact: Callable[[], Sequence[torch.Tensor] | None],
    place: int,
) -> bool:
    """Whether a result is as near to that of float64 as PyTorch's own."""
    if not expected.is_floating_point() or expected.dtype == torch.float64:
        return False
    truth = exact()
    if truth is None or truth[place].shape != expected.shape:
        return False
    wanted = truth[place].to(torch.float64)
    pair = [each.to(torch.float64) for each in (_tensor(found), expected)]
    same = [(each == wanted) | (each.isnan() & wanted.isnan()) for each in pair]
    errors = [
        torch.where(equal, 0.0, (each - wanted).abs())
        for each, equal in zip(pair, same, strict=True)
    ]
    if any(bool(error.isnan().any()) for error in errors):
        return False
    return bool(errors[0].max() <= errors[1].max() + 1e-7)


def _exact(
    call: Callable[..., list[Any]], tensors: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor] | None:
    """Return what a function gives of float64, and where it makes numbers, makes these."""
    wide = [each.double() if each.is_floating_point() else each.clone() for each in tensors]
    with contextlib.suppress(Exception):
        return call(*wide, exact=True)
    return None


def _short(reason: str) -> str:
    """Return a reason without what differs from sample to sample."""
    text = re.sub(r", File .*?(?=;|$)", "", reason)
    text = re.sub(r"Tensor\[\([^\]]*\]", "Tensor", text)
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", text)[:160]


def _print(name: str, outcomes: dict[str, Outcome], verbose: bool) -> None:
    rates = " ".join(f"{dtype}={o.passed}/{o.total}" for dtype, o in outcomes.items() if o.total)
    print(f"{name:40s} {rates}", flush=True)
    seen: Counter[str] = Counter()
    for outcome in outcomes.values():
        seen.update(outcome.reasons)
    for reason, count in seen.most_common(8):
        print(f"      {count:4d}  {reason}")
        if verbose:
            dtype = next(d for d, o in outcomes.items() if reason in o.reasons)
            print(f"            {dtype}: {outcomes[dtype].examples[reason][:400]}")


def _collect(gaps: dict[str, list[str]], name: str, outcomes: dict[str, Outcome]) -> None:
    """Note the reasons of an operator; differences are those of a dtype."""
    for dtype, outcome in outcomes.items():
        for reason in outcome.reasons:
            place = f"{name}[{dtype}]" if reason.startswith("differs") else name
            gaps.setdefault(reason, []).append(place)


def main() -> None:
    """Print pass rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="names of operators, or patterns, with commas between them")
    parser.add_argument("--dtypes", default=",".join(DTYPES[:4]))
    parser.add_argument("--limit", type=int, default=30, help="samples of an operator and dtype")
    parser.add_argument("--core", action="store_true", help="decompose into ATen's core")
    parser.add_argument("--reference", action="store_true", help="take PyTorch's larger samples")
    parser.add_argument("--gaps", action="store_true", help="print what torch_gaps.py holds")
    parser.add_argument("--symbolic", action="store_true", help="tell no lengths but 0 and 1")
    parser.add_argument("--failing", action="store_true", help="print those with failures only")
    parser.add_argument("--verbose", action="store_true", help="print a sample for each reason")
    options = parser.parse_args()
    taken = Options(
        core=options.core,
        reference=options.reference,
        symbolic=options.symbolic,
        limit=options.limit,
    )
    patterns = options.only.split(",") if options.only else [".*"]
    wanted = options.dtypes.split(",")
    gaps: dict[str, list[str]] = {}
    start, passed, total, whole, count = time.time(), 0, 0, 0, 0
    for name, info in operators().items():
        if not any(re.fullmatch(pattern, name) for pattern in patterns):
            continue
        outcomes = {dtype: run_operator(name, dtype, taken) for dtype in dtypes_of(info, wanted)}
        own = sum(each.total for each in outcomes.values())
        good = sum(each.passed for each in outcomes.values())
        passed, total, count = passed + good, total + own, count + bool(own)
        whole += bool(own) and own == good
        if options.gaps:
            _collect(gaps, name, outcomes)
        elif own and not (options.failing and own == good):
            _print(name, outcomes, options.verbose)
    for reason, names in sorted(gaps.items()):
        print(f"{reason!r}: {sorted(set(names))}")
    print(f"{passed}/{total} samples, {whole}/{count} operators whole, {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
