"""What is done in the process of one model: its bytes are told apart, and it is converted."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import MAX_ARCHIVE_MEMBERS, Report
from serde.core.outcome import OUTCOMES, error_message, exit_code
from serde.engine.forked import forked_engines
from serde.errors import (
    ConverterBug,
    FormatError,
    MissingDependency,
    OptionError,
    UnsupportedModelError,
)
from serde.fleet.batching.looks import identity
from serde.fleet.batching.sandbox import has_landlock, restrict_model
from serde.fleet.stores.staging import Staged, stage

__all__ = ["CONVERT", "IDENTIFY", "PREPARE", "convert_model", "identify", "one_line", "prepare"]

CONVERT: Final = (__name__, "convert_model")
IDENTIFY: Final = (__name__, "identify")
PREPARE: Final = (__name__, "prepare")
"""Where the functions of this module stand, for whoever has them called."""

_SHOWN_REASONS: Final = 2


def convert_model(request: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Convert a model on local disk; return how that ended, in the words of an outcome.

    Args:
        request: ``sources``, ``target``, ``to``, ``options`` of :func:`serde.convert`, ``known``
            (as in a job), ``scratch``, a directory for what is unpacked, ``folder``, from which
            relative paths are taken, ``sandbox``, and ``asks``: whether what the model names
            itself may still lie in a store. If so, ``wants`` of the answer says what.
    """
    report, before = Report(), len(sys.modules)
    answer: dict[str, AnyValue] = {"status": "done", "error": "", "content": "", "bytes_read": 0}
    try:
        if request["sandbox"] or (request["sandbox"] is None and has_landlock()):
            restrict_model(request)
        _convert(request, report, answer)
    except (Exception, KeyboardInterrupt) as error:
        answer |= {"status": _status(error, request), "error": one_line(error)}
        if answer["status"] == "out of memory":
            answer["error"] = "more memory is needed than it may take"
    new = islice(reversed(sys.modules), len(sys.modules) - before)
    modules = [name for name in new if name.startswith("serde.")][::-1]
    known = {"modules": modules, "engines": forked_engines()}
    return {**answer, "report": report.as_dict(), "loaded": known}


def _convert(request: Mapping[str, AnyValue], report: Report, answer: dict[str, AnyValue]) -> None:
    """Convert the model of a request; what is known meanwhile goes into `answer`."""
    from serde.api import convert

    options = _live(request["options"])
    with ExitStack() as stack:
        model = stack.enter_context(_staged(request, options))
        if request["asks"] and model.missing:
            answer |= {"status": "wants", "wants": _wanted(model)}
            return
        answer |= _known(model)
        if answer["content"] and answer["content"] == request["known"]:
            answer["status"] = "unchanged"
            return
        if model.packed:
            model = stack.enter_context(_staged(request, options, opens=True))
        target = Path(request["target"])
        target.parent.mkdir(parents=True, exist_ok=True)
        given = {**model.options, **options}
        report.notes.extend(model.notes)
        convert(model.source, target, target_format=request["to"], report=report, **given)
    answer["bytes_written"] = report.facts["bytes"]


def _wanted(model: Staged) -> list[str]:
    """Return what a model that was fetched needs besides."""
    if len(model.missing) > MAX_ARCHIVE_MEMBERS:
        count = f"more than {MAX_ARCHIVE_MEMBERS:,} files of external data"
        raise FormatError(f"expected a model, found {count}", path=model.paths[0])
    return sorted(model.missing)


