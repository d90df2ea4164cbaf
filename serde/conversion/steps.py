"""The steps of every conversion: options bound, a source read, a target written."""

from __future__ import annotations

import logging
import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import PIVOT, target_bridge
from serde.bridge.options import bind_options, option_names, refuse_options
from serde.bridge.ranges import bounded_axes
from serde.conversion.locations import Locations
from serde.conversion.prepare import CutOptions, PrepareOptions, cut_out, prepare, with_wanted_ends
from serde.core import Report, dataclass, expect, pause_garbage_collection, replace
from serde.core.limits import budget, spending
from serde.errors import OptionError, raise_if_refused
from serde.io.atomic import check_files
from serde.relay.ir import Call, OpDef, RelayModel, post_order
from serde.walk.export_fallback import hold_for_user
from serde.walk.metadata import note_lost
from serde.walk.user_converters import with_directions

__all__ = [
    "Conversion", "PathLike", "bind_all", "bind_passes", "call_anywhere",
    "check_mapping", "convert_source", "find_target", "load_model", "may_lie_elsewhere",
    "prepare_for", "read_model", "source_paths", "target_check", "wanted_part", "write_model",
]  # fmt: skip

PathLike = str | os.PathLike[str]

_LOG = logging.getLogger(__name__)


def call_anywhere(
    function: Callable[..., AnyValue],
    args: Sequence[AnyValue],
    kwargs: Mapping[str, AnyValue],
    locations: Locations,
) -> AnyValue:
    """Call a function of local files with what may be URLs, or archives with more than a model.

    Args:
        function: The function.
        args: What it was given by position.
        kwargs: What it was given by name.
        locations: Which of its parameters are models.
    """
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    storage_options = given.pop("storage_options", None)
    elsewhere = may_lie_elsewhere(*(given.get(name) for name in (*locations.reads, "params")))
    # What is written is no archive that would have to be opened.
    elsewhere |= bool(locations.writes) and "://" in str(given.get(locations.writes))[:64]
    if not elsewhere or len(args) > len(names) or next(iter(locations.reads)) not in given:
        return function(*args, **kwargs)
    from serde.fleet.stores.access import call_elsewhere

    return call_elsewhere(function, given, locations, storage_options)


_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".mar", ".model", ".task", ".zip")
_MANIFEST = os.path.join("MAR-INF", "MANIFEST.json")


def may_lie_elsewhere(*paths: AnyValue) -> bool:
    """Whether a source or target may be a URL, or an archive with more than a model in it.

    Plain local paths are told apart without loading what :mod:`serde.fleet.stores` needs.
    """
    return any(map(_may_lie_elsewhere, paths))


def _may_lie_elsewhere(path: AnyValue) -> bool:
    if isinstance(path, (tuple, list)):
        return may_lie_elsewhere(*path)
    if not isinstance(path, (str, os.PathLike)):
        return False
    text = os.fspath(path)
    if not isinstance(text, str) or text[:1] in ("{", "#", "["):  # Bytes, or a model's own text.
        return False
    if "://" in text[:64] or text.endswith(_ARCHIVES):
        return True
    return os.path.isfile(os.path.join(text, _MANIFEST))


def check_mapping(path: PathLike, target: PathLike, known: Sequence[Path]) -> None:
    """Refuse a place of the tensor mapping that cannot be written, or that is a model's."""
    check_files([path], sources=known)
    if os.path.abspath(path) == os.path.abspath(target):
        raise OptionError(f"{os.fspath(path)}: is also the target")


def target_check(
    writer: AnyBridge, path: PathLike, options: AnyValue, known: Sequence[Path], overwrite: bool
) -> Callable[[Sequence[Path]], None]:
    """Refuse a target that cannot be written; return what does so once the source is loaded.

    What is there already may be a file that is found beside the source, which is the better
    message; so that is looked at only then.
    """

    def check(files: Sequence[Path]) -> None:
        writer.check_target(path, options, sources=[*known, *files], overwrite=overwrite)

    if not os.path.lexists(path):
        check(())
    return check


