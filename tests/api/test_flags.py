"""Flags of the command line: how values are spelled, and those made from option classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click
import pytest
from support.toy_format import ToyExportOptions, ToyImportOptions

from serde.command.flags import (
    generated_options,
    parse_dims,
    parse_dtypes,
    parse_lengths,
    parse_shapes,
)
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
    options = {o.name: o for o in generated_options(classes, taken=["allow"])}
    assert sorted(options) == ["comments", "digits", "indent", "sloppy", "strict_names"]
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
