"""Live modules of TVM with their weights, as TVM's importers and users hand them over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core.weights import Weight, as_weight, numpy_dtype
from serde.errors import FormatError, OptionError, Unsupported
from serde.relax.framework import Framework, load
from serde.relax.live import shared_array
from serde.relax.model import INPUT_NAMES, OUTPUT_NAMES, WEIGHT_NAMES, RelaxModel
from serde.relax.reflection import name_of, result_leaves
from serde.relax.values import PACKED
from serde.relay.ir.unique_names import UniqueNames

__all__ = ["from_live", "to_weight"]

_INPUT_COUNT: Final = "num_input"
"""Attribute of a function: how many of its parameters are inputs, the rest being weights."""

_PARAMS = "params"
"""Attribute of a function: the values of its last parameters."""


def from_live(module: AnyValue, params: AnyValue, function: str | None = None) -> RelaxModel:
    """Return a module with its weights.

    Args:
        module: A ``tvm.IRModule``.
        params: Weights: by the name of the variable, in order, or what
            ``tvm.relax.frontend.detach_params`` gives. None where the module holds them itself,
            in the attribute ``params``.
        function: What to read; ``main``, or the only public function, if not told.

    Raises:
        FormatError: The module is not sound.
        OptionError: `params` are not those of the module, or there is no such function.
    """
    framework = load()
    main = _entry(framework, module, function)
    body = _without_tuples(framework, module[main])
    changed = body is not module[main]
    attrs = {str(key): body.attrs[key] for key in body.attrs.keys()} if body.attrs else {}  # noqa: SIM118
    own = _parameters(body)
    count = _input_count(attrs, own)
    # TVM's importer of TFLite keeps values there that are constants of the function, too.
    given = None if count == len(own) else attrs.get(_PARAMS)
    if params is not None:
        given = params
    if isinstance(given, Mapping) and _is_by_function(given, _functions(framework, module)):
        given = next((each for key, each in given.items() if str(key) == main), [])
    told_weights = _texts(attrs, WEIGHT_NAMES) or ()
    weights = _weights(framework, given, own, count, told_weights)
    inputs = own[: len(own) - len(weights)]
    _check_types(framework, body.params[len(inputs) :], weights)
    shown = _names(attrs, INPUT_NAMES, inputs)
    known = _names(attrs, WEIGHT_NAMES, list(weights))
    if changed or main != "main":
        module = framework.tvm.IRModule(dict(module.functions.items()))
        module["main"] = body.with_attr("global_symbol", "main")
    results = len(result_leaves(framework, body))
    numbered = [f"output{i}" for i in range(results)] if results != 1 else ["output"]
    outputs = _names(attrs, OUTPUT_NAMES, numbered)
    named = dict(zip(own, (*shown, *known), strict=True))
    return RelaxModel(module, shown, outputs, weights, named)


def _without_tuples(framework: Framework, function: AnyValue) -> AnyValue:
    """Return a function that takes what its tuples hold one by one, as ``x_0``, ``x_1``...

    Its body begins by putting them together again.
    """
    relax = framework.relax
    kept, bindings, starts = list[AnyValue](), list[AnyValue](), list[int]()
    names = UniqueNames(map(name_of, function.params))

    def unpack(name: str, type_: AnyValue) -> AnyValue:
        if isinstance(type_, framework.TupleType):
            return relax.Tuple([unpack(f"{name}_{i}", each) for i, each in enumerate(type_.fields)])
        kept.append(relax.Var(names.reserve(name), type_))
        return kept[-1]

    for each in function.params:
        starts.append(len(kept))
        type_ = framework.type_of(each)
        if isinstance(type_, framework.TupleType):
            bindings.append(relax.VarBinding(each, unpack(name_of(each), type_)))
        else:
            kept.append(each)
    if not bindings:
        return function
    blocks = [relax.BindingBlock(bindings), *function.body.blocks]
    body = relax.SeqExpr(blocks, function.body.body)
    result = framework.result_type(function)
    made = relax.Function(kept, body, result, function.is_pure, function.attrs)
    count = _input_count(function.attrs or {}, starts)
    return made if count is None else made.with_attr(_INPUT_COUNT, [*starts, len(kept)][count])


def _parameters(function: AnyValue) -> list[str]:
    """Return the names of the parameters of a function."""
    names = [name_of(each) for each in function.params]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise FormatError(f"several parameters are called {', '.join(twice[:5])}")
    return names


def _input_count(attrs: Mapping[str, AnyValue], own: Sequence[AnyValue]) -> int | None:
    """Return how many parameters are inputs, None if that is not told."""
    told = attrs.get(_INPUT_COUNT)
    if told is None:
        return None
    if not isinstance(told, int):
        raise FormatError(f"{_INPUT_COUNT}: expected a number, found {told!s:.100}")
    count = int(told)
    if not 0 <= count <= len(own):
        raise FormatError(f"{_INPUT_COUNT}: {count} inputs of {len(own)} parameters")
    return count


def _is_by_function(given: Mapping[AnyValue, AnyValue], functions: Collection[str]) -> bool:
    """Whether weights are told by functions, a row for each, rather than by their own names."""
    rows = given and not any(hasattr(each, "shape") for each in given.values())
    return bool(rows) and {str(key) for key in given} <= set(functions)


def _names(
    attrs: Mapping[str, AnyValue], attribute: str, default: Sequence[str]
) -> tuple[str, ...]:
    """Return the names that an attribute tells, or the default ones."""
    names = _texts(attrs, attribute)
    if names is None:
        return tuple(default)
    if len(names) != len(default) or len(set(names)) != len(names):
        found = f"{len(names)}, {len(set(names))} of them different"
        raise FormatError(f"{attribute}: expected {len(default)} names, found {found}")
    return names


def _texts(attrs: Mapping[str, AnyValue], attribute: str) -> tuple[str, ...] | None:
    """Return the texts that an attribute holds, None where it is not there."""
    told = attrs.get(attribute)
    if told is None:
        return None
    several = isinstance(told, Sequence) and not isinstance(told, str)
    if not several or not all(isinstance(each, str) for each in told):
        raise FormatError(f"{attribute}: expected texts, found {told!s:.100}")
    return tuple(map(str, told))


def _check_types(
    framework: Framework, params: Sequence[AnyValue], weights: Mapping[str, Weight]
) -> None:
    """Refuse weights that are not of the types that the parameters have."""
    for variable, (name, weight) in zip(params, weights.items(), strict=True):
        type_ = framework.type_of(variable)
        if not isinstance(type_, framework.TensorType):
            raise OptionError(f"params: {name} is no tensor but {type_}")
        found = f"{weight.dtype}{list(weight.shape)}"
        lengths = [getattr(each, "value", None) for each in getattr(type_.shape, "values", ())]
        fits = type_.shape is None or len(lengths) == len(weight.shape)
        if fits:
            pairs = zip(lengths, weight.shape, strict=False)
            fits = all(wanted is None or wanted == length for wanted, length in pairs)
        if not fits or str(type_.dtype) not in ("", "void", weight.dtype):
            raise OptionError(f"params: expected {name} as {type_}, found {found}")


def _functions(framework: Framework, module: AnyValue) -> set[str]:
    return {
        name_of(variable)
        for variable, each in module.functions.items()
        if isinstance(each, framework.relax.Function)
    }


def _entry(framework: Framework, module: AnyValue, function: str | None) -> str:
    """Return the name of the function to read."""
    known = sorted(_functions(framework, module))
    if function:
        if function not in known:
            raise OptionError(f"no function is called {function}; functions: {', '.join(known)}")
        return function
    if "main" in known:
        return "main"
    public = [each for each in known if "global_symbol" in (module[each].attrs or ())]
    if len(public) == 1:
        return public[0]
    if not known:
        raise FormatError("the module has no function of Relax")
    raise OptionError(f"no function is called main; give function=, one of {', '.join(public)}")


def _weights(
    framework: Framework,
    given: AnyValue,
    own: Sequence[str],
    count: int | None,
    names: Sequence[str],
) -> dict[str, Weight]:
    """Return the weights by the variables of the last parameters."""
    if given is None:
        given = []
    if isinstance(given, Mapping):
        values = {str(key): each for key, each in given.items()}
        start = _first_weight(values, own, names) if count is None else count
        wanted = own[start:]
        aliases = names if len(names) == len(wanted) else wanted
        missing = [w for w, a in zip(wanted, aliases, strict=True) if not {w, a} & set(values)]
        if missing:
            raise OptionError(f"params: no value for {', '.join(missing[:10])}")
        unknown = sorted(set(values) - set(wanted) - set(aliases))
        if unknown:
            raise OptionError(f"params: no weight of main is called {unknown[0]}")
        found = [values.get(w, values.get(a)) for w, a in zip(wanted, aliases, strict=True)]
    else:
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise OptionError(f"params: expected arrays, found {given!s:.100}")
        found = list(given)
        wanted = own[len(own) - len(found) if count is None else count :]
        if len(found) > len(own) or len(wanted) != len(found):
            raise OptionError(f"params: expected {len(wanted)} values, found {len(found)}")
    return {name: to_weight(each) for name, each in zip(wanted, found, strict=True)}


def _first_weight(values: Mapping[str, AnyValue], own: Sequence[str], names: Sequence[str]) -> int:
    """Return from which parameter on values are given."""
    if names and set(values) <= set(names):
        return len(own) - len(names)
    return next((index for index, name in enumerate(own) if name in values), len(own))


def to_weight(value: AnyValue) -> Weight:
    """Return what holds the values of an array as a weight; a tensor of TVM shares its memory."""
    if isinstance(value, Weight) or not isinstance(value, load().tvm.runtime.Tensor):
        return as_weight(value)
    name = str(value.dtype)
    if name == "int4":  # TVM unpacks it, without signs.
        return as_weight(value.numpy().astype(numpy_dtype(name)))
    if name in PACKED and name != "float4_e2m1fn":
        raise Unsupported(f"TVM does not tell how it packs {name}")
    held = shared_array(value)
    return as_weight(value if held is None else held)
