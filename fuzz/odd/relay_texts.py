"""Parts of texts of Relay that are odd: bodies, shapes, types, definitions, metadata."""

from __future__ import annotations

from typing import Final

__all__ = ["ANNOTATIONS", "BODIES", "HEADS", "METADATA", "TENSOR", "TOPS", "TYPES"]

TENSOR: Final = "Tensor[(2, 3), float32]"
BODIES: Final = (
    "let %a = exp(%x); let %b = %a; %b", "exp(%x); tanh(%x)", "free_var %z: Tensor[(2), int8]; %x",
    "%0 = exp(%x); %1 = tanh(%0); add(%0, %1)", "(%x, %x).0", "(%x, %x).7", "(%x, %x).x",
    "(%x, %x).99999999999", "(let %a = %x; %a)", "(%0 = exp(%x); %0)", "%x(1)", "exp(%x)(%x)",
    "add(%x, 1f)", "add(%x, 1.5)", "add(%x, 1e999f)", "add(%x, 9" + "9" * 500 + "f)",
    "add(%x, 300i8)", "add(%x, 70000f16)", "add(%x, 1i3)", "add(%x, 1f7)", "add(%x, 1u8)",
    "add(%x, inff)", "add(%x, -inff)", "add(%x, nanf)", "add(%x, -2147483648)",
    "add(%x, 2147483648)",
    "add(%x)", "add(%x, %x, %x)", "nosuch(%x)", "nosuch", "exp", "meta", "meta(1)", "%x + %x * %x",
    "%x == %x", "%x <= %x / %x - %x", "-%x", "+%x", "sum(%x, axis=[1], axis=[0])",
    "sum(%x, axis=None)",
    "sum(%x, axis=[1,])", "sum(%x, axis=-)", "sum(%x, axis=[True])", "reshape(%x, newshape=[3, 2])",
    "reshape(%x, newshape=[?, 2])", "reshape(%x, newshape=[floordiv(6, 2), -1])",
    "reshape(%x, newshape=[floordiv(6, 0)])", "nn.softmax(%x, axis=999999999999999999999999)",
    "cast(%x, dtype=\"float99\")", "cast(%x, dtype=\"int\\x38\")", "cast(%x, dtype=\"\\q\")",
    "cast(%x, dtype=\"unfinished)", "clip(%x, a_min=0f, a_max=1e40f)",
    "clip(%x, a_min=\"0\", a_max=1f)",
    "split(%x, indices_or_sections=(1, 2), axis=1).0",
    "split(%x, indices_or_sections=(1,), axis=1).0",
    "if (True) { %x } else { exp(%x) }", "if (%x) { %x } else { %x }", "fn (%a) { %a }(%x)",
    "fn (%a: T, %a: T) { %a }(%x, %x)".replace("T", TENSOR), "fn <A>(%a: A) { %a }", "@main(%x)",
    "@nosuch(%x)", "fn (%a: Tensor[(2, 3), float32] {virtual_device=VDevice()}) { %a }(%x)",
    "concatenate((%x, %x), axis=0)", "concatenate((%x,), axis=0)", "ref(%x)", "ref_read(ref(%x))",
    "let %r = ref(%x); ref_write(%r, exp(%x)); ref_read(%r)", "match (%x) { _ => %x }",
    "match? (%x) { %y => %y }", "meta[relay.Constant][0]", "meta[relay.Constant][x]",
    "meta[relay.attrs.Conv2DAttrs][0]", "exp(meta[relay.Constant][0])", "exp(%x) /* ty=x */",
    "nn.conv2d(%x, %x, meta[relay.Constant][0])", "fn (%a, Primitive=1, X=[1, \"a\"]) { %a }(%x)",
    "serde.lstm(%x, %x, %x, %x, %x)", "serde.lstm(%x, %x, %x, %x)", "(%x)", "()", "%x.0", "@main.0",
    "(" * 400 + "%x" + ")" * 400, "exp(" * 4000 + "%x" + ")" * 4000, "{ %x }", "%x;", "let %a = %x",
)  # fmt: skip
TYPES: Final = (
    "(n, 3)", "(?, ?)", "(n + 1, 2 * n)", "(-1, 3)", "(--1, 3)", "(n - m, floordiv(n, 2))",
    "(floordiv(n, 0),)", "(" + "floordiv(" * 30 + "n" + ", 2)" * 30 + ",)", "(\"n m\", 3)",
    "(\"\", 3)", "(\"\\q\", 3)", "(1.5, 3)", "(1f, 3)", "(1e400, 3)", "(9" + "9" * 60 + ", 3)",
    "(2, 3", "()", "(,)", "(2 3)", "(" + "1, " * 100 + ")", "(" + "a * " * 300 + "b,)",
    "(" + " + ".join(f"a{i}" for i in range(300)) + ",)", "(" + "n + " * 4000 + "n,)", "(n n)",
    "((a + b) * (a + c), 3)", "(%n, 3)", "(2,)",
)  # fmt: skip
ANNOTATIONS: Final = (
    "_", "int32", "int", "float99", "Tensor", "Tensor[(2), x]", "Tensor[(2, 3)]", "(int32, int8)",
    "(int32,)", "()", "fn (int32) -> int32", "fn <A>(A, A) -> A", "fn <A, A>(A) -> A", "fn (,)",
    "ref(int32)", "List[int32]", "Sequence[Tensor[(2), int8]]", "Sequence[int32]", "A", "?", "%x",
    "(" * 600 + "int32" + ")" * 600, "fn (int32 int32) -> int8", "List[int32 int32]",
    "fn <A B>(A) -> A",
    "Storage[]", "Tensor[(2), bool] Tensor", "uint1", "bfloat16", "custom[x]8", "ref(", "List[",
)  # fmt: skip
TOPS: Final = (
    "def @main() { 1 } def @main() { 2 }", "def @f() { 1 }", "def @main(%x: int32) { @f(%x) }",
    "type List[A] { Cons(A, List[A]), Nil, } def @main(%x: int32) { Cons(%x, Nil) }",
    "type List[A] { Cons(A, List[A]), Nil, } def @main(%x: int32) { match (Cons(%x, Nil)) { "
    "Cons(%a, _) => %a, Cons(%a) => %a, Nil => %x } }",
    "type L { N } type L { N } def @main() { 1 }", "extern type X def @main() { 1 }",
    "type T { A } def @main(%x: T) { match (%x).0 { A => 1 } }", "def @main() { 1 } trailing",
    "type T { A(int32, T) } def @main(%x: T) { match (%x) { " + "A(_, " * 600 + "_" + ")" * 600
    + " => 1 } }", "type P { B } def @main(%x: P) { match ((%x, 1)) { (B, %n) => %n } }",
    "def @main(%x: int32) -> Tensor[(2), int8] { %x }", "fn (%x: int32) { %x }", "%x", "1 + 1",
    "free_var %x: int32; %x", "def @main[A](%x: A) -> A { %x }",
    "def @a() { @b() } def @b() { @a() } "
    "def @main() { @a() }", "#[version = \"0.0.5\"] def @main() { 1 }", "def @main", "def", "",
    "def @main(%x: int32) { %y }", "def @main(%x) { %x }", "import \"x\" def @main() { 1 }",
    "def @main() { 1 }\n#[metadata]\n", "def @main() { 1 }\n#[metadata]\n{", "#[metadata]\n{}",
)  # fmt: skip
HEADS: Final = (
    "", '#[version = "0.0.4"]', '#[version = "1.0"]', "#[version = 5]", "#[version]", "#[x = 1]",
    '#[version = "0.0.5"', "\ufeff" + '#[version = "0.0.5"]',
)  # fmt: skip
METADATA: Final = (
    "{}", "[]", "{", '{"root": 1, "nodes": []}', '{"root": 0, "nodes": [{"type_key": ""}]}',
    '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map"}]}', '{"root": "x", "nodes": 3}',
    '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "StrMap", "keys": ["relay.Constant"], '
    '"data": [2]}, {"type_key": "Array", "data": [3]}, {"type_key": "relay.Constant", "attrs": '
    '{"data": "0", "span": "0"}}], "b64ndarrays": ["KIER"]}',
    '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "StrMap", "keys": ["relay.Constant"], '
    '"data": [2]}, {"type_key": "Array", "data": [9]}]}',
    '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "StrMap", "keys": ["a", '
    '"b"], "data": [2]}]}',
    '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "data": [2]}, {"type_key": 3}]}',
    '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "data": ["x"]}]}', "[" * 5000,
)  # fmt: skip
