"""Tells which lines of readers and codecs the seeds and their mutants run.

    python -m fuzz.lines --format onnx [--runs 3000] [--missing]

Seeds are read and written back, mutants are read; so are the findings of ``fuzz/corpus``. Takes
the package coverage.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import coverage

from fuzz.case import Case
from fuzz.judge import READ, Judge, scratch
from fuzz.mutators.document import Pool
from fuzz.mutators.mutate import learn, mutate
from fuzz.seeds import FORMATS, HERE, Seeds, load_seeds

__all__ = ["READERS", "measure"]

ROOT: Final = Path(__file__).parents[1] / "serde"

READERS: Final[Mapping[str, Sequence[str]]] = {
    "coreml": [
        "coreml/reader.py", "coreml/blobs.py", "coreml/messages.py", "coreml/elements.py",
        "coreml/value.py", "coreml/pipeline.py", "coreml/interface/*.py", "io/messages.py",
        "io/wire.py",
    ],
    "mxnet": [
        "mxnet/codec.py", "mxnet/symbol_json.py", "mxnet/params.py", "mxnet/sparse.py",
        "mxnet/arrays.py", "mxnet/attributes.py", "mxnet/upgrades.py", "io/archives.py",
        "io/cursor.py", "io/packed.py",
    ],
    "nnef": ["nnef/codec.py", "nnef/dat.py", "nnef/text/*.py", "nnef/graphs.py"],
    "onnx": [
        "onnx/codec.py", "onnx/reader.py", "onnx/external.py", "onnx/sparse.py", "onnx/text.py",
        "onnx/data_files.py", "onnx/elements.py", "onnx/attributes.py", "onnx/declarations.py",
        "onnx/messages.py", "io/messages.py", "io/wire.py",
    ],
    "relax": ["relax/codec.py", "relax/folder.py", "relax/text/*.py", "relax/values.py"],
    "relay": [
        "relayfile/codec.py", "relayfile/json_*.py", "relay/text/*parser.py",
        "relay/text/lexer.py", "relay/text/literals.py", "relay/text/metadata.py",
        "io/tvm_params.py",
    ],
    "torch": [
        "torch/codec.py", "torch/packed.py", "torch/strided.py", "torch/tensors.py",
        "torch/pt2/*.py", "torch/script/*.py",
    ],
}  # fmt: skip
"""The modules that parse the bytes of each format."""


def measure(format: str, runs: int) -> coverage.Coverage:
    """Return the coverage of a format's readers by seeds, mutants and findings."""
    include = [str(ROOT / each) for each in READERS[format]]
    found = coverage.Coverage(data_file=None, include=include)
    found.start()
    rng = random.Random(f"{format} lines")
    seeds = Seeds(load_seeds(format))
    pool = Pool()
    for case in seeds.sample(300, rng):
        learn(case, pool, rng)
    corpus = sorted((HERE / "corpus" / format).glob("*.zip"))
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch()) as folder:
        judge = Judge(Path(folder) / "run", memory=False, seconds=60)
        for case in seeds.sample(500, rng):
            judge.run(case, READ, detect=rng.randrange(2) == 0)
            judge.run(case, format)
        for path in corpus:
            judge.run(Case.unpack(path.stem, path.read_bytes()), READ)
        for _ in range(runs):
            judge.run(mutate(seeds.choose(rng), pool, rng), READ, detect=rng.randrange(5) == 0)
    found.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.lines", description="Covered lines.")
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--missing", action="store_true", help="list the lines that never run")
    given = parser.parse_args()
    measure(given.format, given.runs).report(file=sys.stdout, show_missing=given.missing)


if __name__ == "__main__":
    main()
