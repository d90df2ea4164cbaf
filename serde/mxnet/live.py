"""Objects of a running MXNet as the native model, and back: Symbol, Gluon blocks, modules.

MXNet is not imported to read them: whoever holds such an object has done so.
Values are copied in pieces, to NumPy when they are written.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.core import Weight, dtype_name, require
from serde.engine.base import first_line
from serde.errors import ConversionError, OptionError
from serde.mxnet.arrays import as_weight, assign, weights_of
from serde.mxnet.model import DTYPES, MxnetModel, with_input_order
from serde.mxnet.precision import NARROW
from serde.mxnet.symbol_json import parse_symbol, symbol_text

__all__ = ["Params", "from_live", "is_live", "to_block", "to_live"]

_KINDS = ("Symbol", "Block", "BaseModule", "FeedForward")

_TRAINED = (np.float16, np.float32, np.float64)
"""dtypes of what is trained; an NDArray has NumPy's classes for dtypes."""


def is_live(source: object) -> bool:
    """Whether `source` is a Symbol, Gluon block, Module or FeedForward, subclasses included."""
    return "mxnet" in sys.modules and _kind(source) is not None


def _kind(source: object) -> str | None:
    for cls in type(source).__mro__:
        if cls.__module__.partition(".")[0] == "mxnet" and cls.__name__ in _KINDS:
            return cls.__name__
    return None


def from_live(
    source: Any, params: object = None, input_shapes: Mapping[str, Sequence[Any]] | None = None
) -> MxnetModel:
    """Return the model of an object of MXNet's.

    A block is traced with symbols as its ``export`` would do, hybridised or
    not, and its inputs are called alike: ``data``, or ``data0``, ``data1``...
    They are in the order in which the block takes them.
    Parameters whose initialisation waits for a shape are initialised, as the
    first forward pass would do; nothing else of the block changes.

    Args:
        source: A ``Symbol``, ``HybridBlock``, ``SymbolBlock``, ``Module`` or ``FeedForward``. A
            module that is bound knows the shapes of its inputs.
        params: Arrays by name, prefixed or not, or an ``(arg, aux)`` pair;
            for a block or module in place of its own values.
        input_shapes: Shapes of the inputs, needed where parameters wait for them.

    Raises:
        OptionError: Parameters have no values, or a block cannot be traced.
    """
    kind = _kind(source)
    shapes = dict(input_shapes or {})
    if kind == "Symbol":
        return _model(source, weights_of(params), repr(source))
    if kind == "BaseModule":
        own = weights_of(source.get_params()) if source.params_initialized else None
        model = _of_module(source, _module_symbol(source), own, params)
        return _with_shapes(model, source) if source.binded else model
    if kind == "FeedForward":
        given = source.arg_params, source.aux_params or {}
        own = None if source.arg_params is None else weights_of(given)
        return _of_module(source, source.symbol, own, params)
    if kind == "Block":
        symbol, names = _trace(source, shapes)
        own = [] if params is not None else _block_weights(source, symbol, shapes)
        model = _model(symbol, _choose_weights(own, params), type(source).__name__)
        return replace(model, graph=with_input_order(model.graph, names))
    raise OptionError(f"expected a Symbol, HybridBlock or Module, found {type(source).__name__}")


def _of_module(
    source: Any, symbol: Any, own: list[tuple[str, Weight]] | None, params: object
) -> MxnetModel:
    """Return the model of what holds a symbol beside parameters, which it may not have yet."""
    name = type(source).__name__
    if params is None and own is None:
        raise OptionError(f"{name} has no parameters yet: set or initialise them, or pass them")
    return _model(symbol, _choose_weights(own or [], params), name)


def _with_shapes(model: MxnetModel, module: Any) -> MxnetModel:
    """Return the model with the shapes and dtypes that a module is bound to noted on its inputs."""
    bound = {each.name: each for each in (*module.data_shapes, *(module.label_shapes or ()))}
    nodes = tuple(
        replace(node, hidden={**node.hidden, **_note(bound[node.name])})
        if node.is_variable and node.name in bound
        else node
        for node in model.graph.nodes
    )
    return replace(model, graph=replace(model.graph, nodes=nodes))


def _note(bound: Any) -> dict[str, str]:
    dtype = dtype_name(getattr(bound, "dtype", np.float32))
    return {"__shape__": str(tuple(bound.shape)), "__dtype__": str(DTYPES.index(dtype))}


