"""Live modules as sources: exported or traced, left as they were, and run in checks."""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.core.report import Report
from serde.engine.interpreter import RelayEngine
from serde.errors import CheckError, FormatError

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

from serde.torch import releases  # noqa: E402
from serde.torch.evaluation import Evaluation  # noqa: E402
from serde.torch.model import Graph, Node, Ref  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:.torch.jit:FutureWarning", "ignore::UserWarning"
)
X = np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32)


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.layer = torch.nn.Linear(3, 3)
        self.drop = torch.nn.Dropout(0.5)
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x, mask=None, *, scale=2.0):
        y = self.norm(self.drop(self.layer(x)))
        return {"logits": y * scale if mask is None else y * mask, "hidden": y + 1}


class Branching(torch.nn.Module):
    """A branch of Python over a tensor, which torch.export refuses."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.layer = torch.nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, pair, offset):
        self.calls.add_(1)
        y = self.layer(pair[0]) + pair[1]
        if float(y.abs().sum()) > 0:
            return y + offset
        return y


def names(values):
    return [each.name for each in values]


def onnx_model(module, **options):
    return serde.export_model(module, format="onnx", **options)


def check(module, folder, **options):
    """The verdict on the file that a module is written to."""
    path = serde.export_model(module, path=folder / "model.onnx", **options)
    return serde.check(module, path, **options)


def test_a_newer_pytorch_is_noted(monkeypatch):
    def notes():
        report = Report()
        serde.to_relay(torch.nn.Linear(3, 2), input_shapes={"input": (2, 3)}, report=report)
        return [note for note in report.notes if "newer" in note]

    assert notes() == []
    monkeypatch.setattr(releases, "NEWEST", (2, 5))
    version = torch.__version__
    assert notes() == [f"PyTorch {version} is newer than 2.5, the newest that was tried"]


def test_inputs_must_be_told():
    with pytest.raises(serde.OptionError, match=r"example_inputs=\(x, \.\.\.\).*for each of x"):
        onnx_model(Small())


@pytest.mark.parametrize(
    "options",
    [
        {"example_inputs": (torch.tensor(X),)},
        {"example_inputs": torch.tensor(X)},
        {"example_inputs": {"x": X}},
        {"input_shapes": {"x": (2, 3)}},
        {"input_shapes": {"x": ("N", 3)}},
        {"input_shapes": {"x": ("?", 3)}, "example_inputs": (X,)},
    ],
)
def test_examples(options, tmp_path):
    module = Small().eval()
    found = onnx_model(module, **options)
    assert names(found.graph.input) == ["x"]
    assert names(found.graph.output) == ["logits", "hidden"]
    report = check(module, tmp_path, **options)
    assert report.passed
    assert report.engines[0].startswith("torch ")


def test_arguments_by_name():
    found = onnx_model(Small(), example_inputs={"x": X, "mask": np.ones(3, np.float32)})
    assert names(found.graph.input) == ["x", "mask"]


def test_symbols():
    found = onnx_model(Small(), input_shapes={"x": ("N", 3)})
    (dim, _) = found.graph.input[0].type.tensor_type.shape.dim
    assert dim.dim_param == "N"


def test_dynamic_shapes_as_export_takes_them():
    shapes = {"x": {0: torch.export.Dim("rows", min=2)}, "mask": None}
    options = {"example_inputs": (torch.tensor(X), torch.ones(3)), "dynamic_shapes": shapes}
    found = onnx_model(Small(), **options)
    (dim, _) = found.graph.input[0].type.tensor_type.shape.dim
    assert dim.dim_param != ""


def test_the_module_stays_as_it_is():
    module = Small()
    module.norm.eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    report = Report()
    onnx_model(module, example_inputs=(X,), report=report)
    assert module.training
    assert module.drop.training
    assert not module.norm.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert "read through torch.export" in report.notes
    assert any("evaluation mode" in note for note in report.notes)


def test_a_trace_that_takes_one_side_of_a_branch_is_refused_until_allowed(tmp_path, capfd):
    module = Branching().eval()
    pair = (torch.tensor(X), torch.ones(3))  # A tuple, of which the compiler is not told.
    with pytest.raises(
        serde.UnsupportedModelError, match=r"Python float.*traced-branch"
    ) as refused:
        onnx_model(module, example_inputs=(pair, 1.5))
    (issue,) = refused.value.report.issues
    assert issue.node.startswith(f"{__file__}:")
    report = Report()
    options = {"example_inputs": (pair, 1.5), "allow": {"traced-branch"}}
    found = onnx_model(module, **options, report=report)
    assert names(found.graph.input) == ["pair_0", "pair_1"]
    assert "layer.weight" in names(found.graph.initializer)
    assert [each.node for each in report.allowed] == [issue.node]
    assert float(module.calls) == 0
    assert check(module, tmp_path, **options).passed
    assert capfd.readouterr() == ("", "")


class Deciding(torch.nn.Module):
    """Branches and loops on values, all of which TorchScript's compiler takes."""

    def forward(self, x, mask: torch.Tensor | None = None, times: int = 2):
        if bool(x.sum() > 0):
            x = x * times
        for _ in range(int(x.abs().max())):
            x = x + 1
        return x if mask is None else x * mask


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "options",
    [
        {"example_inputs": (X, None, 3)},
        {"example_inputs": {"times": 3, "mask": X, "x": X}},
        {"input_shapes": {"x": ("N", 3)}},
    ],
)
def test_a_branch_on_values_is_kept(options, sign):
    module, report = Deciding(), Report()
    model = serde.to_relay(module, **options, report=report)
    assert any("torch.jit.script" in note for note in report.notes)
    x = np.abs(X) * sign
    examples = options.get("example_inputs", ())
    given = {"x": x, "mask": X} if isinstance(examples, dict) else {"x": x}
    times = 3 if examples else 2
    wanted = module(**{name: torch.tensor(each) for name, each in given.items()}, times=times)
    engine = RelayEngine(model)
    assert set(engine.inputs) == set(given)
    np.testing.assert_allclose(engine.run(given)[0], wanted.numpy(), rtol=1e-6)


