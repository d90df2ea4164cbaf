"""What a file or folder is that no format reads, as its content says, and the way in from there.

Only the beginning of a file is looked at, or the names in an archive; nothing in it is executed.
"""

from __future__ import annotations

import json
import os
import pickletools  # nosec B403
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from io import BytesIO
from itertools import islice
from typing import Final

from serde.errors import FormatError
from serde.io.archives import is_tar, tar_names
from serde.io.zips import is_zip, zip_copy
from serde.texts import printable
from serde.weights import OpenFile

__all__ = ["describe_content", "describe_unrecognised"]

_HEAD_BYTES: Final = 2**14
_SHOWN_NAMES: Final = 4
_MOST_NAMES: Final = 1000
_MOST_OPS: Final = 64

_TF2ONNX: Final = "python -m tf2onnx.convert {} --output model.onnx"
_KERAS: Final = "in Keras, model.export('model.onnx', format='onnx')"
_READ: Final = "makes an ONNX model of it, which is read"
_ORIGIN: Final = "convert the model that it was made of"
_FETCH: Final = "if it was downloaded, fetch the file itself by its direct address"
_SAVED_MODEL: Final = (
    f"a SavedModel of TensorFlow; {_TF2ONNX.format('--saved-model FOLDER')} {_READ}"
)

_MAGICS: Final = (
    (0, b"\x89HDF\r\n\x1a\n", f"an HDF5 file, such as Keras writes; {_KERAS}, or elsewhere "
     f"{_TF2ONNX.format('--keras FILE')}, {_READ}"),
    (0, b"GGUF", "a GGUF file of llama.cpp: weights without a graph; take the net that they are "
     "of, as a module of PyTorch or exported by optimum-cli export onnx"),
    (0, b"version https://git-lfs", "a pointer of Git LFS; fetch the file with git lfs pull"),
    (0, b"\x93NUMPY", "an array of NumPy, which is no model"),
    (4, b"TFL3", f"a model of TensorFlow Lite; {_TF2ONNX.format('--tflite FILE')} {_READ}"),
    (4, b"ORTM", f"a model in ONNX Runtime's own format; {_ORIGIN}, an .onnx file"),
)  # fmt: skip
"""How files begin: offset, bytes, and what they are."""

_BEGINNINGS: Final = (
    (rb"(<!--.{,999}?-->\s*)?<(!doctype\s+html|html[\s>])", f"a web page (HTML): {_FETCH}"),
    (rb"<\?xml[^>]*>\s*<Error>", f"an error that a server sent (XML): {_FETCH}"),
    (rb"(<\?xml[^>]*>\s*)?<net\s[^>]*version=", f"a model of OpenVINO; {_ORIGIN}"),
    (rb'\{.*"modelTopology"\s*:', "a model of TensorFlow.js; "
     f"{_TF2ONNX.format('--tfjs FILE')} {_READ}"),
)  # fmt: skip
"""How texts begin, as regular expressions, and what they are."""

_GRAPH_DEF: Final = re.compile(rb"\n.{1,3}?\n(.)([\w.][\w.\\/>-]*)\x12(.)([A-Z]\w*)", re.DOTALL)
"""How a protobuf message begins whose first field is a node: a name and an operator."""


def describe_content(path: str | os.PathLike[str]) -> str | None:
    """Return what a file or folder is whose content no format has, whatever its name says.

    None where nothing is known of it, or a format may have it.
    """
    if os.path.isdir(path):
        return _describe_folder(_names(path))
    head = _head(path)
    for offset, magic, text in _MAGICS:
        if head.startswith(magic, offset):
            return text
    stripped = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for pattern, text in _BEGINNINGS:
        if re.match(pattern, stripped, re.IGNORECASE | re.DOTALL):
            return text
    if os.fspath(path).endswith(".json") or not _is_json(stripped, len(head) < _HEAD_BYTES):
        return None
    shown = printable(" ".join(stripped[:60].decode(errors="replace").split()))
    return f"JSON that begins {shown}, such as a server sends in place of a file: {_FETCH}"


