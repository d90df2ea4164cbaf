"""What a module's ``main`` takes and gives, and what that is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue
from typing import Final

from serde.errors import FormatError
from serde.relax.framework import Framework, load
from serde.relax.model import INPUT_NAMES, OUTPUT_NAMES, WEIGHT_NAMES, RelaxModel
from serde.weights import Weight

__all__ = ["describe", "main_of", "weight_variables"]

_OUTPUT: Final = "output"
"""The name of a result that no variable holds."""

_INPUT_COUNT: Final = "num_input"
"""Attribute of ``main``, as TVM's frontends write it: how many inputs come before the weights."""


def main_of(module: AnyValue) -> AnyValue:
    """Return the function ``main`` of a module.

    Raises:
        FormatError: It has none of Relax.
    """
    framework = load()
    found = {each.name_hint: function for each, function in module.functions.items()}
    main = found.get("main")
    if not isinstance(main, framework.relax.Function):
        names = ", ".join(sorted(found)) or "none"
        raise FormatError(f"expected a function of Relax named main, found {names}")
    return main


def weight_variables(main: AnyValue) -> list[str]:
    """Return the names of the parameters of a function that are weights, in order.

    Raises:
        FormatError: It counts more inputs than it has parameters.
    """
    return [load().name_of(each) for each in main.params[_input_count(main) :]]


def describe(
    module: AnyValue, weights: Mapping[str, Weight], files: Sequence[Path] = ()
) -> RelaxModel:
    """Return a module with its weights as a model, whose names its attributes tell.

    Args:
        module: A ``tvm.IRModule`` whose ``main`` takes the inputs and then the weights.
        weights: The weights by the names of the variables that they are given to.
        files: What it was read from.

    Raises:
        FormatError: ``main`` takes other weights, or its attributes do not fit it.
    """
    main = main_of(module)
    variables = [load().name_of(each) for each in main.params]
    twice = sorted({each for each in variables if variables.count(each) > 1})
    if twice:
        raise FormatError(f"main: several parameters are called {', '.join(twice)}")
    count = _input_count(main)
    own = variables[:count], variables[count:]
    _check_weights(load(), main.params[count:], weights)
    inputs = _names(main, INPUT_NAMES, own[0])
    given = _names(main, WEIGHT_NAMES, own[1])
    outputs = _names(main, OUTPUT_NAMES, _output_variables(main))
    return RelaxModel(
        module,
        inputs,
        outputs,
        {name: weights[name] for name in own[1]},
        dict(zip((*own[0], *own[1]), (*inputs, *given), strict=True)),
        tuple(files),
    )


def _input_count(main: AnyValue) -> int:
    total = len(main.params)
    found = (main.attrs or {}).get(_INPUT_COUNT)
    if found is None:
        return total
    count = int(found)
    if not 0 <= count <= total:
        raise FormatError(f"main: {count} inputs of {total} parameters")
    return count


def _check_weights(
    framework: Framework, params: Sequence[AnyValue], weights: Mapping[str, Weight]
) -> None:
    """Refuse weights that are not those that the parameters take.

    Raises:
        FormatError: One is missing or too many, or of another type.
    """
    names = [framework.name_of(each) for each in params]
    missing = [each for each in names if each not in weights]
    further = [each for each in weights if each not in set(names)]
    if missing or further:
        told = [f"{len(missing)} are missing ({', '.join(missing[:5])})"] if missing else []
        told += [f"{len(further)} are not taken ({', '.join(further[:5])})"] if further else []
        raise FormatError(f"main takes {len(names)} weights: of those given {' and '.join(told)}")
    for name, variable in zip(names, params, strict=True):
        type_, weight = framework.type_of(variable), weights[name]
        if not isinstance(type_, framework.TensorType):
            raise FormatError(f"main: the weight {name} is no tensor but {type_}")
        shape = _known_shape(type_)
        if shape != weight.shape or str(type_.dtype) != weight.dtype:
            found = f"{weight.dtype}{list(weight.shape)}"
            raise FormatError(f"main: the weight {name} is {type_}, and {found} is given")


def _known_shape(type_: AnyValue) -> tuple[AnyValue, ...]:
    values = getattr(type_.shape, "values", ())
    return tuple(getattr(each, "value", each) for each in values)


def _names(main: AnyValue, attribute: str, default: Sequence[str]) -> tuple[str, ...]:
    """Return the names that an attribute tells of variables, or those of the variables.

    Raises:
        FormatError: There is not one for each, or one occurs twice.
    """
    told = (main.attrs or {}).get(attribute)
    if told is None:
        return tuple(default)
    if isinstance(told, str) or not all(isinstance(each, str) for each in told):
        raise FormatError(f"main: {attribute}: expected names, found {told}")
    names = tuple(map(str, told))
    if len(names) != len(default) or len(set(names)) != len(names):
        found = f"{len(names)}, {len(set(names))} of them different"
        raise FormatError(f"main: {attribute}: expected {len(default)} names, found {found}")
    return names


def _output_variables(main: AnyValue) -> list[str]:
    """Return a name for each value of the result, after the variable that holds it."""
    framework = load()
    found: list[str] = []
    result = main.body.body
    name = framework.name_of(result) if isinstance(result, framework.relax.Var) else _OUTPUT
    pending = [(name, framework.type_of(main).ret)]
    while pending:
        path, type_ = pending.pop()
        if isinstance(type_, framework.TupleType):
            numbered = [(f"{path}_{i}", each) for i, each in enumerate(type_.fields)]
            pending.extend(reversed(numbered))
        else:
            found.append(path)
    return found
