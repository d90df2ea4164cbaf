"""Measures how long and in how much memory a checkpoint becomes a model that is linked to it.

    python benchmarks/link.py [1 | 4 ...]

For a net of 1 GB and one of 4 GB, each figure is the median of three rounds in which ``cp`` of
the parameters, the conversion with ``--link-weights``, the one without, and that of a net with
the same graph and narrow layers take turns, all in new processes that read from the page cache.
Memory is the peak of a process during the conversion, above what it had with the same modules
imported. ONNX's own checks must pass. The aim for a conversion with links is the time of the
narrow net's, and less than ``cp``.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
from run import MB, ROOT, build, export, high_water, large, seconds, write_net

import serde

ROUNDS = 3
LAYERS = {"1": (7, 2), "4": (28, 11)}
WIDE, NARROW = (1024, 8192), (4, 8)
SHAPES = {"wide": (1, 1024, 4, 4), "narrow": (1, 4, 4, 4)}


def command(prefix: Path, net: str, *flags: str) -> Callable[[], object]:
    """Return the conversion of a net in a new process."""
    shape = "data:" + ",".join(map(str, SHAPES[net]))
    line = [sys.executable, "-m", "serde", "convert", "--quiet", f"{prefix}-symbol.json"]
    line += [f"{prefix}.onnx", "--input-shape", shape, "--keep-batch-norm", *flags]
    return lambda: subprocess.run(line, check=True, cwd=ROOT)


def link(prefix: Path) -> None:
    """Convert a wide net in this process."""
    serde.export_model(
        f"{prefix}-symbol.json",
        f"{prefix}-0000.params",
        path=f"{prefix}.onnx",
        input_shapes={"data": SHAPES["wide"]},
        keep_batch_norm=True,
        link_weights=True,
    )


def peak_memory(prefix: Path) -> float:
    """Bytes that a new process needs for the conversion beyond its modules."""
    line = [sys.executable, __file__, "--peak", str(prefix)]
    return float(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def print_peak(prefix: Path) -> None:
    """Convert a tiny net, which imports all modules, then the net, and print the difference."""
    export(prefix.with_name("tiny"), "tiny")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is in use
    before = high_water()
    link(prefix)
    print(high_water() - before)


def measure(size: str, folder: Path) -> None:
    """Build the nets of one size, time all rounds and print a row."""
    wide, narrow = folder / "wide", folder / "narrow"
    write_net(large(LAYERS[size], WIDE), wide, SHAPES["wide"])
    write_net(large(LAYERS[size], NARROW), narrow, SHAPES["narrow"])
    params = Path(f"{wide}-0000.params")
    copy = ["cp", "--reflink=never", str(params), str(folder / "copy")]
    actions: dict[str, Callable[[], object]] = {
        "cp": lambda: subprocess.run(copy, check=True),
        "narrow": command(narrow, "narrow", "--link-weights"),
        "linked": command(wide, "wide", "--link-weights"),
        "written": command(wide, "wide"),
    }
    times: dict[str, list[float]] = {action: [] for action in actions}
    actions["cp"]()  # reads the source once
    for _ in range(ROUNDS):
        for action, run in actions.items():
            times[action].append(seconds(run))
            if action == "linked":
                onnx.checker.check_model(f"{wide}.onnx")
                model = os.stat(f"{wide}.onnx").st_size
            for made in (*folder.glob("copy"), *folder.glob("*.onnx*")):
                made.unlink()
    medians = {action: statistics.median(each) for action, each in times.items()}
    figures = [f"{each:.2f} s ({each / medians['cp']:.2f} x cp)" for each in medians.values()]
    figures[0] = f"{medians['cp']:.2f} s"
    peak = f"{peak_memory(wide) / MB:.0f} MB"
    cells = [f"{params.stat().st_size / MB:.0f} MB", *figures, f"{model / 1e3:.0f} kB", peak]
    print(f"| {' | '.join(cells)} |", flush=True)


def main(sizes: list[str]) -> None:
    """Measure the sizes named, or all."""
    print("| weights | cp | narrow net, linked | linked | written | model, linked | peak, linked |")
    print("|---|---|---|---|---|---|---|")
    for size in sizes or LAYERS:
        with tempfile.TemporaryDirectory() as folder:
            needed = 3e9 * int(size)
            if shutil.disk_usage(folder).free < needed:
                raise SystemExit(f"{folder}: {needed / 1e9:.0f} GB must be free")
            build("tiny", Path(folder) / "tiny")
            measure(size, Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        print_peak(Path(sys.argv[2]))
    else:
        main(sys.argv[1:])
