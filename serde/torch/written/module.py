"""A written module that runs."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import linecache
import sys
from types import ModuleType
from typing import Any as AnyValue

from serde.core import Weight, require
from serde.errors import ConverterBug
from serde.torch.program import TorchProgram
from serde.torch.written.source import module_of, write_source

__all__ = ["to_module"]


class _Loader(importlib.abc.SourceLoader):
    """Loads a module from its text, which tracebacks, ``inspect`` and TorchScript find here."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_filename(self, fullname: str) -> str:
        """Return what the text goes by."""
        return f"<{fullname}>"

    def get_data(self, path: str | bytes) -> bytes:
        """Return the text."""
        return self._text.encode()


def load_text(text: str) -> ModuleType:
    """Return the module that a text is; its name depends on the text alone."""
    name = f"serde_written_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_loader(name, _Loader(text), origin=f"<{name}>")
    if spec is None or spec.loader is None:
        raise ConverterBug("a text cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    module.__file__ = f"<{name}>"
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def to_module(program: TorchProgram) -> AnyValue:
    """Return a live ``torch.nn.Module``, in the mode for inference."""
    torch = require("torch")
    module = module_of(program)
    loaded = load_text(write_source(program, module))
    with torch.device("meta"):
        model = loaded.Model()
    state = {module.places[name]: to_tensor(each) for name, each in program.weights.items()}
    model.load_state_dict(state, assign=True)
    return model.eval()


def to_tensor(weight: Weight) -> AnyValue:
    """Return a weight as a tensor that owns its memory."""
    torch = require("torch")
    if 0 in weight.shape:  # torch.export.save counts on memory of no bytes
        return torch.empty(weight.shape, dtype=getattr(torch, weight.dtype))
    array = weight.array()
    if weight.dtype.startswith(("bfloat16", "float8")):
        width = {1: "uint8", 2: "int16"}[array.dtype.itemsize]
        return torch.from_numpy(array.view(width)).view(getattr(torch, weight.dtype))
    return torch.from_numpy(array)
