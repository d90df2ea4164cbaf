"""A split model as one zip archive: what is read where it lies, and archives that are not sound."""

from __future__ import annotations

import functools
import json
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
import serde.relay as relay
from serde.errors import FormatError, OptionError
from serde.target import HybridExecutor, OnnxModule
from serde.target.onnx import build, partition_for_onnx
from serde.target.splitting import split

REGION = "tvmgen_default_onnx_main_0.onnx"
NAMES = ["host.params", "host.relay", "manifest.json", REGION, "tvmgen_default_onnx_main_1.onnx"]
RNG = np.random.default_rng(4)
X = RNG.normal(size=(2, 64)).astype(np.float32)
PARAMS = {
    "w": (RNG.normal(size=(256, 64)) / 8).astype(np.float32),
    "v": RNG.normal(size=256).astype(np.float32),
}


def make_model() -> relay.IRModule:
    """A layer for the target, one for the host with its weight, and a region behind both."""
    x = relay.var("x", shape=(2, 64))
    w, v = (relay.var(name, shape=PARAMS[name].shape) for name in "wv")
    hidden = relay.nn.relu(relay.nn.dense(x, w))
    body = relay.nn.relu(relay.add(relay.multiply(relay.exp(hidden), v), hidden))
    return relay.IRModule.from_expr(relay.Function([x, w, v], body))


@functools.cache
def expected() -> np.ndarray:
    """What ONNX Runtime gives for the whole, which was never split."""
    runtime = pytest.importorskip("onnxruntime")
    whole = serde.from_relay((make_model(), PARAMS), format="onnx")
    (result,) = runtime.InferenceSession(whole.SerializeToString()).run(None, {"x": X})
    return result


@pytest.fixture(scope="module")
def module() -> OnnxModule:
    supported = ["Gemm", "Relu", "Add"]
    return build(partition_for_onnx(make_model(), PARAMS, supported=supported))


@pytest.fixture
def archive(module: OnnxModule, tmp_path: Path) -> Path:
    (tmp_path / "delivered").mkdir()
    return module.export_library(tmp_path / "delivered" / "net.zip")


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {each.filename: archive.read(each) for each in archive.infolist()}


