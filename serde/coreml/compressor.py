"""coremltools' compression of weights, in a process of its own.

It prints progress, warns, and keeps what it has loaded; there, none of it matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde.core import Array, require
from serde.engine.memory import peak_memory

__all__ = ["compress_package"]


def compress_package(
    request: Mapping[str, AnyValue], _arrays: Sequence[Array]
) -> dict[str, AnyValue]:
    """Compress the weights of one package into another, step by step.

    Args:
        request: ``source`` and ``target`` are packages; ``steps`` are pairs of a function of
            the tool and the arguments of its configuration; ``keep`` are names of operations that
            stay as they are.

    Returns:
        ``name`` of the tool with its version, and ``peak``, the greatest memory of the process
        in bytes.
    """
    tools = require("coremltools")
    optimize = require("coremltools.optimize.coreml")
    model = tools.models.MLModel(request["source"], skip_model_load=True)
    for number, (function, config, arguments) in enumerate(request["steps"]):
        kind = getattr(optimize, config)(**arguments)
        keep = dict.fromkeys(request["keep"])
        configuration = optimize.OptimizationConfig(global_config=kind, op_name_configs=keep)
        # What was done before counts as well: sparse weights get palettes that are sparse.
        further = {"joint_compression": True} if number else {}
        model = getattr(optimize, function)(model, configuration, **further)
    model.save(request["target"])
    return {"name": f"coremltools {tools.__version__}", "peak": peak_memory()}
