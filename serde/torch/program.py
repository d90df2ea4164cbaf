"""A module of Python as serde writes it: statements, layers and weights.

Expressions and statements are values that are compared and rewritten; text is made of them in
:mod:`serde.torch.written`. A variable is assigned once, but for those that branches and loops
carry, and has the name that it is given there only when text is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue, TypeAlias

from serde.core import Weight, dataclass, field
from serde.relay.ir.types import TensorType
from serde.torch.model import Input

__all__ = [
    "Apply", "Assign", "Attribute", "Chain", "Dtype", "Expression", "If", "Index", "Infix",
    "Items", "Layer", "Length", "Literal", "Local", "Loop", "Method", "Parameter", "Prefix",
    "Repeated", "Slice", "Statement", "Stored", "Submodule", "TorchProgram", "expressions_of",
    "locals_of", "parts", "rebuild", "rename", "statements_of", "with_parts",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Local:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A weight or a constant of the module by the name that it has in the program."""

    name: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """A number that a module keeps."""

    name: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a constructor."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, a truth value or None."""

    value: AnyValue


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype of PyTorch by its name in NumPy."""

    name: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list, or a tuple."""

    items: tuple[Expression, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Repeated:
    """``[item for _ in range(count)]``, or with a star before it."""

    item: Expression
    count: int
    starred: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """``start:stop:step`` inside brackets."""

    start: Expression | None = None
    stop: Expression | None = None
    step: Expression | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """The call of a function such as ``torch.where``."""

    function: str
    arguments: tuple[Expression, ...] = ()
    keywords: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Submodule:
    """The call of a layer, or of a block, of the module."""

    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """The calls of all submodules of a list, each of the result of that before and the rest."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """The call of a method of a tensor."""

    x: Expression
    name: str
    arguments: tuple[Expression, ...] = ()
    keywords: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Infix:
    """``left operator right``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Prefix:
    """``operator x``, such as ``-x``."""

    operator: str
    x: Expression


@dataclass(frozen=True, slots=True)
class Index:
    """``x[items]``."""

    x: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Length:
    """``x.shape[axis]``, a number."""

    x: Expression
    axis: int


Expression: TypeAlias = (
    Local
    | Stored
    | Attribute
    | Parameter
    | Literal
    | Dtype
    | Items
    | Repeated
    | Slice
    | Apply
    | Submodule
    | Chain
    | Method
    | Infix
    | Prefix
    | Index
    | Length
)


def parts(expression: Expression) -> tuple[Expression, ...]:
    """Return what an expression is made of."""
    if isinstance(expression, (Apply, Method)):
        named = tuple(each for _, each in expression.keywords)
        first = (expression.x,) if isinstance(expression, Method) else ()
        return (*first, *expression.arguments, *named)
    if isinstance(expression, (Submodule, Chain)):
        return expression.arguments
    if isinstance(expression, Infix):
        return expression.left, expression.right
    if isinstance(expression, Index):
        return expression.x, *expression.items
    if isinstance(expression, (Length, Prefix)):
        return (expression.x,)
    if isinstance(expression, Repeated):
        return (expression.item,)
    if isinstance(expression, Items):
        return expression.items
    if isinstance(expression, Slice):
        known = expression.start, expression.stop, expression.step
        return tuple(each for each in known if each is not None)
    return ()


def with_parts(expression: Expression, new: Sequence[Expression]) -> Expression:
    """Return an expression made of other parts, as many as :func:`parts` gives."""
    if isinstance(expression, (Apply, Method)):
        first = 1 if isinstance(expression, Method) else 0
        last = first + len(expression.arguments)
        names = (name for name, _ in expression.keywords)
        keywords = tuple(zip(names, new[last:], strict=True))
        if isinstance(expression, Method):
            return Method(new[0], expression.name, tuple(new[1:last]), keywords)
        return Apply(expression.function, tuple(new[:last]), keywords)
    if isinstance(expression, (Submodule, Chain)):
        return type(expression)(expression.name, tuple(new))
    if isinstance(expression, Infix):
        return Infix(expression.operator, *new)
    if isinstance(expression, Prefix):
        return Prefix(expression.operator, *new)
    if isinstance(expression, Index):
        return Index(new[0], tuple(new[1:]))
    if isinstance(expression, Length):
        return Length(new[0], expression.axis)
    if isinstance(expression, Items):
        return Items(tuple(new), expression.is_list)
    if isinstance(expression, Repeated):
        return Repeated(new[0], expression.count, expression.starred)
    if isinstance(expression, Slice):
        given = iter(new)
        known = expression.start, expression.stop, expression.step
        return Slice(*(None if each is None else next(given) for each in known))
    return expression


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return an expression whose parts, innermost first, and then itself are changed."""
    inner = [rebuild(each, change) for each in parts(expression)]
    return change(with_parts(expression, inner) if inner else expression)


def locals_of(expression: Expression) -> Iterator[str]:
    """Yield the variables that an expression reads, in order, each as often as it does."""
    pending = [expression]
    while pending:
        each = pending.pop()
        if isinstance(each, Local):
            yield each.name
        pending.extend(reversed(parts(each)))


@dataclass(slots=True)
class Assign:
    """``targets = value``.

    Attributes:
        targets: The variables.
        value: What they are; with several targets, a tuple or a list.
        types: Relay types of the targets as far as they are known, for comments.
        source: Name of the node that is converted.
        annotation: Type of the target, where that is to be told.
        split: How many of the targets, from the second on, are a tuple inside the tuple.
    """

    targets: tuple[str, ...]
    value: Expression
    types: tuple[TensorType | None, ...] = ()
    source: str = ""
    split: int = 0
    annotation: str = ""


@dataclass(slots=True)
class If:
    """A conditional; both branches assign the same variables, its targets."""

    condition: Expression
    then: list[Statement]
    other: list[Statement]
    targets: tuple[str, ...] = ()
    source: str = ""


@dataclass(slots=True)
class Loop:
    """``while condition: body``, or ``for counter in range(limit): body``.

    Attributes:
        condition: What is asked before each turn; None for ``for``.
        body: Assigns what the loop carries last.
        carried: The variables that it assigns and that are read behind it, or in the next turn.
        counter: The variable that counts, of ``for``.
        limit: How often, of ``for``.
        source: Name of the node that is converted.
    """

    condition: Expression | None
    body: list[Statement]
    carried: tuple[str, ...] = ()
    counter: str = ""
    limit: Expression | None = None
    source: str = ""


Statement: TypeAlias = Assign | If | Loop


def statements_of(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements and those inside them, in order."""
    for each in body:
        yield each
        if isinstance(each, If):
            yield from statements_of(each.then)
            yield from statements_of(each.other)
        elif isinstance(each, Loop):
            yield from statements_of(each.body)


def expressions_of(statement: Statement) -> Iterator[Expression]:
    """Yield what a statement itself evaluates, nothing of the statements inside it."""
    if isinstance(statement, Assign):
        yield statement.value
    elif isinstance(statement, If):
        yield statement.condition
    else:
        yield from (each for each in (statement.condition, statement.limit) if each is not None)


def rename(body: Sequence[Statement], names: Mapping[str, str]) -> None:
    """Give variables other names, in place."""

    def change(each: Expression) -> Expression:
        return Local(names.get(each.name, each.name)) if isinstance(each, Local) else each

    for each in statements_of(body):
        if isinstance(each, Assign):
            each.targets = tuple(names.get(name, name) for name in each.targets)
            each.value = rebuild(each.value, change)
        elif isinstance(each, If):
            each.condition = rebuild(each.condition, change)
            each.targets = tuple(names.get(name, name) for name in each.targets)
        else:
            each.carried = tuple(names.get(name, name) for name in each.carried)
            if each.condition is not None:
                each.condition = rebuild(each.condition, change)
            if each.limit is not None:
                each.limit = rebuild(each.limit, change)


@dataclass(slots=True)
class Layer:
    """A submodule.

    Attributes:
        kind: Its class, such as ``nn.Conv2d``.
        arguments: Arguments of the constructor by name.
        weights: Names of weights of the program by the names of its parameters and buffers.
        fixed: Parameters that do not train.
    """

    kind: str
    arguments: tuple[tuple[str, Expression], ...]
    weights: Mapping[str, str]
    fixed: tuple[str, ...] = ()


@dataclass
class TorchProgram:
    """A module of Python with its weights.

    Attributes:
        inputs: What it is given; their values are variables.
        outputs: Names of what it gives.
        results: What it gives.
        body: What it does.
        layers: Its submodules by name.
        stored: Weights, and constants, that are no layer's: their names in the module by name.
        weights: All weights by the names that they have in the program: those of the source.
        trained: Names of the weights that are parameters; the others are buffers.
        functions: Names of functions of :mod:`serde.torch.written.functions` that are called.
        hop: Whether control flow is written as higher-order operators.
        facts: What the description tells: ``source``, ``version``, ``description``, ``heads``,
            ``metadata``, and the ``ranges`` of dimensions by name.
        labels: Class labels, in order of the scores.
        version: Version of PyTorch that it is written for.
        path: Always None: it was not read from a file.
    """

    inputs: Sequence[Input]
    outputs: Sequence[str]
    results: Sequence[Expression] = ()
    body: list[Statement] = field(default_factory=list)
    layers: dict[str, Layer] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    weights: Mapping[str, Weight] = field(default_factory=dict)
    trained: frozenset[str] = frozenset()
    functions: Sequence[str] = ()
    hop: bool = False
    output_types: Sequence[TensorType | None] = ()
    facts: Mapping[str, AnyValue] = field(default_factory=dict)
    labels: Sequence[str] = ()
    version: str = ""
    path: Path | None = None

    def nodes(self) -> Iterator[CalledOperator]:
        """Yield what is called, in order."""
        for each in statements_of(self.body):
            value = each.value if isinstance(each, Assign) else None
            if isinstance(value, Submodule):
                yield CalledOperator(self.layers[value.name].kind, value.name)
            elif isinstance(value, (Apply, Method)):
                name = value.function if isinstance(value, Apply) else f"Tensor.{value.name}"
                yield CalledOperator(name, each.source)
            elif isinstance(value, Infix):
                yield CalledOperator(value.operator, each.source)


@dataclass(frozen=True, slots=True)
class CalledOperator:
    """What is called, and what the node is called that it was made of."""

    op: str
    name: str
