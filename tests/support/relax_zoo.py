"""Whole nets of MXNet as modules of Relax, compiled by TVM and compared with MXNet."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from support.accuracy import (
    CEILING,
    FACES,
    FLOOR,
    LEAST_CHANGE,
    ZOO,
    Net,
    Reference,
    refer,
    zoo_net,
)
from support.coreml_zoo import net_of
from support.oracle import PlainMxnet
from support.zoo import LEAST_CHANGE_OF_BOXES, around_selections, layers_of, selections

import serde
from serde.bridge.formats import get_bridge
from serde.compat import import_mxnet
from serde.conversion.prepare import PrepareOptions, prepare
from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.relax.live import operators_of

__all__ = ["COLUMNS", "GLUONCV", "GLUONNLP", "NAMES", "Row", "build", "judge", "run"]

SIDES = {**{name: 64 for name in ZOO if name.startswith(("mobilenet", "resnet", "vgg", "alexnet"))}}
"""Sides of images, where a net takes other ones than those it is known for: what TVM has not
tuned takes minutes for large ones."""

GLUONCV = (
    "cifar_resnet20_v1", "cifar_resnext29_32x4d", "cifar_residualattentionnet56",
    "mobilenetv3_small", "shufflenet_v1", "shufflenet_v2", "resnest14", "se_resnet18_v1",
    "resnet50_v1d_0.11", "googlenet", "xception", "dla34", "hrnet_w18_small_v1_c",
    "ssd_300_mobilenet0.25_voc", "yolo3_mobilenet0.25_voc", "center_net_resnet18_v1b_voc",
    "fastscnn_citys", "simple_pose_resnet18_v1b", "mobile_pose_mobilenetv3_small",
    "monodepth2_resnet18_kitti_mono_640x192", "resnet18_v1b_kinetics400",
    "r2plus1d_resnet18_kinetics400", "siamrpn_alexnet_v2_otb15",
    "faster_rcnn_resnet50_v1b_custom", "mask_rcnn_resnet18_v1b_coco",
)  # fmt: skip
"""Nets of gluoncv of each family: classification, detection, segmentation, pose, depth, video."""

GLUONNLP = (
    "bert_small", "bert_base", "transformer_small", "standard_lstm_lm_200", "standard_gru_lm_200",
    "awd_lstm_lm_600", "elmo_small",
)  # fmt: skip
"""Language models of gluonnlp of each family."""

NAMES = (*(f"zoo:{name}" for name in ZOO), *FACES, *GLUONNLP, *GLUONCV)

COLUMNS = (
    "net", "MXNet nodes", "calls", "functions of TIR", "error", "MXNet itself",
    "build s", "compile s", "run s", "verdict",
)  # fmt: skip


@dataclass
class Row:
    """What is found of a net.

    Attributes:
        name: The net.
        layers: Nodes of the symbol, variables left out.
        calls: Calls of operators and functions in the module.
        tir: Calls of functions in TIR, which Relax has no operators for.
        error: TVM against MXNet, in deviations of an output.
        own: Difference between MXNet's two settings.
        seconds: To build the module from MXNet's files, to compile it, and to run it.
        faults: What is wrong, empty where all is right.
        refused: Operators without conversion, with their reasons.
    """

    name: str
    layers: int = 0
    calls: int = 0
    tir: int = 0
    error: float = float("nan")
    own: float = 0.0
    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        """The row of the table."""
        faults = [*self.faults, *(f"refused: {each}" for each in self.refused)]
        errors = [f"{each:.1e}" for each in (self.error, self.own)]
        seconds = [f"{each:.1f}" for each in self.seconds] + [""] * (3 - len(self.seconds))
        counts = [str(each) for each in (self.layers, self.calls, self.tir)]
        return [self.name, *counts, *errors, *seconds, "; ".join(faults) or "ok"]


def build(mx: Any, name: str) -> Net:
    """Return a net with calibrated parameters; those of MXNet's zoo are called ``zoo:NAME``."""
    kind, _, plain = name.rpartition(":")
    if kind == "zoo":
        return zoo_net(mx, plain, SIDES.get(plain, ZOO[plain]))
    return net_of(mx, name)


def judge(name: str, net: Net) -> Row:
    """Compile a net by TVM and compare it with MXNet."""
    mx, oracle, row = import_mxnet(), PlainMxnet(), Row(name)
    selects = bool(selections(net.symbol))
    row.layers = layers_of(net.symbol)
    if selects:
        net = around_selections(mx, net)  # type: ignore[arg-type]
    try:
        with tempfile.TemporaryDirectory() as directory:
            paths = net.save(mx, Path(directory) / "net")
            judged = refer(oracle, mx, net, Path(directory))
            compare(row, paths, net.inputs(7), judged)
    finally:
        oracle.close()
    if judged.change <= (LEAST_CHANGE_OF_BOXES if selects else LEAST_CHANGE):
        row.faults.append(f"outputs change by {judged.change:.2f} only")
    return row


def compare(
    row: Row, paths: Sequence[Path], image: Mapping[str, np.ndarray], judged: Reference
) -> None:
    """Fill the row of a net that is saved, and of which MXNet has judged."""
    row.own = judged.own
    bound = min(max(FLOOR, 3 * judged.own), CEILING)
    try:
        row.error = judged.error(run(row, paths, image))
        if not row.error <= bound:
            row.faults.append(f"more than {bound:.1e} off")
    except UnsupportedModelError as error:
        issues = Counter((each.op, each.reason) for each in error.report.issues)
        row.refused = sorted(f"{op} x{n} {why}" for (op, why), n in issues.items())
    except Exception as error:  # whatever goes wrong is a line of the table
        row.faults.append(" ".join(f"{type(error).__name__}: {error}".split())[:300])


def run(row: Row, paths: Sequence[Path], image: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return what TVM makes of a checkpoint."""
    bridge, report = get_bridge("relax"), Report()
    start = time.perf_counter()
    shapes = {name: values.shape for name, values in image.items()}
    model = prepare(
        serde.to_relay(list(paths), input_shapes=shapes), PrepareOptions(), report=report
    )
    native = bridge.from_relay(model, bridge.bind_export({}), report=report)
    built = time.perf_counter()
    operators = operators_of(native)
    row.calls, row.tir = len(operators), operators.count("relax.call_tir")
    engine = bridge.engine(native, model)
    compiled = time.perf_counter()
    try:
        found = engine.run(image)
    finally:
        engine.close()
    row.seconds = [built - start, compiled - built, time.perf_counter() - compiled]
    return found
