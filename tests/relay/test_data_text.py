"""Text, structure and walks of algebraic data, matches, references and type parameters."""

from __future__ import annotations

import pytest

import serde.relay as relay
from serde.errors import RelayError, TypeInferenceError, VerifyError
from serde.relay.analysis import check_kind, unmatched_cases, well_formed
from serde.relay.ir.visit import bound_vars, children, free_vars, post_order, rebuild, rewrite

HEADER = '#[version = "0.0.5"]\n'
FIRST = "def @main(%l: List[int32]) { match (%l) { Cons(%x, _) => %x, Nil => 0 } }"
LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"


def printed(text: str) -> str:
    typed = relay.fromtext(HEADER + text)
    mod = relay.IRModule(typed.functions, typed.type_definitions)
    return mod.astext().removeprefix(HEADER)


TEXTS = [
    LIST,
    "type Empty {\n}\n",
    "type Pair[A, B] {\n  Pair(A, B),\n}\n",
    "type Fn[A] {\n  Fn(fn (A) -> A),\n}\n",
    "type Box {\n  Box(Tensor[(2, ?), float32], (int32,), ref(bool)),\n}\n",
    LIST + "\ndef @main[A](%x: A) -> List[A] {\n  %0 = Nil;\n  Cons(%x, %0)\n}\n",
    LIST + "\ndef @main[A](%l: List[A]) -> int32 {\n  match (%l) {\n    Cons(_, %r: List[A]) => {\n"
    "      %0 = @main(%r);\n      add(1, %0)\n    },\n    Nil => {\n      0\n    },\n  }\n}\n",
    LIST
    + "\ndef @main(%l: List[int32]) -> int32 {\n  match? (%l) {\n    Cons(%x: int32, Nil) => {\n"
    "      %x\n    },\n  }\n}\n",
    "def @main(%x: (int32, bool)) -> (bool, int32) {\n  match (%x) {\n"
    "    (%a: int32, %b: bool) => {\n      (%b, %a)\n    },\n  }\n}\n",
    "def @main(%x: int32) -> int32 {\n  match (%x) {\n    _ => {\n"
    "      let %y: int32 = add(%x, 1);\n"
    "      %y\n    },\n  }\n}\n",
    "def @main(%x: int32) -> int32 {\n  let %r: ref(int32) = ref(%x);\n"
    "  let %u: () = ref_write(%r, 2);\n  ref_read(%r)\n}\n",
    "def @main[A, B](%f: fn (A) -> B, %x: A) -> B {\n  %f(%x)\n}\n",
    "def @main(%x: int32) -> int32 {\n  %0 = fn [A](%y: A) -> A {\n    %y\n  };\n  %0(%x)\n}\n",
    "def @main(%f: fn [A](A) -> A) -> (int32, bool) {\n"
    "  %0 = %f(1);\n  %1 = %f(True);\n  (%0, %1)\n}\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_its_own_print(text: str) -> None:
    mod = relay.fromtext(HEADER + text)
    bare = mod.astext(show_meta_data=False)
    assert len(bare.splitlines()) == len(text.splitlines())
    again = relay.fromtext(mod.astext())
    assert again.astext() == mod.astext()
    assert relay.structural_equal(again, mod)
    assert relay.structural_hash(again) == relay.structural_hash(mod)


@pytest.mark.parametrize("text", TEXTS)
def test_untyped_print_is_the_text(text: str) -> None:
    # Serial numbers and indents are TVM's; a let that binds nothing keeps its name.
    assert printed(text).replace(', serde.names="v="', "") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("type T { One }", "type T {\n  One,\n}\n"),
        ("type T[A] { One(A,), Two, }", "type T[A] {\n  One(A),\n  Two,\n}\n"),
        ("extern type T[A]", "type T[A] {\n}\n"),
        ("type T { One(int, float, uint) }", "type T {\n  One(int32, float32, uint32),\n}\n"),
        ("type B { B(A) } type A { A }", "type A {\n  A,\n}\n\ntype B {\n  B(A[]),\n}\n"),
    ],
)
def test_definitions_are_printed_alike(text: str, expected: str) -> None:
    assert printed(text) == expected


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("Nil", "Nil()", True),
        ("Cons(1, Nil)", "Cons(1, Nil())", True),
        ("match (Nil) { _ => 1 }", "match (Nil) { %x => 1 }", False),
        ("match (Nil) { _ => 1 }", "match? (Nil) { _ => 1 }", False),
        ("match (Cons(1, Nil)) { Cons(%a, _) => %a, Nil => 2 }",
         "match (Cons(1, Nil)) { Cons(%b, _) => %b, Nil => 2 }", True),
        ("match (Cons(1, Nil)) { Cons(%a, _) => %a, Nil => 2 }",
         "match (Cons(1, Nil)) { Nil => 2, Cons(%a, _) => %a }", False),
        ("match ((1, 2)) { (%a, %b) => %a }", "match ((1, 2)) { (%a, %b) => %b }", False),
        ("match ((1, 2)) { (%a, %b) => %a }", "match ((1, 2)) { (%b, %a) => %b }", True),
        ("match ((1, 2)) { (%a, _) => %a }", "match ((1, 2)) { (%a, %b) => %a }", False),
        ("ref(1)", "ref(2)", False),
        ("ref_read(ref(1))", "ref_read(ref(1))", True),
        ("ref_write(ref(1), 2)", "ref_write(ref(1), 3)", False),
        ("fn [A](%x: A) { %x }", "fn [B](%x: B) { %x }", True),
        ("fn [A, B](%x: A, %y: B) { %x }", "fn [A, B](%x: B, %y: A) { %x }", False),
        ("fn [A, B](%x: A, %y: B) { %x }", "fn [B, A](%x: B, %y: A) { %x }", True),
        ("fn [A](%x: A) { %x }", "fn (%x: int32) { %x }", False),
        ("fn [A](%f: fn (A) -> A) { %f }", "fn [B](%f: fn (B) -> B) { %f }", True),
    ],
)  # fmt: skip
def test_structural_equality(left: str, right: str, same: bool) -> None:
    one, two = (relay.fromtext(f"{HEADER}{LIST}def @main() {{ {text} }}") for text in (left, right))
    assert relay.structural_equal(one, two) is same
    assert relay.structural_equal(two, one) is same
    assert (relay.structural_hash(one) == relay.structural_hash(two)) is same


