"""``serde edit``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serde.command.commands.convert import OTHER_OPTIONS, command as convert
from serde.command.flag import Flag
from serde.command.parameters import FormatCommand
from serde.errors import OptionError

if TYPE_CHECKING:
    from serde.conversion.prepare import Edit
    from serde.relay.ir import RelayModel

__all__ = ["command"]

_ORDER = "serde.edits"
"""What in a context's ``meta`` tells the flags in their order on the command line."""
_EDITS = (
    ("rename", "OLD=NEW,...", "Inputs, outputs, weights and nodes."),
    ("normalize", "NAME:mean=M,std=S,...", "Take images: scale, layout, dtype, channels."),
    ("insert-cast", "NAME:DTYPE", "Give an end another dtype."),
    ("nms", "BOXES[,SCORES][:...]", "Suppress boxes: max, iou, score, layout, format."),
    ("merge", "MODEL[:OUT=IN,...]", "Give outputs to another model's inputs."),
    ("replace", "PATTERN=WITH", "One subgraph by another: texts or files."),
    ("set-metadata", "KEY=VALUE", "A further fact; KEY= takes one away."),
    ("description", "TEXT", "What the model is, for people."),
)
_FLAGS = {
    f"--{name}": Flag([f"--{name}"], multiple=True, metavar=metavar, help=text)
    for name, metavar, text in _EDITS
}


class _EditCommand(FormatCommand):
    """A command that knows in which order its edits were told."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ORDER] = [flag for arg in args if (flag := arg.partition("=")[0]) in _FLAGS]
        return super().parse_args(ctx, args)


def _parse(flag: str, text: str) -> Edit:
    """Return the edit that a flag tells."""
    from serde.bridge.input_types import parse_texts
    from serde.relay import transform

    # What is edited may have colons of its own: ``data:0:mean=0.5``.
    found = re.fullmatch(r"(.+?):([^:=]+=.*)", text, re.DOTALL)
    head, tail = found.groups() if found is not None else (text, "")
    match flag:
        case "--rename":
            return partial(transform.rename, names=parse_texts(flag, "OLD=NEW")(text.split(",")))
        case "--normalize":
            return _with_keywords(flag, tail, partial(transform.normalize_input, name=head))
        case "--insert-cast":
            name, _, dtype = text.rpartition(":")
            return partial(transform.insert_cast, name=name, dtype=dtype)
        case "--nms":
            names = dict(zip(("boxes", "scores"), head.split(",", 1), strict=False))
            return _with_keywords(flag, tail, partial(transform.suppress_boxes, **names))
        case "--merge":
            pairs = parse_texts(flag, "OLD=NEW")(tail.split(",") if tail else ())
            return partial(_merge, head, {name: output for output, name in pairs.items()})
        case "--replace":
            texts = re.split(r"(?<=\})\s*=|=(?=\s*fn\b)|^([^={]+)=", text, maxsplit=1)
            parts = [each.strip() for each in texts if each]
            if len(parts) != 2:
                raise OptionError(f"{flag} {text}: expected files or functions, PATTERN=WITH")
            pattern, wanted = (
                each if each[:2] == "fn" else Path(each).read_text("utf-8", "replace")
                for each in parts
            )
            return partial(transform.replace_pattern, pattern=pattern, replacement=wanted)
        case "--set-metadata":
            key, _, value = text.partition("=")
            return partial(transform.set_metadata, entries={key: value})
        case _:
            return partial(transform.set_metadata, description=text)


def _merge(path: str, inputs: Mapping[str, str], model: RelayModel) -> RelayModel:
    """Return a model and what follows it; files of MXNet do not say the shapes of inputs."""
    from serde.api import to_relay
    from serde.relay import transform
    from serde.relay.ir import tensor_type

    values = transform.find_values(model, "merge", [*inputs.values()])[1]
    shapes = {name: tensor_type(value).shape for name, value in zip(inputs, values, strict=True)}
    return transform.merge_models(model, to_relay(path, input_shapes=shapes), inputs or None)


def _with_keywords(flag: str, text: str, function: partial[RelayModel]) -> Edit:
    """Return a function with the keywords that a text tells; numbers where these are taken."""
    known = inspect.signature(function).parameters
    found: dict[str, Any] = {}
    for part in re.split(r",(?=[^,=]*=)", text) if text else ():
        key, _, value = part.partition("=")
        if key not in known or key in {"model", *function.keywords, *found}:
            raise OptionError(f"{flag} {text}: unknown, or given twice: {key}")
        found[key] = value
        if re.match("int|float", known[key].annotation):
            try:
                numbers = [float(Fraction(each)) for each in value.split(",")]
            except (ValueError, ZeroDivisionError) as error:
                raise OptionError(f"{flag} {text}: {key}: {error}") from None
            found[key] = numbers if len(numbers) > 1 else numbers[0]
    return partial(function, **found)


@click.pass_context
def _edit(ctx: click.Context, /, **options: Any) -> None:
    """Change a model and write it, in its own format or another.

    Edits are made in the order in which they stand, after --inputs and --outputs have cut out a
    part, and before --rename-input, --rename-output and what convert does.
    """
    from serde.bridge.formats import source_bridge, target_bridge

    texts = {flag: iter(options.pop(str(each.name))) for flag, each in _FLAGS.items()}
    told = [(flag, next(texts[flag], None)) for flag in ctx.meta[_ORDER]]
    merged = [text for flag, text in told if flag == "--merge" and text is not None]
    edits = [_parse(flag, text) for flag, text in told if text is not None]
    paths = options["paths"]
    if len(paths) > 1 and any(text.partition(":")[0] == paths[-1] for text in merged):
        raise click.UsageError(f"--merge {paths[-1]}: is the target, too")
    if options["target_format"] is None and len(paths) > 1:
        try:
            target_bridge(paths[-1])
        except OptionError:
            reader = source_bridge(paths[0], options["source_format"])
            options["target_format"] = reader.name
    ctx.meta[OTHER_OPTIONS] = {"edits": edits}
    ctx.invoke(convert, **options)


command = _EditCommand(
    "edit",
    callback=_edit,
    help=_edit.__doc__,
    params=[convert.params[0], *_FLAGS.values(), *convert.params[1:-1]],
    reads=True,
    writes=True,
    examples=[
        "serde edit net.onnx net-u8.onnx --normalize data:scale=1/255,layout=NHWC,dtype=uint8",
        "serde edit yolo.onnx detector.onnx --nms output0:layout=NCB,format=center --check",
        "serde edit body.onnx net.onnx --merge head.onnx:features=x",
    ],
)