def write(path: Path, content: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def test_an_archive_is_one_file_with_all_that_a_folder_has(
    module: OnnxModule, archive: Path, tmp_path: Path
) -> None:
    folder = module.save(tmp_path / "folder")
    assert members(archive) == {each.name: each.read_bytes() for each in sorted(folder.iterdir())}
    assert list(members(archive)) == NAMES
    assert [each.name for each in archive.parent.iterdir()] == ["net.zip"]
    before = archive.read_bytes()
    module.save(archive)
    assert archive.read_bytes() == before


@pytest.mark.parametrize("runner", ["onnxruntime", "reference"])
def test_what_is_loaded_gives_what_the_whole_gives(archive: Path, runner: str) -> None:
    loaded = OnnxModule.load(archive)
    (result,) = HybridExecutor(loaded, runner=runner).run(X)
    np.testing.assert_allclose(result, expected(), rtol=1e-4)
    assert [each.path for each in loaded.imported_modules] == [None, None]
    onnx.checker.check_model(loaded.imported_modules[0].proto(), full_check=True)


def test_weights_stay_where_they_lie_in_the_archive(archive: Path, tmp_path: Path) -> None:
    loaded = OnnxModule.load(archive)
    sources = [each.source for each in loaded.imported_modules[0].native.weights.values()]
    sources += [each.source for part in loaded.hosts.values() for each in part.params.values()]
    assert [(each.path, each.length) for each in sources] == [
        (str(archive), 4 * 256 * 64), (str(archive), 4 * 256),
    ]  # fmt: skip
    with pytest.raises(OptionError, match="source"):
        loaded.save(archive)
    again = loaded.export_library(tmp_path / "again.ZIP")
    assert again.read_bytes() == archive.read_bytes()
    (result,) = HybridExecutor(OnnxModule.load(loaded.save(tmp_path / "folder"))).run(X)
    np.testing.assert_allclose(result, expected(), rtol=1e-4)


def test_an_archive_that_others_packed_is_read(archive: Path) -> None:
    content = {f"net/{name}": data for name, data in members(archive).items()}
    write(archive, content, zipfile.ZIP_DEFLATED)
    (result,) = HybridExecutor(OnnxModule.load(archive)).run(X)
    np.testing.assert_allclose(result, expected(), rtol=1e-4)


def test_weights_beside_a_large_region_are_members_too(
    module: OnnxModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.onnx.codec.MAX_PROTOBUF_BYTES", 2**15)
    path = module.export_library(tmp_path / "net.zip")
    assert f"{REGION}.data" in members(path)
    loaded = OnnxModule.load(path)
    weights = [each.array() for each in loaded.imported_modules[0].native.weights.values()]
    np.testing.assert_array_equal(weights[0].reshape(256, 64), PARAMS["w"])
    (result,) = HybridExecutor(loaded).run(X)
    np.testing.assert_allclose(result, expected(), rtol=1e-4)
    content = members(path)
    del content[f"{REGION}.data"]
    write(path, content)
    with pytest.raises(FormatError, match=r"main_0\.onnx\.data' is missing"):
        OnnxModule.load(path)


def test_the_command_writes_an_archive(tmp_path: Path) -> None:
    found = split((make_model(), PARAMS), tmp_path / "net.zip", supported=["Gemm"], runs=1)
    assert len(found.module.regions) == len(OnnxModule.load(tmp_path / "net.zip").regions) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["net.zip"]


def test_a_save_that_fails_leaves_the_archive_that_was_there(
    module: OnnxModule, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = archive.read_bytes()

    def fail(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("serde.target.storage.write_archive", fail)
    with pytest.raises(OSError, match="No space left"):
        module.export_library(archive)
    assert archive.read_bytes() == before
    assert [each.name for each in archive.parent.iterdir()] == ["net.zip"]


def changed(name: str, data: bytes | None) -> Callable[[Path], None]:
    """Another content of a member, or one more."""

    def change(path: Path) -> None:
        content = members(path)
        if data is None:
            del content[name]
        write(path, content if data is None else {**content, name: data})

    return change


def manifest(change: Callable[[dict], object]) -> Callable[[Path], None]:
    def write_again(path: Path) -> None:
        content = members(path)
        told = json.loads(content["manifest.json"])
        change(told)
        write(path, {**content, "manifest.json": json.dumps(told).encode()})

    return write_again


def twice(path: Path) -> None:
    content = members(path)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr(REGION, content[REGION])


def link(path: Path) -> None:
    content = members(path)
    del content[REGION]
    write(path, content)
    info = zipfile.ZipInfo(REGION)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, "/etc/passwd")


def longer(path: Path) -> None:
    """A member of more bytes than its header tells, of which the directory knows."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo(REGION).header_offset
    size = struct.unpack_from("<L", data, at + 22)[0]
    start = data.find(b"PK\1\2")
    while data[start + 46 : start + 46 + len(REGION)] != REGION.encode():
        start = data.find(b"PK\1\2", start + 1)
    struct.pack_into("<LL", data, start + 20, size + 999_999, size + 999_999)
    path.write_bytes(data)


def two_lengths(path: Path) -> None:
    data = bytearray(path.read_bytes())
    struct.pack_into("<L", data, data.find(b"PK\1\2") + 24, 7)
    path.write_bytes(data)


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "outside": (changed("../secret.onnx", b"x"), "leaves the directory"),
    "absolute": (changed("/tmp/secret.onnx", b"x"), "is an absolute path"),
    "another drive": (changed("C:\\secret.onnx", b"x"), "names a drive"),
    "a link": (link, "is a link"),
    "a member twice": (twice, "occurs twice"),
    "a member longer than it says": (longer, "expected 1"),
    "a member of two lengths": (two_lengths, "two lengths"),
    "no manifest": (changed("manifest.json", None), r"'manifest\.json' is missing"),
    "no region": (changed(REGION, None), r"main_0\.onnx' is missing"),
    "no parameters": (changed("host.params", None), r"'host\.params' is missing"),
    "another region": (changed(REGION, b"x" * 99), r"main_0\.onnx: sha256: expected .*, found"),
    "a manifest of no digests": (
        manifest(lambda told: told.pop("sha256")), "expected digests by file, found none"),
    "a file elsewhere": (
        manifest(lambda told: told["regions"][0].update(file="../x.onnx")), "is missing"),
    "no JSON": (changed("manifest.json", b"["), "no JSON"),
    "too many bytes of a manifest": (changed("manifest.json", b" " * 2**27), "at most .* bytes"),
    "no archive": (lambda path: path.write_bytes(b"PK\x03\x04 and so on"), "no sound zip archive"),
    "another file": (lambda path: path.write_bytes(b"\x08"), "no sound zip archive"),
    "nothing": (lambda path: path.write_bytes(b""), "no sound zip archive"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_an_archive_that_is_not_sound_is_one_error(
    name: str, archive: Path, tmp_path: Path
) -> None:
    spoil, message = HOSTILE[name]
    spoil(archive)
    before = archive.read_bytes()
    with pytest.raises(FormatError, match=message) as caught:
        OnnxModule.load(archive)
    assert str(caught.value).startswith(str(archive))
    assert "\n" not in str(caught.value)
    assert archive.read_bytes() == before
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["delivered", "net.zip"]


def test_an_archive_that_unpacks_to_too_much_is_refused(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.io.zips.MAX_ARCHIVE_RATIO", 2)
    write(archive, {**members(archive), "host.params": bytes(2**22)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(FormatError, match="unpacks to more than 2 times its size"):
        OnnxModule.load(archive)


@pytest.mark.parametrize("part", range(16))
def test_an_archive_that_is_cut_off_is_refused(part: int, archive: Path) -> None:
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) * part // 16])
    with pytest.raises(FormatError):
        OnnxModule.load(archive)


@pytest.mark.parametrize("seed", range(60))
def test_changed_bytes_are_noticed_or_change_nothing(seed: int, archive: Path) -> None:
    rng = np.random.default_rng(seed)
    data = bytearray(archive.read_bytes())
    first = data.find(b"PK\1\2") if seed % 2 else 0
    data[int(rng.integers(first, len(data)))] ^= 1 << int(rng.integers(8))
    archive.write_bytes(data)
    try:
        loaded = OnnxModule.load(archive)
    except FormatError:
        return
    (result,) = HybridExecutor(loaded).run(X)
    np.testing.assert_allclose(result, expected(), rtol=1e-4)


def test_an_archive_that_changes_under_a_module_is_noticed(archive: Path) -> None:
    loaded = OnnxModule.load(archive)
    archive.write_bytes(archive.read_bytes() + b"\0")
    with pytest.raises(FormatError, match="changed while it was being read"):
        loaded.imported_modules[0].proto()
