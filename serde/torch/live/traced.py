"""Modules that ``torch.export`` refuses: traced, or compiled where values decide what is run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core import dataclass, replace, require
from serde.engine.base import first_line
from serde.torch.arguments import Arguments, Call
from serde.torch.model import TorchModel

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["Trace", "path_name", "read_traced", "trace_module"]

_COPIES: Final = ("NumPy array", "Python list")
"""What tensors become, as the tracer says it, without that an operator is called."""


@dataclass(frozen=True)
class Trace:
    """A module that was traced.

    Attributes:
        script: What was traced: its arguments and results are tensors alone.
        results: Names of results.
        branches: Lines of the source at which values of tensors decided what is in it, each with
            what the tracer says of it.
    """

    script: AnyValue
    results: list[str]
    branches: dict[str, str]


def trace_module(module: AnyValue, given: Arguments) -> Trace:
    """Trace a module; what it is given beside tensors is a part of it."""
    torch = require("torch")
    leaves, _, spec = given.flatten()
    tensors = [each for each in leaves if isinstance(each, torch.Tensor)]
    names: list[str] = []
    flat = _flat_module(module, leaves, spec, names)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", torch.jit.TracerWarning)
        torch.jit.TracerWarning.ignore_lib_warnings()
        script = torch.jit.trace(flat, tuple(tensors), check_trace=False, strict=False)
    told = [
        (f"{each.filename}:{each.lineno}", str(each.message).partition(" might ")[0])
        for each in heard
        if issubclass(each.category, torch.jit.TracerWarning)
    ]
    copied = any(text.endswith(_COPIES) for _, text in told)
    if not copied and not (told and _reads_values(flat, tensors)):
        told = []
    return Trace(script, names, dict(reversed(told)))


def _reads_values(module: AnyValue, tensors: Sequence[AnyValue]) -> bool:
    """Whether values of tensors become numbers or lengths in a run of a module.

    The tracer warns of lengths as of values, which are numbers where nothing is traced.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    torch = require("torch")
    index = torch.ops.aten.index.Tensor
    kinds = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    found: list[str] = []
    mode: AnyValue = TorchDispatchMode

    class Listening(mode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, op: AnyValue, types: AnyValue, args: AnyValue = (), kwargs: AnyValue = None
        ) -> AnyValue:
            masks = op is not index or any(
                each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1]
            )
            if masks and not kinds.isdisjoint(op.tags):
                found.append(str(op))
            return op(*args, **(kwargs or {}))

    try:
        with Listening():
            module(*tensors)
    except Exception:  # Not every module runs so; what is not known may be.
        return True
    return bool(found)


def _flat_module(
    module: AnyValue, leaves: Sequence[AnyValue], spec: AnyValue, names: list[str]
) -> AnyValue:
    """Return a module whose arguments and results are the tensors of another's.

    Args:
        module: The other.
        leaves: What it is given; tensors take the place of those here.
        spec: How its arguments are put together of leaves.
        names: Gets names of results.
    """
    torch = require("torch")
    from torch.utils import _pytree

    base: AnyValue = torch.nn.Module

    class Flat(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *tensors: AnyValue) -> AnyValue:
            rest = iter(tensors)
            found = [next(rest) if isinstance(x, torch.Tensor) else x for x in leaves]
            args, named = _pytree.tree_unflatten(found, spec)
            pairs, _ = _pytree.tree_flatten_with_path(self.module(*args, **named))
            pairs = [pair for pair in pairs if isinstance(pair[1], torch.Tensor)]
            names[:] = [path_name(path) for path, _ in pairs]
            return tuple(each for _, each in pairs)

    return Flat().eval()


def path_name(path: Sequence[AnyValue]) -> str:
    """Return the keys that lead to a result; "" where these are places alone."""
    if not any(hasattr(part, "key") for part in path):
        return ""
    return "_".join(str(getattr(part, "key", getattr(part, "idx", part))) for part in path)


def read_traced(
    module: AnyValue,
    trace: Trace,
    given: Arguments,
    notes: Sequence[str],
    options: TorchImportOptions,
) -> TorchModel:
    """Return a module that was traced as a program.

    Where values of tensors decided what is in the trace, the program is what TorchScript's compiler
    makes of the module, if it takes it, and the trace stands beside it.
    """
    from serde.torch.script import from_script

    plain = replace(options, input_shapes={}, input_dtypes={}, example_inputs=None)
    found = from_script(trace.script, plain)
    graph = found.graph
    bare = {value: _bare(name) for value, name in graph.weights.items()}
    found = replace(
        found,
        graph=replace(graph, weights=bare),
        weights={_bare(name): each for name, each in found.weights.items()},
        notes=[*notes, "read through torch.jit.trace", *found.notes],
        branches=trace.branches,
    )
    found = _as_called(found, module, given, trace.results)
    if not trace.branches:
        return found
    examples = given.named or given.positional
    plain = replace(plain, example_inputs=examples, dynamic_shapes=given.dynamic_shapes)
    try:
        script = from_script(require("torch").jit.script(module), plain)
        script = _as_called(script, module, given, trace.results)
    except Exception as error:  # Of a compiler of whatever anybody writes in Python.
        why = (
            "stays in a trace as the example inputs take it, and torch.jit.script, which would "
            f"keep the branch, refuses the module: {first_line(error)}"
        )
        branches = {line: f"{what} {why}" for line, what in trace.branches.items()}
        return replace(found, branches=branches)
    told = [*notes, "read through torch.jit.script, which keeps branches on values"]
    return replace(script, notes=[*told, *script.notes], traced=found)


def _as_called(
    found: TorchModel, module: AnyValue, given: Arguments, results: Sequence[str]
) -> TorchModel:
    """Return a script as the program of the module that it was made of."""
    leaves, names, spec = given.flatten()
    held = [isinstance(leaf, require("torch").Tensor) for leaf in leaves]
    owns = given.flatten(".")[1]
    tensors = list(compress(zip(owns, names, leaves, strict=True), held))
    by_name = {each.name: each for each in found.inputs}
    inputs = [
        replace(
            by_name.get(own, each),
            name=name,
            shape=by_name.get(own, each).shape or list(leaf.shape),
            dtype=str(leaf.dtype).removeprefix("torch."),
        )
        for each, (own, name, leaf) in zip(found.inputs, tensors, strict=True)
    ]
    given_leaves = [
        name if is_tensor else (leaf,)
        for leaf, name, is_tensor in zip(leaves, names, held, strict=True)
    ]
    return replace(
        found,
        inputs=inputs,
        outputs=_name_outputs(found.outputs, results, [each.name for each in inputs]),
        kind="module",
        live=Call(module, spec, given_leaves),
    )


def _name_outputs(names: Sequence[str], results: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Return names of outputs, those of keys where there are any."""
    if len(names) != len(results):
        return list(names)
    wanted = [own or name for own, name in zip(results, names, strict=True)]
    unique = len({*wanted, *inputs}) == len(wanted) + len(inputs)
    return wanted if unique else list(names)


def _bare(name: str) -> str:
    return name.removeprefix("module.")
