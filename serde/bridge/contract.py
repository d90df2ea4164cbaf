"""What a format is to everything outside its folder: the methods of :class:`Bridge`."""

from __future__ import annotations

import importlib
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, ClassVar, Generic, TypeAlias, TypeVar

from serde.bridge.guards import check_parameters, guarded
from serde.bridge.options import (
    ExportOptions,
    ImportOptions,
    bind_options,
    option_names,
    refuse_options,
)
from serde.bridge.parts import Parts
from serde.bridge.summary import ModelSummary, ServedFile, TensorNames
from serde.core import Array, Report
from serde.engine.base import Engine, Samples
from serde.errors import CheckError, OptionError, RelayError
from serde.io.atomic import check_files
from serde.relay.ir import Foreign, RelayModel

if TYPE_CHECKING:
    from serde.bridge.quantizing import QuantizeOptions
    from serde.io.pairs import Neighbours

__all__ = ["AnyBridge", "Bridge", "ReadOnlyBridge", "WriteOnlyBridge", "check_bridge"]

ModelT = TypeVar("ModelT")
ImportOptionsT = TypeVar("ImportOptionsT", bound=ImportOptions)
ExportOptionsT = TypeVar("ExportOptionsT", bound=ExportOptions)


class Bridge(ABC, Generic[ModelT, ImportOptionsT, ExportOptionsT]):
    """A format: how its bytes are read and written, and how its models become Relay and back.

    ``load`` and ``save`` touch bytes and never Relay; ``to_relay`` and ``from_relay`` never touch
    files. What is abstract here every format must have; :class:`ReadOnlyBridge` and
    :class:`WriteOnlyBridge` answer for the direction that a format lacks. Options of another
    class than the format's own are refused before any method sees them.

    Attributes:
        name: Name of the format, as users say it.
        title: Its name for people.
        suffixes: Ends of the names of its files.
        import_options: Class of the options of reading, None where the format cannot be read.
        export_options: Class of the options of writing, None where it cannot be written.
        read_suffixes: Those of `suffixes` that targets cannot have.
        package_suffixes: Those of `suffixes` that folders have, which are read as one model.
        companion_suffixes: Ends of the names of files that are read along with another, which
            stands for the model.
        compressor: The module, by its full name, whose ``check_compression`` and ``compress`` make
            written models smaller; None where there is none.
        keeps_metadata: Whether files have a place for what the owner of a model added to it.
        names_companions: Whether a model itself names its companions, so that it has to be read
            to find them: a batch does so in the process of the model.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    read_suffixes: ClassVar[tuple[str, ...]] = ()
    package_suffixes: ClassVar[tuple[str, ...]] = ()
    companion_suffixes: ClassVar[tuple[str, ...]] = ()
    names_companions: ClassVar[bool] = False
    compressor: ClassVar[str | None] = None
    keeps_metadata: ClassVar[bool] = False
    import_options: ClassVar[type[ImportOptions] | None]
    export_options: ClassVar[type[ExportOptions] | None]

    def __init_subclass__(cls, **kwargs: AnyValue) -> None:
        super().__init_subclass__(**kwargs)
        for name, function in list(vars(cls).items()):
            declared = vars(Bridge).get(name)
            if inspect.isfunction(declared) and inspect.isfunction(function):
                check_parameters(cls, function, declared)
                setattr(cls, name, guarded(function))

    @abstractmethod
    def detect(self, path: Path) -> bool:
        """Whether `path` holds this format, judged by its content; there may be no such file."""

    def accepts(self, source: object) -> bool:
        """Whether `source` is a live object of this format; must import nothing."""
        return False

    @abstractmethod
    def load(self, source: AnyValue, params: AnyValue, options: ImportOptionsT) -> ModelT:
        """Return the native model of a path, bytes or a live object.

        Raises:
            FormatError: The bytes are not of this format.
        """

    def files(self, model: ModelT) -> Sequence[Path]:
        """Return the files that a loaded model came from, which no target may replace."""
        return ()

    def companions(self, path: Path, options: ImportOptionsT, beside: Neighbours) -> Sequence[str]:
        """Return the files that belong to the model at `path` and were not named.

        Asked for models that lie in a store or an archive, of which `path` is so far the only
        file at hand. The names are relative to its folder. What the model can do without is
        named only if it is there.

        Args:
            path: The file that was named.
            options: Options of the format.
            beside: What else there is.

        Raises:
            FormatError: The file is malformed.
        """
        return ()

    def parts(self, source: AnyValue, options: ImportOptionsT) -> Parts | None:
        """Return the models that a source becomes in a folder, and what belongs beside them.

        None for a source that is one model and nothing else.

        Raises:
            FormatError: The bytes are not of this format.
        """
        return None

    def runtime_files(
        self, parts: Parts, interfaces: Mapping[str, Mapping[str, AnyValue]] | None
    ) -> Mapping[str, str]:
        """Return texts, by the names of their files, that a runtime reads beside models.

        Args:
            parts: The models.
            interfaces: Inputs and outputs of each, by its file; None where the names alone are
                wanted, of all files that there may be.
        """
        return {}

    @abstractmethod
    def to_relay(self, model: ModelT, options: ImportOptionsT, *, report: Report) -> RelayModel:
        """Return the native model as Relay; gaps go into `report`.

        Raises:
            UnsupportedModelError: Some node cannot be converted.
        """

    @abstractmethod
    def from_relay(self, model: RelayModel, options: ExportOptionsT, *, report: Report) -> ModelT:
        """Return the native model for a Relay model; gaps go into `report`.

        Raises:
            UnsupportedModelError: Some node cannot be converted.
        """

    def expected(self, model: RelayModel, native: ModelT, options: ExportOptionsT) -> RelayModel:
        """Return what `native`, written of `model`, must compute, under the names it uses.

        Its module is that of `model` itself where the format changes neither the names of inputs
        nor what they mean. Its facts tell the lengths that the format declares.
        """
        return model

    @abstractmethod
    def engine(self, model: ModelT, relay_model: RelayModel) -> Engine:
        """Return what runs a loaded model in a check: its framework, where that is installed.

        What may crash runs in a process of its own
        (:class:`serde.engine.process.ProcessEngine`); a format without a framework returns
        :class:`serde.engine.interpreter.RelayEngine`.

        Args:
            model: The model as :meth:`load` returned it.
            relay_model: The same as :meth:`to_relay` returned it.

        Raises:
            CheckError: The framework is there but refuses the model.
        """

    def engine_of(self, name: str, model: ModelT) -> Engine:
        """Return a runtime of that name with a loaded model, other than :meth:`engine` has.

        Raises:
            CheckError: It refuses the model.
            MissingDependency: It is not installed.
            OptionError: The format knows no such runtime.
        """
        raise OptionError(f"engine: format {self.name} has no engine {name!r}")

    def inner_names(self, model: ModelT) -> Iterable[str]:
        """Return the names of inner values that :meth:`with_outputs` can make outputs."""
        return ()

    def with_outputs(self, model: ModelT, names: Sequence[str]) -> ModelT | None:
        """Return a model that gives inner values behind its outputs; None if the format has no way.

        Args:
            model: The model as :meth:`load` returned it.
            names: Some of :meth:`inner_names`.
        """
        return None

    def run_foreign(self, node: Foreign, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """Return what the format's framework computes for an operator that Relay does not know.

        Args:
            node: The operator, as the format has it.
            inputs: Its inputs, None where one is left out.

        Raises:
            MissingDependency: The framework is not installed.
            RelayError: It does not have the operator, or the operator fails.
        """
        raise RelayError(f"{node.full_name}: nothing here runs operators of {self.name}")

    def may_run_foreign(self, node: Foreign) -> bool:
        """Whether :meth:`run_foreign` may know an operator; if not, no engine is made for it."""
        return True

    def file_engine(self, path: Path) -> Engine | None:
        """Return what runs a file as it is; None where it is loaded and given to :meth:`engine`.

        Raises:
            CheckError: The framework is there but refuses the file.
            FormatError: The file is malformed.
        """
        return None

    def check_suffix(self, path: str | os.PathLike[str], suffixes: Sequence[str]) -> None:
        """Refuse a path that does not end in one of `suffixes`; an empty one stands for none.

        Raises:
            OptionError: It ends otherwise.
        """
        name = os.path.basename(os.fspath(path))
        bare = "" in suffixes and not os.path.splitext(name)[1]
        known = [suffix for suffix in suffixes if suffix]
        if bare or not name or name.endswith(tuple(known)):
            return
        raise OptionError(
            f"{os.fspath(path)}: format {self.name} is written to names that end in "
            f"{' or '.join(known)}"
        )

    def check_target(
        self,
        path: str | os.PathLike[str],
        options: ExportOptionsT,
        *,
        sources: Sequence[Path] = (),
        overwrite: bool = False,
    ) -> None:
        """Refuse, before anything is converted, what :meth:`save` could not write.

        Args:
            path: The file to make or replace.
            options: Options of the format.
            sources: Files that must not be written over, as far as they are known; what does
                not override this method leaves them to :meth:`save`.
            overwrite: Whether files may be replaced that the user did not name and that serde
                did not write.

        Raises:
            OptionError: The suffix is none of the format's, or nothing can be written there.
        """
        check_files([path])
        self.check_suffix(path, (*self.suffixes, ""))

    @abstractmethod
    def save(
        self,
        model: ModelT,
        path: Path,
        options: ExportOptionsT,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write the native model; an existing file is replaced by a finished one only.

        The same model gives the same bytes (:mod:`serde.io.atomic` has what this takes).

        Args:
            model: The native model.
            path: Where to.
            options: Options of the format.
            sources: Files that must not be written over.
            before_commit: Called with the finished temporary file; if it raises, nothing stays.

        Returns:
            The path written.
        """

    def check_compression(self, wanted: QuantizeOptions, options: ExportOptionsT) -> None:
        """Refuse, before anything is converted, what :meth:`compress` could not do.

        Args:
            wanted: What is to be made smaller, and how.
            options: Options of the format.

        Raises:
            OptionError: The format has no tool for it.
        """
        if self.compressor is None:
            asked = ", ".join(wanted.asked)
            raise OptionError(f"{asked}: format {self.name} has no tool that makes models smaller")
        importlib.import_module(self.compressor).check_compression(wanted, options)

    def compress(
        self,
        path: Path,
        wanted: QuantizeOptions,
        samples: Samples | None,
        *,
        folder: Path,
        report: Report,
    ) -> ModelT:
        """Return what the format's own tool makes of a file, as a native model.

        Args:
            path: A finished file of this format.
            wanted: What :meth:`check_compression` has let pass.
            samples: Inputs on which activations are measured.
            folder: An empty directory, in which weights of the result may lie; it stays until
                these are written elsewhere.
            report: Gets facts: who did it, what was done, and the memory that it took.

        Raises:
            CheckError: The tool failed or crashed.
            MissingDependency: It is not installed.
            UnsupportedModelError: Nothing in the model can be made smaller so.
        """
        tool: AnyValue = importlib.import_module(self.compressor or "")
        made: ModelT = tool.compress(path, wanted, samples, folder, report)
        return made

    def complete(self, model: ModelT) -> AnyValue:
        """Return the native object that users get, with its weights."""
        return model

    @abstractmethod
    def coverage(self) -> list[tuple[str, str]]:
        """Return each operator that is converted, with a remark such as the versions covered."""

    def coverage_summary(self) -> str:
        """Return how much of the format :meth:`coverage` lists, empty where that is not known."""
        return ""

    @abstractmethod
    def operators(self, model: ModelT) -> list[str]:
        """Return the operator of every node of a native model."""

    def document(self, model: ModelT, operator: str) -> str:
        """Return what documents one of its :meth:`operators`; empty where nothing does."""
        return ""

    def summary(self, model: ModelT) -> ModelSummary:
        """Return what a native model says about itself, without conversion."""
        return ModelSummary()

    @abstractmethod
    def names(self, model: ModelT) -> TensorNames:
        """Return what a native model calls its tensors and nodes."""

    def profiles(self) -> Sequence[str]:
        """Return the runtimes that its option ``profile`` knows."""
        return ()

    def served_file(self) -> ServedFile | None:
        """Return what Triton calls the files of this format; None where it does not run them."""
        return None

    def writes_source(self) -> bool:
        """Whether there is a folder of Python source with weights that TorchServe can run."""
        return False

    def bind_import(self, given: Mapping[str, AnyValue]) -> AnyValue:
        """Return the options of reading made of `given`.

        Raises:
            OptionError: The format cannot be read, or does not have an option.
        """
        return _bind_whole(self, self.import_options, given, "read")

    def bind_export(self, given: Mapping[str, AnyValue]) -> AnyValue:
        """Return the options of writing made of `given`.

        Raises:
            OptionError: The format cannot be written, or does not have an option.
        """
        return _bind_whole(self, self.export_options, given, "written")


