"""Takes random graphs over all operators through pairs of formats, and prints what is wrong.

    python benchmarks/differential.py [--graphs 20000] [--minutes 60] [--state FILE] [--all-pairs]
    python benchmarks/differential.py --seed 4711 [--path onnx>torch]

Each graph is written in every format that is installed, run by what the format belongs to, read
again, run by Relay's interpreter, and what was read is written in another format, which is run in
turn: in each other one in the course of the graphs, or of one graph with ``--all-pairs``. Results
are compared with those of the kernels, as exactly as the rounding of float32 allows. TVM, which
takes seconds to compile what others run at once, judges one graph in ``--tvm-every``; and PyTorch
exports, to be read again, one in ``--archive-every``.

What has been done is appended to a file, from which another run goes on. A graph that ends the
process, as TVM and MXNet may, is a finding like others; the next process takes the graph after it.
With ``--seed`` one graph is shown: the model that fails as text, cut to the smallest part that
fails still, with its inputs. The exit code is 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from support.differential_judges import available  # noqa: E402
from support.differential_paths import judge_seed, onward, reproduce  # noqa: E402

SECONDS = 600
"""The longest that a graph may take of the processor, and ten times as long of the day."""


def main(arguments: Sequence[str]) -> int:
    """Run what is left, or show one graph."""
    options = _options(arguments)
    if options.seed is not None:
        _quiet()
        print(reproduce(options.seed, options.path))
        return 0
    if options.here:
        _answer(options)
        return 0
    return _run(options)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Random graphs through pairs of formats.")
    parser.add_argument("--graphs", type=int, default=20_000, help="how many graphs")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--state", type=Path, default=Path("differential.jsonl"))
    parser.add_argument("--formats", default="", help="formats, separated by commas; all if none")
    parser.add_argument("--all-pairs", action="store_true", help="all pairs of every graph")
    parser.add_argument("--tvm-every", type=int, default=20, metavar="N")
    parser.add_argument("--archive-every", type=int, default=5, metavar="N")
    parser.add_argument("--seed", type=int, help="show this graph")
    parser.add_argument("--path", default="", help="where it fails, such as onnx>torch")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


def _seeds(options: argparse.Namespace) -> Iterator[int]:
    done = {row["seed"] for row in _rows(options.state)}
    yield from (
        seed for seed in range(options.first, options.first + options.graphs) if seed not in done
    )


def _rows(state: Path) -> list[dict[str, Any]]:
    """Return what was done so far; a line that was not written to its end does not count."""
    rows = []
    for line in state.read_text().splitlines() if state.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def _answer(options: argparse.Namespace) -> None:
    """Judge graphs in this process; print a line before and after each."""
    _quiet()
    names = options.formats.split(",") if options.formats else available()
    for seed in _seeds(options):
        print(json.dumps({"start": seed}), flush=True)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + SECONDS, hard))
        taken = [name for name in names if name != "relax" or seed % options.tvm_every == 0]
        onwards = onward(seed, taken, every=options.all_pairs)
        row = judge_seed(seed, taken, onwards, archives=seed % options.archive_every == 0)
        print(json.dumps(row), flush=True)


def _run(options: argparse.Namespace) -> int:
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end and next(_seeds(options), None) is not None:
        with options.state.open("a") as out:
            for row in _one_process(end):
                out.write(json.dumps(row) + "\n")
                out.flush()
                for found in row["findings"]:
                    print(row["seed"], found["path"], found["kind"], found["said"], flush=True)
    rows = _rows(options.state)
    print(_summary(rows))
    return 1 if any(row["findings"] for row in rows) else 0


def _one_process(end: float) -> Iterator[dict[str, Any]]:
    """Yield what a process makes of graphs, until there are none, it dies, or time is up."""
    command = [sys.executable, __file__, "--here", *sys.argv[1:]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    started, timer = None, _watch(process)
    try:
        for line in process.stdout:
            if not line.startswith(b'{"'):
                continue
            timer.cancel()
            timer = _watch(process)
            row = json.loads(line)
            started = row.get("start")
            if "findings" in row:
                yield row
            if time.monotonic() > end:
                started = None
                break
    finally:
        timer.cancel()
        process.kill()
    code = process.wait()
    if started is not None:
        said = {"path": "", "kind": "crash", "said": f"exit code {code}", "operators": []}
        yield {"seed": started, "findings": [said], "agreed": [], "refused": {}, "operators": []}


def _watch(process: subprocess.Popen[bytes]) -> threading.Timer:
    timer = threading.Timer(10 * SECONDS, process.kill)
    timer.daemon = True
    timer.start()
    return timer


def _summary(rows: Sequence[dict[str, Any]]) -> str:
    agreed = Counter(path for row in rows for path in row["agreed"])
    refused = Counter(path for row in rows for path in row["refused"])
    wrong = Counter(each["path"] for row in rows for each in row["findings"])
    operators = {name for row in rows for name in row["operators"]}
    lines = ["| path | agrees | refused | wrong |", "|---|---|---|---|"]
    lines += [
        f"| {path} | {agreed[path]} | {refused[path]} | {wrong[path]} |"
        for path in sorted({*agreed, *refused, *wrong})
    ]
    return "\n".join([*lines, "", f"{len(rows)} graphs, {len(operators)} operators"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
