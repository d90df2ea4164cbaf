"""A written model, made smaller by its format's tool and measured against its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any as AnyValue

from serde.checking.data import CheckData
from serde.checking.engines import engine_for_path
from serde.checking.inputs import InputSets
from serde.checking.tolerance import CheckOptions
from serde.checking.written import WrittenModel
from serde.errors import CheckError
from serde.io.staging import staging_directory, stored_bytes
from serde.quantization.accuracy import measure_accuracy, require_accuracy
from serde.quantization.options import QuantizeOptions
from serde.relay.ir.model import RelayModel
from serde.report import Report
from serde.weights import Array

__all__ = ["Shrinking"]


class _GivenSamples:
    """All samples of a user, one at a time."""

    def __init__(self, data: CheckData, model: RelayModel) -> None:
        self._data = data
        self._model = model

    def __len__(self) -> int:
        return len(self._data.sources)

    def __iter__(self) -> Iterator[Mapping[str, Array]]:
        return self._data.samples(self._model, {}, Report())


class Shrinking:
    """Makes a written model smaller.

    Args:
        written: The model.
        wanted: What is to be made smaller, and how; its calibration as ``CheckData``.
        report: Filled with accuracy and facts.
        check: Inputs on which accuracy is told; without data those of the calibration, or else
            seeded ones.
    """

    def __init__(
        self,
        written: WrittenModel,
        wanted: QuantizeOptions,
        report: Report,
        check: CheckOptions | None = None,
    ) -> None:
        check = CheckOptions() if check is None else check
        self._written = written
        self._conversion = written.conversion
        self._wanted = wanted
        self._report = report
        self._dims = dict(check.dims or {})
        self._runs = max(1, check.runs)
        self._calibration: CheckData | None = wanted.calibration
        self._data = self._calibration if check.data is None else check.data
        self._float_path = Path()

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
            workplace = folder / "tool"
            workplace.mkdir()
            samples = None
            if self._calibration is not None:
                expected = self._written.expected
                samples = _GivenSamples(self._calibration, expected)
            with self._report.stage("quantize"):
                native = self._conversion.writer.compress(
                    self._float_path, self._wanted, samples, folder=workplace, report=self._report
                )
            yield native

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
                running.enter_context(closing(engine_for_path(self._conversion.writer, each)))
                for each in (self._float_path, path)
            )
            sets = InputSets(
                written.expected, source, before,
                report=Report(), runs=self._runs, data=self._data,
                dims={} if self._data is self._calibration is not None else self._dims,
                float16=written.computes_float16,
            )  # fmt: skip
            rows, count = measure_accuracy(sets.reference, before, after, sets, written.outputs)
        self._report.accuracy = rows = require_accuracy(rows, self._wanted)
        facts["float_size_bytes"] = stored_bytes(self._float_path.parent)
        facts["smaller_size_bytes"] = stored_bytes(path.parent)
        facts["accuracy_data"] = self._name_data(count)
        failed = [each.output for each in rows if not each.passed]
        if failed:
            raise CheckError(
                f"{path.name}: made smaller, {', '.join(failed)} is below the least that is "
                "demanded",
                self._report,
            )

    def _name_data(self, count: int) -> str:
        samples = "1 sample" if count == 1 else f"{count} samples"
        if self._data is None:
            return f"{samples} drawn from a seed, which only tell that it works"
        kind = "calibration data" if self._data is self._calibration else "check data"
        return f"{samples} of the {kind} ({self._data.name})"
