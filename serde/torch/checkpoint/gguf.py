"""Files of GGUF: config, tokenizer and weights in one, most of them in blocks of few bits.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; transformers tells the config of a file,
and what its tensors are called in a module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any as AnyValue, Final, TypeAlias

import numpy as np

from serde.core import Array, FileWeight, OpenFile, Weight, dataclass, require
from serde.engine.base import first_line
from serde.errors import FormatError
from serde.relay.ir import Expr, call, tensor_type
from serde.relay.ir.expr import Tuple, const
from serde.relay.run.computed import computed
from serde.torch.checkpoint.packed import dequantized

__all__ = ["GgufFile", "is_gguf", "read_gguf"]

Change: TypeAlias = Callable[[Expr], Expr]

_PLAIN: Final = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_HEADS: Final = {"attn_q.": "num_attention_heads", "attn_k.": "num_key_value_heads"}
_WIDTHS: Final = ("attention.key_length", "attention.value_length", "rope.dimension_count")
"""All of a head, which transformers takes over for some families only."""


def is_gguf(path: Path) -> bool:
    """Whether a path is a file that begins as those of GGUF do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


@dataclass(frozen=True)
class GgufFile:
    """What a file says of a family, and its tensors: types of ggml, and bytes of rows of blocks."""

    path: Path
    family: str
    facts: Mapping[str, AnyValue]
    tensors: Mapping[str, tuple[AnyValue, FileWeight]]

    def unpack(self, module: AnyValue, dtype: str | None) -> dict[str, Weight]:
        """Return weights by their names in a module, in float32 if no other dtype is wanted.

        Raises:
            FormatError: A tensor or a fact has no counterpart, or an order that is not known.
        """
        tool = require("transformers.modeling_gguf_pytorch_utils")
        kind = tool.TENSOR_PROCESSORS.get(self.family, tool.TensorProcessor)
        turns, shifts = tool.LlamaTensorProcessor, tool.Gemma2TensorProcessor
        if kind not in (tool.TensorProcessor, turns, shifts):
            raise self._fault(f"{self.family}: tensors are stored in another order than is known")
        self._check_facts(module.config)
        names = tool.get_gguf_hf_weights_map(module, kind(config={}), model_type=self.family)
        found = {}
        for name, (type_, blocks) in self.tensors.items():
            if name not in names:
                raise self._fault(f"{name} has no counterpart in {type(module).__name__}")
            change: Change | None = None
            part = next((part for part in _HEADS if part in name), None)
            if kind is turns and part is not None:
                change = partial(_halves_apart, heads=getattr(module.config, _HEADS[part]))
            elif kind is shifts and name.endswith("norm.weight"):
                change = _one_less
            # Of a table of embeddings rows are picked, so that it is no product.
            whole = name == "token_embd.weight" or len(blocks.shape) != 3
            found[names[name]] = _weight(type_, blocks, dtype, change, whole)
        return found

    def tokenizer(self) -> dict[str, str]:
        """Return the files of the tokenizer, if transformers makes one of the file."""
        kind = require("transformers").AutoTokenizer
        with TemporaryDirectory() as folder:
            try:
                kind.from_pretrained(
                    str(self.path.parent), gguf_file=self.path.name, local_files_only=True
                ).save_pretrained(folder)
            except Exception:
                return {}
            return {each.name: each.read_text(encoding="utf-8") for each in Path(folder).iterdir()}

    def _check_facts(self, config: AnyValue) -> None:
        """Refuse what transformers passes over, unless its config is the same without."""
        taken = require("transformers.integrations.ggml").GGUF_CONFIG_MAPPING.get(self.family, {})
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        for name, value in self.facts.items():
            own = getattr(config, name.rpartition(".")[2], None)
            if taken.get(name) is None and value != (size if name in _WIDTHS else own):
                raise self._fault(f"{name} is {value!r}, which transformers does not take over")

    def _fault(self, told: str) -> FormatError:
        return FormatError(told[:300], path=self.path)


