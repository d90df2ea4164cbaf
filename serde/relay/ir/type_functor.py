"""Visitors and mutators over types, with the methods that TVM's have."""

from __future__ import annotations

from typing import Any as AnyValue, Final

from serde.errors import RelayError
from serde.relay.ir.adt import Constructor, TypeData
from serde.relay.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    SequenceType,
    TensorType,
    TupleType,
    TypeCall,
    TypeRelation,
    TypeVar,
)

__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]

_METHODS: Final[dict[type[AnyValue], str]] = {
    FuncType: "visit_func_type",
    GlobalTypeVar: "visit_global_type_var",
    IncompleteType: "visit_incomplete_type",
    RefType: "visit_ref_type",
    SequenceType: "visit_sequence_type",
    TensorType: "visit_tensor_type",
    TupleType: "visit_tuple_type",
    TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
    TypeRelation: "visit_type_relation",
    TypeVar: "visit_type_var",
}


class TypeFunctor:
    """A function over types, told by cases."""

    def visit(self, typ: AnyValue) -> AnyValue:
        """Return what the method for this kind of type gives.

        Raises:
            RelayError: It is no type.
        """
        name = _METHODS.get(type(typ))
        if name is None:
            raise RelayError(f"expected a type, found {typ!r}")
        return getattr(self, name)(typ)

    def _undefined(self, typ: AnyValue) -> AnyValue:
        raise NotImplementedError(f"{type(self).__name__} has no {_METHODS[type(typ)]}")

    visit_func_type = visit_global_type_var = visit_incomplete_type = visit_ref_type = _undefined
    visit_sequence_type = visit_tensor_type = visit_tuple_type = visit_type_call = _undefined
    visit_type_data = visit_type_relation = visit_type_var = _undefined


class TypeVisitor(TypeFunctor):
    """Visits a type and all types inside it, for what its methods do on the way."""

    def visit_type_var(self, tv: TypeVar) -> None:
        """Visit a type parameter."""

    def visit_incomplete_type(self, it: IncompleteType) -> None:
        """Visit a type that inference is to find."""

    def visit_tensor_type(self, tt: TensorType) -> None:
        """Visit the type of a tensor."""

    def visit_sequence_type(self, st: SequenceType) -> None:
        """Visit the type of the elements."""
        self.visit(st.element)

    def visit_func_type(self, ft: FuncType) -> None:
        """Visit parameters, result, type parameters and constraints."""
        for each in (*ft.arg_types, ft.ret_type, *ft.type_params, *ft.type_constraints):
            self.visit(each)

    def visit_tuple_type(self, tt: TupleType) -> None:
        """Visit the fields."""
        for each in tt.fields:
            self.visit(each)

    def visit_type_relation(self, tr: TypeRelation) -> None:
        """Visit the types that are related."""
        for each in tr.args:
            self.visit(each)

    def visit_ref_type(self, rt: RefType) -> None:
        """Visit the content."""
        self.visit(rt.value)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> None:
        """Visit the name of an algebraic data type."""

    def visit_type_call(self, tc: TypeCall) -> None:
        """Visit the data type, and the types it takes."""
        self.visit(tc.func)
        for each in tc.args:
            self.visit(each)

    def visit_type_data(self, td: TypeData) -> None:
        """Visit the name, the type parameters and the fields of the constructors."""
        self.visit(td.header)
        for variable in td.type_vars:
            self.visit(variable)
        for constructor in td.constructors:
            self.visit(constructor.belong_to)
            for each in constructor.inputs:
                self.visit(each)


class TypeMutator(TypeFunctor):
    """Rebuilds a type from what its methods give for the types inside it."""

    def visit_type_var(self, tv: TypeVar) -> AnyValue:
        """Return the type parameter."""
        return tv

    def visit_incomplete_type(self, it: IncompleteType) -> AnyValue:
        """Return the type that inference is to find."""
        return it

    def visit_tensor_type(self, tt: TensorType) -> AnyValue:
        """Return the type of a tensor."""
        return tt

    def visit_sequence_type(self, st: SequenceType) -> AnyValue:
        """Return the sequence of what the elements' type becomes."""
        return SequenceType(self.visit(st.element))

    def visit_func_type(self, ft: FuncType) -> AnyValue:
        """Return the function of what its types become."""
        arguments = [self.visit(each) for each in ft.arg_types]
        result = self.visit(ft.ret_type)
        params = [self.visit(each) for each in ft.type_params]
        return FuncType(
            arguments, result, params, [self.visit(each) for each in ft.type_constraints]
        )

    def visit_tuple_type(self, tt: TupleType) -> AnyValue:
        """Return the tuple of what the fields become."""
        return TupleType([self.visit(each) for each in tt.fields])

    def visit_type_relation(self, tr: TypeRelation) -> AnyValue:
        """Return the relation of what its types become."""
        args = [self.visit(each) for each in tr.args]
        return TypeRelation(tr.func, args, tr.num_inputs, tr.attrs)

    def visit_ref_type(self, rt: RefType) -> AnyValue:
        """Return the reference to what the content becomes."""
        return RefType(self.visit(rt.value))

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> AnyValue:
        """Return the name of the data type."""
        return gtv

    def visit_type_call(self, tc: TypeCall) -> AnyValue:
        """Return the call of what the data type and its arguments become."""
        return TypeCall(self.visit(tc.func), [self.visit(each) for each in tc.args])

    def visit_type_data(self, td: TypeData) -> AnyValue:
        """Return the definition of what its types become, with constructors of its own."""
        header = self.visit(td.header)
        made = [
            Constructor(each.name_hint, map(self.visit, each.inputs), self.visit(each.belong_to))
            for each in td.constructors
        ]
        return TypeData(header, [self.visit(each) for each in td.type_vars], made)
