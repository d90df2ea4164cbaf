"""Models compiled by TVM: run, saved, loaded, checked, run by TVM alone."""

from __future__ import annotations

import gc
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.relax_compile import BIAS, WEIGHT, answer_and_crash, dense_model, expected

import serde
import serde.relay as relay
from serde.bridge.formats import get_bridge
from serde.command.cli import main
from serde.core.weights import ArrayWeight, empty_aligned
from serde.engine import process
from serde.engine.channel import receive, send
from serde.engine.idle import IdleWorkers
from serde.errors import (
    CheckError,
    CompileError,
    FormatError,
    MissingDependency,
    OptionError,
    RelayError,
)
from serde.relax import compiling, exporter, runnable
from serde.testing import BridgeSuite

pytest.importorskip("tvm")

X = np.random.default_rng(4).normal(size=(3, 8)).astype(np.float32)


def agrees(found: list[np.ndarray], x: np.ndarray) -> None:
    """Fail unless both results are those of NumPy."""
    for one, wanted in zip(found, expected(x), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def net() -> serde.Runnable:
    """The net, compiled, with its weights beside the code."""
    return serde.compile(dense_model())


@pytest.fixture(scope="module")
def saved(net: serde.Runnable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return net.save(tmp_path_factory.mktemp("library") / "net.so")


def test_inputs_go_by_position_name_or_mapping(net: serde.Runnable) -> None:
    agrees(net.run(X), X)
    agrees(net.run(data=X), X)
    agrees(net({"data": X[:1]}), X[:1])
    agrees(net.run(X.tolist()), X)


def test_a_library_has_the_names_and_types_of_the_model(net: serde.Runnable) -> None:
    assert (net.inputs, net.outputs) == (("data",), ("prob:0", "fc"))
    assert json.loads(net.target)["mcpu"]  # This processor.
    assert [(each.shape, each.dtype) for each in net.interface.inputs] == [(("N", 8), "float32")]
    assert [each.shape for each in net.interface.outputs] == [("N", 5), ("N", 5)]
    assert [each.name for each in net.interface.weights] == ["fc/weight", "fc/bias"]
    assert repr(net).startswith(
        "Runnable((data: Tensor[(N, 8), float32]) -> (prob:0: Tensor[(N, 5)"
    )


def test_what_does_not_fit_is_refused(net: serde.Runnable) -> None:
    with pytest.raises(OptionError, match="expected inputs data; missing data"):
        net.run()
    with pytest.raises(OptionError, match="found more"):
        net.run(X, X)
    with pytest.raises(OptionError, match="missing data, unknown y"):
        net.run(y=X)
    with pytest.raises(RelayError, match=r"data: expected .* found float32\[3, 4\]"):
        net.run(X[:, :4])
    with pytest.raises(RelayError, match="found float64"):
        net.run(X.astype(np.float64))


def test_a_saved_library_is_loaded(saved: Path) -> None:
    assert sorted(each.name for each in saved.parent.iterdir()) == ["net.so", "net.so.params"]
    loaded = serde.Runnable.load(saved)
    agrees(loaded.run(X), X)


@pytest.mark.wide
def test_a_saved_library_outlives_what_it_was_saved_from(tmp_path: Path) -> None:
    held = serde.compile(dense_model())
    path = held.save(tmp_path / "net.so")
    del held
    gc.collect()
    loaded = serde.Runnable.load(path)
    agrees(loaded.run(X), X)
    again = loaded.save(tmp_path / "again.so")
    assert again.read_bytes() == path.read_bytes()
    agrees(serde.Runnable.load(again).run(X), X)


def test_a_library_that_is_cut_off_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    torn = tmp_path / "torn.so"
    for length in (5000, len(whole) // 2, len(whole) - 1):
        torn.write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"torn\.so"):
            serde.Runnable.load(torn)


@pytest.mark.wide
def test_inputs_may_be_called_like_what_holds_them() -> None:
    one, other = (relay.var(name, shape=(2,)) for name in ("self", "args"))
    function = relay.Function([one, other], relay.subtract(one, other))
    ours = serde.compile(relay.IRModule.from_expr(function))
    (found,) = ours.run(**{"self": np.full(2, 3, np.float32), "args": np.ones(2, np.float32)})
    assert found.tolist() == [2, 2]


@pytest.mark.wide
def test_a_library_that_took_the_place_of_another_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "net.so"
    loaded = []
    for scale in (1.0, 2.0):
        serde.compile(dense_model(scale), freeze_vars=True).save(path)
        loaded.append(serde.Runnable.load(path))
    first, second = (each.run(X)[1] - BIAS for each in loaded)
    np.testing.assert_allclose(second, 2 * first, rtol=1e-5, atol=1e-5)


RUN_BY_TVM_ALONE = """
import sys
import numpy as np, tvm
from tvm import relax
machine = relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
given = [tvm.runtime.tensor(each) for each in np.load(sys.argv[2]).values()]
np.savez(sys.argv[3], *[each.numpy() for each in machine["main"](*given)])
assert "serde" not in sys.modules
"""


@pytest.mark.wide
@pytest.mark.parametrize("frozen", [False, True])
def test_tvm_runs_a_library_without_serde(frozen: bool, tmp_path: Path) -> None:
    serde.compile(dense_model(), freeze_vars=frozen).save(tmp_path / "net.so")
    assert (tmp_path / "net.so.params").exists() is not frozen
    given = [X] if frozen else [X, WEIGHT, BIAS]
    np.savez(tmp_path / "given.npz", *given)
    command = [sys.executable, "-I", "-c", RUN_BY_TVM_ALONE, "net.so", "given.npz", "found.npz"]
    subprocess.run(command, cwd=tmp_path, check=True)
    agrees(list(np.load(tmp_path / "found.npz").values()), X)


@pytest.mark.wide
def test_the_target_c_is_compiled_by_the_compiler(tmp_path: Path) -> None:
    agrees(serde.compile(dense_model(), target="c", freeze_vars=True).run(X), X)


@pytest.mark.wide
def test_options_of_a_target_are_passed_on() -> None:
    import tvm

    options = {"kind": "llvm", "opt-level": 0}
    for target in (options, json.dumps(options), tvm.target.Target(options)):
        plain = serde.compile(dense_model(), target=target)
        assert json.loads(plain.target).items() >= options.items()
        agrees(plain.run(X), X)


@pytest.mark.wide
def test_threads_run_a_model_at_once(net: serde.Runnable) -> None:
    rng = np.random.default_rng(5)
    given = [rng.normal(size=(1 + at % 7, 8)).astype(np.float32) for at in range(200)]
    with ThreadPoolExecutor(8) as pool:
        for x, found in zip(given, pool.map(net.run, given), strict=True):
            agrees(found, x)


@pytest.mark.parametrize(
    ("shared", "told", "wanted"), [("0\n", None, True), ("1\n", None, False), ("0\n", "1", False)]
)
def test_tvm_uses_all_cores_where_none_is_two_processors(
    shared: str, told: str | None, wanted: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "active").write_text(shared)
    monkeypatch.setattr(runnable, "_SHARED_CORES", tmp_path / "active")
    monkeypatch.setenv("TVM_NUM_THREADS", told or "")
    if told is None:
        monkeypatch.delenv("TVM_NUM_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    runnable._use_all_cores()
    found = os.environ.get("TVM_NUM_THREADS")
    assert found == (str(len(os.sched_getaffinity(0))) if wanted else told)


def test_results_own_their_memory(net: serde.Runnable) -> None:
    first = net.run(X)
    kept = [each.copy() for each in first]
    net.run(-X)
    for one, other in zip(first, kept, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_target_is_guessed() -> None:
    with pytest.raises(OptionError, match="knows no target 'nosuch'"):
        serde.compile(dense_model(), target="nosuch")
    with pytest.raises(OptionError, match="tvm_target: expected text, a mapping"):
        serde.compile(dense_model(), target=7)
    with pytest.raises(OptionError, match="unknown option shape"):
        serde.compile(dense_model(), shape=(1, 8))


@pytest.mark.wide
def test_code_for_a_device_that_is_not_there_is_saved_and_not_run(tmp_path: Path) -> None:
    import tvm

    if tvm.cuda().exist:
        pytest.skip("the device is there")
    compiled = serde.compile(dense_model(), target="cuda")
    path = compiled.save(tmp_path / "net.so")
    assert b"__global__ void" in path.read_bytes()
    with pytest.raises(OptionError, match="finds no device cuda here"):
        compiled.run(X)
    with pytest.raises(FormatError, match="cannot load it"):
        serde.Runnable.load(path)


@pytest.mark.wide
def test_a_linker_for_another_machine_is_asked_for_and_used(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"cannot be linked: .*cc names a C"):
        serde.compile(dense_model(), target="raspberry-pi/4b-aarch64")
    linker = tmp_path / "linker"
    linker.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexec c++ "$@"\n')
    linker.chmod(linker.stat().st_mode | stat.S_IXUSR)
    agrees(serde.compile(dense_model(), cc=str(linker)).run(X), X)
    assert "-shared" in (tmp_path / "asked").read_text()


@pytest.mark.wide
def test_a_second_model_is_compiled_in_the_process_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = process._start

    def counting(name: str, *args: Any) -> Any:
        started.append(name)
        return start(name, *args)

    def converting(*args: Any) -> Any:
        started.append("converted")
        return convert(*args)

    convert = exporter.from_relay
    monkeypatch.setattr(process, "_start", counting)
    monkeypatch.setattr(process, "_IDLE", IdleWorkers())
    monkeypatch.setattr(exporter, "from_relay", converting)
    for name in ("first.so", "second.so"):
        path = serde.compile(dense_model()).save(tmp_path / name)
        agrees(serde.Runnable.load(path).run(X), X)
    assert started == ["tvm", "converted", "converted"]


@pytest.mark.wide
def test_a_crash_of_the_compiler_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "answer_compile", answer_and_crash)
    with pytest.raises(CompileError, match=r"tvm: the engine crashed \(signal 11\)"):
        serde.convert(dense_model(), tmp_path / "net.so")
    assert list(tmp_path.iterdir()) == []


class TestLoading:
    """What is loaded from a file."""

    def test_what_is_no_library_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "net.so"
        with pytest.raises(OptionError, match="there is no such file"):
            serde.Runnable.load(path)
        for content in (b"", b"print()", b"\x7fELF" + bytes(60)):
            path.write_bytes(content)
            with pytest.raises(FormatError, match="expected a library that serde compiled"):
                serde.Runnable.load(path)

    def test_weights_must_be_beside_it(self, saved: Path, tmp_path: Path) -> None:
        path = tmp_path / "net.so"
        path.write_bytes(saved.read_bytes())
        with pytest.raises(FormatError, match=r"weights are not there: net\.so\.params"):
            serde.Runnable.load(path)

    def test_weights_of_another_model_are_refused(self, saved: Path, tmp_path: Path) -> None:
        from serde.io.tvm_params import write_params

        path = tmp_path / "net.so"
        path.write_bytes(saved.read_bytes())
        other = {"fc/weight": ArrayWeight(WEIGHT.T.copy()), "fc/bias": ArrayWeight(BIAS)}
        write_params(other, tmp_path / "net.so.params")
        told = r"weight fc/weight: expected float32\[5, 8\], found float32\[8, 5\]"
        with pytest.raises(FormatError, match=told):
            serde.Runnable.load(path)

    @pytest.mark.parametrize("mark", [0, 1])
    def test_weights_written_with_another_library_are_refused(
        self, mark: int, saved: Path, tmp_path: Path
    ) -> None:
        from serde.io.tvm_params import write_params

        path = tmp_path / "net.so"
        path.write_bytes(saved.read_bytes())
        same = {"fc/weight": ArrayWeight(WEIGHT), "fc/bias": ArrayWeight(BIAS)}
        write_params(same, tmp_path / "net.so.params", mark=mark)
        if mark == 0:  # What TVM writes is of no pair.
            agrees(serde.Runnable.load(path).run(X), X)
            return
        with pytest.raises(FormatError, match="were not written with the library"):
            serde.Runnable.load(path)

    @pytest.mark.wide
    def test_cut_off_weights_are_refused(self, saved: Path, tmp_path: Path) -> None:
        path = tmp_path / "net.so"
        path.write_bytes(saved.read_bytes())
        whole = Path(f"{saved}.params").read_bytes()
        (tmp_path / "net.so.params").write_bytes(whole[:-8])
        with pytest.raises(FormatError):
            serde.Runnable.load(path)


@pytest.mark.wide
class TestCommands:
    """The command line."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> str:
        path = tmp_path / "net.onnx"
        serde.from_relay(dense_model(), format="onnx", path=path)
        return str(path)

    def test_a_model_is_compiled_and_checked(
        self, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        target = str(tmp_path / "net.so")
        assert main(["convert", source, target, "--check"]) == 0
        assert "against tvm" in capsys.readouterr().err
        assert main(["check", source, target]) == 0
        agrees(serde.Runnable.load(target).run(X), X)

    def test_fixed_shapes_always_give_the_same_bytes(self, source: str, tmp_path: Path) -> None:
        paths = [tmp_path / "one" / "net.so", tmp_path / "other" / "net.so"]
        for path in paths:
            path.parent.mkdir()
            assert main(["convert", source, str(path), "-q", "--input-shape", "data:3,8"]) == 0
        assert paths[0].read_bytes() == paths[1].read_bytes()

    def test_a_library_of_another_model_fails_the_check(self, source: str, tmp_path: Path) -> None:
        path = tmp_path / "other.so"
        serde.from_relay(dense_model(1.01), format="tvm", path=path, freeze_vars=True)
        assert not (tmp_path / "other.so.params").exists()
        assert main(["check", source, str(path), "-q"]) == 4

    def test_what_cannot_be_done_has_its_code(
        self, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        target = str(tmp_path / "net.so")
        assert main(["convert", source, target, "--target", "nosuch"]) == 2
        assert main(["convert", source, target, "--cc", "/no/such/linker"]) == 1
        assert "cannot be linked" in capsys.readouterr().err
        assert not os.path.exists(target)
        Path(target).write_bytes(b"no library")
        assert main(["check", source, target]) == 3
        assert main(["inspect", target]) == 3

    def test_what_stays_on_the_host_is_compiled(
        self, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        chip = tmp_path / "chip.toml"
        chip.write_text('operators = ["Relu"]\n')
        command = ["partition", source, str(tmp_path / "parts"), "--supported", str(chip)]
        assert main([*command, "--check", "--host", "tvm", "--json"]) == 1
        verdicts = json.loads(capsys.readouterr().out)["verdicts"]
        assert [each["passed"] for each in verdicts] == [True, True]


@pytest.mark.wide
def test_the_host_of_a_split_model_may_be_tvm() -> None:
    from serde.target import onnx, partition_for_onnx

    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    body = relay.nn.relu(relay.nn.leaky_relu(relay.nn.relu(x + y), alpha=0.5) - y)
    module = relay.IRModule.from_expr(relay.Function([x, y], body))
    parts = onnx.build(partition_for_onnx(module, supported=["Relu", "Add"]))
    assert parts.hosts
    rng = np.random.default_rng(6)
    a, b = (rng.normal(size=(2, 3)).astype(np.float32) for _ in range(2))
    found = serde.HybridExecutor(parts, host="tvm").run(a, b)
    np.testing.assert_allclose(found[0], np.maximum(np.maximum(a + b, 0) - b, 0), rtol=1e-6)
    with pytest.raises(OptionError, match="no engine of the host is called 'nothing'"):
        serde.HybridExecutor(parts, host="nothing")


class TestEngine:
    """TVM as an engine of checks."""

    @pytest.mark.wide
    def test_weights_are_shared_and_not_copied(self) -> None:
        from serde.core.report import Report
        from serde.relax.engine import RelaxEngine
        from serde.relax.exporter import from_relay
        from serde.relax.options import RelaxExportOptions

        native = from_relay(dense_model(), RelaxExportOptions(), Report())
        held = [empty_aligned(each.shape, each.dtype) for each in native.weights.values()]
        for array, weight in zip(held, native.weights.values(), strict=True):
            array[...] = weight.array()
        engine = RelaxEngine(native.module, native.inputs, native.outputs, held)
        agrees(engine.run({"data": X}), X)
        held[1] += 1.0
        wanted = expected(X)[1] + 1.0
        np.testing.assert_allclose(engine.run({"data": X})[1], wanted, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("shape", [(), (3, 5)])
    def test_what_comes_through_a_pipe_can_be_shared(self, shape: tuple[int, ...]) -> None:
        import io

        stream = io.BytesIO()
        values = [np.full(shape, at, dtype) for at, dtype in enumerate(("int8", "float64"))]
        send(stream, {"do": "open"}, [ArrayWeight(each) for each in values])
        stream.seek(0)
        header, found = receive(stream)
        assert header == {"do": "open"}
        for one, value in zip(found, values, strict=True):
            assert one.ctypes.data % 64 == 0
            assert one.flags.writeable
            np.testing.assert_array_equal(one, value)

    @pytest.mark.wide
    def test_it_runs_without_optimisations_too(self) -> None:
        from serde.core.report import Report
        from serde.relax.engine import open_model
        from serde.relax.exporter import from_relay
        from serde.relax.options import RelaxExportOptions

        engine = open_model(from_relay(dense_model(), RelaxExportOptions(), Report()))
        plain = engine.unoptimized()
        assert plain is not None
        for each in (engine, plain):
            agrees(each.run({"data": X}), X)
            each.close()

    @pytest.mark.wide
    def test_a_library_that_is_gone_is_no_engine(self, tmp_path: Path) -> None:
        from serde.relax.engine import open_file

        (tmp_path / "net.so").write_bytes(b"\x7fELF")
        with pytest.raises(CheckError, match="expected a library that serde compiled"):
            open_file(tmp_path / "net.so")


@pytest.mark.wide
class TestFormat(BridgeSuite):
    """Libraries as a format that is only written."""

    bridge = get_bridge("tvm")
    operators = ()


def test_without_tvm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from serde.relax import framework

    monkeypatch.setitem(sys.modules, "tvm", None)
    framework.load.cache_clear()
    try:
        with pytest.raises(MissingDependency, match=r"pip install 'serde-relay\[tvm\]'"):
            serde.compile(dense_model())
    finally:
        framework.load.cache_clear()
