"""What is written as PyTorch's source, without PyTorch."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.named_nets import row_of_blocks

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.errors import OptionError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Expr, Function, Var
from serde.relay.ir.model import TRAINING_HEADS, TRAINING_NODES, ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.visit import free_vars
from serde.torch.training import read_facts

Weights = dict[str, np.ndarray]


def model_of(inputs: Sequence[Var], body: Expr, weights: Weights) -> RelayModel:
    """Return a model whose further free variables are `weights`."""
    variables = [each for each in free_vars(body) if each not in inputs]
    function = Function([*inputs, *variables], body)
    mod = relay.transform.InferType()(IRModule.from_expr(function))
    names = tuple(each.name_hint for each in inputs)
    held = {each.name_hint: ArrayWeight(weights[each.name_hint]) for each in variables}
    return RelayModel(mod, held, ModelMeta(names, ("scores",), "relay", "1"))


def chain(widths: Sequence[int]) -> RelayModel:
    """Return residual blocks of different widths, one behind the other, and a classifier."""
    generator = np.random.default_rng(1)
    weights: Weights = {}

    def weight(name: str, *shape: int) -> Var:
        weights[name] = generator.normal(size=shape).astype(np.float32)
        return relay.var(name, shape=shape)

    def conv(x: Expr, scope: str, inner: int, outer: int) -> Expr:
        kernel = weight(f"net_{scope}_weight", outer, inner, 3, 3)
        made = relay.nn.conv2d(x, kernel, padding=(1, 1), kernel_size=(3, 3))
        return relay.nn.bias_add(made, weight(f"net_{scope}_bias", outer))

    data = relay.var("data", shape=(1, 3, 8, 8))
    x, before = relay.nn.relu(conv(data, "stem", 3, widths[0])), widths[0]
    for stage, width in enumerate(widths):
        if width != before:
            x = conv(x, f"stage{stage}_change", before, width)
        for unit in range(3):
            scope = f"stage{stage}_unit{unit}"
            y = relay.nn.relu(conv(x, f"{scope}_conv0", width, width))
            y = relay.nn.relu(conv(y, f"{scope}_conv1", width, width))
            x = relay.nn.relu(relay.add(x, y))
        before = width
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))
    return model_of([data], relay.nn.dense(x, weight("net_out_weight", 5, before)), weights)


def write(model: RelayModel, folder: Path, **options: object) -> str:
    """Write a model as a folder and return its source."""
    serde.export_model(model, format="torch", path=folder, **options)  # type: ignore[call-overload]
    return (folder / "model.py").read_text(encoding="utf-8")


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], bytes]:
    """Return the tensors of a file, read by the format's description, and its header."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    kinds = {"F32": "<f4", "I64": "<i8", "BOOL": "?"}
    found = {}
    for name, each in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in each["data_offsets"])
            array = np.frombuffer(data[begin:end], kinds[each["dtype"]])
            found[name] = array.reshape(each["shape"])
    return found, data[: 8 + length]


def run_ruff(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ruff", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a chain of blocks."""
    write(chain([4, 4, 6]), tmp_path / "net_torch")
    return tmp_path / "net_torch"


def test_blocks_that_repeat_are_a_class(folder: Path) -> None:
    text = (folder / "model.py").read_text(encoding="utf-8")
    classes = [each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)]
    assert [each.name for each in classes] == ["ResidualBlock", "Model"]
    assert "self.stage0 = nn.Sequential(" in text
    assert text.count("*(ResidualBlock(4) for _ in range(3))") == 2
    assert text.count("*(ResidualBlock(6) for _ in range(3))") == 1
    assert "self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)" in text


def dense_row(names: Sequence[str]) -> RelayModel:
    """Return dense layers with an activation between, of weights with given names."""
    generator = np.random.default_rng(2)
    weights: Weights = {}
    x = data = relay.var("data", shape=(2, 4))
    for name in names:
        x = x if x is data else relay.nn.relu(x)
        held = []
        for kind, shape in (("weight", (4, 4)), ("bias", (4,))):
            weights[f"{name}.{kind}"] = generator.normal(size=shape).astype(np.float32)
            held.append(relay.var(f"{name}.{kind}", shape=shape))
        x = relay.nn.bias_add(relay.nn.dense(x, held[0]), held[1])
    return model_of([data], x, weights)


def test_layers_that_the_source_numbers_are_sequential(tmp_path: Path) -> None:
    model = dense_row(["features.0", "features.2", "head.0", "head.2", "head.4"])
    text = write(model, tmp_path / "net_torch")
    body = text[text.index("class Model") : text.index("    @classmethod")]
    assert (
        body
        == """\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()
        )
        self.head = nn.Sequential(
            nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)
        )

    def forward(self, data):
        x = self.features(data)  # (2, 4)
        return self.head(x)

"""
    )
    config = json.loads((tmp_path / "net_torch" / "config.json").read_text(encoding="utf-8"))
    assert config["weights"]["head.4.bias"] == "head.4.bias"
    tensors, _ = read_safetensors(tmp_path / "net_torch" / "model.safetensors")
    assert sorted(tensors) == sorted(config["weights"].values())


