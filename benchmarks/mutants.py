"""Changes serde in small ways, one at a time, and counts the changes that the tests notice.

    python benchmarks/mutants.py record            # which test runs which line; from 3.12 on
    python benchmarks/mutants.py list [--seed 13] [--count 100]
    python benchmarks/mutants.py run [--seed 13] [--count 100] [--only N ...]

A mutant differs from serde by one operator, constant, condition, pair of arguments or statement
in a function of an operator, converter, pass, codec or walk (`AREAS` in benchmarks/mutations.py);
no function has two. For each one, `run` first takes the tests of `make test` that execute the
changed lines, some of each test function first, until one fails. If none does, it takes the tests
of the other tiers of the test functions that execute the lines. `record` tells which these are:
it runs all of `make test` and a part of each function of the rest. A mutant that is noticed by
neither is listed with its difference: either it means the same, or a test is missing.

Mutants are made in a copy of the repository in a temporary directory. Tests run in a process that
is forked from one which has loaded the libraries, but not serde.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import math
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mutations import ROOT, Mutant, chosen

RECORD = ROOT / ".pytest_cache" / "mutants"
"""What `record` writes: a file for each process of pytest."""

SHARE = 8
"""Of the tests of a function in the later tiers, one in so many is recorded."""

SECONDS = {"first": 90, "rest": 180}
"""CPU seconds of recorded tests that are run at most for a mutant, by tier."""

MEMORY = 2**34
"""Bytes that a process of tests may address."""

# Recording: pytest loads this file as a plug-in.

_lines: set[tuple[int, int]] = set()
_codes: dict[int, types.CodeType] = {}
_numbers: dict[tuple[int, int], int] = {}


def _watch_lines() -> None:
    """Have each line of serde told once a test."""
    import importlib._bootstrap_external as loaders

    monitoring = sys.monitoring
    monitoring.use_tool_id(monitoring.COVERAGE_ID, "mutants")
    folder = f"{ROOT}/serde/"

    def on_line(code: types.CodeType, line: int) -> Any:
        _lines.add((id(code), line))
        return monitoring.DISABLE

    def watch(code: types.CodeType) -> None:
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                _codes[id(each)] = each
                monitoring.set_local_events(monitoring.COVERAGE_ID, each, monitoring.events.LINE)
                watch(each)

    def exec_module(self: Any, module: types.ModuleType) -> None:
        code = self.get_code(module.__name__)
        if code.co_filename.startswith(folder):
            watch(code)
        exec(code, module.__dict__)

    monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, on_line)
    loaders._LoaderBasics.exec_module = exec_module


def _tell(*values: Any) -> None:
    name = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open(RECORD / name, "ab") as file:
        pickle.dump(values, file)


def _tier(item: Any) -> str:
    return next((name for name in ("slow", "wide") if item.get_closest_marker(name)), "first")


def _cpu() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Recorder:
    """Tells which lines each test executes, and what CPU it takes."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep all tests of the first tier, and a part of each function of the others."""
        later = defaultdict(list)
        for item in items:
            if _tier(item) != "first":
                later[item.nodeid.partition("[")[0]].append(item.nodeid)
        _tell("later", dict(later))
        kept = set()
        for names in later.values():
            count = min(len(names), max(3, math.ceil(len(names) / SHARE)))
            kept |= {names[i * len(names) // count] for i in range(count)}
        items[:] = [each for each in items if _tier(each) == "first" or each.nodeid in kept]

    def pytest_collection_finish(self) -> None:
        """Tell what collection took."""
        _tell("collected", _cpu(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Tell of a test that fails without a mutant."""
        if report.failed:
            _tell("failed", report.nodeid)

    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Tell of a test."""
        _lines.clear()
        sys.monitoring.restart_events()
        before = _cpu()
        yield
        cpu = _cpu() - before
        known = len(_numbers)
        places = sorted(_numbers.setdefault(line, len(_numbers)) for line in _lines)
        new = [
            (str(Path(_codes[code].co_filename).relative_to(ROOT)), line)
            for code, line in itertools.islice(_numbers, known, None)
        ]
        packed = zlib.compress(np.array(places, np.int32).tobytes(), 1)
        _tell("test", item.nodeid, _tier(item), cpu, new, packed)


def pytest_load_initial_conftests() -> None:
    """Have lines told before conftest.py loads modules; pytest calls this of a plug-in."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        _watch_lines()


def pytest_configure(config: Any) -> None:
    """Register the recorder in the processes that run tests."""
    import pytest

    if "PYTEST_XDIST_WORKER" in os.environ:
        wrapped = pytest.hookimpl(wrapper=True)
        Recorder.pytest_runtest_protocol = wrapped(Recorder.pytest_runtest_protocol)
        last = pytest.hookimpl(trylast=True)
        Recorder.pytest_collection_modifyitems = last(Recorder.pytest_collection_modifyitems)
        config.pluginmanager.register(Recorder())


def record() -> None:
    """Run the tests and record them."""
    shutil.rmtree(RECORD, ignore_errors=True)
    RECORD.mkdir(parents=True)
    path = f"{ROOT / 'benchmarks'}:{ROOT}"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow"]
    # Plug-ins of the command line come after conftest.py in xdist's processes.
    own = {"PYTHONPATH": path, "PYTEST_PLUGINS": "mutants"}
    subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, check=False)


@dataclass
class Recorded:
    """What `record` found.

    Attributes:
        first: The tests of the first tier by what executes: (file, line).
        later: The test functions that execute a line in a later tier.
        functions: The tests of the later tiers by function.
        cpu: CPU seconds of each test.
        failed: The tests that fail as it is, and are passed over.
    """

    first: dict[tuple[str, int], list[str]]
    later: dict[tuple[str, int], set[str]]
    functions: dict[str, list[str]]
    cpu: dict[str, float]
    failed: set[str]

    @classmethod
    def read(cls, wanted: set[tuple[str, int]]) -> Recorded:
        """Read what concerns some lines."""
        found = cls(defaultdict(list), defaultdict(set), {}, {}, set())
        for path in sorted(RECORD.iterdir()):
            lines: list[tuple[str, int]] = []
            with open(path, "rb") as file, contextlib.suppress(EOFError):
                while True:
                    kind, *values = pickle.load(file)
                    if kind == "later":
                        found.functions = values[0]
                    elif kind == "failed":
                        found.failed.add(values[0])
                    elif kind == "test":
                        name, tier, cpu, new, packed = values
                        lines += new
                        found.cpu[name] = cpu
                        for place in np.frombuffer(zlib.decompress(packed), np.int32):
                            if (line := lines[place]) in wanted:
                                if tier == "first":
                                    found.first[line].append(name)
                                found.later[line].add(name.partition("[")[0])
        return found

    def of(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Return the tests that execute a mutant, in the order in which they are run, by tier."""
        for first, last in (mutant.lines, mutant.body):
            lines = [(mutant.path, line) for line in range(first, last + 1)]
            names = {name for line in lines for name in self.first.get(line, ())}
            functions = {name for line in lines for name in self.later.get(line, ())}
            if names or functions:
                break
        rest = [name for each in functions for name in self.functions.get(each, ())]
        return self._ordered(names, "first"), self._ordered(rest, "rest")

    def _ordered(self, names: Iterable[str], tier: str) -> list[str]:
        """One test of each function, cheap ones first, then the next of each, within the limit."""
        mean = sum(self.cpu.values()) / max(len(self.cpu), 1)
        groups = defaultdict(list)
        for name in sorted(set(names) - self.failed, key=lambda name: zlib.crc32(name.encode())):
            groups[name.partition("[")[0]].append(name)
        ordered = sorted(groups.values(), key=lambda group: self.cpu.get(group[0], mean))
        found, left = [], float(SECONDS[tier])
        for name in itertools.chain.from_iterable(itertools.zip_longest(*ordered)):
            if name is not None and left > 0:
                left -= self.cpu.get(name, mean)
                found.append(name)
        return found


# Running tests on a mutant.


class Selection:
    """Lets pytest make the tests that are named, and no others."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self.functions = {name.partition("[")[0] for name in self.names}

    def pytest_pycollect_makeitem(self, collector: Any, name: str) -> list[Any] | None:
        """Pass over functions of which no test is named."""
        known = f"{collector.nodeid}::{name}" in self.functions
        return None if known or not name.startswith("test") else []

    def pytest_generate_tests(self, metafunc: Any) -> Iterator[None]:
        """Pass over parameters that are not named."""
        yield
        prefix = metafunc.definition.nodeid
        calls = [each for each in metafunc._calls if f"{prefix}[{each.id}]" in self.names]
        metafunc._calls = calls or metafunc._calls


def tests_fail(copy: Path, names: Sequence[str], seconds: int) -> str:
    """Run tests in a fork until one fails; return the one that did, or nothing.

    Args:
        copy: The repository.
        names: The tests.
        seconds: CPU seconds after which they are taken to hang.
    """
    files = list(dict.fromkeys(name.partition("::")[0] for name in names))
    told = copy / "failed"
    told.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            _run_tests(copy, files, names, told)
        finally:
            os._exit(3)
    deadline = time.monotonic() + 20 * seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return told.read_text() if told.exists() else "the process ended"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "the tests hang"


def _run_tests(copy: Path, files: list[str], names: Sequence[str], told: Path) -> None:
    import pytest

    os.setpgid(0, 0)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path[:] = [str(copy), *(each for each in sys.path if each != str(ROOT))]
    quiet = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(quiet, each)
    Selection.pytest_generate_tests = pytest.hookimpl(wrapper=True)(Selection.pytest_generate_tests)
    failed: list[str] = []

    class Listener:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                failed.append(report.nodeid)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                failed.append(f"collection of {report.nodeid}")

    options = ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore"]
    code = pytest.main([*options, *files], plugins=[Selection(names), Listener()])
    told.write_text(failed[0] if failed else "" if code == 0 else f"pytest ended with {code}")
    os._exit(0)


def preload() -> None:
    """Load the libraries, MXNet among them, and forget serde, which the forks load anew."""
    for name in ("pytest", "numpy", "onnx", "onnx.reference", "onnxruntime", "hypothesis",
                 "scipy.stats", "coremltools", "click", "rich.console"):  # fmt: skip
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    importlib.import_module("serde.compat").import_mxnet()
    for name in [name for name in sys.modules if name.partition(".")[0] == "serde"]:
        del sys.modules[name]


@dataclass
class Result:
    """How a mutant fared: the test that failed, by tier."""

    mutant: Mutant
    first: str = ""
    rest: str = ""
    counts: tuple[int, int] = (0, 0)


def judge(mutant: Mutant, recorded: Recorded, copy: Path) -> Result:
    """Run the tests on a mutant."""
    first, rest = recorded.of(mutant)
    result = Result(mutant, counts=(len(first), len(rest)))
    target, original = copy / mutant.path, ROOT / mutant.path
    target.write_text(mutant.source)
    try:
        for part in (first[:12], first[12:60], first[60:]):
            if part and not result.first:
                result.first = tests_fail(copy, part, 60 + 2 * SECONDS["first"])
        if rest and not result.first:
            result.rest = tests_fail(copy, rest, 60 + 2 * SECONDS["rest"])
    finally:
        shutil.copy2(original, target)
    return result


def run(mutants: Sequence[tuple[int, Mutant]]) -> None:
    """Judge mutants and print what was found."""
    lines = {
        (mutant.path, line)
        for _, mutant in mutants
        for first, last in (mutant.lines, mutant.body)
        for line in range(first, last + 1)
    }
    recorded = Recorded.read(lines)
    preload()
    caught: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*"))
        (copy / ".pytest_cache").mkdir()
        for each in (ROOT / ".pytest_cache").glob("onnx-suite*"):
            shutil.copy2(each, copy / ".pytest_cache")
        tests = recorded.of(mutants[0][1])[0][:5]
        if fault := tests_fail(copy, tests, 600):
            sys.exit(f"without a mutant: {fault}")
        for number, mutant in mutants:
            result = judge(mutant, recorded, copy)
            tier = "first" if result.first else "rest" if result.rest else "nothing"
            caught[tier] += 1
            print(f"{number} {tier}: {mutant.path} {mutant.function}: {mutant.kind} "
                  f"(of {result.counts[0]} and {result.counts[1]} tests: "
                  f"{result.first or result.rest or 'none fails'})")  # fmt: skip
            if not result.first:
                print(mutant.difference)
            sys.stdout.flush()
    noticed = caught["first"] + caught["rest"]
    print(f"{len(mutants)} mutants; the whole suite notices {noticed}, make test {caught['first']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["record", "list", "run"])
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants")
    given = parser.parse_args()
    if given.action == "record":
        record()
        return
    mutants = list(enumerate(chosen(given.seed, given.count)))
    if given.only is not None:
        mutants = [each for each in mutants if each[0] in given.only]
    if given.action == "run":
        run(mutants)
        return
    for number, mutant in mutants:
        print(f"{number} {mutant.path} {mutant.function}: {mutant.kind}\n{mutant.difference}")


if __name__ == "__main__":
    main()