def test_a_trace_in_which_lengths_alone_decide_is_no_loss():
    class Lengths(torch.nn.Module):
        def forward(self, x):
            assert x.data_ptr()  # Which torch.export refuses.
            return torch.stack([row * len(x) for row in x if x.size(1) > 2])

    report = Report()
    model = serde.to_relay(Lengths(), example_inputs=(X,), report=report)
    assert "read through torch.jit.trace" in report.notes
    np.testing.assert_array_equal(RelayEngine(model).run({"x": X})[0], X * 2)


WRAPPERS = {
    "compiled": torch.compile,
    "parallel": torch.nn.DataParallel,
    "averaged": torch.optim.swa_utils.AveragedModel,
    "both": lambda module: torch.compile(torch.nn.DataParallel(module)),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapped_modules_have_the_names_of_those_within(wrapper, tmp_path):
    module = Small().eval()
    wrapped, options = WRAPPERS[wrapper](module), {"input_shapes": {"x": ("N", 3)}}
    found = onnx_model(wrapped, **options)
    assert names(found.graph.input) == ["x"]
    assert "layer.weight" in names(found.graph.initializer)
    assert check(wrapped, tmp_path, **options).passed


def test_compiled_parts_of_modules_have_the_names_of_those_within():
    module = torch.nn.Sequential(torch.compile(torch.nn.Linear(3, 2)))
    assert list(serde.to_relay(module, example_inputs=(X,)).params) == ["0.weight", "0.bias"]


@pytest.mark.parametrize("module", [Small(), Deciding()], ids=["exported", "compiled"])
def test_a_tensor_that_is_given_twice_is_two_inputs(module, tmp_path):
    x = torch.tensor(X)
    assert serde.to_relay(module, example_inputs=(x, x)).meta.inputs == ("x", "mask")
    assert check(module.eval(), tmp_path, example_inputs=(x, x)).passed


class Optionals(torch.nn.Module):
    def forward(self, x, mask: torch.Tensor | None, xs: list[torch.Tensor], factor: int):
        x = x * factor + xs[0] - xs[1]
        return x if mask is None else x * mask


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("mask", [None, X + 2])
def test_scripts_take_examples(mask, saved, tmp_path):
    source = torch.jit.script(Optionals())
    if saved:
        torch.jit.save(source, tmp_path / "script.pt")
        source = tmp_path / "script.pt"
    options = {"example_inputs": (X, mask, [X + 1, X * 2], 5)}
    wanted = ["x", "xs.0", "xs.1"] if mask is None else ["x", "mask", "xs.0", "xs.1"]
    assert list(serde.to_relay(source, **options).meta.inputs) == wanted
    assert check(source, tmp_path, **options).passed


def test_an_optional_of_a_script_without_a_shape_is_none(tmp_path):
    source, report = torch.jit.script(Optionals()), Report()
    options = {"input_shapes": {"x": (2, 3), "xs.0": (3,), "xs.1": (3,), "factor": ()}}
    assert "mask" not in serde.to_relay(source, **options, report=report).meta.inputs
    assert "mask is left out of the inputs: it is None" in report.notes
    assert check(source, tmp_path, **options).passed


def test_examples_that_do_not_fit_a_script():
    source = torch.jit.script(Deciding())
    with pytest.raises(serde.OptionError, match="x is a tensor; example_inputs has several"):
        serde.to_relay(source, example_inputs=((X, X),))
    with pytest.raises(serde.OptionError, match="arguments are x, mask, times"):
        serde.to_relay(source, example_inputs={"y": X})


def test_what_neither_takes():
    class Wrong(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("no way")

    with pytest.raises(serde.OptionError, match="no way"):
        onnx_model(Wrong(), example_inputs=(X,))


def test_arguments_that_there_are_not():
    with pytest.raises(serde.OptionError, match="forward has no argument 'y'"):
        onnx_model(Small(), input_shapes={"y": (2, 3)})


def test_changed_buffers_are_compared(tmp_path):
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen.add_(x.sum(0))
            return x * self.seen

    module = Counting().eval()
    found = onnx_model(module, example_inputs=(X,))
    assert names(found.graph.output)[1] == "seen_new"
    assert check(module, tmp_path, example_inputs=(X,)).passed
    assert not module.seen.any()


def test_a_script_is_checked_by_torch(tmp_path):
    script = torch.jit.trace(torch.nn.Linear(3, 4).eval(), torch.tensor(X))
    report = check(script, tmp_path, input_shapes={"input": (2, 3)})
    assert report.passed
    assert report.engines[0].startswith("torch ")


class Structured(torch.nn.Module):
    def forward(
        self,
        xs: list[torch.Tensor],
        named: dict[str, torch.Tensor],
        other: torch.Tensor | None = None,
        factor: int = 3,
    ):
        return [xs[0] * factor, xs[1] + named["a"]]


def test_lists_and_dicts_of_scripts_are_checked_by_torch(tmp_path):
    script = torch.jit.script(Structured())
    shapes = {"xs.0": (2, 3), "xs.1": (2, 3), "named.a": (3,), "factor": ()}
    assert check(script, tmp_path, input_shapes=shapes).passed


def test_an_archive_of_torchscript_is_checked_by_torch(tmp_path):
    path = tmp_path / "script.pt"
    torch.jit.save(torch.jit.script(torch.nn.Linear(3, 4).eval()), path)
    target = tmp_path / "model.onnx"
    report = serde.convert(path, target, input_shapes={"input": (2, 3)}, check=True)
    assert report.passed
    assert report.engines[0].startswith("torch ")


def test_a_program_is_checked_by_torch(tmp_path):
    program = torch.export.export(Small().eval(), (torch.tensor(X),))
    report = check(program, tmp_path)
    assert report.passed
    assert report.engines[0].startswith("torch ")


class Cache:
    """An object that PyTorch does not know."""


class Caching(torch.nn.Module):
    def forward(self, x):
        return {"logits": x * 2, "cache": Cache()}


def test_results_that_are_objects_are_left_out(tmp_path):
    module, report = Caching().eval(), Report()
    found = onnx_model(module, example_inputs=(X,), report=report)
    assert names(found.graph.output) == ["logits"]
    assert "read through torch.export" in report.notes
    assert any("of type Cache are left out" in note for note in report.notes)
    assert "forward" not in vars(module)
    assert check(module, tmp_path, example_inputs=(X,)).passed


GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "torch").glob("*.pt2"))


