"""Regions as modules of their own, ONNX models, and what runs them: ONNX Runtime, or a vendor's.

A runner is a function that takes a :class:`RegionModule` and options, and returns what runs it: a
function of a sequence of arrays that returns a sequence of arrays. It is registered by
:func:`register_runner`, or offered by a package in the entry point group ``serde.runners``.
``onnxruntime`` is there, and ``reference``, ONNX's reference implementation.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any as AnyValue, Final, TypeAlias

import numpy as np
import onnx

from serde.core import Array, require
from serde.engine.base import first_line
from serde.errors import CheckError, OptionError
from serde.onnx import codec
from serde.onnx.foreign import LIBRARIES, REFERENCE_OPS
from serde.onnx.model import OnnxModel
from serde.target.program import Port

__all__ = [
    "DEFAULT_RUNNER", "ENTRY_POINTS", "TYPE_KEY", "RegionModule", "open_runner", "register_runner",
    "runner_names",
]  # fmt: skip

TYPE_KEY: Final = "onnx"

ENTRY_POINTS: Final = "serde.runners"
"""Group of entry points in which packages offer runners."""

DEFAULT_RUNNER: Final = "onnxruntime"


class RegionModule:
    """One region, a module as TVM's runtime has them.

    Attributes:
        name: Name of its function.
        native: The ONNX model; its weights stay where they are.
        inputs: What it takes, in order.
        outputs: What it gives, in order.
        path: The file that it is in; None where it is in memory alone.
        type_key: ``"onnx"``.
        imported_modules: None: a region imports nothing.
    """

    type_key = TYPE_KEY

    def __init__(
        self,
        name: str,
        native: OnnxModel,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        path: Path | None = None,
    ) -> None:
        self.name = name
        self.native = native
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.path = path
        self.imported_modules: tuple[RegionModule, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Operators of the nodes, in order."""
        return tuple(node.op_type for node in self.native.proto.graph.node)

    def proto(self) -> onnx.ModelProto:
        """Return the model with its weights.

        Raises:
            OptionError: It exceeds what protobuf can hold; save it instead.
        """
        return self.native.complete()

    def get_source(self, fmt: str = "") -> str:
        """Return the model as text, without its weights.

        Raises:
            OptionError: `fmt` is neither ``""``, ``"text"`` nor ``"onnx"``.
        """
        if fmt not in ("", "text", "onnx"):
            raise OptionError(f"region {self.name}: expected format text, found {fmt!r}")
        return str(onnx.printer.to_text(self.native.proto))

    def get_function(self, name: str) -> Callable[..., AnyValue]:
        """Return what runs the region on arrays by position, by ONNX Runtime.

        Raises:
            OptionError: Its function has another name.
        """
        if name != self.name:
            raise OptionError(f"no function is called {name} (there is: {self.name})")
        run = open_runner("onnxruntime", self)

        def call(*args: AnyValue) -> AnyValue:
            results = run(args)
            return results[0] if len(results) == 1 else tuple(results)

        return call

    def save(self, path: str | os.PathLike[str], fmt: str = "onnx") -> Path:
        """Write the model, for which ``"onnx"`` is the only format.

        Raises:
            OptionError: There is no such format, or the path cannot be written.
        """
        if fmt != "onnx":
            raise OptionError(f"region {self.name}: expected format onnx, found {fmt!r}")
        return codec.save(self.native, path)

    save_to_file = save

    def __repr__(self) -> str:
        return f"RegionModule({self.name}, {len(self.nodes)} nodes)"


Run: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
Runner: TypeAlias = Callable[..., Run]

_EMBEDDED_BYTES: Final = 2**30
"""Largest region that is handed over in memory; others go through a file."""


def _open_reference(region: RegionModule) -> Run:
    """Return ONNX's reference implementation of a region."""
    from onnx.inliner import inline_local_functions
    from onnx.reference import ReferenceEvaluator

    # It takes functions of one name for one, whatever their overloads.
    proto = inline_local_functions(region.proto())
    evaluator = ReferenceEvaluator(proto, new_ops=list(REFERENCE_OPS.values()))
    names = [port.name for port in region.inputs]

    def run(arrays: Sequence[Array]) -> list[Array]:
        results = evaluator.run(None, dict(zip(names, arrays, strict=True)))
        return [np.asarray(value) for value in results]

    return run


_RUNNERS: dict[str, Runner] = {"reference": _open_reference}


