"""What a file or folder is that no format reads, as its content says, and the way in from there.

Only the beginning of a file is looked at, or the names in an archive; nothing in it is executed.
"""

from __future__ import annotations

import os
import pickletools  # nosec B403
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from io import BytesIO
from itertools import islice
from typing import Final

from serde.core import OpenFile, parse_json, printable
from serde.errors import FormatError
from serde.io.archives import is_tar, tar_names
from serde.io.zips import is_zip, zip_copy

__all__ = ["describe_content", "describe_unrecognised"]

_HEAD_BYTES: Final = 2**14
_SHOWN_NAMES: Final = 4
_MOST_NAMES: Final = 1000
_MOST_OPS: Final = 64

_TF2ONNX: Final = (
    "python -m tf2onnx.convert {} --output model.onnx makes an ONNX model of it, which is read"
)
_KERAS: Final = "in Keras, model.export('model.onnx', format='onnx')"
_ORIGIN: Final = "convert the model that it was made of"
_FETCH: Final = "if it was downloaded, fetch the file itself by its direct address"
_SAVED_MODEL: Final = f"a SavedModel of TensorFlow; {_TF2ONNX.format('--saved-model FOLDER')}"

_MAGICS: Final = (
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file, such as Keras writes; "
     f"{_KERAS}, or elsewhere {_TF2ONNX.format('--keras FILE')}"),
    (0, b"version https://git-lfs", "a pointer of Git LFS; fetch the file with git lfs pull"),
    (0, b"\x93NUMPY", "an array of NumPy, which is no model"),
    (4, b"ORTM", f"a model in ONNX Runtime's own format; {_ORIGIN}, an .onnx file"),
)  # fmt: skip
"""How files begin: offset, bytes, and what they are."""

_BEGINNINGS: Final = (
    (rb"(<!--.{,999}?-->\s*)?<(!doctype\s+html|html[\s>])", f"a web page (HTML): {_FETCH}"),
    (rb"<\?xml[^>]*>\s*<Error>", f"an error that a server sent (XML): {_FETCH}"),
    (rb"(<\?xml[^>]*>\s*)?<net\s[^>]*version=", f"a model of OpenVINO; {_ORIGIN}"),
    (rb'\{.*"modelTopology"\s*:', f"a model of TensorFlow.js; {_TF2ONNX.format('--tfjs FILE')}"),
)
"""How texts begin, as regular expressions, and what they are."""

_JSON: Final = re.compile(rb'\{\s*"[^"]*"\s*:|\[\s*[\[{"\d]')
"""How a JSON text begins of which only the beginning is read."""

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
    if os.fspath(path).endswith("json") or not _is_json(stripped, len(head) < _HEAD_BYTES):
        return None
    shown = printable(" ".join(stripped[:60].decode(errors="replace").split()))
    return f"JSON that begins {shown}, such as a server sends in place of a file: {_FETCH}"


def describe_unrecognised(path: str | os.PathLike[str]) -> str | None:
    """Return what a file or folder is that no format recognises; None where that is not known."""
    found = describe_content(path)
    if found is not None:
        return found
    if os.path.isdir(path):
        return _told("a folder", _names(path), "name the model in it")
    head, name = _head(path), os.path.basename(path)
    if not head:
        return "an empty file" if os.path.isfile(path) else None
    if name == "saved_model.pb" and head.startswith(b"\x08\x01\x12"):
        return _SAVED_MODEL
    node = _GRAPH_DEF.match(head)
    if node and [*map(len, node.group(2, 4))] == [node[1][0], node[3][0]]:
        asked = "--graphdef FILE --inputs x:0 --outputs y:0"
        return f"a GraphDef of TensorFlow; {_TF2ONNX.format(asked)}"
    with suppress(FormatError):
        if is_zip(path):
            return _describe_zip(zip_copy(path, lambda _name, _size: None))
        if is_tar(path):
            return _told("a tar archive", tar_names(path), "unpack it and name the model")
    if not name.endswith(".joblib") and not _is_pickle(head):
        return None
    way = "; in Python, skl2onnx.to_onnx(...) makes an ONNX model of it, which is read"
    return (
        "a pickle, as pickle and joblib write, which is never unpickled here, since that runs "
        f"what the file says{way if b'sklearn' in head else ''}"
    )


def _head(path: str | os.PathLike[str]) -> bytes:
    """Return the beginning of a file, nothing of what is none."""
    with suppress(FormatError), OpenFile.open(path) as opened:
        head = bytearray(min(_HEAD_BYTES, opened.size))
        opened.read_into(head, 0)
        return bytes(head)
    return b""


def _names(folder: str | os.PathLike[str]) -> list[str]:
    """Return names in a folder, not too many; none of one that cannot be looked into."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(each.name for each in islice(entries, _MOST_NAMES))
    return []


def _is_json(text: bytes, is_whole: bool) -> bool:
    if not is_whole or not text.startswith((b"{", b"[")):
        return not is_whole and _JSON.match(text) is not None
    with suppress(ValueError):
        parse_json(text)
        return True
    return False


def _is_pickle(head: bytes) -> bool:
    """Whether bytes are opcodes of a pickle as far as they are looked at."""
    if not re.match(rb"\x80[\x02-\x05]", head):
        return False
    count = 0
    with suppress(ValueError, IndexError, OverflowError):
        for _ in islice(pickletools.genops(BytesIO(head)), _MOST_OPS):
            count += 1
        return True
    return len(head) == _HEAD_BYTES and count > 3  # The beginning of a long one.


def _describe_zip(names: Collection[str]) -> str:
    if {"metadata.json", "config.json", "model.weights.h5"} <= {*names}:
        return f"a model of Keras; {_KERAS} makes an ONNX model of it, which is read"
    if names and all(name.endswith(".npy") for name in names):
        return "arrays of NumPy, which are no model"
    return _told("a zip archive", names, "unpack it and name the model")


def _describe_folder(names: Collection[str]) -> str | None:
    if {"saved_model.pb", "saved_model.pbtxt"} & {*names}:
        return _SAVED_MODEL
    if "coremldata.bin" in names:
        return f"a compiled Core ML model; {_ORIGIN}, an .mlpackage or .mlmodel"
    pickled = any(name.startswith("pytorch_model") for name in names)
    if "config.json" in names and pickled:
        how = "save_pretrained of transformers writes safetensors, which are read"
        return f"a checkpoint of Hugging Face's with pickled weights; {how}"
    return None


def _told(what: str, names: Iterable[str], way: str) -> str:
    """Return what holds other files, with their names and how one of them is read."""
    first = [printable(name)[:100] for name in islice(names, _SHOWN_NAMES + 1)]
    if not first:
        return f"an empty {what.removeprefix('a ')}"
    shown = ", ".join([*first[:_SHOWN_NAMES], *(["..."] if len(first) > _SHOWN_NAMES else [])])
    return f"{what} that is no model itself and holds {shown}; {way}, if one is there"