def test_definitions_count_in_equality() -> None:
    one, two, three = (
        relay.fromtext(HEADER + text)
        for text in ("type T { A, B }", "type T { B, A }", "type T { A, B(int32) }")
    )
    assert relay.structural_equal(one, relay.fromtext(one.astext()))
    for other in (two, three):
        assert one.type_definitions != other.type_definitions
        assert not relay.structural_equal(one, other)


# Walks.


def match_parts() -> tuple[relay.Match, relay.Var, relay.Var, relay.Var]:
    mod = relay.IRModule()
    mod.import_from_std("prelude.rly")
    _, cons, nil = mod.get_type("List")
    data, first, rest = (relay.Var(name) for name in ("data", "first", "rest"))
    lhs = relay.PatternConstructor(cons, [relay.PatternVar(first), relay.PatternVar(rest)])
    node = relay.Match(
        data,
        [relay.Clause(lhs, cons(first, rest)), relay.Clause(relay.PatternConstructor(nil), nil())],
    )
    return node, data, first, rest


def test_children_of_a_match() -> None:
    node, data, first, rest = match_parts()
    one, two = (clause.rhs for clause in node.clauses)
    assert children(node) == (data, first, rest, one, two)
    assert free_vars(node) == [data]
    assert bound_vars(post_order(node)) == {first, rest}


def test_a_match_is_rebuilt() -> None:
    node, data, first, rest = match_parts()
    assert rewrite(node, lambda _old, new: new) is node
    other = relay.Var("other")
    new = rebuild(node, [data, other, *children(node)[2:]])
    assert isinstance(new, relay.Match)
    assert new.clauses[0].variables == (other, rest)
    assert new.clauses[1].lhs is node.clauses[1].lhs
    assert new.complete is node.complete
    with pytest.raises(TypeError, match="only be replaced by a variable"):
        rebuild(node, [data, relay.const(1), *children(node)[2:]])
    assert first in node.clauses[0].variables


