"""Files of GGUF: one file with config, tokenizer and weights, many of them in blocks of few bits.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; what is called how in a module, and which
config it has, is told by transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Array, FileWeight, OpenFile, Weight, dataclass, numpy_dtype, require
from serde.engine.base import first_line
from serde.errors import FormatError
from serde.io.packed import PackedWeight
from serde.relay.ir import Expr, TensorType, call, tensor_type
from serde.relay.ir.expr import Var, const
from serde.relay.run.computed import ComputedWeight
from serde.torch.checkpoint.packed import dequantized

__all__ = ["gguf_tokenizer", "is_gguf", "read_gguf", "unpack_gguf"]

_MAGIC: Final = b"GGUF"
_PLAIN: Final = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}
_TABLE: Final = "token_embd.weight"
"""Of which rows are picked, so that it is no product."""


_FACTS: Final = {
    "attention.key_length": "head_dim", "attention.value_length": "head_dim",
    "rope.dimension_count": "head_dim", "attention.sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}  # fmt: skip
"""What a config has under another name, whether transformers takes it from the file or not."""


@dataclass(frozen=True)
class _Tensor:
    """Blocks of a type of ggml's, and the shape that they have as numbers."""

    kind: AnyValue
    blocks: Weight
    shape: tuple[int, ...]


def is_gguf(path: Path) -> bool:
    """Whether a file begins as those of GGUF do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_gguf(path: Path) -> tuple[str, dict[str, AnyValue], dict[str, _Tensor]]:
    """Return the architecture of a file, what it says of that, and its tensors by name.

    Raises:
        FormatError: It is malformed.
        MissingDependency: The package gguf is not installed.
    """
    gguf = require("gguf")
    try:
        reader = gguf.GGUFReader(path)
        family = str(reader.fields["general.architecture"].contents())
        own = [each for each in reader.fields if each.startswith(f"{family}.")]
        facts = {each[len(family) + 1 :]: reader.fields[each].contents() for each in own}
        tensors = [
            (each.name, each.tensor_type, tuple(map(int, each.shape))[::-1], int(each.data_offset))
            for each in reader.tensors
        ]
    except Exception as error:
        raise FormatError(f"no GGUF that can be read: {first_line(error)}", path=path) from error
    found = {}
    with OpenFile.open(path) as file:
        for name, kind, shape, offset in tensors:
            elements, size = gguf.GGML_QUANT_SIZES[kind]
            if not shape or shape[-1] % elements:
                raise FormatError(
                    f"{name[:200]}: {list(shape)} in blocks of {elements}", path=path
                )
            stored = (*shape[:-1], shape[-1] // elements, size)
            range_ = file.range(offset, int(np.prod(stored, dtype=object)))
            found[name] = _Tensor(kind, FileWeight(range_, stored, "uint8"), shape)
    return family, facts, found


def gguf_tokenizer(path: Path) -> dict[str, str]:
    """Return the files of a tokenizer, as far as transformers makes one of a file's."""
    with TemporaryDirectory() as folder:
        try:
            made = require("transformers").AutoTokenizer.from_pretrained(
                str(path.parent), gguf_file=path.name, local_files_only=True
            )
            made.save_pretrained(folder)
        except Exception:
            return {}
        return {each.name: each.read_text(encoding="utf-8") for each in Path(folder).iterdir()}


def unpack_gguf(
    family: str,
    facts: Mapping[str, AnyValue],
    tensors: Mapping[str, _Tensor],
    path: Path,
    module: AnyValue,
    dtype: str | None,
) -> dict[str, Weight]:
    """Return weights by their names in a module.

    Args:
        family: The architecture that the file names.
        facts: What it says of that.
        tensors: What is in the file.
        path: The file, for messages.
        module: The module, which needs no values.
        dtype: What layers compute in; None for float32.

    Raises:
        FormatError: A tensor or a fact has no counterpart, or the tensors of the family are stored
            in another order.
    """
    tool = require("transformers.modeling_gguf_pytorch_utils")
    kind = tool.TENSOR_PROCESSORS.get(family, tool.TensorProcessor)
    known = (tool.TensorProcessor, tool.LlamaTensorProcessor, tool.Gemma2TensorProcessor)
    if kind not in known:
        raise FormatError(f"GGUF of {family}: its tensors are stored in another order", path=path)
    _check_facts(family, facts, module.config, path)
    names = tool.get_gguf_hf_weights_map(module, kind(config={}), model_type=family)
    config, found = module.config, {}
    for name, tensor in tensors.items():
        if name not in names:
            raise FormatError(
                f"{name[:200]} has no counterpart in {type(module).__name__}", path=path
            )
        change = None
        heads = {"attn_q.": "num_attention_heads", "attn_k.": "num_key_value_heads"}
        own = next((heads[part] for part in heads if part in name), None)
        if kind is tool.LlamaTensorProcessor and own is not None:
            change = partial(_halves_apart, heads=getattr(config, own))
        elif kind is tool.Gemma2TensorProcessor and name.endswith("norm.weight"):
            change = _one_less
        found[names[name]] = _weight(tensor, dtype, change, whole=name == _TABLE)
    return found


