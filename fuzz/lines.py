"""Tells which lines of readers and codecs the seeds, their mutants and the findings run.

    python -m fuzz.lines --format onnx [--runs 3000] [--seed N] [--missing]

Every seed but the many samples is read, and of each family some are written back; mutants and
the findings of ``fuzz/corpus`` are read. Lines that no file can reach are left out, by the reasons
in :data:`fuzz.unreached.UNREACHED`. Takes the package coverage.
"""

from __future__ import annotations

import argparse
import itertools
import random
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import coverage

from fuzz.case import Case
from fuzz.forks import fork_instead
from fuzz.judge import FORMS, INSPECT, READ, Judge, scratch
from fuzz.mutators.document import Pool
from fuzz.mutators.mutate import learn, mutate
from fuzz.seeds import FORMATS, HERE, Seeds, load_seeds
from fuzz.unreached import UNREACHED, unreached_lines

__all__ = ["OPERATORS", "READERS", "measure", "modules", "runs"]

ROOT: Final = Path(__file__).parents[1] / "serde"

READERS: Final[Mapping[str, Sequence[str]]] = {
    "coreml": [
        "coreml/reader.py", "coreml/blobs.py", "coreml/protos.py", "coreml/elements.py",
        "coreml/model.py", "coreml/pipeline.py", "coreml/interface/interface.py",
        "coreml/interface/network_inputs.py", "coreml/mlprogram/constants.py",
        "coreml/neuralnetwork/layer_weights.py", "coreml/neuralnetwork/message_view.py",
        "coreml/neuralnetwork/parameters.py",
    ],
    "io": [
        "io/archives.py", "io/contained.py", "io/cursor.py", "io/messages.py", "core/parsing.py",
        "io/packed.py", "io/pairs.py", "io/tvm_params.py", "io/wire.py",
    ],
    "mxnet": [
        "mxnet/codec.py", "mxnet/symbol_json.py", "mxnet/params.py", "mxnet/arrays.py",
        "mxnet/attributes.py", "mxnet/upgrades.py", "mxnet/model.py",
    ],
    "nnef": [
        "nnef/codec.py", "nnef/dat.py", "nnef/graphs.py", "nnef/model.py", "nnef/text/apart.py",
        "nnef/text/apart_worker.py", "nnef/text/flat.py", "nnef/text/parser.py",
        "nnef/text/scan.py", "nnef/text/signs.py", "nnef/text/tokens.py",
    ],
    "onnx": [
        "onnx/codec.py", "onnx/reader.py", "onnx/external.py", "io/sparse.py", "onnx/text.py",
        "onnx/elements.py", "onnx/attributes.py", "onnx/interface.py",
        "onnx/model.py",
    ],
    "own": [
        "checking/data.py", "fleet/batching/ledger.py", "fleet/batching/manifest.py",
        "fleet/batching/stored.py", "fleet/serving/config.py", "fleet/stores/archives.py",
        "fleet/stores/signatures.py", "io/staging.py", "target/storage.py", "onnx/profile.py",
    ],
    "relax": [
        "relax/codec.py", "relax/loading.py", "relax/model.py",
        "relax/reflection.py", "relax/text/*.py",
    ],
    "relay": [
        "relayfile/codec.py", "relayfile/json_attributes.py", "relayfile/json_graph.py",
        "relayfile/json_kinds.py", "relayfile/model.py",
        "relay/text/*parser.py", "relay/text/metadata.py", "relay/text/composite.py",
        "relay/text/containers.py", "relay/text/lexer.py", "relay/text/literals.py",
        "relay/text/names.py",
    ],
    "tflite": [
        "tflite/codec.py", "tflite/flatbuffer.py", "tflite/interface.py", "tflite/model.py",
        "tflite/quantization.py", "tflite/reader.py", "tflite/schema.py", "tflite/sparsity.py",
        "tflite/versions.py",
    ],
    "torch": [
        "torch/codec.py", "torch/model.py", "torch/quantization.py", "torch/strided.py",
        "io/zips.py", "torch/tensors.py", "torch/pt2/*.py", "torch/script/attributes.py",
        "torch/script/inputs.py", "torch/script/packed.py", "torch/script/reader.py",
        "torch/script/source.py", "torch/script/vetting.py",
    ],
}  # fmt: skip
"""The codecs and readers of each format: the modules between its bytes and its native model.

Where one module reads and writes, all of it counts; modules that only write are not here, nor
are the walks and tables that make Relay of a model. What formats share is a row of its own, which
the files of all formats run: of ``serde/io`` the modules that read; those that put files in place
(atomic, staging, directories) meet no bytes of others, and are tested by failing system calls.
"""

OPERATORS: Final = "{format}/**/ops/**/*.py"
"""The tables of converters, importers and exporters alike; a row of its own."""

