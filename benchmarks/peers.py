"""Measures serde beside the tools that people use instead, and writes docs/peers.md.

    python benchmarks/peers.py install [--python 3.8=python3.8 ...] [name ...]
    python benchmarks/peers.py run [--rounds 3] [name ...]
    python benchmarks/peers.py page
    python benchmarks/peers.py source NET FORMAT FOLDER

A peer is a script in benchmarks/peers, called source_target_tool.py, which names its packages as
inline metadata and converts its first argument to its second; the third is the shape of the
input. Each has an environment of its own in .venv-peers. Peers and serde convert the same files
in turn, in new processes; figures are medians of CPU seconds and peaks of memory, over the
whole process. A peer that fails or takes over ten minutes is listed with what it said; one that
takes over three seconds for 1,000 nodes is not asked for 10,000. ``source`` writes what is read.
"""

from __future__ import annotations

import argparse
import html
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "benchmarks" / "peers"
ENVIRONMENTS = ROOT / ".venv-peers"
FIGURES = ENVIRONMENTS / "figures.json"
PAGE, PICTURE = ROOT / "docs" / "peers.md", ROOT / "docs" / "pictures" / "peers.svg"
METADATA = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///$", re.MULTILINE)
SHAPES = {"chain-1000": "1,8,8,8", "chain-10000": "1,8,8,8", "resnet50": "1,3,224,224"}
SUFFIXES = {
    "onnx": ".onnx", "mxnet": "-symbol.json", "torch": ".pt2", "nnef": "_nnef", "tflite": ".tflite",
    "coreml": ".mlpackage", "relax": "_relax",
}  # fmt: skip
LIMIT = 600
"""CPU seconds of a process."""
SLOW = 3
"""CPU seconds for 1,000 nodes beyond which a tool is not asked for 10,000."""
TITLES = {
    "onnx": "ONNX", "mxnet": "MXNet", "torch": "PyTorch", "nnef": "NNEF", "tflite": "TFLite",
    "coreml": "Core ML", "relax": "Relax",
}  # fmt: skip


@dataclass(frozen=True)
class Peer:
    """A tool that converts one format to another.

    Attributes:
        path: Its script.
        requires: The Python that it takes, as ``3.11``.
        packages: What is installed.
        bare: What is installed without what it asks for.
    """

    path: Path
    requires: str
    packages: tuple[str, ...]
    bare: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Peer:
        """Read the metadata of a script."""
        found = METADATA.search(path.read_text())
        if found is None:
            raise ValueError(f"{path}: no metadata")
        values = tomllib.loads(re.sub(r"(?m)^# ?", "", found[1]))
        bare = values.get("without-dependencies", ())
        return cls(path, values["requires-python"], tuple(values["dependencies"]), tuple(bare))

    @property
    def tool(self) -> str:
        """What it is called."""
        return self.path.stem.split("_", 2)[2]

    @property
    def pair(self) -> tuple[str, str]:
        """The formats."""
        source, target, _ = self.path.stem.split("_", 2)
        return source, target

    @property
    def python(self) -> Path:
        """The interpreter of its environment, which peers of the same packages share."""
        names = sorted(re.split(r"[=<>]", each)[0] for each in (*self.packages, *self.bare))
        return ENVIRONMENTS / "-".join([self.requires, *names]) / "bin" / "python"

    def nets(self) -> Sequence[str]:
        """What it converts: chains too where it goes from ONNX to ONNX."""
        return list(SHAPES) if self.pair == ("onnx", "onnx") else ["resnet50"]


@dataclass(frozen=True)
class Figure:
    """What a conversion took.

    Attributes:
        net: What was converted.
        pair: From which format to which.
        tool: By what.
        cpu: Median of the CPU seconds of the process and its children; None where it failed.
        peak: Greatest resident bytes.
        nodes: Nodes of the result.
        size: Bytes of the result.
        fault: What a tool that failed said.
    """

    net: str
    pair: tuple[str, str]
    tool: str
    cpu: float | None = None
    peak: int = 0
    nodes: int = 0
    size: int = 0
    fault: str = ""


def peers(names: Sequence[str]) -> list[Peer]:
    """Return the peers whose scripts' names hold one of these, or all."""
    found = [Peer.read(path) for path in sorted(SCRIPTS.glob("*.py"))]
    return [each for each in found if not names or any(name in each.path.stem for name in names)]


def install(found: Sequence[Peer], pythons: dict[str, str]) -> None:
    """Make the environments; one that is there stays."""
    for peer in found:
        folder = peer.python.parents[1]
        done = folder / "installed"
        if done.exists():
            continue
        python = pythons.get(peer.requires, f"python{peer.requires}")
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pip = [peer.python, "-m", "pip", "install", "-q", "--no-compile"]
        steps = [[*pip, *peer.packages], *([[*pip, "--no-deps", *peer.bare]] if peer.bare else [])]
        codes = [subprocess.run(step, check=False).returncode for step in steps]
        if any(codes):
            print(f"{peer.path.stem}: not installed", file=sys.stderr)
            continue
        done.touch()


# Measuring.