class ReadOnlyBridge(Bridge[ModelT, ImportOptionsT, ExportOptions]):
    """A format that is read and never written."""

    export_options = None

    def from_relay(self, model: RelayModel, options: ExportOptions, *, report: Report) -> ModelT:
        """Refuse to make a model of this format."""
        raise OptionError(f"format {self.name} cannot be written")

    def save(
        self,
        model: ModelT,
        path: Path,
        options: ExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Refuse to write a file of this format."""
        raise OptionError(f"format {self.name} cannot be written")


class WriteOnlyBridge(Bridge[ModelT, ImportOptions, ExportOptionsT]):
    """A format that is written and never read; checks need its :meth:`Bridge.file_engine`."""

    import_options = None

    def load(self, source: AnyValue, params: AnyValue, options: ImportOptions) -> ModelT:
        """Refuse to read a file of this format."""
        raise OptionError(f"format {self.name} cannot be read")

    def to_relay(self, model: ModelT, options: ImportOptions, *, report: Report) -> RelayModel:
        """Refuse to convert a model of this format."""
        raise OptionError(f"format {self.name} cannot be read")

    def engine(self, model: ModelT, relay_model: RelayModel) -> Engine:
        """Refuse to run a model that was never read."""
        raise CheckError(f"no engine runs models of format {self.name}")


AnyBridge: TypeAlias = Bridge[AnyValue, AnyValue, AnyValue]


def _bind_whole(
    bridge: AnyBridge, cls: type[AnyValue] | None, given: Mapping[str, AnyValue], verb: str
) -> AnyValue:
    if cls is None:
        raise OptionError(f"format {bridge.name} cannot be {verb}")
    bound, rest = bind_options(cls, given)
    refuse_options(rest, option_names(cls))
    return bound


def check_bridge(name: str, bridge: object) -> AnyBridge:
    """Return an object that claims to be the bridge of the format `name`.

    Raises:
        OptionError: It is no bridge, or lacks what every bridge has.
    """
    if not isinstance(bridge, Bridge):
        raise OptionError(f"format {name}: expected a Bridge, found {bridge!r}")
    wrong = [attribute for attribute, holds in _ATTRIBUTES.items() if not holds(bridge)]
    if wrong:
        kind = type(bridge).__name__
        raise OptionError(f"format {name}: {kind} lacks {', '.join(wrong)}, or has a wrong one")
    if bridge.name != name:
        raise OptionError(f"format {name}: the name of its bridge is {bridge.name!r}")
    return bridge


def _is_options(bridge: AnyBridge, attribute: str, base: type) -> bool:
    """Whether a bridge has a class of options, or says that it has none."""
    found = getattr(bridge, attribute, False)
    return found is None or (isinstance(found, type) and issubclass(found, base))


_ATTRIBUTES: Mapping[str, Callable[[AnyBridge], bool]] = {
    "name": lambda bridge: isinstance(getattr(bridge, "name", None), str),
    "title": lambda bridge: isinstance(getattr(bridge, "title", None), str),
    "suffixes": lambda bridge: isinstance(getattr(bridge, "suffixes", None), tuple),
    "import_options": lambda bridge: _is_options(bridge, "import_options", ImportOptions),
    "export_options": lambda bridge: _is_options(bridge, "export_options", ExportOptions),
}
"""Attributes that every bridge has, and whether one is as it must be."""
