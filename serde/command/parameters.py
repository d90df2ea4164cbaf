"""What the commands take: flags written by hand, and those made from the formats' options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serde.command.base import Command, help_all_option
from serde.command.flag import (
    READING_THEME,
    Flag,
    complete_formats,
    complete_limits,
    complete_lossy_steps,
    complete_paths,
)
from serde.core.limits import Limits

if TYPE_CHECKING:
    from serde.checking.tolerance import Tolerance

__all__ = [
    "FormatCommand", "check_flag", "checking_flags", "checking_options", "custom_flag", "flag",
    "given_options", "printing_flags", "quantizing_flags", "reading", "reading_flags",
    "reading_options", "report_flag", "source_and_target", "storage_options", "themed",
    "writing_flag",
]  # fmt: skip

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_BY_HAND = (
    "input_shapes", "input_dtypes", "allow", "converters", "keep_unknown", "result_types",
    "custom_ops", "limits", "calibration",
)  # fmt: skip


def flag(*names: str, also: Sequence[str], **kwargs: Any) -> Decorator:
    """Return a decorator that adds a flag with other spellings, which are the API's keywords."""
    return click.option(*names, cls=Flag, aliases=also, **kwargs)


class FormatCommand(Command):
    """A command that also has the flags of all formats, made when they are first needed."""

    def __init__(self, *args: Any, reads: bool, writes: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._directions = (reads, writes)
        self._generated: dict[tuple[str, ...], list[click.Option]] = {}
        self._formats: tuple[str, ...] | None = None
        self.params.append(help_all_option())

    @property
    def generated(self) -> list[click.Option]:
        """The flags made from the options of the formats that are looked at."""
        from serde.bridge.formats import format_names

        names = tuple(format_names()) if self._formats is None else self._formats
        if names and names not in self._generated:
            from serde.api import convert
            from serde.command.flags import generated_options

            reads, writes = self._directions
            wanted = {"read": reads, "written": writes, "": writes}
            public: Any = convert
            groups = [each for each in public.groups(names) if wanted[each.direction]]
            classes = [(each.format, each.cls) for each in groups]
            self._generated[names] = generated_options(classes, taken=_BY_HAND)
        return self._generated.get(names, [])

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command, those of the formats before the common ones."""
        own = super().get_params(ctx)
        first = next(i for i, p in enumerate(own) if p.name in ("report", "json"))
        return [*own[:first], *self.generated, *own[first:]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give ``--check`` its number where it stands without one.

        Formats are looked for only where a flag is none of all commands', and those of other
        packages only where it is none of this package's.
        """
        from serde.bridge.formats import FORMATS

        given = {arg.partition("=")[0] for arg in args if arg.startswith("--")}
        for names in () if ctx.resilient_parsing or "-h" in args else ((), tuple(sorted(FORMATS))):
            self._formats = names
            params = self.get_params(ctx)
            known = {each for p in params for each in (*p.opts, *p.secondary_opts)} | {"--check"}
            known |= {each for p in params if isinstance(p, Flag) for each in p.aliases}
            if given <= known - {"--help", "--help-all"}:
                break
        else:
            self._formats = None
        words = {
            name: each.type.choices
            for each in self.get_params(ctx)
            if isinstance(each.type, click.Choice) and "usual" in each.type.choices
            for name in (*each.opts, *getattr(each, "aliases", ()))
        }
        return super().parse_args(ctx, _complete_flags(args, words))


def _complete_flags(args: Sequence[str], words: Mapping[str, Sequence[str]]) -> list[str]:
    """Return `args` with ``--check`` and ``--check 3`` as ``--check=1`` and ``--check=3``.

    Likewise flags such as ``--int8``, behind which a word may stand.
    """
    out: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return [*out, arg, *rest]
        if arg == "--check":
            number = rest.pop(0) if rest and rest[0].isdecimal() else "1"
            arg = f"--check={number}"
        elif arg in words:
            word = rest.pop(0) if rest and rest[0] in words[arg] else "usual"
            arg = f"{arg}={word}"
        out.append(arg)
    return out


def storage_options(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of file systems that stand on the command line."""
    if not options["storage_options"]:
        return None
    from serde.fleet.stores.store import parse_storage_options

    return parse_storage_options(options["storage_options"])


def reading(ctx: click.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a function takes that reads a model, of what stands on the command line."""
    return {
        "report": ctx.obj.report,
        "storage_options": storage_options(options),
        **reading_options(options),
        **given_options(ctx, options),
    }


def given_options(ctx: click.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the formats' options that stand on the command line, and only those."""
    generated = ctx.command.generated if isinstance(ctx.command, FormatCommand) else ()
    names = [option.name or "" for option in generated]
    source = click.core.ParameterSource.COMMANDLINE
    return {name: options[name] for name in names if ctx.get_parameter_source(name) is source}


def reading_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of reading that have flags written by hand."""
    from serde.command.flags import parse_dtypes, parse_shapes

    given: dict[str, Any] = {}
    if options["input_shape"]:
        given["input_shapes"] = parse_shapes(options["input_shape"])
    if options["input_dtype"]:
        given["input_dtypes"] = parse_dtypes(options["input_dtype"])
    if options["allow"]:
        given["allow"] = frozenset(options["allow"])
    if options["limit"]:
        given["limits"] = Limits.read(options["limit"])
    if options["converters"]:
        from serde.walk.user_converters import read_converter_files

        given["converters"] = read_converter_files(options["converters"])
    if options.get("calibration") is not None:
        given["calibration"] = options["calibration"]
    if options["keep_unknown"]:
        given["keep_unknown"] = True
    if options["result_types"]:
        from serde.walk.result_types import parse_result_types

        given["result_types"] = parse_result_types(options["result_types"])
    if options.get("custom_ops"):
        names = (each.strip() for text in options["custom_ops"] for each in text.split(","))
        given["custom_ops"] = frozenset(name for name in names if name)
    return given


def checking_options(options: Mapping[str, Any]) -> dict[str, Any]:
    from serde.command.flags import parse_lengths

    return {
        "tolerance": _tolerance(options["check_atol"], options["check_rtol"]),
        "dims": parse_lengths(options["check_dim"]),
        "check_data": options["check_data"],
        "yardstick": options["yardstick"] == "on",
    }


def _tolerance(atol: float | None, rtol: float | None) -> Tolerance | None:
    if atol is None and rtol is None:
        return None
    from serde.checking.tolerance import Tolerance

    return Tolerance(atol, rtol)


def source_and_target(paths: Sequence[str]) -> tuple[Any, str]:
    if len(paths) < 2:
        raise click.UsageError("expected a source and a target")
    return one_source(paths[:-1]), paths[-1]


def one_source(paths: Sequence[str]) -> Any:
    """Return what a model is read from: a path, or several of one model."""
    return paths[0] if len(paths) == 1 else list(paths)


def _stack(*decorators: Decorator) -> Decorator:
    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def themed(title: str, *decorators: Decorator) -> Decorator:
    """Return a decorator that adds flags which the help groups under a title."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        known = len(getattr(function, "__click_params__", ()))
        function = _stack(*decorators)(function)
        for param in function.__click_params__[known:]:  # type: ignore[attr-defined]
            param.theme = title
        return function

    return apply


_store_flag = themed(
    "Stores",
    flag(
        "--storage-option", "storage_options", also=["--storage-options"], multiple=True,
        metavar="KEY=VALUE",
        help="Option of a URL's file system, such as anon=true; dots lead into mappings.",
    ),
)  # fmt: skip
"""Decorator with the flag of sources and targets that are URLs."""
_input_flags = _stack(
    flag(
        "--input-shape", also=["--input-shapes"], multiple=True, metavar="NAME:SHAPE",
        help="Shape of an input, data:1,3,224,224 or, of the only one, 1x3x224x224; N, ? or -1 for "
        "a dynamic dimension, N=1..8 for one with bounds, 32*H for multiples.",
    ),
    flag(
        "--input-dtype", also=["--input-dtypes"], multiple=True, metavar="NAME:DTYPE",
        help="dtype of an input that is not float32: tokens:int32.",
    ),
    click.option(
        "--allow", multiple=True, metavar="NAME", shell_complete=complete_lossy_steps,
        help="Allow a lossy step by its name; --help-all lists the names.",
    ),
)  # fmt: skip
_rare_input_flags = themed(
    READING_THEME,
    flag(
        "--limit", also=["--limits"], multiple=True, metavar="NAME=NUMBER",
        shell_complete=complete_limits,
        help="What the conversion may take beyond what the source holds, such as nodes=10M: nodes, "
        "elements, constants, terms, turns, depth or values.",
    ),
    click.option(
        "--converters", multiple=True, metavar="FILE", shell_complete=complete_paths,
        help="Python file with converters of yours for operators; it is run.",
    ),
    click.option(
        "--keep-unknown", is_flag=True,
        help="Keep operators that nobody can convert as serde.foreign.",
    ),
    click.option(
        "--result-types", multiple=True, metavar="NODE=TYPES",
        help="Types of what such a node gives: act=float32[1,10]; of several: "
        "act=float32[1,10],int64[1].",
    ),
)  # fmt: skip


def reading_flags(keyword: str, *, stores: bool = True) -> Decorator:
    """Return the flags of a source, whose format the API names with `keyword`, and of stores."""
    spelled = f"--{keyword.replace('_', '-')}"
    source = flag(
        "--from",
        "source_format",
        also=[spelled],
        metavar="FORMAT",
        shell_complete=complete_formats,
        help="Format of the source.",
    )
    beside = (_store_flag,) if stores else ()
    return _stack(source, _input_flags, _rare_input_flags, *beside)


def check_flag(target: str, result: str) -> Decorator:
    """Return the flag that asks for a check of `result` before `target` is put in place."""
    return click.option(
        "--check",
        type=click.IntRange(min=1),
        metavar="[N]",
        help=f"Run source and {result} on N seeded inputs (1) before {target} is put in place.",
    )


custom_flag = themed(
    "Writing any format",
    click.option(
        "--custom-ops", multiple=True, metavar="A,B",
        help="Operators of other frameworks, kept as serde.foreign, to write as custom ones.",
    ),
)  # fmt: skip
quantizing_flags = click.option(
    "--calibration", type=click.Path(path_type=Path), metavar="FILE|DIR",
    help="Inputs to measure activations and accuracy on: what --check-data takes.",
)  # fmt: skip
writing_flag = flag(
    "--to",
    "target_format",
    also=["--target-format"],
    metavar="FORMAT",
    shell_complete=complete_formats,
    help="Format of the target.",
)
checking_flags = themed(
    "The check",
    click.option(
        "--check-atol", "--atol", "check_atol", type=click.FloatRange(min=0),
        help="Absolute tolerance; by dtype and scale of the output if left out.",
    ),
    click.option(
        "--check-rtol", "--rtol", "check_rtol", type=click.FloatRange(min=0),
        help="Tolerance relative to each element; by dtype if left out.",
    ),
    flag(
        "--check-dim", also=["--dims"], multiple=True, metavar="NAME=LENGTH",
        help="Length of a dynamic dimension in the check, of one without a name data[2]=64; if "
        "left out, what is declared, or the first usual ones at which the source runs.",
    ),
    click.option(
        "--check-data", type=click.Path(path_type=Path), metavar="FILE|DIR",
        help="Inputs to check with instead of seeded ones: .npy, .npz, an image, or a directory "
        "with one of these (or test_data_set_0) for each sample.",
    ),
    click.option(
        "--yardstick", type=click.Choice(["on", "off"]), default="on",
        help="Measure outputs that do not agree at once by the exact result, in float64.",
    ),
)  # fmt: skip
printing_flags = _stack(
    click.option("--json", is_flag=True, help="Print one JSON object on stdout."),
    click.option(
        "-v", "--verbose", is_flag=True,
        help="Print what is logged, and the traceback of an error.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    themed(
        "Printing",
        click.option(
            "--log-level", type=click.Choice(["debug", "info", "warning", "error"]),
            help="Print what is logged from this level on.",
        ),
        click.option("--no-color", is_flag=True, help="No colours, as with NO_COLOR."),
    ),
)  # fmt: skip
report_flag = click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a report, as JSON or Markdown by its suffix.",
)
