"""``serde edit``."""

from __future__ import annotations

import os
from typing import Any

import click

from serde.command.commands.convert import conversion_options, named_formats, show_written
from serde.command.flag import complete_paths
from serde.command.invocation import Invocation
from serde.command.parameters import (
    FormatCommand,
    check_flag,
    checking_flags,
    custom_flag,
    flag,
    mapping_flag,
    overwrite_flag,
    printing_flags,
    quantizing_flags,
    reading_flags,
    report_flag,
    source_and_target,
    store_flag,
    writing_flag,
)

__all__ = ["command"]

_ORDER = "serde.edits"
"""What in a context's ``meta`` tells the flags in their order on the command line."""

_EDITS = (
    ("rename", "OLD=NEW", "Another name for an input, output, weight or node."),
    ("normalize", "NAME:mean=M,std=S,...",
     "Put (x * scale - mean) / std before an input: scale=1/255, layout=NHWC (or HWC, NCHW, CHW), "
     "dtype=uint8 and channels=BGR tell what it is given; model_layout=NCHW, what it takes."),
    ("insert-cast", "NAME:DTYPE", "Another dtype for an input or output."),
    ("nms", "BOXES[,SCORES][:...]",
     "End in non-maximum suppression: max=100,iou=0.5,score=0.25,layout=NBC (or NCB) of the "
     "scores, format=corners (or center) of the boxes."),
    ("merge", "MODEL[:OUT=IN,...]",
     "Give outputs to the inputs of another model; those of one name if none are told."),
    ("replace", "PATTERN=WITH",
     "Put one function's body wherever another's is: files of Relay's text, or fn (%x) { ... }."),
    ("set-metadata", "KEY=VALUE", "A further fact about the model; KEY= takes it away."),
    ("description", "TEXT", "What the model is, for people."),
)  # fmt: skip


class _EditCommand(FormatCommand):
    """A command that knows in which order its edits were told."""

    def make_parser(self, ctx: click.Context) -> Any:
        """Return click's parser, which notes the order of what it reads."""
        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def note(args: list[str]) -> Any:
            found = parse(args=args)
            ctx.meta[_ORDER] = [param.name for param in found[2]]
            return found

        parser.parse_args = note
        return parser


def _edit_flags(function: Any) -> Any:
    for name, metavar, text in reversed(_EDITS):
        function = flag(f"--{name}", also=(), multiple=True, metavar=metavar, help=text)(function)
    return function


@click.command(
    "edit",
    cls=_EditCommand,
    reads=True,
    writes=True,
    examples=[
        "serde edit net.onnx net-u8.onnx --normalize data:mean=0.5,std=0.25,scale=1/255,"
        "layout=NHWC,dtype=uint8",
        "serde edit yolo.onnx detector.onnx --nms output0:layout=NCB,format=center,max=300 --check",
        "serde edit body.onnx net.onnx --merge head.onnx:features=x --rename prob=scores",
    ],
)
@click.argument("paths", nargs=-1, metavar="SOURCE... TARGET", shell_complete=complete_paths)
@_edit_flags
@reading_flags("source_format")
@writing_flag
@custom_flag
@check_flag("the target", "target")
@checking_flags
@quantizing_flags
@overwrite_flag
@mapping_flag
@store_flag
@report_flag
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Change a model and write it, in its own format if the target's name tells no other.

    What --inputs and --outputs cut out comes first, then edits in the order in which they stand
    here, then --rename-input, --rename-output and what convert does.
    """
    run: Invocation = ctx.obj
    run.configure(options)
    source, target = source_and_target(options["paths"])
    for text in options["merge"]:
        if os.path.exists(target) and text.startswith(target):
            raise click.UsageError(f"--merge {text}: is the target, too")
    from serde.api import edit
    from serde.command.edits import parse_edits

    names = {name.replace("-", "_") for name, _, _ in _EDITS}
    texts = {name: iter(options[name]) for name in names}
    edits = parse_edits([(name, next(texts[name])) for name in ctx.meta[_ORDER] if name in names])
    given = conversion_options(ctx, options)
    show_written(
        run,
        lambda: edit(source, target, edits, report=run.report, **named_formats(options), **given),
    )