_LARGE: Final = frozenset(
    {"program", "network", "archive", "folder", "sample", "strict", "node", "operator", "simple"}
)
"""Families of seeds of which only some are run: the many samples of operators."""

_IO_RUNS: Final = 1500
"""Runs of each format for what they share."""

Lines: TypeAlias = dict[Path, tuple[set[int], set[int]]]
"""Of each file the lines that can run, and those of them that never did."""

_MISSING_WIDTH: Final = 4000


def modules(patterns: Iterable[str]) -> list[Path]:
    """Return the files that patterns below ``serde`` stand for."""
    return sorted({path for each in patterns for path in ROOT.glob(each)})


def runs(format: str, count: int, seed: int) -> Iterator[tuple[Case, str, bool]]:
    """Yield what is run: a case, what is written, and whether the format is told by content."""
    if format == "io":
        for each in FORMATS:
            yield from itertools.islice(runs(each, 0, seed), _IO_RUNS)
        return
    rng = random.Random(f"{format} {seed} lines")
    every = load_seeds(format)
    seeds = Seeds(every)
    drawn = seeds.sample(400, rng)
    pool = Pool()
    for case in drawn:
        learn(case, pool, rng)
    for case in every:
        if case.name.partition("-")[0] not in _LARGE:
            yield case, READ, rng.randrange(2) == 0
            if rng.randrange(4) == 0:
                yield case, INSPECT, False
    for case in drawn:
        yield case, rng.choice((READ, INSPECT)), rng.randrange(2) == 0
        for target, (kind, _, _) in FORMS.items():
            if kind == format:
                yield case, target, False
    for path in sorted((HERE / "corpus" / format).glob("*.zip")):
        yield Case.unpack(path.stem, path.read_bytes()), READ, False
    for _ in range(count):
        yield mutate(seeds.choose(rng), pool, rng), READ, rng.randrange(5) == 0


def measure(cases: Iterable[tuple[Case, str, bool]], paths: Sequence[Path]) -> Lines:
    """Run cases; return of each file its lines, and those that never ran.

    What runs in processes that are forked counts as well.
    """
    told: set[tuple[str, str, str]] = set()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch()) as folder:
        found = coverage.Coverage(
            data_file=f"{folder}/coverage", data_suffix=True, include=list(map(str, paths))
        )
        found.set_option("run:patch", ["_exit"])
        found.start()
        fork_instead()
        judge = Judge(Path(folder) / "run", memory=False, seconds=60)
        for case, target, detect in cases:
            wrong = judge.run(case, target, detect=detect)
            if wrong is not None and wrong.key not in told:
                told.add(wrong.key)
                print(f"{case.name} -> {target}: {wrong.kind} {wrong.place} {wrong.message[:200]}")
        found.stop()
        found.save()
        found.combine([folder])
        lines = [(path, found.analysis2(str(path))) for path in paths]
    return {path: (set(each[1]), set(each[3])) for path, each in lines}


def _row(name: str, covered: int, total: int, missing: Collection[int] = ()) -> str:
    share = 100 * covered / total if total else 100.0
    text = f"{name:44} {total:6} {total - covered:6} {share:6.1f} %"
    return f"{text}   {_spans(missing)}"[:_MISSING_WIDTH].rstrip()


def _spans(lines: Collection[int]) -> str:
    """Return lines as ranges of those that follow one another."""
    found: list[list[int]] = []
    for line in sorted(lines):
        if found and line <= found[-1][1] + 2:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in found)


def _report(lines: Lines, paths: Sequence[Path], name: str, *, missing: bool) -> None:
    """Print a row for each module, and their sum."""
    covered = total = left_out = 0
    for path in paths:
        module = str(path.relative_to(ROOT))
        statements, lacking = lines[path]
        out = unreached_lines(path, UNREACHED.get(module, {}))
        left_out += len(statements & out)
        statements, lacking = statements - out, lacking - out
        covered += len(statements) - len(lacking)
        total += len(statements)
        if missing and statements:
            print(_row(module, len(statements) - len(lacking), len(statements), lacking))
    print(_row(name, covered, total), f"  ({left_out} lines that no file reaches)")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.lines", description="Covered lines.")
    parser.add_argument("--format", choices=tuple(READERS), required=True)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missing", action="store_true", help="list the lines that never run")
    given = parser.parse_args()
    readers = modules(READERS[given.format])
    operators = modules([OPERATORS.format(format=given.format)])
    found = measure(runs(given.format, given.runs, given.seed), readers + operators)
    _report(found, readers, f"{given.format}: readers", missing=given.missing)
    _report(found, operators, f"{given.format}: operators", missing=False)


if __name__ == "__main__":
    main()
