"""A written model, made smaller by its format's tool and measured against its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from copy import copy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any as AnyValue, Final

from serde.bridge.quantizing import QuantizeOptions
from serde.checking.accuracy import measure_accuracy, require_accuracy
from serde.checking.data import CheckData
from serde.checking.engines import read_target
from serde.checking.generating import Prompts
from serde.checking.perplexity import perplexity, read_text
from serde.checking.sensitivity import fewest, rank
from serde.checking.tolerance import CheckOptions
from serde.checking.written import WrittenModel
from serde.core import Array, Report, replace
from serde.errors import CheckError, OptionError, UnsupportedModelError
from serde.io.staging import staging_directory, stored_bytes
from serde.relay.ir import Call, Decompresses, RelayModel, Var, Work, has_trait, post_order

__all__ = ["Shrinking"]

_INTEGERS: Final = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (1, 2, 4, 8))
"""Of quantised weights."""


class _GivenSamples:
    """All samples of a user, one at a time."""

    def __init__(self, data: CheckData, model: RelayModel) -> None:
        self._data = data
        self._model = model

    def __len__(self) -> int:
        return len(self._data.sources)

    def __iter__(self) -> Iterator[Mapping[str, Array]]:
        return self._data.samples(self._model, {}, Report())


def _refuse_quantized(model: RelayModel, wanted: QuantizeOptions) -> None:
    """Refuse a model whose weights are integers already: another scale makes it no smaller."""
    found = {
        each.name_hint: None
        for node in post_order(model.main)
        if isinstance(node, Call) and has_trait(node, Decompresses, Work)
        for each in node.args
        if isinstance(each, Var) and each.name_hint in model.params
        if model.params[each.name_hint].dtype in _INTEGERS
    }
    if found:
        names = ", ".join(list(found)[:3]) + (", ..." if len(found) > 3 else "")
        raise OptionError(
            f"{', '.join(wanted.asked)}: the model is quantised already ({names}): "
            "make it smaller from the one in floats"
        )


class Shrinking:
    """Makes a written model smaller.

    Args:
        written: The model.
        wanted: What is to be made smaller, and how; its calibration as ``CheckData``.
        report: Filled with accuracy and facts.
        check: Inputs on which accuracy is told; without data those of the calibration, or else
            seeded ones.

    Raises:
        OptionError: The model is quantised already.
    """

    def __init__(
        self,
        written: WrittenModel,
        wanted: QuantizeOptions,
        report: Report,
        check: CheckOptions | None = None,
    ) -> None:
        _refuse_quantized(written.conversion.part, wanted)
        check = CheckOptions() if check is None else check
        self._written = written
        self._conversion = written.conversion
        self._wanted = wanted
        self._report = report
        self._calibration: CheckData | None = wanted.calibration
        if check.data is None and self._calibration is not None:
            check = replace(check, data=self._calibration, dims=None)
        self._check = check
        self._float_path = Path()
        self._text: Array | None = None
        if wanted.perplexity_text is not None:
            if not Prompts.reads_text(written.expected):
                raise OptionError("perplexity_text: the model does not generate from tokens alone")
            self._text = read_text(wanted.perplexity_text, written.conversion.files)

    @contextmanager
    def shrunk(self, path: Path, check: Callable[[Path], None] | None = None) -> Iterator[AnyValue]:
        """Yield the smaller native model, whose weights lie in a hidden directory until then.

        Args:
            path: Where it is to be written; the directory is beside it.
            check: Called with the file of the model as it was written, in floats.
        """
        with staging_directory(path.absolute().parent) as folder:
            self._float_path = self._save(folder / "float" / path.name, self._conversion.native)
            if check is not None:
                check(self._float_path)
            with self._report.stage("quantize"):
                self._keep_floats(folder)
                native = self._compress(folder / "tool")
            yield native

    def _compress(self, folder: Path) -> AnyValue:
        samples = None
        if self._calibration is not None:
            samples = _GivenSamples(self._calibration, self._written.expected)
        folder.mkdir()
        return self._conversion.writer.compress(
            self._float_path, self._wanted, samples, folder=folder, report=self._report
        )

    def _keep_floats(self, folder: Path) -> None:
        """Leave nodes in floats that cost most, if the cosine that is asked for needs it."""
        wanted, written, least = self._wanted, self._written, self._wanted.min_cosine
        tried: dict[frozenset[str], float] = {}
        if not wanted.int8 or least is None:
            return

        @cache
        def enough(names: frozenset[str]) -> bool:
            tried[names] = self._cosine_without({*wanted.int8_exclude, *names}, folder)
            return tried[names] >= least

        if enough(frozenset()):
            return
        native, model = read_target(self._conversion.writer, self._float_path)
        with closing(written.open_source()) as source:
            first = written.given(model, next(iter(written.samples(source, source, self._check))))
        found = fewest(rank(model, first, self._conversion.writer.names(native).nodes), enough)
        if found is None or tried[found] > 1.0:  # Then the limit refuses what is quantised wholly.
            return
        self._wanted = replace(wanted, int8_exclude=(*sorted({*wanted.int8_exclude, *found}),))
        names = ",".join(self._wanted.int8_exclude)
        told = f"least cosine {round(tried[found], 9)}, runs: {len(tried)}"
        self._report.facts |= {"int8_exclude": names, "int8_runs": len(tried)}
        self._report.notes.append(f"int8: --int8-exclude {names}; {told}")

    def _cosine_without(self, names: set[str], folder: Path) -> float:
        """Return the least cosine of an output with some nodes in floats; 2 where all are."""
        trial, wanted = copy(self), replace(self._wanted, min_agreement=None, min_cosine=None)
        trial._report, trial._text = Report(), None
        trial._wanted = replace(wanted, int8_exclude=(*sorted(names),), max_perplexity=None)
        with TemporaryDirectory(dir=folder) as name:
            try:
                native = trial._compress(Path(name) / "tool")
            except UnsupportedModelError:
                return 2.0
            trial.measure(trial._save(Path(name) / "small" / self._float_path.name, native))
        return min(each.after.cosine for each in trial._report.accuracy)

    def export(self, path: Path | None, sources: Sequence[Path]) -> AnyValue:
        """Return the path of the smaller model, or without one the native object of users.

        Args:
            path: Where it is to be written.
            sources: Files that must not be written over.
        """
        made = self._conversion
        if path is not None:
            with self.shrunk(path) as native, self._report.stage("save"):
                return made.writer.save(
                    native, path, made.options, sources=sources, before_commit=self.measure
                )
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"model{made.writer.suffixes[0]}"
            with self.shrunk(path) as native:
                self.measure(self._save(Path(folder) / "small" / path.name, native))
                return made.writer.complete(native)

    def _save(self, path: Path, native: AnyValue) -> Path:
        path.parent.mkdir()
        saved: Path = self._conversion.writer.save(native, path, self._conversion.options)
        return saved

    def measure(self, path: Path) -> None:
        """Tell what is lost, by the finished file at `path`.

        Raises:
            CheckError: An engine failed, or more is lost than the caller allows.
        """
        facts, written = self._report.facts, self._written
        with self._report.stage("accuracy"), ExitStack() as running:
            source = running.enter_context(closing(written.open_source()))
            before, after = (
                running.enter_context(closing(written.open_target(each)))
                for each in (self._float_path, path)
            )
            sets = written.samples(source, before, self._check)
            rows, count = measure_accuracy(sets.reference, before, after, sets, written.outputs)
            if self._text is not None:
                prompts = Prompts(written.compared, self._check.dims)
                for name, engine in (("before", before), ("after", after)):
                    cost = perplexity(self._text, prompts, engine)
                    facts[f"perplexity_{name}"] = round(cost, 4)
                facts["perplexity_tokens"] = len(self._text)
        self._report.accuracy = rows = require_accuracy(rows, self._wanted)
        facts["float_size_bytes"] = stored_bytes(self._float_path.parent)
        facts["smaller_size_bytes"] = stored_bytes(path.parent)
        facts["accuracy_data"] = self._name_data(count)
        failed = [each.output for each in rows if each.passed is False]
        most = self._wanted.max_perplexity
        if most is not None and not facts["perplexity_after"] <= most:
            found = f"{facts['perplexity_after']:g}, above {most:g}"
            told = f"{path.name}: made smaller, it has a perplexity of {found}"
            raise CheckError(told, self._report)
        if failed:
            raise CheckError(
                f"{path.name}: made smaller, {', '.join(failed)} is below the least that is "
                "demanded",
                self._report,
            )

    def _name_data(self, count: int) -> str:
        samples = "1 sample" if count == 1 else f"{count} samples"
        data = self._check.data
        if data is None:
            return f"{samples} drawn from a seed, which only tell that it works"
        kind = "calibration data" if data is self._calibration else "check data"
        return f"{samples} of the {kind} ({data.name})"
