"""Sources come to local disk whole, with what belongs to them, and go again."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.stores import Site, web_server

from serde.errors import MissingDependency, OptionError, StoreError
from serde.fleet.stores import fetching
from serde.fleet.stores.faults import Retries
from serde.fleet.stores.listing import expand
from serde.fleet.stores.staging import stage
from serde.fleet.stores.store import Store
from serde.io.staging import sweep

QUICK = Retries(attempts=8, first=0.001, longest=0.002)
RANDOM = np.random.default_rng(7).bytes(1_000_003)


def onnx_with_data(location: str) -> bytes:
    """A model whose one weight lies in another file."""
    weight = numpy_helper.from_array(np.zeros((4, 4), np.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    x, y = (helper.make_tensor_value_info(n, 1, [1, 4]) for n in "xy")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of which a small object has many."""
    monkeypatch.setattr(fetching, "PIECE", 64 * 1024)


def test_local_files_are_used_where_they_lie(tmp_path: Path) -> None:
    (tmp_path / "net.bin").write_bytes(RANDOM)
    with stage(tmp_path / "net.bin", tmp_path / "missing") as staged:
        assert staged.paths == (tmp_path / "net.bin",)
        assert staged.nbytes == len(RANDOM)
        assert staged.fetched == {}
    assert os.listdir(tmp_path) == ["net.bin"]


