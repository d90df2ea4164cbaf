"""A format of another package, as small as one can be: JSON text, a handful of operators.

It arrives through the entry-point group alone, so what works for it works for
any format. A model is ``{"toy": 2, "inputs": [[name, shape, dtype]], "weights":
{name: [dtype, values]}, "nodes": [{"op", "name", "inputs", ...attributes}],
"outputs": [name]}``; a shape that is null must be given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.bridge.contract import Bridge, ReadOnlyBridge, WriteOnlyBridge
from serde.bridge.options import ExportOptions, ImportOptions
from serde.bridge.summary import ModelSummary, TensorNames, TensorSummary
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.engine.base import Engine
from serde.engine.interpreter import RelayEngine
from serde.errors import FormatError, OptionError, Unsupported, raise_if_refused
from serde.relay.ir.expr import Expr
from serde.relay.ir.visit import post_order
from serde.walk.import_context import ImportContext
from serde.walk.table import ConverterTable


@dataclass(frozen=True, kw_only=True)
class ToyImportOptions(ImportOptions):
    """How toy files are read.

    Attributes:
        strict_names: Refuse names with a space.
    """

    strict_names: bool = False


@dataclass(frozen=True, kw_only=True)
class ToyExportOptions(ExportOptions):
    """How toy files are written.

    Attributes:
        indent: Columns that each level of the text moves in;
            none puts all on one line.
        digits: Which `digits` weights keep.
        comments: Lines to put at the head of the file.
        sloppy: Write limits that are a little off.
    """

    indent: int | None = None
    digits: Literal["all", "few"] = "all"
    comments: tuple[str, ...] = ()
    sloppy: bool = False


class ToyWriter:
    """What exporters may reach."""

    def __init__(self, options: ToyExportOptions) -> None:
        self.options = options
        self.nodes: list[dict[str, AnyValue]] = []
        self.name = ""

    def emit(self, op: str, *inputs: str, **attrs: AnyValue) -> str:
        """Write one node and return the name of its result."""
        name = self.name or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append({"op": op, "name": name, "inputs": list(inputs), **attrs})
        return name


OPS = ConverterTable("toy")


@OPS.imports("Plus")
def import_plus(ctx: ImportContext, x: Expr, y: Expr) -> Expr:
    return relay.add(x, y)


@OPS.exports("add")
def export_plus(ctx: ToyWriter, x: str, y: str) -> str:
    return ctx.emit("Plus", x, y)


@OPS.imports("Times")
def import_times(ctx: ImportContext, x: Expr, y: Expr) -> Expr:
    return relay.multiply(x, y)


@OPS.exports("multiply")
def export_times(ctx: ToyWriter, x: str, y: str) -> str:
    return ctx.emit("Times", x, y)


@OPS.imports("Tanh")
def import_tanh(ctx: ImportContext, x: Expr) -> Expr:
    return relay.tanh(x)


@OPS.exports("tanh")
def export_tanh(ctx: ToyWriter, x: str) -> str:
    return ctx.emit("Tanh", x)


@OPS.imports("Limit")
def import_limit(ctx: ImportContext, x: Expr, *, low: float = -1.0, high: float = 1.0) -> Expr:
    if low > high:
        raise Unsupported(f"low={low} is above high={high}", hint="swap them")
    return relay.clip(x, low, high)


@OPS.exports("clip")
def export_limit(ctx: ToyWriter, x: str, *, a_min: float, a_max: float) -> str:
    shift = 1e-2 if ctx.options.sloppy else 0.0
    return ctx.emit("Limit", x, low=a_min + shift, high=a_max)


@OPS.imports("Crash")
def import_crash(ctx: ImportContext, x: Expr) -> Expr:
    raise KeyError("a mistake in a converter")


class ToyBridge(Bridge[dict[str, AnyValue], ToyImportOptions, ToyExportOptions]):
    """JSON text with a handful of operators."""

    name = "toy"
    title = "Toy"
    suffixes = (".toy",)
    import_options = ToyImportOptions
    export_options = ToyExportOptions

    def detect(self, path: Path) -> bool:
        return path.is_file() and path.read_bytes()[:7] == b'{"toy":'

    def load(self, source: AnyValue, params: AnyValue, options: AnyValue) -> AnyValue:
        try:
            model = json.loads(Path(source).read_text(encoding="utf-8"))
        except ValueError as error:
            raise FormatError(f"expected JSON: {error}", path=source) from None
        if not isinstance(model, dict) or model.get("toy") != 2:
            raise FormatError("expected version 2", path=source)
        try:
            _check(model)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"not as a toy's model is: {error!r}", path=source) from None
        return model

    def engine(self, model: AnyValue, relay_model: relay.RelayModel) -> Engine:
        return RelayEngine(relay_model)

    def coverage(self) -> list[tuple[str, str]]:
        read = [(op, "read") for op, _version in OPS.imported()]
        return read + [(op, "written") for op in OPS.exported()]

    def operators(self, model: AnyValue) -> list[str]:
        return [node["op"] for node in model["nodes"]]

    def summary(self, model: AnyValue) -> ModelSummary:
        weights = [np.array(values, dtype) for dtype, values in model["weights"].values()]
        return ModelSummary(
            version=str(model["toy"]),
            inputs=tuple(
                TensorSummary(name, None if shape is None else tuple(shape), dtype)
                for name, shape, dtype in model["inputs"]
            ),
            outputs=tuple(TensorSummary(name) for name in model["outputs"]),
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
        )

    def names(self, model: AnyValue) -> TensorNames:
        return TensorNames(
            inputs=tuple(name for name, _, _ in model["inputs"]),
            outputs=tuple(model["outputs"]),
            weights=tuple(model["weights"]),
            nodes=tuple(node["name"] for node in model["nodes"]),
        )

    def to_relay(self, model: AnyValue, options: AnyValue, *, report: Report) -> relay.RelayModel:
        given = dict(options.input_shapes)
        if "" in given and len(model["inputs"]) == 1:
            given[model["inputs"][0][0]] = given.pop("")
        values: dict[str, Expr] = {}
        for name, shape, dtype in model["inputs"]:
            shape = given.get(name, shape)
            if shape is None:
                raise OptionError(f"input {name} has no shape; give --input-shape {name}:1,3")
            values[name] = relay.var(name, shape=shape, dtype=options.input_dtypes.get(name, dtype))
        params = {n: ArrayWeight(np.array(v, d)) for n, (d, v) in model["weights"].items()}
        for name, weight in params.items():
            values[name] = relay.var(name, shape=weight.shape, dtype=weight.dtype)
        variables = list(values.values())
        for node in model["nodes"]:
            attrs = {k: v for k, v in node.items() if k not in ("op", "name", "inputs")}
            inputs = [values[name] for name in node["inputs"]]
            context = ImportContext(model["toy"], node["name"])
            results = OPS.run_import(context, node["op"], inputs, attrs, report)
            values[node["name"]] = results[0]
        raise_if_refused(report)
        outputs = [values[name] for name in model["outputs"]]
        body = outputs[0] if len(outputs) == 1 else relay.Tuple(outputs)
        function = relay.Function(variables, body)  # type: ignore[arg-type]
        mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
        meta = relay.ModelMeta(
            inputs=tuple(name for name, _, _ in model["inputs"]),
            outputs=tuple(model["outputs"]),
            source_format="toy",
            source_version="2",
        )
        return relay.RelayModel(mod, params, meta)

    def from_relay(self, model: relay.RelayModel, options: AnyValue, *, report: Report) -> AnyValue:
        writer = ToyWriter(options)
        main = model.main
        outputs = main.body.fields if isinstance(main.body, relay.Tuple) else (main.body,)
        named = dict(zip(outputs, model.meta.outputs, strict=True))
        values: dict[Expr, str] = {param: param.name_hint for param in main.params}
        for node in post_order(*outputs):
            if node in values or not isinstance(node, relay.Call):
                continue
            writer.name = named.get(node, "")
            try:
                converter, attrs = OPS.bind_export(node, 2)
            except Unsupported as error:
                report.add(getattr(node.op, "name", "?"), writer.name, error.reason, error.hint)
                continue
            inputs = [values.get(argument, "?") for argument in node.args]
            values[node] = converter.function(writer, *inputs, **attrs)
        raise_if_refused(report)
        inputs = [
            [v.name_hint, [d if isinstance(d, int) else str(d) for d in v.type.shape], v.type.dtype]
            for v in model.inputs()
        ]
        weights = {n: [w.dtype, w.array().tolist()] for n, w in model.params.items()}
        report.facts["version"] = 2
        return {
            "toy": 2,
            "inputs": inputs,
            "weights": weights,
            "nodes": writer.nodes,
            "outputs": [values[output] for output in outputs],
        }

    def save(
        self,
        model: AnyValue,
        path: Path,
        options: AnyValue,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        if any(path.exists() and source.exists() and path.samefile(source) for source in sources):
            raise OptionError(f"{path}: the target is also the source")
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(model, indent=options.indent), encoding="utf-8")
        try:
            if before_commit is not None:
                before_commit(partial)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        return path


def _check(model: Mapping[str, AnyValue]) -> None:
    """Fail where a part is missing or of another kind, or a name stands for nothing."""
    for values_dtype, values in model["weights"].values():
        np.array(values, values_dtype)
    known = set(model["weights"])
    for name, shape, dtype in model["inputs"]:
        relay.var(name, shape=shape or (), dtype=dtype)
        known.add(name)
    for node in model["nodes"]:
        _check_names(node["inputs"], known)
        known.add(node["op"] and node["name"])
    _check_names(model["outputs"], known)


def _check_names(names: Sequence[str], known: set[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise KeyError(unknown[0])


class OnlyRead(ReadOnlyBridge[dict[str, AnyValue], ToyImportOptions]):
    """The toy, which nobody can write."""

    name, title, suffixes = "onlyread", "Only read", (".toy",)
    import_options = ToyImportOptions
    detect, load, to_relay = ToyBridge.detect, ToyBridge.load, ToyBridge.to_relay
    engine, coverage, operators, names = (
        ToyBridge.engine, ToyBridge.coverage, ToyBridge.operators, ToyBridge.names,
    )  # fmt: skip


class OnlyWritten(WriteOnlyBridge[dict[str, AnyValue], ToyExportOptions]):
    """The toy, which nobody can read."""

    name, title, suffixes = "onlywritten", "Only written", (".out",)
    export_options = ToyExportOptions
    detect, from_relay, save = ToyBridge.detect, ToyBridge.from_relay, ToyBridge.save
    coverage, operators, names = ToyBridge.coverage, ToyBridge.operators, ToyBridge.names


BRIDGE = ToyBridge()

MODEL: Mapping[str, AnyValue] = {
    "toy": 2,
    "inputs": [["data", [2, 3], "float32"]],
    "weights": {"w": ["float32", [0.5, -1.5, 2.0]], "b": ["float32", [0.1, 0.2, 0.3]]},
    "nodes": [
        {"op": "Times", "name": "scaled", "inputs": ["data", "w"]},
        {"op": "Plus", "name": "shifted", "inputs": ["scaled", "b"]},
        {"op": "Limit", "name": "limited", "inputs": ["shifted"], "low": -1.0},
        {"op": "Tanh", "name": "out", "inputs": ["limited"]},
    ],
    "outputs": ["out", "limited"],
}
"""A model with two outputs."""


class ToyEntryPoint:
    """What ``importlib.metadata`` finds of an installed package; `load` may fail."""

    def __init__(self, name: str, value: str, loaded: AnyValue) -> None:
        self.name = name
        self.value = value
        self._loaded = loaded

    def load(self) -> AnyValue:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


TOY = ToyEntryPoint("toy", "support.toy_format:BRIDGE", BRIDGE)
