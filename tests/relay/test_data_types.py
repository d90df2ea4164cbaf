"""Types of algebraic data, matches, references and polymorphic functions, written out."""

from __future__ import annotations

from functools import cache

import pytest

import serde.relay as relay
from serde.errors import IllTypedError, RelayError, TypeInferenceError
from serde.relay.ir.infer import infer_match, infer_reference
from serde.relay.ir.types import accepts, join_types
from serde.relay.text.parser import parse_expr

HEADER = '#[version = "0.0.5"]\n'
LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
OPTION = "type Option[A] { Some(A), None, }\n"
EITHER = "type Either[A, B] { Left(A), Right(B), }\n"
NAT = "type nat { zero, succ(nat), }\n"
TREE = "type Tree[A] { Leaf, Node(Tree[A], A, Tree[A]), }\n"
T = "Tensor[(2, 3), float32]"


@cache
def prelude() -> relay.IRModule:
    mod = relay.IRModule()
    mod.import_from_std("prelude.rly")
    return mod


def types_of(text: str) -> dict[str, str]:
    mod = relay.fromtext(HEADER + text)
    relay.verify(mod)
    return {variable.name_hint: repr(variable.type) for variable in mod.functions}


def body_type(text: str, types: str = LIST) -> str:
    """The type of an expression of `%x`, `%i` and `%c`, beside standard definitions."""
    mod = prelude()
    extra = "" if types == LIST else types
    whole = relay.fromtext(
        f"{HEADER}{extra}def @main(%x: {T}, %i: int32, %c: bool) {{ {text} }}", "x", mod
    )
    relay.verify(whole)
    return repr(whole["main"].body.type)


