"""Engines in a process of their own, with a stand-in for ONNX Runtime that misbehaves."""

from __future__ import annotations

import importlib.util
import json
import operator
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiers import first_of

from serde.bridge.formats import get_bridge
from serde.core.weights import numpy_dtype
from serde.engine import process
from serde.engine.base import run_engine
from serde.engine.process import EngineEnded, ProcessEngine
from serde.errors import CheckError
from serde.mxnet.engine import MxnetProgram, open_process

X = np.array([[0.5, -1.0, 2.0]], "float32")

STAND_IN = """
import ctypes, os, signal, sys, time
from types import SimpleNamespace as Some

__version__ = "0.1"
class SessionOptions(Some):
    def add_session_config_entry(self, key, value):
        pass



class GraphOptimizationLevel:
    ORT_ENABLE_ALL = 99


class InferenceSession:
    def __init__(self, path, options, providers):
        self.path = path
        {open}

    def get_inputs(self):
        return [Some(name="x", type="tensor(any)")]

    get_outputs = get_inputs

    def run(self, names, fed):
        {run}
        return [fed["x"]]
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a package called onnxruntime where the process finds it first."""

    def write(*, open: str = "pass", run: str = "pass") -> Path:
        packages = tmp_path / "packages"
        packages.mkdir()
        (packages / "onnxruntime.py").write_text(STAND_IN.format(open=open, run=run))
        monkeypatch.syspath_prepend(str(packages))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(packages), *sys.path]))
        return packages

    return write


def opened(path: str = "m.onnx") -> ProcessEngine:
    engine = get_bridge("onnx").file_engine(Path(path))
    assert isinstance(engine, ProcessEngine)
    return engine


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.wide
@pytest.mark.parametrize(
    "dtype",
    first_of(["float16", "bfloat16", "int64", "bool", "uint8", "int4"], ["bfloat16", "int4"]),
)
def test_arrays_of_every_dtype_go_there_and_back(stand_in: Any, dtype: str) -> None:
    stand_in()
    engine = opened()
    value = np.array([[0, 1, 1], [1, 0, 0]]).astype(numpy_dtype(dtype))
    (found,) = run_engine(engine, {"x": value})
    assert found.dtype == value.dtype
    np.testing.assert_array_equal(found, value)
    engine.close()


@pytest.mark.wide
@pytest.mark.parametrize("shape", first_of([(), (0, 3), (3_000_000,)], [(), (0, 3)]))
def test_arrays_of_any_size_go_there_and_back(stand_in: Any, shape: tuple[int, ...]) -> None:
    stand_in()
    engine = opened()
    value = np.asarray(np.random.default_rng(0).standard_normal(shape)).astype("float32")
    (found,) = run_engine(engine, {"x": value})
    assert found.shape == shape
    np.testing.assert_array_equal(found, value)
    assert found.flags.writeable
    engine.close()


@pytest.mark.wide
@pytest.mark.parametrize(
    ("crash", "message"),
    [
        ("ctypes.string_at(0)", r"the engine crashed \(signal 11\)$"),
        ("os.kill(os.getpid(), signal.SIGKILL)", r"the engine was killed \(signal 9\), as a"),
        ("os.write(2, b'terminate called\\n'); os.abort()", r"\(signal 6\): terminate called$"),
        ("os._exit(3)", r"the engine ended \(exit code 3\)$"),
    ],
)
@pytest.mark.parametrize("when", ["open", "run"])
def test_a_crash_is_told(stand_in: Any, crash: str, message: str, when: str) -> None:
    stand_in(**{when: crash})
    with pytest.raises(CheckError, match=rf"^onnxruntime( 0\.1)?: .*{message}"):
        run_engine(opened(), {"x": X})


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("raise MemoryError", "onnxruntime 0.1 failed: out of memory"),
        (
            "raise OSError('Failed to allocate memory for requested buffer of size 2457600000')",
            "onnxruntime 0.1 failed: out of memory (for 2.5 GB at once)",
        ),
        ("os.write(2, b'what():  std::bad_alloc'); os.abort()", "onnxruntime 0.1: out of memory"),
    ],
    ids=["python", "arena", "abort"],
)
def test_an_engine_without_memory_says_so(stand_in: Any, failure: str, message: str) -> None:
    stand_in(run=failure)
    engine = opened()
    pid = engine._worker.pid
    with pytest.raises(EngineEnded, match=f"^{re.escape(message)}$") as raised:
        engine.run({"x": X})
    assert isinstance(raised.value.__cause__, MemoryError)
    assert not is_there(pid)


