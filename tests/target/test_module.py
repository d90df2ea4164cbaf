"""Runtime modules: what they say of themselves, and the folder that they are saved as."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import serde
import serde.relay as relay
from serde.errors import FormatError, OptionError, SerdeError, UnsupportedModelError
from serde.relay.ir.model import RelayModel
from serde.target import HybridExecutor, OnnxModule
from serde.target.onnx import build, partition_for_onnx
from serde.target.partition import partition_model

ROOT = Path(serde.__file__).parents[1]


def make_net() -> tuple[relay.IRModule, dict[str, np.ndarray]]:
    """A layer for the target, one for the host with its weight, and a region behind both."""
    rng = np.random.default_rng(4)
    x, w, v = (
        relay.var("x", shape=(2, 64)),
        relay.var("w", shape=(256, 64)),
        relay.var("v", shape=(256,)),
    )
    hidden = relay.nn.relu(relay.nn.dense(x, w))
    scaled = relay.multiply(relay.exp(hidden), v)
    body = relay.nn.relu(relay.add(scaled, hidden))
    params = {"w": rng.normal(size=(256, 64)) / 8, "v": rng.normal(size=(256,))}
    mod = relay.IRModule.from_expr(relay.Function([x, w, v], body))
    return mod, {name: value.astype(np.float32) for name, value in params.items()}


SUPPORTED = ["Gemm", "Relu", "Add"]
X = np.random.default_rng(9).normal(size=(2, 64)).astype(np.float32)


@pytest.fixture(scope="module")
def module() -> OnnxModule:
    mod, params = make_net()
    return build(partition_for_onnx(mod, params, supported=SUPPORTED))


@pytest.fixture(scope="module")
def saved(module: OnnxModule, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return module.save(tmp_path_factory.mktemp("saved") / "split")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy that may be spoilt."""
    return shutil.copytree(saved, tmp_path / "split")


def expected() -> np.ndarray:
    _, params = make_net()
    hidden = np.maximum(X @ params["w"].T, 0)
    return np.maximum(np.exp(hidden) * params["v"] + hidden, 0)


def test_a_module_is_as_tvm_has_them(module: OnnxModule) -> None:
    assert module.type_key == "onnx"
    assert [each.type_key for each in module.imported_modules] == ["onnx", "onnx"]
    names = ["tvmgen_default_onnx_main_0", "tvmgen_default_onnx_main_1"]
    assert [each.name for each in module.imported_modules] == names
    assert module.imported_modules[0].imported_modules == ()
    assert [each.nodes for each in module.imported_modules] == [("Gemm", "Relu"), ("Add", "Relu")]


def test_sources_are_text(module: OnnxModule) -> None:
    assert "exp(" in module.get_source()
    assert module.get_source("relay") == module.get_source()
    assert json.loads(module.get_source("json"))["opset"] == 17
    text = module.imported_modules[0].get_source("text")
    assert "Gemm" in text
    assert text == module.imported_modules[0].get_source()
    for each in (module, module.imported_modules[0]):
        with pytest.raises(OptionError, match="found 'c'"):
            each.get_source("c")


def test_regions_are_models_of_their_own(module: OnnxModule, tmp_path: Path) -> None:
    region = module.imported_modules[0]
    onnx.checker.check_model(region.proto(), full_check=True)
    path = region.save(tmp_path / "region.onnx")
    proto = onnx.load(path)
    assert [each.name for each in proto.graph.initializer] != []
    assert [each.name for each in proto.graph.input] == ["onnx_0_i0"]
    assert [each.name for each in proto.graph.output] == ["onnx_0_o0"]
    assert proto.graph.name == region.name