def _check_facts(
    family: str, facts: Mapping[str, AnyValue], config: AnyValue, path: Path
) -> None:
    """Refuse what a file says of a family that transformers passes over, unless it is the same."""
    known = require("transformers.integrations.ggml").GGUF_CONFIG_MAPPING.get(family, {})
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    for name, value in facts.items():
        attribute = _FACTS.get(name)
        own = size if attribute == "head_dim" else getattr(config, attribute or "", None)
        if known.get(name) is None and (attribute is None or own != value):
            told = f"{family}.{name} is {value!r}"[:200]
            raise FormatError(f"{told}, which transformers does not take over", path=path)


def _halves_apart(x: Expr, *, heads: int) -> Expr:
    """Return rows of which a head has those of the first half of its angles before the others."""
    shape = tensor_type(x).shape
    pairs = call("reshape", x, newshape=(heads, -1, 2, *shape[1:]))
    order = (0, 2, 1, *range(3, 2 + len(shape)))
    return call("reshape", call("transpose", pairs, axes=order), newshape=shape)


def _one_less(x: Expr) -> Expr:
    return call("subtract", x, const(1, tensor_type(x).dtype))


def _weight(tensor: _Tensor, dtype: str | None, change: AnyValue, *, whole: bool) -> Weight:
    """Return the numbers of a tensor, as levels where blocks hold 4 or 8 bits and a scale."""
    keep = change or (lambda x: x)
    if tensor.kind.name in _PLAIN:
        plain = FileWeight(tensor.blocks.source, tensor.shape, _PLAIN[tensor.kind.name])
        return plain if change is None else _computed(keep, plain)
    if whole or tensor.kind.name not in ("Q4_0", "Q8_0") or len(tensor.shape) != 2:
        return _computed(keep, _Dequantized(tensor))
    rows, blocks, size = tensor.blocks.shape
    scales = _Field(tensor.blocks, 0, 2, "float16")
    levels: Weight = _Field(tensor.blocks, 2, size, "int8")
    if tensor.kind.name == "Q4_0":
        packed = _Field(tensor.blocks, 2, size, "uint8")
        levels = PackedWeight(packed.reshaped((packed.size,)), (*packed.shape, 2), "uint4", 4)

    def build(values: Expr, factors: Expr) -> Expr:
        points = None
        if len(levels.shape) == 4:  # A byte has a level of either half of its block.
            values = call("transpose", values, axes=(0, 1, 3, 2))
            points = call("broadcast_to", const(8, "uint4"), shape=(rows, blocks))
        values = keep(call("reshape", values, newshape=tensor.shape))
        factors = keep(call("reshape", factors, newshape=(rows, blocks)))
        return dequantized(values, factors, points, tensor.shape[1] // blocks, dtype or "float32")

    return _computed(build, levels, scales)


def _computed(make: AnyValue, *sources: Weight) -> Weight:
    variables = [Var("", TensorType(each.shape, each.dtype)) for each in sources]
    return ComputedWeight(make(*variables), dict(zip(variables, sources, strict=True)))


class _Field(Weight):
    """Some bytes of each block as numbers."""

    def __init__(self, blocks: Weight, start: int, stop: int, dtype: str) -> None:
        self.dtype = dtype
        self.shape = (*blocks.shape[:-1], (stop - start) // numpy_dtype(dtype).itemsize)
        self._blocks, self._bytes = blocks, slice(start, stop)

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0."""
        found = np.ascontiguousarray(self._blocks.rows(start, stop)[..., self._bytes])
        return found.view(numpy_dtype(self.dtype))


class _Dequantized(Weight):
    """Blocks of any type of ggml's as float32, by its own package."""

    dtype = "float32"

    def __init__(self, tensor: _Tensor) -> None:
        self.shape = tensor.shape
        self._tensor = tensor

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0."""
        blocks = self._tensor.blocks.rows(start, stop)
        flat = blocks.reshape(*blocks.shape[:-2], -1)
        found: Array = require("gguf").quants.dequantize(flat, self._tensor.kind)
        return found
