"""What app developers ask of inputs and outputs: images, class labels, lengths.

The options of Core ML and TFLite hold what is defined here, made of what a caller of the API or
of the command line gives.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, Final, SupportsIndex, TypeVar

from serde.core.records import dataclass, field
from serde.errors import FormatError, OptionError
from serde.io.contained import read_small

__all__ = [
    "CLASS_LABELS", "COLORS", "DEFAULT_RANGE", "IMAGES", "Image", "Range", "enumerated_from",
    "image_facts", "image_from", "images_from", "known_image", "labels_from", "output_images_from",
    "parse_enumerated", "parse_file", "parse_images", "parse_layouts", "parse_ranges",
    "parse_texts", "ranges_from", "texts_from", "texts_option",
]  # fmt: skip

COLORS = {
    "GRAYSCALE": ("gray",),
    "GRAYSCALE_FLOAT16": ("gray",),
    "RGB": ("red", "green", "blue"),
    "BGR": ("blue", "green", "red"),
}
"""Channels of an image in their order, by the name of its colour layout."""

IMAGE_FORMS = "data  data:BGR  data:BGR,scale=1/127.5,bias=-1  data:scale=0.017,red_bias=-2.1"
RANGE_FORMS = "N:1:8 (from 1 to 8)  N:1:8:4 (4 by default)"
SHAPE_FORMS = "data:1,3,224,224, once for each shape"

Value = TypeVar("Value")
_LABELS_BYTES = 2**24
"""Longest file of class labels: some 200,000 of them."""


@dataclass(frozen=True, slots=True)
class Image:
    """How an image becomes the tensor that a network takes: ``scale * pixels + bias``.

    Attributes:
        color_layout: One of :data:`COLORS`.
        scale: One factor, or one for each channel in the order of the layout.
        bias: One for each channel in that order.
    """

    color_layout: str = "RGB"
    scale: tuple[float, ...] = (1.0,)
    bias: tuple[float, ...] = (0.0, 0.0, 0.0)

    @property
    def channels(self) -> int:
        """Number of its channels."""
        return len(COLORS[self.color_layout])

    @property
    def dtype(self) -> str:
        """The dtype of its tensor."""
        return "float16" if self.color_layout == "GRAYSCALE_FLOAT16" else "float32"

    @property
    def is_plain(self) -> bool:
        """Whether the network takes the pixels as they are."""
        return set(self.scale) == {1.0} and not any(self.bias)


def known_image(extra: Mapping[str, str], name: str) -> Image | None:
    """Return what facts of a model say of an input or output, if it is an image.

    ``NAME.color_space`` is its colour layout; ``NAME.scale`` and ``NAME.bias`` are there where the
    model takes no pixels but ``scale * pixels + bias``.
    """
    layout = extra.get(f"{name}.color_space", "")
    if layout not in COLORS:
        return None
    plain = Image(layout, bias=(0.0,) * len(COLORS[layout]))
    try:
        scale, bias = (
            tuple(map(float, extra[f"{name}.{fact}"].split(","))) for fact in ("scale", "bias")
        )
    except (KeyError, ValueError):
        return plain
    return Image(layout, scale, bias) if len(scale) == len(bias) == plain.channels else plain


def image_facts(name: str, image: Image) -> dict[str, str]:
    """Return the facts that :func:`known_image` reads."""
    facts = {f"{name}.color_space": image.color_layout}
    if not image.is_plain:
        scale = image.scale * (image.channels // len(image.scale))
        facts[f"{name}.scale"] = ",".join(map(repr, scale))
        facts[f"{name}.bias"] = ",".join(map(repr, image.bias))
    return facts


@dataclass(frozen=True, slots=True)
class Range:
    """The lengths that a flexible dimension may have, and the one that it has by default."""

    lower: int
    upper: int
    default: int


DEFAULT_RANGE = Range(1, 1024, 1)
"""Lengths of a flexible dimension of which nothing is said; an ML Program wants an upper bound."""


def image_from(given: Any, where: str = "images") -> Image:
    """Return an image made of a colour layout, or of a mapping of it, scales and biases.

    Raises:
        OptionError: It is neither, or a value does not fit the colour layout.
    """
    if isinstance(given, Image):
        return given
    if isinstance(given, str):
        given = {"color_layout": given}
    if not isinstance(given, Mapping):
        raise OptionError(
            f"{where}: expected a colour layout or a mapping such as "
            f"{{'color_layout': 'BGR', 'scale': 1 / 255, 'bias': (0, 0, 0)}}, found {given!r}"
        )
    values = dict(given)
    layout = layout_from(values.pop("color_layout", "RGB"), where)
    colors = COLORS[layout]
    numbers = {}
    for name, neutral in (("scale", 1.0), ("bias", 0.0)):
        each = _numbers(values.pop(name, neutral), f"{where}: {name}", len(colors))
        named = {color: values.pop(f"{color}_{name}", None) for color in colors}
        if any(value is not None for value in named.values()):
            each = each * (len(colors) // len(each))
            each = tuple(
                default if named[color] is None else _number(named[color], f"{where}: {color}")
                for color, default in zip(colors, each, strict=True)
            )
        numbers[name] = each
    if values:
        raise OptionError(f"{where}: {min(values)}: no such property of a {layout} image")
    bias = numbers["bias"] * (len(colors) // len(numbers["bias"]))
    return Image(layout, numbers["scale"], bias)


def layout_from(given: Any, where: str) -> str:
    """Return a colour layout by its name.

    Raises:
        OptionError: There is no such layout.
    """
    name = str(getattr(given, "name", given)).upper()
    if name not in COLORS:
        raise OptionError(f"{where}: expected one of {', '.join(COLORS)}, found {given!r}")
    return name


def _numbers(given: Any, where: str, channels: int) -> tuple[float, ...]:
    if isinstance(given, (list, tuple)) or hasattr(given, "__array__"):
        found = tuple(_number(each, where) for each in given)
        if len(found) not in (1, channels):
            raise OptionError(f"{where}: expected 1 or {channels} numbers, found {len(found)}")
        return found
    return (_number(given, where),)


def _number(given: Any, where: str) -> float:
    parts = given.split("/", 1) if isinstance(given, str) else [given]
    try:
        value = float(parts[0])
        return value / float(parts[1]) if len(parts) == 2 else value
    except (TypeError, ValueError, ZeroDivisionError):
        raise OptionError(f"{where}: expected a number, found {given!r}") from None


def images_from(given: Any, option: str = "images") -> dict[str, Image]:
    """Return images by input; a name, or several, stands for RGB images as they are.

    Raises:
        OptionError: It is neither a mapping nor names, or an image is none.
    """
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Mapping):
        if not isinstance(given, Iterable):
            raise OptionError(f"{option}: expected names, or images by name, found {given!r}")
        given = dict.fromkeys(given, "RGB")
    return {name: image_from(each, f"{option}: {name}") for name, each in given.items()}


def output_images_from(given: Any) -> dict[str, Image]:
    """Return images by output; a name, or several, stands for RGB images.

    Raises:
        OptionError: One is scaled or biased.
    """
    found = images_from(given, "output_images")
    for name, image in found.items():
        if not image.is_plain:
            raise OptionError(f"output_images: {name}: Core ML does not scale images that come out")
    return found


def ranges_from(given: Mapping[str, Any]) -> dict[str, Range]:
    """Return ranges by the name of a dimension, made of (lower, upper) or (lower, upper, default).

    Raises:
        OptionError: A range is none, or its default lies outside.
    """
    if not isinstance(given, Mapping):
        raise OptionError(f"ranges: expected ranges by name, found {given!r}")
    return {name: _range(each, f"ranges: {name}") for name, each in given.items()}


def _range(given: Any, where: str) -> Range:
    if isinstance(given, Range):
        return given
    whole = isinstance(given, (list, tuple)) and len(given) in (2, 3)
    if not whole or not all(isinstance(each, SupportsIndex) for each in given):
        raise OptionError(f"{where}: expected (lower, upper) or with a default, found {given!r}")
    lower, upper, *default = map(index, given)
    found = Range(lower, upper, default[0] if default else lower)
    if not 1 <= found.lower <= found.default <= found.upper:
        raise OptionError(f"{where}: expected 1 <= lower <= default <= upper, found {given!r}")
    return found


def enumerated_from(given: Any) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return lists of shapes by input; a bare list, of the only input, has the name ``""``.

    Raises:
        OptionError: A list is empty, or holds what is no shape.
    """
    named = given if isinstance(given, Mapping) else {"": given}
    found = {}
    for name, shapes in named.items():
        where = f"enumerated_shapes: {name or 'the input'}"
        if not isinstance(shapes, (list, tuple)) or not shapes:
            raise OptionError(f"{where}: expected a list of shapes, found {shapes!r}")
        checked = []
        for shape in shapes:
            whole = isinstance(shape, (list, tuple))
            if not whole or not all(isinstance(d, SupportsIndex) and index(d) > 0 for d in shape):
                raise OptionError(f"{where}: expected a shape of lengths, found {shape!r}")
            checked.append(tuple(map(index, shape)))
        if len(set(checked)) < len(checked):
            raise OptionError(f"{where}: a shape is given twice")
        found[name] = tuple(checked)
    return found


