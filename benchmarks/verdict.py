"""Prints what verdicts on right and on broken conversions of zoo nets are.

    python benchmarks/verdict.py [--mutants N] [--visible V] [--float16] [--scale S] [--fresh]
                                 [name ...]

Each net is converted from MXNet to ONNX with a check: a right conversion that fails is a false
failure. Then copies of what was written are broken: one element of a weight negated, an
attribute changed, the padding of a layer moved by one, two outputs exchanged. Those whose exact
result (float64) differs by more than ten (`--visible`) times what ONNX Runtime and the interpreter
are off themselves are judged, and one that agrees is a false pass. `--fresh` takes weights as Gluon
initialises them, with which roundings grow more than in trained nets; `--scale` multiplies
the outputs.
A process of its own judges each net. The exit code is 0 where no verdict is false.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
HEADS = (
    "net", "verdict", "distance", "own", "factor", "convert s", "yardstick s", "mutants",
    "false passes", "not located", "by tolerance", "say nothing", "remark",
)  # fmt: skip
NETS = """
squeezenet1.1 cifar_resnet20_v2 cifar_resnext29_32x4d cifar_residualattentionnet56
mobilenetv2_1.0 mobilenetv3_large resnest50 resnet18_v1 resnet50_v2 resnet152_v1 resnet152_v2
se_resnet50_v2 se_resnext50_32x4d vgg16_bn vgg16 xception nasnet_4_1056 dla34 darknet53
densenet121 googlenet inceptionv3 hrnet_w18_small_v1_c shufflenet_v1 alexnet fcn_resnet50_voc
psp_resnet50_ade deeplab_resnet50_ade deeplab_resnet152_voc danet_resnet50_citys
icnet_resnet50_citys fastscnn_citys hrnet_w18_small_v1_s alpha_pose_resnet101_v1b_coco
simple_pose_resnet50_v1b monodepth2_resnet18_kitti_stereo_640x192 p3d_resnet50_kinetics400
i3d_nl5_resnet50_v1_kinetics400 slowfast_4x16_resnet50_kinetics400 siamrpn_alexnet_v2_otb15
ssd_300_mobilenet0.25_voc ssd_512_resnet50_v1_voc yolo3_mobilenet0.25_voc yolo3_darknet53_voc
center_net_resnet18_v1b_voc faster_rcnn_resnet50_v1b_custom
"""

Wrong = tuple[str, set[str]]
"""What is wrong with a copy, and the values that are so for it."""


@dataclass
class Row:
    """What is printed of a net.

    Attributes:
        name: The net.
        verdict: That of the right conversion.
        distance: Of the output with the largest factor.
        own: Likewise.
        factor: Likewise.
        seconds: Of the conversion.
        yardstick: Seconds of the exact run, and of those that it asked for.
        mutants: Broken copies that were judged.
        missed: What was broken in those that agree, and how far off they are, in deviations.
        astray: What was broken in those that differ, and what bisecting said of the place instead.
        loose: How many agree by the tolerance that holds without the yardstick.
        silent: How many say nothing.
        remark: What the verdict remarks.
    """

    name: str
    verdict: str = ""
    distance: float = 0.0
    own: float = 0.0
    factor: float = 0.0
    seconds: float = 0.0
    yardstick: float = 0.0
    mutants: int = 0
    missed: list[str] = field(default_factory=list)
    astray: list[str] = field(default_factory=list)
    loose: int = 0
    silent: int = 0
    remark: str = ""

    def cells(self) -> list[str]:
        """The row of the table."""
        figures = [f"{self.distance:.1e}", f"{self.own:.1e}", f"{self.factor:.2g}"]
        times = [f"{self.seconds:.1f}", f"{self.yardstick:.1f}"]
        missed = f"{len(self.missed)} {'; '.join(self.missed)}".strip()
        astray = f"{len(self.astray)} {'; '.join(self.astray)}".strip()
        counts = [str(self.mutants), missed, astray, str(self.loose), str(self.silent)]
        return [self.name, self.verdict, *figures, *times, *counts, self.remark]


def judge(name: str, mutants: int, float16: bool, scale: float, fresh: bool, visible: float) -> Row:
    """Convert a net, look at the verdict, and break copies of what was written."""
    import serde
    from serde.compat import import_mxnet
    from serde.core.report import Report
    from serde.errors import SerdeError

    mx, row, report = import_mxnet(), Row(name), Report()
    net = fresh_net(mx, name) if fresh else named_net(name)
    if scale != 1.0:
        net = scaled(mx, net, scale)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        paths, target = [str(path) for path in net.save(mx, folder / "net")], folder / "net.onnx"
        shapes = {key: value.shape for key, value in net.inputs(7).items()}
        options: dict[str, Any] = {"input_shapes": shapes}
        if float16:
            options |= {"float16": True, "keep_io_types": True}
        try:
            serde.convert(paths, target, check=True, report=report, **options)
        except SerdeError as error:
            row.remark = " ".join(str(error).split())[:150]
        describe(row, report)
        if mutants and report.verdicts and not target.exists():
            serde.convert(paths, target, **options)
        if mutants and target.exists():
            break_copies(row, paths, target, shapes, mutants, float16, visible)
    return row


def describe(row: Row, report: Any) -> None:
    """Enter what a check reported."""
    measured = [v for v in report.verdicts if v.distance is not None]
    silent = " (silent)" if any(not v.informative for v in report.verdicts) else ""
    row.verdict = ("agrees" if report.passed else "says nothing" if report.says_nothing
                   else "differs" if report.verdicts else "not judged") + silent  # fmt: skip
    if measured:
        worst = max(measured, key=lambda v: v.factor)
        row.distance, row.own, row.factor = worst.distance, worst.own, worst.factor
    remarks = dict.fromkeys(v.remark for v in report.verdicts if v.remark)
    row.remark = "; ".join([*remarks, row.remark] if row.remark else remarks)
    times = {stage.name: stage.seconds for stage in report.stages}
    row.yardstick = sum(s.seconds for s in report.stages if s.name == "yardstick")
    row.seconds = sum(times.values()) - times.get("check", 0.0) - row.yardstick


def named_net(name: str) -> Any:
    """A net of the zoo with calibrated weights."""
    from support.zoo import zoo_net

    return zoo_net(name)


def fresh_net(mx: Any, name: str) -> Any:
    """A net of the zoo with the weights that Gluon draws for a net that is to be trained."""
    from support import gluoncv_nets
    from support.zoo import FedNet, _images_of

    recipe = gluoncv_nets.RECIPES[name]
    mx.random.seed(1)
    block = gluoncv_nets.build(name)
    for key, each in block.collect_params().items():
        ones, zeros = (
            key.endswith(("scale", "gamma", "var")),
            key.endswith(("beta", "bias", "mean")),
        )
        drawn = mx.init.One() if ones else mx.init.Zero() if zeros else mx.init.Xavier()
        each.initialize(default_init=drawn, force_reinit=True)
    feed = _images_of(recipe.shapes)
    block(*[mx.nd.array(value) for value in feed(0).values()])
    outputs = block(*[mx.sym.var(key) for key in recipe.shapes])
    flat: list[Any] = []
    pending = [outputs]
    while pending:
        item = pending.pop(0)
        if isinstance(item, (list, tuple)):
            pending[:0] = list(item)
        else:
            flat.append(item)
    symbol = mx.sym.Group(flat) if len(flat) > 1 else flat[0]
    values = {key: each.data() for key, each in block.collect_params().items()}
    args = {key: values[key] for key in symbol.list_arguments() if key in values}
    aux = {key: values[key] for key in symbol.list_auxiliary_states()}
    return FedNet(symbol, args, aux, (), feed=feed)


def scaled(mx: Any, net: Any, scale: float) -> Any:
    """The same net with outputs that are as many times as large."""
    from dataclasses import replace

    outputs = [each * scale for each in net.symbol]
    return replace(net, symbol=mx.sym.Group(outputs) if len(outputs) > 1 else outputs[0])


def break_copies(
    row: Row,
    paths: list[str],
    target: Path,
    shapes: dict[str, Any],
    count: int,
    float16: bool,
    visible: float,
) -> None:
    """Judge broken copies of a written model."""
    from serde.bridge.formats import get_bridge
    from serde.checking.distance import distance
    from serde.checking.engines import engine_for_path
    from serde.checking.inputs import random_inputs
    from serde.checking.verdict import Rule, compare, judge_output
    from serde.checking.yardstick import Yardstick
    from serde.core.report import Report
    from serde.engine.base import run_engine
    from serde.errors import SerdeError

    bridge = get_bridge("mxnet")
    options = bridge.bind_import({"input_shapes": shapes})
    native = bridge.load(paths, None, options)
    model = bridge.to_relay(native, options, report=Report())
    onnx = get_bridge("onnx")
    source, right = bridge.engine(native, model), engine_for_path(onnx, target)
    inputs = random_inputs(model, seed=(0, 0), lengths={}, float16=float16)
    exact = Yardstick(model).at(inputs).exact
    runs = [run_engine(right, inputs), Yardstick(model, float16=float16).at(inputs).rounded]
    own = [[distance(value, each) for value, each in zip(run, exact, strict=True)] for run in runs]
    for what, places, broken in copies(target, count):
        try:
            changed = exact_of(broken, inputs)
            apart = [distance(value, each) for value, each in zip(changed, exact, strict=True)]
        except (SerdeError, ValueError):
            continue
        if not any(
            d.mean > visible * max(o[i].mean for o in own)
            and d.most > visible * max(o[i].most for o in own)
            for i, d in enumerate(apart)
        ):
            continue
        report = Report()
        try:
            with closing(engine_for_path(onnx, broken)) as engine:
                compare(source, engine, model, report=report, float16=float16)
                found = run_engine(engine, inputs)
        except SerdeError:
            continue
        pairs = zip(source.outputs, run_engine(source, inputs), found, strict=True)
        rule = Rule(float16=float16)
        row.loose += all(judge_output(*each, rule).passed for each in pairs)
        row.mutants += 1
        row.silent += report.says_nothing
        if report.passed:
            far = max(ratio_of(d, each) for d, each in zip(apart, exact, strict=True))
            row.missed.append(f"{what} ({far:.0e})")
        elif not report.says_nothing and (other := misplaced(model, broken, places, inputs)):
            row.astray.append(f"{what} ({other})")


def misplaced(model: Any, broken: Path, places: set[str], inputs: dict[str, Any]) -> str:
    """What bisecting finds, if that is not the first value it compares from what was broken on."""
    import onnx

    from serde.bridge.formats import get_bridge
    from serde.checking.bisection import bisect_models
    from serde.checking.engines import read_target

    found = bisect_models(model, read_target(get_bridge("onnx"), broken)[1], inputs)
    compared = {value.target for value in found.values}
    nodes, reached = onnx.load(broken).graph.node, set(places)
    for node in nodes:
        if any(name in reached and name not in compared for name in node.input):
            reached |= set(node.output)
    named = [value.target for value in found.values if value.suspect]
    return "" if set(named) & reached else f"{', '.join(named[:3]) or 'none'}: {found.sentence}"


def ratio_of(apart: Any, exact: np.ndarray) -> float:
    """A distance in deviations of an output."""
    from serde.checking.distance import deviation, ratio

    return ratio(apart.mean, deviation(exact))


def exact_of(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What a model of ONNX computes in float64."""
    from serde.bridge.formats import get_bridge
    from serde.checking.yardstick import Yardstick
    from serde.core.report import Report

    bridge = get_bridge("onnx")
    options = bridge.bind_import({})
    model = bridge.to_relay(bridge.load(path, None, options), options, report=Report())
    return Yardstick(model).at(inputs).exact


