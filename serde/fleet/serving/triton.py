"""Entries of Triton's model repositories: a model, its configuration and its labels."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.api import convert
from serde.bridge.quantizing import QuantizeOptions
from serde.conversion.prepare import PrepareOptions
from serde.conversion.signature import takes_options
from serde.core import Report
from serde.errors import FormatError, OptionError
from serde.fleet.serving.config import (
    Port,
    config_text,
    differences,
    is_batched,
    labelled,
    make_config,
    read_config,
)
from serde.fleet.serving.naming import find_format, known_labels, local_folder, served_name, telling
from serde.io.atomic import naming
from serde.io.contained import read_small
from serde.io.staging import staging_directory

__all__ = ["CONFIG", "LABELS", "write_triton"]

CONFIG: Final = "config.pbtxt"
LABELS: Final = "labels.txt"

_DEFAULT_BATCH: Final = 8
_CONFIG_BYTES: Final = 2**20
_TAKEN: Final = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
_ATTEMPTS: Final = 100

PathLike = str | os.PathLike[str]


@takes_options(
    reads="source_format", writes="target_format", passes=PrepareOptions, after=QuantizeOptions
)
def write_triton(
    source: AnyValue,
    repository: PathLike,
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    model_name: str | None = None,
    class_labels: Sequence[str] | PathLike | None = None,
    max_batch_size: int = _DEFAULT_BATCH,
    dynamic_batching: bool = False,
    report: Report | None = None,
    **options: AnyValue,
) -> Path:
    """Convert a model into a repository that Triton serves.

    A model that is new there appears whole. Of one that is there, the next version appears; its
    configuration stays as it is, and must say of inputs and outputs what the new version has.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        repository: The folder of the repository; made if it is not there.
        source_format: Name of the source's format; recognised by content if left out.
        target_format: Name of a format that Triton runs; ONNX if left out.
        model_name: What the model is called; as the source's file if left out.
        class_labels: Class labels in the order of the scores, or a file with one on each line; if
            left out, those that the model has, or those of ``synset.txt`` beside it.
        max_batch_size: Most rows of a batch, where the first axis of all inputs and outputs is
            one open length; 0 leaves that axis to those who ask.
        dynamic_batching: Let the server gather requests to batches.
        report: Filled with all of it.
        options: What :func:`serde.convert` takes besides, such as ``check=True``.

    Returns:
        The folder of the version that was written.

    Raises:
        CheckError: The check failed; nothing is written.
        FormatError: The bytes are malformed, or a configuration that is there.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: Triton cannot run such a model, or the configuration that is there says
            otherwise.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    report = Report() if report is None else report
    bridge = find_format("served_file", target_format, "Triton")
    served = bridge.served_file()
    if served is None or max_batch_size < 0:
        raise OptionError(f"max_batch_size: expected 0 or more, found {max_batch_size}")
    root = local_folder(repository, "a model repository")
    entry = root / served_name(source, model_name)
    _check_entry(root, entry)
    with _staging(root, entry) as staging, naming(entry, staging.parent):
        version = staging / "1"
        version.mkdir()
        with telling(entry, version / served.filename):
            convert(
                source, version / served.filename, source_format=source_format,
                target_format=bridge.name, report=report, **options,
            )  # fmt: skip
        inputs, outputs = (_ports(report, kind) for kind in ("inputs", "outputs"))
        most = _most_rows([*inputs, *outputs], max_batch_size, report)
        labels = known_labels(source, class_labels, report.facts)
        found = labelled(outputs, len(labels), batched=most > 0)
        scores = _scores(found, labels, report, must=class_labels is not None)
        config = make_config(
            entry.name, served, inputs, outputs, max_batch_size=most,
            dynamic_batching=dynamic_batching and most > 0, labels=dict.fromkeys(scores, LABELS),
        )  # fmt: skip
        texts = {CONFIG: config_text(config)}
        if scores:
            texts[LABELS] = "".join(f"{label}\n" for label in labels)
        placed = _place(root, entry, staging, config, texts)
    report.facts["path"] = str(placed)
    return placed


def _most_rows(ports: Sequence[Port], asked: int, report: Report) -> int:
    """Return how many rows a batch has at most; where a model has no batch, a note says why."""
    if asked > 0 and not is_batched(ports):
        why = "not every input and output begins with one open length that has a name"
        report.notes.append(f"Triton forms no batches: {why}")
        return 0
    return asked


