"""Options of reading and writing Relax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue

from serde.bridge.options import ExportOptions, ImportOptions, check_convert_map
from serde.core.records import dataclass, field
from serde.errors import OptionError

__all__ = ["LibraryExportOptions", "RelaxExportOptions", "RelaxImportOptions"]


def _last(texts: Sequence[str]) -> str | None:
    """Return the last of several values of a flag."""
    return texts[-1] if texts else None


@dataclass(frozen=True, kw_only=True)
class RelaxImportOptions(ImportOptions):
    """Options of reading Relax.

    Attributes:
        custom_convert_map: What operators become, by name (``relax.nn.relu``): functions of a
            list of Relay expressions and a dict of attributes, which return one expression or
            several.
        function: The function to read, if it is not called ``main`` and there are several.
    """

    function: str | None = field(
        default=None, metadata={"help": "The function to read where it is not called main."}
    )
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = field(
        default_factory=dict, metadata={"flag": None}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_convert_map(self.custom_convert_map)


@dataclass(frozen=True, kw_only=True)
class RelaxExportOptions(ExportOptions):
    """Options of writing Relax.

    Attributes:
        freeze_vars: Put the weights into the module as constants; they are parameters behind the
            inputs otherwise.
    """

    write_packages = ("tvm",)

    freeze_vars: bool = field(
        default=False, metadata={"help": "Put weights into the module as constants."}
    )


@dataclass(frozen=True, kw_only=True)
class LibraryExportOptions(RelaxExportOptions):
    """Options of compiling a library.

    Attributes:
        tvm_target: What the library is compiled for: a kind or tag of TVM, or a mapping such as
            ``{"kind": "llvm", "mcpu": "skylake"}``, also as text in JSON; ``"host"`` is the
            processor at hand. If left out, files are for its family, and what runs here for it.
        cc: What links the library: a C++ compiler for the target; one that TVM finds if left out.
        pipeline: What the module goes through before TVM's build in place of serde's own passes:
            a name that ``relax.get_pipeline`` knows, a pass of TVM, or a function of modules.
        tuning: A folder with records of TVM's meta schedule, which are used for what they fit.
        trials: How many measurements are made for these records first.
    """

    tvm_target: str | Mapping[str, AnyValue] | None = field(
        default=None,
        metadata={
            "flag": "--target",
            "parse": _last,
            "metavar": "TARGET",
            "help": "What TVM compiles for: host, llvm, a tag, or JSON such as "
            '{"kind": "llvm", "mcpu": "skylake"}.',
        },
    )
    cc: str | None = field(
        default=None, metadata={"help": "C++ compiler that links a library for another machine."}
    )
    pipeline: AnyValue = field(
        default=None,
        metadata={"parse": _last, "metavar": "NAME", "help": "TVM's passes: default, zero."},
    )
    tuning: str | None = field(
        default=None, metadata={"help": "Folder with records of TVM's meta schedule to use."}
    )
    trials: int = field(
        default=0, metadata={"help": "Measurements to make for the records of --tuning first."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.pipeline is None or isinstance(self.pipeline, str) or callable(self.pipeline)):
            found = type(self.pipeline).__name__
            raise OptionError(f"pipeline: expected a name, a pass or a function, found {found}")
        if self.trials and not self.tuning:
            raise OptionError("trials: need a folder for tuning")
        if self.tuning and self.pipeline is not None:
            raise OptionError("tuning: belongs to no other pipeline")
        kind = type(self.tvm_target)
        known = self.tvm_target is None or issubclass(kind, (str, Mapping))
        if not (known or kind.__module__.startswith("tvm.")):
            expected = "text, a mapping or a tvm.target.Target"
            raise OptionError(f"tvm_target: expected {expected}, found {kind.__name__}")
