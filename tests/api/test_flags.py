"""Flags of the command line: how values are spelled, and those made from option classes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click
import pytest
from support.toy_format import ToyExportOptions, ToyImportOptions

from serde.bridge.options import bind_options
from serde.command.cli import find_command
from serde.command.flags import (
    generated_options,
    parse_dims,
    parse_dtypes,
    parse_lengths,
    parse_shapes,
)
from serde.command.parameters import FormatCommand
from serde.conversion.prepare import PrepareOptions
from serde.coreml.options import CoremlExportOptions
from serde.errors import OptionError


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("1,3,112,112", (1, 3, 112, 112)),
        ("[1, 3, 112, 112]", (1, 3, 112, 112)),
        ("(1,3)", (1, 3)),
        ("(7,)", (7,)),
        ("1x3x112x112", (1, 3, 112, 112)),
        ("Nx3xHxW", ("N", 3, "H", "W")),
        ("?x3x-1", ("?", 3, "?")),
        ("N,3,?,-1", ("N", 3, "?", "?")),
        ("batch,max_len", ("batch", "max_len")),
        ("max_len", ("max_len",)),
        ("5", (5,)),
        ("0,3", (0, 3)),
        ("[]", ()),
    ],
)
def test_shapes_that_are_read(text: str, dims: tuple[Any, ...]) -> None:
    assert parse_dims(text) == dims
    assert parse_shapes([f"data:{text}"]) == {"data": dims}
    assert parse_shapes([text]) == {"": dims}
    assert parse_shapes([f"scope:0:{text}"]) == {"scope:0": dims}


@pytest.mark.parametrize(
    "value", ["data:", "", "1,,3", "data:1,3]", "data:[1,3", "data:-2,3", ":1,3", "1.5", "a b"]
)
def test_shapes_that_are_refused_show_the_accepted_forms(value: str) -> None:
    with pytest.raises(OptionError, match=r"data:1,3,224,224 .* \(a single input\)"):
        parse_shapes([value])


def test_an_input_has_one_shape() -> None:
    with pytest.raises(OptionError, match="data is given twice"):
        parse_shapes(["data:1,3", "data:2,3"])


def test_dtypes_by_name() -> None:
    assert parse_dtypes(["tokens:int32", "a:b:bfloat16"]) == {"tokens": "int32", "a:b": "bfloat16"}
    assert parse_dtypes(["int64"]) == {"": "int64"}


def test_lengths_by_name() -> None:
    assert parse_lengths(["N=4", "T=10"]) == {"N": 4, "T": 10}


def test_flags_are_made_from_the_options_of_formats() -> None:
    classes = [("toy", ToyImportOptions), ("toy", ToyExportOptions), ("", ToyExportOptions)]
    common = ["allow", "custom_ops", "keep_unknown"]
    options = {o.name: o for o in generated_options(classes, taken=common)}
    assert sorted(options) == [
        "comments",
        "digits",
        "fix_inputs",
        "indent",
        "sloppy",
        "strict_names",
    ]
    assert options["indent"].opts == ["--indent"]
    assert options["indent"].help == (
        "[toy] Columns that each level of the text moves in; none puts all on one line."
    )


def test_an_option_parses_its_texts_itself() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Options:
        lengths: Mapping[str, int] = field(
            default_factory=dict,
            metadata={"flag": "--length", "parse": parse_lengths, "metavar": "NAME=LENGTH"},
        )

    (option,) = generated_options([("toy", Options)])
    assert (option.opts, option.metavar) == (["--length"], "NAME=LENGTH")
    command = click.Command("run", params=[option], callback=lambda lengths: lengths)
    arguments = ["--length", "N=4", "--length", "T=1"]
    assert command.main(arguments, standalone_mode=False) == {"N": 4, "T": 1}
    with pytest.raises(OptionError, match="N is given twice"):
        command.main(["--length", "N=4", "--length", "N=1"], standalone_mode=False)


def test_one_name_with_two_types_is_an_error() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Other:
        indent: str = ""

    with pytest.raises(OptionError, match=r"option indent is .* for toy and .* for other"):
        generated_options([("toy", ToyExportOptions), ("other", Other)], taken=["allow"])


# A command keeps the option of its help, so a context must name it as the program does.
HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

SPELLINGS = [
    ("convert", "--fp16", "--float16", None),
    ("check", "--fp16", "--float16", None),
    ("convert", "--ranges", "--range", "N:1:8"),
    ("convert", "--rename-inputs", "--rename-input", "a=b"),
    ("convert", "--descriptions", "--describe", "a=text"),
    ("convert", "--source-format", "--from", "onnx"),
    ("convert", "--target-format", "--to", "onnx"),
    ("convert", "--input-shapes", "--input-shape", "1,3"),
    ("bisect", "--dims", "--check-dim", "N=4"),
    ("check", "--check-images", "--image", "a:RGB"),
    ("inspect", "--format", "--from", "onnx"),
    ("diff", "--left-format", "--from", "onnx"),
    ("diff", "--right-format", "--to", "onnx"),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("command", "keyword", "flag", "value"), SPELLINGS)
def test_a_flag_is_understood_as_its_keyword_is_spelled(
    command: str, keyword: str, flag: str, value: str | None
) -> None:
    found = find_command(command)
    paths = ["a", "b"]
    params = []
    for spelled in (keyword, flag):
        args = [spelled, *([] if value is None else [value]), *paths]
        params.append(found.make_context(command, args, **HELP).params)
    assert params[0] == params[1]
    assert params[0] != found.make_context(command, list(paths), **HELP).params
    context = click.Context(found, **HELP)
    assert not re.search(rf"{keyword}\b", found.get_help(context))


def test_every_keyword_of_a_format_is_a_flag() -> None:
    """Options that no flag can say are left out."""
    command = find_command("convert")
    assert isinstance(command, FormatCommand)
    for option in command.generated:
        args = [
            "a",
            "b",
            f"--{(option.name or '').replace('_', '-')}",
            *([] if option.is_flag else ["1"]),
        ]
        with contextlib.suppress(click.BadParameter, OptionError):
            command.make_context("convert", args, **HELP)


def test_an_option_is_understood_as_its_flag_is_spelled() -> None:
    passes, rest = bind_options(PrepareOptions, {"fp16": True, "rename_input": {"a": "b"}, "x": 1})
    assert passes == PrepareOptions(float16=True, rename_inputs={"a": "b"})
    assert rest == {"x": 1}
    options, _ = bind_options(CoremlExportOptions, {"range": {"N": (1, 8)}, "describe": {"a": "b"}})
    assert options == CoremlExportOptions(ranges={"N": (1, 8)}, descriptions={"a": "b"})


@pytest.mark.parametrize("names", [("float16", "fp16"), ("fp16", "float16")])
def test_an_option_in_two_spellings_is_an_error(names: tuple[str, str]) -> None:
    with pytest.raises(OptionError, match="float16 is given twice, once as fp16"):
        bind_options(PrepareOptions, dict.fromkeys(names, True))
