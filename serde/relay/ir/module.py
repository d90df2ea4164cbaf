"""Modules: named functions with an entry called ``main``, and which of them call which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir import hooks
from serde.relay.ir.adt import Constructor, TypeData
from serde.relay.ir.bodies import all_nodes, call_others
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar
from serde.relay.ir.types import GlobalTypeVar
from serde.relay.ir.unique_names import UniqueNames
from serde.relay.ir.visit import free_vars

__all__ = ["Callees", "IRModule", "callees_first", "find_callees", "recursive_functions"]


class IRModule:
    """Functions by name; ``main`` is the entry.

    Passes make new modules; only its own methods change one.

    Args:
        functions: Functions by :class:`GlobalVar` or by name.
        type_definitions: Definitions of data types by the variable that names them.
        attrs: Free facts about the module.
        checked: Whether type inference has passed over all of it; its text then shows types.

    Raises:
        RelayError: Two functions have one name.
    """

    __slots__ = ("_imported", "_names", "attrs", "checked", "functions", "type_definitions")

    def __init__(
        self,
        functions: Mapping[GlobalVar, Function] | Mapping[str, Function] | None = None,
        type_definitions: Mapping[GlobalTypeVar, TypeData] | None = None,
        attrs: Mapping[str, AnyValue] | None = None,
        *,
        checked: bool = False,
    ) -> None:
        self.functions: dict[GlobalVar, Function] = {}
        self.type_definitions: dict[GlobalTypeVar, TypeData] = dict(type_definitions or {})
        self.attrs: dict[str, AnyValue] = dict(attrs or {})
        self._names: dict[str, GlobalVar] = {}
        self._imported: set[str] = set()
        for key, function in (functions or {}).items():
            self._add(GlobalVar(key, function.type) if isinstance(key, str) else key, function)
        self.checked = checked

    @classmethod
    def from_expr(
        cls,
        expr: Expr,
        functions: Mapping[GlobalVar, Function] | None = None,
        type_defs: Mapping[GlobalTypeVar, TypeData] | None = None,
    ) -> IRModule:
        """Return a module whose ``main`` is `expr`.

        An expression that is not a function becomes the body of one whose
        parameters are its free variables, in order of appearance. A function
        whose attribute ``global_symbol`` names it has that name instead, and
        where `functions` has a ``main``, the new one is ``main_1``, as in TVM.
        """
        mod = cls(functions, type_defs)
        name = expr.attrs.get("global_symbol") if isinstance(expr, Function) else None
        mod[str(name or UniqueNames(mod._names).reserve("main"))] = expr
        return mod

    def get_global_var(self, name: str) -> GlobalVar:
        """Return the variable of the function called `name`.

        Raises:
            RelayError: There is no such function.
        """
        if name in self._names:
            return self._names[name]
        known = ", ".join(sorted(self._names)) or "none"
        raise RelayError(f"no function is called {name} (there are: {known})")

    def get_global_vars(self) -> list[GlobalVar]:
        """Return the variables of all functions."""
        return list(self.functions)

    def with_functions(
        self, functions: Mapping[GlobalVar, Function], *, checked: bool | None = None
    ) -> IRModule:
        """Return a module with these functions and the definitions and attributes of this one."""
        known = self.checked if checked is None else checked
        mod = IRModule(functions, self.type_definitions, self.attrs, checked=known)
        mod._imported = set(self._imported)
        return mod

    def with_main(self, main: Function, *, checked: bool | None = None) -> IRModule:
        """Return a module with another ``main``; see :meth:`with_functions`."""
        old = self["main"]
        functions = {v: main if f is old else f for v, f in self.functions.items()}
        return self.with_functions(functions, checked=checked)

    def shallow_copy(self) -> IRModule:
        """Return a module of the same functions, which may be written by itself."""
        return self.with_functions(self.functions)

    def __getitem__(self, name: str | GlobalVar) -> Function:
        if isinstance(name, str):
            return self.functions[self.get_global_var(name)]
        if name not in self.functions:
            raise RelayError(f"@{name.name_hint} names no function of the module")
        return self.functions[name]

    def __setitem__(self, name: str | GlobalVar | GlobalTypeVar, value: Expr | TypeData) -> None:
        """Set a function or the definition of a data type.

        An expression becomes the body of a function, another name its function.

        Raises:
            RelayError: Another variable of this name stands for a function, or a constructor of
                this name belongs to another type.
        """
        if isinstance(value, TypeData):
            self._define_type(value)
            return
        if isinstance(name, GlobalTypeVar):
            raise RelayError(f"{name.name_hint} names a type; expected a TypeData, found {value!r}")
        if isinstance(value, GlobalVar):
            value = self[value]
        elif not isinstance(value, Function):
            value = Function(free_vars(value), value)
        if isinstance(name, str):
            name = self._names.get(name) or GlobalVar(name, value.type)
        self.update_func(name, value)

    def _define_type(self, data: TypeData) -> None:
        others = (each for head, each in self.type_definitions.items() if head != data.header)
        taken = {constructor.name_hint for each in others for constructor in each.constructors}
        for constructor in data.constructors:
            if constructor.name_hint in taken:
                raise RelayError(f"two constructors are called {constructor.name_hint}")
        self.type_definitions[data.header] = data

    def functions_items(self) -> list[tuple[GlobalVar, Function]]:
        """Return the variables of all functions and these, by name."""
        return sorted(self.functions.items(), key=lambda item: item[0].name_hint)

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """Return the variable of the data type called `name`.

        Raises:
            RelayError: There is no such type.
        """
        for header in self.type_definitions:
            if header.name_hint == name:
                return header
        raise RelayError(f"no type is called {name}")

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        """Return the variables of all data types."""
        return list(self.type_definitions)

    def get_type(self, name: str) -> tuple[AnyValue, ...]:
        """Return the variable of a data type, and its constructors.

        Raises:
            RelayError: There is no such type.
        """
        header = self.get_global_type_var(name)
        return (header, *self.type_definitions[header].constructors)

    def get_constructor(self, adt: str | int, cons: str | None = None) -> Constructor:
        """Return a constructor by the names of its type and of itself, or by its tag alone.

        Raises:
            RelayError: There is no such type, or no such constructor.
        """
        known = [each for data in self.type_definitions.values() for each in data.constructors]
        for constructor in known if cons is None else self.get_type(str(adt))[1:]:
            if (constructor.tag == adt) if cons is None else (constructor.name_hint == cons):
                return constructor
        raise RelayError(f"{adt} has no constructor {cons}" if cons else f"no tag is {adt}")

    def import_from_std(self, file_name: str) -> None:
        """Add what a text of :mod:`serde.relay.tvm.standard` defines, such as ``"prelude.rly"``.

        A text that was added before is not added again.

        Raises:
            RelayError: There is no such text, or a name is taken.
        """
        if file_name not in self._imported:
            hooks.standard().import_into(self, file_name)
            self._imported.add(file_name)

    def update_standard(self, standard: IRModule, file_name: str) -> None:
        """Add all of a module that holds the definitions of a standard text.

        Raises:
            RelayError: A name is taken.
        """
        known = self.checked or not self.functions
        for data in standard.type_definitions.values():
            self._define_type(data)
        for variable, function in standard.functions.items():
            self._add(variable, function)
        self.checked = standard.checked and known
        self._imported.add(file_name)

    def update_func(self, var: GlobalVar, func: Function) -> None:
        """Set the function that `var` names.

        Raises:
            RelayError: Another variable of this name stands for a function.
        """
        if var not in self.functions:
            self._add(var, func)
        self.functions[var] = func
        self.checked = False

    def update(self, other: IRModule | Mapping[AnyValue, Function]) -> None:
        """Set all functions and type definitions of another module.

        Its calls of functions that have a name in this module call those of that name here.
        """
        mod = other if isinstance(other, IRModule) else IRModule(other)
        names = {
            variable: self._names[variable.name_hint]
            for variable in mod.functions
            if self._names.get(variable.name_hint, variable) is not variable
        }
        self.type_definitions.update(mod.type_definitions)
        for variable, function in mod.functions.items():
            named = call_others(function, names) if names else function
            self.update_func(names.get(variable, variable), named)

    def _add(self, variable: GlobalVar, function: Function) -> None:
        if variable.name_hint in self._names:
            raise RelayError(f"two functions are called {variable.name_hint}")
        self._names[variable.name_hint] = variable
        self.functions[variable] = function

    def with_attr(self, attr_key: str, attr_value: AnyValue) -> IRModule:
        """Return a module with an attribute set."""
        return self.with_attrs({attr_key: attr_value})

    def with_attrs(self, attr_map: Mapping[str, AnyValue]) -> IRModule:
        """Return a module with these attributes beside or instead of those of this one."""
        attrs = {**self.attrs, **attr_map}
        return IRModule(self.functions, self.type_definitions, attrs, checked=self.checked)

    def without_attr(self, attr_key: str) -> IRModule:
        """Return a module without an attribute."""
        attrs = {key: value for key, value in self.attrs.items() if key != attr_key}
        return IRModule(self.functions, self.type_definitions, attrs, checked=self.checked)

    def get_attr(self, attr_key: str) -> AnyValue:
        """Return an attribute, or None without it."""
        return self.attrs.get(attr_key)

    def __contains__(self, name: object) -> bool:
        return name in (self._names if isinstance(name, str) else self.functions)

    def _repr_html_(self) -> str:
        """Return the text for a notebook, the beginning of a long one."""
        found: str = hooks.highlighting().module_html(self)
        return found

    def astext(
        self,
        show_meta_data: bool = True,
        annotate: Callable[[Expr], str] | None = None,
        *,
        strict: bool = False,
    ) -> str:
        """Return the module's text.

        Args:
            show_meta_data: Whether constants that do not print inline follow at the end.
            annotate: Gives what follows each node in the text, instead of a comment with its type.
            strict: Whether the text is legal for TVM 0.18; otherwise it is serde's dialect,
                with named dimensions, extension calls and exact floats.
        """
        printer = hooks.printer()
        text: str = printer.print_module(
            self, show_meta_data=show_meta_data, strict=strict, annotate=annotate
        )
        return text

    def __str__(self) -> str:
        return self.astext(show_meta_data=False)

    def __repr__(self) -> str:
        return f"IRModule({', '.join(sorted(v.name_hint for v in self.functions))})"


Callees = Mapping[GlobalVar, Sequence[GlobalVar]]
"""The functions that each function of a module calls, or holds as values."""


def find_callees(mod: IRModule) -> Callees:
    """Return what each function calls or names, in order of appearance."""
    names = {variable.name_hint: variable for variable in mod.functions}
    calls: dict[GlobalVar, list[GlobalVar]] = {}
    for variable, function in mod.functions.items():
        used = (node.op if isinstance(node, Call) else node for node in all_nodes(function))
        found = (names.get(u.name_hint) for u in used if isinstance(u, GlobalVar))
        calls[variable] = [callee for callee in found if callee is not None]
    return calls


def callees_first(calls: Callees) -> list[GlobalVar]:
    """Return the functions, each behind those it calls but for recursion."""
    order: list[GlobalVar] = []
    seen: set[GlobalVar] = set()
    for root in calls:
        stack: list[tuple[GlobalVar, Iterator[GlobalVar]]] = []
        if root not in seen:
            seen.add(root)
            stack.append((root, iter(calls[root])))
        while stack:
            variable, pending = stack[-1]
            callee = next((each for each in pending if each not in seen), None)
            if callee is None:
                order.append(variable)
                stack.pop()
            else:
                seen.add(callee)
                stack.append((callee, iter(calls[callee])))
    return order


def recursive_functions(calls: Callees, order: Sequence[GlobalVar]) -> set[GlobalVar]:
    """Return the functions on a cycle of calls (Kosaraju's second walk, callers backwards).

    Args:
        calls: Who calls whom.
        order: The functions, as :func:`callees_first` gives them.
    """
    callers: dict[GlobalVar, list[GlobalVar]] = {variable: [] for variable in calls}
    for variable, callees in calls.items():
        for callee in callees:
            callers[callee].append(variable)
    component: dict[GlobalVar, GlobalVar] = {}
    for root in reversed(order):
        pending = [root]
        while pending:
            variable = pending.pop()
            if variable not in component:
                component[variable] = root
                pending.extend(callers[variable])
    sizes: dict[GlobalVar, int] = {}
    for root in component.values():
        sizes[root] = sizes.get(root, 0) + 1
    return {v for v in calls if sizes[component[v]] > 1 or v in calls[v]}