@pytest.mark.wide
def test_an_object_is_fetched_in_ranges(bucket: Any, tmp_path: Path) -> None:
    bucket.put("net.bin", RANDOM)
    bucket.faults.requests.clear()
    with stage(f"{bucket.url}/net.bin", tmp_path) as staged:
        assert staged.paths[0].read_bytes() == RANDOM
        gets = [path for method, path in bucket.faults.requests if method == "GET"]
        assert len(gets) == -(-len(RANDOM) // (64 * 1024))
    assert os.listdir(tmp_path) == []


@pytest.mark.wide
def test_nothing_is_lost_by_a_server_that_fails(bucket: Any, tmp_path: Path) -> None:
    """Without the retries of s3fs and botocore, so that all of them are serde's."""
    bucket.put("net.bin", RANDOM)
    bucket.faults.errors, bucket.faults.cuts = 0.2, 0.3
    options = {"config_kwargs": {"retries": {"max_attempts": 0}}}
    with stage(
        f"{bucket.url}/net.bin", tmp_path, storage_options=options, retries=Retries(30, 0.001, 0.01)
    ) as staged:
        assert staged.paths[0].read_bytes() == RANDOM
    assert bucket.faults.failed >= 5


def test_a_server_that_fails_for_good_is_told(bucket: Any, tmp_path: Path) -> None:
    bucket.faults.errors = 1.0
    options = {"config_kwargs": {"retries": {"max_attempts": 0}}}
    message = rf"^{bucket.url}/net.bin: the store answered 500.*, after 3 tries$"
    with (
        pytest.raises(StoreError, match=message),
        stage(
            f"{bucket.url}/net.bin", tmp_path, storage_options=options, retries=Retries(3, 0.001)
        ),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_what_was_listed_is_not_looked_up_again(bucket: Any, tmp_path: Path) -> None:
    bucket.put("net.bin", b"x" * 100)
    (found,) = expand(f"{bucket.url}/*.bin")
    bucket.faults.requests.clear()
    with stage(found, tmp_path) as staged:
        assert staged.nbytes == 100
    assert [method for method, _ in bucket.faults.requests] == ["GET"]


def test_the_digest_is_that_of_the_content(bucket: Any, tmp_path: Path) -> None:
    bucket.put("a.bin", RANDOM)
    (tmp_path / "b.bin").write_bytes(RANDOM)
    (tmp_path / "c.bin").write_bytes(RANDOM[:-1] + b"!")
    digests = []
    for source in (f"{bucket.url}/a.bin", tmp_path / "b.bin", tmp_path / "c.bin"):
        with stage(source, tmp_path) as staged:
            digests.append(staged.digest)
    assert digests[0] == digests[1] != digests[2]
    one = hashlib.blake2b(RANDOM, digest_size=32).hexdigest()
    assert digests[0] == hashlib.blake2b(f"1:0={one}\n".encode(), digest_size=32).hexdigest()


@pytest.mark.parametrize(
    ("named", "options", "along"),
    [
        ("net-symbol.json", {}, ["net-0012.params"]),
        ("net-symbol.json", {"epoch": 3}, ["net-0003.params"]),
        ("net-0003.params", {}, ["net-symbol.json"]),
        ("plain-symbol.json", {}, ["plain.params"]),
        ("text.relay", {}, ["text.params"]),
        ("model.onnx", {}, ["data/weights.bin"]),
        ("graph.nnef", {}, ["conv/filter.dat", "graph.quant"]),
    ],
)
def test_what_belongs_to_a_model_comes_along(
    bucket: Any, tmp_path: Path, named: str, options: dict[str, int], along: list[str]
) -> None:
    params = (0x112).to_bytes(8, "little") + bytes(8)
    files = {
        "net-symbol.json": b'{"nodes": [], "arg_nodes": [], "heads": []}',
        "net-0003.params": params,
        "net-0012.params": params,
        "net-other-0044.params": params,
        "plain-symbol.json": b'{"nodes": []}',
        "plain.params": params,
        "text.relay": b'#[version = "0.0.5"]\n',
        "text.params": b"",
        "model.onnx": onnx_with_data("data/weights.bin"),
        "data/weights.bin": bytes(64),
        "graph.nnef": b"version 1.0;\n",
        "graph.quant": b"",
        "conv/filter.dat": b"",
        "unrelated.bin": b"",
    }
    for name, body in files.items():
        bucket.put(f"m/{name}", body)
    with stage(f"{bucket.url}/m/{named}", tmp_path, options=options) as staged:
        folder = staged.paths[0].parent
        found = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
        assert found == sorted([named, *along])
        assert all((folder / name).read_bytes() == files[name] for name in found)


def test_external_data_cannot_lead_out(bucket: Any, tmp_path: Path) -> None:
    bucket.put("m/model.onnx", onnx_with_data("../../etc/passwd"))
    with (
        pytest.raises(Exception, match="leaves the directory of the model"),
        stage(f"{bucket.url}/m/model.onnx", tmp_path),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_a_package_comes_whole(bucket: Any, tmp_path: Path) -> None:
    bucket.put("p.mlpackage/Manifest.json", b"{}")
    bucket.put("p.mlpackage/Data/w.bin", RANDOM)
    bucket.put("p.mlpackage.txt", b"no part of it")
    with stage(f"{bucket.url}/p.mlpackage", tmp_path) as staged:
        (path,) = staged.paths
        assert path.name == "p.mlpackage"
        assert (path / "Data/w.bin").read_bytes() == RANDOM
        assert [name for name, _ in staged.files] == ["Data/w.bin", "Manifest.json"]


def test_a_web_server_is_asked_for_ranges_and_resumes(tmp_path: Path) -> None:
    site = Site({"/net.bin": RANDOM}, cut=3)
    with (
        web_server(site) as address,
        stage(f"{address}/net.bin", tmp_path, retries=QUICK) as staged,
    ):
        assert staged.paths[0].read_bytes() == RANDOM
    ranges = [wanted for method, _, wanted in site.asked if method == "GET"]
    assert len(ranges) == -(-len(RANDOM) // (64 * 1024)) + 3
    assert all(wanted.startswith("bytes=") for wanted in ranges)


@pytest.mark.parametrize("site", [Site(ranges=False), Site(sizes=False), Site(ranges=False, cut=1)])
def test_a_web_server_without_ranges_is_read_to_the_end(site: Site, tmp_path: Path) -> None:
    site.files["/net.bin"] = RANDOM
    with (
        web_server(site) as address,
        stage(f"{address}/net.bin", tmp_path, retries=QUICK) as staged,
    ):
        assert staged.paths[0].read_bytes() == RANDOM


def test_a_source_that_changes_meanwhile_is_told(tmp_path: Path) -> None:
    site = Site({"/net.bin": RANDOM}, tags=["one"] * 5 + ["two"])
    with (
        web_server(site) as address,
        pytest.raises(StoreError, match=r"/net\.bin: changed while it was fetched$"),
        stage(f"{address}/net.bin", tmp_path, retries=QUICK),
    ):
        pass


def test_a_symbol_on_the_web_finds_its_parameters_without_a_listing(tmp_path: Path) -> None:
    site = Site({"/m/net-symbol.json": b'{"nodes": []}', "/m/net-0000.params": b"p"})
    with (
        web_server(site) as address,
        stage(f"{address}/m/net-symbol.json?token=s3cr3t", tmp_path, retries=QUICK) as staged,
    ):
        assert [path.name for _, path in staged.files] == ["net-symbol.json", "net-0000.params"]


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("s3://{bucket}/no.onnx", StoreError, r"^s3://[\w-]+/no.onnx: there is no such object$"),
        ("s3://no-such-bucket/a.onnx", StoreError, "there is no such bucket$"),
        ("http://127.0.0.1:9/a.onnx", StoreError, "the connection was refused, after 2 tries$"),
        ("nope://a/b.onnx", OptionError, "nope:// is no protocol that fsspec knows$"),
        ("hf://org/repo/a.onnx", MissingDependency, r"huggingface_hub is not installed; pip .*hf"),
        ("gs://bucket/a.onnx", MissingDependency, r"gcsfs is not installed; pip install .*\[gs\]"),
    ],
)
def test_each_fault_is_one_line(
    bucket: Any, tmp_path: Path, url: str, error: type[Exception], message: str
) -> None:
    source = url.format(bucket=bucket.name)
    with (
        pytest.raises(error, match=message) as found,
        stage(source, tmp_path, retries=Retries(2, 0.001)),
    ):
        pass
    assert "\n" not in str(found.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("status", "told"), [(403, "access is refused"), (503, "answered 503")])
def test_what_a_server_answers_is_told_without_secrets(
    tmp_path: Path, status: int, told: str
) -> None:
    site = Site(status=status)
    with web_server(site) as address:
        url = address.replace("://", "://me:passw0rd@") + "/a.onnx?X-Amz-Signature=s3cr3t"
        with (
            pytest.raises(StoreError, match=told) as found,
            stage(url, tmp_path, retries=Retries(3, 0.001)),
        ):
            pass
    assert "passw0rd" not in str(found.value)
    assert "s3cr3t" not in str(found.value)
    heads = [each for each in site.asked if each[0] == "HEAD"]
    assert len(heads) == (1 if status == 403 else 3)  # What is refused is not asked for again.


def test_missing_credentials_are_told(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    options = {"skip_instance_cache": True}
    with (
        pytest.raises(StoreError, match="no credentials were found; they come from the env"),
        stage(f"{bucket.url}/a.onnx", tmp_path, storage_options=options),
    ):
        pass


def test_a_disk_without_room_is_told_before_anything_is_fetched(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("net.bin", RANDOM)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    bucket.faults.requests.clear()
    with (
        pytest.raises(OptionError, match=r"no room for s3://.*1,000,003 bytes; 1,000 are free$"),
        stage(f"{bucket.url}/net.bin", tmp_path),
    ):
        pass
    assert [method for method, _ in bucket.faults.requests] == ["HEAD"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_disk_that_fills_up_is_told(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("net.bin", RANDOM)
    whole = fetching.write_all
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(fetching, "write_all", lambda fd, data: whole(full, data))
    with (
        pytest.raises(OptionError, match=r"no room for s3://.*: No space left on device$"),
        stage(f"{bucket.url}/net.bin", tmp_path),
    ):
        pass
    os.close(full)
    assert os.listdir(tmp_path) == []


@pytest.mark.wide
def test_what_a_killed_run_left_goes_with_the_next(bucket: Any, tmp_path: Path) -> None:
    bucket.put("net.bin", RANDOM)
    code = (
        "import sys, time\nfrom serde.fleet.stores.staging import stage\n"
        "with stage(sys.argv[1], sys.argv[2]): print('staged', flush=True); time.sleep(60)"
    )
    url = f"{bucket.url}/net.bin"
    run = subprocess.Popen(
        [sys.executable, "-c", code, url, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "staged\n"
    assert len(os.listdir(tmp_path)) == 1
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    sweep(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.wide
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_forked_child_reads_what_its_parent_staged(bucket: Any, tmp_path: Path) -> None:
    bucket.put("net.bin", RANDOM)
    with stage(f"{bucket.url}/net.bin", tmp_path) as staged:
        child = os.fork()
        if child == 0:
            os._exit(0 if staged.paths[0].read_bytes() == RANDOM else 1)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.01)
        assert (done, status) == (child, 0)


def test_a_file_in_an_archive_in_a_bucket_is_fetched(bucket: Any, tmp_path: Path) -> None:
    import io
    import zipfile

    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside/net.bin", RANDOM)
    bucket.put("all.zip", data.getvalue())
    with stage(f"zip://inside/net.bin::{bucket.url}/all.zip", tmp_path) as staged:
        assert staged.paths[0].name == "net.bin"
        assert staged.paths[0].read_bytes() == RANDOM


def test_another_file_system_is_asked_as_fsspec_does(tmp_path: Path) -> None:
    """As ``hf://`` would be: registered by its package, without ranges at the same time."""
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    class Hub(MemoryFileSystem):
        protocol = "hub"
        store: ClassVar[dict[str, Any]] = {}
        pseudo_dirs: ClassVar[list[str]] = [""]

        def __init__(self, *args: Any, token: str = "", **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.token = token

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + path.removeprefix("hub://").strip("/")

        def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
            if self.token != "hf_secret_token":
                raise PermissionError(f"401 for {self.token}")
            return super().info(path, **kwargs)

    fsspec.register_implementation("hub", Hub, clobber=True)
    Hub().pipe_file("/org/repo/net.bin", RANDOM)
    url = "hub://org/repo/net.bin"
    with stage(url, tmp_path, storage_options={"token": "hf_secret_token"}) as staged:
        assert staged.paths[0].read_bytes() == RANDOM
    with (
        pytest.raises(StoreError, match=r"^hub://org/repo/net.bin: access is refused") as found,
        stage(url, tmp_path, storage_options={"token": "hf_other_token"}),
    ):
        pass
    assert "hf_other_token" not in str(found.value)


@pytest.mark.wide
def test_a_range_that_comes_short_is_asked_for_again(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library may well hand out what it has when a connection ends."""
    bucket.put("net.bin", RANDOM)
    whole, short = Store.read, [True, True]

    def read(self: Store, path: str, start: int, stop: int) -> bytes:
        data = whole(self, path, start, stop)
        return data[:-1] if short and short.pop() else data

    monkeypatch.setattr(Store, "read", read)
    with stage(f"{bucket.url}/net.bin", tmp_path, retries=QUICK) as staged:
        assert staged.paths[0].read_bytes() == RANDOM
    assert short == []