def register_runner(name: str, runner: Runner, *, override: bool = False) -> Runner:
    """Let `runner` run regions under a name.

    Args:
        name: What :class:`~serde.target.hybrid.HybridExecutor` is to call it.
        runner: Called with a region and the options that the user gives; returns what runs it.
        override: Whether it may take the place of another.

    Returns:
        The runner, so that this can be a decorator's work.

    Raises:
        OptionError: The name is taken, or `runner` cannot be called.

    Example:
        >>> def run_region(region, **options):
        ...     return lambda *arrays: arrays
        >>> runner = serde.register_runner("chip", run_region)
    """
    if not name or not callable(runner):
        raise OptionError(f"runner {name!r}: expected a name and a function, found {runner!r}")
    if not override and (name in _RUNNERS or name == DEFAULT_RUNNER):
        raise OptionError(f"a runner is called {name} already; give override=True to replace it")
    _RUNNERS[name] = runner
    return runner


@cache
def _offered() -> dict[str, AnyValue]:
    """Return the runners of other packages; a process scans once."""
    from importlib import metadata

    found: dict[str, AnyValue] = {}
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        if entry.name in found and found[entry.name].value != entry.value:
            claims = f"{found[entry.name].value} and {entry.value}"
            raise OptionError(f"runner {entry.name} is claimed by {claims}")
        found[entry.name] = entry
    return found


def runner_names() -> list[str]:
    """Return the names of all runners."""
    return sorted({DEFAULT_RUNNER, *_RUNNERS, *_offered()})


def open_runner(name: str, region: RegionModule, **options: AnyValue) -> Run:
    """Return what runs a region.

    Args:
        name: Name of the runner.
        region: The region.
        options: What the runner is given besides.

    Raises:
        OptionError: There is no such runner, or it does not load or take the options.
        CheckError: It refuses the region.
    """
    runner = _RUNNERS.get(name)
    if runner is None and name == DEFAULT_RUNNER:
        return _RuntimeSession(region, **options)
    if runner is None:
        offered = _offered()
        if name not in offered:
            raise OptionError(f"no runner is called {name}; known: {', '.join(runner_names())}")
        try:
            runner = offered[name].load()
        except Exception as error:
            raise OptionError(f"runner {name}: {offered[name].value} does not load: {error}") from (
                error
            )
    run = runner(region, **options)
    if not callable(run):
        raise OptionError(f"runner {name}: expected a function, found {run!r}")
    return run


_NUMPY_DTYPES: Final = frozenset(
    ["bool", "float16", "float32", "float64"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
"""What ONNX Runtime takes as arrays of NumPy."""


class _RuntimeSession:
    """One region in ONNX Runtime.

    Args:
        region: The region.
        providers: Execution providers, in the order in which they are asked; what the installed
            runtime has if left out.
        session_options: An ``onnxruntime.SessionOptions``.
    """

    def __init__(
        self,
        region: RegionModule,
        *,
        providers: Sequence[AnyValue] | None = None,
        session_options: AnyValue = None,
    ) -> None:
        runtime = require("onnxruntime")
        for port in (*region.inputs, *region.outputs):
            if port.type.dtype not in _NUMPY_DTYPES:
                raise CheckError(
                    f"region {region.name}: {port.name} is {port.type.dtype}, of which "
                    "onnxruntime takes no arrays; the runner reference does"
                )
        known = runtime.get_available_providers()
        chosen = list(known if providers is None else providers)
        for each in chosen:
            plain = each if isinstance(each, str) else each[0]
            if plain not in known:
                raise OptionError(
                    f"execution provider {plain} is not there; known: {', '.join(known)}"
                )
        if session_options is None:
            session_options = runtime.SessionOptions()
            session_options.log_severity_level = 3
            for library in LIBRARIES:
                session_options.register_custom_ops_library(library)
        try:
            self._session = _open(runtime, region, session_options, chosen)
        except OptionError:
            raise
        except Exception as error:
            where = f"onnxruntime {runtime.__version__} refuses region {region.name}"
            raise CheckError(f"{where}: {first_line(error)}") from error
        self._inputs = [item.name for item in self._session.get_inputs()]
        self._outputs = [item.name for item in self._session.get_outputs()]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Run the region on its inputs, in order."""
        feeds = dict(zip(self._inputs, arrays, strict=True))
        results: list[Array] = self._session.run(self._outputs, feeds)
        return results


def _open(
    runtime: AnyValue, region: RegionModule, options: AnyValue, providers: list[AnyValue]
) -> AnyValue:
    if region.path is not None:
        return runtime.InferenceSession(str(region.path), options, providers=providers)
    if region.native.nbytes <= _EMBEDDED_BYTES:
        data = region.proto().SerializeToString()
        return runtime.InferenceSession(data, options, providers=providers)
    with tempfile.TemporaryDirectory() as directory:
        path = region.save(Path(directory) / "region.onnx")
        return runtime.InferenceSession(str(path), options, providers=providers)
