"""An executor of ML Programs in NumPy, which shares no code with the bridge.

coremltools reads the message and the values of its constants; the operators are those of
``mil_elementwise``, ``mil_tensors``, ``mil_weights``, ``mil_layers`` and ``mil_kernels``.
Whatever a program declares of a value, its dtype and its lengths, is compared with what is
computed. A value of float16 is computed in float32 from operands of float16 and then rounded
once, as an engine does that accumulates in float32.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from support import mil_elementwise, mil_layers, mil_tensors, mil_weights
from support.coreml_models import tools
from support.mil_kernels import KERNELS

from serde.coreml.model import CoremlModel

__all__ = ["MODULES", "Program", "execute", "load", "run_kernel"]

MODULES = (mil_elementwise, mil_tensors, mil_weights, mil_layers)
"""Where the operators are, which register themselves."""

Observer = Callable[[str, dict[str, Any], tuple[Any, ...], str], None]
"""Told of each operation: its operator, its inputs, its results and the operator set."""

_OPSETS = {"CoreML5": 15, "CoreML6": 16, "CoreML7": 17, "CoreML8": 18, "CoreML9": 26}
_DTYPES = {
    1: "bool", 10: "float16", 11: "float32", 12: "float64", 21: "int8", 22: "int16", 23: "int32",
    24: "int64", 25: "int8", 31: "uint8", 32: "uint16", 33: "uint32", 35: "uint8", 36: "uint8",
    37: "uint8", 38: "uint8", 39: "uint8",
}  # fmt: skip
"""NumPy's dtypes by Apple's numbers; what has fewer bits than eight is held in eight."""


@dataclass(frozen=True)
class _Output:
    name: str
    dtype: str | None
    dims: tuple[int | None, ...]


@dataclass(frozen=True)
class _Operation:
    """One operation: each input by name is the name of a value, its value, or several names."""

    type: str
    inputs: Mapping[str, str | list[str]]
    given: Mapping[str, Any]
    outputs: tuple[_Output, ...]
    blocks: tuple[_Block, ...]
    dead: tuple[str, ...]


@dataclass(frozen=True)
class _Block:
    inputs: tuple[str, ...]
    operations: tuple[_Operation, ...]
    outputs: tuple[str, ...]


@dataclass
class Program:
    """An ML Program that can be run.

    Attributes:
        spec: Apple's message.
        folder: Where its weights are.
        function: Which function; the default one if left out.
    """

    spec: Any
    folder: str
    function: str = ""
    _reader: Any = field(init=False)
    _constants: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        tools()
        from coremltools.converters.mil.frontend.milproto.load import TranscriptionContext

        self._reader = TranscriptionContext(self.folder)
        name = self.function or self.spec.description.defaultFunctionName or "main"
        function = self.spec.mlProgram.functions[name]
        self.opset = function.opset
        self.inputs = {each.name: _output(each) for each in function.inputs}
        self.block = self._compiled(function.block_specializations[function.opset])

    @property
    def operators(self) -> set[str]:
        """The operators of the program, constants left out."""
        found: set[str] = set()
        pending = [self.block]
        while pending:
            block = pending.pop()
            found |= {op.type for op in block.operations}
            pending += [inner for op in block.operations for inner in op.blocks]
        return found

    @property
    def size(self) -> int:
        """Number of operations, constants left out."""
        return len(self.block.operations)

    def run(
        self,
        given: Mapping[str, Any],
        states: dict[str, np.ndarray] | None = None,
        observe: Observer | None = None,
    ) -> list[Any]:
        """The outputs for values of the inputs.

        Args:
            given: A value for each input.
            states: The states by name, which are changed.
            observe: Told of each operation.

        Raises:
            AssertionError: An operation gives something other than it declares.
        """
        states = {} if states is None else states
        values: dict[str, Any] = dict(self._constants)
        for name, declared in self.inputs.items():
            if declared.dtype is None:
                values[name] = _State(name, states)
            else:
                data = np.asarray(given[name])
                _check(declared, data.shape, "input")
                values[name] = data.astype(declared.dtype)
        runner = _Runner(_OPSETS[self.opset], self.opset, observe)
        with np.errstate(all="ignore"):
            return runner.block(self.block, values)

    def _compiled(self, message: Any) -> _Block:
        """The operations of a block; those that are constants become values."""
        operations = [op for op in message.operations if not self._is_constant(op)]
        outputs = tuple(message.outputs)
        last: dict[str, int] = {}
        for place, op in enumerate(operations):
            last |= dict.fromkeys(_read(op), place)
        made = {out.name for op in operations for out in op.outputs}
        found = []
        for place, op in enumerate(operations):
            unread = {out.name for out in op.outputs} - set(last)
            dead = unread | {n for n, at in last.items() if at == place and n in made}
            found.append(self._operation(op, tuple(dead - set(outputs))))
        return _Block(tuple(each.name for each in message.inputs), tuple(found), outputs)

    def _is_constant(self, op: Any) -> bool:
        if op.type != "const":
            return False
        self._constants[op.outputs[0].name] = self._value(op.attributes["val"])
        return True

    def _operation(self, op: Any, dead: tuple[str, ...]) -> _Operation:
        inputs: dict[str, str | list[str]] = {}
        given = {
            name: self._value(value) for name, value in op.attributes.items() if name != "name"
        }
        for name, argument in op.inputs.items():
            names = [self._bound(each) for each in argument.arguments]
            inputs[name] = names if _is_variadic(op.type, name) else names[0]
        blocks = tuple(self._compiled(each) for each in op.blocks)
        outputs = tuple(_output(each) for each in op.outputs)
        return _Operation(op.type, inputs, given, outputs, blocks, dead)

    def _bound(self, binding: Any) -> str:
        """The name of what an input is bound to; a value that stands there itself gets one."""
        if binding.WhichOneof("binding") == "name":
            return str(binding.name)
        name = f"%{len(self._constants)}"
        self._constants[name] = self._value(binding.value)
        return name

    def _value(self, message: Any) -> Any:
        from coremltools.converters.mil.frontend.milproto.load import _load_value

        if message.type.WhichOneof("type") == "listType":
            return [self._value(each) for each in message.immediateValue.list.values]
        found = _load_value(self._reader, message)
        return found if isinstance(found, str) else np.asarray(found)[()]


@dataclass(frozen=True)
class _State:
    name: str
    states: dict[str, np.ndarray]


@dataclass(frozen=True)
class _Runner:
    version: int
    opset: str
    observe: Observer | None

    def block(self, block: _Block, values: dict[str, Any]) -> list[Any]:
        for op in block.operations:
            given: dict[str, Any] = dict(op.given)
            for name, source in op.inputs.items():
                several = isinstance(source, list)
                given[name] = (
                    tuple(values[each] for each in source) if several else values[source]  # type: ignore[index]
                )
            found = self._results(op, given, values)
            for output, result in zip(op.outputs, found, strict=True):
                values[output.name] = result
            if self.observe is not None and not op.blocks:
                self.observe(op.type, given, found, self.opset)
            for name in op.dead:
                del values[name]
        return [values[name] for name in block.outputs]

    def _results(
        self, op: _Operation, given: dict[str, Any], values: dict[str, Any]
    ) -> tuple[Any, ...]:
        try:
            if op.type == "cond":
                found: Any = self.block(op.blocks[0 if given["pred"] else 1], dict(values))
            elif op.type == "while_loop":
                found = self._loop(op.blocks, given["loop_vars"], values)
            elif op.type == "read_state":
                found = given["input"].states[given["input"].name]
            elif op.type in ("write_state", "coreml_update_state"):
                state = given.get("input", given.get("state"))
                state.states[state.name] = given.get("data", given.get("value"))
                found = () if not op.outputs else state.states[state.name]
            else:
                found = run_kernel(op.type, given, self.version)
        except Exception as error:
            names = ", ".join(out.name for out in op.outputs)
            raise RuntimeError(f"{op.type} of {names}: {error}") from error
        several = isinstance(found, (tuple, list))
        pairs = zip(op.outputs, found if several else (found,), strict=True)
        return tuple(_declared(output, result, op.type) for output, result in pairs)

    def _loop(self, blocks: tuple[_Block, ...], first: Any, values: dict[str, Any]) -> list[Any]:
        ask, turn = blocks
        state = list(first)
        while True:
            (goes_on,) = self.block(ask, values | dict(zip(ask.inputs, state, strict=True)))
            if not goes_on:
                return state
            state = self.block(turn, values | dict(zip(turn.inputs, state, strict=True)))


def run_kernel(op: str, given: Mapping[str, Any], version: int = 18) -> Any:
    """What an operator gives for its inputs; float32 where it is to be rounded to float16."""
    function = KERNELS[op]
    wide = {each: _wide(value) for each, value in given.items()}
    if _knows_opset(function):
        wide["opset"] = version
    return function(**wide)


@cache
def _knows_opset(function: Callable[..., Any]) -> bool:
    return "opset" in inspect.signature(function).parameters


def _wide(value: Any) -> Any:
    """A value with float32 for float16."""
    if isinstance(value, tuple):
        return tuple(_wide(each) for each in value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == np.float16:
        return value.astype(np.float32)
    return value


def _declared(output: _Output, result: Any, op: str) -> Any:
    """A result in the dtype that is declared.

    Raises:
        AssertionError: It is of another kind, or has other lengths.
    """
    if output.dtype is None:
        return result
    data = np.asarray(result)
    kinds = {data.dtype.kind, np.dtype(output.dtype).kind}
    assert len(kinds) == 1 or kinds == {"i", "u"}, f"{op}: {data.dtype}, not {output.dtype}"
    _check(output, data.shape, op)
    return data.astype(output.dtype, copy=False)


def _check(output: _Output, shape: tuple[int, ...], op: str) -> None:
    fits = len(shape) == len(output.dims) and all(
        wanted is None or wanted == length
        for wanted, length in zip(output.dims, shape, strict=True)
    )
    assert fits, f"{op}: {output.name} is {shape}, declared {output.dims}"


def _output(message: Any) -> _Output:
    if message.type.WhichOneof("type") != "tensorType":
        return _Output(message.name, None, ())
    tensor = message.type.tensorType
    if tensor.dataType not in _DTYPES:
        return _Output(message.name, None, ())
    dims = tuple(
        each.constant.size if each.WhichOneof("dimension") == "constant" else None
        for each in tensor.dimensions
    )
    return _Output(message.name, _DTYPES[tensor.dataType], dims)


def _is_variadic(op: str, name: str) -> bool:
    return (op, name) in {
        ("concat", "values"), ("stack", "values"), ("einsum", "values"),
        ("while_loop", "loop_vars"), ("make_list", "elem_shape"), ("reshape_like", "ref_tensors"),
        ("reshape_like", "begins"), ("reshape_like", "ends"), ("reshape_like", "end_masks"),
    }  # fmt: skip


def _read(op: Any) -> set[str]:
    """Names of the values that an operation reads, those of its blocks as well."""
    found = {each.name for given in op.inputs.values() for each in given.arguments}
    for block in op.blocks:
        found |= set(block.outputs)
        for inner in block.operations:
            found |= _read(inner)
    return found


def execute(model: Any, given: Mapping[str, Any], observe: Observer | None = None) -> list[Any]:
    """The outputs of a package, of an ``MLModel`` or of what the bridge makes."""
    with ExitStack() as stack:
        return load(model, stack).run(given, observe=observe)


def load(model: Any, stack: ExitStack, function: str = "") -> Program:
    """A program that can be run; what is written for it goes when the stack is closed."""
    ct = tools()
    if isinstance(model, (str, Path)):
        path = Path(model)
        spec = ct.utils.load_spec(str(path))
        return Program(spec, str(path / "Data" / "com.apple.CoreML" / "weights"), function)
    if not isinstance(model, CoremlModel):
        return Program(model.get_spec(), str(model.weights_dir), function)
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    spec = ct.proto.Model_pb2.Model()
    spec.ParseFromString(model.spec.SerializeToString())
    if model.layout is not None:
        model.layout.write(Path(folder) / "weight.bin")
    return Program(spec, folder)
