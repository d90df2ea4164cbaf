"""Tiers of tests, and what the summary of a run tells besides pytest's own."""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import os
import random
import re
import shutil
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from _pytest.logging import LogCaptureHandler, caplog_handler_key, caplog_records_key, catching_logs
from _pytest.mark.expression import Expression
from _pytest.runner import runtestprotocol
from support.tiers import first_of_grid, first_of_numbers, tier_of


def pytest_configure(config: pytest.Config) -> None:
    """Let processes among which the tests are divided start no threads that share their cores.

    Threads that wait for work in NumPy, MXNet or ONNX Runtime take CPU as those do that have it.
    Folders of tests, which some disks take milliseconds to remove, are made in memory.
    """
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    memory = Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > 8 << 30 and not _runs_slow(config):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def _runs_slow(config: pytest.Config) -> bool:
    """Whether tests are run whose files are too large for memory."""
    return _holds(config.option.markexpr, frozenset(("slow",)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Look for no garbage among tests while they are made."""
    gc.disable()


@functools.cache
def _holds(expression: str, names: frozenset[str]) -> bool:
    """Whether an expression of ``-m`` is true of a test that has marks of these names."""
    return not expression or Expression.compile(expression).evaluate(lambda name: name in names)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Mark as `wide` what a grid repeats; make no test that ``-m`` would discard at once."""
    yield
    calls = metafunc._calls
    if not calls:
        return
    unmarked = [call for call in calls if not tier_of(call.marks)]
    if all([type(value) for value in call.params.values()] == [int] for call in unmarked):
        first = first_of_numbers(len(unmarked))
    else:
        first = first_of_grid([tuple(call.indices.values()) for call in unmarked])
    thin = metafunc.definition.get_closest_marker("thin")
    if thin is not None:
        first = set(sorted(first)[:: thin.args[0]])
    for place, call in enumerate(unmarked):
        if place not in first:
            call.marks.append(pytest.mark.wide.mark)
    _leave_few(metafunc)
    expression = metafunc.config.option.markexpr
    own = frozenset(mark.name for mark in metafunc.definition.iter_markers())
    kept = [
        call for call in calls if _holds(expression, own.union(mark.name for mark in call.marks))
    ]
    # Without parameters pytest would call the function once; of none that stays, one is discarded.
    metafunc._calls = kept or calls[:1]


def _leave_few(metafunc: pytest.Metafunc) -> None:
    """Mark as `slow` most of what is `wide` of a test that is `sparse`, whatever the order."""
    sparse = metafunc.definition.get_closest_marker("sparse")
    if sparse is None:
        return
    whole = tier_of(metafunc.definition.iter_markers())
    for call in metafunc._calls:
        if (tier_of(call.marks) or whole) == "wide" and crc32(call.id.encode()) % sparse.args[0]:
            call.marks.append(pytest.mark.slow.mark)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `wide` what needs a browser, which comes with that tier."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()) and not tier_of(item.iter_markers()):
            item.add_marker(pytest.mark.wide)


def pytest_collection_finish() -> None:
    """Spare the collector of garbage the tests themselves, which stay to the end."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Tell the process that counts of a test once: each message takes longer than most tests."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            report.keywords = {}
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    """Let an engine that waits serve the next test: none does where the environment differs."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@functools.cache
def _has_compiled_coremltools() -> bool:
    spec = importlib.util.find_spec("coremltools")
    roots = [] if spec is None else spec.submodule_search_locations or []
    return any(True for root in roots for _ in Path(root).glob("libmilstoragepython*"))


_NEEDS_COMPILED = re.compile(
    "Blob(Reader|Writer) not loaded|Unable to load libmodelpackage"
    "|No module named 'coremltools.libmilstoragepython'"
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip what fails for want of coremltools' compiled parts, where no wheel has them."""
    report = yield
    reason = str(call.excinfo.value) if report.failed and call.excinfo is not None else ""
    if _NEEDS_COMPILED.search(reason) and not _has_compiled_coremltools():
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "Skipped: coremltools has no compiled parts here")
    return report


@functools.cache
def _generators(module: ModuleType) -> list[np.random.Generator]:
    return [each for each in vars(module).values() if isinstance(each, np.random.Generator)]


_bits = random.Random()


_running: list[pytest.Item] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, Any, Any]:
    """Let the system's own source of random bits be a seeded one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serde.relay.op.random.seeded.secrets.randbits", _bits.getrandbits)
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tell a fixture of each test which that is: to ask pytest for it takes longer.

    What a processor whose sums saturate cannot judge is skipped.
    """
    _running[:] = [item]
    if item.get_closest_marker("exact_sums") is not None:
        importlib.import_module("support.runtime").skip_saturated_sums()


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """Let whatever draws draw the same in every run of a test, whichever tests ran before it.

    Distributions are judged with a chance of error that is small for one test and no longer
    small for the thousands of a run.
    """
    (item,) = _running
    seed = crc32(item.name.encode())
    _bits.seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    for each in _generators(item.getparent(pytest.Module).obj):
        each.bit_generator.state = type(each.bit_generator)(seed).state
    seeders = {
        "mxnet": lambda mxnet: mxnet.random.seed(seed),
        "onnxruntime": lambda onnxruntime: onnxruntime.set_seed(seed),
        "torch": lambda torch: torch.manual_seed(seed),
    }
    for name, set_seed in seeders.items():
        if name in sys.modules:
            set_seed(sys.modules[name])


@pytest.fixture(scope="session")
def plain_mxnet() -> Iterator[Any]:
    """MXNet without MKL-DNN, in one process for all tests of this one: it loads for long."""
    from support.oracle import PlainMxnet

    oracle = PlainMxnet()
    yield oracle
    oracle.close()


@pytest.fixture
def caplog(request: pytest.FixtureRequest) -> Iterator[pytest.LogCaptureFixture]:
    """Records of a test that asks for them; pytest's plug-in looks at all loggers in each test."""
    node, handler = request.node, LogCaptureHandler()
    node.stash[caplog_handler_key] = handler
    node.stash[caplog_records_key] = {"call": handler.records}
    with catching_logs(handler):
        found = pytest.LogCaptureFixture(node, _ispytest=True)
        yield found
        found._finalize()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell how many operators of MIL were written, and which no other implementation judged."""
    found: dict[str, set[str]] = {"mil_exported": set(), "mil_judged": set()}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            found.get(name, set()).update(value)
    exported = found["mil_exported"]
    if exported:
        unjudged = sorted(exported - found["mil_judged"])
        judged = len(exported) - len(unjudged)
        terminalreporter.write_line(
            f"operators of MIL that were written: {len(exported)}; judged by coremltools, PyTorch "
            f"or ONNX Runtime: {judged} ({judged / len(exported):.1%}); "
            f"not judged: {' '.join(unjudged) or 'none'}"
        )
