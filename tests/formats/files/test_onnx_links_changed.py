"""Files that linked weights lie in and that change afterwards, and models that lie of them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_links import RNG, WEIGHTS, change, link, places, run, write
from support.onnx_models import same_bits, tensor

import serde
from serde.bridge.formats import get_bridge
from serde.command.cli import main
from serde.core.report import Report
from serde.core.weights import OpenFile
from serde.errors import FormatError
from serde.io.fingerprint import MOST_RANGES, Fingerprint


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    link(write(tmp_path / "n-symbol.json", "mxnet"), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def told_of(path: Path) -> str:
    with pytest.raises(FormatError) as told:
        serde.to_relay(path)
    return str(told.value)


def test_the_same_bytes_in_a_new_file_are_fine(linked: Path) -> None:
    params = linked.with_name("n-0000.params")
    shutil.copyfile(params, params.with_name("copy"))
    params.with_name("copy").replace(params)
    os.utime(params, (0, 0))
    found = serde.to_relay(linked)
    assert same_bits(next(iter(found.params.values())).array(), WEIGHTS["first"])


def test_a_changed_file_is_an_error(linked: Path) -> None:
    params = linked.with_name("n-0000.params")
    _, offset, length = places(linked)["second"]
    for at in (0, offset, offset + length // 2, offset + length - 1, params.stat().st_size - 1):
        change(params, at)
        start = f"{linked}: its weights were linked to 'n-0000.params', which has changed since: "
        assert told_of(linked).startswith(f"{start}expected ")
        assert told_of(linked).endswith("convert the model again, or bring that file back")
        change(params, at)
    serde.to_relay(linked)


def test_a_file_of_another_length_is_an_error(linked: Path) -> None:
    params = linked.with_name("n-0000.params")
    data = params.read_bytes()
    for other in (data[:-1], data + b"x", b""):
        params.write_bytes(other)
        wanted = f"has changed since: expected {len(data)} bytes, found {len(other)}"
        assert wanted in told_of(linked)


@pytest.mark.parametrize("command", ["inspect", "convert", "check", "diff"])
@pytest.mark.parametrize("fault", ["changed", "gone", "renamed"])
def test_every_command_tells(
    command: str, fault: str, linked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = linked.with_name("n-0000.params")
    other = linked.with_name("other.onnx")
    serde.convert(linked, other)
    if fault == "changed":
        change(params, 200)
    elif fault == "gone":
        params.unlink()
    else:
        params.rename(params.with_name("weights.params"))
    arguments = {
        "inspect": [linked],
        "convert": [linked, linked.with_name("again.onnx")],
        "check": [other, linked],
        "diff": [other, linked],
    }
    assert main([command, *map(str, arguments[command])]) == 3
    told = capsys.readouterr().err.splitlines()[-1]
    reason = "which has changed since" if fault == "changed" else "cannot be read: No such file"
    assert "its weights were linked to 'n-0000.params'" in told
    assert reason in told


def test_inspection_tells_of_the_links(linked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(linked), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert facts["linked to"] == "n-0000.params: 2 weights of 7.7 kB, unchanged"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A source of which a fingerprint does not see everything."""
    array = RNG.normal(size=(300, 300)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 300])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 300])],
        [tensor("w", array)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, tmp_path / "n.onnx", save_as_external_data=True, location="d")
    return tmp_path / "n.onnx"


@pytest.mark.wide
@pytest.mark.parametrize("digest", ["sampled", "full"])
def test_only_a_checksum_sees_every_byte(digest: str, large: Path) -> None:
    target, copy = large.with_name("m.onnx"), large.with_name("copy.onnx")
    link(large, target, link_digest=digest)
    serde.convert(large, copy)
    onnx.checker.check_model(target)
    assert main(["check", str(copy), str(target)]) == 0
    change(large.with_name("d"), 120_000)  # In the middle lie bytes 179,488 to 180,512.
    serde.to_relay(target)
    assert main(["check", str(copy), str(target), "--atol", "1"]) == (3 if digest == "full" else 0)
    change(large.with_name("d"), 180_000)
    with pytest.raises(FormatError, match="has changed since"):
        serde.to_relay(target)


def test_a_linked_model_is_a_source_like_any_other(linked: Path) -> None:
    inputs = {"x": RNG.normal(size=(2, 24)).astype(np.float32)}
    expected = run(linked, inputs)[0]
    folder = linked.parent
    for name in ("again.onnx", "back-symbol.json", "back.mlpackage"):
        serde.convert(linked, folder / name)
    link(linked, folder / "second.onnx")
    assert set(places(folder / "second.onnx").values()) == set(places(linked).values())
    (folder / "n-0000.params").unlink()
    assert places(folder / "again.onnx") == {}
    assert "serde.linked" not in {p.key for p in onnx.load(folder / "again.onnx").metadata_props}
    assert same_bits(run(folder / "again.onnx", inputs)[0], expected)
    serde.convert(folder / "back-symbol.json", folder / "third.onnx")
    assert same_bits(run(folder / "third.onnx", inputs)[0], expected)


def test_a_file_that_changes_during_the_conversion_is_an_error(tmp_path: Path) -> None:
    source = write(tmp_path / "n.onnx", "onnx", save_as_external_data=True)
    bridge = get_bridge("onnx")
    options = bridge.bind_export({"link_weights": True})
    native = bridge.from_relay(serde.to_relay(source), options, report=Report())
    change(tmp_path / "n.onnx.data", 0)
    with pytest.raises(FormatError, match="changed while it was being read"):
        bridge.save(native, tmp_path / "m.onnx", options)
    assert not (tmp_path / "m.onnx").exists()


