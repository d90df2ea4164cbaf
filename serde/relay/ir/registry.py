"""The registry of Relay operators: declarations, and the builders made from them.

A declaration is a kernel whose signature is the schema: positional parameters
are operands, keyword-only parameters are attributes with their defaults, in
the order of the text format. See :func:`relay_op`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any as AnyValue, Final, TypeGuard, TypeVar

import numpy as np

from serde.core.records import dataclass
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir import hooks
from serde.relay.ir.deferral import types_are_deferred
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Op, Span, Tuple, TupleWrapper, astuple
from serde.relay.ir.generic import infer_function_call
from serde.relay.ir.lazy import LazyPackage
from serde.relay.ir.schema import (
    PLAIN,
    REQUIRED,
    Arguments,
    Array,
    Attribute,
    Operand,
    Sample,
    SequenceSpec,
    TensorSpec,
    gather,
    read_schema,
    sample,
    sequence,
    tensor,
)
from serde.relay.ir.traits import (
    Elementwise,
    Fusion,
    FusionPattern,
    Linear,
    Moves,
    Reduction,
    Reshape,
    Trait,
)
from serde.relay.ir.types import SequenceType, TensorType, TupleType, Type

__all__ = [
    "REQUIRED", "Arguments", "Array", "Attribute", "OpDef", "Operand", "Sample", "SequenceSpec",
    "Signature", "TensorSpec", "all_ops", "builder", "builder_paths", "call", "called_name",
    "category_of", "declare", "find", "find_builder", "get", "has_trait", "infer_call", "is_call",
    "op_names", "op_signature", "operand_type", "pattern_of", "relay_op", "sample", "sequence",
    "set_type", "tensor", "trait_of",
]  # fmt: skip

Kernel = TypeVar("Kernel", bound=Callable[..., AnyValue])
BuilderT = TypeVar("BuilderT", bound=Callable[..., AnyValue])
TraitT = TypeVar("TraitT", bound=Trait)
OpT = TypeVar("OpT", bound="OpDef")
Traits = Sequence[Trait | type[Trait]]
"""As a declaration has them: one without arguments may stand for itself."""

_OPS: dict[str, OpDef] = {}
_BUILDERS: dict[str, Callable[..., AnyValue]] = {}
_PACKAGE: Final = LazyPackage("serde.relay.op")
"""Where the operators of this package are declared; each module is loaded when it is needed."""

_NO_ATTRS: Final = Attrs()


class OpDef(Op):
    """The declaration of an operator.

    Attributes:
        operands: Operands in order.
        attributes: Attributes in the order of the text format.
        infer: Type relation: operand types and attributes to result type.
        kernel: The meaning, on NumPy arrays.
        samples: Calls that cover the branches.
        decompose: For an extension operator, its body in plain Relay.
        by_value: Names of operands whose value, where constant, `infer` gets instead of the type.
        complete: Gives types to operands that have none yet, or None.
        carries: Names of attributes that are functions.
        fields: Number of results if it is fixed and not one tensor, 0 if it depends on attributes.
        traits: What passes ask for, by kind.
        meta_class: TVM's attribute class where TVM prints it as metadata, else None.
        forms: How the builder takes attributes.
    """

    __slots__ = (
        "_declared", "attributes", "by_value", "carries", "complete", "decompose",
        "doc", "fields", "forms", "infer", "kernel", "meta_class", "operands", "samples", "traits",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kernel: Callable[..., AnyValue],
        infer: Callable[..., AnyValue],
        samples: Sequence[Sample],
        *,
        traits: Traits = (),
        decompose: Callable[..., Expr] | None = None,
        by_value: Sequence[str] = (),
        complete: Callable[..., AnyValue] | None = None,
        meta_class: str | None = None,
        arguments: Arguments = PLAIN,
    ) -> None:
        super().__init__(name)
        self.forms = arguments
        self.samples = tuple(samples)
        self.by_value = frozenset(by_value)
        self.meta_class = meta_class
        self.doc = inspect.getdoc(kernel) or ""
        self._declared = kernel, infer, decompose, complete
        given = [trait() if isinstance(trait, type) else trait for trait in traits]
        self.traits: dict[type[Trait], Trait] = {type(trait): trait for trait in given}
        if len(self.traits) < len(given):
            raise RelayError(f"{name}: a trait is stated twice")

    def __getattr__(self, name: str) -> AnyValue:
        """Read the signature, which is costly, when something of it is first asked for."""
        if name == "_declared":
            raise AttributeError(name)
        kernel, infer, decompose, complete = self._declared
        operands, attributes, self.fields = read_schema(self.name, kernel)
        self.operands, self.attributes = operands, attributes
        self.kernel, self.infer = (gather(each, attributes) for each in (kernel, infer))
        self.decompose, self.complete = (
            None if each is None else gather(each, attributes) for each in (decompose, complete)
        )
        self.carries = tuple(n for n, each in attributes.items() if "Function" in each.annotation)
        unknown = self.by_value - {operand.name for operand in operands}
        if unknown:
            raise RelayError(f"{self.name}: by_value names no operand: {sorted(unknown)}")
        return object.__getattribute__(self, name)

    @property
    def num_inputs(self) -> int:
        """How many operands a call has; a tuple of them counts as one."""
        return len(self.operands)

    @property
    def arguments(self) -> list[Operand]:
        """The operands, as TVM lists them: each has a name, the kind of its type, and no text."""
        return list(self.operands)

    @property
    def description(self) -> str:
        """The documentation, as TVM calls it."""
        return self.doc

    @property
    def support_level(self) -> int:
        """The level that TVM 0.18 gives it: the lower, the more nets use it; 10 by default."""
        return hooks.support_level(self.name)

    def has(self, *kinds: type[Trait]) -> bool:
        """Whether one of these traits is stated."""
        return not self.traits.keys().isdisjoint(kinds)

    def trait(self, kind: type[TraitT]) -> TraitT | None:
        """Return the trait of a kind, or None where it is not stated."""
        found = self.traits.get(kind)
        return found if isinstance(found, kind) else None

    def bind(self, attrs: Mapping[str, AnyValue]) -> Attrs:
        """Return all attributes in order and in canonical form.

        Raises:
            TypeInferenceError: An attribute is unknown, missing or of the wrong kind.
        """
        if not attrs and not self.attributes:
            return _NO_ATTRS
        values = {}
        for attribute in self.attributes.values():
            if attribute.name not in attrs:
                if attribute.required:
                    raise TypeInferenceError(f"{self.name}: attribute {attribute.name} is missing")
                values[attribute.name] = attribute.default
                continue
            given = attrs[attribute.name]
            try:
                values[attribute.name] = attribute.convert(given)
            except (TypeError, ValueError, RelayError):
                raise TypeInferenceError(
                    f"{self.name}: attribute {attribute.name}: expected {attribute.annotation}, "
                    f"found {given!r}"
                ) from None
        if len(attrs) > len(values) or any(name not in values for name in attrs):
            unknown = ", ".join(sorted(set(attrs) - set(values)))
            raise TypeInferenceError(f"{self.name}: unknown attribute {unknown}")
        return Attrs(values)


def relay_op(
    name: str,
    *,
    infer: Callable[..., AnyValue],
    samples: Sequence[Sample],
    traits: Traits = (),
    decompose: Callable[..., Expr] | None = None,
    by_value: Sequence[str] = (),
    complete: Callable[..., AnyValue] | None = None,
    meta_class: str | None = None,
    arguments: Arguments = PLAIN,
) -> Callable[[Kernel], Kernel]:
    """Declare an operator; decorates its NumPy kernel, which stays an ordinary function.

    Operands are annotated ``Array``, ``Array | None`` or ``tuple[Array, ...]``, or
    ``list[Array]`` for a sequence (``tuple[Array | list[Array], ...]`` where fields of a tuple
    may be sequences), or ``Any`` for any value; attributes ``int float bool str Literal np.dtype
    Dim Function``, ``None``, unions and nested tuples of these. A dataclass of keyword-only fields
    stands for the attributes that these are, with the defaults of an object where one is given; the
    other functions take it under the same name, or attributes one by one. A kernel that returns a
    tuple makes a TupleType, one that returns a list a sequence.

    Args:
        name: Name of the operator, such as ``"nn.softmax"``.
        infer: Gets the operands' types (a tuple of types for a tuple, None if absent) and the
            attributes by keyword; returns a type, or a tuple of types.
        samples: Calls that cover the branches; every derived test uses them.
        traits: What passes ask for; see :mod:`serde.relay.ir.traits`.
        decompose: Body in plain Relay, for an extension operator.
        by_value: Operands that `infer` wants as an array where they are constant.
        complete: Gets operand types, None where unknown, and attributes; returns all types.
        meta_class: TVM's attribute class for operators that print it as metadata.
        arguments: How the builder takes attributes, where it does so otherwise than declared.

    Raises:
        RelayError: The name is taken, or the signature is not as above.
    """

    def decorate(kernel: Kernel) -> Kernel:
        made = OpDef(
            name, kernel, infer, samples, traits=traits, decompose=decompose, by_value=by_value,
            complete=complete, meta_class=meta_class, arguments=arguments,
        )  # fmt: skip
        if not _PACKAGE.has(kernel.__module__):
            made.operands  # noqa: B018 - Read, so that what is wrong is refused here.
        declare(made, foreign=not _PACKAGE.has(kernel.__module__))
        return kernel

    return decorate


def declare(definition: OpT, *, foreign: bool = True) -> OpT:
    """Let an operator be found by its name; it is `foreign` if the package does not have it.

    Raises:
        RelayError: The name is taken.
    """
    name = definition.name
    if name in _OPS or (foreign and find(name) is not None):
        raise RelayError(f"{name} is declared twice")
    _OPS[name] = definition
    return definition


def builder(path: str) -> Callable[[BuilderT], BuilderT]:
    """Register a builder written by hand under its path below ``relay``, such as ``"nn.pad"``."""

    def register(function: BuilderT) -> BuilderT:
        foreign = not _PACKAGE.has(function.__module__)
        if path in _BUILDERS or (foreign and find_builder(path) is not None):
            raise RelayError(f"builder {path} is declared twice")
        _BUILDERS[path] = function
        return function

    return register


def get(name: str) -> OpDef:
    """Return the operator called `name`.

    Raises:
        RelayError: There is no such operator.
    """
    definition = find(name)
    if definition is None:
        raise RelayError(f"no Relay operator is called {name}")
    return definition


def find(name: str) -> OpDef | None:
    """Return an operator, declared by now or by the module that the index names; else None."""
    if name not in _OPS and name in _index().operators:
        _PACKAGE.load(_index().operators[name].module)
    return _OPS.get(name)


def category_of(name: str) -> str:
    """Return the category that an operator is declared in, empty for one of another package."""
    known = _index().operators.get(name)
    return "" if known is None else known.module.partition(".")[0]


def find_builder(path: str) -> Callable[..., AnyValue] | None:
    """Return a builder that was registered under a path, or that the index names; else None."""
    if path not in _BUILDERS and path in _index().builders:
        _PACKAGE.load(_index().builders[path])
    return _BUILDERS.get(path)


@dataclass(frozen=True, slots=True)
class Signature:
    """The names in the declaration of an operator.

    Attributes:
        module: Where it is declared; relative to the package, where the index says it.
        operands: Names of its operands.
        attributes: Names of its attributes.
    """

    module: str
    operands: tuple[str, ...]
    attributes: tuple[str, ...]

    @classmethod
    def of(cls, definition: OpDef) -> Signature:
        """Return what a declaration says."""
        operands = tuple(operand.name for operand in definition.operands)
        return cls(definition.kernel.__module__, operands, tuple(definition.attributes))


@dataclass(frozen=True, slots=True)
class _Index:
    """Operators by name, and modules of the builders written by hand by path."""

    operators: dict[str, Signature]
    builders: dict[str, str]


@cache
def _index() -> _Index:
    operators = {
        name: Signature(module, *(tuple(part.split()) for part in text.split(";")))
        for module, listed in _PACKAGE.index.items()
        for name, text in listed.get("operators", {}).items()
    }
    builders = {
        path: module
        for module, listed in _PACKAGE.index.items()
        for path in listed.get("builders", ())
    }
    return _Index(operators, builders)


def op_signature(name: str) -> Signature | None:
    """Return what operands and attributes an operator has, without loading its declaration."""
    definition = _OPS.get(name)
    return _index().operators.get(name) if definition is None else Signature.of(definition)


def op_names() -> list[str]:
    """Return the names of all operators, sorted, without loading their declarations."""
    return sorted({*_OPS, *_index().operators})


def called_name(node: Expr) -> str:
    """Return the name of the operator that a node calls; "" where it calls none."""
    return node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else ""


def is_call(node: Expr, *names: str) -> TypeGuard[Call]:
    """Whether a node calls one of the operators of these names."""
    return isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name in names


def has_trait(node: Expr, *kinds: type[Trait]) -> bool:
    """Whether a node calls an operator with one of these traits."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return False
    return not node.op.traits.keys().isdisjoint(kinds)