def measure(command: Sequence[str | Path], target: Path, rounds: int) -> tuple[list, str]:
    """Run a command a few times; return CPU seconds and bytes of each, or its fault."""
    taken: list[tuple[float, int]] = []
    for _ in range(rounds):
        remove(target)
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen(
                list(map(str, command)), stdout=told, stderr=told, cwd=target.parent,
                preexec_fn=limit,
            )  # fmt: skip
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            told.seek(0)
            lines = told.read().decode(errors="replace").strip().splitlines() or [""]
        if process.returncode or not target.exists():
            return [], f"exit {process.returncode}: {lines[-1][:200]}"
        cpu = usage.ru_utime + usage.ru_stime
        taken.append((cpu, usage.ru_maxrss * 1024))
    return taken, ""


def limit() -> None:
    """End a process, and what it starts, after the limit."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def chain(path: Path, count: int) -> None:
    """Write a chain of Conv, Relu, Add and Tanh."""
    import numpy as np
    from onnx import helper, numpy_helper, save

    nodes, weights, x = [], [], "x"
    values = np.random.default_rng(0).normal(0, 0.1, (count // 4, 8, 8, 1, 1)).astype(np.float32)
    for i, value in enumerate(values):
        weights.append(numpy_helper.from_array(value, f"w{i}"))
        nodes += [
            helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"]),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
            helper.make_node("Add", [f"r{i}", x], [f"a{i}"]),
            helper.make_node("Tanh", [f"a{i}"], [f"t{i}"]),
        ]
        x = f"t{i}"
    ends = [helper.make_tensor_value_info(name, 1, [1, 8, 8, 8]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def source(net: str, kind: str, folder: Path) -> Path:
    """Return the file of a net in a format, which is made if it is not there.

    Another process makes it: what this one holds counts as memory of those that it starts.
    """
    path = folder / f"{net}{SUFFIXES[kind]}"
    if not path.exists():
        subprocess.run([sys.executable, __file__, "source", net, kind, folder], check=True)
    return path


def make_source(net: str, kind: str, folder: Path) -> None:
    """Write the file of a net in a format."""
    path = folder / f"{net}{SUFFIXES[kind]}"
    if net.startswith("chain"):
        chain(path, int(net.partition("-")[2]))
    elif kind == "mxnet":
        from run import build

        build(net, folder / net)
    else:
        command = serde_command(source(net, "mxnet", folder), path, "mxnet", SHAPES[net])
        # Old peers read nothing newer.
        options = ["--opset", "13"] if kind == "onnx" else []
        subprocess.run([*command, *options], check=True)


def serde_command(start: Path, target: Path, kind: str, shape: str) -> list[str | Path]:
    """Return the command of a conversion by serde."""
    shapes = ["--input-shape", shape] if kind == "mxnet" else []
    to = ["--to", "torch"] if target.suffix == ".pt2" else []
    # What is compared computes in float32.
    to += ["--compute-precision", "float32"] if target.suffix == ".mlpackage" else []
    return [sys.executable, "-m", "serde", "convert", start, target, "--overwrite", "-q", *to,
            *shapes]  # fmt: skip


def nodes_of(path: Path) -> int:
    """Count the nodes of a file."""
    command = [sys.executable, "-m", "serde", "inspect", "--json", path]
    done = subprocess.run(command, capture_output=True, check=False)
    return json.loads(done.stdout).get("nodes") or 0 if done.returncode == 0 else 0


def size_of(path: Path) -> int:
    """Count the bytes of a file or a folder."""
    inside = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in inside if each.is_file())


def figure(net: str, pair: tuple[str, str], tool: str, command: Sequence[str | Path],
           target: Path, rounds: int) -> Figure:  # fmt: skip
    """Measure one tool."""
    taken, fault = measure(command, target, rounds)
    if fault:
        return Figure(net, pair, tool, fault=fault)
    cpu, peak = zip(*taken, strict=True)
    median = statistics.median
    return Figure(net, pair, tool, median(cpu), max(peak), nodes_of(target),
                  size_of(target))  # fmt: skip


def run(names: Sequence[str], rounds: int) -> None:
    """Measure the peers whose environments are there, and serde beside them."""
    known = {(each.net, each.pair, each.tool): each for each in stored()}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        found = [peer for peer in peers(names) if peer.python.exists()]
        order = list(SHAPES).index
        pairs = {(net, peer.pair) for peer in found for net in peer.nets()}
        for net, pair in sorted(pairs, key=lambda key: (key[1], order(key[0]))):
            start = source(net, pair[0], folder)
            target = folder / "out" / f"{net}{SUFFIXES[pair[1]]}"
            target.parent.mkdir(exist_ok=True)
            commands = {"serde": serde_command(start, target, pair[0], SHAPES[net])} | {
                peer.tool: [peer.python, peer.path, start, target, SHAPES[net]]
                for peer in found
                if peer.pair == pair and net in peer.nets()
            }
            for tool, command in commands.items():
                smaller = known.get(("chain-1000", pair, tool))
                if net == "chain-10000" and smaller and (smaller.cpu or 0) > SLOW:
                    each = Figure(net, pair, tool, fault=f"not run: {smaller.cpu:.1f} s at 1,000")
                else:
                    each = figure(net, pair, tool, command, target, rounds)
                known[net, pair, tool] = each
                print(each)
                FIGURES.write_text(
                    json.dumps([asdict(found) for found in known.values()], indent=1)
                )


def stored() -> list[Figure]:
    """Read the figures of the runs before."""
    if not FIGURES.exists():
        return []
    return [
        Figure(**{**each, "pair": tuple(each["pair"])}) for each in json.loads(FIGURES.read_text())
    ]


# The page.


def groups(figures: Sequence[Figure]) -> Iterator[tuple[str, Figure, list[Figure]]]:
    """Give title, serde's figure and those of its peers, by pair of formats and net."""
    keys = dict.fromkeys((each.pair, each.net) for each in figures)
    for pair, net in sorted(keys, key=lambda key: (key[0] != ("onnx", "onnx"), *key)):
        same = [each for each in figures if (each.pair, each.net) == (pair, net)]
        own = next(each for each in same if each.tool == "serde")
        others = sorted(
            (each for each in same if each is not own), key=lambda each: each.cpu or math.inf
        )
        yield f"{TITLES[pair[0]]} to {TITLES[pair[1]]}, {net}", own, others


