"""Converters of users, types of results and consent, as options: what is taken, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import serde
import serde.relay as relay
from serde.bridge.options import ExportOptions, ImportOptions
from serde.command.cli import main
from serde.core.report import Report
from serde.errors import OptionError, UnsupportedModelError
from serde.relay.ir.dims import Any as AnyDim, symbol
from serde.relay.ir.types import TensorType
from serde.walk.result_types import parse_result_types, read_result_types
from serde.walk.user_converters import read_converters, with_directions


def plain(ctx: Any, x: Any) -> Any:
    return x


@serde.imports("read_me", "me_too")
def reading(ctx: Any, x: Any) -> Any:
    return x


@serde.exports("write_me", format="onnx")
def writing(ctx: Any, x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": plain}, [("a", "read", "")]),
        ({"a": plain, "b": plain}, [("a", "read", ""), ("b", "read", "")]),
        ({"read_me": reading}, [("read_me", "read", "")]),
        ({"write_me": writing}, [("write_me", "written", "onnx")]),
        ({"other": writing}, [("other", "read", "")]),
        (reading, [("read_me", "read", ""), ("me_too", "read", "")]),
        ([reading, writing], [("read_me", "read", ""), ("me_too", "read", ""),
                              ("write_me", "written", "onnx")]),
        ([{"a": plain}, reading], [("a", "read", ""), ("read_me", "read", ""),
                                   ("me_too", "read", "")]),
        ([], []),
        ((), []),
        ({}, []),
    ],
)  # fmt: skip
def test_what_converters_may_be(given: Any, expected: list[tuple[str, str, str]]) -> None:
    found = read_converters(given, "read")
    assert [(each.name, each.direction, each.format) for each in found] == expected


@pytest.mark.parametrize(
    ("name", "only_written", "direction"),
    [
        ("my_op", False, "read"),
        ("nn.relu", False, "written"),
        ("serde.foreign", False, "written"),
        ("Relu", False, "read"),
        ("com.acme::Scale", False, "read"),
        ("my_op", True, "written"),
        ("nn.relu", True, "written"),
    ],
)
def test_who_says_no_direction_reads_unless_the_name_is_relays(
    name: str, only_written: bool, direction: str
) -> None:
    (found,) = with_directions({name: plain}, only_written=only_written)
    assert found.direction == direction


@pytest.mark.parametrize(
    "given",
    [3, plain, {"a": 3}, {3: plain}, {"": plain}, [plain], [3], {"a": None}, "no_such_file.py"],
)
def test_what_converters_may_not_be(given: Any) -> None:
    with pytest.raises(OptionError, match="converters"):
        ImportOptions(converters=given)
    with pytest.raises(OptionError, match="converters"):
        ExportOptions(converters=given)


def no_context() -> None: ...
def context_by_keyword(*, ctx: Any) -> None: ...
def only_many(*xs: Any) -> None: ...
def hint_of_nothing(ctx: Any, x: Any, *, a: Unheard) -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    "function", [no_context, context_by_keyword, only_many, hint_of_nothing, lambda: None]
)
def test_a_wrong_signature_names_the_function(function: Any) -> None:
    with pytest.raises(OptionError, match=rf"{function.__name__}.*test_converters_options.py"):
        ImportOptions(converters={"my_op": function})


def test_two_functions_for_one_operator_are_refused() -> None:
    with pytest.raises(OptionError, match="my_op has two"):
        ImportOptions(converters=[{"my_op": plain}, {"my_op": only_many_and_context}])


def only_many_and_context(ctx: Any, *xs: Any) -> Any:
    return xs[0]


@pytest.mark.parametrize("names", [(), ("",), (3,)])
def test_a_decorator_without_names_is_refused(names: Any) -> None:
    with pytest.raises(OptionError, match="expected names of operators"):
        serde.imports(*names)


# Files.

GOOD = """
import serde

@serde.imports("decorated")
def one(ctx, x):
    return x

