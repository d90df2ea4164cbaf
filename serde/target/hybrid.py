"""Runs a split model: regions by a runner, the rest by a host engine."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Array, dataclass
from serde.engine.fitting import bind_inputs
from serde.engine.foreign import REGIONS
from serde.errors import OptionError
from serde.relay.ir import Function, GlobalVar, IRModule, RelayModel
from serde.relay.ir.foreign import REGION_FRAMEWORK, foreign_calls
from serde.relay.ir.leaves import leaves
from serde.relay.run.binding import as_value
from serde.relay.run.interpreter import run as run_relay
from serde.target.program import Program, Step
from serde.target.regions import DEFAULT_RUNNER, Run, open_runner
from serde.target.storage import Stored

__all__ = ["CompilingHost", "HostEngine", "HybridExecutor", "Interpreter", "StepRecord"]


class HostEngine(ABC):
    """What runs the parts of a model that stay on the host."""

    @abstractmethod
    def open(self, part: RelayModel, others: Mapping[GlobalVar, Function]) -> Run:
        """Return what runs a part on its inputs, in order.

        Args:
            part: The part, as a model of its own.
            others: Global functions that it may call.
        """


def _whole(part: RelayModel, others: Mapping[GlobalVar, Function]) -> IRModule:
    functions = {v: f for v, f in others.items() if v.name_hint != "main"}
    return IRModule({GlobalVar("main", part.main.type): part.main, **functions}, checked=True)


class Interpreter(HostEngine):
    """Relay's interpreter."""

    def open(self, part: RelayModel, others: Mapping[GlobalVar, Function]) -> Run:
        """Return what evaluates ``main`` of a part."""
        mod, function = _whole(part, others), part.main
        held = {name: weight.array() for name, weight in part.params.items()}
        names = [param.name_hint for param in function.params]

        def run(arrays: Sequence[Array]) -> list[Array]:
            given = iter(arrays)
            args = [held[name] if name in held else next(given) for name in names]
            return leaves(run_relay(function, args, mod=mod))

        return run


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What one step did in one run.

    Attributes:
        name: Name of the region, or of the part of the host.
        kind: ``"region"`` or ``"host"``.
        inputs: What it was given, by name.
        outputs: What it gave, by name.
        seconds: How long it took.
    """

    name: str
    kind: str
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    seconds: float


class CompilingHost(HostEngine):
    """TVM, which compiles each part.

    Args:
        target: What for; see :func:`serde.compile`.
    """

    def __init__(self, target: str | Mapping[str, AnyValue] = "llvm") -> None:
        self._target = target

    def open(self, part: RelayModel, others: Mapping[GlobalVar, Function]) -> Run:
        """Return what runs the code of a part.

        Raises:
            CompileError: TVM refuses the part, or crashed.
            UnsupportedModelError: Some of it cannot be said in Relax.
        """
        from serde.api import from_relay

        mod = _whole(part, others)
        calls = [each.attrs for each in foreign_calls(part)]
        regions = {each["name"] for each in calls if each["framework"] == REGION_FRAMEWORK}
        for name in regions:
            _register(name)
        runnable = from_relay(
            part.evolve(mod=mod), format="tvm", tvm_target=self._target, custom_ops=regions
        )

        def run(arrays: Sequence[Array]) -> list[Array]:
            results: list[Array] = runnable.run(*arrays)
            return results

        return run


def _register(name: str) -> None:
    """Let code of TVM's call a region; of regions of one name, that of the executor that runs."""
    from serde.relax.framework import load

    def run(*tensors: AnyValue) -> None:
        given, region = REGIONS.get()[name]
        results = region([each.numpy() for each in tensors[:given]])
        for tensor, result in zip(tensors[given:], results, strict=True):
            tensor.copyfrom(result)

    load().tvm.register_global_func(name, run, override=True)


_HOSTS: Final[Mapping[str, type[HostEngine]]] = {"relay": Interpreter, "tvm": CompilingHost}


def open_host(host: HostEngine | str | None) -> HostEngine:
    """Return what runs the parts of the host, by its name or as it is.

    Raises:
        OptionError: There is no such engine.
    """
    if isinstance(host, HostEngine):
        return host
    found = _HOSTS.get("relay" if host is None else host)
    if found is None:
        known = ", ".join(_HOSTS)
        raise OptionError(f"no engine of the host is called {host!r}; known: {known}")
    return found()


