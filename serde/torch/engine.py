"""PyTorch as an engine of checks.

Live objects run where they are, in evaluation mode. Files run in a process of their own: programs
of ``torch.export`` operator by operator (:mod:`serde.torch.evaluation`), archives of TorchScript
by ``torch.jit.load``, written folders by their ``model.py``.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core import Array, Weight, is_installed, parse_json, replace, require
from serde.engine.base import Engine
from serde.engine.fitting import fit_inputs
from serde.engine.interpreter import RelayEngine, declared_dtypes
from serde.engine.process import ProcessEngine, can_start
from serde.errors import CheckError, MissingDependency
from serde.relay.ir.model import RelayModel
from serde.torch.model import OWN_NAMESPACES, TorchModel
from serde.torch.releases import without_deprecations

if TYPE_CHECKING:
    from serde.torch.program import TorchProgram

__all__ = ["TorchEngine", "open_file", "open_model"]


def open_model(model: TorchModel | TorchProgram, relay_model: RelayModel) -> Engine:
    """Return what runs a loaded program: PyTorch where it is installed, else the interpreter.

    Raises:
        CheckError: PyTorch is there but refuses the program.
    """
    if not is_installed("torch") or getattr(model, "kind", "") == "source":
        # PyTorch would run the source itself, which is read as data only.
        return RelayEngine(relay_model)
    inputs, outputs = declared_dtypes(relay_model), list(relay_model.meta.outputs)
    if not isinstance(model, TorchModel):
        return _run_written(model, inputs, outputs)
    if model.path is None:
        run = _evaluate if model.asked else _run_live
        return run(model, inputs, outputs)
    if model.kind == "checkpoint":
        request = {"path": os.path.abspath(model.path), "facts": model.live}
        request |= {"inputs": inputs, "outputs": outputs}
        start = can_start()
        return (
            ProcessEngine("torch", answer_checkpoint, request)
            if start
            else _open_checkpoint(request)
        )
    if any(node.op.partition("::")[0] not in OWN_NAMESPACES for node in model.nodes()):
        # Another process would not have the library that is loaded in this one.
        return RelayEngine(relay_model)
    request = {
        "path": os.path.abspath(model.path),
        "inputs": inputs,
        "outputs": outputs,
        "script": model.kind == "torchscript",
        "constants": model.constants,
        "asked": model.asked,
    }
    try:
        return ProcessEngine("torch", answer_open, request) if can_start() else _open(request)
    except MissingDependency:
        return RelayEngine(relay_model)


def open_file(path: Path) -> Engine | None:
    """Return what runs a written folder; None for an archive, which is loaded first.

    Raises:
        CheckError: Its source or weights are not as serde writes them.
        MissingDependency: PyTorch is not installed.
    """
    if not path.is_dir():
        return None
    if not is_installed("torch"):
        raise MissingDependency("torch", extra="torch", reason=f"{path} runs by it alone")
    request = {"path": os.path.abspath(path)}
    return ProcessEngine("torch", answer_folder, request) if can_start() else _open_folder(path)


class TorchEngine(Engine):
    """PyTorch, on the CPU, without gradients.

    Args:
        run: Gives results of tensors by name.
        inputs: dtype of each input by name.
        outputs: Names of the outputs; those that end in ``_new`` and that `run` does not give are
            what weights hold afterwards.
        weights: Tensors by name that a run may change; they are restored.
    """

    def __init__(
        self,
        run: Callable[[Mapping[str, AnyValue]], Sequence[AnyValue]],
        inputs: Mapping[str, str],
        outputs: Sequence[str],
        weights: Mapping[str, AnyValue],
    ) -> None:
        self._torch = require("torch")
        self.name = f"torch {self._torch.__version__}"
        self.inputs = inputs
        self.outputs = outputs
        self._run = run
        self._weights = weights

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run the program."""
        from serde.torch.arguments import to_tensor

        fed = fit_inputs(self.name, self.inputs, inputs)
        given = {name: to_tensor(each) for name, each in fed.items()}
        with self._torch.no_grad(), self._restoring():
            found = list(self._run(given))
            left = self.outputs[len(found) :]
            found += [self._changed(name, given) for name in left]
            return [to_array(each) for each in found]

    def _changed(self, output: str, given: Mapping[str, AnyValue]) -> AnyValue:
        """Return what an input or a weight holds after a run."""
        name = output.rstrip("_").removesuffix("_new")
        if name in given:
            return given[name]
        if name not in self._weights:
            raise CheckError(f"{self.name}: the program gives no output {output}")
        return self._weights[name].clone()

    @contextmanager
    def _restoring(self) -> Iterator[None]:
        before = {name: each.clone() for name, each in self._weights.items()}
        try:
            yield
        finally:
            for name, each in before.items():
                self._weights[name].copy_(each)


def to_array(value: AnyValue) -> Array:
    """Return a tensor, or a number, as an array."""
    torch = require("torch")
    found = torch.as_tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    found = found.detach().cpu()
    if found.is_quantized:
        found = found.int_repr()
    found = found.resolve_conj().contiguous()
    if found.dtype == torch.bfloat16:
        import ml_dtypes

        array: Array = found.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return array
    result: Array = found.numpy()
    return result


# Live objects.