# Models that lie.


def rewrite(path: Path, value: str) -> None:
    model = onnx.load(path, load_external_data=False)
    (entry,) = [each for each in model.metadata_props if each.key == "serde.linked"]
    entry.value = value
    path.write_bytes(model.SerializeToString())


GOOD = {"location": "n-0000.params", "bytes": 10, "ranges": [[0, 5]], "fingerprint": "0" * 32}
LIES: dict[str, Any] = {
    "no JSON": "{",
    "deep": "[" * 100_000,
    "no list": GOOD,
    "no files": [1],
    "twice": [GOOD, GOOD],
    "no location": [{**GOOD, "location": 1}],
    "truth for a length": [{**GOOD, "bytes": True}],
    "long digest": [{**GOOD, "fingerprint": "0" * 33}],
    "range beyond the end": [{**GOOD, "ranges": [[6, 5]]}],
    "range of texts": [{**GOOD, "ranges": [["0", 5]]}],
    "range of three": [{**GOOD, "ranges": [[0, 5, 5]]}],
    "range before the begin": [{**GOOD, "ranges": [[-1, 5]]}],
    "ranges out of order": [{**GOOD, "ranges": [[1, 1], [0, 1]]}],
    "a range twice": [{**GOOD, "ranges": [[0, 1], [0, 1]]}],
    "too long": [{**GOOD, "bytes": 2**63}],
    "too many ranges": [
        {**GOOD, "bytes": 10_000, "ranges": [[at, 1] for at in range(MOST_RANGES + 2)]}
    ],
    "too much": [{**GOOD, "comment": "x" * 2**21}],
}


@pytest.mark.parametrize("lie", LIES)
def test_malformed_facts_are_refused(lie: str, linked: Path) -> None:
    value = LIES[lie]
    rewrite(linked, value if isinstance(value, str) else json.dumps(value))
    assert f"{linked}: metadata serde.linked: expected files with location" in told_of(linked)


def test_facts_are_told_once(linked: Path) -> None:
    model = onnx.load(linked, load_external_data=False)
    model.metadata_props.append(model.metadata_props[-1])
    linked.write_bytes(model.SerializeToString())
    assert "metadata serde.linked: expected files with location" in told_of(linked)


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "elsewhere", "up/secret"])
def test_facts_of_files_that_no_weight_lies_in_open_nothing(location: str, linked: Path) -> None:
    linked.parent.joinpath("up").symlink_to("..")
    rewrite(linked, json.dumps([{**GOOD, "location": location}]))
    serde.to_relay(linked)


def test_a_name_of_a_hidden_folder_does_not_lead_out_of_it(linked: Path) -> None:
    """Only while serde writes a model there, its data may lie beside its later place."""
    hidden = linked.parent / ".serde-abcdefgh" / "new"
    hidden.mkdir(parents=True)
    shutil.copyfile(linked, hidden / "m.onnx")
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        serde.to_relay(hidden / "m.onnx")


def test_fingerprints_of_many_ranges_look_into_some(tmp_path: Path) -> None:
    size = 40 * (MOST_RANGES + 1000)
    (tmp_path / "d").write_bytes(bytes(size))
    with OpenFile.open(tmp_path / "d") as opened:
        found = Fingerprint.take(opened, [(40 * i, 40) for i in range(MOST_RANGES + 1000)])
        assert len(found.ranges) == MOST_RANGES
        assert found.fault(opened) is None
    change(tmp_path / "d", found.ranges[2000][0])
    with OpenFile.open(tmp_path / "d") as opened:
        fault = found.fault(opened)
    assert fault is not None
    assert fault.startswith(f"expected {found.digest}, found ")


def trained(path: Path, seed: int) -> Path:
    """Write a model of one layer with weights of its own, and its data in a file beside it."""
    weights = np.random.default_rng(seed).normal(size=(32, 64)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, length])
        for name, length in (("x", 32), ("y", 64))
    ]
    graph = helper.make_graph([node], "net", ends[:1], ends[1:], [tensor("w", weights)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    serde.convert(model, path, save_as_external_data=True)
    return path


def test_data_of_another_training_is_told(tmp_path: Path) -> None:
    one, other = trained(tmp_path / "one.onnx", 1), trained(tmp_path / "other.onnx", 2)
    data = tmp_path / "one.onnx.data"
    assert serde.convert(one, tmp_path / "copy.onnx").notes == []
    shutil.copyfile(tmp_path / "other.onnx.data", data)
    report = serde.convert(one, tmp_path / "copy.onnx")
    start = "'one.onnx.data' is not the file that was written with the model: expected "
    assert [note.startswith(start) for note in report.notes] == [True]
    # What is converted are the weights that lie there.
    assert serde.check(tmp_path / "copy.onnx", other).passed
    assert "serde.data" not in {p.key for p in onnx.load(tmp_path / "copy.onnx").metadata_props}


def test_data_of_the_same_graph_keeps_its_name(tmp_path: Path) -> None:
    path = trained(tmp_path / "net.onnx", 1)
    before = path.read_bytes()
    trained(path, 2)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    assert path.read_bytes() != before
    trained(path, 1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["[]x", '[{"location": "net.onnx.data"}]'])
def test_a_malformed_note_of_data_is_an_error(tmp_path: Path, text: str) -> None:
    path = trained(tmp_path / "net.onnx", 1)
    model = onnx.load(path, load_external_data=False)
    (entry,) = [each for each in model.metadata_props if each.key == "serde.data"]
    entry.value = text
    path.write_bytes(model.SerializeToString())
    assert f"{path}: metadata serde.data: expected files with location" in told_of(path)