def test_visitors_and_mutators() -> None:
    node, data, *_ = match_parts()
    r = relay.RefCreate(data)
    whole = relay.Tuple([node, relay.RefRead(r), relay.RefWrite(r, data)])

    class Names(relay.ExprVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.met: list[str] = []

        def visit_constructor(self, con: relay.Constructor) -> None:
            self.met.append(con.name_hint)

        def visit_ref_read(self, ref: relay.RefRead) -> None:
            self.met.append("read")
            super().visit_ref_read(ref)

    names = Names()
    names.visit(whole)
    assert names.met == ["Cons", "Nil", "read"]
    assert relay.ExprMutator().visit(whole) is whole
    assert relay.MixedModeMutator().visit(whole) is whole

    class Swap(relay.ExprMutator):
        def visit_var(self, var: relay.Var) -> relay.Expr:
            return relay.const(3) if var is data else var

    swapped = Swap().visit(whole)
    assert isinstance(swapped.fields[0].data, relay.Constant)
    assert isinstance(swapped.fields[2].value, relay.Constant)
    for kind in ("match", "constructor", "ref_create", "ref_read", "ref_write"):
        with pytest.raises(NotImplementedError, match=f"visit_{kind}"):
            getattr(relay.ExprFunctor(), f"visit_{kind}")(
                {"match": node, "constructor": node.clauses[0].rhs.op, "ref_create": r,
                 "ref_read": whole.fields[1], "ref_write": whole.fields[2]}[kind]
            )  # fmt: skip


def test_bind_and_free_variables() -> None:
    node, data, first, _ = match_parts()
    bound = relay.bind(node, {data: relay.Var("other")})
    assert [each.name_hint for each in free_vars(bound)] == ["other"]
    with pytest.raises(RelayError, match="bound inside"):
        relay.bind(node, {first: relay.const(1)})


def test_well_formed() -> None:
    node, _, first, _ = match_parts()
    assert well_formed(node)
    twice = relay.Match(node, [relay.Clause(relay.PatternVar(first), first)])
    assert not well_formed(twice)
    assert not well_formed(relay.Tuple([relay.Let(first, relay.const(1), first), node]))


# Rules that verification checks.


def checked(text: str) -> relay.IRModule:
    mod = relay.fromtext(HEADER + text)
    relay.verify(mod)
    return mod


def test_verify_refuses() -> None:
    mod = checked(
        LIST + "def @main(%l: List[int32]) { match (%l) { Cons(%x, _) => %x, Nil => 0 } }"
    )
    node = mod["main"].body
    assert isinstance(node, relay.Match)
    variable = node.clauses[0].variables[0]

    def refuse(body: relay.Expr, message: str, types: relay.IRModule = mod) -> None:
        params = mod["main"].params
        other = relay.IRModule({"main": relay.Function(params, body)}, types.type_definitions)
        with pytest.raises(VerifyError, match=message):
            relay.verify(other)

    refuse(relay.Tuple([node, variable]), "outside what binds it")
    refuse(relay.Tuple([variable, node]), "never bound")
    refuse(node, "no such constructor", relay.IRModule())
    twice = relay.Clause(relay.PatternTuple([relay.PatternVar(variable)] * 2), variable)
    refuse(relay.Match(node.data, [twice]), "bound twice")
    cons = mod.get_constructor("List", "Cons")
    short = relay.Clause(relay.PatternConstructor(cons, []), relay.const(1))
    refuse(relay.Match(node.data, [short]), "other fields")


def test_verify_looks_at_types() -> None:
    mod = checked(
        LIST + "def @main(%l: List[int32]) { match (%l) { Cons(%x, _) => %x, Nil => 0 } }"
    )
    mod["main"].body.type = relay.TensorType((), "bool")
    with pytest.raises(VerifyError, match="noted as bool but is int32"):
        relay.verify(mod)


# Cases and kinds.


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("patterns", "missing"),
    [
        ([], ["_"]),
        (["_"], []),
        (["%x"], []),
        (["Nil"], ["Cons(_, _)"]),
        (["Cons(_, _)"], ["Nil()"]),
        (["Cons(_, Nil)"], ["Nil()", "Cons(_, Cons(_, _))"]),
        (["Cons(_, Nil)", "Nil"], ["Cons(_, Cons(_, _))"]),
        (["Cons(_, Nil)", "Nil", "Cons(_, Cons(_, _))"], []),
        (["Cons(Nil, Nil)", "Nil"],
         ["Cons(Nil(), Cons(_, _))", "Cons(Cons(_, _), Nil())", "Cons(Cons(_, _), Cons(_, _))"]),
        (["(Nil, _)"], ["(Cons(_, _), _)"]),
        (["(Nil, Nil)", "(Cons(_, _), _)"], ["(Nil(), Cons(_, _))"]),
        (["(_, Nil)", "(Nil, _)"], ["(Cons(_, _), Cons(_, _))"]),
        (["()"], []),
        (["(_,)"], []),
        (["((Nil,), %x)"], ["((Cons(_, _),), _)"]),
    ],
)  # fmt: skip
def test_unmatched_cases(patterns: list[str], missing: list[str]) -> None:
    mod = relay.IRModule()
    mod.import_from_std("prelude.rly")
    clauses = ", ".join(f"{pattern} => 1" for pattern in patterns)
    found = relay.parse_expr(f"free_var %v; match? (%v) {{ {clauses} }}", init_module=mod)
    assert isinstance(found, relay.Match)
    assert sorted(map(repr, unmatched_cases(found, mod))) == sorted(missing)
    assert sorted(map(repr, unmatched_cases(found))) == sorted(missing)


