"""Prints, as a Markdown table, what becomes of TFLite files in each format, by their classes.

    python benchmarks/tflite_files.py FOLDER [format ...]

The folder has a ``list.tsv`` whose first two columns are a file and its class. Each file is
converted with a check of two sets of inputs, quantised ones as they are, and once more with
``read_quantized="qdq"`` where a target has no integers for it. What is refused for lengths that
are open is tried with one image of 16 by 16. PyTorch needs its package, and is passed over
without it. "right" passed its check, or is equal where all values are alike; of "right, LiteRT
off" the target is exact, or nearer to the exact result than the source as LiteRT runs it; "wrong"
is neither, "refused" a named gap, and "unjudged" ran nowhere.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from importlib.util import find_spec
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import serde  # noqa: E402
from serde.errors import CheckError, SerdeError  # noqa: E402
from serde.tflite.codec import load  # noqa: E402
from serde.tflite.interface import chosen_interface  # noqa: E402

TARGETS = {
    "relay": "net.relay",
    "tflite": "net.tflite",
    "onnx": "net.onnx",
    "coreml": "net.mlpackage",
    "nnef": "net_nnef",
    "mxnet": "net-symbol.json",
    **({"torch": "net.pt2"} if find_spec("torch") else {}),
}
"""Names of what is written, by format."""

OPTIONS = {"coreml": {"compute_precision": "float32", "minimum_deployment_target": "iOS18"}}
"""Options of formats."""


def verdict(path: Path, name: str, folder: Path) -> str:
    """What becomes of a file in a format."""
    shapes = fixed_shapes(path)
    for way, given in product(("exact", "qdq"), ({}, shapes) if shapes else ({},)):
        target = Path(tempfile.mkdtemp(dir=folder)) / TARGETS[name]
        report = serde.Report()
        try:
            serde.convert(
                path, target, source_format="tflite", target_format=name, check=2,
                read_quantized=way, input_shapes=given, report=report, **OPTIONS.get(name, {}),
            )  # fmt: skip
        except CheckError:
            return judged(report)
        except SerdeError:
            continue
        return "right" if report.passed else "unjudged"
    return "refused"


def fixed_shapes(path: Path) -> dict[str, list[int]]:
    """Shapes of the inputs that have open lengths."""
    try:
        model = load(path)
        interface = chosen_interface(model, None)
    except SerdeError:
        return {}
    tensors = model.subgraphs[interface.subgraph].tensors
    shapes = {name: tensors[number].shape for name, number in interface.inputs.items()}
    return {
        name: [16 if n < 0 and i else abs(n) for i, n in enumerate(shape)]
        for name, shape in shapes.items()
        if -1 in shape
    }


def judged(report: serde.Report) -> str:
    """What a check that did not pass says: LiteRT itself may be off, or all values be equal."""
    failed = [each for each in report.verdicts if not each.passed]
    if not failed:
        return "unjudged"
    if all(not each.informative and each.max_abs == 0 for each in failed):
        return "right"
    known = [(each.distance, each.own) for each in failed if each.distance is not None]
    if len(known) == len(failed) and all(far < 1e-5 or far < own for far, own in known):
        return "right, LiteRT off"
    return "wrong"


def main() -> int:
    """Measures and prints class by class."""
    warnings.simplefilter("ignore")
    source = Path(sys.argv[1])
    lines = (source / "list.tsv").read_text().splitlines()[1:]
    rows = [line.split("\t")[:2] for line in lines if line]
    classes = sorted({kind for _, kind in rows})
    print("| format | all | " + " | ".join(classes) + " |")
    print("| --- | --- | " + " | ".join("---" for _ in classes) + " |")
    for name in sys.argv[2:] or TARGETS:
        counts: Counter[tuple[str, str]] = Counter()
        for file, kind in rows:
            with tempfile.TemporaryDirectory() as folder:
                found = verdict(source / file, name, Path(folder))
            counts[kind, found] += 1
            if found == "wrong":
                print(f"{name}: {file}: wrong", file=sys.stderr)
        total = Counter[str]()
        for (_, word), n in counts.items():
            total[word] += n
        cells = [", ".join(f"{n} {word}" for word, n in sorted(total.items()))]
        cells += [
            ", ".join(f"{n} {word}" for (k, word), n in sorted(counts.items()) if k == kind)
            for kind in classes
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