def labels_from(given: Any, *, once: str = "") -> tuple[str | int, ...] | None:
    """Return class labels: those of a list, or those of a file with one on each line.

    Args:
        given: The list, or the path.
        once: Why no label may occur twice, if none may.

    Raises:
        OptionError: The file cannot be read as text, or labels are neither all text nor all
            integers, or one occurs twice.
    """
    if given is None:
        return None
    where = "class_labels"
    if isinstance(given, (str, os.PathLike)):
        where = f"class_labels: {os.fspath(given)}"
        given = _lines(Path(given), where)
    if not isinstance(given, Iterable):
        raise OptionError(f"{where}: expected labels or a file of them, found {given!r}")
    labels: list[str | int] = []
    for label in given:
        if isinstance(label, str):
            labels.append(label)
        elif isinstance(label, SupportsIndex) and not isinstance(label, bool):
            labels.append(index(label))
        else:
            raise OptionError(f"{where}: expected text or integers, found {label!r}")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise OptionError(f"{where}: expected text or integers, found both")
    places: dict[str | int, int] = {}
    for place, label in enumerate(labels):
        if once and label in places:
            raise OptionError(
                f"{where}: {label!r} is the label of classes {places[label]} and {place}; {once}"
            )
        places[label] = place
    return tuple(labels)


