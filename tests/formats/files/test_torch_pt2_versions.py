"""Archives of older and newer releases of PyTorch, and what they may hold besides."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.pt2 import GOLDEN, MODEL, archive_of, changed, edited, runs_of, write

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import FormatError
from serde.torch.codec import detect
from serde.torch.pt2.reader import load_archive

ADDED = {
    "graph_module": {"treespec_namedtuple_fields"}, "graph": {"sym_float_values"},
    "nodes": {"name", "is_hop_single_tensor_return"}, "inputs": {"kind"}, "": {"guards_code"},
}  # fmt: skip
"""Fields that schema 8.3 had not, or that might be left out, by what they are fields of."""


def without_newer(value: Any, key: str = "") -> Any:
    """Return JSON without the fields that were added since schema 8.3."""
    if isinstance(value, list):
        return [without_newer(each, key) for each in value]
    if not isinstance(value, dict):
        return value
    gone = ADDED.get(key, set())
    return {name: without_newer(each, name) for name, each in value.items() if name not in gone}


def release(name: str, version: str, member: str = "", content: bytes = b"") -> bytes:
    """Return an archive as a release of PyTorch laid it out, of one in the layout of 2.7.

    Args:
        name: The case.
        version: The release.
        member: A member of it that is exchanged.
        content: What for.
    """
    with zipfile.ZipFile(GOLDEN / "older" / f"{name}.pt2") as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    minor, program = SCHEMAS[version], "serialized_exported_program.json"
    document = json.loads(members[program])
    document["schema_version"]["minor"] = minor
    document["torch_version"] = f"{version}.0"
    if minor < 7:
        document = without_newer(document)
    members |= {program: json.dumps(document).encode(), "version": f"8.{minor}".encode()}
    if version == "2.8":
        places = {
            program: MODEL, "serialized_state_dict.pt": "data/weights/model.pt",
            "serialized_constants.pt": "data/constants/model.pt",
            "serialized_example_inputs.pt": "data/sample_inputs/model.pt", "version": "version",
        }  # fmt: skip
        members = {places[each]: found for each, found in members.items()}
        members |= {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}
    assert not member or member in members
    members |= {member: content} if member else {}
    return archive_of(members, folder="model/" if version == "2.8" else "")


SCHEMAS = {"2.6": 3, "2.7": 7, "2.8": 8}
"""A minor version of the schema that each of these releases reads."""


@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.parametrize("name", ["cnn", "shared"])
def test_archives_of_older_releases(name: str, version: str, tmp_path: Path) -> None:
    path = write(tmp_path, release(name, version))
    assert detect(path)
    loaded = load_archive(path)
    assert not loaded.notes
    for key, weight in load_archive(GOLDEN / f"{name}.pt2").weights.items():
        assert (loaded.weights[key].shape, loaded.weights[key].dtype) == (
            weight.shape,
            weight.dtype,
        )
    model = serde.to_relay(path)
    for arguments, outputs, _ in runs_of(name):
        values = RelayEngine(model).run(dict(zip(model.meta.inputs, arguments, strict=True)))
        for value, expected in zip(values, outputs, strict=True):
            assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


def test_weights_in_pickles_are_ranges_of_the_archive(tmp_path: Path) -> None:
    path = write(tmp_path, release("cnn", "2.7"))
    source = load_archive(path).weights["head.weight"].source
    assert source is not None
    assert (source.path, source.length) == (os.fspath(path), 160)


def test_compressed_archives_of_older_releases(tmp_path: Path) -> None:
    data = release("shared", "2.6")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    packed = archive_of(members, folder="", compression=zipfile.ZIP_DEFLATED)
    one, other = (
        load_archive(write(tmp_path, each, name)).weights
        for each, name in ((data, "a.pt2"), (packed, "b.pt2"))
    )
    for name, weight in one.items():
        np.testing.assert_array_equal(other[name].array(), weight.array())


PICKLES = {
    "bomb": (pickle.dumps({"stem.0.weight": os.getcwd}, 2), r"expected an object, found _Global"),
    "call": (b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "os system is no tensor"),
    "object": (b"\x80\x02cos\nPath\n)\x81.", "a step NEWOBJ"),
    "number": (b"\x80\x02K\x01.", "no dict of tensors"),
    "empty": (b"", "pickle of tensors"),
    "key": (b"\x80\x02}(}K\x01u.", "unhashable"),
    "type": (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((K\x01K\x01K\x01tK\x00))tR.",
        "pickle of",
    ),
    "far": (b"\x80\x02h\x07.", "pickle of tensors"),
    "none": (b"\x80\x02}.", "has no entry among the weights"),
}


@pytest.mark.parametrize("case", PICKLES)
@pytest.mark.parametrize("version", ["2.7", "2.8"])
def test_other_pickles_are_refused_and_never_run(case: str, version: str, tmp_path: Path) -> None:
    data, message = PICKLES[case]
    member = "serialized_state_dict.pt" if version == "2.7" else "data/weights/model.pt"
    nested = archive_of({"data.pkl": data, "byteorder": b"little"}, folder="archive/")
    with pytest.raises(FormatError, match=message):
        load_archive(write(tmp_path, release("cnn", version, member, nested)))


def test_a_nested_archive_that_is_damaged(tmp_path: Path) -> None:
    data = release("cnn", "2.7", "serialized_state_dict.pt", b"PK\3\4" + bytes(200))
    with pytest.raises(FormatError, match="no sound zip archive"):
        load_archive(write(tmp_path, data))


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ({"major": 9, "minor": 0}, r"schema 9\.0; 8 up to 8\.20"),
        ({"major": 7, "minor": 3}, r"schema 7\.3, which PyTorch 2\.5 wrote"),
    ],
)
def test_other_schemas_are_named(tmp_path: Path, version: dict[str, int], message: str) -> None:
    data = edited("cnn", MODEL, lambda model: {**model, "schema_version": version})
    with pytest.raises(FormatError, match=message):
        load_archive(write(tmp_path, data))


def test_fields_of_newer_versions_are_passed_over_and_told(tmp_path: Path) -> None:
    def edit(model: dict) -> None:
        model["schema_version"]["minor"] = 99
        model["news"] = [1]
        model["graph_module"]["graph"]["nodes"][0]["news"] = {}

    found = load_archive(write(tmp_path, edited("cnn", MODEL, edit)))
    assert found.version == "8.99"
    assert "schema 8.99 is newer than 8.20 (PyTorch 2.13 and 2.14)" in found.notes[0]
    assert not load_archive(GOLDEN / "cnn.pt2").notes


def test_nodes_without_names(tmp_path: Path) -> None:
    """As releases before 2.10 wrote them."""

    def edit(model: dict) -> None:
        for node in model["graph_module"]["graph"]["nodes"]:
            del node["name"], node["is_hop_single_tensor_return"]

    found = load_archive(write(tmp_path, edited("cnn", MODEL, edit)))
    assert [node.name for node in found.nodes()][:3] == ["conv2d", "batch_norm", "relu"]


def test_several_programs_are_named(tmp_path: Path) -> None:
    data = changed("cnn", {"models/other.json": b"{}"})
    with pytest.raises(FormatError, match="expected one program, found 2: model, other"):
        load_archive(write(tmp_path, data))


def test_compiled_packages_are_named(tmp_path: Path) -> None:
    data = changed("cnn", {MODEL: None, "data/aotinductor/model/a.so": b""})
    with pytest.raises(FormatError, match="only code that AOTInductor compiled"):
        load_archive(write(tmp_path, data))


def test_constants_that_are_objects_are_named(tmp_path: Path) -> None:
    def edit(model: dict) -> None:
        spec = {"arg": {"name": "o", "class_fqn": "a.B"}, "custom_obj_name": "packed"}
        model["graph_module"]["signature"]["input_specs"].append({"custom_obj": spec})

    with pytest.raises(FormatError, match="holds the object 'packed'"):
        load_archive(write(tmp_path, edited("cnn", MODEL, edit)))


def test_a_symbol_of_one_value_is_a_number(tmp_path: Path) -> None:
    def edit(model: dict) -> None:
        for limits in model["range_constraints"].values():
            limits.update(min_val=4, max_val=4)

    (first,) = load_archive(write(tmp_path, edited("cnn", MODEL, edit))).inputs
    assert first.shape == [4, 3, 12, 12]