def copies(path: Path, count: int) -> Iterator[tuple[str, set[str], Path]]:
    """Copies of a model of ONNX, each with one thing wrong, in turn of every kind.

    Yields what is wrong, the values that are so for it, and the file.
    """
    import onnx

    generator = np.random.default_rng(0)
    kinds = [negated, other_attribute, moved_padding, exchanged]
    made = 0
    for turn in range(4 * count):
        model = onnx.load(path)
        made_wrong = kinds[turn % len(kinds)](model.graph, generator)
        if made_wrong is None:
            continue
        what, places = made_wrong
        broken = path.with_name(f"broken{turn}.onnx")
        onnx.save(model, broken)
        yield what, places, broken
        broken.unlink()
        made += 1
        if made == count:
            return


def negated(graph: Any, generator: np.random.Generator) -> Wrong | None:
    """Negate one element of one weight."""
    from onnx import numpy_helper

    weights = [w for w in graph.initializer if w.data_type in (1, 10) and len(w.dims) > 1]
    if not weights:
        return None
    weight = weights[generator.integers(len(weights))]
    values = numpy_helper.to_array(weight).copy()
    at = int(generator.integers(values.size))
    values.flat[at] = -values.flat[at]
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    readers = [node for node in graph.node if weight.name in node.input]
    return f"{weight.name}[{at}] negated", {name for node in readers for name in node.output}


