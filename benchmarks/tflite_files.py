"""Prints, as a Markdown table, what becomes of TFLite files in each format, by their classes.

    python benchmarks/tflite_files.py FOLDER [format ...]

The folder has a ``list.tsv`` whose first two columns are a file and its class. Each file is
converted with a check of two sets of inputs, quantised ones as they are, and once more with
``read_quantized="qdq"`` where a target has no integers for it. "right" passed its check, or is
equal where all values are alike; of "right, LiteRT off" the target is exact and the source as
LiteRT runs it is not; "wrong" is neither, "refused" a named gap, and "unjudged" ran nowhere.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import serde  # noqa: E402
from serde.errors import CheckError, SerdeError  # noqa: E402

TARGETS = {
    "relay": "net.relay",
    "tflite": "net.tflite",
    "onnx": "net.onnx",
    "coreml": "net.mlpackage",
    "nnef": "net_nnef",
    "mxnet": "net-symbol.json",
}
"""Names of what is written, by format."""


def verdict(path: Path, name: str, folder: Path) -> str:
    """What becomes of a file in a format."""
    found = "refused"
    for way in ("exact", "qdq"):
        options = {"compute_precision": "float32"} if name == "coreml" else {}
        report = serde.Report()
        try:
            serde.convert(
                path, folder / way / TARGETS[name], source_format="tflite", target_format=name,
                check=2, read_quantized=way, report=report, **options,
            )  # fmt: skip
        except CheckError:
            return judged(report)
        except SerdeError:
            continue
        return "right" if report.passed else "unjudged"
    return found


def judged(report: serde.Report) -> str:
    """What a check that did not pass says: LiteRT itself may be off, or all values be equal."""
    failed = [each for each in report.verdicts if not each.passed]
    if not failed:
        return "unjudged"
    if all(not each.informative and each.max_abs == 0 for each in failed):
        return "right"
    exact = all(each.distance is not None and each.distance < 1e-5 for each in failed)
    return "right, LiteRT off" if exact else "wrong"


def main() -> int:
    """Measures and prints class by class."""
    warnings.simplefilter("ignore")
    source = Path(sys.argv[1])
    lines = (source / "list.tsv").read_text().splitlines()[1:]
    rows = [line.split("\t")[:2] for line in lines if line]
    classes = sorted({kind for _, kind in rows})
    print("| format | " + " | ".join(classes) + " |")
    print("| --- | " + " | ".join("---" for _ in classes) + " |")
    for name in sys.argv[2:] or TARGETS:
        counts: Counter[tuple[str, str]] = Counter()
        for file, kind in rows:
            with tempfile.TemporaryDirectory() as folder:
                for way in ("exact", "qdq"):
                    (Path(folder) / way).mkdir()
                found = verdict(source / file, name, Path(folder))
            counts[kind, found] += 1
            if found == "wrong":
                print(f"{name}: {file}: wrong", file=sys.stderr)
        cells = [
            ", ".join(f"{n} {word}" for (k, word), n in sorted(counts.items()) if k == kind)
            for kind in classes
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