def test_cases_are_bounded() -> None:
    mod = relay.IRModule()
    header = relay.GlobalTypeVar("Wide")
    made = [relay.Constructor(f"C{index}", [], header) for index in range(60)]
    pair = relay.GlobalTypeVar("Many")
    many = relay.Constructor("Many", [header()] * 4, pair)
    mod[header] = relay.TypeData(header, [], made)
    mod[pair] = relay.TypeData(pair, [], [many])
    pattern = relay.PatternConstructor(many, [relay.PatternConstructor(made[0])] * 4)
    match = relay.Match(relay.Var("v"), [relay.Clause(pattern, relay.const(1))])
    with pytest.raises(RelayError, match="more than"):
        unmatched_cases(match, mod)


KINDS = relay.TypeKind
TENSOR = relay.TensorType((1, 2))


def variable(kind: relay.TypeKind) -> relay.TypeVar:
    return relay.TypeVar("t", kind)


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        *[(variable(kind), kind) for kind in KINDS],
        *[(relay.GlobalTypeVar("g", kind), kind) for kind in KINDS],
        (relay.IncompleteType(KINDS.ShapeVar), KINDS.ShapeVar),
        (TENSOR, KINDS.Type),
        (relay.TupleType([TENSOR, variable(KINDS.Type)]), KINDS.Type),
        (relay.RefType(relay.RefType(TENSOR)), KINDS.Type),
        (relay.FuncType([TENSOR], TENSOR), KINDS.Type),
        (relay.TypeRelation("same", [TENSOR, TENSOR], 1), KINDS.Constraint),
        (
            relay.FuncType([TENSOR], TENSOR, [], [relay.TypeRelation("same", [TENSOR], 1)]),
            KINDS.Type,
        ),
        (relay.TypeData(relay.GlobalTypeVar("g"), [variable(KINDS.Type)], []), KINDS.TypeData),
    ],
)
def test_kind_of_a_type(type_: relay.Type, kind: relay.TypeKind) -> None:
    assert check_kind(type_) == kind


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != KINDS.Type])
@pytest.mark.parametrize(
    "around",
    [
        lambda inner: relay.TupleType([TENSOR, inner]),
        lambda inner: relay.RefType(inner),
        lambda inner: relay.FuncType([inner], TENSOR),
        lambda inner: relay.FuncType([TENSOR], inner),
        lambda inner: relay.TypeRelation("same", [inner], 1),
        lambda inner: relay.TypeData(relay.GlobalTypeVar("g"), [inner], []),
        lambda inner: relay.TupleType([relay.FuncType([], relay.RefType(inner))]),
    ],
    ids=["tuple", "ref", "param", "result", "relation", "data", "deep"],
)
def test_only_types_stand_inside_types(around, kind: relay.TypeKind) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeInferenceError, match=f"expected the kind Type, not {kind.name}"):
        check_kind(around(variable(kind)))