@pytest.mark.parametrize(
    "names", [["fc1", "fc2", "fc3"], ["a.0", "b.0", "c.0"], ["fc", "fc.1", "fc.2"]]
)
def test_layers_with_names_of_their_own_keep_them(names: list[str], tmp_path: Path) -> None:
    text = write(dense_row(names), tmp_path / "net_torch")
    assert "nn.Sequential" not in text
    assert all(f"self.{name.replace('.', '_')} = nn.Linear(4, 4)" in text for name in names)


def test_names_of_the_source_are_kept(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["weights"]["net_stem_weight"] == "stem.weight"
    assert config["weights"]["net_stage2_change_bias"] == "stage2_change.bias"
    assert config["weights"]["net_stage1_unit2_conv1_bias"] == "stage1.2.conv2.bias"


def test_weights_are_where_the_mapping_says(folder: Path) -> None:
    tensors, _ = read_safetensors(folder / "model.safetensors")
    mapping = json.loads((folder / "config.json").read_text(encoding="utf-8"))["weights"]
    source = chain([4, 4, 6]).params
    assert sorted(tensors) == sorted(mapping.values())
    for name, place in mapping.items():
        np.testing.assert_array_equal(tensors[place], source[name].array())


def test_the_library_reads_the_weights(folder: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    found = safetensors.load_file(folder / "model.safetensors")
    expected, _ = read_safetensors(folder / "model.safetensors")
    assert found.keys() == expected.keys()
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name])


def test_the_header_is_that_of_the_library(folder: Path, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    tensors, header = read_safetensors(folder / "model.safetensors")
    again = tmp_path / "again.safetensors"
    safetensors.save_file(tensors, again, metadata={"format": "pt"})
    assert read_safetensors(again)[1] == header


def test_the_same_model_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again_torch"
    write(chain([4, 4, 6]), again)
    for name in ("model.py", "config.json", "model.safetensors"):
        assert (folder / name).read_bytes() == (again / name).read_bytes()


def test_a_folder_is_replaced_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    write(chain([4]), folder)
    assert sorted(each.name for each in folder.iterdir()) == [
        "config.json",
        "model.py",
        "model.safetensors",
    ]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(OptionError):
        write(chain([4]), tmp_path / "other")
    config = folder / "config.json"
    config.write_text('{"architectures": ["Another"]}')
    with pytest.raises(OptionError):
        write(chain([4]), folder)


def branch() -> RelayModel:
    """Return a conditional around long calls."""
    x = relay.var("x", shape=("N", 4))
    w = relay.var("w", shape=(4, 4))
    y = relay.If(
        relay.greater(relay.sum(x), relay.const(0.5, "float32")),
        relay.nn.dense(x, w),
        relay.multiply(x, relay.const(np.arange(4, dtype=np.float32))),
    )
    return model_of([x], relay.tanh(y), {"w": np.eye(4, dtype=np.float32)})


def wide() -> RelayModel:
    """Return calls that do not fit on a line."""
    inputs = [relay.var(f"a_rather_long_name_of_an_input_{i}", shape=(2, 3)) for i in range(6)]
    joined = relay.concatenate(inputs, axis=1)
    return model_of(inputs, relay.reshape(joined, (3, 2, 3, 2)), {})


def long_names() -> RelayModel:
    """Return layers whose names take most of a line, or more than one."""
    x = relay.var("x", shape=(2, 4))
    y, weights = x, {}
    for length in (55, 70, 80, 90, 200):
        name = "a" * length
        w = relay.var(f"{name}.weight", shape=(4, 4))
        y = relay.nn.relu(relay.nn.dense(y, w))
        weights[w.name_hint] = np.eye(4, dtype=np.float32)
    return model_of([x], relay.maximum(y, relay.const(-1e18, "float32")), weights)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        pytest.param(chain([4, 4, 6]), {}, id="blocks"),
        pytest.param(branch(), {}, id="branch"),
        pytest.param(branch(), {"control_flow": "hop"}, id="cond"),
        pytest.param(wide(), {}, id="wide"),
        pytest.param(long_names(), {}, id="long-names"),
        pytest.param(serde.to_relay(row_of_blocks(1)[0]), {}, id="rows-of-blocks"),
    ],
)
def test_ruff_has_nothing_to_say(
    model: RelayModel, options: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("ruff")
    write(model, tmp_path / "net_torch", **options)
    path = str(tmp_path / "net_torch" / "model.py")
    done = run_ruff("format", "--isolated", "--diff", path)
    assert (done.returncode, done.stdout) == (0, "")
    done = run_ruff("check", "--isolated", path)
    assert done.returncode == 0, done.stdout


def test_losses_are_named_in_the_description(tmp_path: Path) -> None:
    model = chain([4])
    extra = {TRAINING_HEADS: json.dumps({"scores": "SoftmaxOutput"})}
    text = write(model.evolve(meta=replace(model.meta, extra=extra)), tmp_path / "net_torch")
    description = ast.get_docstring(ast.parse(text)) or ""
    assert "scores: float32 (1, 5)" in description
    assert "scores: SoftmaxOutput; train by F.nll_loss of its logarithm" in description


HOSTILE = '"""\nimport os\n"""\\\r"\u2028"\0\ud800'


def test_texts_of_the_source_are_no_code(tmp_path: Path) -> None:
    x = relay.var("x", shape=(symbol(HOSTILE), 4))
    model = model_of([x], relay.tanh(x), {})
    extra = {TRAINING_HEADS: json.dumps({HOSTILE: HOSTILE})}
    names = {"inputs": (HOSTILE,), "outputs": (HOSTILE,), "labels": (HOSTILE,), "extra": extra}
    origin = {"source_format": HOSTILE, "source_version": HOSTILE, "description": HOSTILE}
    write(model, tmp_path / "plain_torch")
    hostile = replace(model.meta, **names, **origin)  # type: ignore[arg-type]
    text = write(model.evolve(meta=hostile), tmp_path / "net_torch")
    plain = (tmp_path / "plain_torch" / "model.py").read_text(encoding="utf-8")
    (_, *code), (_, *expected) = ast.parse(text).body, ast.parse(plain).body
    assert list(map(ast.dump, code)) == list(map(ast.dump, expected))
    config = json.loads((tmp_path / "net_torch" / "config.json").read_text(encoding="utf-8"))
    assert config["labels"] == [HOSTILE]


@pytest.mark.parametrize(
    "value",
    [np.finfo(np.float32).min, np.finfo(np.float32).max, np.float32(0.1), np.float32(1e-45)],
)
def test_numbers_are_those_of_float32_and_not_beyond(value: np.float32, tmp_path: Path) -> None:
    """PyTorch refuses a number beyond float32, though it would be rounded to the greatest."""
    x = relay.var("x", shape=(2, 3))
    text = write(model_of([x], relay.add(x, relay.const(value)), {}), tmp_path / "net_torch")
    (number,) = (
        ast.literal_eval(line.split("x + ")[1]) for line in text.split("\n") if "x + " in line
    )
    assert abs(number) <= float(np.finfo(np.float32).max)
    assert np.float32(number) == value


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("x\u00b2", "x2"),
        ("\ufb01", "fi"),
        ("__w", "w"),
        ("_buffers", "buffers_1"),
        ("train", "train_1"),
        ("class", "class_1"),
        ("__", "layer"),
        ("0.w/a", "_0_w_a"),
        ("a" * 200, "a" * 200),
    ],
)
def test_weights_have_names_that_modules_may_have(
    name: str, attribute: str, tmp_path: Path
) -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var(name, shape=(3,))
    write(model_of([x], relay.add(x, w), {name: np.ones(3, np.float32)}), tmp_path / "net_torch")
    tensors, _ = read_safetensors(tmp_path / "net_torch" / "model.safetensors")
    assert list(tensors) == [attribute]


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("torch", "_torch"), ("__x", "x"), ("/", "x"), ("\ufb01", "fi"), ("float", "_float")],
)
def test_inputs_hide_nothing(name: str, parameter: str, tmp_path: Path) -> None:
    x = relay.var(name, shape=(2, 3))
    text = write(model_of([x], relay.tanh(x), {}), tmp_path / "net_torch")
    assert f"def forward(self, {parameter}):" in text