EXPRESSIONS = [
    ("Cons(%x, Nil)", f"List[{T}]"),
    ("Cons(%i, Cons(1, Nil))", "List[int32]"),
    ("Cons(Cons(%i, Nil), Nil)", "List[List[int32]]"),
    ("Cons(Nil, Cons(Cons(%x, Nil), Nil))", f"List[List[{T}]]"),
    ("Cons((%x, %i), Nil)", f"List[({T}, int32)]"),
    ("Some(%x)", f"Option[{T}]"),
    ("Some((%i,))", "Option[(int32,)]"),
    ("Some(Nil)", "Option[List[_]]"),
    ("Nil", "List[_]"),
    ("None", "Option[_]"),
    ("if (%c) { Nil } else { Cons(%i, Nil) }", "List[int32]"),
    ("if (%c) { Some(%x) } else { None }", f"Option[{T}]"),
    ("let %l = Nil; Cons(%x, %l)", f"List[{T}]"),
    ("let %l: List[int32] = Nil; %l", "List[int32]"),
    ("let %l: List[_] = Cons(%i, Nil); %l", "List[int32]"),
    ("@hd(Cons(%x, Nil))", T),
    ("@tl(Cons(%x, Nil))", f"List[{T}]"),
    ("@nth(Cons(%x, Nil), %i)", T),
    ("@length(Nil)", "int32"),
    ("@update(Cons(%x, Nil), 0, exp(%x))", f"List[{T}]"),
    ("@map(fn (%y) { exp(%y) }, Cons(%x, Nil))", f"List[{T}]"),
    ("@map(fn (%y) { (%y, %i) }, Cons(%x, Nil))", f"List[({T}, int32)]"),
    ("@map(@length, Cons(Cons(%x, Nil), Nil))", "List[int32]"),
    ("@map(Some, Cons(%x, Nil))", f"List[Option[{T}]]"),
    ("@foldl(fn (%a, %b) { add(%a, %b) }, 0, Cons(%i, Nil))", "int32"),
    ("@foldr(Cons, Nil, Cons(%i, Nil))", "List[int32]"),
    ("@foldr1(fn (%a: int32, %b: int32) { %a + %b }, Cons(%i, Nil))", "int32"),
    ("@concat(Nil, Cons(%i, Nil))", "List[int32]"),
    ("@concat(Cons(%i, Nil), Nil)", "List[int32]"),
    ("@filter(fn (%y: int32) { less(%y, 3) }, Cons(%i, Nil))", "List[int32]"),
    ("@zip(Cons(%x, Nil), Cons(%i, Nil))", f"List[({T}, int32)]"),
    ("@rev(Cons(%x, Nil))", f"List[{T}]"),
    ("@sum(Cons(%i, Nil))", "int32"),
    ("@size(Rose(%x, Nil))", "int32"),
    ("Rose(%x, Cons(Rose(%x, Nil), Nil))", f"Tree[{T}]"),
    ("@tmap(fn (%y) { %i }, Rose(%x, Nil))", "Tree[int32]"),
    ("@compose(fn (%y) { (%y,) }, fn (%y: int32) { %x })", f"fn (int32) -> ({T},)"),
    ("@compose(fn (%y) { (%y,) }, fn (%y: int32) { %x })(%i)", f"({T},)"),
    ("@flip(Cons)(Nil, %i)", "List[int32]"),
    ("@id(%x)", T),
    ("@id(@id)(%i)", "int32"),
    ("(@id(%x), @id(%i))", f"({T}, int32)"),
    ("@iterate(fn (%y: int32) { %y + 1 }, 3)(%i)", "int32"),
    ("@unfoldr(fn (%n: int32) { if (%c) { None } else { Some((%n, %x)) } }, 3)", f"List[{T}]"),
    (
        "@map_accuml(fn (%a: int32, %b: float32) { (%a, %x) }, 0, Cons(1f, Nil))",
        f"(int32, List[{T}])",
    ),
    ("ref(%x)", f"ref({T})"),
    ("ref(ref(%i))", "ref(ref(int32))"),
    ("ref_read(ref(%x))", T),
    ("ref_write(ref(%x), %x)", "()"),
    ("let %r = ref(Nil); ref_write(%r, Cons(%i, Nil)); ref_read(%r)", "List[int32]"),
    ("let %r = ref(%i); fn () { ref_read(%r) }", "fn () -> int32"),
    ("match (%i) { %y => (%y, %y) }", "(int32, int32)"),
    ("match (%i) { _ => %x }", T),
    ("match ((%x, %i)) { (%a, %b) => (%b, %a) }", f"(int32, {T})"),
    ("match (Cons(%x, Nil)) { Cons(%y, _) => %y, Nil => %x }", T),
    ("match (Cons(%x, Nil)) { Cons(_, %r) => %r, Nil => Nil }", f"List[{T}]"),
    ("match? (Cons(%i, Nil)) { Cons(%a, Cons(%b, _)) => (%a, %b) }", "(int32, int32)"),
    ("match (Some(%x)) { Some(%y: _) => Some((%y, %i)), None => None }", f"Option[({T}, int32)]"),
    ("match (@zip(Cons(%x, Nil), Cons(%i, Nil))) { Cons((%a, %b), _) => %b, Nil => 0 }", "int32"),
    ("match (Nil) { Cons(%y, _) => %y, Nil => %i }", "int32"),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_type_of_an_expression(text: str, expected: str) -> None:
    assert body_type(text) == expected


@pytest.mark.wide
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(*each, marks=[pytest.mark.wide] if place % 4 else [])
        for place, each in enumerate(EXPRESSIONS)
    ],
)
def test_typed_text_reads_back(text: str, expected: str) -> None:
    mod = prelude()
    first = relay.fromtext(f"{HEADER}def @main(%x: {T}, %i: int32, %c: bool) {{ {text} }}", "", mod)
    again = relay.fromtext(first.astext())
    assert repr(again["main"].body.type) == expected
    assert relay.structural_equal(first, again)
    assert relay.structural_hash(first) == relay.structural_hash(again)
    assert again.astext() == first.astext()


