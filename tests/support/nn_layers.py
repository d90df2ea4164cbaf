"""Layers of NeuralNetworks in NumPy: what a model computes, by Apple's documentation alone.

It reads Apple's message itself and shares nothing with the bridge; windows, recurrent layers and
images are the kernels of MIL that the tests of the importers judge. The layers register themselves
from the modules beside this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from support import nn_elementwise, nn_recurrent, nn_tensors, nn_windows
from support.nn_table import F32, LAYERS, Array

__all__ = ["evaluate_network", "nn_elementwise", "nn_recurrent", "nn_tensors", "nn_windows"]


def evaluate_network(model: Any, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a complete message of a model, its inputs being given."""
    values = {name: np.asarray(array, F32) for name, array in given.items()}
    run_layers(model.neuralNetwork, values)
    found = {}
    for each in model.description.output:
        whole = each.type.multiArrayType.dataType == 131104
        found[each.name] = values[each.name].astype(np.int32 if whole else F32)
    return found


def run_layers(network: Any, values: dict[str, Array]) -> None:
    """Add what layers give to the tensors that there are."""
    for each in network.layers:
        kind = each.WhichOneof("layer")
        params = getattr(each, kind)
        inputs = [values[name] for name in each.input]
        if kind == "branch":
            yes = abs(inputs[0].reshape(-1)[0]) > 1e-6
            run_layers(params.ifBranch if yes else params.elseBranch, values)
            continue
        if kind == "loop":
            run_loop(inputs, params, values)
            continue
        if kind in ("loopBreak", "loopContinue"):
            raise Break if kind == "loopBreak" else Continue
        with np.errstate(all="ignore"):
            result = LAYERS[kind](inputs, params)
        results = result if isinstance(result, (tuple, list)) else [result]
        for name, value in zip(each.output, results, strict=True):
            array = np.asarray(value, F32)
            values[name] = array if array.ndim else array.reshape(1)
            assert values[name].ndim <= 5, kind


class Break(Exception):
    """Ends a loop."""


class Continue(Exception):
    """Ends an iteration of a loop."""


def run_loop(inputs: Sequence[Array], params: Any, values: dict[str, Array]) -> None:
    """Run a network so many times, or as long as another says so, or both."""
    most = int(inputs[0].reshape(-1)[0]) if inputs else params.maxLoopIterations
    asks = bool(params.conditionNetwork.layers)
    turns = range(most) if most or inputs or not asks else itertools.count()

    def goes_on() -> bool:
        if not asks:
            return True
        run_layers(params.conditionNetwork, values)
        return bool(abs(values[params.conditionVar].reshape(-1)[0]) > 1e-6)

    going = goes_on()
    for _ in turns:
        if not going:
            return
        try:
            run_layers(params.bodyNetwork, values)
        except Continue:
            pass
        except Break:
            return
        going = goes_on()
