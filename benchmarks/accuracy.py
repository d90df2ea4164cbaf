"""Prints, as a markdown table, how exact conversions of whole nets are.

    python benchmarks/accuracy.py [net ...]

Without names all nets of MXNet's vision zoo and the face nets are measured, which takes
a while. Each is converted from its files at several operator sets and run in ONNX
Runtime; differences are the largest of any output, in deviations of that output.
"""

import gc
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(names: list[str]) -> int:
    """Measures and prints net by net; the exit code is 0 where all are within bounds."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
    from support.accuracy import FACES, ZOO, face_net, measure, zoo_net
    from support.oracle import PlainMxnet
    from support.runtime import newest_runtime_opset

    from serde.compat import import_mxnet

    mx, oracle = import_mxnet(), PlainMxnet()
    opsets = (11, 13, 17, newest_runtime_opset())
    heads = [f"opset {opset}" for opset in opsets]
    print("| net | layers | nodes |", " | ".join(heads), "| MXNet itself | other image | |")
    print("|---|---|---|" + "---|" * len(opsets) + "---|---|---|")
    passed = True
    for name in names or [*ZOO, *FACES]:
        net = zoo_net(mx, name, ZOO[name]) if name in ZOO else face_net(mx, name)
        with tempfile.TemporaryDirectory() as directory:
            figures = list(measure(mx, oracle, net, opsets, Path(directory)))
        fine = all(each.passed for each in figures)
        passed = passed and fine
        errors = " | ".join(f"{each.error:.1e}" for each in figures)
        last = figures[-1]
        print(
            f"| {name} | {last.layers} | {last.nodes} | {errors} | {last.own:.1e} "
            f"| {last.change:.0%} | {'✓' if fine else '✗'} |",
            flush=True,
        )
        del net, figures
        gc.collect()
    oracle.close()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