@spending()
def read_model(
    bridge: AnyBridge,
    source: AnyValue,
    params: AnyValue,
    options: AnyValue,
    report: Report,
    check_target: Callable[[Sequence[Path]], None] | None = None,
) -> tuple[AnyValue, RelayModel]:
    """Load a model and return it with what it is as Relay; in between, check the target."""
    native, stored = load_model(bridge, source, params, options, report)
    if check_target is not None:
        check_target(bridge.files(native))
    report.title = f"{bridge.name} -> relay"
    report.facts["source"] = bridge.name
    report.before = Counter(bridge.operators(native))
    report.nodes = sum(report.before.values())
    budget().grow(nodes=report.nodes)
    with report.stage(report.title):
        expect("nodes", report.nodes)
        if options.input_shapes or options.fix_inputs:
            from serde.conversion.opening import read_as_told

            model = read_as_told(bridge, native, options, report)
        else:
            model = bridge.to_relay(native, options, report=report)
    if options.labels and not model.meta.labels:
        model = replace(model, meta=replace(model.meta, labels=options.labels))
    if not stored:
        budget().grow(nbytes=sum(weight.held for weight in model.params.values()))
    return native, model


def load_model(
    bridge: AnyBridge, source: AnyValue, params: AnyValue, options: AnyValue, report: Report
) -> tuple[AnyValue, int]:
    """Load a model; return it and the bytes of its files, by which the budget grows."""
    with report.stage("load"):
        native = bridge.load(source, params, options)
    stored = sum(map(_stored, bridge.files(native)))
    budget().grow(nbytes=stored)
    return native, stored


