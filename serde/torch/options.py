"""Options of reading and writing PyTorch models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any as AnyValue, Literal

from serde.bridge.options import ExportOptions, ImportOptions, check_convert_map
from serde.core import dataclass, field, shown
from serde.errors import OptionError
from serde.torch.checkpoint.tasks import Task

__all__ = ["TorchExportOptions", "TorchImportOptions"]


@dataclass(frozen=True, kw_only=True)
class TorchExportOptions(ExportOptions):
    """Options of writing PyTorch modules.

    Attributes:
        control_flow: Conditionals and loops as statements of Python, which ``torch.jit.script``
            takes, or as ``torch.cond`` and ``while_loop`` ("hop"), which ``torch.export`` takes.
        training: Keep what only matters in training: dropout, and batch normalisations as layers
            of their own. Without it the module is smaller and only predicts.
    """

    run_packages = ("torch",)

    control_flow: Literal["python", "hop"] = field(
        default="python",
        metadata={"help": "Conditionals and loops as Python's, or as torch.cond and while_loop."},
    )
    training: bool = field(
        default=True, metadata={"help": "Keep dropout and batch normalisations, for training."}
    )

    @property
    def keeps_training(self) -> bool:
        """Whether operators that only matter in training stay until the bridge sees them."""
        return self.training


@dataclass(frozen=True, kw_only=True)
class TorchImportOptions(ImportOptions):
    """Options of reading PyTorch programs.

    Attributes:
        example_inputs: Arguments with which a live module is exported or traced.
        dynamic_shapes: Which of their dimensions may have any length, as ``torch.export`` takes it.
        custom_convert_map: What operators become, by name: functions of a list of Relay
            expressions (and of Python's values) and a list of their dtypes, which return one
            expression or several.
        default_dtype: The dtype of numbers with a fraction, and of inputs of TorchScript that
            declare none.
        task: What a checkpoint of Hugging Face, or a module of transformers, is to do.
        part: Which model is wanted of those that it becomes: ``"encoder_model"`` or
            ``"decoder_model"``.
        dtype: The dtype of a checkpoint's weights: as its config says ("auto"), or another.
        raw_audio: Whether a model of speech takes samples of sound, of which it computes the
            spectrogram itself, as Whisper's feature extractor does.
    """

    example_inputs: AnyValue = field(default=None, metadata={"flag": None})
    dynamic_shapes: AnyValue = field(default=None, metadata={"flag": None})
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = field(
        default_factory=dict, metadata={"flag": None}
    )
    default_dtype: str = field(
        default="float32", metadata={"help": "The dtype of numbers with a fraction."}
    )
    task: Task | None = field(
        default=None, metadata={"help": "What a checkpoint of Hugging Face is to do."}
    )
    part: str = field(default="", metadata={"flag": None})
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = field(
        default="auto", metadata={"help": "The dtype of a checkpoint's weights."}
    )
    raw_audio: bool = field(
        default=False, metadata={"help": "Give Whisper samples of sound instead of a spectrogram."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        given, shapes = self.example_inputs, self.dynamic_shapes
        kinds = (tuple, list, Mapping, NoneType)
        if not (isinstance(given, kinds) or hasattr(given, "__array__")):
            raise OptionError(f"example_inputs: expected a tuple of tensors, found {shown(given)}")
        if not isinstance(shapes, kinds):
            raise OptionError(f"dynamic_shapes: expected a tuple or a dict, found {shown(shapes)}")
        check_convert_map(self.custom_convert_map)
