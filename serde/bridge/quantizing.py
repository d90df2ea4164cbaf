"""How a model is made smaller, in words that all targets share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any as AnyValue, Literal

import numpy as np

from serde.core.records import dataclass, field, fields
from serde.errors import OptionError

__all__ = ["QuantizeOptions"]

_PALETTES = (1, 2, 3, 4, 6, 8)
_WHAT_FOR = ("int8", "int4", "palettize", "sparsity")
"""Options that ask for something; the others say how."""
_ONLY_INT4 = ("int4_head", "int4_embeddings")


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """What makes a written model smaller, done by the target's own tool.

    Attributes:
        int8: Quantise to integers of 8 bits: "static", activations too, by ranges measured on
            `calibration`; "dynamic", activations by ranges found at run time; "weights" alone; or
            True for what the target's tool is mostly used for.
        int4: Quantise weights to 4 bits.
        block_size: Elements of a row of a weight that share a scale; the target's choice if None.
        zero_points: Give weights zero points, so that levels cover what each block holds.
        int4_head: Quantise the last product, which is the head of most models, too.
        int4_embeddings: Quantise tables of embeddings, too.
        palettize: Bits of an index into a table of values, which each weight becomes: 1, 2, 3, 4, 6
            or 8.
        sparsity: Share of each weight's elements, the smallest, that become zero; from 0 to 1.
        calibration: Inputs on which activations are measured and accuracy is told: a path, an
            array, a mapping of arrays by input, or a list of these.
        calibration_method: How a range follows from what was measured.
        activation_type: Integers of activations; the tool's own choice if left out.
        weight_type: Integers of weights, likewise.
        per_channel: Give each output channel of a weight a scale of its own.
        symmetric: Keep the zero point of activations at zero, as TensorRT wants it.
        reduce_range: Use 7 of the 8 bits of weights, for processors whose sums of products
            saturate.
        int8_exclude: Nodes of the target that stay as they are.
        min_agreement: Least share of samples whose best class stays the same, for outputs that are
            scores of classes; with less, nothing is written.
        min_cosine: Least cosine between the source's outputs and the smaller model's, likewise;
            nodes stay as they are for it with `int8`, and in float32 with ``float16="auto"``.
        perplexity_text: A file of text that models which generate predict, before and after.
        max_perplexity: Greatest perplexity on that text; with a greater one, nothing is written.
    """

    int8: bool | Literal["static", "dynamic", "weights"] = field(default=False, metadata={
        "first": True, "help": "Quantise to 8 bits by the target's own tool: activations by ranges "
        "of --calibration, by ranges at run time, or weights alone.",
    })  # fmt: skip
    int4: bool = field(default=False, metadata={"help": "Quantise weights to 4 bits."})
    block_size: int | None = field(
        default=None, metadata={"help": "Elements of a row of a weight that share a scale."}
    )
    zero_points: bool = field(default=False, metadata={"help": "Give weights zero points."})
    int4_head: bool = field(
        default=True, metadata={"help": "4 bits for the last product, mostly the head, too."}
    )
    int4_embeddings: bool = field(
        default=False, metadata={"help": "4 bits for tables of embeddings, too."}
    )
    palettize: int | None = field(
        default=None,
        metadata={"help": "Weights as indices of so many bits (1 to 8) into a table of values."},
    )
    sparsity: float | None = field(
        default=None,
        metadata={"help": "Share of each weight's elements, the smallest, that become zero."},
    )
    calibration: AnyValue = field(default=None, metadata={"flag": None})
    calibration_method: Literal["minmax", "entropy", "percentile"] = field(
        default="minmax", metadata={"help": "How ranges follow from what was measured (minmax)."}
    )
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = field(
        default=None, metadata={"help": "Integers of activations; the tool's choice if left out."}
    )
    weight_type: Literal["int8", "uint8"] | None = field(
        default=None, metadata={"help": "Integers of weights; the tool's choice if left out."}
    )
    per_channel: bool = field(
        default=True, metadata={"help": "A scale for each output channel of a weight."}
    )
    symmetric: bool = field(
        default=False, metadata={"help": "Zero points of activations are zero, as for TensorRT."}
    )
    reduce_range: bool = field(default=False, metadata={"help": "Use 7 of the 8 bits of weights."})
    int8_exclude: tuple[str, ...] = field(
        default=(), metadata={"help": "Nodes of the target that stay as they are."}
    )
    min_agreement: float | None = field(
        default=None,
        metadata={"help": "Least share of samples whose best class stays; less fails (exit 4)."},
    )
    min_cosine: float | None = field(
        default=None,
        metadata={"help": "Least cosine with the source's outputs; less fails (exit 4)."},
    )
    perplexity_text: str | None = field(
        default=None,
        metadata={"help": "File of text that a model is to predict, before and after."},
    )
    max_perplexity: float | None = field(
        default=None, metadata={"help": "Greatest perplexity on that text; more fails (exit 4)."}
    )

    def __post_init__(self) -> None:
        if self.palettize not in (None, *_PALETTES):
            known = ", ".join(map(str, _PALETTES))
            raise OptionError(f"palettize: expected one of {known}, found {self.palettize}")
        if self.sparsity is not None and not 0.0 < self.sparsity < 1.0:
            raise OptionError(f"sparsity: expected a share between 0 and 1, found {self.sparsity}")
        for name in ("min_agreement", "min_cosine"):
            least = getattr(self, name)
            if least is not None and not 0.0 <= least <= 1.0:
                raise OptionError(f"{name}: expected a number from 0 to 1, found {least}")
        if self.max_perplexity is not None and self.perplexity_text is None:
            raise OptionError("max_perplexity: of a text, which perplexity_text names")
        if self.int8 and self.int4:
            raise OptionError("int8 and int4: one of them")
        if self.is_asked and not self.int4:
            self.refuse("what makes other weights", _ONLY_INT4, "they are of int4")
        if self.int8 == "static" and self.calibration is None:
            raise OptionError("int8='static' needs calibration, which ranges are measured on")
        if not self.is_asked:
            given = [f.name for f in fields(self) if not _is_default(self, f.name, f.default)]
            if given not in ([], ["min_cosine"]):  # It is of float16="auto", too.
                asks = ", ".join(_WHAT_FOR)
                raise OptionError(f"{given[0]}: nothing is to be made smaller; ask by {asks}")
        elif not isinstance(
            self.calibration,
            (str, os.PathLike, np.ndarray, np.generic, Mapping, Sequence, type(None)),
        ) and not hasattr(self.calibration, "samples"):
            kind = type(self.calibration).__name__
            raise OptionError(f"calibration: expected a path or arrays, found {kind}")

    @property
    def is_asked(self) -> bool:
        """Whether anything is to be made smaller."""
        return bool(self.asked)

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the options that ask for something."""
        return tuple(name for name in _WHAT_FOR if getattr(self, name) not in (False, None))

    def refuse(self, who: str, names: Iterable[str], hint: str = "") -> None:
        """Refuse options that a tool does not have.

        Args:
            who: The tool.
            names: The options.
            hint: What there is instead.

        Raises:
            OptionError: One of them is given.
        """
        defaults = {item.name: item.default for item in fields(self)}
        for name in names:
            if not _is_default(self, name, defaults[name]):
                raise OptionError(f"{name}: {who} has no such option{hint and f'; {hint}'}")


def _is_default(options: QuantizeOptions, name: str, default: AnyValue) -> bool:
    value = getattr(options, name)
    return value is default or (isinstance(value, (bool, str, tuple, int)) and value == default)
