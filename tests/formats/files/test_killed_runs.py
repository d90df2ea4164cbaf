"""What a run leaves that is killed while it replaces a model, and what the next run makes of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
import serde.io.staging
import serde.relay as relay
from serde.bridge.formats import get_bridge
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.errors import FormatError, OptionError
from serde.io.atomic import atomic_group, atomic_write
from serde.io.directories import atomic_directory

ROOT = Path(serde.__file__).parents[1]
WIDTH = 32
# Every call by which commit, sweep and cleaning change a directory.
CALLS = ("replace", "rename", "unlink", "rmdir", "mkdir", "link")


class Killed(BaseException):
    """Ends a run and whatever it would do afterwards."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], Any]], bool]:
    """Runs a function whose n-th change of a directory, and all after it, do not happen."""
    locks: set[int] = set()
    try_lock, close = serde.io.staging.try_lock, os.close

    def noted(fd: int) -> bool | None:
        locks.add(fd)
        return try_lock(fd)

    def closing(fd: int) -> None:
        locks.discard(fd)
        close(fd)

    def run(number: int, function: Callable[[], Any]) -> bool:
        left = [number]

        def dying(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return call(*args, **kwargs)

            return wrapped

        with monkeypatch.context() as patches:
            patches.setattr(serde.io.staging, "try_lock", noted)
            patches.setattr(os, "close", closing)
            for name in CALLS:
                patches.setattr(os, name, dying(getattr(os, name)))
            try:
                function()
            except Killed:
                for lock in [*locks]:
                    closing(lock)  # As the system does when a process ends.
                return True
        return False

    return run


def net(seed: int, function: str) -> relay.RelayModel:
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(1, WIDTH))
    weight = relay.var("w", shape=(WIDTH, WIDTH))
    body = {"tanh": relay.tanh, "relu": relay.nn.relu}[function](relay.nn.dense(x, weight))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, weight], body)))
    values = rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)
    meta = relay.ModelMeta(inputs=("x",), outputs=("y",))
    return relay.RelayModel(mod, {"w": ArrayWeight(values)}, meta)


@cache
def native_of(format: str, seed: int, function: str = "tanh") -> Any:
    bridge = get_bridge(format)
    return bridge.from_relay(net(seed, function), bridge.bind_export({}), report=Report())


def facts(path: Path) -> tuple[str, float]:
    """The activation of a net and its first weight, as serde reads it."""
    found = serde.to_relay(path, input_shapes={"x": (1, WIDTH)})
    ops = [op for op in ("tanh", "nn.relu") if op in found.mod.astext()]
    return ops[0], float(next(iter(found.params.values())).array().flat[0])


def facts_by_onnx(path: Path) -> tuple[str, float]:
    """The same by onnx's own reader."""
    model = onnx.load(path)
    ops = {node.op_type for node in model.graph.node}
    weight = numpy_helper.to_array(model.graph.initializer[0])
    return ("tanh" if "Tanh" in ops else "nn.relu"), float(weight.flat[0])


@dataclass
class Pair:
    """Two models and the place where one replaces the other."""

    path: Path
    format: str
    options: dict[str, Any]
    read: Callable[[Path], tuple[str, float]]

    def save(self, *model: Any) -> None:
        bridge = get_bridge(self.format)
        options = bridge.bind_export(self.options)
        bridge.save(native_of(self.format, *model), self.path, options)

    def facts(self, *model: Any) -> tuple[str, float]:
        """What is read of a model that stands in a place of its own."""
        self.save(*model)
        return self.read(self.path)


def onnx_pair(folder: Path) -> Pair:
    options = {"save_as_external_data": True}
    return Pair(folder / "m.onnx", "onnx", options, facts_by_onnx)


def state(pair: Pair) -> tuple[str, float] | str:
    """What is read of a pair, or how it is refused."""
    try:
        return pair.read(pair.path)
    except FormatError as error:
        return str(error).split(": ")[1]


PAIRS: dict[str, Callable[[Path], Pair]] = {
    "onnx": onnx_pair,
    "mxnet": lambda folder: Pair(folder / "m-symbol.json", "mxnet", {}, facts),
    "relay": lambda folder: Pair(folder / "m.relay", "relay", {}, facts),
    "coreml": lambda folder: Pair(folder / "m.mlpackage", "coreml", {}, facts),
}
CHANGES = {"another graph": (2, "relu"), "other weights": (2, "tanh")}
# More changes of directories than a run of a kind makes.
COUNTS = {"onnx": 12, "mxnet": 13, "relay": 13, "coreml": 19}
# Before 3.11 pathlib keeps functions of os for itself, which no patch reaches.
SPARE = (
    dict.fromkeys(COUNTS, 4)
    if sys.version_info >= (3, 11)
    else {"onnx": 7, "mxnet": 6, "relay": 6, "coreml": 10}
)
MOMENTS = [(kind, number) for kind, count in COUNTS.items() for number in range(count)]