def identify(request: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return what is to be known of a model whose conversion told nothing."""
    with _staged(request, _live(request["options"])) as model:
        return _known(model)


def _staged(
    request: Mapping[str, AnyValue], options: Mapping[str, AnyValue], *, opens: bool = False
) -> AbstractContextManager[Staged]:
    os.chdir(request["folder"])  # The process that this one was forked from began in another.
    # Files of converters are run when they are read: that is left to the conversion.
    plain = {name: value for name, value in options.items() if name != "converters"}
    form = options.get("source_format")
    scratch = request["scratch"]
    return stage(request["sources"], scratch, format=form, options=plain, opens=opens)


def _known(model: Staged) -> dict[str, AnyValue]:
    """Return what its files look like, before they are read, and the digest of their bytes.

    Of a model that is found by what its files have in common, no file is known here.
    """
    files = [identity(os.fspath(path)) for _, path in model.files]
    content = model.digest if files else ""
    return {"files": files, "content": content, "bytes_read": model.nbytes}


def _live(options: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return options as :func:`serde.convert` takes them of such as JSON holds."""
    given = dict(options)
    if isinstance(given.get("tolerance"), Mapping):
        from serde.checking.tolerance import Tolerance

        given["tolerance"] = Tolerance(**given["tolerance"])
    return given


def _status(error: BaseException, request: Mapping[str, AnyValue]) -> str:
    """Return the word for an error; a source or disk that is not there says nothing of a model."""
    cause: BaseException | None = error
    while cause is not None:  # It may have struck in code of others, who made another error of it.
        if isinstance(cause, MemoryError):
            return "out of memory"
        cause = cause.__cause__ or cause.__context__
    missing = not any(os.path.lexists(source) for source in request["sources"])
    if isinstance(error, OptionError) and missing:
        return "unreachable"
    if isinstance(error, OSError) and not isinstance(error, MissingDependency):
        return "unreachable"
    return OUTCOMES[exit_code(error)]


def one_line(error: BaseException) -> str:
    """Return what an error says in one line; of gaps, the first reasons."""
    if isinstance(error, UnsupportedModelError):
        return _gaps(error.report)
    if exit_code(error) == 70 and not isinstance(error, ConverterBug):
        return _joined(f"{type(error).__name__}: {error}")
    return _joined(error_message(error))


def _joined(text: str) -> str:
    return " ".join(text.split()) or "no reason is given"


def _gaps(report: Report) -> str:
    reasons = dict.fromkeys(f"{issue.op}: {issue.reason}" for issue in sorted(report.issues))
    shown = list(reasons)[:_SHOWN_REASONS]
    more = len(reasons) - len(shown)
    told = "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])])
    return _joined(f"{report.coverage}: {told}")


def prepare(request: Mapping[str, AnyValue]) -> None:
    """Make a process ready from which others are forked: import, and convert a net of our own.

    Args:
        request: ``modules`` to import, ``engines`` to import where they are installed, and
            ``ways``: pairs of formats between which models will be converted.
    """
    import importlib
    from contextlib import suppress

    from serde.core.optional import require

    for name in request["modules"]:
        with suppress(Exception):
            importlib.import_module(name)
    for name in request["engines"]:
        with suppress(Exception):
            require(name)
    for source, target in request["ways"]:
        with suppress(Exception):
            _warm(source, target)


def _warm(source: str, target: str) -> None:
    """Convert a small net, by which tables are made that each child would make again."""
    import tempfile

    from serde.api import convert, from_relay
    from serde.bridge.formats import get_bridge

    with tempfile.TemporaryDirectory() as folder:
        suffixes = [get_bridge(each).suffixes[0] for each in (source, target)]
        given, made = (Path(folder) / f"{i}{suffix}" for i, suffix in enumerate(suffixes))
        from_relay(_net(), format=source, path=given)
        shapes: AnyValue = {"input_shapes": {"data": (1, 3, 8, 8)}}
        convert(given, made, source_format=source, target_format=target, **shapes)


def _net() -> AnyValue:
    """Return a net of the commonest operators."""
    import numpy as np

    import serde.relay as relay

    data = relay.var("data", shape=(1, 3, 8, 8))
    shapes = {"conv": (4, 3, 3, 3), "bias": (4,), "dense": (5, 64)}
    weights = {name: relay.var(name, shape=shape) for name, shape in shapes.items()}
    x = relay.nn.conv2d(data, weights["conv"], padding=(1, 1), channels=4, kernel_size=(3, 3))
    x = relay.nn.relu(relay.nn.bias_add(x, weights["bias"]))
    x = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
    x = relay.nn.dense(relay.nn.batch_flatten(x), weights["dense"])
    main = relay.Function([data, *weights.values()], relay.nn.softmax(x))
    return relay.IRModule.from_expr(main), {
        name: np.ones(shape, np.float32) for name, shape in shapes.items()
    }