def read_gguf(path: Path) -> GgufFile:
    """Return what a file holds.

    Raises:
        FormatError: It is malformed.
        MissingDependency: The package gguf is not installed.
    """
    gguf = require("gguf")

    class Reader(require("gguf").GGUFReader):  # type: ignore[misc]
        def _get(self, offset: int, dtype: AnyValue, count: int = 1, **order: AnyValue) -> Array:
            found: Array = super()._get(offset, dtype, count, **order)
            if len(found) < int(count):  # Else a length that is a lie is gone through to its end.
                raise ValueError("it ends early")
            return found

    try:
        reader = Reader(path)
        family = str(reader.fields["general.architecture"].contents())
        own = {name: each for name, each in reader.fields.items() if name.startswith(f"{family}.")}
        facts = {name[len(family) + 1 :]: each.contents() for name, each in own.items()}
        tensors = {}
        with OpenFile.open(path) as file:
            for each in reader.tensors:
                elements, size = gguf.GGML_QUANT_SIZES[each.tensor_type]
                *rows, length = (int(n) for n in reversed(each.shape))
                shape = (*rows, length // elements, size)
                range_ = file.range(int(each.data_offset), int(np.prod(shape, dtype=object)))
                tensors[each.name] = each.tensor_type, FileWeight(range_, shape, "uint8")
    except Exception as error:
        raise FormatError(f"no GGUF that can be read: {first_line(error)}", path=path) from error
    return GgufFile(path, family, facts, tensors)


def _halves_apart(x: Expr, *, heads: int) -> Expr:
    """Return rows of which a head has those of the first half of its angles before the others."""
    shape = tensor_type(x).shape
    pairs = call("reshape", x, newshape=(heads, -1, 2, *shape[1:]))
    order = (0, 2, 1, *range(3, 2 + len(shape)))
    return call("reshape", call("transpose", pairs, axes=order), newshape=shape)


def _one_less(x: Expr) -> Expr:
    return call("subtract", x, const(1, tensor_type(x).dtype))


def _weight(
    type_: AnyValue, blocks: FileWeight, dtype: str | None, change: Change | None, whole: bool
) -> Weight:
    """Return the numbers of a tensor: levels, if blocks have 4 or 8 bits and a scale alone."""
    name, (*rows, count, size) = type_.name, blocks.shape
    if name in _PLAIN:
        stored = FileWeight(blocks.source, (*rows, count), _PLAIN[name])
        return stored if change is None else computed(change, stored)
    if whole or name not in ("Q4_0", "Q8_0"):
        return computed(change or (lambda x: x), _Dequantized(blocks, type_))

    def part(x: Expr, begin: int, end: int) -> Expr:
        ends = (*rows, count, end)
        return call("strided_slice", x, begin=(0, 0, begin), end=ends, strides=None, axes=None)

    def build(x: Expr) -> Expr:
        low, high = (call("cast", part(x, at, at + 1), dtype="uint16") for at in (0, 1))
        number = call("add", low, call("left_shift", high, const(8, "uint16")))
        scales = call("reinterpret", number, dtype="float16")
        levels, points = part(x, 2, size), None
        if name == "Q4_0":  # A byte has a level of either half of its block.
            first = call("bitwise_and", levels, const(15, "uint8"))
            second = call("right_shift", levels, const(4, "uint8"))
            both = call("concatenate", Tuple([first, second]), axis=2)
            levels = call("cast", both, dtype="uint4")
            points = call("broadcast_to", const(8, "uint4"), shape=(*rows, count))
        else:
            levels = call("reinterpret", levels, dtype="int8")
        parts = [call("reshape", each, newshape=(*rows, -1)) for each in (levels, scales)]
        values, factors = parts if change is None else map(change, parts)
        return dequantized(values, factors, points, 32, dtype or "float32")

    return computed(build, blocks)


class _Dequantized(Weight):
    """Blocks of any type of ggml's as floats, some rows of them at a time."""

    dtype = "float32"

    def __init__(self, blocks: FileWeight, type_: AnyValue) -> None:
        self._blocks, self._type = blocks, type_
        self.shape = (*blocks.shape[:-2], self.rows(0, 1).shape[-1])

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0."""
        data = self._blocks.rows(start, stop)
        data = data.reshape(*data.shape[:-2], -1)
        return require("gguf").quants.dequantize(data, self._type)