def describe_unrecognised(path: str | os.PathLike[str]) -> str | None:
    """Return what a file or folder is that no format recognises; None where that is not known."""
    found = describe_content(path)
    if found is not None:
        return found
    if os.path.isdir(path):
        return _told("a folder", _names(path))
    head, name = _head(path), os.path.basename(path)
    if not head:
        return "an empty file" if os.path.isfile(path) else None
    if name == "saved_model.pb" and head.startswith(b"\x08\x01\x12"):
        return _SAVED_MODEL
    node = _GRAPH_DEF.match(head)
    if node and [*map(len, node.group(2, 4))] == [node[1][0], node[3][0]]:
        asked = _TF2ONNX.format("--graphdef FILE --inputs x:0 --outputs y:0")
        return f"a GraphDef of TensorFlow; {asked} {_READ}"
    try:
        if is_zip(path):
            return _describe_zip(zip_copy(path, lambda _name, _size: None))
        if is_tar(path):
            return _told("a tar archive", tar_names(path))
    except FormatError:
        return None
    if name.endswith(".joblib") or _is_pickle(head):
        way = f"; in Python, skl2onnx.to_onnx(...) {_READ}" if b"sklearn" in head else ""
        return (
            "a pickle, as pickle and joblib write, which is never unpickled here, since that runs "
            f"what the file says{way}"
        )
    return None


def _head(path: str | os.PathLike[str]) -> bytes:
    """Return the beginning of a file, nothing of what is none."""
    try:
        with OpenFile.open(path) as opened:
            head = bytearray(min(_HEAD_BYTES, opened.size))
            opened.read_into(head, 0)
    except FormatError:
        return b""
    return bytes(head)


def _is_json(head: bytes, is_whole: bool) -> bool:
    """Whether a text is JSON, or begins as a long one does."""
    if not head.startswith((b"{", b"[")):
        return False
    if not is_whole:
        return re.match(rb'\{\s*"[^"]*"\s*:|\[\s*[\[{"\d]', head) is not None
    try:
        json.loads(head)
    except (ValueError, RecursionError):
        return False
    return True


def _is_pickle(head: bytes) -> bool:
    """Whether bytes are opcodes of a pickle as far as they are looked at."""
    if head[:1] != b"\x80" or head[1] not in range(2, 6):
        return False
    count = 0
    try:
        for _ in islice(pickletools.genops(BytesIO(head)), _MOST_OPS):
            count += 1
    except (ValueError, IndexError, OverflowError):
        return len(head) == _HEAD_BYTES and count > 3  # The beginning of a long one.
    return True


def _describe_zip(names: Collection[str]) -> str:
    if {"metadata.json", "config.json", "model.weights.h5"} <= {*names}:
        return f"a model of Keras; {_KERAS} {_READ}"
    if names and all(name.endswith(".npy") for name in names):
        return "arrays of NumPy, which are no model"
    return _told("a zip archive", names)


def _names(folder: str | os.PathLike[str]) -> list[str]:
    """Return names in a folder, not too many; none of one that cannot be looked into."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(each.name for each in islice(entries, _MOST_NAMES))
    return []


def _describe_folder(names: Collection[str]) -> str | None:
    if {"saved_model.pb", "saved_model.pbtxt"} & {*names}:
        return _SAVED_MODEL
    if "coremldata.bin" in names:
        return f"a compiled Core ML model; {_ORIGIN}, an .mlpackage or .mlmodel"
    weights = ("model.safetensors", "pytorch_model.bin")
    if "config.json" in names and any(name.startswith(weights) for name in names):
        return (
            "a checkpoint of Hugging Face's: weights without a graph; optimum-cli export onnx "
            f"--model FOLDER OUT {_READ}"
        )
    return None


def _told(what: str, names: Iterable[str]) -> str:
    """Return what holds other files, with their names."""
    first = [printable(name)[:100] for name in islice(names, _SHOWN_NAMES + 1)]
    if not first:
        return f"an empty {what.removeprefix('a ')}"
    shown = ", ".join([*first[:_SHOWN_NAMES], *(["..."] if len(first) > _SHOWN_NAMES else [])])
    way = "name the model in it" if what == "a folder" else "unpack it and name the model"
    return f"{what} that is no model itself and holds {shown}; {way}, if one is there"