@pytest.mark.wide
@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_untyped_text_is_typed_alike(text: str, expected: str) -> None:
    mod = prelude()
    source = f"{HEADER}def @main(%x: {T}, %i: int32, %c: bool) {{ {text} }}"
    typed = relay.fromtext(source, "", mod)
    bare = relay.IRModule(typed.functions, typed.type_definitions)
    again = relay.transform.InferType()(bare)
    assert repr(again["main"].body.type) == expected


FUNCTIONS = [
    (LIST + "def @f[A](%x: A) { Cons(%x, Nil) }", "f", "fn [A](A) -> List[A]"),
    (LIST + "def @f[A](%x: A) { Cons(Nil, Cons(Cons(%x, Nil), Nil)) }", "f",
     "fn [A](A) -> List[List[A]]"),
    (LIST + "def @f[A](%l: List[A]) { match (%l) { Cons(%x, %r) => @f(%r), Nil => 0 } }", "f",
     "fn [A](List[A]) -> int32"),
    (LIST + "def @f[A](%l: List[A], %o: A) { match (%l) { Cons(%x, %r) => %x, Nil => %o } }", "f",
     "fn [A](List[A], A) -> A"),
    (LIST + "def @f[A, B](%g: fn (A) -> B, %l: List[A]) {"
     " match (%l) { Cons(%x, %r) => Cons(%g(%x), @f(%g, %r)), Nil => Nil } }", "f",
     "fn [A, B](fn (A) -> B, List[A]) -> List[B]"),
    (EITHER + "def @f[A, B](%e: Either[A, B]) { match (%e) { Left(%a) => Right(%a),"
     " Right(%b) => Left(%b) } }", "f", "fn [A, B](Either[A, B]) -> Either[B, A]"),
    (EITHER + "def @f(%e: Either[int32, bool]) { match (%e) { Left(%a) => less(%a, 3),"
     " Right(%b) => %b } }", "f", "fn (Either[int32, bool]) -> bool"),
    (NAT + "def @f(%n: nat) { match (%n) { zero => 0, succ(%m) => 1 + @f(%m) } }", "f",
     "fn (nat[]) -> int32"),
    (NAT + "def @f(%n) { match (%n) { zero => zero, succ(%m) => %m } }", "f",
     "fn (nat[]) -> nat[]"),
    (NAT + "def @f(%n: int32) { if (%n == 0) { zero } else { succ(@f(%n - 1)) } }", "f",
     "fn (int32) -> nat[]"),
    (TREE + "def @f[A](%t: Tree[A]) { match (%t) { Leaf => 0,"
     " Node(%l, _, %r) => 1 + @f(%l) + @f(%r) } }", "f", "fn [A](Tree[A]) -> int32"),
    (TREE + "def @f[A](%t: Tree[A]) -> Tree[A] { match (%t) { Leaf => Leaf,"
     " Node(%l, %x, %r) => Node(@f(%r), %x, @f(%l)) } }", "f", "fn [A](Tree[A]) -> Tree[A]"),
    (LIST + OPTION + "def @f[A](%l: List[A]) { match (%l) { Cons(%x, Nil) => Some(%x),"
     " _ => None } }", "f", "fn [A](List[A]) -> Option[A]"),
    (LIST + "def @f(%l) { match (%l) { Cons(%x, _) => exp(%x), Nil => 1f } }", "f",
     "fn (List[float32]) -> float32"),
    ("def @f[A](%x: A) { (%x, %x) }\ndef @g(%x: int32) { @f(@f(%x)) }", "g",
     "fn (int32) -> ((int32, int32), (int32, int32))"),
    ("def @f[A](%x: A) -> A { %x }\ndef @g() { (@f(1), @f(True)) }", "g", "fn () -> (int32, bool)"),
    ("def @g() { (@f(1), @f(True)) }\ndef @f[A](%x: A) { %x }", "g", "fn () -> (int32, bool)"),
    ("def @f(%h: fn (int32) -> int32) { %h(1) }\ndef @id[A](%x: A) -> A { %x }\n"
     "def @g() { @f(@id) }", "g", "fn () -> int32"),
    ("def @f(%r: _) { ref_write(%r, 1); ref_read(%r) }", "f", "fn (ref(int32)) -> int32"),
    ("def @f[A](%r, %x: A) { ref_write(%r, %x) }", "f", "fn [A](ref(A), A) -> ()"),
    ("type Cell[A] { Cell(A) }\ndef @f(%c: Cell[Cell[int32]]) {"
     " match (%c) { Cell(Cell(%x)) => %x } }", "f", "fn (Cell[Cell[int32]]) -> int32"),
    ("type Fn[A] { Fn(fn (A) -> A) }\ndef @f[A](%g: Fn[A], %x: A) {"
     " match (%g) { Fn(%h) => %h(%h(%x)) } }", "f", "fn [A](Fn[A], A) -> A"),
    ("extern type Storage\ndef @f(%s: Storage) { %s }", "f", "fn (Storage[]) -> Storage[]"),
    (LIST + "def @f(%l: List[Tensor[(?, 2), float32]], %x: Tensor[(3, 2), float32]) {"
     " Cons(%x, %l) }", "f",
     "fn (List[Tensor[(?, 2), float32]], Tensor[(3, 2), float32])"
     " -> List[Tensor[(?, 2), float32]]"),
    (LIST + "def @f(%l: List[Tensor[(3), int8]], %m: List[Tensor[(?), int8]], %c: bool) {"
     " if (%c) { %l } else { %m } }", "f",
     "fn (List[Tensor[(3), int8]], List[Tensor[(?), int8]], bool) -> List[Tensor[(?), int8]]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "expected"), FUNCTIONS)
def test_type_of_a_function(text: str, name: str, expected: str) -> None:
    assert types_of(text)[name] == expected


ERRORS = [
    ("Cons(%x, %x)", "argument 1"),
    ("Cons(%x, Cons(%i, Nil))", "argument 1"),
    ("Cons(%x)", "expected 2 arguments"),
    ("@hd(%x)", "argument 0"),
    ("@nth(Cons(%x, Nil), %c)", "argument 1"),
    ("match (%i) { Cons(%y, _) => %y, Nil => 0 }", "is asked of int32"),
    ("match (Cons(%x, Nil)) { Some(%y) => %y, None => %x }", "pattern"),
    ("match ((%x, %i)) { (%a, %b, %c) => %a }", "is asked of"),
    ("match (Cons(%x, Nil)) { Cons(%y, _) => %y, Nil => %i }", "differ"),
    ("match (Cons(%x, Nil)) { Cons(%y, _) => %y }", r"no clause for Nil\(\)"),
    ("match (Cons(%x, Nil)) { Cons(_, Cons(_, _)) => 1, Nil => 0 }", r"no clause for Cons\(_, N"),
    ("match (Some(%x)) { None => %x }", r"no clause for Some\(_\)"),
    ("ref_read(%x)", "ref"),
    ("ref_write(ref(%x), %i)", "expected"),
    ("@id(Nil) + 1", "tensor"),
    ("let %y: List[int32] = Cons(%x, Nil); %y", "expected"),
    ("@map(%x, Nil)", "argument 0"),
    ("@compose(fn (%y: bool) { %y }, fn (%y: int32) { %y })", "argument"),
    ("let %l = @hd(Nil); 1", "has no type"),
    ("Nil(1)", "expected 0 arguments"),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_type_errors(text: str, message: str) -> None:
    with pytest.raises(IllTypedError, match=message):
        body_type(text)


def test_a_type_variable_is_no_other_type() -> None:
    for text in (
        "def @f[A](%x: A) -> int32 { %x }",
        "def @f[A](%x: A) { add(%x, 1) }",
        "def @f[A, B](%x: A) -> B { %x }",
        "def @f[A, B](%x: A, %y: B, %c: bool) { if (%c) { %x } else { %y } }",
    ):
        with pytest.raises(IllTypedError):
            types_of(text)


# Types as values.


A, B, C = (relay.TypeVar(name) for name in "ABC")
D = relay.TypeVar("D", relay.TypeKind.ShapeVar)
I32 = relay.TensorType((), "int32")
LISTS = relay.GlobalTypeVar("List")


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (relay.FuncType([A], A, [A]), relay.FuncType([B], B, [B]), True),
        (relay.FuncType([A, B], A, [A, B]), relay.FuncType([B, A], B, [B, A]), True),
        (relay.FuncType([A, B], A, [A, B]), relay.FuncType([A, B], B, [A, B]), False),
        (relay.FuncType([A], A, [A]), relay.FuncType([A], A), False),
        (relay.FuncType([A], A), relay.FuncType([B], B), False),
        (relay.FuncType([A], A, [A]), relay.FuncType([D], D, [D]), False),
        (relay.FuncType([A], LISTS(A), [A]), relay.FuncType([C], LISTS(C), [C]), True),
        (relay.FuncType([A], LISTS(A), [A]), relay.FuncType([C], C, [C]), False),
        (relay.FuncType([], A, [A]), relay.FuncType([], B, [B, C]), False),
        (
            relay.FuncType([relay.FuncType([B], A, [B])], A, [A]),
            relay.FuncType([relay.FuncType([A], C, [A])], C, [C]),
            True,
        ),
        (LISTS(I32), relay.GlobalTypeVar("List")(I32), True),
        (LISTS(I32), LISTS(A), False),
        (LISTS(), LISTS(), True),
        (A, A, True),
        (A, relay.TypeVar("A"), False),
        (relay.RefType(A), relay.RefType(A), True),
        (relay.RefType(A), relay.RefType(B), False),
        (relay.RefType(I32), I32, False),
        (relay.IncompleteType(), relay.IncompleteType(), True),
        (relay.GlobalTypeVar("x"), relay.GlobalTypeVar("y"), False),
    ],
)
def test_equality_of_types(left: relay.Type, right: relay.Type, same: bool) -> None:
    assert (left == right) is same
    assert relay.structural_equal(left, right) is same
    if same:
        assert hash(left) == hash(right)
        assert relay.structural_hash(left) == relay.structural_hash(right)


def test_free_type_variables_may_stand_for_each_other() -> None:
    left, right = relay.TupleType([A, B, A]), relay.TupleType([B, C, B])
    assert not relay.structural_equal(left, right)
    assert relay.structural_equal(left, right, map_free_vars=True)
    other = relay.TupleType([A, B, B])
    assert not relay.structural_equal(left, other, map_free_vars=True)


@pytest.mark.parametrize(
    ("left", "right", "fits", "joined"),
    [
        (LISTS(I32), LISTS(I32), True, LISTS(I32)),
        (LISTS(I32), LISTS(relay.TensorType((1,), "int32")), False, None),
        (
            LISTS(relay.TensorType((2,))), LISTS(relay.TensorType((relay.Any(),))),
            True, LISTS(relay.TensorType((relay.Any(),))),
        ),
        (LISTS(relay.IncompleteType()), LISTS(I32), True, None),
        (relay.FuncType([A], A, [A]), relay.FuncType([I32], I32), True,
         relay.FuncType([I32], I32)),
        (relay.FuncType([A], A, [A]), relay.FuncType([I32, I32], I32), False, None),
        (relay.RefType(I32), relay.RefType(I32), True, relay.RefType(I32)),
        (relay.RefType(I32), relay.RefType(relay.TensorType((), "bool")), False, None),
        (A, A, True, A),
        (A, B, False, None),
    ],
)  # fmt: skip
def test_what_accepts_what(
    left: relay.Type, right: relay.Type, fits: bool, joined: relay.Type | None
) -> None:
    assert accepts(left, right) is fits
    assert accepts(right, left) is fits
    assert join_types(left, right) == joined


def test_type_args_are_computed() -> None:
    mod = relay.fromtext(
        HEADER + "def @id[A](%x: A) -> A { %x }\ndef @main(%x: int32) { add(@id(%x), 2) }"
    )
    body = mod["main"].body
    assert isinstance(body, relay.Call)
    assert body.type_args == (I32, I32)
    inner = body.args[0]
    assert isinstance(inner, relay.Call)
    assert inner.type_args == (I32,)


def test_given_type_args_decide() -> None:
    mod = relay.IRModule()
    header, cons, nil = define_list(mod)
    mod["main"] = relay.Function([], relay.Call(nil, [], type_args=[I32]))
    found = relay.transform.InferType()(mod)
    assert found["main"].body.type == header(I32)
    mod["main"] = relay.Function([], cons(relay.const(True), relay.Call(nil, [], type_args=[I32])))
    with pytest.raises(TypeInferenceError):
        relay.transform.InferType()(mod)


def define_list(
    mod: relay.IRModule,
) -> tuple[relay.GlobalTypeVar, relay.Constructor, relay.Constructor]:
    header = relay.GlobalTypeVar("List")
    a = relay.TypeVar("a")
    cons = relay.Constructor("Cons", [a, header(a)], header)
    nil = relay.Constructor("Nil", [], header)
    mod[header] = relay.TypeData(header, [a], [cons, nil])
    return header, cons, nil


def test_definitions_type_constructors() -> None:
    mod = relay.IRModule()
    header, cons, nil = define_list(mod)
    assert cons.checked_type == relay.FuncType([A, header(A)], header(A), [A])
    assert nil.checked_type == relay.FuncType([], header(A), [A])
    assert cons.tag != nil.tag
    assert mod.get_type("List") == (header, cons, nil)
    assert mod.get_constructor("List", "Nil") is nil
    assert mod.get_constructor(cons.tag) is cons
    assert mod.get_global_type_var("List") is header
    assert mod.get_global_type_vars() == [header]
    for wrong in (("Lists", "Nil"), ("List", "Nill")):
        with pytest.raises(RelayError, match="no"):
            mod.get_constructor(*wrong)


def test_two_types_have_no_constructor_in_common() -> None:
    mod = relay.IRModule()
    define_list(mod)
    other = relay.GlobalTypeVar("Other")
    with pytest.raises(RelayError, match="two constructors are called Nil"):
        mod[other] = relay.TypeData(other, [], [relay.Constructor("Nil", [], other)])
    with pytest.raises(RelayError, match="names a type"):
        mod[other] = relay.const(1)


def test_a_constructor_without_definition_has_no_type() -> None:
    stray = relay.Constructor("Stray", [I32], relay.GlobalTypeVar("T"))
    mod = relay.IRModule.from_expr(stray(relay.const(1)))
    with pytest.raises(TypeInferenceError, match="no definition"):
        relay.transform.InferType()(mod)


def test_nodes_are_typed_where_they_are_built() -> None:
    x = relay.var("x", shape=(2,))
    r = relay.RefCreate(x)
    assert r.checked_type == relay.RefType(x.checked_type)
    assert relay.RefRead(r).checked_type == x.checked_type
    assert relay.RefWrite(r, x).checked_type == relay.TupleType([])
    with pytest.raises(TypeInferenceError, match="expected a reference"):
        infer_reference(relay.RefRead(x))
    with pytest.raises(TypeInferenceError, match="without clauses"):
        infer_match(relay.Match(x, []))


def test_arguments_are_what_tvm_takes() -> None:
    x = relay.Var("x", A)
    function = relay.Function([x], x, A, [A])
    assert function.type_params == (A,)
    assert function.checked_type == relay.FuncType([A], A, [A])
    with pytest.raises(RelayError, match="type variables"):
        relay.Function([x], x, A, {"Primitive": 1})  # type: ignore[arg-type]
    with pytest.raises(RelayError, match="clauses"):
        relay.Match(x, [x])  # type: ignore[list-item]


def test_parse_expr_takes_the_names_of_a_module() -> None:
    mod = relay.IRModule()
    mod.import_from_std("prelude.rly")
    found = parse_expr("@length(Cons(1, Nil))", init_module=mod, infer=True)
    assert isinstance(found, relay.Call)
    assert found.op is mod.get_global_var("length")
    assert found.checked_type == I32
