"""What PyTorch saves that is no program: it is named, and never unpickled."""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import serde
from serde.torch.unread import describe_file, describe_pickle

torch = pytest.importorskip("torch")

NET = torch.nn.Sequential(torch.nn.Linear(300, 4), torch.nn.ReLU())
STATE = NET.state_dict()
WEIGHTS = r"weights without a net: make the net in Python, give it these by load_state_dict"
MODULE = r"a pickled module, torch\.nn\.modules\.container\.Sequential, which is never unpickled"
KINDS = {
    "state dict": (STATE, rf"a dict of tensors from '0\.weight' on, {WEIGHTS}"),
    "dict": (dict(STATE), rf"a dict of tensors from '0\.weight' on, {WEIGHTS}"),
    "checkpoint": ({"epoch": 3, "model": STATE}, rf"a dict of tensors from 'epoch' on, {WEIGHTS}"),
    "module": (NET, MODULE),
    "module in a dict": ({"net": NET}, r"a pickle of torch\.save, which is no program"),
    "tensor": (torch.ones(3), r"a pickle of torch\.save, which is no program"),
}


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("suffix", [".pth", ".bin", ".pt"])
@pytest.mark.parametrize("kind", KINDS)
def test_files(kind: str, suffix: str, archive: bool, tmp_path: Path) -> None:
    path = tmp_path / f"saved{suffix}"
    value, message = KINDS[kind]
    torch.save(value, path, _use_new_zipfile_serialization=archive)
    with pytest.raises(serde.FormatError, match=rf"saved\{suffix}: holds {message}"):
        serde.to_relay(path)


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    pytest.importorskip("safetensors.torch").save_file(STATE, path)
    with pytest.raises(serde.FormatError, match=rf"model\.safetensors: holds {WEIGHTS}"):
        serde.to_relay(path)


@pytest.mark.parametrize("source", [STATE, dict(STATE), {"model": STATE}, OrderedDict(STATE)])
def test_live_weights(source: Any) -> None:
    with pytest.raises(serde.OptionError, match=rf"ict of tensors: {WEIGHTS}"):
        serde.to_relay(source)


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("protocol", range(2, 6))
def test_nothing_is_executed(protocol: int, tmp_path: Path) -> None:
    data = pickle.dumps(Bomb(tmp_path / "mark"), protocol)
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("bomb/data.pkl", data)
    with pytest.raises(serde.FormatError, match="never unpickled"):
        serde.to_relay(path)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"(" * 2**22, b"X\xff\xff\xff\x7fa", b"\x93.", b"I" + b"9" * 9999]
)
def test_damaged_pickles(data: bytes, tmp_path: Path) -> None:
    assert "torch.save" in describe_pickle(data)
    old = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
    (tmp_path / "a.pth").write_bytes(old + data)
    assert "torch.save" in (describe_file(tmp_path / "a.pth") or "")


OPTIONS = (
    "allow", "converters", "custom_convert_map", "default_dtype", "input_dtypes", "input_shapes",
    "keep_unknown", "labels", "limits", "result_types", "dynamic_shapes",
)  # fmt: skip
"""The last may be a list of anything."""


@pytest.mark.parametrize(
    ("name", "nested"), [(name, nested) for name in OPTIONS for nested in (False, True)][:-1]
)
def test_tensors_are_not_printed_whole(name: str, nested: bool) -> None:
    tensor = torch.rand(40, 300)
    given = {name: [tensor, tensor] if nested else tensor}
    with pytest.raises(serde.OptionError) as refused:
        serde.to_relay(NET, **{"example_inputs": (torch.rand(1, 300),), **given})
    assert len(str(refused.value)) < 250
    assert "Tensor of torch.float32" in str(refused.value)