def other_attribute(graph: Any, generator: np.random.Generator) -> Wrong | None:
    """Change one number among the attributes of a node."""
    nodes = [
        (node, each)
        for node in graph.node
        for each in node.attribute
        if each.name in ("alpha", "epsilon", "ceil_mode", "count_include_pad", "axis", "perm")
    ]
    if not nodes:
        return None
    node, each = nodes[generator.integers(len(nodes))]
    if each.name in ("alpha", "epsilon"):
        each.f = each.f * 3 + 1e-3
    elif each.name == "perm":
        each.ints[:] = [*each.ints[:-2], each.ints[-1], each.ints[-2]]
    else:
        each.i = 1 - each.i
    return f"{node.name or node.op_type}.{each.name}", set(node.output)


def moved_padding(graph: Any, generator: np.random.Generator) -> Wrong | None:
    """Move the padding of a window by one, so that the shape stays."""
    found = [
        (node, each)
        for node in graph.node
        for each in node.attribute
        if each.name == "pads" and any(each.ints)
    ]
    if not found:
        return None
    node, each = found[generator.integers(len(found))]
    half = len(each.ints) // 2
    axis = int(generator.integers(half))
    if not each.ints[axis]:
        return None
    each.ints[axis] -= 1
    each.ints[half + axis] += 1
    return f"{node.name or node.op_type}.pads", set(node.output)