def trait_of(node: Expr, kind: type[TraitT]) -> TraitT | None:
    """Return the trait of the operator that a node calls; None where it has not, or calls none."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return None
    return node.op.trait(kind)


def all_ops() -> dict[str, OpDef]:
    """Return all operators, sorted by name; this loads every declaration."""
    _PACKAGE.load_all()
    return dict(sorted(_OPS.items()))


def call(name: str, /, *operands: AnyValue, span: Span | None = None, **attrs: AnyValue) -> Call:
    """Build a call of an operator and infer its type where its operands are typed.

    Args:
        name: The operator.
        operands: An expression each; a list or tuple of expressions for a tuple operand,
            None for an operand that is absent.
        span: Where the call comes from.
        attrs: Attributes; those left out take their defaults.

    Raises:
        TypeInferenceError: The operator does not accept these operands or attributes.
    """
    definition = get(name)
    if len(operands) > len(definition.operands):
        raise TypeInferenceError(
            f"{name}: expected {len(definition.operands)} operands, found {len(operands)}"
        )
    padded = (*operands, *[None] * (len(definition.operands) - len(operands)))
    args = [
        value if isinstance(value, Expr) else _as_argument(name, operand, value)
        for operand, value in zip(definition.operands, padded, strict=True)
    ]
    node = Call(definition, args, definition.bind(attrs), span=span)
    try:
        node.type = infer_call(node)
    except TypeInferenceError:
        if not types_are_deferred():
            raise
    return node


def _as_argument(name: str, operand: Operand, value: AnyValue) -> Expr:
    if value is None and operand.optional:
        return Tuple(())
    if isinstance(value, TupleWrapper):
        if not operand.variadic:
            return value.tuple_value
        value = list(value)
    if isinstance(value, (list, tuple)):
        return Tuple([astuple(item) for item in value])
    raise TypeInferenceError(
        f"{name}: operand {operand.name}: expected an expression, found {value!r}"
    )


def set_type(node: Call) -> Call:
    """Return a call with the type that its operands tell."""
    node.type = infer_call(node)
    return node


def infer_call(node: Call) -> Type | None:
    """Return the type of a call, or None while an argument has none.

    Raises:
        TypeInferenceError: The arguments do not fit what is called.
    """
    if not isinstance(node.op, OpDef):
        return infer_function_call(node)
    definition = node.op
    if len(node.args) != len(definition.operands):
        raise TypeInferenceError(
            f"{definition.name}: expected {len(definition.operands)} operands, "
            f"found {len(node.args)}"
        )
    given = []
    for operand, argument in zip(definition.operands, node.args, strict=True):
        if argument.type is None:
            return None
        given.append(operand_type(definition, operand, argument))
    try:
        result = _infer(definition, tuple(given), node.attrs)
    except RelayError as error:
        text = str(error)
        if text.startswith(f"{definition.name}: ") and isinstance(error, TypeInferenceError):
            raise
        raise TypeInferenceError(f"{definition.name}: {text}") from None
    return TupleType(result) if isinstance(result, (tuple, list)) else result


def _infer(definition: OpDef, given: tuple[AnyValue, ...], attrs: Attrs) -> AnyValue:
    """Return what a type relation gives; of calls that are alike it is asked once."""
    if definition.by_value or definition.carries or not all(map(_is_fixed, given)):
        return definition.infer(*given, **attrs)
    try:
        return _infer_fixed(definition, given, tuple(attrs.items()))
    except TypeError:  # of attributes that have no hash
        return definition.infer(*given, **attrs)


def _is_fixed(type_: AnyValue) -> bool:
    return isinstance(type_, TensorType) and type_.concrete_shape is not None


@lru_cache(maxsize=2**10)
def _infer_fixed(
    definition: OpDef, given: tuple[AnyValue, ...], attrs: tuple[tuple[str, AnyValue], ...]
) -> AnyValue:
    return definition.infer(*given, **dict(attrs))


def operand_type(definition: OpDef, operand: Operand, argument: Expr) -> AnyValue:
    """Return what a type relation gets for a typed operand; refuse what the operand cannot be."""
    type_ = argument.type
    if operand.name in definition.by_value and isinstance(argument, Constant):
        return np.asarray(argument.data)
    if operand.takes_whole(type_):
        return type_
    if isinstance(type_, TupleType):
        if operand.variadic:
            return _fields(operand, type_)
        if operand.optional and not type_.fields:
            return None
    wanted = "a tuple" if operand.variadic else "a sequence" if operand.sequence else "a tensor"
    raise TypeInferenceError(f"operand {operand.name}: expected {wanted}, found {type_!r}")


def _fields(operand: Operand, type_: TupleType) -> tuple[Type, ...]:
    allowed = (TensorType, SequenceType) if operand.sequence else (TensorType,)
    for index, field in enumerate(type_.fields):
        if not isinstance(field, allowed):
            message = f"field {index}: expected a tensor, found {field!r}"
            raise TypeInferenceError(f"operand {operand.name}: {message}")
    return type_.fields


def builder_paths() -> Iterator[str]:
    """Yield the path of every builder below ``relay``, made by hand or from a declaration."""
    yield from tuple(_BUILDERS)  # Other threads may load operators meanwhile.
    yield from _index().builders
    for name in (*_OPS, *_index().operators):
        yield name.replace("qnn.", "qnn.op.", 1) if name.startswith("qnn.") else name


def pattern_of(definition: OpDef) -> FusionPattern:
    """Return the pattern of an operator, as it says or as its other traits tell."""
    said = definition.trait(Fusion)
    if said is not None:
        return said.pattern
    if definition.has(Elementwise):
        one = len(definition.operands) == 1
        return FusionPattern.ELEMWISE if one else FusionPattern.BROADCAST
    if definition.has(Moves, Reshape):
        return FusionPattern.INJECTIVE
    if definition.has(Reduction):
        return FusionPattern.COMM_REDUCE
    return FusionPattern.OUT_ELEMWISE_FUSABLE if definition.has(Linear) else FusionPattern.OPAQUE
