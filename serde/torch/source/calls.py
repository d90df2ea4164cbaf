"""Calls of functions, methods, modules and of what PyTorch and Python have; classes."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.torch.model import Ref
from serde.torch.names import APPLIED, is_free
from serde.torch.ops.table import DTYPE_CODES
from serde.torch.source.expressions import Expressions
from serde.torch.source.operators import BUILTINS, CASTS, dtype_of, name_of
from serde.torch.source.values import (
    Class,
    Frame,
    Function,
    Globals,
    Held,
    Instance,
    Items,
    Library,
    Live,
    Value,
    is_plain,
)

__all__ = ["LOADER_NAME", "RESULT", "Calls"]

LOADER_NAME: Final = "from_pretrained"
"""The class method that reads weights, which is known."""

RESULT: Final = "return"
"""What a function gives: a variable that has no name of Python's."""

MAX_CALLS: Final = 48
"""Most functions and modules inside each other."""

_LISTS: Final = ("ModuleList", "Sequential")
_CREATED: Final = frozenset(f"torch.{x}" for x in ("empty", "ones", "rand", "randn", "zeros"))
_TYPES: Final[Mapping[str, type]] = {
    "bool": bool, "float": float, "int": int, "str": str, "tuple": tuple,
}  # fmt: skip


class Calls(Expressions):
    """Reads calls."""

    run: Callable[[Sequence[ast.stmt]], None]
    iterable: Callable[[str, list[Value]], Value]
    list_of: Callable[[Items], Value]
    while_loop: Callable[[Value, Value, list[Value]], Value]
    _depth = 0

    # Functions, classes and modules.

    def call(self, function: Function, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
        """Return what a function gives."""
        outer, self.frame = self.frame, Frame(function.home, owner=function.owner)
        self.step()
        self._depth += 1
        if self._depth > MAX_CALLS:
            raise self.fault(f"at most {MAX_CALLS} calls inside each other")
        given = list(args) if function.this is None else [function.this, *args]
        bound = self._bind(function.definition, given, dict(named))
        self.frame.env.update({**function.closure, **bound, RESULT: None})
        self.frame.live = Live(frozenset([RESULT]))
        self.run(function.definition.body)
        found = self.frame.env[RESULT]
        self._depth -= 1
        self.frame = outer
        return found

    def _bind(
        self, definition: ast.FunctionDef, args: Sequence[Value], named: dict[str, Value]
    ) -> dict[str, Value]:
        """Return the parameters of a function."""
        own = definition.args
        if own.vararg or own.kwarg or own.posonlyargs or definition.decorator_list:
            raise self.fault("a function of plain parameters")
        plain, only = [x.arg for x in own.args], [x.arg for x in own.kwonlyargs]
        defaults = dict(zip(plain[::-1], own.defaults[::-1], strict=False))
        defaults |= {x: y for x, y in zip(only, own.kw_defaults, strict=True) if y is not None}
        found = dict(zip(plain, args, strict=False))
        for name in (*plain, *only):
            if name in named and name not in found:
                found[name] = named.pop(name)
            elif name not in found and name in defaults:
                found[name] = self.value(defaults[name])
            elif name not in found:
                raise self.fault(f"an argument {name!r} of {definition.name}")
        if named or len(args) > len(plain):
            raise self.fault(f"{len(plain)} arguments of {definition.name}, and no other")
        return found

    def define(self, node: ast.stmt, home: Globals) -> None:
        """Read a function or a class of a module."""
        self.frame = Frame(home)
        self.step(node)
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            home.names[node.name] = Function(node, home)
            return
        if not isinstance(node, ast.ClassDef) or node.decorator_list or node.keywords:
            raise self.fault("a class or a function without decorators")
        base = self.value(node.bases[0]) if len(node.bases) == 1 else None
        if base in [Library(f"torch.nn.{each}") for each in _LISTS]:
            base = self.modules.names[base.name.rpartition(".")[2]]
        if base != Library("torch.nn.Module") and not isinstance(base, Class):
            raise self.fault("a class of nn.Module, nn.Sequential or nn.ModuleList")
        methods = {x.name: x for x in node.body if isinstance(x, ast.FunctionDef)}
        for each in node.body:
            text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
            if not text and not isinstance(each, (ast.FunctionDef, ast.Pass)):
                raise home.unit.fault(each, "a method")
        for name, each in methods.items():
            if each.decorator_list and name != LOADER_NAME:
                raise home.unit.fault(each, "a method without decorators")
        base = base if isinstance(base, Class) else None
        home.names[node.name] = Class(node.name, home, base, methods)

    def construct(self, kind: Class, args: Sequence[Value], named: Mapping[str, Value]) -> Instance:
        """Return a new module."""
        made = Instance(kind)
        if self.nodes is not None:
            raise self.fault("modules that __init__ makes")
        function = kind.method("__init__", made)
        if function is not None:
            self.call(function, args, named)
        elif self.is_own(made, *_LISTS):
            self._fill(made, args if not named else [None])
        return made

    def _fill(self, made: Value, args: Sequence[Value]) -> None:
        """Put modules into a list of them."""
        items = args
        if len(args) == 1 and (self.is_own(made, "ModuleList") or isinstance(args[0], dict)):
            items = args[0]
        if isinstance(items, dict):
            for name, each in items.items():
                self.add_module(made, name, each)
        else:
            self._grow(made, "extend", [items])

    def _grow(self, owner: Value, name: str, args: list[Value]) -> None:
        """Add to a list of values, or to one of modules, where a module is constructed."""
        if name == "add_module" and isinstance(owner, Instance) and len(args) == 2:
            self.add_module(owner, *args)
            return
        items = args if name == "append" else args[0] if len(args) == 1 else None
        items = self.members(items) if isinstance(items, Instance) else items
        if len(args) != 1 or name == "add_module" or not isinstance(items, (list, tuple)):
            raise self.fault("a name and a module, or what a list grows by")
        self.step(count=len(items))
        if isinstance(owner, list):
            owner += items
            return
        start = len(self.members(owner))
        for place, each in enumerate(items, start):
            self.add_module(owner, str(place), each)

    def add_module(self, this: Instance, name: Value, module: Value) -> None:
        """Give a module one that is in it."""
        named = isinstance(name, str) and (name.isdigit() or is_free(name))
        if not named or name in this.attributes or not isinstance(module, Instance):
            raise self.fault("modules, with names that nothing else has, in a list of them")
        this.attributes[name] = module

    def is_own(self, module: Instance, *names: str) -> bool:
        """Whether a module is PyTorch's own of one of these names, or of a subclass."""
        kind: Class | None = module.kind
        while kind is not None and kind.home is not self.modules:
            kind = kind.base
        return kind is not None and kind.name in names

    def members(self, module: Instance) -> list[Value]:
        """Return the modules of a list of them."""
        if not self.is_own(module, *_LISTS):
            raise self.fault("nn.ModuleList or nn.Sequential")
        return [each for each in module.attributes.values() if isinstance(each, Instance)]

    def call_module(self, module: Instance, args: list[Value], named: dict[str, Value]) -> Value:
        """Return what a module gives."""
        if self.is_own(module, "Sequential") and module.kind.method("forward", module) is None:
            for each in self.members(module):
                args, named = [self.call_module(each, args, named)], {}
            return args[0] if len(args) == 1 else tuple(args)
        outer, self.scope = self.scope, module.path
        if self.is_own(module, "Applied"):
            name, given, options = module.attributes["call"]
            found = self._library(name, [*args, *given], {**options, **named})
        else:
            function = module.kind.method("forward", module)
            if function is None:
                raise self.fault("a module with a method forward")
            found = self.call(function, args, named)
        self.scope = outer
        return found

    # Calls.

    def _read_call(self, node: ast.Call) -> Value:
        func = node.func
        if isinstance(func, ast.Attribute) and _is_super(func.value):
            return self._construct_base(func.attr, node)
        owner = self.value(func.value) if isinstance(func, ast.Attribute) else None
        if isinstance(func, ast.Attribute) and self._grows(owner, func.attr) and not node.keywords:
            self._grow(owner, func.attr, self.values(node.args))
            return None
        is_method = isinstance(owner, (Ref, Held))
        function = None if is_method else self.value(func)
        args = self.values(node.args)
        if any(each.arg is None for each in node.keywords):
            raise self.fault("arguments by name")
        named = {str(each.arg): self.value(each.value) for each in node.keywords}
        if isinstance(func, ast.Attribute) and is_method:
            return self._method(owner, func.attr, args, named)
        return self.apply(function, args, named)

    def _grows(self, owner: Value, name: str) -> bool:
        """Whether a method adds to a list, or a module to another."""
        if self.nodes is not None or name not in ("add_module", "append", "extend"):
            return False
        return isinstance(owner, list) or (
            isinstance(owner, Instance) and owner.kind.method(name, owner) is None
        )

    def _construct_base(self, name: str, node: ast.Call) -> None:
        owner, this = self.frame.owner, self.frame.env.get("self")
        known = name == "__init__" and isinstance(this, Instance) and self.nodes is None
        if not known or owner is None or node.keywords:
            raise self.fault("super().__init__() in a constructor")
        function = None if owner.base is None else owner.base.method("__init__", this)
        if function is not None:
            self.call(function, self.values(node.args), {})
        elif node.args:
            self._fill(this, self.values(node.args))

    def _method(self, x: Value, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        """Return what a method of a tensor, or of a list, gives."""
        if name == "requires_grad_" and isinstance(x, Held):
            return x
        if name.startswith("__"):
            raise self.fault("a method of a tensor or a list")
        if name in CASTS and not args and not named:
            return self.emit("aten::to", x, dtype_of(CASTS[name]))
        return self.emit("prim::tolist" if name == "tolist" else f"aten::{name}", x, *args, **named)

    def apply(self, function: Value, args: list[Value], named: dict[str, Value]) -> Value:
        """Return what a value gives that is called."""
        if isinstance(function, Function):
            return self.call(function, args, named)
        if isinstance(function, Class):
            return self.construct(function, args, named)
        if isinstance(function, Instance):
            return self.call_module(function, args, named)
        if not isinstance(function, Library):
            raise self.fault("a call of a function, a method or a module")
        if function.name.startswith("builtins."):
            return self._builtin(function.name[9:], args, named)
        return self._library(function.name, args, named)

    def _library(self, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        """Return what a function of PyTorch's gives, or a module of PyTorch's."""
        home, _, own = name.rpartition(".")
        if home == "torch.nn":
            return self._layer(own, args, named)
        known = self.modules.names.get(f"torch_{own}" if home == "torch" else own)
        if home in ("torch", "torch.nn.functional") and isinstance(known, Function):
            return self.call(known, args, named)
        if name in _CREATED and self.nodes is None:
            return self._created(args, named)
        if name == "torch.cond" and len(args) == 4:
            one, two = (lambda x=x: self.apply(x, self._items(args[3]), {}) for x in args[1:3])
            return self.either(args[0], one, two)
        if name == "torch.while_loop" and len(args) == 3:
            return self.while_loop(args[0], args[1], self._items(args[2]))
        if name == "collections.OrderedDict" and len(args) == 1 and not named:
            pairs = [self._items(each) for each in self._items(args[0])]
            if all(len(each) == 2 and isinstance(each[0], str) for each in pairs):
                return dict(pairs)
        if home == "math" and not named and all(isinstance(x, (int, float)) for x in args):
            function: AnyValue = getattr(math, own, None)
            return self.compute(function, *args)
        op = name_of(name)
        if op is None:
            raise self.fault("a function of torch, F or math, or a layer of nn")
        return self._pool(op, args, named) if "max_pool" in op else self.emit(op, *args, **named)

    def _pool(self, op: str, args: list[Value], named: dict[str, Value]) -> Value:
        """Return the greatest elements, or a tuple of them and their places."""
        both = named.pop("return_indices", False) is True
        if op.startswith("aten::adaptive"):
            found = self.emit(op, *args, **named)
            return found if both else self.emit("aten::__getitem__", found, [0], kinds="v")
        return self.emit(f"{op}_with_indices" if both else op, *args, **named)

    def _items(self, value: Value) -> list[Value]:
        if not isinstance(value, (tuple, list)):
            raise self.fault("a tuple of tensors")
        return list(value)

    def _layer(self, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        """Return a new module of PyTorch's, or a parameter."""
        if name == "Parameter" and self.nodes is None and args and isinstance(args[0], Held):
            args[0].is_state = True
            return args[0]
        names = self.modules.names
        if name in APPLIED and isinstance(names["Applied"], Class):
            named.pop("inplace", None)
            if args and isinstance(args[-1], bool) and not re.search("Pool|Upsample", name):
                args.pop()  # In place.
            call = f"torch.nn.functional.{APPLIED[name]}", args, named
            return Instance(names["Applied"], {"call": call})
        kind = names.get(re.sub("[123]d$", "Nd", name))
        if not isinstance(kind, Class):
            raise self.fault("a layer of nn that is known")
        ranks = [int(name[-2])] if kind.name.endswith("Nd") else []
        return self.construct(kind, [*ranks, *args], named)

    def _builtin(self, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        op, function = BUILTINS[name]
        if named or not args:
            raise self.fault(f"arguments of {name}() by their places")
        if name in ("enumerate", "range", "zip"):
            return self.iterable(name, args)
        if name == "getattr" and self.frame.home.unit.is_own:
            return Library(f"{args[0].name}.{args[1]}")
        if name == "isinstance" and len(args) == 2:
            kinds = args[1] if isinstance(args[1], tuple) else (args[1],)
            found = [_TYPES.get(getattr(x, "name", "").removeprefix("builtins.")) for x in kinds]
            return any(x is not None and isinstance(args[0], x) for x in found)
        first = self.members(args[0]) if isinstance(args[0], Instance) else args[0]
        if len(args) == 1 and isinstance(first, (tuple, list, range)) and name != "sum":
            if name == "list":
                return self.make_list(list(first))
            if name in ("len", "tuple"):
                return len(first) if name == "len" else tuple(first)
        if isinstance(first, Items):
            return self.list_of(first)
        if is_plain(args):
            return self.compute(function, *args)
        if not op:
            raise self.fault(f"values of {name}() that are known")
        if name in ("max", "min") and len(args) > 2:
            args = [first, self._builtin(name, args[1:], {})]
        return self.emit(op, *args)

    def _created(self, args: list[Value], named: Mapping[str, Value]) -> Held:
        """Return a new tensor, whose values the state dictionary gives."""
        shape = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        code = named.get("dtype", "float32")
        if named.keys() - {"dtype"} or not all(isinstance(x, int) and x >= 0 for x in shape):
            raise self.fault("a tensor of known lengths")
        return Held(tuple(shape), DTYPE_CODES[code] if isinstance(code, int) else str(code))


def _is_super(node: ast.expr) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args
    return is_call and node.func.id == "super"  # type: ignore[attr-defined]
