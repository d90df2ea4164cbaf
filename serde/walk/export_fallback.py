"""What is written for operators that a format's own converters do not know, or a user converts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core.report import Issue, Report
from serde.errors import (
    ConverterBug,
    FormatError,
    OptionError,
    RelayError,
    TypeInferenceError,
    Unsupported,
)
from serde.relay.ir import OpDef, RelayModel, TensorType, TupleType, Type, carried, get, rewrite
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, Tuple, TupleGetItem, is_absent
from serde.relay.ir.foreign import ARGUMENTS, FOREIGN, PIVOT_FRAMEWORK, Foreign, Input, is_foreign
from serde.relay.ir.leaves import leaves, value_types
from serde.walk.user_converters import UserConverter

if TYPE_CHECKING:
    from serde.bridge.options import ExportOptions

__all__ = ["ExportFallback", "hold_for_user"]


class ExportFallback:
    """What a conversion out of Relay does with operators that the format's writer does not know.

    Args:
        format_name: Name of the format.
        converters: Functions of the user's.
        custom_ops: Operators of other frameworks that become custom ones, by name.
    """

    def __init__(
        self,
        format_name: str = "",
        converters: Sequence[UserConverter] = (),
        custom_ops: Collection[str] = (),
    ) -> None:
        self.format_name = format_name
        self._converters = {
            each.name: each for each in converters if each.is_for("written", format_name)
        }
        self._custom = frozenset(custom_ops)

    @classmethod
    def of(cls, format_name: str, options: ExportOptions) -> ExportFallback:
        """Return what the options of writing a format ask for."""
        return cls(format_name, options.converters, options.custom_ops)

    def converter(self, node: Foreign) -> UserConverter | None:
        """Return the user's function for an operator that was kept, or held for it."""
        names = node.names if node.framework == PIVOT_FRAMEWORK else (*node.names, FOREIGN)
        return next((self._converters[n] for n in names if n in self._converters), None)

    def require_consent(self, node: Foreign, report: Report, where: str) -> None:
        """Refuse an operator of another framework that the user did not name.

        Raises:
            Unsupported: It is one.
        """
        if node.framework == self.format_name:
            return
        if self._custom.isdisjoint(node.names) and node.framework == PIVOT_FRAMEWORK:
            raise Unsupported(
                "kept whole for a function of the user's, and there is none",
                hint=f"give one: converters={{{node.name!r}: function}}",
            )
        if self._custom.isdisjoint(node.names):
            raise Unsupported(
                f"{node.full_name}: an operator of {node.framework} that Relay does not know",
                hint=f"write it as a custom operator: custom_ops=[{node.full_name!r}] or "
                f"--custom-ops {node.full_name}",
            )
        what = f"written as a custom operator, which {node.framework} does not run"
        report.fallbacks.append(Issue(node.full_name, where, what))

    def run(
        self,
        own: UserConverter,
        ctx: AnyValue,
        call: Call,
        operands: Sequence[AnyValue],
        where: str,
    ) -> AnyValue:
        """Return what a user's function writes for a call.

        Args:
            own: The function.
            ctx: What it may reach.
            call: The call of ``serde.foreign``.
            operands: Values of the operands.
            where: Name of the node, for messages.

        Raises:
            OptionError: The function does not fit the call, fails, or gives something else.
            Unsupported: It says that it cannot.
        """
        given, attrs = _arguments(own, call, operands)
        converter = own.converter
        bound, faults = converter.bind(attrs, lambda raw, _hint: raw)
        faults += _arity_faults(converter.required, converter.accepted, len(given))
        if faults:
            raise OptionError(f"{own.where}: node {where}: {'; '.join(faults)}")
        try:
            result = converter.run(ctx, given, bound)
        except Unsupported as error:
            raise Unsupported(f"{own.where}: {error.reason}", hint=error.hint) from error
        except (OptionError, FormatError, OSError):
            raise
        except Exception as error:
            raise OptionError(
                f"{own.where}: node {where}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(result, GeneratorType):
            _check_results(own, where, result, call.type)
        return result


def _arity_faults(required: int, accepted: int | None, count: int) -> list[str]:
    if count < required or (accepted is not None and count > accepted):
        takes = f"at least {required}" if accepted is None else f"{required} to {accepted}"
        takes = str(required) if required == accepted else takes
        return [f"takes {takes} tensors, the node has {count}"]
    return []


def _arguments(
    own: UserConverter, call: Call, operands: Sequence[AnyValue]
) -> tuple[list[AnyValue], dict[str, AnyValue]]:
    """Return the operands and attributes that a user's function gets for a call."""
    node = Foreign.of(call)
    if own.name == FOREIGN:
        known = own.converter.attributes
        attrs = {n: v for n, v in call.attrs.items() if n in known or own.converter.takes_rest}
        return [tuple(operands)], attrs
    if node.framework != PIVOT_FRAMEWORK:
        return node.arrange(operands), node.plain_attributes
    attrs = dict(node.attributes)
    given = attrs.pop(ARGUMENTS, tuple(map(Input, range(len(operands)))))
    body = call.attrs["body"]
    if body is None:
        attrs = _without_defaults(own, get(node.name), attrs)
    else:
        known = own.converter.attributes
        attrs = {n: v for n, v in {**attrs, "body": body}.items() if n in known}
    return [_operand(each, operands) for each in given], attrs


def _without_defaults(
    own: UserConverter, definition: OpDef, attrs: Mapping[str, AnyValue]
) -> dict[str, AnyValue]:
    """Return the attributes that a function takes, and those that have not their default."""
    known = own.converter.attributes
    kept = dict(definition.bind(attrs))
    return {
        name: value
        for name, value in kept.items()
        if name in known or value != definition.attributes[name].default
    }


def _operand(given: AnyValue, operands: Sequence[AnyValue]) -> AnyValue:
    if isinstance(given, tuple):
        return tuple(_operand(each, operands) for each in given)
    return None if given is None else operands[given.index]


def _check_results(own: UserConverter, where: str, result: AnyValue, type_: Type | None) -> None:
    """Refuse what is no value, or not as many as the node has results."""
    found = list(leaves(result)) if isinstance(result, tuple) else [result]
    if isinstance(result, list):
        found = list(result)
    count = len(value_types(type_))
    wrong = [each for each in found if not (hasattr(each, "type") and hasattr(each, "data"))]
    if wrong or len(found) != count:
        what = f"{wrong[0]!r:.100}" if wrong else f"{len(found)} values"
        raise OptionError(
            f"{own.where}: node {where}: expected {count} value{'s' if count > 1 else ''} that "
            f"ctx gives, found {what}"
        )


def hold_for_user(
    model: RelayModel, converters: Sequence[UserConverter], format_name: str, report: Report
) -> RelayModel:
    """Return the model with the calls that a user's functions write as ``serde.foreign``.

    So they come through all passes as they are. A call of a function with a ``Composite`` of that
    name keeps its body.

    Args:
        model: A model with types.
        converters: The functions.
        format_name: Name of the format that is written.
        report: Gets what is held, and calls that cannot be.
    """
    own = {each.name: each for each in converters if each.is_for("written", format_name)}
    own.pop(FOREIGN, None)
    if not own:
        return model
    holder = _Holder(own, model, report)
    functions = {v: holder.function(f) for v, f in model.mod.functions.items()}
    unused = sorted(set(own) - holder.used)
    if unused:
        report.notes.append(f"no node is an operator of converters that write: {', '.join(unused)}")
    if all(functions[v] is f for v, f in model.mod.functions.items()):
        return model
    return model.evolve(mod=model.mod.with_functions(functions))


class _Holder:
    """Replaces calls by calls of ``serde.foreign``."""

    def __init__(self, own: Mapping[str, UserConverter], model: RelayModel, report: Report) -> None:
        self._own = own
        self._globals = {each.name_hint: body for each, body in model.mod.functions.items()}
        self._report = report
        self.used: set[str] = set()

    def function(self, function: Function) -> Function:
        """Return a function with its calls held."""
        if "Composite" in function.attrs and function.attrs["Composite"] in self._own:
            return function
        found = rewrite(function, lambda _node, new: self._held(new))
        return found if isinstance(found, Function) else function

    def _held(self, node: Expr) -> Expr:
        if not isinstance(node, Call):
            return node
        if is_foreign(node):
            self.used.update(Foreign.of(node).names)
            return node
        if isinstance(node.op, OpDef):
            build: Callable[[Call], Call] = self._of_operator
            name = node.op.name
        else:
            callee: Expr | None = node.op
            if isinstance(callee, GlobalVar):
                callee = self._globals.get(callee.name_hint)
            if not isinstance(callee, Function):
                return node
            name = str(callee.attrs.get("Composite", ""))
            build = partial(self._of_function, name=name, body=callee)
        if name not in self._own:
            return node
        self.used.add(name)
        where = node.span.source_name if node.span is not None else name
        try:
            held = build(node)
        except RelayError as error:
            self._report.add(name, where, f"{self._own[name].where}: {error}")
            return node
        issue = Issue(name, where or name, f"written by {self._own[name].where}")
        self._report.fallbacks.append(issue)
        if isinstance(node.type, TupleType) and len(node.type.fields) == 1:
            return Tuple((held,))
        return held

    def _of_operator(self, node: Call) -> Call:
        definition = node.op
        if not isinstance(definition, OpDef):
            raise ConverterBug(f"{node!r} calls no operator")
        if carried(node):
            raise TypeInferenceError("an operator with a body cannot be left to a function")
        inputs: list[Expr] = []
        arguments: list[AnyValue] = []
        for operand, argument in zip(definition.operands, node.args, strict=True):
            if operand.optional and is_absent(argument):
                arguments.append(None)
            elif operand.variadic:
                fields = _fields(argument)
                start = len(inputs)
                arguments.append(tuple(Input(start + index) for index in range(len(fields))))
                inputs += fields
            else:
                arguments.append(Input(len(inputs)))
                inputs.append(argument)
        attributes = {**node.attrs, ARGUMENTS: tuple(arguments)}
        return _build(node, definition.name, attributes, inputs)

    def _of_function(self, node: Call, name: str, body: Function) -> Call:
        attributes = {
            key: value
            for key, value in body.attrs.items()
            if isinstance(value, (str, int, float, tuple, list))
        }
        return _build(node, name, attributes, list(node.args), body=body)


def _fields(argument: Expr) -> list[Expr]:
    if isinstance(argument, Tuple):
        return list(argument.fields)
    if not isinstance(argument.type, TupleType):
        raise TypeInferenceError(f"expected a tuple, found {argument.type!r}")
    return [TupleGetItem(argument, index) for index in range(len(argument.type.fields))]


def _build(
    node: Call,
    name: str,
    attributes: Mapping[str, AnyValue],
    inputs: Sequence[Expr],
    **further: AnyValue,
) -> Call:
    fields = node.type.fields if isinstance(node.type, TupleType) else (node.type,)
    results = [each for each in fields if isinstance(each, TensorType)]
    if len(results) < len(fields):
        raise TypeInferenceError(f"expected tensors as results, found {node.type!r}")
    if any(not isinstance(each.type, TensorType) for each in inputs):
        raise TypeInferenceError("expected tensors as operands")
    held = Foreign(
        framework=PIVOT_FRAMEWORK, name=name, attributes=dict(attributes), results=tuple(results)
    )
    return held.build(inputs, node.span, **further)
