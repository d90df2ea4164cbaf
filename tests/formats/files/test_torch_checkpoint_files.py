"""Folders of Hugging Face that are refused before anything is loaded; needs no PyTorch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import write_folder, write_safetensors

import serde
from serde.errors import FormatError, MissingDependency
from serde.torch.checkpoint.files import checkpoint_files, is_checkpoint, open_checkpoint, sidecars

ONE = {"model-1.safetensors": {"a": [1.0, 2.0]}, "model-2.safetensors": {"b": [[3.0]]}}


def test_shards_are_ranges_of_their_files(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    assert is_checkpoint(folder)
    found = open_checkpoint(folder)
    assert {name: each.array().tolist() for name, each in found.weights.items()} == {
        "a": [1.0, 2.0],
        "b": [[3.0]],
    }
    assert {Path(each.source.path).name for each in found.weights.values()} == {*ONE}
    assert [each.name for each in checkpoint_files(folder)] == ["config.json", *ONE]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "llama", "auto_map": {"AutoModel": "x.Y"}}, "auto_map asks for code"),
        ({"model_type": "llama", "quantization_config": {"bits": 4}}, "gptq or awq"),
        ({}, "expected a model_type"),
        ({"model_type": 3}, "expected a model_type"),
    ],
)
def test_a_config_that_is_refused(tmp_path: Path, config: Any, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        open_checkpoint(write_folder(tmp_path / "net", ONE, config))


def test_a_shard_that_is_missing(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    (folder / "model-2.safetensors").unlink()
    with pytest.raises(FormatError, match=r"shard model-2\.safetensors is missing"):
        open_checkpoint(folder)


def test_a_tensor_that_the_index_names_and_the_shard_lacks(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    write_safetensors(folder / "model-2.safetensors", {"c": [1.0]})
    with pytest.raises(FormatError, match=r"model-2\.safetensors lacks b"):
        open_checkpoint(folder)


def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    write_safetensors(folder / "model-2.safetensors", {"a": [1.0], "b": [[3.0]]})
    with pytest.raises(FormatError, match=r"a is in model-2\.safetensors and in another shard"):
        open_checkpoint(folder)


def test_tensors_that_share_bytes(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    arrays = {"a": np.zeros(2), "c": np.zeros(2)}
    write_safetensors(folder / "model-1.safetensors", arrays, c=(4, 12))
    with pytest.raises(FormatError, match="c overlaps a"):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    "name", ["../out.safetensors", "/etc/passwd", "sub/model.safetensors", "C:x", "a\0b", ""]
)
def test_an_index_that_leaves_the_folder(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    write_safetensors(tmp_path / "out.safetensors", {"a": [1.0]})
    index = json.dumps({"weight_map": {"a": name}})
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(FormatError, match=r"leaves|absolute|another folder|drive|null|empty"):
        open_checkpoint(folder)


def test_a_link_that_leaves_the_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    write_safetensors(tmp_path / "out.safetensors", {"b": [[3.0]]})
    (folder / "model-2.safetensors").unlink()
    (folder / "model-2.safetensors").symlink_to(tmp_path / "out.safetensors")
    with pytest.raises(FormatError, match="leads out of the folder"):
        open_checkpoint(folder)


def test_links_of_a_cache_lead_to_its_blobs(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshots").mkdir()
    folder = write_folder(tmp_path / "snapshots" / "net", ONE)
    for each in [*folder.iterdir()]:
        each.rename(tmp_path / "blobs" / each.name)
        each.symlink_to(tmp_path / "blobs" / each.name)
    assert {*open_checkpoint(folder).weights} == {"a", "b"}


@pytest.mark.parametrize("text", ["[]", '{"weight_map": []}', '{"weight_map": {"a": 1}}', "{", ""])
def test_an_index_that_is_none(tmp_path: Path, text: str) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(FormatError):
        open_checkpoint(folder)


def test_files_of_a_tokenizer_and_no_others_are_copied(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", ONE)
    for name in ("tokenizer.json", "modeling_own.py", "pytorch_model.bin"):
        (folder / name).write_text("{}")
    assert sorted(sidecars(folder)) == ["config.json", "tokenizer.json"]


def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependency, match=r"serde-relay\[transformers\]"):
        serde.to_relay(write_folder(tmp_path / "net", ONE), task="text-generation")