def test_a_branch_gives_all_that_is_read_behind_it(tmp_path: Path) -> None:
    x, c = relay.var("x", shape=(2, 4)), relay.var("c", shape=(), dtype="bool")
    w = relay.var("w", shape=(3, 4))
    dense = relay.nn.dense(x, w)
    then = relay.Tuple([dense, relay.nn.relu(dense)])
    body = relay.If(c, then, relay.Tuple([relay.nn.dense(relay.exp(x), w)] * 2))
    model = model_of([x, c], body, {"w": np.ones((3, 4), np.float32)})
    names = replace(model.meta, outputs=("one", "two"))
    text = write(model.evolve(meta=names), tmp_path / "net_torch")
    (first, second), _ = (
        [each.targets[0] for each in branch if isinstance(each, ast.Assign)]
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.If)
        for branch in (each.body, each.orelse)
    )
    assert ast.dump(first) != ast.dump(second)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"n": {"momentum": NaN, "axes": 3, "p": "x"}}'])
def test_senseless_facts_of_training_are_none(text: str) -> None:
    meta = ModelMeta((), (), "relay", "1", extra={TRAINING_NODES: text})
    assert not any(read_facts(meta).values())


def test_resnet50_is_written_as_blocks(tmp_path: Path) -> None:
    from serde.compat import import_mxnet

    mx = import_mxnet()
    net = mx.gluon.model_zoo.vision.resnet50_v1()
    net.initialize()
    net.hybridize()
    net(mx.nd.zeros((1, 3, 32, 32)))
    net.export(str(tmp_path / "net"))
    paths = [tmp_path / "net-symbol.json", tmp_path / "net-0000.params"]
    serde.convert(paths, tmp_path / "net_torch", input_shapes={"data": (1, 3, 224, 224)})
    text = (tmp_path / "net_torch" / "model.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert all(f"self.stage{number} = nn.Sequential(" in text for number in (1, 2, 3, 4))
