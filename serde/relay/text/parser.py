"""Relay expressions and modules from text, in TVM's spelling and in serde's dialect.

The rules that nest are generators which hand each other to a loop, so that
the depth of Python's stack does not depend on the text. Nesting is bounded
all the same; lines are not.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import MAX_NESTING, pause_garbage_collection
from serde.errors import IllTypedError, RelayError, TypeInferenceError, VerifyError
from serde.relay.ir import Constructor, IRModule, Type, accepts, infer_function, infer_module
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, GlobalVar, Let, Tuple, Var
from serde.relay.ir.registry import OpDef, find
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import children, free_vars
from serde.relay.text.composite import raise_composites
from serde.relay.text.data_parser import REFERENCE_WORDS, Step
from serde.relay.text.enclosed_parser import EnclosedParser
from serde.relay.text.lexer import Lexer, Token
from serde.relay.text.metadata import AttributeObject
from serde.relay.text.names import MODULE_KEY, NAMES_KEY, PLAIN_KEY, TYPES_KEY, decode_pairs
from serde.relay.text.steps import run_steps
from serde.relay.text.value_parser import NUMERIC, WORDS

__all__ = ["fromtext", "parse", "parse_attributes", "parse_expr", "read_attribute"]

_INFIX: Final = {
    "*": (12, "multiply"),
    "/": (12, "divide"),
    "+": (10, "add"),
    "-": (10, "subtract"),
    "<": (8, "less"),
    "<=": (8, "less_equal"),
    ">": (8, "greater"),
    ">=": (8, "greater_equal"),
    "==": (7, "equal"),
    "!=": (7, "not_equal"),
}
_WORDS: Final = frozenset({"if", "fn", "match", *REFERENCE_WORDS})
_OBJECT: Final = "meta[...]"
"""Key under which attributes that came as one object wait for their operator."""


@pause_garbage_collection()
def fromtext(
    text: str,
    name: str = "<text>",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Sequence[AnyValue]] | None = None,
) -> IRModule:
    """Return the module that `text` holds, with its types inferred.

    Reads what TVM up to 0.19 printed and both of serde's spellings.

    Args:
        text: Text of version 0.0.5.
        name: What errors call it, such as a file's name.
        init_module: Functions and types that the text may name; the module has them, too.
        init_meta_table: Objects that ``meta[key][index]`` may name, after those of the text.

    Raises:
        ParseError: The text does not parse, or holds what the pivot lacks.
        IllTypedError: Its operators do not fit their operands.
    """
    parser = _Parser(text, name, init_module)
    parser.add_metadata(init_meta_table or {})
    try:
        checked, _ = infer_module(parser.module())
        verify(checked, types=False)
        raised = raise_composites(checked, read_attribute)
        return raised if raised is checked else infer_module(raised)[0]
    except (TypeInferenceError, VerifyError) as error:
        raise parser.located(error) from None


parse = fromtext


def parse_expr(
    text: str, *, name: str = "<text>", infer: bool = False, init_module: IRModule | None = None
) -> Expr:
    """Return the one expression that `text` holds, such as ``fn (%x: float32) { exp(%x) }``.

    Args:
        text: The expression.
        name: What errors call it.
        infer: Whether its types are inferred.
        init_module: Functions and types that the text may name.

    Raises:
        ParseError: The text does not parse, or holds what the pivot lacks.
        IllTypedError: Its operators do not fit their operands, or a type cannot be inferred.
    """
    parser = _Parser(text, name, init_module)
    expr = parser.single_expression()
    if infer:
        try:
            infer_function(Function(free_vars(expr), expr))
        except TypeInferenceError as error:
            raise parser.located(error) from None
    return expr


def read_attribute(text: str) -> dict[str, AnyValue]:
    """Return one attribute, which may be a function that carries its original names."""
    name, _, value = text.partition("=")
    is_function = value.startswith("fn ")
    return {name: parse_expr(value, infer=True)} if is_function else parse_attributes(text)


def parse_attributes(text: str) -> dict[str, AnyValue]:
    """Return the attributes in a text such as ``axis=1, mode="linear"``.

    Raises:
        ParseError: The text does not parse.
    """
    return _Parser(text, "attributes").attribute_list()


class _Parser(EnclosedParser):
    def __init__(self, text: str, name: str, init: IRModule | None = None) -> None:
        super().__init__(Lexer(text, name))
        self._name = name
        self._graph: dict[str, Expr] = {}
        self._globals: dict[str, GlobalVar] = {}
        self._used: dict[str, Token] = {}
        self._places: dict[Expr, int] = {}
        self._declared: list[tuple[str, Var]] = []
        self._functions: list[Function | None] = []
        self._plain: dict[OpDef, Attrs] = {}
        self._depth = 0
        self._module: dict[str, AnyValue] = {}
        self._init = init if init is not None else IRModule()
        self._types.update(self._init.type_definitions)
        for header, data in self._init.type_definitions.items():
            self._type_names[header.name_hint] = header
            self._constructors.update({each.name_hint: each for each in data.constructors})
        self._globals.update({each.name_hint: each for each in self._init.functions})

    def module(self) -> IRModule:
        """Read definitions to the end of the text."""
        self._lexer.header(required=True)
        functions: dict[GlobalVar, Function] = dict(self._init.functions)
        defined: set[GlobalVar] = set()
        while self._lexer.peek().kind != "end":
            if self._next_is("type") or self._next_is("extern"):
                self._define_type()
                continue
            self._expect("def")
            token = self._expect_kind("global", "a function's name such as @main")
            variable = self._global(token)
            if variable in defined:
                raise self._fail(f"{token.text} is defined twice", token)
            defined.add(variable)
            self._start_definition()
            functions[variable] = run_steps(self._function(token))
            self._restore(functions[variable], token, variable)
        known = {variable.name_hint for variable in functions}
        for name, token in self._used.items():
            if self._globals[name] not in functions:
                raise self._fail(f"{token.text} is not defined", token)
        if len(known) != len(functions):
            raise self._fail("two functions have the same name")
        self._refuse_undefined_types()
        return IRModule(functions, self._types, self._module)

    def single_expression(self) -> Expr:
        """Read one expression, or the name of an operator, to the end of the text."""
        self._lexer.header(required=False)
        self._start_definition()
        token = self._lexer.peek()
        if token.kind == "ident" and self._lexer.peek(1).kind == "end":
            definition = find(token.text)
            if definition is not None:
                return definition
        expr: Expr = run_steps(self._sequence())
        self._expect_end()
        self._refuse_undefined_types()
        if isinstance(expr, Function):
            self._restore(expr, token, None)
        return expr

    def attribute_list(self) -> dict[str, AnyValue]:
        """Read ``key=value`` pairs to the end of the text."""
        values: dict[str, AnyValue] = {}
        while self._lexer.peek().kind != "end":
            run_steps(self._key_value(values))
            if not self._accept(","):
                break
        self._expect_end()
        return values

    def located(self, error: RelayError) -> IllTypedError:
        """Return `error` with the place of the expression that it is about, or of what has it."""
        node, position = error.node, 0
        if isinstance(node, Expr) and node not in self._places:
            node = next((user for user in self._places if node in children(user)), None)
        if isinstance(node, Expr):
            position = self._places[node]
        line, column = self._lexer.place(position)
        return IllTypedError(str(error), line=line, column=column, name=self._name)

    def _expect_end(self) -> None:
        if self._lexer.peek().kind != "end":
            raise self._expectation_error("the end of the text")

    def _start_definition(self) -> None:
        self._declared = []
        self._functions = []
        self._scopes = [{}]

    def _restore(self, function: Function, token: Token, variable: GlobalVar | None) -> None:
        """Apply, and take away, the attributes that carry original names and types."""
        try:
            function.attrs.pop(PLAIN_KEY, None)
            names = decode_pairs(str(function.attrs.pop(NAMES_KEY, "=")))
            types = decode_pairs(str(function.attrs.pop(TYPES_KEY, "=")))
        except ValueError as error:
            raise self._fail(str(error), token) from None
        if variable is not None and MODULE_KEY in function.attrs:
            self._module.update(self._module_attributes(function, token))
        if variable is not None and token.text in names:
            variable.name_hint = names[token.text]
        for printed, declared in self._declared:
            if printed in names:
                declared.name_hint = names[printed]
            if printed in types:
                type_ = self._carried_type(types[printed], declared.type_annotation, token)
                declared.type_annotation = declared.type = type_
        for number, each in enumerate(self._functions):
            carried = types.get(f"->{number}")
            if each is not None and carried:
                each.ret_type = self._carried_type(carried, each.ret_type, token)
            if each is not None and types != {"": ""}:
                each.type = each.declared_type

    def _module_attributes(self, function: Function, token: Token) -> dict[str, AnyValue]:
        try:
            texts = decode_pairs(str(function.attrs.pop(MODULE_KEY)))
            return {name: parse_attributes(f"v={text}")["v"] for name, text in texts.items()}
        except (ValueError, RelayError) as error:
            raise self._fail(f"{MODULE_KEY}: {error}", token) from None

    def _carried_type(self, text: str, shown: Type | None, token: Token) -> Type:
        inner = _Parser(text, f"{self._name}: type {text[:60]!r}")
        type_ = inner.type(0)
        if inner._lexer.peek().kind != "end":
            raise inner._expectation_error("the end of the type")
        if shown is None or not accepts(shown, type_):
            raise self._fail(f"{TYPES_KEY} says {type_!r} where the text says {shown!r}", token)
        return type_

    # Names.

    def _global(self, token: Token) -> GlobalVar:
        name = token.text[1:]
        if name not in self._globals:
            self._globals[name] = GlobalVar(name)
        return self._globals[name]

    def _declare(self, token: Token, type_: Type | None) -> Var:
        name = token.text[1:]
        variable = Var(name, type_)
        self._scopes[-1][name] = variable
        self._declared.append((name, variable))
        return variable

    def _definition(self) -> Var:
        """Read ``%name`` with its type, if one is given."""
        token = self._expect_kind("local", "a variable such as %x")
        if self._accept("{"):  # The device of a variable, which is not kept.
            run_steps(self._key_value({}))
            self._expect("}")
        return self._declare(token, self.type_annotation() if self._accept(":") else None)

    def _lookup(self, token: Token) -> Expr:
        if token.kind == "graph":
            found: Expr | None = self._graph.get(token.text)
        elif token.kind == "global":
            self._used.setdefault(token.text[1:], token)
            return self._global(token)
        else:
            name = token.text[1:]
            found = next((s[name] for s in reversed(self._scopes) if name in s), None)
        if found is None:
            raise self._fail(f"{token.text[:60]} is not defined here", token)
        return found

    # Functions and bodies.

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._fail(f"expressions are nested deeper than {MAX_NESTING}")

    def _leave(self) -> None:
        self._depth -= 1

    def _function(self, start: Token) -> Step:
        """Parse what follows ``fn``: parameters, attributes, result type and body."""
        self._type_vars.append({})
        type_params = self._type_params()
        number = len(self._functions)
        self._functions.append(None)
        self._expect("(")
        self._scopes.append({})
        params: list[Var] = []
        attrs: dict[str, AnyValue] = {}
        while not self._accept(")"):
            if self._lexer.peek().kind == "local" and not attrs:
                params.append(self._parameter())
            else:
                yield self._key_value(attrs)
            if not self._next_is(")"):
                self._expect(",")
        attrs.pop("virtual_device", None)
        result = self.type_annotation() if self._accept("->") else None
        body = yield self._block()
        self._scopes.pop()
        self._type_vars.pop()
        try:
            function = Function(params, body, result, type_params, attrs)
        except RelayError as error:
            raise self._fail(str(error), start) from None
        self._functions[number] = function
        self._places[function] = start.position
        return function

    def _parameter(self) -> Var:
        token = self._lexer.peek()
        if token.text[1:] in self._scopes[-1]:
            raise self._fail(f"two parameters are called {token.text}", token)
        return self._definition()

    def _block(self) -> Step:
        self._expect("{")
        self._enter()
        self._scopes.append({})
        body = yield self._sequence()
        self._scopes.pop()
        self._depth -= 1
        self._expect("}")
        return body

    def _sequence(self) -> Step:
        """Read bindings, then the value; lets become nested from the last one back."""
        lets: list[tuple[Var, Expr, Token]] = []
        while True:
            token = self._lexer.peek()
            if self._accept("let"):
                variable = self._definition()
                self._expect("=")
                lets.append((variable, (yield self._expr()), token))
            elif self._accept("free_var"):
                self._definition()
            elif token.kind == "graph" and self._next_is("=", 1):
                self._lexer.take()
                self._lexer.take()
                self._graph[token.text] = yield self._expr()
            else:
                value = yield self._expr()
                if not self._accept(";"):
                    break
                lets.append((Var(""), value, token))
                continue
            self._expect(";")
        for variable, bound, start in reversed(lets):
            value = self._note_position(Let(variable, bound, value), start)
        return value

    def _note_position(self, node: Expr, token: Token) -> Expr:
        """Return a node, having noted where it stands."""
        self._places[node] = token.position
        return node

    # Expressions.

    def _expr(self) -> Step:
        """Read operands joined by infix operators, which bind to the left."""
        values: list[Expr] = [(yield from self._postfix())]
        waiting: list[Token] = []
        while True:
            token = self._lexer.peek()
            binds = _INFIX.get(token.text, (0, ""))[0] if token.kind == "punct" else 0
            while waiting and _INFIX[waiting[-1].text][0] >= binds:
                right, left = values.pop(), values.pop()
                operator = waiting.pop()
                values.append(self._infix(operator, left, right))
            if not binds:
                return values[0]
            waiting.append(self._lexer.take())
            values.append((yield from self._postfix()))

    def _infix(self, token: Token, left: Expr, right: Expr) -> Expr:
        name = _INFIX[token.text][1]
        definition = find(name)
        if definition is None:
            raise self._fail(f"no Relay operator is called {name}", token)
        return self._operator_call(definition, token, [left, right], {})

    def _postfix(self) -> Step:
        """Read an atom, one projection, and calls."""
        token = self._lexer.peek()
        if token.kind == "ident" and token.text in self._constructors:
            value: Expr = self._constructors[self._lexer.take().text]
        elif self._names_callee(token):
            value = yield from self._named_call()
        else:
            value = yield from self._atom()
        if self._accept("."):
            value = self._note_position(self._projection(value), token)
        while self._next_is("("):
            place = self._lexer.peek()
            args, attrs = yield from self._arguments()
            if attrs:
                raise self._fail(f"{value!r} takes no attributes", place)
            value = self._note_position(Call(value, args), token)
        if isinstance(value, Constructor) and not value.inputs:
            return self._note_position(Call(value, ()), token)
        return value

    def _names_callee(self, token: Token) -> bool:
        """Whether the name of an operator comes next, with operands."""
        word = token.text in WORDS or token.text in NUMERIC or token.text in _WORDS
        return token.kind == "ident" and not word and self._next_is("(", 1)

    def _atom(self) -> Step:
        token = self._lexer.take()
        if token.kind in ("local", "graph", "global"):
            return self._lookup(token)
        if token.kind == "number" or token.text == "-" or token.text in NUMERIC:
            return self._literal(token)
        if token.kind == "ident":
            return (yield from self._word(token))
        if token.kind == "punct" and token.text == "(":
            return (yield from self._parenthesis(token))
        if token.kind == "punct" and token.text == "{":
            self._enter()
            self._scopes.append({})
            value = yield self._sequence()
            self._scopes.pop()
            self._depth -= 1
            self._expect("}")
            return value
        self._raise_unexpected(token, "an expression")

    def _word(self, token: Token) -> Step:
        if token.text in ("True", "False"):
            return Constant(np.array(token.text == "True"))
        if token.text == "fn":
            self._enter()
            function = yield self._function(token)
            self._depth -= 1
            return function
        if token.text == "if":
            return self._note_position((yield from self._if()), token)
        if token.text == "match":
            return self._note_position((yield from self._match()), token)
        if token.text in REFERENCE_WORDS:
            return self._note_position((yield from self._reference(token)), token)
        if token.text == "meta":
            value = self._meta(token)
            if not isinstance(value, Constant):
                raise self._fail("expected an expression, found another kind of object", token)
            return value
        if find(token.text) is not None:
            raise self._fail(f"the operator {token.text} is not called", token)
        raise self._fail(f"no Relay operator is called {token.text[:60]}", token)

    # Calls and attributes.

    def _named_call(self) -> Step:
        token = self._lexer.take()
        definition = find(token.text)
        if definition is None:
            if token.text in ("meta",):
                raise self._fail("expected [ after meta")
            raise self._fail(f"no Relay operator is called {token.text[:60]}", token)
        args, attrs = yield from self._arguments()
        return self._operator_call(definition, token, args, attrs)

    def _arguments(self) -> Generator[AnyValue, AnyValue, tuple[list[Expr], dict[str, AnyValue]]]:
        """Parse operands and attributes in parentheses."""
        args: list[Expr] = []
        attrs: dict[str, AnyValue] = {}
        self._expect("(")
        self._enter()
        while not self._accept(")"):
            simple = self._simple()
            token = self._lexer.peek()
            if simple is not None:
                args.append(simple)
            elif token.kind == "ident" and self._next_is("=", 1):
                yield self._key_value(attrs)
            elif token.kind == "ident" and token.text == "meta" and self._next_is("[", 1):
                value = self._meta(self._lexer.take())
                if isinstance(value, AttributeObject):
                    attrs[_OBJECT] = value
                elif isinstance(value, Constant):
                    args.append(value)
                else:
                    raise self._fail("expected a constant or attributes", token)
            else:
                args.append((yield self._expr()))
            if not self._next_is(")"):
                self._expect(",")
        self._depth -= 1
        return args, attrs

    def _operator_call(
        self, definition: OpDef, token: Token, args: list[Expr], attrs: dict[str, AnyValue]
    ) -> Call:
        """Return a call, its absent trailing operands filled in and its attributes converted."""
        attrs.pop("attrs_type_key", None)
        if _OBJECT in attrs:
            attrs.update(self._unpack(definition, token, attrs.pop(_OBJECT)))
        self._drop_repeated(definition, token, args, attrs)
        while len(args) < len(definition.operands) and definition.operands[len(args)].optional:
            args.append(Tuple(()))
        if len(args) != len(definition.operands):
            raise self._fail(
                f"{definition.name}: expected {len(definition.operands)} operands, "
                f"found {len(args)}",
                token,
            )
        try:
            if attrs:
                bound = definition.bind(attrs)
            else:
                known = self._plain.get(definition)
                bound = self._plain[definition] = known or definition.bind({})
        except TypeInferenceError as error:
            raise self._fail(str(error), token) from None
        call = Call(definition, args, bound)
        self._places[call] = token.position
        return call
