"""Runs one after the other in a process that another takes the place of when it dies."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from fuzz.case import Case
from fuzz.forks import fork_instead
from fuzz.judge import FORMS, INSPECT, READ, Finding, Judge, limit_memory, scratch
from fuzz.keeping import Keeper, shrink
from fuzz.mutators.document import Pool
from fuzz.mutators.mutate import learn, mutate
from fuzz.seeds import Seeds, load_seeds

__all__ = ["Session", "replay"]

ADDRESSES = 6 * 2**30
"""Bytes that a process of runs may address."""

HANG = 60
"""Seconds after which a run that nothing ends is a finding."""

POOL_SEEDS = 300
"""Seeds of which parts are kept."""


_READS = 3
"""How many runs only read for each one that writes a certain format."""


def targets(to: str, rng: random.Random) -> list[str]:
    """Return what one run writes."""
    return [rng.choice([READ] * _READS + kinds(to))] if to == "one" else kinds(to)


def kinds(to: str) -> list[str]:
    """Return what any run may write."""
    if to == "none":
        return [READ]
    return [READ, INSPECT, *FORMS] if to in ("one", "all") else [to]


class Session:
    """Runs of one format.

    Args:
        format: Which.
        seed: Of all that is drawn.
        to: What is written: ``none``, ``one``, ``all`` or a format.
        out: Where findings are kept.
        only: A text that is in the names of the seeds to take.
        shrink: Whether findings are made smaller.

    Attributes:
        keeper: Keeps what is found.
        accepted: How many runs gave a model.
    """

    def __init__(
        self, format: str, seed: int, to: str, out: Path, *, only: str = "", shrink: bool = True
    ) -> None:
        self.format = format
        self.seed = seed
        self.to = to
        self.shrink = shrink
        self.seeds = Seeds([each for each in load_seeds(format) if only in each.name])
        if not self.seeds.cases:
            raise SystemExit(f"{format}: no seed is called {only!r}")
        self.keeper = Keeper(out / format)
        self.accepted = 0
        fork_instead()
        with tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch()) as folder:
            Judge(Path(folder) / "run").warm(self.seeds.cases[0], kinds(to))

    def run(self, first: int, runs: int, seconds: float) -> int:
        """Run until so many are done or so much time is over; return how many were."""
        end = time.monotonic() + seconds
        number = first
        while number < first + runs and time.monotonic() < end:
            number = self._run_process(number, first + runs, end)
        return number - first

    def _run_process(self, number: int, last: int, end: float) -> int:
        """Run in one process until it is done or dies; return the number of the next run."""
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=scratch()))
        known = set(self.keeper.findings)
        process = context.Process(
            target=self._work, args=(sender, folder, known, number, last, end), daemon=True
        )
        process.start()
        sender.close()
        try:
            while True:
                try:
                    kind, number, *found = receiver.recv()
                except EOFError:
                    break
                if kind == "found":
                    self._keep(*found)
                elif kind == "done":
                    self.accepted += found[0]
            process.join()
            if process.exitcode:
                self._keep_crash(folder, number, process.exitcode)
                number += 1
        finally:
            process.kill()
            process.join()
            shutil.rmtree(folder, ignore_errors=True)
        return number

    def _work(
        self,
        sender: Connection,
        folder: Path,
        known: set[tuple[str, str, str]],
        number: int,
        last: int,
        end: float,
    ) -> None:
        limit_memory(ADDRESSES)
        trace = open(folder / "trace", "w")  # noqa: SIM115
        pool = Pool()
        rng = random.Random(f"{self.format} {self.seed} pool")
        for case in self.seeds.sample(POOL_SEEDS, rng):
            learn(case, pool, rng)
        judge = Judge(folder / "run")
        accepted = 0
        while number < last and time.monotonic() < end:
            sender.send(("run", number))
            rng = random.Random(f"{self.format} {self.seed} {number}")
            seed = self.seeds.choose(rng)
            wanted = targets(self.to, rng)
            detect = rng.randrange(10) == 0
            # Now and then an honest one, which has to pass too.
            case = mutate(seed, pool, rng) if rng.randrange(50) else seed
            for target in wanted:
                faulthandler.dump_traceback_later(HANG, exit=True, file=trace)
                base = 0.0
                found = judge.run(case, target, detect=detect)
                if found is not None and found.kind == "slow":
                    judge.run(seed, target)  # Which imports what is needed.
                    judge.run(seed, target)
                    base = judge.seconds
                    found = judge.run(case, target, base=base, detect=detect)
                elif found is not None and found.kind == "memory":
                    found = judge.run(case, target, detect=detect)  # Without what was imported.
                faulthandler.cancel_dump_traceback_later()
                if found is None:
                    accepted += judge.gave_model
                else:
                    self._tell(sender, judge, number, case, found, known, base, detect)
            number += 1
        sender.send(("done", number, accepted))

    def _tell(
        self,
        sender: Connection,
        judge: Judge,
        number: int,
        case: Case,
        found: Finding,
        known: set[tuple[str, str, str]],
        base: float,
        detect: bool,
    ) -> None:
        """Send a finding that is new, made smaller."""
        if found.key in known:
            return
        known.add(found.key)
        if self.shrink:
            faulthandler.cancel_dump_traceback_later()
            case, found = shrink(judge, case, found, base=base, detect=detect)
        sender.send(("found", number, found, case, number))

    def _keep(self, found: Finding, case: Case, number: int) -> None:
        self.keeper.keep(found, case, {"run": number, "random": self.seed, "to": self.to})

    def _keep_crash(self, folder: Path, number: int, code: int) -> None:
        """Keep the files of the run in which the process died."""
        source = folder / "run" / "in"
        trace = (folder / "trace").read_text() if (folder / "trace").exists() else ""
        paths = sorted(source.iterdir()) if source.exists() else []
        if not paths:
            print(f"{self.format} #{number}: died with {code} before any run", file=sys.stderr)
            return
        lines = [line for line in trace.splitlines() if "/serde/" in line]
        place = lines[0].strip() if lines else ""
        paths.sort(key=lambda each: not each.name.startswith("m"))
        case = Case.of_paths(self.format, "crash", paths)
        found = Finding(
            "crash", f"exit {code}", place, "the process died or hung", "", trace[:6000]
        )
        self._keep(found, case, number)


def replay(path: Path, to: str) -> int:
    """Run a finding again; return how many of its targets still fail."""
    facts_path = path.with_suffix(".json")
    facts = json.loads(facts_path.read_text()) if facts_path.exists() else {}
    case = Case.unpack(path.stem, path.read_bytes())
    failed = 0
    limit_memory(ADDRESSES)
    fork_instead()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch()) as folder:
        judge = Judge(Path(folder) / "run")
        told = facts.get("target")
        wanted = [told] if told and to == "one" else targets(to, random.Random(0))
        judge.warm(case, wanted)
        for target in wanted:
            found = judge.run(case, target)
            print(
                f"{path} -> {target}: {'fine' if found is None else found.trace or found.message}"
            )
            failed += found is not None
    return failed