def two(ctx, x):
    return x

CONVERTERS = {"listed": two}
"""


def test_a_file_gives_what_is_decorated_and_what_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "my_ops.py"
    path.write_text(GOOD)
    for given in (path, str(path), [path]):
        names = sorted(each.name for each in ImportOptions(converters=given).converters)
        assert names == ["decorated", "listed"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(ctx): pass\n", "has no function that"),
        ("CONVERTERS = []\n", "CONVERTERS is no dict"),
        ("CONVERTERS = {'a': 1}\n", "expected functions by name"),
        ("CONVERTERS = {}\n", "has no function that"),
        ("1 / 0\n", "does not run: ZeroDivisionError"),
        ("def (:\n", "does not run: SyntaxError"),
        ("import no_such_module\n", "does not run: ModuleNotFoundError"),
        ("raise SystemError('x')\n", "does not run: SystemError: x"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "my_ops.py"
    path.write_text(text)
    with pytest.raises(OptionError, match=message):
        ImportOptions(converters=path)


def test_a_directory_is_no_file_of_converters(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no such file"):
        ImportOptions(converters=tmp_path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my_ops.txt"
    path.write_text(GOOD)
    with pytest.raises(OptionError, match=r"a name ending in \.py"):
        ImportOptions(converters=path)


# Types of results.

F = "float32"
TYPES: dict[str, tuple[Any, list[TensorType]]] = {
    "one": ("float32[1,10]", [TensorType((1, 10), F)]),
    "a scalar": ("int64[]", [TensorType((), "int64")]),
    "several": ("float32[2],bool[3, 4]", [TensorType((2,), F), TensorType((3, 4), "bool")]),
    "semicolon": ("float32[2]; int8[1]", [TensorType((2,), F), TensorType((1,), "int8")]),
    "symbols": ("float32[N,?,-1,4]", [TensorType((symbol("N"), AnyDim(), AnyDim(), 4), F)]),
    "blanks": (" float16[ 2 , 3 ] ", [TensorType((2, 3), "float16")]),
    "a type": (TensorType((5,), F), [TensorType((5,), F)]),
    "a list": (["float32[2]", TensorType((1,), F)], [TensorType((2,), F), TensorType((1,), F)]),
    "a length of 0": ("float32[0]", [TensorType((0,), F)]),
}


@pytest.mark.parametrize("title", TYPES)
def test_types_of_results_are_read(title: str) -> None:
    given, expected = TYPES[title]
    assert list(read_result_types({"n": given})["n"]) == expected
    if isinstance(given, str):
        assert list(parse_result_types([f"a=b={given}"])["a=b"]) == expected


@pytest.mark.parametrize(
    "given",
    [
        "", "float32", "float32[", "float32[1", "[1]", "float32[1]x", "float32[1],", "float99[1]",
        "float32[1.5]", "float32[-2]", "float32[a b]", "float32[1,,2]", "float32[[1]]", 3, None, [],
        {"a": 1}, ["float32[1]", 3], "float32(1)", "float32[1] int8[1]",
    ],
)  # fmt: skip
def test_types_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(OptionError, match="result_types: n: expected a type"):
        ImportOptions(result_types={"n": given})


@pytest.mark.parametrize("given", [3, "n=float32[1]", {3: "float32[1]"}])
def test_types_are_told_by_name(given: Any) -> None:
    with pytest.raises(OptionError, match="types by the names of nodes"):
        ImportOptions(result_types=given)


@pytest.mark.parametrize("texts", [["float32[1]"], ["=float32[1]"], ["n:float32[1]"]])
def test_texts_of_the_command_line_without_a_node_are_refused(texts: list[str]) -> None:
    with pytest.raises(OptionError, match="--result-types: expected NODE="):
        parse_result_types(texts)


def test_types_that_are_told_twice_are_refused() -> None:
    with pytest.raises(OptionError, match="n is given twice"):
        parse_result_types(["n=float32[1]", "n=int8[1]"])


# The command line.


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """An ONNX model with an operator of another domain, whose types it does not declare."""
    nodes = [
        helper.make_node("Scale", ["x"], ["h"], name="scale", domain="com.acme", by=2.0),
        helper.make_node("Relu", ["h"], ["y"], name="relu"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 2)]
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


CONVERTERS = """
import numpy as np
from serde import relay

