"""Measures NNEF: against NNEF-Tools' converter, and by operations.

    python benchmarks/nnef_speed.py [tools | graphs ...]

Needs PyTorch and NNEF-Tools, as the environment of ``make test-torch`` has them.

- tools: ResNet-50 from the ONNX file that PyTorch writes of it, by NNEF-Tools' converter as its
  command line runs it without options, and by ``serde.convert``.
- graphs: chains of operations from text to Relay and back, in microseconds an operation.

Times are medians of alternating rounds, each in a new process that has converted a tiny net before,
reading from the page cache; memory is the peak above what the process had then.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import nnef_peer  # noqa: E402

import serde  # noqa: E402
from benchmarks.coreml import measured, write  # noqa: E402

ROUNDS = 5
MB = 1e6
OPERATIONS = (2_000, 20_000)

Step = Callable[[Path, Path], object]


def by_tools(source: Path, target: Path) -> None:
    nnef_peer.convert(source, target, fold=False)


def by_serde(source: Path, target: Path) -> None:
    serde.convert(source, target)


WAYS: dict[str, Step] = {"NNEF-Tools": by_tools, "serde": by_serde}


def run(way: str, tiny: Path, source: Path, target: Path) -> tuple[float, float]:
    """Seconds and bytes of a conversion, after that of a tiny net."""
    convert = WAYS[way]
    convert(tiny, target.with_name(f"tiny-{target.name}"))
    os.sync()
    return measured(lambda: convert(source, target))


def in_process(way: str, *paths: Path) -> tuple[float, float]:
    """Seconds and bytes, from a new process; what it wrote is removed."""
    command = [sys.executable, __file__, "--run", way, *map(str, paths)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    for each in paths[-1].parent.glob(f"*{paths[-1].name}"):
        remove(each)
    seconds, size = json.loads(done.stdout.splitlines()[-1])
    return seconds, size


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def middle(rows: list[tuple[float, float]]) -> tuple[float, float]:
    """The medians of two columns."""
    seconds, size = (statistics.median(column) for column in zip(*rows, strict=True))
    return seconds, size


def compare_tools(directory: Path) -> None:
    """Print ResNet-50 by both converters."""
    for name in ("tiny", "resnet50"):
        with contextlib.redirect_stdout(io.StringIO()):
            write(name, directory / f"{name}.onnx")
    tiny, source = directory / "tiny.onnx", directory / "resnet50.onnx"
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, rows in found.items():
            rows.append(in_process(way, tiny, source, directory / "written_nnef"))
    (theirs, their_peak), (ours, our_peak) = map(middle, found.values())
    print("| ONNX to NNEF | NNEF-Tools | serde | ratio | NNEF-Tools, peak | serde, peak | ratio |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| resnet50 | {theirs:.2f} s | {ours:.2f} s | {ours / theirs:.2f} "
        f"| {their_peak / MB:.0f} MB | {our_peak / MB:.0f} MB | {our_peak / their_peak:.2f} |"
    )


def chain(count: int) -> str:
    """A text in which every value is used twice."""
    lines, before, last = ["    x = external(shape = [1, 4, 8, 8]);"], "x", "x"
    for index in range(count):
        right = f"relu({last})" if index % 2 else f"add({last}, {before})"
        lines.append(f"    t{index} = {right};")
        before, last = last, f"t{index}"
    body = "\n".join(lines)
    return f"version 1.0;\n\ngraph net(x) -> ({last})\n{{\n{body}\n}}\n"


def seconds_of(action: Callable[[], object]) -> float:
    """The best of three rounds."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return min(found)


def compare_graphs(directory: Path) -> None:
    """Print what an operation takes, in chains of growing length."""
    import nnef

    steps: dict[str, list[float]] = {}
    for count in OPERATIONS:
        text = chain(count)
        path = directory / f"chain{count}.nnef"
        path.write_text(text, encoding="utf-8")
        model = serde.to_relay(path)
        actions: dict[str, Callable[[], object]] = {
            "Khronos' parser": lambda text=text: nnef.parse_string(text, stdlib="", lowered=[]),
            "text to Relay": lambda path=path: serde.to_relay(path),
            "Relay to text": lambda model=model: serde.from_relay(
                model, format="nnef", path=directory / "chain_nnef", overwrite=True
            ),
        }
        for name, action in actions.items():
            steps.setdefault(name, []).append(seconds_of(action) / count)
    heads = " | ".join(f"{count:,}" for count in OPERATIONS)
    print(f"| us an operation | {heads} | ratio |")
    print("|---|" + "---|" * (len(OPERATIONS) + 1))
    for name, found in steps.items():
        cells = " | ".join(f"{1e6 * each:.1f}" for each in found)
        print(f"| {name} | {cells} | {found[-1] / found[0]:.2f} |")


PARTS: dict[str, Callable[[Path], None]] = {"tools": compare_tools, "graphs": compare_graphs}


def main() -> None:
    """Measure the parts named on the command line, or all."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    if arguments[:1] == ["--run"]:
        way, *paths = arguments[1:]
        print("\n" + json.dumps(run(way, *map(Path, paths))))
        return
    if not all(map(importlib.util.find_spec, ("torch", "nnef_tools"))):
        print("PyTorch and NNEF-Tools are not installed for this Python: nothing to compare with")
        return
    for name in arguments or PARTS:
        with tempfile.TemporaryDirectory() as directory:
            PARTS[name](Path(directory))
        print(flush=True)


if __name__ == "__main__":
    main()
