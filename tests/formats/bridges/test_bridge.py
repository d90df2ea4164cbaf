"""Formats by name, by content, by suffix; formats of other packages, sound and broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.toy_format import (
    BRIDGE,
    MODEL,
    TOY,
    OnlyRead,
    OnlyWritten,
    ToyBridge,
    ToyEntryPoint,
    ToyExportOptions,
)

import serde
import serde.bridge.formats
from serde.api import to_relay
from serde.bridge.contract import Bridge
from serde.bridge.formats import format_names, get_bridge, source_bridge, target_bridge
from serde.bridge.options import ExportOptions, ImportOptions, bind_options
from serde.errors import CheckError, FormatError, OptionError

BROKEN = ToyEntryPoint("broken", "elsewhere:BRIDGE", ImportError("no module named gizmo"))


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> list[ToyEntryPoint]:
    """The entry points that are installed; no format of the package itself."""
    installed = [TOY]
    monkeypatch.setattr(serde.bridge.formats, "FORMATS", {})
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: list(installed))
    return installed


@pytest.fixture
def toy_file(tmp_path: Path) -> Path:
    path = tmp_path / "model.any"
    path.write_text(json.dumps(MODEL))
    return path


def test_a_format_of_another_package_is_found_by_name(plugins: list[ToyEntryPoint]) -> None:
    assert format_names() == ["toy"]
    assert get_bridge("toy") is BRIDGE


def test_a_source_is_recognised_by_content(plugins: list[ToyEntryPoint], toy_file: Path) -> None:
    assert source_bridge(toy_file) is BRIDGE
    assert source_bridge([toy_file]) is BRIDGE


def test_a_target_is_recognised_by_suffix(plugins: list[ToyEntryPoint]) -> None:
    assert target_bridge("somewhere/m.toy") is BRIDGE


def test_a_broken_plug_in_is_no_obstacle_for_others(
    plugins: list[ToyEntryPoint], toy_file: Path
) -> None:
    plugins.insert(0, BROKEN)
    assert source_bridge(toy_file) is BRIDGE
    assert target_bridge("m.toy") is BRIDGE


def test_a_broken_plug_in_says_so_when_it_is_asked_for(plugins: list[ToyEntryPoint]) -> None:
    plugins.append(BROKEN)
    with pytest.raises(OptionError, match=r"broken: elsewhere:BRIDGE .*no module named gizmo"):
        get_bridge("broken")


def test_a_broken_plug_in_is_named_where_nothing_fits(
    plugins: list[ToyEntryPoint], tmp_path: Path
) -> None:
    plugins.append(BROKEN)
    path = tmp_path / "unknown.bin"
    path.write_bytes(b"\x00\x01")
    with pytest.raises(FormatError, match=r"no format recognises it.*no module named gizmo"):
        source_bridge(path)


def test_an_entry_point_that_is_no_bridge_is_refused(plugins: list[ToyEntryPoint]) -> None:
    plugins.append(ToyEntryPoint("odd", "elsewhere:odd", object()))
    with pytest.raises(OptionError, match="odd: expected a Bridge"):
        get_bridge("odd")


def test_a_bridge_without_a_method_is_no_bridge() -> None:
    class Partial(Bridge[Any, ImportOptions, ExportOptions]):
        name = "partial"

    with pytest.raises(TypeError, match=r"Partial.* abstract methods? .*operators.*to_relay"):
        Partial()


def test_a_method_without_its_options_says_what_is_missing(toy_file: Path) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'options'"):
        BRIDGE.load(toy_file, None)  # type: ignore[call-arg]


def test_a_method_that_does_not_take_what_it_is_given_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"Forgetful\.to_relay does not take report, as Bridge says"
    ):

        class Forgetful(ToyBridge):
            def to_relay(self, model: Any, options: Any) -> Any:  # type: ignore[override]
                return None


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("title", None),
        ("suffixes", ".toy"),
        ("import_options", ExportOptions),
        ("export_options", {"indent": 2}),
    ],
)
def test_a_bridge_with_a_wrong_attribute_is_refused(
    plugins: list[ToyEntryPoint], attribute: str, value: Any
) -> None:
    plugins.clear()
    odd = type("Odd", (ToyBridge,), {attribute: value})()
    plugins.append(ToyEntryPoint("toy", "elsewhere:odd", odd))
    with pytest.raises(OptionError, match=f"format toy: Odd lacks {attribute}"):
        get_bridge("toy")


def test_a_bridge_has_the_name_that_it_is_registered_by(plugins: list[ToyEntryPoint]) -> None:
    plugins.append(ToyEntryPoint("game", "support.toy_format:BRIDGE", BRIDGE))
    with pytest.raises(OptionError, match="format game: the name of its bridge is 'toy'"):
        get_bridge("game")


@pytest.fixture
def one_way(plugins: list[ToyEntryPoint], toy_file: Path) -> Path:
    """Formats that lack a direction are installed besides the toy; a file to convert."""
    plugins.clear()
    for cls in (OnlyRead, OnlyWritten):
        plugins.append(ToyEntryPoint(cls.name, f"elsewhere:{cls.name}", cls()))
    return toy_file


def test_a_format_that_is_only_read_converts_to_one_that_is_only_written(
    one_way: Path, tmp_path: Path
) -> None:
    report = serde.convert(one_way, tmp_path / "m.out", source_format="onlyread")
    assert report.facts["source"] == "onlyread"
    assert json.loads((tmp_path / "m.out").read_text())["outputs"] == MODEL["outputs"]


def test_a_format_that_is_only_read_is_never_written(one_way: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="format onlyread cannot be written"):
        serde.convert(one_way, tmp_path / "m.toy", target_format="onlyread")
    assert not (tmp_path / "m.toy").exists()


def test_a_format_that_is_only_written_is_never_read(one_way: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="format onlywritten cannot be read"):
        serde.to_relay(one_way, format="onlywritten")
    with pytest.raises(CheckError, match="no engine runs files of format onlywritten"):
        serde.convert(one_way, tmp_path / "m.out", check=True)
    assert not (tmp_path / "m.out").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("digits", "many", "digits: expected 'all' or 'few', found 'many'"),
        ("indent", "2", "indent: expected an integer, found '2'"),
        ("indent", True, "indent: expected an integer, found True"),
        ("sloppy", "no", "sloppy: expected True or False, found 'no'"),
        ("comments", (1,), r"comments: expected names, found \(1,\)"),
        ("allow", 3, "allow: expected names, found 3"),
    ],
)
def test_a_value_that_an_option_does_not_take(option: str, value: Any, message: str) -> None:
    with pytest.raises(OptionError, match=f"^{message}$"):
        bind_options(ToyExportOptions, {option: value})


@pytest.mark.parametrize(
    ("option", "value", "bound"),
    [
        ("indent", np.int64(2), 2),
        ("indent", None, None),
        ("sloppy", 1, True),
        ("allow", "float16-overflow", frozenset({"float16-overflow"})),
        ("allow", ["float16-overflow"], frozenset({"float16-overflow"})),
        ("comments", ["a", "b"], ("a", "b")),
    ],
)
def test_a_value_in_any_spelling(option: str, value: Any, bound: Any) -> None:
    assert getattr(bind_options(ToyExportOptions, {option: value})[0], option) == bound


def test_two_packages_with_one_name_are_an_error(plugins: list[ToyEntryPoint]) -> None:
    plugins.append(ToyEntryPoint("toy", "elsewhere:BRIDGE", BRIDGE))
    with pytest.raises(OptionError, match=r"toy is claimed by support\S+ and elsewhere:BRIDGE"):
        get_bridge("toy")


def test_a_package_may_not_take_the_name_of_an_own_format(
    plugins: list[ToyEntryPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serde.bridge.formats, "FORMATS", {"toy": "support.toy_format"})
    with pytest.raises(OptionError, match=r"toy is claimed by support\.toy_format and support"):
        format_names()


def test_other_packages_are_not_looked_at_for_a_format_that_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def scan(group: str) -> list[ToyEntryPoint]:
        raise AssertionError("scanned")

    monkeypatch.setattr("importlib.metadata.entry_points", scan)
    assert get_bridge("onnx").name == "onnx"
    text = tmp_path / "net.relay"
    text.write_text('#[version = "0.0.5"]\ndef @main(%x: float32) { %x }\n', encoding="utf-8")
    assert source_bridge(text).name == "relay"
    assert target_bridge("net.onnx").name == "onnx"
    assert target_bridge("net.tgz").name == target_bridge("net.nnef.tar.gz").name == "nnef"


def test_other_packages_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[str] = []

    def scan(group: str) -> list[ToyEntryPoint]:
        scans.append(group)
        return []

    monkeypatch.setattr("importlib.metadata.entry_points", scan)
    assert format_names() == format_names()
    assert scans == ["serde.formats"]


def test_an_own_format_is_imported_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serde.bridge.formats, "FORMATS", {"toy": "support.toy_format"})
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    assert get_bridge("toy") is BRIDGE


def test_an_unknown_name_lists_those_there_are(plugins: list[ToyEntryPoint]) -> None:
    with pytest.raises(OptionError, match="unknown format 'tyo'; known: toy"):
        get_bridge("tyo")


def test_a_missing_file_is_called_so(plugins: list[ToyEntryPoint], tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no such file or model"):
        source_bridge(tmp_path / "absent.toy")


def test_an_object_that_no_format_takes(plugins: list[ToyEntryPoint]) -> None:
    with pytest.raises(OptionError, match=r"no format accepts float; name one \(toy\)"):
        source_bridge(1.5)


def test_an_unknown_suffix(plugins: list[ToyEntryPoint]) -> None:
    with pytest.raises(OptionError, match=r"m.xyz: no format is known by this suffix.*toy"):
        target_bridge("m.xyz")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strict_name": True}, r"unknown option strict_name\. Did you mean strict_names\?$"),
        ({"formt": "toy"}, r"unknown option formt\. Did you mean format\?$"),
        ({"input_shape": [1]}, r"unknown option input_shape\. Did you mean input_shapes\?$"),
        ({"colour": 1, "input": "x"}, r"option colour; unknown option input\. .* inputs\?$"),
        ({"volume": 11}, r"option volume$"),
    ],
)
def test_a_mistyped_option_is_told_the_nearest(
    plugins: list[ToyEntryPoint], toy_file: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        to_relay(toy_file, **given)


NET = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) { nn.relu(%x) }'


def test_an_option_of_another_format_is_told_to_be_that(tmp_path: Path) -> None:
    (tmp_path / "m.relay").write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) { nn.relu(%x) }'
    )
    with pytest.raises(OptionError, match="option opset: it is one of writing onnx, which takes"):
        serde.convert(tmp_path / "m.relay", tmp_path / "m-symbol.json", opset=17)


def test_what_is_mistyped_is_told_before_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"unknown option formt\. Did you mean format\?"):
        serde.export_model(tmp_path / "no.onnx", formt="onnx")
    with pytest.raises(OptionError, match=r"unknown option tarket\. Did you mean target\?"):
        serde.convert(tmp_path, tarket="o.onnx")  # type: ignore[call-arg]


def test_a_format_is_named_in_any_case(plugins: list[ToyEntryPoint]) -> None:
    assert get_bridge("TOY") is get_bridge("toy")
    with pytest.raises(OptionError, match="unknown format 'Rellay'"):
        get_bridge("Rellay")


def test_options_are_split_from_the_rest() -> None:
    own, rest = bind_options(ToyExportOptions, {"indent": 2, "opset": 17})
    assert own == ToyExportOptions(indent=2)
    assert rest == {"opset": 17}


def test_importing_serde_loads_no_plug_in(tmp_path: Path) -> None:
    info = tmp_path / "gizmo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gizmo\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[serde.formats]\nbroken = gizmo_module:BRIDGE\n")
    (tmp_path / "gizmo_module.py").write_text("raise RuntimeError('loaded')\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import serde, serde.bridge.formats\n"
        "assert 'gizmo_module' not in sys.modules\n"
        "assert 'broken' in serde.bridge.formats.format_names()\n"
        "try:\n    serde.bridge.formats.get_bridge('broken')\n"
        "except serde.OptionError as error:\n    print(error)\n"
    )
    root = Path(serde.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "format broken: gizmo_module:BRIDGE does not load: loaded\n"


def test_the_suffix_names_who_says_what_is_wrong(
    plugins: list[ToyEntryPoint], tmp_path: Path
) -> None:
    path = tmp_path / "m.toy"
    path.write_bytes(b"")
    assert source_bridge(path) is BRIDGE


@pytest.mark.parametrize(
    ("given", "shapes"),
    [
        ({"x": (1, "N", -1, None, "?")}, {"x": (1, "N", "?", "?", "?")}),
        ({"x": [np.int64(2), 0]}, {"x": (2, 0)}),
        (("N", 3), {"": ("N", 3)}),
        ({"x": ()}, {"x": ()}),
    ],
)
def test_shapes_in_any_spelling(given: Any, shapes: dict[str, Any]) -> None:
    assert ImportOptions(input_shapes=given).input_shapes == shapes


@pytest.mark.parametrize(
    "given", [{"x": (1.5, 2)}, {"x": (-2,)}, {"x": "1,2"}, {"x": 3}, [("N", 3)], 7]
)
def test_what_is_no_shape(given: Any) -> None:
    with pytest.raises(OptionError, match=r"input_shapes: (x|the input): expected a "):
        ImportOptions(input_shapes=given)


@pytest.mark.parametrize("given", [np.int32, np.dtype("int32"), "int32"])
def test_dtypes_in_any_spelling(given: Any) -> None:
    assert ImportOptions(input_dtypes={"x": given}).input_dtypes == {"x": "int32"}
    assert ImportOptions(input_dtypes=given).input_dtypes == {"": "int32"}


@pytest.mark.parametrize("given", ["int33", None, 5])
def test_what_is_no_dtype(given: Any) -> None:
    with pytest.raises(OptionError, match="input_dtypes: x: expected a dtype"):
        ImportOptions(input_dtypes={"x": given})