def _scores(
    found: Sequence[str], labels: Sequence[str], report: Report, *, must: bool
) -> Sequence[str]:
    """Return the outputs that are scores of labelled classes; where none is, that is told."""
    if labels and not found:
        told = f"no output has one score for each of {len(labels)} class labels"
        if must:
            raise OptionError(f"class_labels: {told}")
        report.notes.append(told)
    return found if labels else ()


def _ports(report: Report, kind: str) -> list[Port]:
    """Return the inputs or outputs that a conversion wrote."""
    found = []
    for each in report.facts[kind]:
        if each["shape"] is None or each["dtype"] is None:
            raise OptionError(f"{each['name']}: Triton must be told its shape, which is not known")
        found.append(Port(each["name"], tuple(each["shape"]), each["dtype"]))
    return found


def _check_entry(root: Path, entry: Path) -> None:
    """Refuse a place where there is something else than a model of Triton's."""
    if root.exists() and not root.is_dir():
        raise OptionError(f"{root}: expected a model repository, found a file")
    if not root.exists() and not root.parent.is_dir():
        raise OptionError(f"{root}: the directory {root.parent} does not exist")
    if (root / CONFIG).exists():
        raise OptionError(f"{root}: is a model; name the repository that it is in")
    if not os.path.lexists(entry):
        return
    if not entry.is_dir():
        raise OptionError(f"{entry}: expected a folder of Triton's, found a file")
    if os.listdir(entry) and not (entry / CONFIG).is_file():
        raise OptionError(f"{entry}: has no {CONFIG}, so that it is not known what it serves")


@contextmanager
def _staging(root: Path, entry: Path) -> Iterator[Path]:
    """Yield a directory in which an entry is made, on the file system of the repository.

    Triton looks at every folder of a repository, and at every folder with a number in a model's.
    So a new model is made beside the repository, where that is possible, a version in the model.
    """
    parent = entry
    if not entry.is_dir():
        parent = root.parent if not root.is_dir() or _is_beside(root) else root
    with staging_directory(parent) as staging:
        yield staging


def _is_beside(root: Path) -> bool:
    """Whether the folder around a repository is on its file system and can be written to."""
    same = root.stat().st_dev == root.parent.stat().st_dev
    return same and not os.path.ismount(root) and os.access(root.parent, os.W_OK)


def _place(
    root: Path, entry: Path, staging: Path, config: AnyValue, texts: Mapping[str, str]
) -> Path:
    """Put a finished version in place, with the rest of a model that is new."""
    if (entry / CONFIG).is_file():
        _check_config(entry, config, texts)
        return _place_version(entry, staging / "1")
    whole = staging / entry.name
    whole.mkdir()
    for name, text in texts.items():
        (whole / name).write_text(text, encoding="utf-8")
    (staging / "1").rename(whole / "1")
    root.mkdir(exist_ok=True)
    try:
        whole.rename(entry)
    except OSError as error:
        if error.errno in _TAKEN:
            raise OptionError(f"{entry}: another run has written it meanwhile; run again") from None
        raise
    return entry / "1"


def _check_config(entry: Path, config: AnyValue, texts: Mapping[str, str]) -> None:
    """Refuse a configuration that does not say what the new version is."""
    path = entry / CONFIG
    there = read_config(_read(path), os.fspath(path))
    found = differences(there, config)
    if found:
        raise OptionError(f"{path}: is another model's: {'; '.join(found)}")
    labels = entry / LABELS
    named = any(each.label_filename == LABELS for each in there.output)
    if LABELS in texts and named and labels.is_file() and _read(labels) != texts[LABELS]:
        raise OptionError(f"{labels}: the new version has other class labels")


def _read(path: Path) -> str:
    try:
        return read_small(path, _CONFIG_BYTES * 64).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("is no text", path=path) from error


def _place_version(entry: Path, made: Path) -> Path:
    """Rename a finished version to the next number that is free."""
    for _ in range(_ATTEMPTS):
        numbers = [int(each) for each in os.listdir(entry) if each.isascii() and each.isdigit()]
        place = entry / str(max(numbers, default=0) + 1)
        try:
            made.rename(place)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return place
    raise OptionError(f"{entry}: other runs took {_ATTEMPTS} numbers of versions; run again")
