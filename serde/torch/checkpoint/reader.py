"""Checkpoints and live modules as programs: each is exported as it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core import Weight, require
from serde.engine.base import first_line
from serde.errors import OptionError, Unsupported
from serde.relay.ir import SymDim, as_dim
from serde.torch.arguments import Call
from serde.torch.checkpoint import loading
from serde.torch.checkpoint.asked import Asked, ask
from serde.torch.checkpoint.files import Checkpoint, is_pipeline, open_checkpoint
from serde.torch.checkpoint.pipelines import find_component
from serde.torch.checkpoint.sound import of_samples
from serde.torch.checkpoint.tasks import choose_class, parts_of
from serde.torch.dimensions import Range, bounds
from serde.torch.live.exported import from_exported_program
from serde.torch.live.module import evaluating, quiet
from serde.torch.model import TorchModel
from serde.torch.tensors import tensor_weight

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["from_live", "load_checkpoint", "load_component", "run_checkpoint"]

_EXPERTS = "serde_every_expert"


def load_checkpoint(path: Path, options: TorchImportOptions) -> TorchModel:
    """Return the program of a folder.

    Raises:
        FormatError: Its files do not fit together, or to what transformers makes of its config.
        OptionError: The family has no such task, or nobody names one.
    """
    checkpoint = open_checkpoint(path)
    config = loading.load_config(checkpoint)
    kind, task, paired = choose_class(config, options.task)
    part = _part(options, paired)
    with quiet():
        loaded = loading.load_module(checkpoint, kind, config, options.dtype)
        asking = _asking(checkpoint, task, part, options.raw_audio)
        found = _export(loaded.module, asking, loaded.weights, loaded.mode)
    facts = {"task": task, "part": part, "dtype": options.dtype, "raw_audio": options.raw_audio}
    note = f"read as {kind.__name__} of transformers, for {task}"
    return replace(found, path=path, live=facts, kind="checkpoint", notes=[note, *found.notes])


def load_component(path: Path, options: TorchImportOptions) -> TorchModel:
    """Return the program of a part of a pipeline of diffusers.

    Raises:
        FormatError: Its files do not fit together, or to what its config says.
        OptionError: Nobody names a part, or nothing is known of its class.
    """
    if options.task is not None or options.raw_audio:
        raise OptionError(f"task, raw_audio: {path} is a pipeline, whose models have theirs")
    component = find_component(path, options.part)
    with quiet():
        loaded = component.load(options.dtype)
        found = _export(loaded.module, component.asked, loaded.weights, loaded.mode)
    facts = {"folder": component.folder.name, "part": options.part, "dtype": options.dtype}
    notes = [f"read as {component.kind} of {component.library}", *component.notes, *found.notes]
    return replace(found, path=path, live=facts, kind="checkpoint", notes=notes)


def from_live(module: AnyValue, options: TorchImportOptions) -> TorchModel:
    """Return the program of a module of transformers; the module stays as it is.

    Raises:
        OptionError: The module has no such task.
    """
    if options.raw_audio:
        raise OptionError("raw_audio: is of a checkpoint, which has a feature extractor")
    if not hasattr(module, "config"):
        raise OptionError(f"task: {type(module).__name__} is no module of transformers")
    kind, task, paired = choose_class(module.config, options.task)
    if not isinstance(module, kind):
        expected = f"{task} is a task of {kind.__name__}"
        raise OptionError(f"{expected}, found a {type(module).__name__}")
    with quiet(), evaluating(module):
        asking = partial(ask, task=task, part=_part(options, paired))
        return _export(module, asking, {}, nullcontext())


def run_checkpoint(path: Path, facts: Mapping[str, AnyValue]) -> Call:
    """Return what runs a checkpoint as it was read, with its values in memory."""
    asking: Callable[[AnyValue], Asked]
    if is_pipeline(path):
        component = find_component(path, facts["part"])
        module, asking = component.load_values(facts["dtype"]), component.asked
    else:
        checkpoint = open_checkpoint(path)
        config = loading.load_config(checkpoint)
        kind, task, _ = choose_class(config, facts["task"])
        module = loading.load_values(checkpoint, kind, config, facts["dtype"])
        asking = _asking(checkpoint, task, facts["part"], facts["raw_audio"])
    with require("torch").no_grad():
        return _call(module, asking(module))


def _asking(
    checkpoint: Checkpoint, task: str, part: str, raw_audio: bool
) -> Callable[[AnyValue], Asked]:
    """Return what tells how a module of a checkpoint is called."""
    asking = partial(ask, task=task, part=part)
    if not raw_audio:
        return asking
    change = of_samples(loading.load_extractor(checkpoint))
    return lambda module: change(asking(module))


def _part(options: TorchImportOptions, paired: bool) -> str:
    """Return which part is wanted, empty for what is one model."""
    known = parts_of(paired)
    if not known and options.part in ("", "model"):
        return ""
    if options.part not in known:
        raise OptionError(f"it becomes several models; name a folder, or part: {', '.join(known)}")
    return options.part


def _call(module: AnyValue, asked: Asked) -> Call:
    """Return how a module is called as it is asked, with tensors by name."""
    from torch.utils import _pytree

    class Caller(require("torch").nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, tensors: dict[str, AnyValue]) -> Mapping[str, AnyValue]:
            return asked.function(tensors)

    spec = _pytree.tree_structure(((dict.fromkeys(asked.inputs, 0),), {}))
    return Call(Caller(), spec, list(asked.inputs))


def _export(
    module: AnyValue,
    asking: Callable[[AnyValue], Asked],
    weights: Mapping[str, Weight],
    mode: AnyValue,
) -> TorchModel:
    """Return the program of a module.

    Args:
        module: The module.
        asking: Returns how it is called.
        weights: Where its parameters are; those that are not named are in memory.
        mode: The mode of PyTorch in which it can be run.
    """
    torch = require("torch")
    family = getattr(module.config, "model_type", None) or type(module).__name__
    try:
        with _every_expert(module), torch.no_grad():
            with mode:
                asked = asking(module)
            call = _call(module, asked)
            program = _program(call, asked)
    except Unsupported as error:
        raise OptionError(f"{family}: {error.reason}") from error
    except Exception as error:
        raise OptionError(f"{family}: torch.export refuses it: {first_line(error)}") from error
    found = from_exported_program(
        program, lambda name, tensor: weights.get(name) or tensor_weight(tensor), prefix="module."
    )
    return replace(_as_asked(found, asked), live=call)


def _program(call: Call, asked: Asked) -> AnyValue:
    """Return what ``torch.export`` makes of a call, the lengths that have names being free."""
    torch = require("torch")
    dynamic = {
        name: {
            axis: torch.export.Dim.DYNAMIC
            for axis, length in enumerate(shape)
            if not isinstance(length, int)
        }
        for name, (shape, _) in asked.inputs.items()
    }
    return torch.export.export(
        call.function, (asked.examples(),), dynamic_shapes=(dynamic,), strict=False
    )


def _as_asked(found: TorchModel, asked: Asked) -> TorchModel:
    """Return a program with inputs as they are asked for."""
    inputs, ranges = [], dict[str, Range]()
    for each, (name, (shape, _)) in zip(found.inputs, asked.inputs.items(), strict=True):
        for axis, (wanted, own) in enumerate(zip(shape, each.shape or (), strict=True)):
            if isinstance(own, int) and not isinstance(wanted, int):
                raise OptionError(f"{name}: the module fixes axis {axis} ({wanted}) to {own}")
            for other in wanted.symbols() if isinstance(wanted, SymDim) else ():
                ranges.setdefault(other, (int(other != "past"), None))
            if isinstance(wanted, SymDim) and wanted.name:
                # The least length is that of the example; the graph serves less.
                most = bounds(as_dim(own), found.ranges)[1]
                ranges[wanted.name] = int(wanted.name != "past"), most
        inputs.append(replace(each, name=name, shape=shape))
    return replace(
        found, inputs=inputs, ranges=ranges, states=asked.states, notes=[*found.notes, *asked.notes]
    )


@contextmanager
def _every_expert(module: AnyValue) -> Iterator[None]:
    """Have all tokens go through all experts: which are chosen is known only when a model runs."""
    moe = require("transformers").integrations.moe
    moe.ALL_EXPERTS_FUNCTIONS.register(_EXPERTS, _through_every_expert)
    configs = {id(each.config): each.config for each in module.modules() if hasattr(each, "config")}
    before = {key: getattr(each, "_experts_implementation", None) for key, each in configs.items()}
    try:
        for key, each in configs.items():
            if before[key] is not None:
                each._experts_implementation = _EXPERTS
        yield
    finally:
        for key, each in configs.items():
            if before[key] is not None:
                each._experts_implementation = before[key]


def _through_every_expert(
    self: AnyValue, hidden_states: AnyValue, top_k_index: AnyValue, top_k_weights: AnyValue
) -> AnyValue:
    """Sum what all experts give, weighted by the router: zero for those that it has not chosen."""
    torch = require("torch")

    def project(x: AnyValue, name: str) -> AnyValue:
        weight = getattr(self, name)
        found = torch.matmul(x, weight if self.is_transposed else weight.transpose(-1, -2))
        return found + getattr(self, f"{name}_bias").unsqueeze(1) if self.has_bias else found

    x = project(hidden_states, "gate_up_proj" if self.has_gate else "up_proj")
    x = project(self._apply_gate(x) if self.has_gate else self.act_fn(x), "down_proj")
    x = self.post_expert_norm(x) if self.has_post_expert_norm else x
    experts = torch.arange(x.shape[0], device=top_k_index.device)
    chosen = (top_k_index.unsqueeze(-1) == experts).to(top_k_weights.dtype)
    share = (chosen * top_k_weights.unsqueeze(-1)).sum(1)
    return (x * share.transpose(0, 1).unsqueeze(-1)).sum(0).to(hidden_states.dtype)