class HybridExecutor:
    """Runs a split model.

    Args:
        module: What :func:`serde.target.onnx.build` made.
        runner: Name of what runs the regions: ``"onnxruntime"``, or one that is registered.
        providers: For ONNX Runtime: execution providers, in the order in which they are asked.
        host: What runs the rest: ``"relay"``, the interpreter, if left out; ``"tvm"``, which
            compiles each part; or an engine of yours.
        options: What the runner is given besides.

    Attributes:
        seconds: How long each step took in the last run, by name.

    Raises:
        OptionError: There is no such runner or host, or it does not take the options.
        CheckError: It refuses a region.
        ConversionError: The host refuses a part.
    """

    def __init__(
        self,
        module: Stored,
        *,
        runner: str = DEFAULT_RUNNER,
        providers: Sequence[AnyValue] | None = None,
        host: HostEngine | str | None = None,
        **options: AnyValue,
    ) -> None:
        if providers is not None:
            options["providers"] = providers
        self._program = module.program
        engine = open_host(host)
        runs: dict[str, Run] = {
            name: open_runner(runner, region, **options) for name, region in module.regions.items()
        }
        for name, part in module.hosts.items():
            runs[name] = engine.open(part, module.others)
        self._regions = {
            name: (len(region.inputs), runs[name]) for name, region in module.regions.items()
        }
        self._steps = [(step, runs[step.name]) for step in self._program.steps]
        self._last_use = _last_uses(self._program)
        self.seconds: dict[str, float] = {}

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
        return tuple(port.name for port in self._program.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results, in order."""
        return self._program.outputs

    def run(self, /, *args: AnyValue, **named: AnyValue) -> list[Array]:
        """Return the results for inputs by position or by name.

        One argument that is a mapping holds all inputs by name.

        Raises:
            OptionError: Inputs are missing, or too many.
            RelayError: One does not have its type.
        """
        return self._run(self._bind(args, named), None)

    __call__ = run

    def trace(self, *args: AnyValue, **named: AnyValue) -> tuple[list[Array], list[StepRecord]]:
        """Return the results as :meth:`run`, and what each step took and gave."""
        records: list[StepRecord] = []

        def record(step: Step, values: dict[str, Array], seconds: float) -> None:
            inputs = {name: values[name] for name in step.inputs}
            outputs = {name: values[name] for name in step.outputs}
            records.append(StepRecord(step.name, step.kind, inputs, outputs, seconds))

        return self._run(self._bind(args, named), record), records

    def _bind(self, args: Sequence[AnyValue], named: Mapping[str, AnyValue]) -> dict[str, Array]:
        """Return the inputs by name, each an array of its type."""
        given = bind_inputs(self.inputs, args, named)
        ports = self._program.inputs
        return {port.name: as_value(given[port.name], port.type, port.name) for port in ports}

    def _run(
        self,
        values: dict[str, Array],
        record: Callable[[Step, dict[str, Array], float], None] | None,
    ) -> list[Array]:
        clock = time.perf_counter
        for (step, run), dropped in zip(self._steps, self._last_use, strict=True):
            start = clock()
            called = REGIONS.set(self._regions)
            try:
                results = run([values[name] for name in step.inputs])
            finally:
                REGIONS.reset(called)
            self.seconds[step.name] = clock() - start
            if len(results) != len(step.outputs):
                raise OptionError(
                    f"{step.name}: expected {len(step.outputs)} results, found {len(results)}"
                )
            values.update(zip(step.outputs, results, strict=True))
            if record is not None:
                record(step, values, self.seconds[step.name])
            for name in dropped:
                del values[name]
        return [np.asarray(values[name]) for name in self._program.results]


def _last_uses(program: Program) -> list[tuple[str, ...]]:
    """Return the values that nothing needs any more after each step."""
    needed = set(program.results)
    found: list[tuple[str, ...]] = []
    for step in reversed(program.steps):
        names = dict.fromkeys((*step.inputs, *step.outputs))
        found.append(tuple(name for name in names if name not in needed))
        needed.update(names)
    return found[::-1]
