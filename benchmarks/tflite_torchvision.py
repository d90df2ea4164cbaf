"""Prints, as a Markdown table, how nets of torchvision become TFLite models.

    python benchmarks/tflite_torchvision.py [name ...]

Needs PyTorch, torchvision and LiteRT. Each net gets calibrated random weights, is exported by
``torch.export`` and converted with its image's channels last. What LiteRT's optimised kernels
give is compared with PyTorch, in deviations of the output; another image tells how much the
output depends on it. The exit code is 0 where no net is wrong.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]

COLUMNS = ("net", "nodes", "transposes", "s", "MB", "error", "verdict")
NETS = (
    "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "squeezenet1_1", "mnasnet0_5",
    "shufflenet_v2_x0_5", "resnet18", "googlenet", "efficientnet_b0", "regnet_y_400mf",
    "densenet121", "inception_v3", "resnet50", "resnext50_32x4d", "convnext_tiny", "swin_t",
    "vit_b_16", "maxvit_t", "alexnet", "vgg11_bn",
)  # fmt: skip
BOUND = 1e-4
"""Largest difference from PyTorch, in deviations of the output."""


def judge(name: str) -> list[str]:
    """The row of a net."""
    import torch
    from support.accuracy import distance
    from support.nnef_torchvision import build
    from support.tflite_models import run_litert

    import serde
    from serde.errors import UnsupportedModelError
    from serde.tflite.codec import load

    try:
        program = build(name)
        with torch.no_grad():
            expected = program.module(*program.inputs).numpy()
            exported = torch.export.export(program.module, program.inputs)
        model = serde.to_relay(exported)
        with tempfile.TemporaryDirectory() as folder:
            target, begun = Path(folder) / "net.tflite", time.perf_counter()
            serde.convert(exported, target, images=list(model.meta.inputs))
            seconds, graph = time.perf_counter() - begun, load(target).subgraphs[0]
            data, size = target.read_bytes(), target.stat().st_size / 1e6
        feed = program.inputs[0].numpy().transpose(0, 2, 3, 1).copy()
        error = max(distance(run_litert(data, [feed], optimised=True), [expected]))
    except UnsupportedModelError as refusal:
        return [name, *[""] * 5, f"refused: {' '.join(str(refusal).split())[:300]}"]
    except Exception as fault:  # whatever goes wrong is a line of the table
        said = f"{type(fault).__name__}: {' '.join(str(fault).split())[:200]}"
        return [name, *[""] * 5, said]
    kinds = Counter(each.name for each in graph.operators)
    counts = [str(kinds.total()), str(kinds["TRANSPOSE"])]
    verdict = "ok" if error <= BOUND else f"more than {BOUND} off"
    return [name, *counts, f"{seconds:.1f}", f"{size:.1f}", f"{error:.1e}", verdict]


def main(names: list[str]) -> int:
    """Measures and prints net by net."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    if not all(map(importlib.util.find_spec, ("torch", "torchvision", "ai_edge_litert"))):
        print("torchvision and LiteRT are not installed for this Python: nothing to convert")
        return 0
    print("|", " | ".join(COLUMNS), "|")
    print("|" + "---|" * len(COLUMNS))
    rows = []
    for name in names or NETS:
        rows.append(judge(name))
        print("|", " | ".join(rows[-1]), "|", flush=True)
    right = sum(row[-1] == "ok" for row in rows)
    refused = sum(row[-1].startswith("refused") for row in rows)
    print(f"\n{right} of {len(rows)} are right, {refused} are refused")
    return 0 if right + refused == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