def test_weights_are_where_they_are_needed(module: OnnxModule, folder: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert set(sizes) == {
        "manifest.json", "host.relay", "host.params",
        "tvmgen_default_onnx_main_0.onnx", "tvmgen_default_onnx_main_1.onnx",
    }  # fmt: skip
    assert sizes["tvmgen_default_onnx_main_0.onnx"] > 2**16
    assert sizes["tvmgen_default_onnx_main_1.onnx"] < 512


def test_what_is_loaded_gives_the_same(module: OnnxModule, folder: Path) -> None:
    loaded = OnnxModule.load(folder)
    one, other = HybridExecutor(module).run(X)[0], HybridExecutor(loaded).run(X)[0]
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, expected(), rtol=1e-4)
    assert loaded.get_source("json") == module.get_source("json")
    assert loaded.get_source() == module.get_source()
    assert loaded.opset == module.opset


@pytest.mark.wide
def test_a_new_process_gives_the_same(module: OnnxModule, folder: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    code = (
        "import numpy as np\nfrom serde.target import HybridExecutor, OnnxModule\n"
        "module = OnnxModule.load('split')\n"
        "np.save('y.npy', HybridExecutor(module).run(np.load('x.npy'))[0])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), HybridExecutor(module).run(X)[0])


def test_saving_twice_gives_the_same_bytes(module: OnnxModule, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    module.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_is_loaded_can_be_saved_elsewhere(folder: Path, tmp_path: Path) -> None:
    again = OnnxModule.load(folder).save(tmp_path / "again")
    for path in folder.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_what_is_loaded_does_not_replace_itself(folder: Path) -> None:
    loaded = OnnxModule.load(folder)
    with pytest.raises(OptionError, match="holds the source"):
        loaded.save(folder)
    assert HybridExecutor(OnnxModule.load(folder)).run(X)


def test_another_folder_is_not_replaced(module: OnnxModule, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(OptionError, match="expected a package to replace, or nothing"):
        module.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep me"


def test_a_save_that_fails_leaves_what_was_there(
    module: OnnxModule, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*_args: Any, **_named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("serde.target.storage.write_params", fail)
    with pytest.raises(OSError, match="No space left"):
        module.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["split"]


def test_a_model_keeps_its_weights_in_their_file(tmp_path: Path) -> None:
    mod, params = make_net()
    path = serde.from_relay((mod, params), path=tmp_path / "net.onnx")
    model = serde.to_relay(path)
    found = partition_model(model, supported=SUPPORTED)
    module = build(found.model)
    held = [w for each in module.imported_modules for w in each.native.weights.values()]
    assert [weight.source.path for weight in held if weight.nbytes > 256] == [str(path)]
    np.testing.assert_allclose(HybridExecutor(module).run(X)[0], expected(), rtol=1e-4)


def test_a_module_without_regions_is_saved(tmp_path: Path) -> None:
    mod, params = make_net()
    module = build(partition_for_onnx(mod, params, supported=["Conv"]))
    folder = module.save(tmp_path / "split")
    assert not list(folder.glob("*.onnx"))
    result = HybridExecutor(OnnxModule.load(folder)).run(X)[0]
    np.testing.assert_allclose(result, expected(), rtol=1e-4)


def one_region(body: str) -> relay.IRModule:
    v = "Tensor[(2, 3), float32]"
    text = (
        f'#[version = "0.0.5"]\ndef @main(%x: {v}) {{ exp(@part(%x)) }}\n'
        f'def @part(%i: {v}, Compiler="onnx", Primitive=1, global_symbol="part") '
        f"-> {v} {{\n  {body}\n}}\n"
    )
    return relay.transform.InferType()(relay.fromtext(text))


def test_regions_of_another_partitioner_are_built() -> None:
    module = build(one_region("nn.log_softmax(nn.relu(%i))"), opset=13)
    assert module.imported_modules[0].nodes == ("Relu", "LogSoftmax")
    assert module.opset == 13


def test_a_region_that_cannot_be_written_lists_its_gaps() -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        build(one_region("%0 = serde.svd(%i);\n  add(%i, sum(%0.1))"))
    assert [issue.op for issue in caught.value.report.issues] == ["serde.svd"]


Change = Callable[[dict[str, Any]], Any]


def changed(key: str, value: Any) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        manifest[key] = value

    return change


def changed_step(index: int, **values: Any) -> Change:
    return lambda manifest: manifest["steps"][index].update(values)


def changed_region(index: int, **values: Any) -> Change:
    return lambda manifest: manifest["regions"][index].update(values)


MALFORMED: dict[str, tuple[Change, str]] = {
    "another format": (changed("format", "zip"), "format: expected 'serde.split', found 'zip'"),
    "another version": (changed("version", 2), "version: expected 1, found 2"),
    "no opset": (changed("opset", None), "opset: expected a number, found None"),
    "an opset below zero": (changed("opset", -3), "opset: expected a number from 0 on"),
    "a true opset": (changed("opset", True), "opset: expected a number, found True"),
    "no steps": (changed("steps", None), "steps: expected a list of objects"),
    "steps that are none": (changed("steps", [3]), "expected an object, found 3"),
    "fewer steps": (lambda m: m["steps"].pop(), "results are not values"),
    "a step of another kind": (changed_step(0, kind="shell"), "kind: expected host or region"),
    "a step of nothing": (changed_step(0, name="other"), "there is no such region"),
    "a step without inputs": (changed_step(0, inputs=[]), "expected 1 inputs and 1 outputs"),
    "a step with numbers": (changed_step(0, inputs=[3]), "inputs: expected a list of texts"),
    "a step before its time": (changed_step(0, inputs=["host_0_o0"]), "is not there yet"),
    "a step twice": (lambda m: m["steps"].append(m["steps"][0]), "runs twice"),
    "a value twice": (changed_step(1, outputs=["x"]), "x is given twice"),
    "no results": (changed("results", ["nothing"]), "results are not values of steps"),
    "results without names": (changed("outputs", []), "have not as many names"),
    "an input of no dtype": (
        lambda m: m["inputs"][0].update(dtype="float33"), "x: data type 'float33'|float33"),
    "an input below zero": (
        lambda m: m["inputs"][0].update(shape=[-1]), "expected a length, a name or null"),
    "an input of another dtype": (
        lambda m: m["inputs"][0].update(dtype="float64"), "takes Tensor.*but x is Tensor.*float64"),
    "an input of another length": (
        lambda m: m["inputs"][0].update(shape=[2, 9]), "takes Tensor.*but x is Tensor"),
    "an input of more axes": (
        lambda m: m["inputs"][0].update(shape=[1, 2, 4]), "takes Tensor.*but x is Tensor"),
    "an input of many axes": (
        lambda m: m["inputs"][0].update(shape=[1] * 99), "at most 32 axes, found 99"),
    "a region elsewhere": (
        changed_region(0, file="../secret.onnx"), "leaves the directory of the model"),
    "a region at the root": (changed_region(0, file="/etc/passwd"), "is an absolute path"),
    "a region that is not there": (changed_region(0, file="none.onnx"), "No such file"),
    "a region that is no ONNX": (changed_region(0, file="manifest.json"), "manifest.json"),
    "regions exchanged": (
        changed_region(0, file="tvmgen_default_onnx_main_1.onnx"), "are not those that the"),
    "a region of another type": (
        lambda m: m["regions"][0]["inputs"][0].update(shape=[2, 9]), "inputs are not those"),
    "a region that nothing runs": (
        lambda m: m["regions"].append({**m["regions"][0], "name": "spare"}), "are no steps"),
    "a file without a digest": (
        lambda m: m["sha256"].pop("host.relay"), "host.relay: sha256: expected None, found"),
    "a digest of no file": (
        lambda m: m["sha256"].update({"../secret": "0" * 64}), "leaves the directory"),
    "a digest that is none": (
        lambda m: m["sha256"].update({"host.relay": 5}), "host.relay: sha256: expected 5, found"),
    "digests that are none": (lambda m: m.update(sha256=[]), "expected digests by file"),
    "a host that is not there": (
        lambda m: m["hosts"][0].update(name="host_9"), "no function is called host_9"),
    "weights that are not there": (
        lambda m: m["hosts"][0].update(weights=["other"]), "no such weight: other"),
    "no weights": (
        lambda m: m["hosts"][0].update(weights=[]), "expected 2 inputs and 1 outputs"),
}  # fmt: skip


def rewrite_manifest(folder: Path, change: Callable[[Any], Any]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", MALFORMED)
def test_a_manifest_is_not_believed(name: str, folder: Path) -> None:
    change, message = MALFORMED[name]
    rewrite_manifest(folder, change)
    with pytest.raises(FormatError, match=message):
        OnnxModule.load(folder)


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("manifest.json", b"", "no JSON"),
        ("manifest.json", b"[]", "expected an object"),
        ("manifest.json", b"[" * 100_000, "no JSON"),
        ("manifest.json", b"\xff\xfe", "no JSON"),
        ("host.relay", b"", "expected|version"),
        ("host.relay", b"\xff", "not UTF-8"),
        ("host.relay", b'#[version = "0.0.5"]\ndef @other() { 1 }', "no function is called host_0"),
        ("host.params", b"", "expected a parameter file"),
        ("tvmgen_default_onnx_main_0.onnx", b"", "onnx"),
        ("tvmgen_default_onnx_main_0.onnx", b"\x08", "onnx"),
    ],
)
def test_files_that_are_malformed_are_refused(
    file: str, data: bytes, message: str, folder: Path
) -> None:
    if file != "manifest.json":  # As of folders of serde 1.0, which have no digests.
        rewrite_manifest(folder, lambda manifest: manifest.pop("sha256"))
    (folder / file).write_bytes(data)
    with pytest.raises(SerdeError, match=message):
        OnnxModule.load(folder)


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[:-3],
    "empty": lambda _: b"",
    "one bit": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "longer": lambda data: data + b"\0",
}


@pytest.mark.parametrize("file", ["host.relay", "host.params", "tvmgen_default_onnx_main_0.onnx"])
@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_is_not_the_one_written_is_named(file: str, how: str, folder: Path) -> None:
    path = folder / file
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    assert json.loads((folder / "manifest.json").read_text())["sha256"][file] == before
    path.write_bytes(SPOILT[how](path.read_bytes()))
    after = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(FormatError) as caught:
        OnnxModule.load(folder)
    assert str(caught.value) == f"{path}: sha256: expected {before}, found {after}"


def test_regions_that_are_exchanged_are_refused(folder: Path) -> None:
    one, other = (folder / f"tvmgen_default_onnx_main_{number}.onnx" for number in (0, 1))
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)
    with pytest.raises(FormatError, match=r"main_0\.onnx: sha256: expected .*, found "):
        OnnxModule.load(folder)


def test_a_folder_of_before_digests_is_read(folder: Path, module: OnnxModule) -> None:
    rewrite_manifest(folder, lambda manifest: manifest.pop("sha256"))
    results = [HybridExecutor(each).run(X)[0] for each in (OnnxModule.load(folder), module)]
    np.testing.assert_array_equal(*results)


def test_names_of_regions_have_the_name_of_the_module() -> None:
    mod, params = make_net()
    found = partition_for_onnx(mod, params, "acme_2", supported=SUPPORTED)
    names = [each.name_hint for each in found.functions]
    assert names == ["main", "tvmgen_acme_2_onnx_main_0", "tvmgen_acme_2_onnx_main_1"]
    assert [each.name for each in build(found).imported_modules] == names[1:]
    for bad in ("a-b", "", "../x", 3):
        with pytest.raises(OptionError, match="mod_name: expected letters, digits and _"):
            partition_for_onnx(mod, params, bad)


def test_files_as_tvm_writes_them(module: OnnxModule, tmp_path: Path) -> None:
    mod, params = make_net()
    whole = build(partition_for_onnx(mod, params))
    assert whole.export_library(tmp_path / "net.onnx") == tmp_path / "net.onnx"
    onnx.checker.check_model(tmp_path / "net.onnx", full_check=True)
    module.export_library(tmp_path / "folder")
    loaded = OnnxModule.load(tmp_path / "folder")
    assert loaded.save_to_file(tmp_path / "host.txt", "relay") == tmp_path / "host.txt"
    assert (tmp_path / "host.txt").read_text() == loaded.get_source("relay")
    region = loaded.imported_modules[0]
    region.save_to_file(tmp_path / "region.onnx", "onnx")
    assert onnx.load(tmp_path / "region.onnx") == region.proto()
    for path, call, message in (
        ("two.onnx", module.export_library, "expected one region alone, found 2 regions"),
        ("net.so", module.export_library, "expected a folder, or a name ending in .zip or .onnx"),
        ("host", lambda path: module.save_to_file(path, "c"), "expected format relay or json"),
        ("r", lambda path: region.save_to_file(path, "c"), "expected format onnx, found 'c'"),
    ):
        with pytest.raises(OptionError, match=message):
            call(tmp_path / path)
        assert not (tmp_path / path).exists()


def nested(tmp_path: Path) -> Path:
    """A folder whose host calls a region in a branch, and another in the body of a loop."""
    x, c = relay.var("x", shape=(2, 4)), relay.var("c", shape=(), dtype="bool")
    chosen = relay.If(c, relay.nn.relu(relay.erf(x)), relay.tanh(x))
    mod = relay.IRModule.from_expr(relay.Function([x, c], chosen))
    return build(partition_for_onnx(mod, supported=["Relu"])).save(tmp_path / "nested")


NESTED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no such region": (changed_region(0, name="other"), "there is no such region"),
    "a region that nothing calls": (
        lambda m: m["regions"].append({**m["regions"][0], "name": "spare"}), "are no steps"),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTED)
def test_regions_that_the_host_calls_are_looked_at(name: str, tmp_path: Path) -> None:
    folder = nested(tmp_path)
    rewrite_manifest(folder, NESTED[name][0])
    with pytest.raises(FormatError, match=NESTED[name][1]):
        OnnxModule.load(folder)


def test_a_region_of_another_type_in_a_branch_is_refused(tmp_path: Path) -> None:
    folder = nested(tmp_path)
    text = (folder / "host.relay").read_text()
    rewrite_manifest(folder, lambda manifest: manifest.pop("sha256"))
    (folder / "host.relay").write_text(text.replace("Tensor[(2, 4)", "Tensor[(2, 3)").replace(
        "[2, 4]", "[2, 3]"))  # fmt: skip
    with pytest.raises(FormatError, match=r"takes Tensor|the host calls tvmgen_default_onnx"):
        OnnxModule.load(folder)


@pytest.mark.parametrize("file", ["manifest.json", "host.relay", "host.params",
                                  "tvmgen_default_onnx_main_0.onnx"])  # fmt: skip
def test_links_are_not_followed(file: str, folder: Path, tmp_path: Path) -> None:
    (folder / file).rename(tmp_path / "elsewhere")
    (folder / file).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FormatError, match="symbolic link"):
        OnnxModule.load(folder)


@pytest.mark.parametrize("file", ["manifest.json", "host.relay", "host.params",
                                  "tvmgen_default_onnx_main_0.onnx"])  # fmt: skip
def test_files_that_are_missing_are_named(file: str, folder: Path) -> None:
    (folder / file).unlink()
    with pytest.raises(FormatError, match="No such file"):
        OnnxModule.load(folder)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(FormatError):
            OnnxModule.load(path)


def test_weights_are_not_looked_through_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weights = relay.var("x", shape=(2, 3)), [relay.var(f"w{i}", shape=(3,)) for i in range(50)]
    value = x
    for weight in weights:
        value = relay.nn.relu(relay.multiply(value, weight))
    params = {each.name_hint: np.ones(3, np.float32) for each in weights}
    model = serde.to_relay(relay.Function([x, *weights], value), params=params)
    found = partition_model(model, supported=["Relu"])
    calls = []
    inputs = RelayModel.inputs
    monkeypatch.setattr(RelayModel, "inputs", lambda self: calls.append(1) or inputs(self))
    assert len(build(found.model).hosts) == 50
    assert len(calls) < 10
