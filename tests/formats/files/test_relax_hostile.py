"""Texts of Relax that are malformed, or meant to harm: one error, and nothing is run."""

from __future__ import annotations

import contextlib
import json
import random
import re
from pathlib import Path

import pytest
from support.relax_folders import HEAD, SCRIPT, layered_model, module_text, write_model

import serde
from serde.errors import FormatError, MissingDependency, SerdeError
from serde.relax.framework import load
from serde.relax.text.metadata import read_metadata, split_metadata
from serde.relax.text.reading import read_script
from serde.relax.text.syntax import check_script

DEEP = 100_000

LINES = {
    "a builtin": ("lv = exec('1')", "a call of Python's exec"),
    "an import": ("import os", "Import"),
    "a lambda": ("lv = R.add(x, (lambda: x)())", "a call of what is no known name"),
    "a list of calls": ("lv = R.concat([R.add(x, x) for _ in [1]])", "ListComp"),
    "an unpacked list": ("lv = R.concat(*[x, x])", "Starred"),
    "unpacked arguments": ("lv = R.add(**{'x': x})", "Call in a form"),
    "a formatted text": ("lv = R.const(f'{x}', 'float32')", "JoinedStr"),
    "an assignment in an expression": ("lv = R.add((y := x), x)", "NamedExpr"),
    "a conditional expression": ("lv = R.add(x if True else x, x)", "IfExp"),
    "a class": ("lv = x.__class__", "an attribute"),
    "a class of a class": ("lv = R.add(x, x.__class__.__base__)", "an attribute"),
    "a method of a variable": ("lv = x.astype('float32')", "Call in a form"),
    "globals of a function": ("lv = R.add.__globals__['os']", "an attribute|Subscript"),
    "a decorator in an expression": ("lv = R.function(x)", "a call of what is no known name"),
    "a module alone": ("lv = R", "the name R alone"),
    "the package": ("lv = tvm.get_global_func('x')", "Call in a form"),
    "a dunder name": ("lv = __import__('os')", "call|name"),
    "code in a shape": ("lv: R.Tensor(('exec(1)', 3), 'float32') = R.nn.relu(x)", "Python's exec"),
    "a method in a shape": ("lv: R.Tensor(('().__class__()',), 'int8') = R.nn.relu(x)", "call"),
    "a text in a text": ("lv: R.Tensor(('T.max(\"1\", 2)',), 'int8') = R.nn.relu(x)", "the text"),
    "a large power": ("lv = R.nn.relu(R.shape([9 ** 9 ** 9 ** 9]))", "the operator Pow"),
    "a large power in a shape": ("lv: R.Tensor(('9**9**9**9',), 'int8') = x", "the operator Pow"),
    "a large shift": ("lv = R.shape([1 << 99999999999])", "a shifted number"),
    "a filled text": ("lv = R.const('%999999999d' % 1, 'float32')", "arithmetic with what is no"),
    "a repeated list": ("lv = R.shape([1] * 9999999999)", "arithmetic with what is no number"),
    "a list for a variable": ("lv = ['exec(1)']", "a variable for what is no expression"),
    "a text for a variable": ("lv = 'exec(1)'", "a variable for what is no expression"),
    "a variable called R": ("R = x", "a variable called R"),
    "a variable called metadata": ("metadata = x", "a variable called metadata"),
    "a global statement": ("global lv", "Global"),
    "a deletion": ("del x", "Delete"),
    "an exception": ("raise x", "Raise"),
    "a try": ("try:\n                pass\n            finally:\n                pass", "Try"),
    "another class": ("class A: pass", "ClassDef"),
    "an attribute that is set": ("x.data = x", "another target"),
    "a function of the system": ("lv = T.call_extern('int32', 'system', 'x')", "'system'"),
    "a function of the registry": (
        "lv = R.call_dps_packed('runtime.ModuleLoadFromFile', (x,), out_ty=R.Tensor((1,), 'int8'))",
        "'runtime.ModuleLoadFromFile'",
    ),
    "a name that is computed": ("lv = T.call_extern('int32', 'sys' + 'tem')", "None|arithmetic"),
    "source code": ("R.func_attr({'pragma_import_c': 'int f();'})", "source code"),
    "bytes": ("lv = R.const(b'1', 'int8')", "a constant of the kind bytes"),
    "a complex number": ("lv = R.const(1j, 'float32')", "a constant of the kind complex"),
    "brackets": (f"lv = {'(' * DEEP}x{')' * DEEP}", "expected TVMScript"),
    "signs": (f"lv = R.const({'-' * 1000}1, 'int8')", "nesting deeper than 200|expected TVMScript"),
    "operators": (f"lv = R.shape([{'1+' * 5000}1])", "nesting deeper than 200|expected TVMScript"),
}  # fmt: skip
TEXTS = {
    "nothing": ("", "expected a class with the decorator"),
    "a null character": ("\0" + SCRIPT, "expected TVMScript"),
    "no Python": ("module @main { }", "expected TVMScript"),
    "a statement before": ("print(1)\n" + SCRIPT, "neither a type variable nor the module"),
    "two modules": (SCRIPT + SCRIPT, "neither a type variable nor the module"),
    "another import": ("import os\n" + SCRIPT, "the import of another module"),
    "an import of all": ("from os import path\n" + SCRIPT, "the import of another module"),
    "another decorator": (SCRIPT.replace("I.ir_module", "exit"), "without the decorator"),
    "a called decorator": (SCRIPT.replace("I.ir_module", "I.ir_module(exec)"), "without the"),
    "a decorator of a function": (SCRIPT.replace("R.function", "exit"), "another decorator"),
    "a value for a decorator": (SCRIPT.replace("R.function", "R.function(private=exec)"), "arg"),
    "a base": (SCRIPT.replace("Module:", "Module(exec):"), "a class with bases"),
    "a default": (SCRIPT.replace('2")) ->', '2")=exec(1)) ->', 1), "other than plain"),
    "more parameters": (SCRIPT.replace("main(x", "main(*a, x"), "other than plain parameters"),
    "a builtin for a type": (re.sub("x: .*[)] ->", "x: exit) ->", SCRIPT), "form"),
    "a statement in the class": (SCRIPT.replace("Module:", "Module:\n    a = exec", 1), "function"),
    "a call in the class": (SCRIPT.replace("Module:", "Module:\n    exec('1')"), "Python's exec"),
    "a type variable of another name": ('n = TypeVar("m")\n' + SCRIPT, "neither a type variable"),
    "a bound of a type variable": ('n = TypeVar("n", bound=exec)\n' + SCRIPT, "neither a type"),
}  # fmt: skip