@pytest.mark.wide
@pytest.mark.parametrize("path", GOLDEN, ids=[each.stem for each in GOLDEN])
def test_archives_run_operator_by_operator(path):
    from serde.torch.bridge import BRIDGE

    report = Report()
    model = BRIDGE.load(path, None, BRIDGE.bind_import({}))
    relay_model = BRIDGE.to_relay(model, BRIDGE.bind_import({}), report=report)
    engine = BRIDGE.engine(model, relay_model)
    try:
        assert engine.name.startswith("torch ")
        assert engine.outputs == list(relay_model.meta.outputs)
        recorded = {
            name: value
            for name, value in np.load(path.with_suffix(".npz")).items()
            if name.startswith("0.")
        }
        names = relay_model.meta.inputs
        found = engine.run({name: recorded[f"0.input.{i}"] for i, name in enumerate(names)})
    finally:
        engine.close()
    wanted = [value for name, value in recorded.items() if not name.startswith("0.input")]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["aten::from_file", "os::system", "aten::set_.source_Tensor"])
def test_operators_without_converter_are_not_run(op):
    node = Node(op, "bad", [("filename", "secret"), ("size", 3)], ["bad"])
    with pytest.raises(CheckError, match="is not run"):
        Evaluation({}).run(Graph([], [node], [Ref("bad")]), [])


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def tampered(source: Path, target: Path, mark: Path) -> Path:
    """An archive whose sample inputs are a pickle that makes a file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as inner:
        inner.writestr("archive/data.pkl", pickle.dumps(Bomb(mark)))
        inner.writestr("archive/version", "3")
    with zipfile.ZipFile(source) as given, zipfile.ZipFile(target, "w") as found:
        for name in given.namelist():
            known = "sample_inputs" in name
            found.writestr(name, buffer.getvalue() if known else given.read(name))
        if not any("sample_inputs" in name for name in given.namelist()):
            root = given.namelist()[0].split("/")[0]
            found.writestr(f"{root}/data/sample_inputs/model.pt", buffer.getvalue())
    return target


def test_a_pickle_in_an_archive_is_not_executed(tmp_path):
    program = torch.export.export(Small().eval(), (torch.tensor(X),))
    path = tmp_path / "plain.pt2"
    torch.export.save(program, path)
    mark = tmp_path / "mark"
    found = tampered(path, tmp_path / "tampered.pt2", mark)
    logging.disable()
    with contextlib.suppress(Exception):
        torch.export.load(found)
    logging.disable(logging.NOTSET)
    assert mark.exists()
    mark.unlink()
    report = serde.convert(found, tmp_path / "model.onnx", check=True)
    assert report.passed
    assert report.engines[0].startswith("torch ")
    assert not mark.exists()


def test_a_written_folder_runs_by_its_own_source(tmp_path):
    module = Small().eval()
    options = {"input_shapes": {"x": (2, 3)}}
    folder = serde.export_model(module, format="torch", path=tmp_path / "small_torch", **options)
    assert serde.check(module, folder, **options).passed
    assert not (folder / "__pycache__").exists()
    text = (folder / "model.py").read_text()
    broken = tmp_path / "other_torch"
    shutil.copytree(folder, broken)
    assert "2.0" in text
    (broken / "model.py").write_text(text.replace("2.0", "3.0"))
    assert not serde.check(module, broken, **options).passed
    (broken / "model.py").write_text("raise RuntimeError('no model')")
    with pytest.raises(FormatError, match="no model"):
        serde.check(module, broken, **options)
