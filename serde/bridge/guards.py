"""What stands around the methods of every bridge: checks of options, and names in faults."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from serde.errors import FormatError, OptionError, Unsupported, refuse_model

__all__ = ["check_parameters", "guarded"]

_OPTIONS_OF: Mapping[str, str] = {
    "companions": "import_options",
    "load": "import_options",
    "to_relay": "import_options",
    "from_relay": "export_options",
    "expected": "export_options",
    "check_target": "export_options",
    "save": "export_options",
}
"""Methods that take options, and the attribute of a bridge with the class of these."""

_READING = frozenset(("detect", "load"))
"""Methods that read what they are given."""


def check_parameters(
    cls: type, function: Callable[..., AnyValue], declared: Callable[..., AnyValue]
) -> None:
    """Refuse a method that does not take what it is called with by name.

    Raises:
        TypeError: The class is none of a bridge.
    """
    taken = inspect.signature(function).parameters
    named = inspect.signature(declared).parameters.items()
    missing = [
        name
        for name, parameter in named
        if name not in taken and (parameter.kind is parameter.KEYWORD_ONLY or name == "options")
    ]
    if missing:
        method = f"{cls.__name__}.{function.__name__}"
        raise TypeError(f"{method} does not take {', '.join(missing)}, as Bridge says")


def _with_checked_options(
    function: Callable[..., AnyValue], attribute: str
) -> Callable[..., AnyValue]:
    """Return a method of a bridge that refuses options of another class than the format's."""
    place = list(inspect.signature(function).parameters).index("options")

    @functools.wraps(function)
    def checked(self: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        if "options" not in kwargs and len(args) < place:
            return function(self, *args, **kwargs)  # Which says what is missing.
        options = kwargs["options"] if "options" in kwargs else args[place - 1]
        wanted = getattr(self, attribute)
        if wanted is not None and not isinstance(options, wanted):
            found = type(options).__name__
            raise OptionError(f"format {self.name}: expected {wanted.__name__}, found {found}")
        try:
            return function(self, *args, **kwargs)
        except Unsupported as error:  # of the whole model, not of a node
            raise refuse_model(error, self.name, kwargs.get("report")) from error

    return checked


def _with_read_faults(function: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    """Return a method of a bridge that says of a file that cannot be read which one it is.

    A file that serde opens says so itself; not so one that a library of the format reads. One that
    is malformed because it is another kind of file is told to be that.
    """

    @functools.wraps(function)
    def reading(self: AnyValue, source: AnyValue, *args: AnyValue, **kw: AnyValue) -> AnyValue:
        try:
            return function(self, source, *args, **kw)
        except FormatError as error:
            from serde.io.other_files import describe_content

            found = None if error.path is None else describe_content(error.path)
            if found is None:
                raise
            message = f"expected a file of format {self.name}, found {found}"
            raise FormatError(message, path=error.path) from error
        except OSError as error:
            is_path = isinstance(source, (str, os.PathLike))
            path = error.filename if error.filename is not None or not is_path else source
            if path is None:
                raise
            raise FormatError(f"cannot be read: {error.strerror}", path=path) from error

    return reading


def guarded(function: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    """Return a method of a bridge with the guards that one of its name has."""
    name = function.__name__
    if name in _READING:
        function = _with_read_faults(function)
    if name in _OPTIONS_OF:
        function = _with_checked_options(function, _OPTIONS_OF[name])
    return function
