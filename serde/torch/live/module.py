"""Modules in memory: ``torch.export`` makes a program of them, or else they are traced."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import replace
from functools import wraps
from io import StringIO
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core.optional import require
from serde.engine.base import first_line
from serde.errors import OptionError
from serde.torch.arguments import Arguments, find_arguments
from serde.torch.live.traced import read_traced, trace_module
from serde.torch.model import TRAINING_NOTE, TorchModel

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["evaluating", "from_module", "quiet"]


def from_module(module: AnyValue, options: TorchImportOptions) -> TorchModel:
    """Return a module as a program, in evaluation mode; the module stays as it is.

    Args:
        module: A ``torch.nn.Module``.
        options: Arguments to run it with, or shapes of them.

    Raises:
        OptionError: Nobody tells its arguments, or PyTorch makes no program of it with them.
    """
    module = _unwrap(module)
    given = find_arguments(module, options)
    notes = [TRAINING_NOTE] if module.training else []
    dropped: set[str] = set()
    with evaluating(module), quiet():
        with _giving_tensors(module, dropped):
            try:
                program = _export(module, given)
            except Exception as error:
                refusal = first_line(error)
            else:
                notes += map(_note_dropped, sorted(dropped))
                return _without_wrappers(_read_exported(module, program, notes))
            try:
                trace = trace_module(module, given)
            except Exception as error:
                raise OptionError(
                    f"torch.export refuses the module: {refusal}; "
                    f"torch.jit.trace: {first_line(error)}"
                ) from error
        notes += [f"torch.export refuses the module ({refusal})"]
        notes += map(_note_dropped, sorted(dropped))
        return _without_wrappers(read_traced(module, trace, given, notes, options))


_COMPILED: Final = "_orig_mod."
"""What ``torch.compile`` puts before names of weights."""


def _unwrap(module: AnyValue) -> AnyValue:
    """Return the module of which others only say how it is run, whose arguments have no names."""
    torch = require("torch")
    parallel = (
        torch.nn.DataParallel,
        torch.nn.parallel.DistributedDataParallel,
        torch.optim.swa_utils.AveragedModel,
    )
    while True:
        if "_orig_mod" in module._modules:
            module = module._orig_mod
        elif isinstance(module, parallel):
            module = module.module
        else:
            return module


def _without_wrappers(model: TorchModel) -> TorchModel:
    """Return a program whose weights have the names that modules inside give before compiling."""
    named = {value: name.replace(_COMPILED, "") for value, name in model.graph.weights.items()}
    return replace(
        model,
        graph=replace(model.graph, weights=named),
        weights={name.replace(_COMPILED, ""): each for name, each in model.weights.items()},
        traced=model.traced and _without_wrappers(model.traced),
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Keep from the terminal what PyTorch logs, and the graph that it prints when it refuses."""
    log = logging.getLogger("torch")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with redirect_stderr(StringIO()):
            yield
    finally:
        log.setLevel(before)


@contextmanager
def evaluating(module: AnyValue, *, restore: bool = True) -> Iterator[None]:
    """Have a module in evaluation mode, without gradients and warnings; restore it at the end.

    Layers of attention and transformers compute by the operators that they are made of.

    Args:
        module: The module.
        restore: Whether what its buffers hold is restored, too.
    """
    torch = require("torch")
    modes = [(each, each.training) for each in module.modules()]
    buffers = [(each, each.clone()) for each in module.buffers() if restore]
    fast = torch.backends.mha.get_fastpath_enabled()
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            for each, _ in modes:
                each.training = False
            torch.backends.mha.set_fastpath_enabled(False)
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for each, mode in modes:
                each.training = mode
            for buffer, before in buffers:
                buffer.copy_(before)


def _note_dropped(kind: str) -> str:
    return f"results of type {kind} are left out: PyTorch does not know what tensors they hold"


@contextmanager
def _giving_tensors(module: AnyValue, dropped: set[str]) -> Iterator[None]:
    """Have a module leave out results that are objects, as caches of keys and values.

    Args:
        module: The module.
        dropped: Gets what kinds of them there are.
    """
    from torch.utils import _pytree

    kinds = (require("torch").Tensor, bool, int, float, str, type(None))
    forward, own = module.forward, module.__dict__.get("forward")

    def keep(leaf: AnyValue) -> AnyValue:
        if isinstance(leaf, kinds):
            return leaf
        dropped.add(type(leaf).__name__)
        return None

    @wraps(forward)
    def forward_tensors(*args: AnyValue, **named: AnyValue) -> AnyValue:
        return _pytree.tree_map(keep, forward(*args, **named))

    module.__dict__["forward"] = forward_tensors
    try:
        yield
    finally:
        module.__dict__.pop("forward")
        if own is not None:
            module.__dict__["forward"] = own


def _export(module: AnyValue, given: Arguments) -> AnyValue:
    return require("torch").export.export(
        module, given.positional, given.named, dynamic_shapes=given.dynamic_shapes, strict=False
    )


def _read_exported(module: AnyValue, program: AnyValue, notes: Sequence[str]) -> TorchModel:
    from serde.torch.live.exported import call_of, from_exported_program

    found = from_exported_program(program)
    return replace(
        found,
        kind="module",
        live=call_of(program, found, module),
        notes=[*notes, "read through torch.export", *found.notes],
    )