def scale(ctx, x, *, by: float):
    return relay.multiply(x, relay.const(np.float32(by)))

CONVERTERS = {"com.acme::Scale": scale}
"""


def test_the_command_line_takes_a_file(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_ops.py").write_text(CONVERTERS)
    target = tmp_path / "out.onnx"
    code = main(["convert", str(model), str(target), "--converters", str(tmp_path / "my_ops.py")])
    assert code == 0
    assert [n.op_type for n in onnx.load(target).graph.node] == ["Mul", "Relu"]
    told = " ".join(capsys.readouterr().err.split())
    assert "fallback Scale scale: read by converter scale of com.acme::Scale (my_ops.py" in told


def test_without_anything_it_is_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(model), str(tmp_path / "out.onnx")]) == 1
    assert "operators of the domain 'com.acme' are not read" in capsys.readouterr().err
    assert not (tmp_path / "out.onnx").exists()


def test_a_kept_operator_without_types_is_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(model), str(tmp_path / "out.onnx"), "--keep-unknown"]) == 1
    told = capsys.readouterr().err
    assert "the types of its results are not known" in told
    assert "--result-types" in told


def test_the_command_line_keeps_what_is_unknown(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    given = ["--keep-unknown", "--result-types", "scale=float32[2,3]"]
    assert main(["convert", str(model), str(target), *given]) == 0
    found = onnx.load(target)
    assert [(n.domain, n.op_type) for n in found.graph.node] == [
        ("com.acme", "Scale"),
        ("", "Relu"),
    ]
    assert {o.domain: o.version for o in found.opset_import} == {"": 17, "com.acme": 2}


def test_another_format_needs_consent(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out-symbol.json"
    given = ["--keep-unknown", "--result-types", "scale=float32[2,3]"]
    assert main(["convert", str(model), str(target), *given]) == 1
    assert "--custom-ops com.acme::Scale" in capsys.readouterr().err
    for name in ("Scale", "com.acme::Scale", "Other, Scale"):
        assert main(["convert", str(model), str(target), *given, "--custom-ops", name]) == 0
    assert '"op_type": "Scale"' in target.read_text()


def test_inspect_prints_what_is_kept(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--keep-unknown", "--result-types", "h=float32[2,3]", "--relay"]
    assert main(["inspect", str(model), *given]) == 0
    told = capsys.readouterr().out
    assert "com.acme.Scale" in told
    assert 'serde.foreign(%0, framework="onnx", name="Scale"' in told


def test_a_missing_file_is_a_fault_of_usage(model: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "none.py")
    assert main(["convert", str(model), str(tmp_path / "o.onnx"), "--converters", missing]) == 2
    assert main(["inspect", str(model), "--relay", "--converters", missing]) == 2


def test_a_wrong_type_is_a_fault_of_usage(model: Path, tmp_path: Path) -> None:
    given = ["--keep-unknown", "--result-types", "scale=float32"]
    assert main(["convert", str(model), str(tmp_path / "o.onnx"), *given]) == 2


def test_what_nobody_asked_for_is_told(model: Path) -> None:
    report = Report()
    serde.to_relay(
        model,
        converters={"com.acme::Scale": lambda ctx, x, *, by: x, "Unheard": plain},
        result_types={"nobody": "float32[1]"},
        report=report,
    )
    assert report.notes == [
        "no node is an operator of converters: Unheard",
        "no node is called so in result_types: nobody",
    ]


def test_a_report_as_json_lists_each_of_them(model: Path) -> None:
    report = Report()
    serde.to_relay(model, keep_unknown=True, result_types={"scale": "float32[2,3]"}, report=report)
    (found,) = report.as_dict()["fallbacks"]
    assert (found["op"], found["node"]) == ("com.acme::Scale", "scale")
    assert found["reason"] == "kept as onnx has it"


def test_one_conversion_reads_and_writes_by_functions(model: Path) -> None:
    def scale(ctx: Any, x: Any, *, by: float) -> Any:
        return relay.nn.leaky_relu(relay.multiply(x, relay.const(np.float32(by))), 0.5)

    def leaky(ctx: Any, x: Any, *, alpha: float) -> Any:
        return ctx.emit("Max", x, ctx.emit("Mul", x, ctx.const(np.float32(alpha))))

    found = serde.export_model(
        model, format="onnx", converters={"com.acme::Scale": scale, "nn.leaky_relu": leaky}
    )
    assert [n.op_type for n in found.graph.node] == ["Mul", "Mul", "Max", "Relu"]


def test_options_of_one_direction_are_refused_in_the_other(model: Path) -> None:
    with pytest.raises(OptionError, match="unknown option"):
        serde.to_relay(model, custom_ops=["Scale"])
    read = serde.to_relay(model, converters={"com.acme::Scale": lambda ctx, x, *, by: x})
    with pytest.raises(OptionError, match="unknown option"):
        serde.from_relay(read, format="onnx", keep_unknown=True)


def test_names_without_consent_stay_refused(model: Path) -> None:
    kept = serde.to_relay(model, keep_unknown=True, result_types={"scale": "float32[2,3]"})
    for names in ([], ["scale"], ["com.other::Scale"], ["Scal"]):
        with pytest.raises(UnsupportedModelError, match=r"com\.acme::Scale"):
            serde.from_relay(kept, format="nnef", custom_ops=names)


def test_a_function_that_writes_nothing_is_told(model: Path) -> None:
    report = Report()
    read = serde.to_relay(model, converters={"com.acme::Scale": lambda ctx, x, *, by: x})
    serde.from_relay(read, format="onnx", converters={"nn.conv2d": plain}, report=report)
    assert report.notes == ["no node is an operator of converters that write: nn.conv2d"]


def test_relay_needs_no_functions(model: Path, tmp_path: Path) -> None:
    """Relay holds every operator as it is: functions that write are for other formats."""
    read = serde.to_relay(model, converters={"com.acme::Scale": lambda ctx, x, *, by: x})
    path = serde.from_relay(
        read, format="relay", path=tmp_path / "net.relay", converters={"nn.relu": plain}
    )
    assert "nn.relu(%x)" in path.read_text()
    report = Report()
    serde.to_relay(path, keep_unknown=True, converters={"nn.relu": plain}, report=report)
    assert report.notes == ["no node is an operator of converters: nn.relu"]


def test_what_is_kept_goes_through_a_relay_file(model: Path, tmp_path: Path) -> None:
    told = {"scale": "float32[2,3]"}
    path = tmp_path / "net.relay"
    serde.convert(model, path, keep_unknown=True, result_types=told)
    serde.convert(path, tmp_path / "again.onnx")
    nodes = onnx.load(tmp_path / "again.onnx").graph.node
    assert [(n.domain, n.op_type) for n in nodes] == [("com.acme", "Scale"), ("", "Relu")]


@pytest.mark.parametrize("strict", [False, True])
def test_a_relay_file_of_either_spelling_keeps_it(
    model: Path, tmp_path: Path, strict: bool
) -> None:
    told = {"scale": "float32[2,3]"}
    path = tmp_path / "net.relay"
    serde.convert(model, path, keep_unknown=True, result_types=told, strict=strict)
    found = serde.to_relay(path)
    kept = serde.to_relay(model, keep_unknown=True, result_types=told)
    assert relay.structural_equal(found.mod, kept.mod)