def _lines(path: Path, where: str) -> list[str]:
    """Return the lines of a text file, without empty ones at its end."""
    try:
        data = read_small(path, _LABELS_BYTES)
    except FormatError as error:
        told = str(error).replace(": cannot be read:", ":")
        raise OptionError(f"class_labels: {told}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise OptionError(f"{where}: line {line} is not UTF-8; save the file as UTF-8") from None
    lines = [line.strip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise OptionError(f"{where}: expected a label on each line, found none")
    if "" in lines:
        raise OptionError(f"{where}: line {lines.index('') + 1} is empty")
    return lines


def texts_from(given: Any, option: str) -> dict[str, str]:
    """Return texts by name.

    Raises:
        OptionError: It is no mapping of names to texts.
    """
    pairs = given.items() if isinstance(given, Mapping) else [(None, None)]
    if not all(isinstance(each, str) for pair in pairs for each in pair):
        raise OptionError(f"{option}: expected texts by name, found {given!r}")
    return dict(given)


def parse_images(values: Iterable[str]) -> dict[str, Image]:
    """Return images by input from values of ``--image``.

    Raises:
        OptionError: A value is none of the accepted forms.
    """
    found: dict[str, Image] = {}
    for value in values:
        name, _, text = value.rpartition(":")
        if not name:
            name, text = text, ""
        properties: dict[str, str] = {}
        for part in text.split(",") if text else ():
            key, equals, number = part.strip().partition("=")
            properties["color_layout" if not equals else key] = number if equals else key
        try:
            _add(found, name, image_from(properties, f"--image {value}"), "--image")
        except OptionError as error:
            raise OptionError(f"{error}; accepted forms: {IMAGE_FORMS}") from None
    return found


def parse_layouts(values: Iterable[str]) -> dict[str, Image]:
    """Return images by output from values of ``--output-image``, such as ``mask:GRAYSCALE``."""
    found: dict[str, Image] = {}
    for value in values:
        name, _, text = value.rpartition(":")
        if not name:
            name, text = text, "RGB"
        _add(found, name, image_from(text, f"--output-image {value}"), "--output-image")
    return found


def parse_ranges(values: Iterable[str]) -> dict[str, Range]:
    """Return ranges by dimension from values of ``--range``.

    Raises:
        OptionError: A value is none of the accepted forms.
    """
    found: dict[str, Range] = {}
    for value in values:
        name, *bounds = value.split(":")
        if not name or not all(each.isascii() and each.isdigit() for each in bounds):
            bounds = []
        if len(bounds) not in (2, 3):
            raise OptionError(f"--range {value}: expected one of: {RANGE_FORMS}")
        _add(found, name, _range(tuple(map(int, bounds)), f"--range {value}"), "--range")
    return found


def parse_enumerated(values: Iterable[str]) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return lists of shapes by input from values of ``--enumerated-shape``.

    Raises:
        OptionError: A value is no shape of an input.
    """
    found: dict[str, list[tuple[int, ...]]] = {}
    for value in values:
        name, _, text = value.rpartition(":")
        dims = [dim.strip() for dim in re.split("[,x]", text.strip(" []()"))]
        if not all(dim.isascii() and dim.isdigit() for dim in dims):
            raise OptionError(f"--enumerated-shape {value}: expected {SHAPE_FORMS}")
        found.setdefault(name, []).append(tuple(map(int, dims)))
    return enumerated_from(found)


def parse_texts(flag: str, form: str = "NAME=TEXT") -> Callable[[Iterable[str]], dict[str, str]]:
    """Return what makes texts by name of values of `flag`, such as ``data=The photo.``.

    Where `form` says that they are names, they are not empty.
    """

    def parse(values: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for value in values:
            name, equals, text = value.partition("=")
            if not (name and equals and (text or form.endswith("TEXT"))):
                raise OptionError(f"{flag} {value}: expected {form}")
            _add(found, name, text, flag)
        return found

    return parse


def texts_option(flag: str, help: str, form: str = "NAME=TEXT", metavar: str = "") -> Any:
    """Return the field of an option that holds texts by name, for a dataclass of options.

    Args:
        flag: Its flag, which is given once for each.
        help: What they are.
        form: As :func:`parse_texts` takes it.
        metavar: What the help says of their form, if not that.
    """
    parse = parse_texts(flag, form)
    told = {"flag": flag, "parse": parse, "metavar": metavar or form, "help": help}
    return field(default_factory=dict, metadata=told)


def parse_file(values: Iterable[str]) -> str | None:
    """Return the path in values of ``--class-labels``, of which one may be given."""
    paths = list(values)
    if len(paths) > 1:
        raise OptionError("--class-labels: is given twice")
    return paths[0] if paths else None


def _add(found: dict[str, Value], name: str, value: Value, flag: str) -> None:
    if name in found:
        raise OptionError(f"{flag}: {name} is given twice")
    found[name] = value


IMAGES: Final = {
    "accepts": Mapping[str, Image | str | Mapping[str, Any]] | Sequence[str],
    "flag": "--image",
    "parse": parse_images,
    "metavar": "NAME:LAYOUT,...",
    "help": "Input that is an image: data:BGR,scale=0.017,red_bias=-2.1 (RGB, BGR, "
    "GRAYSCALE, GRAYSCALE_FLOAT16; also bias for all channels).",
}
"""What is said of the option for images."""

CLASS_LABELS: Final = {
    "accepts": Sequence[str | int] | os.PathLike[str] | None,
    "parse": parse_file,
    "metavar": "FILE",
    "help": "File with a class label on each line; makes a classifier.",
}
"""What is said of the option for class labels."""