def page() -> None:
    """Write the page and its picture."""
    figures = stored()
    parts = [INTRODUCTION]
    for title, own, others in groups(figures):
        parts.append(f"\n## {title}\n\n{HEAD}")
        parts += [row(each, own) for each in (own, *others)]
    PAGE.write_text("\n".join(parts) + "\n")
    PICTURE.write_text(picture(figures))


def row(each: Figure, own: Figure) -> str:
    """A line of a table."""
    if each.cpu is None:
        told = each.fault if each.fault.startswith("not run") else f"fails: `{each.fault}`"
        return f"| {each.tool} | {told} | | | | |"
    name = "**serde**" if each is own else each.tool
    ratio = "" if each is own or own.cpu is None else f"{each.cpu / own.cpu:.2g}"
    return (f"| {name} | {each.cpu:.2f} | {ratio} | {each.peak / 1e6:.0f} | {each.nodes or '?'} "
            f"| {each.size / 1e6:.1f} |")  # fmt: skip


def picture(figures: Sequence[Figure]) -> str:
    """Return bars of the CPU seconds of peers by those of serde, on a logarithmic scale."""
    bars = [
        (f"{title}: {each.tool}", each.cpu / own.cpu)
        for title, own, others in groups(figures)
        for each in others
        if each.cpu and own.cpu
    ]
    least, most = (math.log2(bound(value for _, value in bars)) for bound in (min, max))
    left, width, step = 330, 430, 22
    scale = (width - 50) / (max(most, 1) - min(least, -1))
    zero = left - min(least, -1) * scale
    height = 54 + step * len(bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width} {height}" '
        f'width="{left + width}" height="{height}" font-family="system-ui, sans-serif" '
        'font-size="12">',
        "<title>CPU time of other converters, by that of serde</title>",
        f'<rect width="{left + width}" height="{height}" rx="12" fill="#f6f7f9"/>',
        f'<text x="{zero:.0f}" y="24" text-anchor="middle" fill="#1d2733">as long as serde</text>',
        f'<path d="M{zero:.0f} 32V{height - 10}" stroke="#5c6875"/>',
    ]
    for i, (name, ratio) in enumerate(bars):
        y, end = 40 + step * i, zero + math.log2(ratio) * scale
        color = "#2563eb" if ratio >= 1 else "#d97706"
        lines += [
            f'<text x="{left - 10}" y="{y + 12}" text-anchor="end" fill="#1d2733">'
            f"{html.escape(name)}</text>",
            f'<rect x="{min(zero, end):.0f}" y="{y}" width="{max(abs(end - zero), 1):.0f}" '
            f'height="16" rx="3" fill="{color}"/>',
            f'<text x="{max(zero, end) + 5:.0f}" y="{y + 12}" fill="#5c6875">{ratio:.2g}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


HEAD = (
    "| tool | CPU seconds | by serde's | peak MB | nodes | MB written |\n|---|--:|--:|--:|--:|--:|"
)
INTRODUCTION = """# Beside other converters

What serde and the tools that people use instead take for the same files on one machine of two
cores: whole processes, which start Python and import what they need.
`python benchmarks/peers.py install`, `run` and `page` make this page; each tool has an environment
of its own, with the versions that its script in `benchmarks/peers` names. Tools differ in what they
do on the way: onnx only copies, optimisers fuse nodes. Where serde takes longer, the ratio is below
one.

![CPU time of other converters, by that of serde](pictures/peers.svg)"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["install", "run", "page", "source"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", action="append", default=[], metavar="3.8=PATH")
    given = parser.parse_intermixed_args()
    sys.path.insert(0, str(ROOT))
    if given.action == "install":
        install(peers(given.names), dict(each.split("=", 1) for each in given.python))
    elif given.action == "run":
        run(given.names, given.rounds)
    elif given.action == "source":
        net, kind, folder = given.names
        make_source(net, kind, Path(folder))
    else:
        page()


if __name__ == "__main__":
    main()
