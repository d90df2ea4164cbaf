"""Whole nets of MXNet as folders of NNEF, run by NNEF-Tools' interpreter, and back in MXNet.

The interpreter lives in the environment that has PyTorch, beside which gluoncv refuses to be
imported; it is run as a process of its own.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from support.accuracy import CEILING, FACES, FLOOR, LEAST_CHANGE, ZOO, Net, Reference, refer
from support.oracle import PlainMxnet, run_mxnet
from support.zoo import LEAST_CHANGE_OF_BOXES, around_selections, selections

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError

__all__ = [
    "COLUMNS",
    "GLUONCV",
    "GLUONNLP",
    "NAMES",
    "Row",
    "back",
    "interpret",
    "interpreter_python",
    "judge",
]

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("nnef_runner.py")

GLUONCV = (
    "cifar_resnet20_v1", "cifar_resnet20_v2", "cifar_resnext29_32x4d",
    "cifar_residualattentionnet56", "mobilenetv3_small", "mobilenetv3_large", "shufflenet_v1",
    "shufflenet_v2", "resnest14", "se_resnet18_v1", "se_resnext50_32x4d", "resnet50_v1d_0.11",
    "resnet50_v1s", "googlenet", "xception", "nasnet_4_1056", "dla34", "hrnet_w18_small_v1_c",
    "darknet53", "ssd_300_mobilenet0.25_voc", "yolo3_mobilenet0.25_voc",
    "fastscnn_citys", "icnet_resnet50_citys",
    "deeplab_resnet50_ade", "psp_resnet50_ade", "hrnet_w18_small_v1_s",
    "simple_pose_resnet18_v1b", "mobile_pose_mobilenetv3_small",
    "monodepth2_resnet18_kitti_mono_640x192", "i3d_inceptionv1_kinetics400",
    "resnet18_v1b_kinetics400", "r2plus1d_resnet18_kinetics400", "siamrpn_alexnet_v2_otb15",
)  # fmt: skip
"""Nets of gluoncv of each family: classification, detection, segmentation, pose, depth, video.

CenterNets are not among them: they divide the places of peaks by widths, as integers, which NNEF
has not.
"""

GLUONNLP = ("bert_small", "transformer_small", "standard_lstm_lm_200", "elmo_small")
"""Small nets of gluonnlp of each family."""

NAMES = (*(f"zoo:{name}" for name in ZOO), *FACES, *GLUONCV, *GLUONNLP)

COLUMNS = ("net", "operations", "error", "back in MXNet", "MXNet itself", "write s", "verdict")


@dataclass
class Row:
    """What is found of a net.

    Attributes:
        name: The net.
        operations: Of the graph, without declarations of inputs and variables.
        error: The interpreter against MXNet, in deviations of an output.
        back: MXNet with what is read from the folder against MXNet, likewise.
        own: Difference between MXNet's two settings.
        seconds: Of the conversion.
        faults: What is wrong, empty where all is right.
        refused: Operators without conversion, with their reasons.
    """

    name: str
    operations: int = 0
    error: float = float("nan")
    back: float = float("nan")
    own: float = 0.0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        """The row of the table."""
        faults = [*self.faults, *(f"refused: {each}" for each in self.refused)]
        errors = [f"{each:.1e}" for each in (self.error, self.back, self.own)]
        verdict = "; ".join(faults) or "ok"
        return [self.name, str(self.operations), *errors, f"{self.seconds:.1f}", verdict]


@functools.cache
def interpreter_python() -> str | None:
    """Return the Python that has NNEF-Tools and PyTorch; None where there is none."""
    python = ROOT / ".venv-torch" / "bin" / "python"
    command = [str(python), "-c", "import nnef_tools.interpreter.pytorch"]
    if not python.exists() or subprocess.run(command, capture_output=True, check=False).returncode:
        return None
    return str(python)


def interpret(
    python: str, folder: Path, inputs: Mapping[str, np.ndarray], directory: Path
) -> list[np.ndarray]:
    """Return what NNEF-Tools' interpreter makes of a folder, in a process of its own.

    Raises:
        RuntimeError: It cannot run it.
    """
    given, results = directory / "given.npz", directory / "results.npz"
    np.savez(given, **inputs)
    command = [python, str(RUNNER), str(folder), str(given), str(results)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"NNEF-Tools: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
        )
    with np.load(results) as found:
        return [found[str(place)] for place in range(len(found.files))]


def judge(name: str, net: Net, python: str) -> Row:
    """Write a net as NNEF, let the interpreter run it, read it back, and compare with MXNet."""
    mx, oracle, row = import_mxnet(), PlainMxnet(), Row(name)
    selects = bool(selections(net.symbol))
    if selects:
        net = around_selections(mx, net)  # type: ignore[arg-type]
    try:
        with tempfile.TemporaryDirectory() as directory:
            paths = net.save(mx, Path(directory) / "net")
            judged = refer(oracle, mx, net, Path(directory))
            compare(row, paths, net.inputs(7), judged, python)
    finally:
        oracle.close()
    if judged.change <= (LEAST_CHANGE_OF_BOXES if selects else LEAST_CHANGE):
        row.faults.append(f"outputs change by {judged.change:.2f} only")
    return row


def compare(
    row: Row, paths: Sequence[Path], image: Mapping[str, np.ndarray], judged: Reference, python: str
) -> None:
    """Fill the row of a net that is saved, and of which MXNet has judged."""
    row.own = judged.own
    bound = min(max(FLOOR, 3 * judged.own), CEILING)
    directory = paths[0].parent
    folder = directory / "net_nnef"
    shapes = {name: values.shape for name, values in image.items()}
    try:
        start = time.perf_counter()
        serde.convert(list(paths), folder, input_shapes=shapes)
        row.seconds = time.perf_counter() - start
        row.operations = _operations(folder)
        row.error = judged.error(interpret(python, folder, image, directory))
        if not row.error <= bound:
            row.faults.append(f"more than {bound:.1e} off")
        row.back = judged.error(back(folder, image))
        if not row.back <= bound:
            row.faults.append(f"back in MXNet more than {bound:.1e} off")
    except UnsupportedModelError as error:
        issues = Counter((each.op, each.reason) for each in error.report.issues)
        row.refused = sorted(f"{op} x{n} {why}" for (op, why), n in issues.items())
    except Exception as error:  # whatever goes wrong is a line of the table
        row.faults.append(" ".join(f"{type(error).__name__}: {error}".split())[:300])


def _operations(folder: Path) -> int:
    """The assignments of a graph that compute."""
    import nnef

    graph = nnef.parse_file(os.fspath(folder / "graph.nnef"), stdlib="", lowered=[])
    nnef.infer_shapes(graph)
    return sum(each.name not in ("external", "variable") for each in graph.operations)


def back(folder: Path, image: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return what MXNet makes of a folder."""
    names = serde.to_relay(folder).meta.inputs
    symbol, params = serde.import_model(folder)
    # MXNet does not find out the shapes of weights that only meet operators of elements.
    given = {name: params[name].asnumpy() for name in symbol.list_arguments() if name in params}
    inputs = {**given, **dict(zip(names, image.values(), strict=True))}
    with import_mxnet().util.np_shape(any(not each.shape for each in params.values())):
        return run_mxnet(symbol, params, inputs)