def _run_live(model: TorchModel, inputs: Mapping[str, str], outputs: Sequence[str]) -> Engine:
    from serde.torch.arguments import Call
    from serde.torch.live.exported import call_of
    from serde.torch.live.module import evaluating
    from serde.torch.script import is_script

    if is_script(model.live):
        return _run_script(model.live, inputs, outputs, model.constants)
    if not isinstance(model.live, Call):
        program = model.live.module()
        return TorchEngine(
            call_of(model.live, model, program), inputs, outputs, dict(program.named_buffers())
        )
    call = model.live

    def run(given: Mapping[str, AnyValue]) -> Sequence[AnyValue]:
        with evaluating(call.function, restore=False):
            return call(given)

    return TorchEngine(run, inputs, outputs, dict(call.function.named_buffers()))


def _run_written(
    program: TorchProgram, inputs: Mapping[str, str], outputs: Sequence[str]
) -> Engine:
    from serde.torch.written import to_module

    module = to_module(program)

    def run(given: Mapping[str, AnyValue]) -> Sequence[AnyValue]:
        return flatten(module(*given.values()))

    return TorchEngine(run, inputs, outputs, {})


def _run_script(
    script: AnyValue,
    inputs: Mapping[str, str],
    outputs: Sequence[str],
    constants: Mapping[str, AnyValue],
) -> Engine:
    from serde.torch.script.inputs import call_script

    call = call_script(script, constants)

    def run(given: Mapping[str, AnyValue]) -> Sequence[AnyValue]:
        return flatten(call(given))

    weights = dict(script.named_buffers()) if hasattr(script, "named_buffers") else {}
    return TorchEngine(run, inputs, outputs, weights)


def flatten(value: AnyValue) -> list[AnyValue]:
    """Return the tensors and numbers of a result, lists, tuples and dicts taken apart."""
    found: list[AnyValue] = []
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, (list, tuple)):
            pending.extend(reversed(each))
        elif isinstance(each, dict):
            pending.extend(reversed(each.values()))
        elif each is not None:
            found.append(each)
    return found


# Files.


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> Engine:
    """Open an archive in the process that was started for it."""
    return _open(request)


def answer_checkpoint(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> Engine:
    """Open a checkpoint in the process that was started for it."""
    return _open_checkpoint(request)


def _open_checkpoint(request: Mapping[str, AnyValue]) -> Engine:
    from serde.torch.checkpoint.reader import run_checkpoint

    call = run_checkpoint(Path(request["path"]), request["facts"])
    return TorchEngine(call, request["inputs"], request["outputs"], {})


def _open(request: Mapping[str, AnyValue]) -> Engine:
    from serde.torch import codec
    from serde.torch.options import TorchImportOptions

    inputs, outputs = request["inputs"], request["outputs"]
    if request["script"]:
        with without_deprecations():
            script = require("torch").jit.load(request["path"], map_location="cpu").eval()
        return _run_script(script, inputs, outputs, request["constants"])
    model = codec.load(request["path"], TorchImportOptions())
    return _evaluate(replace(model, asked=request["asked"]), inputs, outputs)


def _evaluate(model: TorchModel, inputs: Mapping[str, str], outputs: Sequence[str]) -> TorchEngine:
    """Return what runs a program node by node.

    Raises:
        CheckError: It changes what it holds, and inner values are asked for.
    """
    from serde.torch.evaluation import Evaluation

    weights = {name: weight_tensor(each) for name, each in model.weights.items()}
    evaluation = Evaluation(weights)
    numbers = {each.name for each in model.inputs if each.number}
    changed = len(outputs) - len(model.outputs) - len(model.asked)
    if changed > 0 and model.asked:
        raise CheckError("inner values cannot be asked for: the program changes weights or inputs")

    def run(given: Mapping[str, AnyValue]) -> Sequence[AnyValue]:
        rows = [
            given[each.name].item() if each.name in numbers else given[each.name]
            for each in model.inputs
        ]
        kept = dict.fromkeys(model.asked)
        return flatten([evaluation.run(model.graph, rows, kept=kept), *kept.values()])

    return TorchEngine(run, inputs, outputs, weights if changed > 0 else {})


def weight_tensor(weight: Weight) -> AnyValue:
    """Return a weight as a tensor."""
    from serde.torch.arguments import to_tensor

    return to_tensor(weight.array())


def answer_folder(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> Engine:
    """Open a written folder in the process that was started for it."""
    return _open_folder(Path(request["path"]))


class _UncachedSource(importlib.machinery.SourceFileLoader):
    """Source that leaves no byte code beside it, nor takes that of another second's edit."""

    def path_stats(self, path: str) -> Mapping[str, AnyValue]:
        """Tell of no time by which byte code could be known."""
        raise OSError(path)


def _open_folder(path: Path) -> Engine:
    """Return what runs a written folder: its own source."""
    try:
        config = parse_json((path / "config.json").read_text(encoding="utf-8"))
        arguments = {each["name"]: each["argument"] for each in config["inputs"]}
        inputs = {each["name"]: each["dtype"] or "" for each in config["inputs"]}
        outputs = [each["name"] for each in config["outputs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckError(f"{path}: config.json is not as serde writes it: {error!r}") from error
    loader = _UncachedSource("serde_written_model", str(path / "model.py"))
    spec = importlib.machinery.ModuleSpec(loader.name, loader, origin=loader.path)
    spec.has_location = True
    source = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = source
    try:
        loader.exec_module(source)
        module = source.Model.from_pretrained(path).eval()
    except Exception as error:
        raise CheckError(f"{path}: model.py fails: {error!r}") from error

    def run(given: Mapping[str, AnyValue]) -> Sequence[AnyValue]:
        return flatten(module(**{arguments[name]: each for name, each in given.items()}))

    return TorchEngine(run, inputs, outputs, {})