@pytest.mark.wide
def test_a_crashed_engine_leaves_no_process(stand_in: Any) -> None:
    stand_in(run="os.abort()")
    engine = opened()
    pid = engine._worker.pid
    for _ in range(2):
        with pytest.raises(CheckError, match="the engine"):
            run_engine(engine, {"x": X})
    assert not is_there(pid)


@pytest.mark.wide
def test_an_engine_that_refuses_an_input_goes_on(stand_in: Any) -> None:
    stand_in(run="assert fed['x'].shape == (1, 3), 'shape'")
    engine = opened()
    with pytest.raises(CheckError, match=r"^onnxruntime 0.1 failed: AssertionError: shape$"):
        run_engine(engine, {"x": X.T})
    np.testing.assert_array_equal(run_engine(engine, {"x": X})[0], X)
    engine.close()


@pytest.mark.wide
def test_an_output_that_is_no_tensor_is_named(stand_in: Any) -> None:
    stand_in(run="return [[{1: 0.5}]]")
    with pytest.raises(CheckError, match="output x: expected numbers, found list"):
        run_engine(opened(), {"x": X})


@pytest.mark.wide
def test_a_closed_engine_runs_no_more(stand_in: Any) -> None:
    stand_in()
    engine = opened()
    engine.close()
    engine.close()
    with pytest.raises(CheckError, match=r"^onnxruntime 0\.1: the engine has ended$"):
        engine.run({"x": X})


@pytest.mark.wide
def test_a_closed_engine_waits_for_the_next_model_alone(stand_in: Any) -> None:
    stand_in()
    first, second = opened(), opened()
    pid = first._worker.pid
    first.close()
    third, fourth = opened(), opened()
    assert third._worker.pid == pid
    assert len({each._worker.pid for each in (second, third, fourth)}) == 3
    np.testing.assert_array_equal(run_engine(third, {"x": X})[0], X)


@pytest.mark.wide
def test_an_engine_that_failed_at_last_does_not_wait(stand_in: Any) -> None:
    stand_in(run="assert fed['x'].shape == (1, 3), 'shape'")
    engine = opened()
    pid = engine._worker.pid
    with pytest.raises(CheckError, match="shape"):
        run_engine(engine, {"x": X.T})
    engine.close()
    assert not is_there(pid)


@pytest.mark.wide
def test_a_process_that_ended_while_it_waited_is_replaced(stand_in: Any) -> None:
    stand_in()
    engine = opened()
    pid = engine._worker.pid
    engine.close()
    os.kill(pid, signal.SIGKILL)
    engine = opened()
    assert engine._worker.pid != pid
    np.testing.assert_array_equal(run_engine(engine, {"x": X})[0], X)
    assert not is_there(pid)


@pytest.mark.wide
def test_a_process_that_is_started_ahead_takes_the_next_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = []
    start = process._start
    monkeypatch.setattr(process, "_start", lambda *args: started.append(1) or start(*args))
    for prepare, count in ((os.getpid, 1), (os.abort, 2)):  # One that crashes is replaced.
        process.start_ahead(f"ahead {count}", prepare)
        answer = process.call_in_process(f"ahead {count}", operator.is_, {"x": 1})
        assert answer is False
    assert len(started) == 3


@pytest.mark.wide
def test_a_process_in_other_surroundings_is_left_alone(
    stand_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in()
    engine = opened()
    pid = engine._worker.pid
    engine.close()
    with monkeypatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "3")
        assert opened()._worker.pid != pid
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        assert opened()._worker.pid != pid
    with monkeypatch.context() as patch:  # As in a copy of this process that was forked.
        own = os.getpid()
        patch.setattr(os, "getpid", lambda: own + 1)
        assert opened()._worker.pid != pid
    assert opened()._worker.pid == pid