@pytest.mark.thin(2)
@pytest.mark.thin(3)
@pytest.mark.parametrize(("kind", "number"), MOMENTS)
@pytest.mark.parametrize(
    "change", ["another graph", pytest.param("other weights", marks=pytest.mark.slow)]
)
def test_old_or_new_is_left_whole(
    kind: str,
    change: str,
    number: int,
    tmp_path: Path,
    kill_at: Callable[[int, Callable[[], Any]], bool],
) -> None:
    pair, model = PAIRS[kind](tmp_path), CHANGES[change]
    new, old = pair.facts(*model), pair.facts(1)
    names = len(os.listdir(tmp_path))
    assert old != new
    killed = kill_at(number, lambda: pair.save(*model))
    assert killed or number > COUNTS[kind] - SPARE[kind]
    assert state(pair) in (old, new)
    pair.save(*model)
    assert pair.read(pair.path) == new
    assert len(os.listdir(tmp_path)) == names


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["mxnet", "relay"])
def test_another_run_into_the_folder_finishes_the_renames(
    kind: str, tmp_path: Path, kill_at: Callable[[int, Callable[[], Any]], bool]
) -> None:
    pair = PAIRS[kind](tmp_path)
    new, old = pair.facts(2, "relu"), pair.facts(1)
    states = []
    for number in range(12):
        pair.save(1)
        kill_at(number, lambda: pair.save(2, "relu"))
        with atomic_write(tmp_path / "other") as file:
            file.write(b"other")
        states.append(pair.read(pair.path))
    assert set(states) == {old, new}
    assert len(os.listdir(tmp_path)) == 3


def test_an_orphan_of_the_first_run_is_no_obstacle(
    tmp_path: Path, kill_at: Callable[[int, Callable[[], Any]], bool]
) -> None:
    pair = onnx_pair(tmp_path)
    number = 0
    while not (tmp_path / "m.onnx.data").exists():
        for path in tmp_path.iterdir():
            shutil.rmtree(path)
        kill_at(number, lambda: pair.save(1))
        number += 1
    assert not pair.path.exists()
    pair.save(2)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]


# Names of external data.


def names_of(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def data_of(path: Path) -> str:
    tensor = onnx.load(path, load_external_data=False).graph.initializer[0]
    return {entry.key: entry.value for entry in tensor.external_data}["location"]


def test_data_of_another_graph_has_another_name(tmp_path: Path) -> None:
    pair = onnx_pair(tmp_path)
    pair.save(1)
    assert names_of(tmp_path) == ["m.onnx", "m.onnx.data"]
    pair.save(2)
    assert names_of(tmp_path) == ["m.onnx", "m.onnx.data"]
    pair.save(1, "relu")
    name = data_of(pair.path)
    assert names_of(tmp_path) == ["m.onnx", name]
    assert name.startswith("m.onnx.")
    assert len(name) == len("m.onnx.0123456789abcdef.data")
    pair.save(1, "relu")
    assert names_of(tmp_path) == ["m.onnx", "m.onnx.data"]


def test_embedded_weights_leave_no_data_behind(tmp_path: Path) -> None:
    pair = onnx_pair(tmp_path)
    pair.save(1)
    pair.options = {}
    pair.save(1)
    assert names_of(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize("copy", ["copy.onnx", "m.onnx.bak"])
def test_data_that_another_model_reads_stays(tmp_path: Path, copy: str) -> None:
    pair = onnx_pair(tmp_path)
    old = pair.facts(1)
    (tmp_path / copy).write_bytes(pair.path.read_bytes())
    pair.save(2, "relu")
    assert facts_by_onnx(tmp_path / copy) == old
    expected = sorted([copy, "m.onnx", data_of(pair.path), "m.onnx.data"])
    assert names_of(tmp_path) == expected


def test_data_of_others_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((WIDTH, WIDTH), np.float32), "w")
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node], "g", [value("x", 1, (1, WIDTH))], [value("y", 1, (1, WIDTH))], [weight]
    )
    onnx.save(
        onnx.helper.make_model(graph, producer_name="pytorch"),
        tmp_path / "m.onnx",
        save_as_external_data=True,
        location="m.onnx.data",
        size_threshold=0,
    )
    data = (tmp_path / "m.onnx.data").read_bytes()
    onnx_pair(tmp_path).save(1)
    assert (tmp_path / "m.onnx.data").read_bytes() == data
    assert data_of(tmp_path / "m.onnx") != "m.onnx.data"


def test_two_runs_do_not_mix(tmp_path: Path) -> None:
    """Another run puts its model there after this one has chosen the name of its data."""
    pair = onnx_pair(tmp_path)
    bridge = get_bridge("onnx")
    options = bridge.bind_export(pair.options)
    native = native_of("onnx", 2, "relu")

    def meanwhile(_path: Path) -> None:
        pair.save(1)

    with pytest.raises(OptionError, match="another run has written it meanwhile"):
        bridge.save(native, pair.path, options, before_commit=meanwhile)
    assert facts_by_onnx(pair.path)[0] == "tanh"