class Params(dict[str, Any]):
    """Parameters of a symbol: an NDArray by bare name.

    Attributes:
        arg: Those that are learned.
        aux: Those that an operator updates itself.
        inputs: Names of the inputs in the model's order, which ``Symbol.list_arguments`` has not.
        constants: Names in `arg` of constants of the graph, which are no parameters to train.
    """

    def __init__(
        self,
        arg: Mapping[str, Any],
        aux: Mapping[str, Any],
        inputs: Sequence[str] = (),
        constants: Iterable[str] = (),
    ) -> None:
        super().__init__({**arg, **aux})
        self.arg = dict(arg)
        self.aux = dict(aux)
        self.inputs = tuple(inputs)
        self.constants = frozenset(constants)


def to_live(model: MxnetModel) -> tuple[Any, Params]:
    """Return a model as ``mx.Symbol`` and parameters, which own their memory.

    Raises:
        ConversionError: MXNet refuses it, as some numbers or sizes.
        MissingDependency: MXNet is not installed.
    """
    mx = require("mxnet")
    try:
        symbol = mx.sym.load_json(symbol_text(model.graph))
        arg, aux = _own_arrays(mx, model)
    except mx.MXNetError as error:
        reason = first_line(error)
        raise ConversionError(f"MXNet does not take the model: {reason}") from error
    return symbol, Params(arg, aux, model.input_order or model.inputs, model.constants)