def _stored(path: Path) -> int:
    """Return the bytes of a file; none of what is no file, such as the text of a live object."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def prepare_for(
    bridge: AnyBridge, model: RelayModel, passes: PrepareOptions, options: AnyValue, report: Report
) -> RelayModel:
    if bridge.name != PIVOT:
        model = hold_for_user(model, options.converters, bridge.name, report)
        raise_if_refused(report)
    return prepare(
        model,
        passes,
        keep_globals=options.keeps_functions,
        keep_training=options.keeps_training,
        keep_lists=options.keeps_lists,
        keep_stored_weights=options.keeps_stored_weights,
        report=report,
    )


@spending()
def write_model(
    bridge: AnyBridge, model: RelayModel, passes: PrepareOptions, options: AnyValue, report: Report
) -> AnyValue:
    with report.stage("optimize"):
        model = prepare_for(bridge, model, passes, options, report)
    if not bridge.keeps_metadata:
        note_lost(model.meta, bridge.title, report)
    report.title = f"relay -> {bridge.name}"
    report.facts["target"] = bridge.name
    report.nodes = sum(
        isinstance(node, Call) and isinstance(node.op, OpDef) for node in post_order(model.main)
    )
    with report.stage(report.title):
        expect("nodes", report.nodes)
        native = bridge.from_relay(model, options, report=report)
    report.after = Counter(bridge.operators(native))
    report.facts["parameters"] = sum(weight.size for weight in model.params.values())
    return native


@dataclass(frozen=True, slots=True)
class Conversion:
    """A model between its source and its target.

    Attributes:
        reader: The source's format.
        files: Those that the source was read from.
        loaded: The source as it was loaded; None if it is not kept.
        model: The source as Relay.
        chosen: The part of it that was wanted.
        part: The same, under the names that were.
        writer: The target's format.
        native: The target; None before it is written.
        options: Options of the target's format.
        passes: Options of the passes between.
    """

    reader: AnyBridge
    files: Sequence[Path]
    loaded: AnyValue
    model: RelayModel
    chosen: RelayModel
    part: RelayModel
    writer: AnyBridge
    native: AnyValue
    options: AnyValue
    passes: PrepareOptions

    @property
    def is_whole(self) -> bool:
        """Whether the part is all of the model."""
        return self.chosen is self.model

    def written(self, passes: PrepareOptions, report: Report) -> Conversion:
        """Return the conversion with the target as other options of the passes make it."""
        native = write_model(self.writer, self.part, passes, self.options, report)
        return replace(self, native=native, passes=passes)


@pause_garbage_collection()
def convert_source(
    reader: AnyBridge,
    writer: AnyBridge,
    source: AnyValue,
    params: AnyValue,
    options: tuple[AnyValue, PrepareOptions, AnyValue],
    report: Report,
    check_target: Callable[[Sequence[Path]], None] | None = None,
    *,
    keep_source: bool = False,
    choose: Callable[[Conversion], PrepareOptions] | None = None,
) -> Conversion:
    """Read a model and return it with what it is in another format.

    Args:
        reader: The source's format.
        writer: The target's format.
        source: As the public functions take it.
        params: Weights that belong to it.
        options: Those of the source, of the passes and of the target: what :func:`bind_all` gives.
        report: Filled with stages and gaps.
        check_target: Called with the files of the source once it is loaded.
        keep_source: Whether the source is to run.
        choose: Gives the options of the passes that are found by running the source.
    """
    own, passes, bound = options
    keep_source = keep_source or choose is not None
    loaded, model = read_model(reader, source, params, own, report, check_target)
    files = reader.files(loaded)
    loaded = loaded if keep_source else None
    chosen = cut_out(model, passes)
    part = with_wanted_ends(chosen, passes)
    made = Conversion(reader, files, loaded, model, chosen, part, writer, None, bound, passes)
    return made.written(passes if choose is None else choose(made), report)


def wanted_part(model: RelayModel, options: CutOptions) -> RelayModel:
    """Return the part of a model that is wanted, under the names that are."""
    return with_wanted_ends(cut_out(model, options), options)


def find_target(format: str | None, path: PathLike | None) -> AnyBridge:
    if format is None and path is None:
        raise OptionError("name a format, or a path whose suffix tells it")
    return target_bridge("" if path is None else path, format)


def bind_passes(
    options: Mapping[str, AnyValue], writer: AnyBridge
) -> tuple[PrepareOptions, dict[str, AnyValue]]:
    passes, rest = bind_options(PrepareOptions, options)
    own = {*option_names(writer.export_options)}
    return passes, {**rest, **{name: value for name, value in options.items() if name in own}}


def bind_all(
    reader: AnyBridge,
    writer: AnyBridge,
    options: Mapping[str, AnyValue],
    *,
    bound: Sequence[type[AnyValue]] = (),
    run: bool = False,
) -> tuple[AnyValue, PrepareOptions, AnyValue]:
    """Return the options of the source, of the passes and of the target, which can be met.

    With `run` the target is to be run too; `bound` has classes of options bound before.
    """
    if reader.import_options is None:
        raise OptionError(f"format {reader.name} cannot be read")
    if writer.export_options is None:
        raise OptionError(f"format {writer.name} cannot be written")
    if "converters" in options:
        only_written = reader.name == PIVOT
        found = with_directions(options["converters"], only_written=only_written)
        options = {**options, "converters": found}
    _LOG.debug("formats: from %s to %s", reader.name, writer.name)
    own, not_own = bind_options(reader.import_options, options)
    passes, not_passes = bind_options(PrepareOptions, options)
    target, not_target = bind_options(writer.export_options, options)
    classes = [reader.import_options, PrepareOptions, writer.export_options, *bound]
    unknown = [name for name in not_own if name in not_passes and name in not_target]
    refuse_options(unknown, option_names(*classes))
    asked = getattr(target, "ranges", {}).items()
    bounded_axes(own.input_shapes, {name: (each.lower, each.upper) for name, each in asked})
    target.require(run=run)
    return own, passes, target


def source_paths(source: AnyValue) -> list[Path]:
    """Return the files that `source` names, which a target must not replace."""
    items = source if isinstance(source, (tuple, list)) else [source]
    return [Path(item) for item in items if isinstance(item, (str, os.PathLike))]