NAMES = (
    *("R.entry.inspect.os.system", "R.macro", "R.emit_te", "R.parser", "R.rewriter", "R.dist"),
    *("R.call_py_func", "R.vm.alloc_storage", "R.memory.kill_tensor", "R.call_packed"),
    *("T.macro", "T.inline", "T.jit", "T.meta_var", "T.cuda.func_call", "T.inspect", "T.target"),
    *("I.pyfunc", "I.meta_var", "I.parser", "I.entry.inspect.os.system"),
)


@pytest.mark.parametrize(("line", "message"), LINES.values(), ids=LINES)
def test_a_line_that_could_act_is_refused(line: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        check_script(module_text(line))


@pytest.mark.parametrize(("text", "message"), TEXTS.values(), ids=TEXTS)
def test_a_text_that_could_act_is_refused(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        check_script(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_not_printed_is_refused(name: str) -> None:
    pytest.importorskip("tvm")
    with pytest.raises(FormatError, match=f"does not print {re.escape(name)}"):
        read_script(module_text(f"lv = {name}(x)"))


def test_what_tvm_prints_passes() -> None:
    found = check_script(module_text("lv = cls.f(x, metadata['ffi.String'][3])"))
    assert found.names >= {"R.add", "R.const", "R.dataflow", "R.output", "R.Tensor"}
    assert found.metadata == {("ffi.String", 3)}
    assert not found.attributes


def test_imports_that_are_written_out_are_no_part_of_the_text() -> None:
    text = HEAD.replace("# from", "from") + SCRIPT
    found = check_script(text)
    assert "import" not in found.text
    assert found.text.splitlines().index("class Module:") == text.splitlines().index(
        "class Module:"
    )


# Metadata


def _metadata(*nodes: object, root: object = None) -> str:
    last = len(nodes) - 1 if root is None else root
    return json.dumps({"root_index": last, "nodes": nodes})


def _string(text: object) -> dict[str, object]:
    return {"type": "ffi.String", "data": text}


def _array(*items: object) -> dict[str, object]:
    return {"type": "ffi.Array", "data": list(items)}


def _map(*items: object) -> dict[str, object]:
    return {"type": "ffi.Map", "data": list(items)}


METADATA = {
    "no JSON": ("{", "metadata: "),
    "a list": ("[]", "expected a list of nodes"),
    "deep nesting": ("[" * DEEP, "metadata: "),
    "no nodes": (_metadata(root=0), "no node 0 among 0"),
    "a root beyond": (_metadata(_array(), root=7), "no node 7 among 1"),
    "a root of truth": (_metadata(_array(), root=True), "no node True"),
    "another root": (_metadata(_array()), "expected ffi.Map at 0, found 'ffi.Array'"),
    "an odd map": (_metadata({"type": "ffi.Map", "data": [0]}), "expected a map"),
    "itself for a key": (_metadata({"type": "ffi.Map", "data": [0, 0]}), "expected ffi.String"),
    "another kind": (
        _metadata(_string("target.Target"), _array(0), _map(0, 1)),
        "an object of the kind 'target.Target' is not known",
    ),
    "a function": (
        _metadata(_string("ffi.Function"), _array(0), _map(0, 1)),
        "an object of the kind 'ffi.Function' is not known",
    ),
    "a number for a text": (
        _metadata(_string("ffi.String"), _string(3), _array(1), _map(0, 2)),
        "expected a text at 1",
    ),
    "a constant without values": (
        _metadata(_string("ir.GenericConst"), {"type": "ir.GenericConst", "data": {}}, _array(1),
                  _map(0, 2)),
        "no node None among 4",
    ),
    "a constant that is cut": (
        _metadata(_string("ir.GenericConst"), {"type": "ffi.Tensor", "data": "P6G0lvBAXt0="},
                  {"type": "ir.GenericConst", "data": {"value": 1}}, _array(2),
                  _map(0, 3)),
        "node 1: an array container of 8 bytes has no header",
    ),
    "a constant that is no base64": (
        _metadata(_string("ir.GenericConst"), {"type": "ffi.Tensor", "data": "!"},
                  {"type": "ir.GenericConst", "data": {"value": 1}}, _array(2),
                  _map(0, 3)),
        "node 1: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("document", "message"), METADATA.values(), ids=METADATA)
def test_metadata_that_is_wrong_is_refused(document: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_metadata(document)


def test_metadata_that_is_no_text_is_refused() -> None:
    with pytest.raises(FormatError, match="metadata: "):
        split_metadata('metadata = tvm.ir.load_json("""\\N{x}""")\n' + SCRIPT)


def test_a_text_of_the_metadata_stands_in_no_expression() -> None:
    pytest.importorskip("tvm")
    nodes = (_string("ffi.String"), _string("exec(1)"), _array(1), _map(0, 2))
    literal = json.dumps(_metadata(*nodes)).strip('"')
    line = 'lv = R.reshape(x, R.shape([metadata["ffi.String"][0]]))'
    with pytest.raises(FormatError, match=r"the text at 'ffi.String', 0 stands in an expression"):
        read_script(f'metadata = tvm.ir.load_json("""{literal}""")\n' + module_text(line))


def test_metadata_that_is_not_there_is_told() -> None:
    pytest.importorskip("tvm")
    with pytest.raises(FormatError, match=r"nothing is at 'ir.GenericConst', 2"):
        read_script(module_text('lv = metadata["ir.GenericConst"][2]'))


# TVM's own refusals


@pytest.mark.wide
def test_a_crash_of_tvm_is_told() -> None:
    pytest.importorskip("tvm")
    text = HEAD + SCRIPT.replace("R.Tensor((2, 3)", "R.Tensor((None, 3)", 1)
    with pytest.raises(FormatError, match="does not read the text: tvm: the engine crashed"):
        read_script(text)


@pytest.mark.wide
def test_a_refusal_of_tvm_is_told() -> None:
    pytest.importorskip("tvm")
    with pytest.raises(FormatError, match=r"refuses the text: .*Undefined variable: y"):
        read_script(module_text("lv = R.nn.relu(y)"))


@pytest.mark.wide
@pytest.mark.parametrize("name", ["exec", "exit", "__builtins__", "open", "input"])
def test_a_variable_that_nothing_binds_is_not_pythons(name: str) -> None:
    pytest.importorskip("tvm")
    with pytest.raises(FormatError):
        read_script(module_text(f"lv = R.nn.relu({name})"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_a_changed_folder_is_read_or_refused(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    rng = random.Random(seed)
    folder = write_model(tmp_path / "net_relax", layered_model())
    path = folder / "model.py"
    parts = re.findall(r"\w+|\s+|.", path.read_text())
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(parts))
        parts[place] = rng.choice(parts) if rng.random() < 0.7 else ""
    path.write_text("".join(parts))
    with contextlib.suppress(SerdeError):
        serde.to_relay(folder)


# Releases


@pytest.mark.parametrize(
    ("tvm", "ffi", "message"),
    [
        ("0.21.0", "0.1.0", r"TVM 0\.22 to 0\.27 is not installed; .*found TVM 0\.21\.0"),
        ("0.28.0", "0.1.20", r"TVM 0\.22 to 0\.27 is not installed; .*found TVM 0\.28\.0"),
        ("1.0.0.post1", "1.0", r"found TVM 1\.0\.0\.post1"),
        ("0.25.0.post1", "0.1.13.post2", r"apache-tvm-ffi<0\.1\.13 is not installed; .*crashes"),
        ("0.26.0", "0.1.15.post2", r"apache-tvm-ffi<0\.1\.15 is not installed; .*crashes"),
        ("0.27.0.post1", "0.1.15", r"TVM 0\.27\.0\.post1 crashes with apache-tvm-ffi 0\.1\.15"),
    ],
)
def test_a_release_that_is_not_known_is_told_before_it_is_imported(
    tvm: str, ffi: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"apache-tvm": tvm, "apache-tvm-ffi": ffi}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    with pytest.raises(MissingDependency, match=message):
        load.__wrapped__()


@pytest.mark.parametrize(
    ("tvm", "ffi"),
    [("0.25.0.post1", "0.1.12"), ("0.26.0", "0.1.14.post1"), ("0.27.0.post1", "0.1.14.post1")],
)
def test_a_release_that_is_known_is_imported(
    tvm: str, ffi: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tvm")
    versions = {"apache-tvm": tvm, "apache-tvm-ffi": ffi}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    assert load.__wrapped__().relax