def test_kinds_of_data_types() -> None:
    mod = relay.fromtext(HEADER + LIST)
    header = mod.get_global_type_var("List")
    assert check_kind(header(TENSOR), mod) == KINDS.Type
    assert check_kind(mod.type_definitions[header], mod) == KINDS.TypeData
    for type_, known, message in (
        (header(), mod, "expected 1 types"),
        (header(TENSOR, TENSOR), mod, "expected 1 types"),
        (header(variable(KINDS.ShapeVar)), mod, "expected the kind Type"),
        (header(TENSOR), None, "not defined"),
        (variable(KINDS.Type)(TENSOR), mod, "no algebraic data type"),
        (relay.GlobalTypeVar("v", KINDS.Type)(), mod, "expected the kind AdtHandle"),
    ):
        with pytest.raises(TypeInferenceError, match=message):
            check_kind(type_, known)
    stray = relay.Constructor("Stray", [], relay.GlobalTypeVar("Other"))
    with pytest.raises(TypeInferenceError, match="belongs to Other"):
        check_kind(relay.TypeData(header, [], [stray]), mod)
    with pytest.raises(RelayError, match="expected a kind of type"):
        relay.TypeVar("t", 3)


# Visitors over types.


ALL_TYPES = [
    relay.TypeVar("a"),
    relay.IncompleteType(),
    relay.TensorType([]),
    relay.FuncType([TENSOR], TENSOR, [relay.TypeVar("a")]),
    relay.FuncType([TENSOR], TENSOR, [], [relay.TypeRelation("same", [TENSOR], 1)]),
    relay.TupleType([relay.TupleType([])]),
    relay.TypeRelation("same", [TENSOR, relay.TypeVar("b")], 1),
    relay.RefType(relay.TupleType([])),
    relay.GlobalTypeVar("g"),
    relay.TypeCall(relay.GlobalTypeVar("g"), [TENSOR]),
    relay.SequenceType(TENSOR),
    relay.TypeData(relay.GlobalTypeVar("g"), [relay.TypeVar("a")], []),
    relay.fromtext(HEADER + LIST).type_definitions[relay.GlobalTypeVar("List")],
]


@pytest.mark.parametrize("type_", ALL_TYPES, ids=repr)
def test_type_functors(type_: relay.Type) -> None:
    with pytest.raises(NotImplementedError, match="visit_"):
        relay.TypeFunctor().visit(type_)
    relay.TypeVisitor().visit(type_)
    found = relay.TypeMutator().visit(type_)
    assert relay.structural_equal(found, type_)
    assert relay.structural_hash(found) == relay.structural_hash(type_)
    with pytest.raises(RelayError, match="expected a type"):
        relay.TypeFunctor().visit(3)


def test_a_type_mutator_replaces() -> None:
    class Half(relay.TypeMutator):
        def visit_tensor_type(self, tt: relay.TensorType) -> relay.TensorType:
            return relay.TensorType(tt.shape, "float16")

    a = relay.TypeVar("a")
    lists = relay.GlobalTypeVar("List")
    found = Half().visit(relay.FuncType([a, lists(TENSOR)], relay.RefType(TENSOR), [a]))
    half = relay.TensorType((1, 2), "float16")
    assert found == relay.FuncType([a, lists(half)], relay.RefType(half), [a])


@pytest.mark.parametrize("strict", [False, True])
def test_the_text_of_the_prelude_reads_back(strict: bool) -> None:
    prelude = relay.prelude.Prelude()
    mod = relay.transform.InferType()(prelude.mod)
    again = relay.fromtext(mod.astext(strict=strict))
    relay.verify(again)
    relay.assert_structural_equal(again, mod)
    assert again.astext(strict=strict) == mod.astext(strict=strict)


def test_standard_texts_are_added_once() -> None:
    mod = relay.IRModule()
    for _ in range(2):
        for name in ("prelude.rly", "nat.rly", "gradient.rly", "core.rly"):
            mod.import_from_std(name)
    assert mod.checked
    relay.verify(mod)
    assert [each.name_hint for each in mod.get_global_type_vars()] == [
        "List", "Option", "Tree", "nat", "GradCell", "Storage",
    ]  # fmt: skip
    with pytest.raises(RelayError, match="no text is called other"):
        mod.import_from_std("other")
    with pytest.raises(RelayError, match="no Relay operator is called Cons"):
        relay.IRModule().import_from_std("nat.rly")
    taken = relay.fromtext(HEADER + "type Other { Nil }")
    with pytest.raises(RelayError, match="two constructors are called Nil"):
        taken.import_from_std("prelude.rly")


def test_a_constructor_stands_by_itself() -> None:
    text = LIST + "\ndef @main[A]() -> fn (A, List[A]) -> List[A] {\n  Cons\n}\n"
    assert str(relay.fromtext(HEADER + text)) == text