def exchanged(graph: Any, generator: np.random.Generator) -> Wrong | None:
    """Exchange two outputs of one shape."""
    shapes: dict[str, list[Any]] = {}
    for output in graph.output:
        shapes.setdefault(str(output.type), []).append(output)
    pairs = [each for each in shapes.values() if len(each) > 1]
    if not pairs:
        return None
    pair = pairs[generator.integers(len(pairs))][:2]
    names = {pair[0].name: pair[1].name, pair[1].name: pair[0].name}
    for node in graph.node:
        for fields in (node.output, node.input):
            fields[:] = [names.get(name, name) for name in fields]
    return f"{pair[0].name} and {pair[1].name} exchanged", set(names)


def measured(name: str, arguments: list[str]) -> Row:
    """The row of a net, from a process of its own."""
    command = [sys.executable, __file__, "--only", *arguments, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return Row(name, f"the process ended with {done.returncode}")
    return Row(**json.loads(lines[-1]))


def main() -> int:
    """Measures and prints net by net."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
    os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="store_true", help="print one net's figures as JSON")
    parser.add_argument("--mutants", type=int, default=8, help="broken copies of each net")
    parser.add_argument("--visible", type=float, default=10.0, help="how far off a copy must be")
    parser.add_argument("--float16", action="store_true", help="convert to float16")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the outputs")
    parser.add_argument("--fresh", action="store_true", help="weights as Gluon initialises them")
    parser.add_argument("names", nargs="*", help="nets; a list of 46 if left out")
    given = parser.parse_args()
    settings = (given.mutants, given.float16, given.scale, given.fresh, given.visible)
    if given.only:
        row = judge(given.names[0], *settings)
        print(json.dumps(asdict(row)))
        return 0
    arguments = [
        f"--mutants={given.mutants}",
        f"--scale={given.scale}",
        f"--visible={given.visible}",
    ]
    arguments += ["--float16"] * given.float16 + ["--fresh"] * given.fresh
    print("|", " | ".join(HEADS), "|")
    print("|" + "---|" * len(HEADS))
    rows, start = [], time.perf_counter()
    for name in given.names or NETS.split():
        rows.append(measured(name, arguments))
        print("|", " | ".join(rows[-1].cells()), "|", flush=True)
    failures = sum(not row.verdict.startswith("agrees") for row in rows)
    missed, broken = sum(len(row.missed) for row in rows), sum(row.mutants for row in rows)
    loose, astray = sum(row.loose for row in rows), sum(len(row.astray) for row in rows)
    spent, converting = sum(row.yardstick for row in rows), sum(row.seconds for row in rows)
    print(
        f"\n{failures} of {len(rows)} right nets do not agree; {missed} of {broken} broken ones "
        f"do ({loose} by the tolerance alone), {astray} are located elsewhere or nowhere"
        f"\nyardstick {spent:.1f} s, conversion {converting:.1f} s, "
        f"all {time.perf_counter() - start:.0f} s"
    )
    return 1 if failures or missed else 0


if __name__ == "__main__":
    sys.exit(main())
