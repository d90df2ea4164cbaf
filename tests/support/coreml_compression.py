"""Ways in which coremltools compresses the weights of an ML Program, as functions of a model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["Compression", "in_turn", "palette", "pruned", "quantized"]

Compression = Callable[[Any, Any], Any]
"""Takes the module ``coremltools`` and a model."""


def _compressed(method: str, kind: str, **settings: Any) -> Compression:
    """Compression of every weight by a function of coremltools and the settings of a config."""

    def compress(ct: Any, model: Any) -> Any:
        optimize = ct.optimize.coreml
        settings.setdefault("weight_threshold", 0)
        config = optimize.OptimizationConfig(getattr(optimize, kind)(**settings))
        joint = {"joint_compression": True} if _is_compressed(model) else {}
        return getattr(optimize, method)(model, config, **joint)

    return compress


def _is_compressed(model: Any) -> bool:
    program = model.get_spec().mlProgram
    blocks = (b for f in program.functions.values() for b in f.block_specializations.values())
    return any(op.type.startswith("constexpr") for block in blocks for op in block.operations)


def quantized(**settings: Any) -> Compression:
    """Linear quantisation of every weight."""
    return _compressed("linear_quantize_weights", "OpLinearQuantizerConfig", **settings)


def palette(nbits: int, mode: str = "uniform", **settings: Any) -> Compression:
    """Indices into tables in place of every weight."""
    return _compressed(
        "palettize_weights", "OpPalettizerConfig", nbits=nbits, mode=mode, **settings
    )


def pruned(**settings: Any) -> Compression:
    """Zeros in place of the least weights."""
    return _compressed("prune_weights", "OpMagnitudePrunerConfig", **settings)


def in_turn(*steps: Compression) -> Compression:
    """One compression on top of the other."""
    return lambda ct, model: functools.reduce(lambda each, step: step(ct, each), steps, model)