def test_a_process_that_waits_for_long_ends(
    stand_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = stand_in()
    with (packages / "onnxruntime.py").open("a") as file:
        file.write("import serde.engine.worker\nserde.engine.worker.PATIENCE_SECONDS = 0.01\n")
    engine = opened()
    pid = engine._worker.pid
    np.testing.assert_array_equal(run_engine(engine, {"x": X})[0], X)
    engine.close()
    deadline = time.monotonic() + 60
    while is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_there(pid)


@pytest.mark.wide
def test_an_engine_that_nobody_holds_ends(stand_in: Any) -> None:
    stand_in()
    pid = opened()._worker.pid
    assert not is_there(pid)


@pytest.mark.wide
def test_a_crash_of_mxnet_is_told() -> None:
    if importlib.util.find_spec("mxnet") is None:
        pytest.skip("mxnet is not installed")
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "tanh", "name": "y", "inputs": [[0, 0, 0]]},
    ]
    symbol = {"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}
    program = MxnetProgram(json.dumps(symbol), {}, {}, {"x": "float32"}, ("y",), False)
    engine = open_process(program)
    np.testing.assert_allclose(engine.run({"x": X})[0], np.tanh(X), rtol=1e-6)
    os.kill(engine._worker.pid, signal.SIGSEGV)
    with pytest.raises(CheckError, match=r"^mxnet 1\.\S+: the engine crashed \(signal 11\)$"):
        engine.run({"x": X})


# The command line.


def write_onnx(path: Path) -> Path:
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def started(folder: Path, *args: str) -> subprocess.Popen[str]:
    """The command line in a folder, with an empty folder for temporary files."""
    (folder / "tmp").mkdir()
    (folder / "here").mkdir()
    write_onnx(folder / "here" / "m.onnx")
    return subprocess.Popen(
        [sys.executable, "-m", "serde", *args],
        cwd=folder / "here",
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Run in the background of a script, the tests ignore Ctrl-C, and what they start would.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def assert_nothing_left(folder: Path) -> None:
    assert sorted(path.name for path in (folder / "here").iterdir()) == ["m.onnx"]
    assert sorted((folder / "tmp").iterdir()) == []


@pytest.mark.wide
@pytest.mark.parametrize("when", ["open", "run"])
def test_a_crash_ends_a_conversion_with_code_5(stand_in: Any, tmp_path: Path, when: str) -> None:
    stand_in(**{when: "'o.onnx' in self.path and ctypes.string_at(0)"})
    process = started(tmp_path, "convert", "m.onnx", "o.onnx", "--check")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 5
    assert "the engine crashed (signal 11)" in err
    assert_nothing_left(tmp_path)


@pytest.mark.wide
def test_what_an_engine_prints_stays_out_of_the_json(stand_in: Any, tmp_path: Path) -> None:
    stand_in(run="print('hello'); sys.stdout.flush(); os.write(1, b'noise'); os.write(2, b'noise')")
    process = started(tmp_path, "check", "m.onnx", "m.onnx", "--json")
    out, err = process.communicate(timeout=60)
    assert json.loads(out)["exit_code"] == 0
    assert "noise" not in err


HANG = """
        import pathlib
        pathlib.Path("{pid}").write_text(str(os.getpid()))
        while True:
            ctypes.CDLL(None).sleep(600)
"""


@pytest.mark.wide
@pytest.mark.parametrize(
    "number", first_of([signal.SIGINT, signal.SIGTERM, signal.SIGKILL], [signal.SIGTERM])
)
def test_an_engine_that_hangs_ends_with_the_command(
    stand_in: Any, tmp_path: Path, number: signal.Signals
) -> None:
    pid_file = tmp_path / "pid"
    stand_in(run=textwrap.dedent(HANG).replace("\n", "\n        ").format(pid=pid_file))
    process = started(tmp_path, "convert", "m.onnx", "o.onnx", "--check")
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    engine = int(pid_file.read_text())
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number != signal.SIGKILL else -number)
    while is_there(engine) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_there(engine)
    if number != signal.SIGKILL:
        assert_nothing_left(tmp_path)


@pytest.mark.wide
def test_an_interrupt_during_imports_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    found = os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, "-m", "serde", "formats"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{found}"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
