"""The suite: what holds for every format, asked of one bridge."""

from __future__ import annotations

import dataclasses
import inspect
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any as AnyValue, ClassVar

import numpy as np
import pytest

import serde.api as api
from serde.bridge.contract import AnyBridge
from serde.bridge.formats import format_names, get_bridge, source_bridge, target_bridge
from serde.checking.engines import engine_for_path, read_native, read_target
from serde.checking.verdict import compare
from serde.command.cli import main
from serde.command.inspection import inspect_model
from serde.conversion.prepare import PrepareOptions
from serde.conversion.steps import write_model
from serde.core import Array, Report, Weight
from serde.engine.interpreter import RelayEngine
from serde.errors import ConverterBug, OptionError, SerdeError, UnsupportedModelError
from serde.relay.ir import RelayModel, TensorType
from serde.relay.ir.compare import first_difference
from serde.testing.models import sample_ids, sample_model, small_model

__all__ = ["BridgeSuite"]

DAMAGES = 24
"""How many truncated files are read, and how many with flipped bytes."""

Files = dict[str, bytes]


class BridgeSuite:
    """Tests of one bridge; a subclass whose name pytest collects says which.

    The format must be registered (an entry point of ``serde.formats``), and able to say
    :func:`serde.testing.small_model`: multiply, add, tanh and two weights. Where it is not,
    :meth:`make_model` is to be overridden; a format that is only read overrides
    :meth:`make_file`, and the tests of writing are skipped.

    Attributes:
        bridge: The bridge.
        operators: Operators of Relay that it writes; each of their samples goes out and back.
        refused: Samples that it must refuse to write, ``"clip-2"``, and why.
        export_options: Options to write with.
        keeps_weight_names: Whether weights keep the names that they have in Relay.
    """

    bridge: ClassVar[AnyBridge]
    operators: ClassVar[Sequence[str]] = ()
    refused: ClassVar[Mapping[str, str]] = {}
    export_options: ClassVar[Mapping[str, AnyValue]] = {}
    keeps_weight_names: ClassVar[bool] = True

    _written: ClassVar[tuple[str, Files]]
    """Name of the file that :meth:`make_file` made, and all files with it."""

    def make_model(self, factor: float = 1.0) -> RelayModel:
        """Return a model that the format can say.

        Args:
            factor: What one weight is multiplied with, so that results differ clearly.
        """
        return small_model(factor=factor)

    def output_names(self, model: RelayModel) -> tuple[str, ...]:
        """Return what the format calls the outputs of a model, where it has a rule of its own."""
        return model.meta.outputs

    def make_file(self, path: Path, factor: float = 1.0) -> Path:
        """Write :meth:`make_model` and return the path."""
        options = self.bridge.bind_export(self.export_options)
        return self.bridge.save(self.export(self.make_model(factor)), path, options)

    # What the tests are made of.

    def export(self, model: RelayModel) -> AnyValue:
        """Return a model as the format's own, after the passes of every conversion."""
        options = self.bridge.bind_export(self.export_options)
        return write_model(self.bridge, model, PrepareOptions(), options, Report())

    def path_in(self, folder: Path, name: str = "model") -> Path:
        """Return the path of a file of this format in a folder."""
        suffix = self.bridge.suffixes[0]
        return folder / f"{name}{suffix}"

    def as_relay(self, path: Path) -> RelayModel:
        """Return what a file holds."""
        return read_target(self.bridge, path, _input_types(self.make_model()))[1]

    @pytest.fixture
    def written(self, tmp_path: Path) -> Path:
        """A file of this format, in a folder with what belongs to it and nothing else."""
        cls, folder = type(self), tmp_path / "written"
        folder.mkdir()
        if "_written" not in vars(cls):
            cls._written = self.make_file(self.path_in(folder)).name, _files(folder)
        name, files = cls._written
        for each, content in files.items():
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            (folder / each).write_bytes(content)
        return folder / name

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test of each sample, option and damaged file."""
        if "seed" in metafunc.fixturenames:
            reads = self.bridge.import_options is not None
            metafunc.parametrize("seed", range(DAMAGES if reads else 0))
        if "sample" in metafunc.fixturenames:
            samples = [each for op in self.operators for each in sample_ids(op)]
            metafunc.parametrize("sample", samples)
        if "option" in metafunc.fixturenames:
            metafunc.parametrize(
                ("binder", "option"),
                [(binder, field) for binder, cls in self._option_classes()
                 for field in dataclasses.fields(cls)],
                ids=lambda value: getattr(value, "name", value),
            )  # fmt: skip

    def _option_classes(self) -> Iterator[tuple[str, AnyValue]]:
        if self.bridge.import_options is not None:
            yield "bind_import", self.bridge.import_options
        if self.bridge.export_options is not None:
            yield "bind_export", self.bridge.export_options

    def need_writing(self) -> None:
        """Skip a test of a format that is only read."""
        if self.bridge.export_options is None:
            pytest.skip("the format is not written")

    def need_reading(self) -> None:
        """Skip a test of a format that is only written."""
        if self.bridge.import_options is None:
            pytest.skip("the format is not read")

    # The format is known.

    def test_the_format_is_registered(self, written: Path) -> None:
        assert self.bridge.name in format_names()
        assert get_bridge(self.bridge.name) is self.bridge
        assert self.bridge.export_options is None or target_bridge(written) is self.bridge

    def test_its_files_are_recognised(self, written: Path) -> None:
        self.need_reading()
        assert self.bridge.detect(written)
        assert source_bridge(written) is self.bridge

    @pytest.mark.parametrize("content", [b"", b"\0", b"{}", b"PK\3\4", b"\x08\x08\x12\x00", None])
    def test_other_files_are_not_recognised(self, tmp_path: Path, content: bytes | None) -> None:
        path = tmp_path / "other.bin"
        if content is not None:
            path.write_bytes(content)
        assert not self.bridge.detect(path)
        assert not self.bridge.detect(tmp_path)

    # Options.

    def test_every_option_is_documented(self, binder: str, option: AnyValue) -> None:
        cls = dict(self._option_classes())[binder]
        texts = "\n".join(inspect.getdoc(each) or "" for each in cls.__mro__)
        assert re.search(rf"^ +{option.name}: \S", texts, re.MULTILINE), f"{option.name} in {cls}"

    def test_every_option_may_be_left_out(self, binder: str, option: AnyValue) -> None:
        defaults = getattr(self.bridge, binder)({})
        assert dataclasses.is_dataclass(defaults)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(defaults, option.name, None)

    def test_a_value_of_another_kind_is_refused(self, binder: str, option: AnyValue) -> None:
        with pytest.raises(OptionError, match=option.name):
            getattr(self.bridge, binder)({option.name: object()})

    @pytest.mark.parametrize("binder", ["bind_import", "bind_export"])
    def test_an_unknown_option_is_refused(self, binder: str) -> None:
        with pytest.raises(OptionError, match=r"no_such_option|cannot be"):
            getattr(self.bridge, binder)({"no_such_option": 1})

    def test_options_of_another_class_are_refused(self, tmp_path: Path) -> None:
        path, options, report = self.path_in(tmp_path), object(), Report()
        with pytest.raises(OptionError):
            self.bridge.load(path, None, options)
        with pytest.raises(OptionError):
            self.bridge.to_relay(None, options, report=report)
        with pytest.raises(OptionError):
            self.bridge.from_relay(self.make_model(), options, report=report)
        with pytest.raises(OptionError):
            self.bridge.save(None, path, options)
        assert list(tmp_path.iterdir()) == []

    # There and back.

    def test_a_file_computes_what_was_written(self, written: Path) -> None:
        self.need_reading()
        assert _agree(self.make_model(), self.as_relay(written))

    def test_names_are_kept(self, written: Path) -> None:
        self.need_reading()
        model = self.make_model()
        names = self.bridge.names(self.bridge.load(written, None, self.bridge.bind_import({})))
        assert names.inputs == model.meta.inputs
        assert names.outputs == self.output_names(model)
        assert not self.keeps_weight_names or set(names.weights) >= set(model.params)
        assert len(set(names.nodes)) == len(names.nodes)
        back = self.as_relay(written)
        assert back.meta.inputs == names.inputs
        assert back.meta.outputs == names.outputs

    def test_a_second_round_trip_equals_the_first(self, written: Path, tmp_path: Path) -> None:
        self.need_reading()
        self.need_writing()
        first = self.as_relay(written)
        path, options = self.path_in(tmp_path), self.bridge.bind_export(self.export_options)
        second = self.as_relay(self.bridge.save(self.export(first), path, options))
        assert first_difference(first.mod, second.mod) is None
        assert first.params.keys() == second.params.keys()
        for name, weight in first.params.items():
            np.testing.assert_array_equal(weight.array(), second.params[name].array())

    def test_a_sample_goes_out_and_back(self, sample: str) -> None:
        model = sample_model(sample)
        if sample in self.refused:
            with pytest.raises(UnsupportedModelError):
                self.export(model)
            return
        native = self.export(model)
        wanted = self.bridge.expected(model, native, self.bridge.bind_export(self.export_options))
        assert _agree(wanted, read_native(self.bridge, native, _input_types(wanted)))

    # What the commands need.

    def test_a_file_is_inspected(self, written: Path) -> None:
        self.need_reading()
        native = self.bridge.load(written, None, self.bridge.bind_import({}))
        found = inspect_model(written)
        assert found.format == self.bridge.name
        assert sum(found.operators.values()) == len(self.bridge.operators(native)) > 0
        assert found.summary.inputs is not None
        assert [each.name for each in found.summary.inputs] == list(self.make_model().meta.inputs)

    def test_operators_of_a_file_are_listed(self, written: Path) -> None:
        self.need_reading()
        native = self.bridge.load(written, None, self.bridge.bind_import({}))
        listed = {name.split(" ")[0] for name, _remark in self.bridge.coverage()}
        assert set(self.bridge.operators(native)) <= listed

    def test_the_command_line_knows_it(
        self, written: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.need_reading()
        assert main(["inspect", str(written)]) == 0
        assert self.bridge.title in capsys.readouterr().out
        assert main(["ops", "--format", self.bridge.name]) == 0

    def test_a_file_converts_to_another(self, written: Path, tmp_path: Path) -> None:
        self.need_reading()
        self.need_writing()
        path, types = self.path_in(tmp_path), _input_types(self.make_model())
        shapes = {name: type_.shape for name, type_ in types.items()}
        report = api.convert(written, path, input_shapes=shapes, **self.export_options)
        assert report.facts["source"] == report.facts["target"] == self.bridge.name
        assert _agree(self.make_model(), self.as_relay(path))

    def test_a_check_tells_a_changed_weight(self, written: Path, tmp_path: Path) -> None:
        self.need_reading()
        model = self.make_model()
        assert self._computes_the_same(model, written)
        assert not self._computes_the_same(
            model, self.make_file(self.path_in(tmp_path), factor=1.01)
        )

    def _computes_the_same(self, model: RelayModel, path: Path) -> bool:
        """Whether the engine of a file computes what a model says."""
        report = Report()
        with closing(engine_for_path(self.bridge, path, _input_types(model))) as engine:
            compare(RelayEngine(model), engine, model, report=report)
        return report.passed is True

    # Writing.

    def test_the_same_model_gives_the_same_bytes(self, written: Path, tmp_path: Path) -> None:
        self.need_writing()
        again = tmp_path / "again"
        again.mkdir()
        self.make_file(self.path_in(again))
        assert _files(again) == _files(written.parent)

    def test_a_failed_check_leaves_what_was_there(self, written: Path) -> None:
        self.need_writing()
        before = _files(written.parent)
        seen: list[Path] = []

        def refuse(path: Path) -> None:
            if self.bridge.import_options is not None:
                self.bridge.load(path, None, self.bridge.bind_import({}))
            seen.append(path)
            raise RuntimeError("refused")

        options = self.bridge.bind_export(self.export_options)
        with pytest.raises(RuntimeError, match="refused"):
            self.bridge.save(
                self.export(self.make_model(2.0)), written, options, before_commit=refuse
            )
        assert len(seen) == 1
        assert _files(written.parent) == before

    def test_a_weight_that_cannot_be_read_leaves_what_was_there(self, written: Path) -> None:
        self.need_writing()
        before = _files(written.parent)
        model = self.make_model()
        broken = {name: _BrokenWeight(weight) for name, weight in model.params.items()}
        options = self.bridge.bind_export(self.export_options)
        with pytest.raises(OSError, match="the disk is gone"):
            self.bridge.save(self.export(model.evolve(params=broken)), written, options)
        assert _files(written.parent) == before

    def test_a_source_is_not_written_over(self, written: Path) -> None:
        self.need_reading()
        self.need_writing()
        before = _files(written.parent)
        with pytest.raises(OptionError):
            api.convert(written, written, **self.export_options)
        assert _files(written.parent) == before

    # Malformed input.

    def read_whole(self, path: Path) -> None:
        """Read all that a file holds; one error of serde's own may say that it is malformed."""
        try:
            for weight in self.as_relay(path).params.values():
                for _chunk in weight.chunks():
                    pass
        except ConverterBug:
            raise
        except SerdeError:
            return

    def test_a_truncated_file_is_refused_or_read(self, written: Path, seed: int) -> None:
        self.need_reading()
        rng = random.Random(seed)
        damaged = rng.choice(_paths(written.parent))
        content = damaged.read_bytes()
        damaged.write_bytes(content[: rng.randrange(len(content) + 1)])
        self.read_whole(written)

    def test_a_file_with_flipped_bits_is_refused_or_read(self, written: Path, seed: int) -> None:
        self.need_reading()
        rng = random.Random(seed)
        damaged = rng.choice(_paths(written.parent))
        content = bytearray(damaged.read_bytes())
        for _ in range(rng.choice((1, 1, 2, 4)) if content else 0):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        damaged.write_bytes(content)
        self.read_whole(written)

    def test_an_empty_file_ends_a_command_with_code_3(
        self, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.need_reading()
        for path in _paths(written.parent):
            path.write_bytes(b"")
        assert main(["inspect", str(written), "--from", self.bridge.name]) == 3
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("serde: ")


class _BrokenWeight(Weight):
    """A weight whose file is on a disk that has failed."""

    def __init__(self, weight: Weight) -> None:
        self.shape, self.dtype = weight.shape, weight.dtype

    def rows(self, start: int, stop: int) -> Array:
        """Fail."""
        raise OSError("the disk is gone")


def _agree(model: RelayModel, other: RelayModel) -> bool:
    """Whether two models compute the same; outputs that tell nothing are equal to the bit."""
    report = Report()
    compare(RelayEngine(model), RelayEngine(other), model, report=report)
    wrong = [x for x in report.verdicts if not x.passed and (x.informative or x.max_abs != 0.0)]
    assert report.verdicts
    assert not wrong, [verdict.remark for verdict in wrong]
    return True


def _input_types(model: RelayModel) -> dict[str, TensorType]:
    return {v.name_hint: v.type for v in model.inputs() if isinstance(v.type, TensorType)}


def _paths(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _files(folder: Path) -> Files:
    """Return all files in a folder by their names, hidden ones too."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in _paths(folder)}
