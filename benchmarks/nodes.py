"""Prints, as a markdown table, what one node costs each step, and how that grows with the graph.

    python benchmarks/nodes.py [--to 100000] [step ...]

Two graphs are measured, at 1,000, 10,000 and 100,000 calls: a chain of elementwise
operators in which every value is used twice, and a residual net of convolutions, batch
norms and activations with its weights. Figures are microseconds a call, the best of a few
rounds; the ratio is that of the largest graph to the smallest. About 1 is linear; the
smaller caches of a processor alone bring it to 2. Of an export, the time that ONNX's own
shape inference takes is a row of its own.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import onnx  # noqa: E402

import serde.relay as relay  # noqa: E402
from serde.conversion.prepare import PrepareOptions, prepare  # noqa: E402
from serde.core.report import Report  # noqa: E402
from serde.core.weights import ArrayWeight  # noqa: E402
from serde.onnx.exporter import from_relay  # noqa: E402
from serde.relay import transform  # noqa: E402
from serde.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard  # noqa: E402
from serde.relay.ir.attrs import register_op_attr  # noqa: E402
from serde.relay.ir.expr import Call, Expr  # noqa: E402
from serde.relay.ir.model import ModelMeta, RelayModel  # noqa: E402
from serde.relay.ir.registry import get  # noqa: E402
from serde.relay.ir.visit import post_order  # noqa: E402
from serde.relay.run.interpreter import run  # noqa: E402
from serde.relay.transform import Pass  # noqa: E402

SIZES = (1_000, 10_000, 100_000)
OPSET = 17
Step = Callable[[], object]


def chain(calls: int) -> RelayModel:
    """A chain in which each value feeds the next two."""
    x = relay.var("x", shape=(2, 3))
    before: Expr = x
    last: Expr = relay.tanh(x)
    joins = (relay.add, relay.multiply, relay.maximum, relay.subtract)
    for index in range((calls - 1) // 2):
        joined = joins[index % 4](last, before)
        before, last = last, relay.tanh(joined)
    return model(last, {})


def residual(calls: int) -> RelayModel:
    """Blocks of two convolutions, each with its batch norm, around a shortcut."""
    weights: dict[str, np.ndarray] = {}
    x: Expr = relay.var("x", shape=(1, 4, 3, 3))
    for _ in range(calls // 7):
        inner = relay.nn.relu(normalised(x, weights))
        x = relay.nn.relu(relay.add(x, normalised(inner, weights)))
    return model(x, weights)


def normalised(x: Expr, weights: dict[str, np.ndarray]) -> Expr:
    """A convolution and its batch norm, of new weights."""

    def weight(*shape: int) -> Expr:
        name = f"w{len(weights)}"
        weights[name] = np.full(shape, 0.5, np.float32)
        return relay.var(name, shape=shape)

    result = relay.nn.conv2d(x, weight(4, 4, 1, 1), channels=4, kernel_size=(1, 1))
    return relay.nn.batch_norm(result, *[weight(4) for _ in range(4)])[0]


def model(body: Expr, weights: dict[str, np.ndarray]) -> RelayModel:
    """The module around a body."""
    mod = transform.InferType()(relay.IRModule.from_expr(body))
    names = tuple(p.name_hint for p in mod["main"].params if p.name_hint not in weights)
    params = {name: ArrayWeight(value) for name, value in weights.items()}
    return RelayModel(mod, params, ModelMeta(names, ("y",)))


def passes(given: RelayModel) -> dict[str, Pass]:
    """All passes that need no arguments, and others as a conversion configures them."""
    found: dict[str, Pass] = {}
    for name in sorted(transform.__all__):
        kind = getattr(transform, name)
        if not inspect.isclass(kind) or not issubclass(kind, Pass) or inspect.isabstract(kind):
            continue
        signature = inspect.signature(kind)
        if all(p.default is not p.empty for p in signature.parameters.values()):
            found[name] = kind()
    weights = frozenset(given.params)
    found["FoldBatchNorm, of a model"] = transform.FoldBatchNorm(weights=weights)
    found["FoldBatchNorm, expanding"] = transform.FoldBatchNorm(
        weights=weights, fold_batch_norm=False, expand=True
    )
    found["ToFloat16, of a model"] = transform.ToFloat16(keep_io=False, weights=weights)
    found["Decompose to nothing"] = transform.Decompose(supported=lambda node: True)
    found["ConvertLayout"] = transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
    found["Compose, all patterns"] = transform.Compose(transform.extension_patterns())
    return found


class Exchange(DFPatternCallback):
    """Exchanges the operands of additions, once."""

    def __init__(self) -> None:
        super().__init__(rewrite_once=True)
        self.pattern = is_op("add")(wildcard(), wildcard())

    def callback(self, pre: Expr, post: Expr, node_map: object) -> Expr:
        """Return the sum in the other order."""
        return relay.add(post.args[1], post.args[0])


def patterns(given: RelayModel) -> dict[str, Step]:
    """Rewriting and partitioning by patterns."""
    activation = (is_op("tanh") | is_op("nn.relu"))(wildcard())
    joined = is_op("tanh")(wildcard() + wildcard()) | is_op("nn.relu")(wildcard() + wildcard())
    return {
        "match every node": lambda: [activation.match(n) for n in post_order(given.main)],
        "partition": lambda: joined.partition(given.main),
        "rewrite": lambda: rewrite(Exchange(), given.main),
    }


def regions(given: RelayModel) -> dict[str, Step]:
    """Giving parts of a program to a target that has some of its operators."""
    for name in ("nn.conv2d", "nn.relu", "tanh", "add"):
        if get(name).get_attr("target.benchmark") is None:
            register_op_attr(name, "target.benchmark", lambda call: True)
    annotated = transform.AnnotateTarget("benchmark")(given.mod)
    merged = transform.MergeCompilerRegions()(annotated)
    table = [("benchmark.sum", is_op("tanh")(wildcard() + wildcard()))]
    return {
        "MergeComposite": lambda: transform.MergeComposite(table)(given.mod),
        "AnnotateTarget": lambda: transform.AnnotateTarget("benchmark")(given.mod),
        "MergeCompilerRegions, annotated": lambda: transform.MergeCompilerRegions()(annotated),
        "PartitionGraph, annotated": lambda: transform.PartitionGraph()(merged),
    }


def steps(given: RelayModel) -> dict[str, Step]:
    """What is measured, by name."""
    text, strict = given.mod.astext(), given.mod.astext(strict=True)
    other = relay.fromtext(text)
    main = given.main
    arguments = [
        given.params[p.name_hint].array()
        if p.name_hint in given.params
        else np.full(p.type.concrete_shape, 0.1, np.float32)
        for p in main.params
    ]
    ready = prepare(given, PrepareOptions(), report=Report())
    fresh = given.mod.with_functions(dict(given.mod.functions))
    return {
        "infer": lambda: transform.InferType()(fresh),
        "print": given.mod.astext,
        "print, strict": lambda: given.mod.astext(strict=True),
        "parse": lambda: relay.fromtext(text),
        "parse, strict": lambda: relay.fromtext(strict),
        "verify": lambda: relay.verify(given.mod),
        "compare": lambda: relay.structural_equal(given.mod, other),
        "run": lambda: run(main, arguments, mod=given.mod),
        **patterns(given),
        **regions(given),
        **{name: lambda each=each: each(given.mod) for name, each in passes(given).items()},
        "prepare": lambda: prepare(given, PrepareOptions(), report=Report()),
        "prepare, float16": lambda: prepare(given, PrepareOptions(float16=True), report=Report()),
        "export": lambda: from_relay(ready, OPSET, False, Report()),
    }


class Watch:
    """Takes the time of ONNX's own shape inference out of what is measured."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._infer = onnx.shape_inference.infer_shapes
        onnx.shape_inference.infer_shapes = self._timed

    def _timed(self, *args: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return self._infer(*args, **named)
        finally:
            self.spent += time.perf_counter() - start

    def seconds(self, step: Step) -> tuple[float, float]:
        """Time of a step without ONNX's, and ONNX's."""
        gc.collect()
        self.spent = 0.0
        start = time.perf_counter()
        step()
        return time.perf_counter() - start - self.spent, self.spent


def measure(given: RelayModel, names: list[str], watch: Watch) -> dict[str, float]:
    """Microseconds a call of each step."""
    calls = sum(isinstance(node, Call) for node in post_order(given.main))
    rounds = 5 if calls < 5_000 else 2
    found = {}
    for name, step in steps(given).items():
        if names and name not in names:
            continue
        times = [watch.seconds(step) for _ in range(rounds)]
        found[name] = 1e6 * min(own for own, _ in times) / calls
        theirs = min(theirs for _, theirs in times)
        if theirs:
            found[f"{name}, ONNX's own inference"] = 1e6 * theirs / calls
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=int, default=SIZES[-1], help="calls of the largest graph")
    parser.add_argument("steps", nargs="*", help="names of steps; all if left out")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size <= options.to]
    watch = Watch()
    for build in (chain, residual):
        columns = [measure(build(size), options.steps, watch) for size in sizes]
        heads = " | ".join(f"{size:,}" for size in sizes)
        print(f"\n| {build.__name__}, us a call | {heads} | ratio |")
        print("|---|" + "---|" * (len(sizes) + 1))
        for name in columns[0]:
            row = [column[name] for column in columns]
            cells = " | ".join(f"{value:.1f}" for value in row)
            print(f"| {name} | {cells} | {row[-1] / row[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
