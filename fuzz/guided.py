"""Fuzzing guided by coverage: libFuzzer through Atheris, with the mutators of the formats.

    python -m fuzz.guided --format onnx [--to none|one|all|FORMAT] [--seconds 60] [--seed N]

An input of libFuzzer is a case, packed. What covers new lines of serde is kept in
``fuzz/.corpus`` and goes on from there next time. A finding does not end the session: it is made
smaller and kept, as ``python -m fuzz`` does; one that kills the process is libFuzzer's to keep.
Targets of OSS-Fuzz, where a finding has to be raised, are in ``fuzz/targets``.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final, NoReturn

import atheris

with atheris.instrument_imports(include=["serde"]):
    from fuzz.case import Case
    from fuzz.forks import fork_instead
    from fuzz.judge import READ, Finding, Judge, scratch
    from fuzz.keeping import Keeper, shrink
    from fuzz.mutators.document import Pool
    from fuzz.mutators.mutate import learn, mutate
    from fuzz.runner import kinds, targets
    from fuzz.seeds import FORMATS, Seeds, load_seeds

__all__ = ["Defect", "Target", "fuzz"]

HERE: Final = Path(__file__).parent
MOST_BYTES: Final = 200_000
SEEDS: Final = 400
"""Seeds that a session begins with, and that parts are taken of."""


class Defect(Exception):
    """A finding, for those who want it raised."""


class Target:
    """What libFuzzer runs.

    Args:
        format: The format to read; all if empty.
        to: What is written; see :func:`fuzz.runner.targets`.
        seed: Of all that is drawn.
        keeper: Keeps findings; if left out, they are raised.
    """

    def __init__(self, format: str, to: str, seed: int, keeper: Keeper | None = None) -> None:
        self.format = format
        self.to = to
        self.keeper = keeper
        self.runs = 0
        self.pool = Pool()
        rng = random.Random(f"{format} {seed}")
        every = [case for each in ([format] if format else FORMATS) for case in load_seeds(each)]
        self.seeds = Seeds(every).sample(SEEDS, rng)
        for case in self.seeds:
            learn(case, self.pool, rng)
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch())
        self.judge = Judge(Path(self.folder.name) / "run")
        with atheris.instrument_imports(include=["serde"]):
            fork_instead()
            for each in {case.format: case for case in self.seeds}.values():
                self.judge.warm(each, kinds(to))

    def mutate(self, data: bytes, most: int, seed: int) -> bytes:
        """Return another input, as libFuzzer asks for it."""
        case = self._unpack(data) or self.seeds[seed % len(self.seeds)]
        made = mutate(case, self.pool, random.Random(seed)).pack()
        return made if len(made) <= most else data

    def run(self, data: bytes) -> None:
        """Run an input.

        Raises:
            Defect: Something is wrong, and nobody keeps it.
        """
        case = self._unpack(data)
        if case is None:
            return
        self.runs += 1
        for target in targets(self.to, random.Random(zlib.crc32(data))):
            found = self.judge.run(case, target)
            if found is not None:
                self._tell(case, found)

    def _tell(self, case: Case, found: Finding) -> None:
        if self.keeper is None:
            raise Defect(f"{found.kind} at {found.place}\n{found.trace or found.message}")
        if found.key not in self.keeper.findings:
            case, found = shrink(self.judge, case, found, base=0.0, detect=False)
            self.keeper.keep(found, case, {"to": self.to})

    def _unpack(self, data: bytes) -> Case | None:
        try:
            case = Case.unpack("guided", data)
        except (zipfile.BadZipFile, ValueError, StopIteration, OSError, KeyError, TypeError):
            return None
        safe = all(not Path(name).is_absolute() and ".." not in name for name in case.files)
        return case if safe and case.files and case.format in FORMATS else None


def fuzz(target: Target, arguments: list[str]) -> NoReturn:
    """Run libFuzzer, which ends the process."""

    def mutator(data: bytes, most: int, seed: int) -> bytes:
        return target.mutate(data, most, seed)

    atheris.Setup(arguments, target.run, custom_mutator=mutator)
    atheris.Fuzz()
    sys.exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.guided", description="Guided fuzzing.")
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("--to", default="none", choices=("none", "one", "all", READ, *FORMATS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=-1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / ".findings")
    given = parser.parse_args()
    keeper = Keeper(given.out / given.format)
    target = Target(given.format, given.to, given.seed, keeper)
    corpus = HERE / ".corpus" / given.format
    corpus.mkdir(parents=True, exist_ok=True)
    for case in target.seeds:
        packed = case.pack()
        (corpus / case.digest).write_bytes(packed)

    options: list[Any] = [
        f"-max_total_time={given.seconds}", f"-runs={given.runs}", f"-seed={given.seed}",
        f"-max_len={MOST_BYTES}", "-timeout=120", "-rss_limit_mb=0", "-print_final_stats=1",
        f"-artifact_prefix={corpus.parent}/{given.format}-", "-verbosity=0",
    ]  # fmt: skip
    fuzz(target, [sys.argv[0], *options, str(corpus)])


if __name__ == "__main__":
    main()
