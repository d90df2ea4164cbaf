"""Every format through the suite that bridges of other packages get too."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.toy_format import (
    BRIDGE,
    OPS,
    TOY,
    OnlyRead,
    OnlyWritten,
    ToyBridge,
    ToyEntryPoint,
    ToyExportOptions,
)

from serde.bridge.formats import get_bridge
from serde.bridge.summary import TensorNames
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.relay.ir.model import RelayModel
from serde.testing import BridgeSuite

# All samples of all operators are in the tests of the formats; here are some of each category.
SPREAD = (
    *("add", "clip", "nn.softmax", "mean", "argmax", "transpose", "take", "where", "nn.dense"),
    *("nn.conv2d", "nn.max_pool2d", "nn.layer_norm", "nn.batch_norm", "split", "concatenate"),
)


class TestOnnx(BridgeSuite):
    bridge = get_bridge("onnx")
    operators = SPREAD


class TestMxnet(BridgeSuite):
    bridge = get_bridge("mxnet")
    operators = SPREAD

    def output_names(self, model: RelayModel) -> tuple[str, ...]:
        return tuple(f"{name}_output" for name in model.meta.outputs)


class TestRelay(BridgeSuite):
    bridge = get_bridge("relay")
    operators = SPREAD


class TestCoreml(BridgeSuite):
    bridge = get_bridge("coreml")
    operators = SPREAD
    export_options = MappingProxyType({"compute_precision": "float32"})
    refused = MappingProxyType(
        {
            "clip-1": "no int8 at iOS15",
            "nn.conv2d-0": "no int8 at iOS15",
            "nn.conv2d-6": "dilated, with a weight that is computed",
            "nn.dense-2": "no int8 at iOS15",
            "nn.max_pool2d-2": "no int8 at iOS15",
        }
    )


class TestNnef(BridgeSuite):
    bridge = get_bridge("nnef")
    operators = SPREAD
    refused = MappingProxyType(
        {
            **dict.fromkeys(
                ("add-4", "mean-6", "argmax-4", "where-2", "nn.dense-2", "nn.conv2d-6"),
                "NNEF computes with no integers",
            ),
            "argmax-5": "NNEF has the first of equal elements only",
            "take-0": "indices that wrap around need arithmetic of integers",
        }
    )


class TestNnefArchive(BridgeSuite):
    """The same in one file."""

    bridge = get_bridge("nnef")

    def path_in(self, folder: Path, name: str = "model") -> Path:
        return folder / f"{name}.nnef.tgz"


class TestToy(BridgeSuite):
    bridge = BRIDGE
    operators = tuple(OPS.exported())

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [TOY])


class TestOnlyRead(BridgeSuite):
    """A format that is never written; the toy makes its file."""

    bridge = OnlyRead()

    def make_file(self, path: Path, factor: float = 1.0) -> Path:
        model = BRIDGE.from_relay(self.make_model(factor), ToyExportOptions(), report=Report())
        return BRIDGE.save(model, path, ToyExportOptions())

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = ToyEntryPoint("onlyread", "elsewhere:BRIDGE", self.bridge)
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])


class TestOnlyWritten(BridgeSuite):
    """A format that is never read."""

    bridge = OnlyWritten()

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = ToyEntryPoint("onlywritten", "elsewhere:BRIDGE", self.bridge)
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])


# What the suite is for: bridges that are wrong in one place.


class LooseBridge(ToyBridge):
    """Replaces a file before it is checked."""

    def save(
        self,
        model: Any,
        path: Path,
        options: Any,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        path.write_text(json.dumps(model))
        if before_commit is not None:
            before_commit(path)
        return path


class RestlessBridge(ToyBridge):
    """Writes another file each time."""

    count = 0

    def from_relay(self, model: Any, options: Any, *, report: Report) -> Any:
        type(self).count += 1
        return {**super().from_relay(model, options, report=report), "count": self.count}


class ForgetfulBridge(ToyBridge):
    """Gives all weights the value 1."""

    def to_relay(self, model: Any, options: Any, *, report: Report) -> Any:
        found = super().to_relay(model, options, report=report)
        ones = {n: ArrayWeight(np.ones(w.shape, w.dtype)) for n, w in found.params.items()}
        return found.evolve(params=ones)


class CarelessBridge(ToyBridge):
    """Takes any text for a model, and fails where it is none."""

    def load(self, source: Any, params: Any, options: Any) -> Any:
        return json.loads(Path(source).read_text(encoding="utf-8"))


class GreedyBridge(ToyBridge):
    """Takes every file for its own."""

    def detect(self, path: Path) -> bool:
        return True


class RenamingBridge(ToyBridge):
    """Says other names than a file has."""

    def names(self, model: Any) -> TensorNames:
        names = super().names(model)
        return TensorNames(names.inputs, names.outputs[::-1], names.weights, names.nodes)


class SilentBridge(ToyBridge):
    """Lists no operators."""

    def coverage(self) -> list[tuple[str, str]]:
        return []


@dataclass(frozen=True, kw_only=True)
class ToldByNobody(ToyExportOptions):
    """How files are written."""

    volume: int = 11


class MumblingBridge(ToyBridge):
    """Has an option that no text tells of."""

    export_options = ToldByNobody


@pytest.mark.parametrize(
    ("bridge", "test", "given"),
    [
        (LooseBridge, "test_a_failed_check_leaves_what_was_there", {}),
        (RestlessBridge, "test_the_same_model_gives_the_same_bytes", {}),
        (ForgetfulBridge, "test_a_file_computes_what_was_written", {}),
        (ForgetfulBridge, "test_a_check_tells_a_changed_weight", {}),
        (CarelessBridge, "test_a_truncated_file_is_refused_or_read", {"seed": 1}),
        (CarelessBridge, "test_an_empty_file_ends_a_command_with_code_3", {}),
        (GreedyBridge, "test_other_files_are_not_recognised", {"content": b""}),
        (RenamingBridge, "test_names_are_kept", {}),
        (SilentBridge, "test_operators_of_a_file_are_listed", {}),
        (
            MumblingBridge,
            "test_every_option_is_documented",
            {"binder": "bind_export", "option": SimpleNamespace(name="volume")},
        ),
    ],
)
def test_the_suite_sees_what_is_wrong(
    bridge: type[ToyBridge],
    test: str,
    given: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = bridge()
    entry = ToyEntryPoint("toy", "elsewhere:BRIDGE", made)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    suite = type("Suite", (TestToy,), {"bridge": made})()
    (tmp_path / "written").mkdir()
    written = suite.make_file(tmp_path / "written" / "model.toy")
    fixtures = {"written": written, "tmp_path": tmp_path, "capsys": capsys, **given}
    function = getattr(suite, test)
    wanted = [name for name in inspect.signature(function).parameters if name in fixtures]
    with pytest.raises((AssertionError, ValueError)):
        function(**{name: fixtures[name] for name in wanted})
