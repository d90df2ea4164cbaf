"""Passes: transformations of modules that keep their meaning; each is loaded when it is used.

Passes of TVM that no conversion runs have their names here, and stand in ``relay/tvm``.
"""

from __future__ import annotations

from typing import Final

from serde.core.lazy import lazy_names
from serde.relay.transform.homes import HOMES

_GONE: Final = frozenset((
    "AnnotateSpans", "BackwardFoldScaleAxis", "CanonicalizeCast", "ChangeBatch",
    "CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense", "DefuseOps",
    "EtaExpand", "FastMath", "FoldScaleAxis", "ForwardFoldScaleAxis", "FuseOps", "Inline",
    "InlineCompilerFunctionsBoundTo", "LambdaLift", "MarkCompilerFunctionsAsExtern",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols", "SplitArgs", "ToANormalForm",
    "ToBasicBlockNormalForm",
))  # fmt: skip


def _refuse(name: str) -> None:
    if name in _GONE:
        raise AttributeError(
            f"relay.transform.{name} went with 1.1: it serves the code that TVM generates, and no "
            "conversion (docs/tvm-differences.md)"
        )


__getattr__, __dir__, __all__ = lazy_names(
    __name__, {f"serde.relay.{module}": names for module, names in HOMES.items()}, _refuse
)
