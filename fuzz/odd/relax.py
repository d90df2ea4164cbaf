"""Folders of TVMScript with lines, lengths, attributes and metadata that are odd."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, Final

from fuzz.case import Case

__all__ = ["make_cases"]

_BODY: Final = 'lv: R.Tensor((2, 3), dtype="float32") = R.nn.relu(x)'

_LINES: Final = (
    "lv: R.Tensor((2, 3), dtype='float32')", "lv, lw = R.nn.relu(x), x", "lv, (a, b) = x",
    "x.y = x",
    "lv: R.function = R.nn.relu(x)", "lv: T.prim_func = x", "lv = R.nn", "lv = R.nn.relu",
    "lv = x.data",
    "lv = x.shape[0]", "lv = Module.f", "lv = cls.f", "lv = x in x", "lv = x is x",
    "lv = R.add(x, 1 < 2 < 3)",
    "lv: R.Tensor((n, 3), dtype='float32') = R.nn.relu(x)", "lv = metadata[x][0]",
    "lv = metadata['a']",
    "lv = metadata['a']['b']", "lv = metadata[3][0]", "lv = metadata['relax.expr.Constant'][-1]",
    "lv = R.add(x, metadata['relax.expr.Constant'][0])",
    "lv = R.add(x, metadata['relax.expr.Constant'][9])",
    "lv = R.nn.relu(x)[0]", "lv = (x, x)", "lv = (x, x)[0]", "lv = R.tuple(x, x)",
    "lv = R.shape([2, 3])",
    "lv = R.prim_value(3)", "lv = R.str('a')", "lv = R.dtype('int8')", "lv = R.null_value()",
    "lv = R.match_cast(x, R.Tensor((2, 3), 'float32'))",
    "lv = R.match_cast(x, R.Tensor((n, m), 'float32'))",
    "n = T.int64()", "n, m = T.int64(), T.int64()", "n = T.int64(is_size_var=True)",
    "assert x, 'a'", "assert x",
    "while x: pass", "with R.dataflow() as lv: pass", "with R.seq() as (lv, lw): pass", "pass",
    "if x:\n                lv = x\n            else:\n                lv = x", "return x",
    "lv = R.output(x)",
    "lv = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((2, 3), 'float32'))", "R.print(x, format='a')",
    "lv = R.call_dps_packed('f', (x,), out_sinfo=R.Tensor((2, 3), dtype='float32'))",
    "R.assert_op(x, [], format='')",
    "lv = R.invoke_closure(x, (x,), sinfo_args=(R.Object,))", "lv: R.Object = x",
    "lv: R.Prim('int64') = x",
    "lv: R.Tuple(R.Tensor((2, 3), 'float32'), R.Shape([2, 3])) = x",
    "lv: R.Callable((R.Object,), R.Object) = x",
    "lv = R.nn.conv2d(x, x, strides=[1, 1], padding=[0, 0, 0, 0])",
    "lv = R.add(x, R.const(1.0, 'float33'))",
    "lv = R.add(x, R.const([1.0, 2.0, 3.0], 'float32'))", "lv = R.astype(x, dtype='x')",
    "lv = R.sum(x, axis=[9])",
)  # fmt: skip
_SIGNATURES: Final = (
    "x: R.Tensor((\"n\", 3), dtype=\"float32\")",
    "x: R.Tensor((\"n + 1\", \"2 * n\"), dtype=\"float32\")",
    "x: R.Tensor((n, 3), dtype=\"float32\")", "x: R.Tensor(dtype=\"float32\", ndim=2)",
    "x: R.Tensor", "x",
    "x: R.Tuple(R.Tensor((2, 3), dtype=\"float32\"), R.Shape([\"n\"]))",
    "x: R.Shape([\"n\", 3])", "x: R.Object",
    "x: R.Callable([R.Tensor((\"n\",), dtype=\"int8\")], R.Object)", "x: R.Prim(\"int64\")",
    "*x", "x, /", "x=1",
    "x: R.Prim(value=\"n\")", "x: R.Tensor((2, 3), dtype=\"float32\"), x: R.Object",
    "x: R.function", "self",
    "x: R.Tensor((\"n // 2\", \"T.max(n, 1)\"), dtype=\"float32\")",
    "x: R.Tensor((\"(\",), dtype=\"float32\")",
    "x: R.Tensor((\"n\", \"m\"), dtype=\"float32\"), n: R.Shape([\"n\"])",
    "x: R.Tensor((-1, 3), dtype=\"float32\")",
)  # fmt: skip
_DECORATORS: Final = (
    "@R.function(private=True)", "@R.function(pure=False)", "@R.function(1)",
    "@R.function(pure=x)", "@R.macro",
    "@R.function(**x)", "@R.function\n    @R.function", "", "@T.prim_func",
    "@T.prim_func(private=True)",
)  # fmt: skip
_FACTS: Final = (
    '{"num_input": 9}', '{"num_input": "a"}', '{"num_input": -1}', '{"num_input": 0}', "{}",
    '{"x": [1, 2.5, "a"]}',
    '{"serde.inputs": ["a", "b"]}', '{"serde.inputs": 3}', '{"serde.outputs": ["a", "a"]}',
    '{"serde.outputs": [1]}',
    '{"serde.weights": ["a"]}', '{"serde.meta": "x"}', '{"global_symbol": "other"}',
    '{"k": {"a": 1}}', '{"k": None}',
    '{"serde.names": "x"}', '{"serde.input_names": ["q"]}', "x", "3",
)  # fmt: skip


def make_cases() -> Iterator[Case]:
    from support.relax_folders import HEAD, SCRIPT

    from serde.io.tvm_params import param_chunks

    none = b"".join(param_chunks({}))
    signature = 'x: R.Tensor((2, 3), dtype="float32")'
    attributes = '{"num_input": 1}'
    texts = [HEAD + SCRIPT.replace(_BODY, each) for each in _LINES]
    texts += [HEAD + SCRIPT.replace(_BODY, f"{_BODY}\n            {each}") for each in _LINES]
    texts += [HEAD + SCRIPT.replace(f"main({signature})", f"main({each})") for each in _SIGNATURES]
    texts += [HEAD + SCRIPT.replace("@R.function", each) for each in _DECORATORS]
    texts += [HEAD + SCRIPT.replace(attributes, each) for each in _FACTS]
    texts += [SCRIPT.replace("main(", "other("), SCRIPT.replace("class Module", "class Module(x)")]
    texts += [
        "", "x", "(", "\0", "# from tvm.script import ir as I\n", "n = TypeVar('n')\n" + SCRIPT,
        "n = TypeVar('m')\n" + SCRIPT, "n, m = 1, 2\n" + SCRIPT, "n = 3\n" + SCRIPT,
        HEAD + "\n" * 9,
        HEAD.replace("# ", "") + SCRIPT, SCRIPT.replace("@I.ir_module",
        "@I.other"), SCRIPT + SCRIPT,
        SCRIPT + "    x = 1\n", SCRIPT + "    I.module_attrs({})\n", SCRIPT + "    pass\n",
        "class Module:\n    pass\n",
        "@I.ir_module\nclass Module:\n    pass\n", SCRIPT.replace("gv", "R"),
    ]  # fmt: skip
    texts += list(_metadata(HEAD, SCRIPT))
    for number, text in enumerate(texts):
        files = {"m_relax/model.py": text.encode(), "m_relax/model.params": none}
        yield Case.of("relax", f"odd-text{number}", files)
    script = (HEAD + SCRIPT).encode()
    for number, params in enumerate((b"", none[:-1], none + b"\0", b"\xff" * 40)):
        files = {"m_relax/model.py": script, "m_relax/model.params": params}
        yield Case.of("relax", f"odd-params{number}", files)
    files = {"m_relax/model.py": b"\xff" + script, "m_relax/model.params": none}
    yield Case.of("relax", "odd-bytes", files)
    for function in ("main", "other", ""):
        files = {"m_relax/model.py": script, "m_relax/model.params": none}
        yield Case.of("relax", f"odd-function-{function}", files, function=function)


def _metadata(head: str, script: str) -> Iterator[str]:
    """Texts whose constants stand in metadata that are sound, or are not."""
    import base64

    import numpy as np
    from support.tvm_layout import container

    encoded = base64.b64encode(container(np.ones((2, 3), np.float32))).decode()
    kind = "relax.expr.Constant"

    def document(*changes: tuple[int, Any], root: Any = 0, key: str = kind) -> dict[str, Any]:
        nodes: list[Any] = [
            {"type": "ffi.Map", "data": [1, 2]},
            {"type": "ffi.String", "data": key},
            {"type": "ffi.Array", "data": [3, 3]},
            {"type": key, "data": {"data": 4, "span": 5, "struct_info_": 5}},
            {"type": "ffi.Tensor", "data": encoded},
            {"type": "None"},
            {"type": "ffi.String", "data": "a text"},
        ]
        for place, value in changes:
            nodes[place] = value
        return {"root_index": root, "nodes": nodes, "metadata": {"tvm_version": "0.22.0"}}

    documents: list[Any] = [
        document(), [], {}, {"nodes": 3}, document(root=9), document(root="x"), document(root=1),
        document((0, {"type": "ffi.Map", "data": [1]})), document((0, 3)),
        document((0, {"type": "ffi.Map", "data": 7})), document((1, {"type": "ffi.String",
        "data": 3})),
        document((2, {"type": "ffi.Array", "data": "x"})), document((2, {"type": "ffi.Array",
        "data": [9]})),
        document((2, {"type": "ffi.Array", "data": [3] * 3000})),
        document((4, {"type": "ffi.Tensor", "data": "!"})),
        document((4, {"type": "ffi.Tensor", "data": encoded[:40]})),
        document((3, {"type": kind, "data": 3})),
        document((2, {"type": "ffi.Array", "data": [6]}), key="ffi.String"),
        document(key="tirx.IntImm"),
        document((2, {"type": "ffi.Array", "data": [6]}), (6, {"type": "ffi.String",
        "data": 3}), key="ffi.String"),
    ]  # fmt: skip
    lines = (f'metadata["{kind}"][0]', f'metadata["{kind}"][1]', 'metadata["ffi.String"][0]')
    for made, line in itertools.product(documents, lines):
        body = script.replace('R.const(1.5, "float32")', line)
        text = json.dumps(made).replace("\\", "\\\\")
        yield f'{head}metadata = tvm.ir.load_json("""{text}""")\n{body}'