def _own_arrays(mx: Any, model: MxnetModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters and auxiliary states as NDArrays."""
    with mx.util.np_shape("is_np_shape" in model.graph.attrs):
        arg = {name: _ndarray(mx, weight) for name, weight in model.arg.items()}
        aux = {name: _ndarray(mx, weight) for name, weight in model.aux.items()}
    return arg, aux


def to_block(symbol: Any, params: Params, ctx: Any = None) -> Any:
    """Return a ``SymbolBlock`` that takes the inputs in the order of the model.

    Parameters that are no floats and constants of the graph are there, but not trained.

    Args:
        symbol: The ``mx.Symbol``.
        params: Its parameters.
        ctx: MXNet's device, or a list of them; the CPU if left out.
    """
    mx = require("mxnet")
    notes, unused = symbol.attr_dict(), {"__dtype__": "0"}
    inputs = [mx.sym.var(name, attr=notes.get(name, unused)) for name in params.inputs]
    block = mx.gluon.SymbolBlock(symbol, inputs)
    declared = block.collect_params()
    for name, value in params.items():
        parameter = declared[name]
        parameter.dtype = value.dtype
        parameter.shape = value.shape
        if name in params.constants or value.dtype not in _TRAINED:
            parameter.grad_req = "null"
        parameter.initialize(init=mx.init.Zero(), ctx=mx.cpu() if ctx is None else ctx)
        parameter.set_data(value)
    return block


def _ndarray(mx: Any, weight: Weight) -> Any:
    """Return an NDArray, filled in bounded pieces."""
    if not weight.shape:
        return mx.nd.array(weight.array(), dtype=weight.dtype)
    result = mx.nd.empty(weight.shape, dtype=weight.dtype)
    for start, stop in weight.row_ranges():
        result[start:stop] = mx.nd.array(weight.rows(start, stop), dtype=weight.dtype)
    return result


def _choose_weights(own: list[tuple[str, Weight]], params: object) -> list[tuple[str, Weight]]:
    return own if params is None else weights_of(params)


def _model(symbol: Any, named: Iterable[tuple[str, Weight]], source: str) -> MxnetModel:
    """Return the model of a symbol.

    Casts of automatic mixed precision are left out, as MXNet does when it saves a symbol, unless
    the weights have been cast, too.
    """
    mx, named = sys.modules["mxnet"], list(named)
    narrow = any(weight.dtype in NARROW for _, weight in named)
    with mx.util.np_shape(mx.util.is_np_shape() or isinstance(symbol, mx.sym.np._Symbol)):
        text = symbol.tojson(remove_amp_cast=not narrow)
    graph = parse_symbol(text.encode(), path=source)
    arg, aux = assign(graph, named)
    return MxnetModel(graph, arg, aux, source=source)


def _module_symbol(module: Any) -> Any:
    try:
        symbol = module.symbol
    except AssertionError:
        # A BucketingModule says so if it is not bound.
        symbol = None
    if symbol is None:
        raise OptionError(f"{type(module).__name__} has no symbol of its own, or is not bound yet")
    return symbol


def _trace(block: Any, shapes: Mapping[str, Sequence[Any]]) -> tuple[Any, list[str]]:
    """Return the block's symbol, the one it was hybridised to or a trace, and its inputs' names."""
    if not hasattr(block, "hybrid_forward"):
        name = type(block).__name__
        raise OptionError(f"{name} is a Block, which cannot be traced; make it a HybridBlock")
    if block._cached_graph:
        inputs, symbol = block._cached_graph
        return symbol, [variable.name for variable in inputs]
    mx = sys.modules["mxnet"]
    inputs = [mx.sym.var(name) for name in _input_names(block, shapes)]
    if mx.util.is_np_array():
        inputs = [variable.as_np_ndarray() for variable in inputs]
    try:
        outputs = _flat(block(*inputs))
    except Exception as error:
        raise OptionError(
            f"{type(block).__name__} cannot be traced with {len(inputs)} inputs: {error}; "
            f"hybridize() it, call it once with arrays and try again"
        ) from error
    symbol = outputs[0] if len(outputs) == 1 else mx.sym.Group(outputs)
    return symbol, [variable.name for variable in inputs]


def _flat(outputs: Any) -> list[Any]:
    if not isinstance(outputs, (list, tuple)):
        return [outputs]
    return [leaf for output in outputs for leaf in _flat(output)]


def _input_names(block: Any, shapes: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return names for as many inputs as there are shapes, if the block takes so many."""
    least, most = _arity(block)
    count = len(shapes) if least <= len(shapes) <= most else least
    return ["data"] if count == 1 else [f"data{i}" for i in range(count)]


def _arity(block: Any) -> tuple[int, float]:
    """Return the least and the greatest number of inputs of ``hybrid_forward``."""
    least, most = 0, 0.0
    kinds = inspect.Parameter
    _, *parameters = inspect.signature(block.hybrid_forward).parameters.values()
    for parameter in parameters:
        if parameter.kind is kinds.VAR_POSITIONAL:
            most = float("inf")
        if parameter.kind is not kinds.POSITIONAL_OR_KEYWORD or parameter.name in block._reg_params:
            continue
        most += 1
        least += parameter.default is kinds.empty
    return max(least, 1), max(most, 1)


def _block_weights(
    block: Any, symbol: Any, shapes: Mapping[str, Sequence[Any]]
) -> list[tuple[str, Weight]]:
    used = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
    params = [p for p in block.collect_params().values() if p.name in used]
    waiting = [p for p in params if p._deferred_init]
    if waiting:
        _initialize(waiting, symbol, shapes)
    missing = [p.name for p in params if p._data is None]
    if missing:
        raise OptionError(f"parameter {missing[0]} has no value: call initialize() or load it")
    states = set(symbol.list_auxiliary_states())
    return [
        (f"{'aux' if p.name in states else 'arg'}:{p.name}", as_weight(p._data[0])) for p in params
    ]


def _initialize(waiting: Sequence[Any], symbol: Any, shapes: Mapping[str, Sequence[Any]]) -> None:
    """Give parameters the shapes that follow from the inputs', and their first values."""
    mx = sys.modules["mxnet"]
    unknown = -1 if mx.util.is_np_shape() else 0
    arguments = symbol.list_arguments()
    if "" in shapes:
        names = {p.name for p in waiting}
        free = [name for name in arguments if name not in names]
        shapes = {free[0]: shapes[""]} if free else {}
    given = {
        name: tuple(n if isinstance(n, int) and n > 0 else unknown for n in shape)
        for name, shape in shapes.items()
        if name in arguments
    }
    try:
        found, _, states = symbol.infer_shape_partial(**given)
    except mx.MXNetError as error:
        if not given or any(unknown in shape for shape in given.values()):
            raise _unknown_shape(waiting[0]) from error
        reason = first_line(error)
        raise OptionError(f"the shapes {given} do not fit the block: {reason}") from error
    inferred = dict(zip(arguments, found, strict=True))
    inferred.update(zip(symbol.list_auxiliary_states(), states, strict=True))
    for parameter in waiting:
        shape = inferred[parameter.name]
        if not shape or any(length <= 0 for length in shape):
            raise _unknown_shape(parameter)
    for parameter in waiting:
        parameter.shape = inferred[parameter.name]
        parameter._finish_deferred_init()


def _unknown_shape(parameter: Any) -> OptionError:
    return OptionError(
        f"the shape of {parameter.name} depends on the inputs; "
        f"give input_shapes={{'data': (1, 3, 224, 224)}}, or run the block once"
    )