# Renames that fail.


@pytest.mark.parametrize("kind", ["mxnet", "relay"])
def test_a_rename_that_fails_takes_the_others_back(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = PAIRS[kind](tmp_path)
    old = pair.facts(1)
    replace = os.replace

    def failing(source: str, target: str) -> None:
        if os.fspath(target) == os.fspath(pair.path):
            raise PermissionError(1, "Operation not permitted", target)
        replace(source, target)

    with monkeypatch.context() as patches:
        patches.setattr(os, "replace", failing)
        with pytest.raises(PermissionError):
            pair.save(2, "relu")
    assert pair.read(pair.path) == old
    assert len(os.listdir(tmp_path)) == 2


def test_a_rename_that_fails_leaves_no_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def failing(source: str, target: str) -> None:
        if target.endswith("b"):
            raise PermissionError(1, "Operation not permitted", target)
        replace(source, target)

    def write() -> None:
        with atomic_group([tmp_path / "a", tmp_path / "b"]) as staged:
            for path in staged:
                path.write_text("new")

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(PermissionError):
        write()
    assert os.listdir(tmp_path) == []


# Directories of other runs.

RUN = """
import sys, time
from pathlib import Path
from serde.io.atomic import atomic_write
with atomic_write(Path(sys.argv[1]) / "slow") as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has written half a file in the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"half\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def write_other(folder: Path) -> None:
    with atomic_write(folder / "other") as file:
        file.write(b"other")


@pytest.mark.wide
def test_a_running_process_is_left_alone(tmp_path: Path, running: subprocess.Popen[bytes]) -> None:
    write_other(tmp_path)
    (hidden,) = [path for path in tmp_path.iterdir() if path.name.startswith(".serde-")]
    assert (hidden / "new" / "slow").read_bytes() == b"half"


@pytest.mark.wide
def test_the_folder_of_a_killed_process_goes(
    tmp_path: Path, running: subprocess.Popen[bytes]
) -> None:
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert len(names_of(tmp_path)) == 1
    write_other(tmp_path)
    assert names_of(tmp_path) == ["other"]


@pytest.mark.wide
def test_the_next_package_removes_it_too(tmp_path: Path, running: subprocess.Popen[bytes]) -> None:
    running.send_signal(signal.SIGKILL)
    running.wait()
    with atomic_directory(tmp_path / "d", is_package=lambda _path: True) as made:
        (made / "a").touch()
    assert names_of(tmp_path) == ["d"]


@pytest.mark.wide
def test_without_locks_it_is_left_alone(
    tmp_path: Path, running: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(_fd: int, _operation: int) -> None:
        raise OSError(95, "Operation not supported")

    running.send_signal(signal.SIGKILL)
    running.wait()
    monkeypatch.setattr("fcntl.flock", unsupported)
    write_other(tmp_path)
    assert len(names_of(tmp_path)) == 2


def test_other_hidden_directories_are_left_alone(tmp_path: Path) -> None:
    for name in (".serde-mine", ".serde-12345678"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").touch()
        (tmp_path / name / "notes").write_text("mine")
    (tmp_path / ".serde-file").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "lock").touch()
    (tmp_path / ".serde-link").symlink_to("elsewhere")
    write_other(tmp_path)
    expected = [
        ".serde-12345678",
        ".serde-file",
        ".serde-link",
        ".serde-mine",
        "elsewhere",
        "other",
    ]
    assert names_of(tmp_path) == expected


@pytest.mark.parametrize(
    "plan",
    [
        "not JSON",
        "[]",
        '{"renames": [["x", [1, 1, 1], null]], "removals": [["../precious", [1, 1, 1]]]}',
        '{"renames": [["../precious", null, null]], "removals": []}',
        '{"renames": [["x", null, null]], "removals": [["precious", [1, 1, 1]]]}',
    ],
)
def test_a_plan_that_is_not_ours_does_nothing(tmp_path: Path, plan: str) -> None:
    folder = tmp_path / "folder"
    left = folder / ".serde-abcdefgh"
    (left / "new").mkdir(parents=True)
    (left / "lock").touch()
    (left / "plan.json").write_text(plan)
    for path in (tmp_path / "precious", folder / "precious"):
        path.write_text("precious")
    write_other(folder)
    assert names_of(folder) == ["other", "precious"]
    assert names_of(tmp_path) == ["folder", "precious"]
    assert (folder / "precious").read_text() == "precious"


def test_a_file_that_came_back_meanwhile_is_not_replaced(
    tmp_path: Path, kill_at: Callable[[int, Callable[[], Any]], bool]
) -> None:
    """Between the kill and the next run someone puts the old files back."""
    pair = PAIRS["mxnet"](tmp_path)
    old = pair.facts(1)
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    number = 0
    while kill_at(number, lambda: pair.save(2, "relu")):
        for path, data in kept.items():
            path.unlink()
            path.write_bytes(data)
        write_other(tmp_path)
        assert pair.read(pair.path) == old
        number += 1
    assert number > 5
