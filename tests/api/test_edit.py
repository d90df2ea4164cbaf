"""Models that are edited; ONNX Runtime, MXNet, LiteRT and NumPy do outside what an edit puts in."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import nnef
import numpy as np
import onnx
import onnx.parser
import pytest
from ai_edge_litert.interpreter import Interpreter
from onnx import TensorProto, helper
from support import nnef_reference
from support.mil_executor import execute
from support.page_nets import write_checkpoint
from support.runtime import run_onnx
from support.tflite_models import run_litert

import serde
from serde.command.cli import main
from serde.compat import import_mxnet
from serde.errors import OptionError
from serde.relay import transform

RNG = np.random.default_rng(11)
WEIGHTS = ", ".join(f"{each:.3f}" for each in RNG.normal(size=54))
NET = f"""
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[1, 3, 8, 8] data) => (float[1, 2, 8, 8] prob)
<float[2, 3, 3, 3] w = {{{WEIGHTS}}}, float[2] b = {{0, 1}}>
{{
    c = Conv <pads = [1, 1, 1, 1]> (data, w, b)
    h = HardSigmoid <alpha = 0.25> (c)
    m = Mul (c, h)
    prob = Softmax <axis = 1> (m)
}}
"""
FIRST = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N, 3] x, float[3] s) => (float[N, 3] y, float[N, 3] z)
<float[3] w = {1, 2, 3}>
{
    y = Mul (x, w)
    z = Add (x, s)
}
"""
SECOND = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[M, 3] y, float[3] s) => (float[M, 3] z, float[M] t)
<float[3] w = {4, 5, 6}, int64[1] axis = {1}>
{
    q = Mul (y, w)
    z = Add (q, s)
    t = ReduceSum <keepdims = 0> (q, axis)
}
"""
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
NORMAL = "mean=0.4,0.5,0.6,std=0.2,0.25,0.3,scale=1/255"
IMAGE = RNG.integers(0, 256, (1, 8, 8, 3)).astype("uint8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the models lie, and a command works."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"net": NET, "first": FIRST, "second": SECOND}.items():
        onnx.save(onnx.parser.parse_model(text), f"{name}.onnx")
    return tmp_path


def edit(*words: str) -> int:
    return main(["edit", *words, "-q"])


def numbers(path: str, **inputs: np.ndarray) -> list[np.ndarray]:
    return run_onnx(Path(path), inputs)[1]


def normal(image: np.ndarray) -> np.ndarray:
    """An image of bytes, NHWC, as the net takes it, NCHW."""
    scaled = image.astype("float32") * np.float32(1 / 255)
    return ((scaled - np.float32(MEAN)) / np.float32(STD)).transpose(0, 3, 1, 2)


IMAGES: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "layout=NHWC,dtype=uint8": (IMAGE, normal(IMAGE)),
    "layout=HWC,dtype=uint8,channels=BGR": (IMAGE[0, ..., ::-1], normal(IMAGE)),
    "dtype=int32": (IMAGE.transpose(0, 3, 1, 2).astype("int32"), normal(IMAGE)),
    "layout=WHC,dtype=uint8": (IMAGE[0].transpose(1, 0, 2), normal(IMAGE)),
    "layout=CHW": (IMAGE[0].transpose(2, 0, 1).astype("float32"), normal(IMAGE)),
    "model_layout=NCHW,layout=NCHW,channels=BGR": (
        IMAGE[..., ::-1].transpose(0, 3, 1, 2).astype("float32"),
        normal(IMAGE),
    ),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("given", IMAGES)
def test_an_image_is_normalised(given: str) -> None:
    assert edit("net.onnx", "e.onnx", "--normalize", f"data:{NORMAL},{given}", "--check") == 0
    image, outside = IMAGES[given]
    found = numbers("e.onnx", data=np.ascontiguousarray(image))
    np.testing.assert_allclose(found[0], numbers("net.onnx", data=outside)[0], atol=2e-6)


def test_an_image_of_float16_is_normalised_in_float32() -> None:
    half = NET.replace("float[1, 3, 8, 8]", "float16[1, 3, 8, 8]").replace(
        "c = Conv <pads = [1, 1, 1, 1]> (data,", "d = Cast <to = 1> (data) c = Conv (d,"
    )
    half = half.replace("float[1, 2, 8, 8]", "float[1, 2, 6, 6]")
    onnx.save(onnx.parser.parse_model(half), "half.onnx")
    assert edit("half.onnx", "e.onnx", "--normalize", f"data:{NORMAL},layout=NHWC,dtype=uint8") == 0
    outside = numbers("half.onnx", data=normal(IMAGE).astype("float16"))
    np.testing.assert_allclose(numbers("e.onnx", data=IMAGE)[0], outside[0], atol=1e-5)


def test_mxnet_files_stay_mxnet_files() -> None:
    write_checkpoint("m")
    shape = ("--input-shape", "data:1,3,8,8")
    given = f"data:{NORMAL},layout=NHWC,dtype=uint8"
    assert edit("m-symbol.json", "e-symbol.json", *shape, "--normalize", given, "--check") == 0
    mx = import_mxnet()

    def run(prefix: str, image: np.ndarray) -> np.ndarray:
        symbol, arguments, states = mx.model.load_checkpoint(prefix, 0)
        arguments["data"] = mx.nd.array(image, dtype=image.dtype)
        return symbol.bind(mx.cpu(), arguments, aux_states=states).forward()[0].asnumpy()

    np.testing.assert_allclose(run("e", IMAGE), run("m", normal(IMAGE)), atol=2e-6)


def test_tflite_stays_tflite_where_the_name_tells_nothing() -> None:
    serde.convert("net.onnx", "net.tflite")
    given = f"data:{NORMAL},layout=NHWC,dtype=uint8"
    assert edit("net.tflite", "e", "--normalize", given, "--rename", "data=image", "--check") == 0
    data = Path("e").read_bytes()
    assert [each["name"] for each in Interpreter(model_content=data).get_input_details()] == [
        "image"
    ]
    outside = run_litert(Path("net.tflite").read_bytes(), [normal(IMAGE)])
    np.testing.assert_allclose(run_litert(data, [IMAGE])[0], outside[0], atol=2e-6)


def test_nnef_as_the_target() -> None:
    assert edit("net.onnx", "e.nnef", "--normalize", f"data:{NORMAL},layout=NHWC") == 0
    given = {"data": IMAGE.astype("float32")}
    found = list(nnef_reference.run(nnef.load_graph("e.nnef"), given).values())
    outside = numbers("net.onnx", data=normal(IMAGE))
    np.testing.assert_allclose(found[0], outside[0], atol=5e-6)


def test_core_ml_as_the_target() -> None:
    options: Any = {"mean": MEAN, "std": STD, "scale": 1 / 255, "layout": "NHWC"}
    edits = [partial(transform.normalize_input, name="data", **options)]
    native = serde.export_model(
        "net.onnx", format="coreml", compute_precision="float32", edits=edits
    )
    found = execute(native, {"data": IMAGE.astype("float32")})
    outside = numbers("net.onnx", data=normal(IMAGE))
    np.testing.assert_allclose(found[0], outside[0], atol=5e-6)


def test_casts_of_inputs_and_outputs() -> None:
    words = ["--insert-cast", "x:int32", "--insert-cast", "z:float16", "--insert-cast", "s:float64"]
    assert edit("first.onnx", "e.onnx", *words, "--check") == 0
    x, s = RNG.integers(-9, 9, (2, 3)).astype("int32"), RNG.normal(size=3)
    found = numbers("e.onnx", x=x, s=s)
    y, z = numbers("first.onnx", x=x.astype("float32"), s=s.astype("float32"))
    np.testing.assert_array_equal(found[0], y)
    np.testing.assert_array_equal(found[1], z.astype("float16"))


def test_all_kinds_of_names() -> None:
    names = "data=image,prob=scores,w=kernel,c=layer"
    graph = onnx.load("net.onnx")
    graph.graph.node[0].name = "c"
    onnx.save(graph, "net.onnx")
    assert edit("net.onnx", "e.onnx", "--rename", names, "--no-simplify", "--check") == 0
    made = onnx.load("e.onnx").graph
    assert "kernel" in {each.name for each in made.initializer}
    assert "layer" in {each.name for each in made.node}
    data = normal(IMAGE)
    np.testing.assert_array_equal(
        numbers("e.onnx", image=data)[0], numbers("net.onnx", data=data)[0]
    )
    assert [each.name for each in made.output] == ["scores"]


def test_names_of_one_flag_change_places() -> None:
    assert edit("first.onnx", "e.onnx", "--rename", "x=s,s=x", "--rename", "w=x2") == 0
    x, s = np.float32([[1, 2, 3]]), np.float32([4, 5, 6])
    found, outside = numbers("e.onnx", s=x, x=s), numbers("first.onnx", x=x, s=s)
    np.testing.assert_array_equal(found[1], outside[1])


def test_edits_are_made_in_their_order() -> None:
    rename, cast = ("--rename", "x=a"), ("--insert-cast", "a:int8")
    assert edit("first.onnx", "e.onnx", *rename, *cast, "--rename", "a=b") == 0
    assert onnx.load("e.onnx").graph.input[0].name == "b"
    assert edit("first.onnx", "f.onnx", *cast, *rename) == 2


def make_detector(path: str, form: str) -> None:
    """A model that gives on what it takes: boxes and scores, apart or in one tensor."""
    shapes: dict[str, list[Any]] = {
        "NBC": {"b": ["N", 60, 4], "s": ["N", 60, 3]},
        "NCB": {"b": ["N", 4, 60], "s": ["N", 3, 60]},
        "one": {"b": ["N", 7, 60]},
    }[form]  # type: ignore[assignment]
    ends = [
        [
            helper.make_tensor_value_info(name + end, TensorProto.FLOAT, shape)
            for name, shape in shapes.items()
        ]
        for end in ("_in", "")
    ]
    nodes = [helper.make_node("Relu", [f"{name}_in"], [name]) for name in shapes]
    graph = helper.make_graph(nodes, "g", *ends)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )


def suppressed(
    boxes: np.ndarray, scores: np.ndarray, most: int, iou: float, score: float
) -> list[tuple[float, int, int]]:
    """(score, class, box) of what ONNX Runtime selects in one image, the best first."""
    text = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[1, B, 4] b, float[1, C, B] s) => (int64[K, 3] o)
    <int64[1] m = {{{most}}}, float[1] i = {{{iou}}}, float[1] t = {{{score}}}>
    {{ o = NonMaxSuppression (b, s, m, i, t) }}
    """
    model = onnx.parser.parse_model(text).SerializeToString()
    found = run_onnx(model, {"b": boxes[None], "s": scores[None]})[1][0]
    rows = [(float(scores[kind, box]), int(kind), int(box)) for _, kind, box in found]
    return sorted(rows, key=lambda row: -row[0])[:most]


@pytest.mark.parametrize(
    ("form", "words", "limits"),
    [
        ("NBC", "b,s:max=8,iou=0.4,score=0.3", (8, 0.4, 0.3)),
        ("NCB", "b,s:max=70,layout=NCB,score=0.8", (70, 0.5, 0.8)),
        ("one", "b:layout=NCB,format=center,max=5", (5, 0.5, 0.25)),
        ("one", "b:layout=NCB,format=center,max=200,iou=0,score=0", (200, 0.0, 0.0)),
    ],
)
def test_boxes_are_suppressed(form: str, words: str, limits: tuple[int, float, float]) -> None:
    make_detector("d.onnx", form)
    assert edit("d.onnx", "e.onnx", "--nms", words, "--check") == 0
    places = np.concatenate([RNG.uniform(6, 30, (2, 2, 60)), RNG.uniform(3, 12, (2, 2, 60))], 1)
    scores = RNG.uniform(0, 1, (2, 3, 60)).astype("float32")
    scores[:, :, ::7] = np.float32(limits[2])  # Just the threshold, which is not enough.
    center, half = places[:, :2].astype("float32"), places[:, 2:].astype("float32") / 2
    corners = np.concatenate([center - half, center + half], 1)
    fed = {
        "NBC": {"b_in": corners.transpose(0, 2, 1), "s_in": scores.transpose(0, 2, 1)},
        "NCB": {"b_in": corners, "s_in": scores},
        "one": {"b_in": np.concatenate([center, half * 2, scores], 1)},
    }[form]
    count, boxes, best, kinds = numbers("e.onnx", **fed)
    assert boxes.shape == (2, limits[0], 4)
    assert count.dtype == kinds.dtype == np.int32
    wanted = [suppressed(corners[n].T.copy(), scores[n], *limits) for n in range(2)]
    assert count.reshape(-1).tolist() == [len(each) for each in wanted]
    for image, rows in enumerate(wanted):
        number = len(rows)
        assert best[image, :number].tolist() == [row[0] for row in rows]
        assert kinds[image, :number].tolist() == [row[1] for row in rows]
        outside = corners[image][:, [row[2] for row in rows]].T
        np.testing.assert_allclose(boxes[image, :number], outside, atol=1e-5)
        assert not best[image, number:].any()
        assert not boxes[image, number:].any()


def test_boxes_that_overlap_by_the_threshold_stay() -> None:
    make_detector("d.onnx", "NBC")
    assert edit("d.onnx", "e.onnx", "--nms", "b,s:iou=0.5,score=0") == 0
    boxes = np.zeros((1, 60, 4), "float32")
    boxes[0, :2] = [[0, 0, 2, 1], [0, 0, 1, 1]]
    scores = np.zeros((1, 60, 3), "float32")
    scores[0, :2, 1] = [0.5, 0.75]
    count = numbers("e.onnx", b_in=boxes, s_in=scores)[0]
    assert count.tolist() == [[len(suppressed(boxes[0], scores[0].T.copy(), 100, 0.5, 0))]] == [[2]]


MERGED: dict[str, tuple[str, str]] = {"second.onnx": ("y", "z"), "second.onnx:z=y": ("z", "y")}


@pytest.mark.parametrize("words", MERGED)
def test_two_models_in_one(words: str) -> None:
    assert edit("first.onnx", "e.onnx", "--merge", words, "--check") == 0
    x, s, other = np.float32([[1, 2, 3], [-4, 0, 6]]), np.float32([7, 8, 9]), np.float32([1, 0, 2])
    first = dict(zip("yz", numbers("first.onnx", x=x, s=s), strict=True))
    read, kept = MERGED[words]
    outside = [first[kept], *numbers("second.onnx", y=first[read], s=other)]
    names, found = run_onnx(Path("e.onnx"), {"x": x, "s": s, "second_s": other})
    assert names == ([kept, "second_z", "t"] if kept == "z" else [kept, "z", "t"])
    for left, right in zip(found, outside, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_model_of_mxnet_behind_one_of_onnx() -> None:
    write_checkpoint("m")
    text = NET.replace("[2, 3, 3, 3]", "[3, 2, 3, 3]").replace("w, b)", "w)")
    text = text.replace("1, 3, 8, 8", "1, 2, 8, 8").replace("] prob)", "] prob)")
    text = text.replace("(float[1, 2, 8, 8] prob)", "(float[1, 3, 8, 8] prob)")
    onnx.save(onnx.parser.parse_model(text.replace(", float[2] b = {0, 1}", "")), "front.onnx")
    assert edit("front.onnx", "e.onnx", "--merge", "m-symbol.json:prob=data", "--check") == 0
    mx = import_mxnet()
    data = RNG.normal(size=(1, 2, 8, 8)).astype("float32")
    symbol, arguments, states = mx.model.load_checkpoint("m", 0)
    arguments["data"] = mx.nd.array(numbers("front.onnx", data=data)[0])
    outside = symbol.bind(mx.cpu(), arguments, aux_states=states).forward()[0].asnumpy()
    np.testing.assert_allclose(numbers("e.onnx", data=data)[0], outside, atol=2e-6)


REPLACED = {
    "softmax": (
        "fn (%x) { nn.softmax(%x, axis=1) }",
        "fn (%x) { exp(nn.log_softmax(%x, axis=1)) }",
    ),
    "convolution and bias": (
        "fn (%x, %w, %b) { nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]), %b) }",
        "fn (%x, %w, %b) { nn.conv2d(%x, %w, padding=[1, 1, 1, 1]) "
        "+ expand_dims(%b, axis=1, num_newaxis=2) }",
    ),
    "commuted": ("fn (%a, %b) { %b * %a }", "fn (%a, %b) { negative(%a) * negative(%b) }"),
}


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("in_files", [False, True])
def test_a_subgraph_is_replaced(name: str, in_files: bool) -> None:
    pattern, wanted = REPLACED[name]
    text = f"{pattern} = {wanted}"
    if in_files:
        Path("p.relay").write_text(pattern)
        Path("w.relay").write_text(wanted)
        text = "p.relay=w.relay"
    assert edit("net.onnx", "e.onnx", "--replace", text, "--no-simplify", "--check") == 0
    made = {each.op_type for each in onnx.load("e.onnx").graph.node}
    assert made & {"LogSoftmax", "Add", "Neg"}
    data = normal(IMAGE)
    outside = numbers("net.onnx", data=data)[0]
    np.testing.assert_allclose(numbers("e.onnx", data=data)[0], outside, atol=2e-6)


SPLIT = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N, 4] x) => (float[N, 4] y, int64[2, K] z)
{
    a, b = Split <axis = 1> (x)
    y = Concat <axis = 1> (b, a)
    z = NonZero (y)
}
"""


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (
            "fn (%a, %b) { concatenate((%a, %b), axis=1) }",
            "fn (%a, %b) { let %t = (negative(%a), negative(%b)); "
            "negative(concatenate((%t.0, %t.1), axis=1)) }",
        ),
        (
            "fn (%x) { let %t = split(%x, indices_or_sections=2, axis=1); (%t) }",
            "fn (%x) { split(%x, indices_or_sections=[2], axis=1) }",
        ),
        ("fn (%x) { serde.nonzero(%x) }", "fn (%x) { serde.nonzero(abs(%x)) }"),
    ],
)
def test_functions_with_tuples_lets_and_unknown_lengths(pattern: str, wanted: str) -> None:
    onnx.save(onnx.parser.parse_model(SPLIT), "split.onnx")
    assert edit("split.onnx", "e.onnx", "--replace", f"{pattern}={wanted}", "--check") == 0
    x = RNG.integers(-1, 2, (3, 4)).astype("float32")
    for left, right in zip(numbers("e.onnx", x=x), numbers("split.onnx", x=x), strict=True):
        np.testing.assert_array_equal(left, right)


def test_metadata_and_description() -> None:
    words = ["--set-metadata", "a=1", "--set-metadata", "b=x=y", "--description", "fishes"]
    assert edit("net.onnx", "e.onnx", *words) == 0
    made = onnx.load("e.onnx")
    assert {("a", "1"), ("b", "x=y")} <= {(each.key, each.value) for each in made.metadata_props}
    assert made.doc_string == "fishes"
    assert edit("e.onnx", "f.onnx", "--set-metadata", "a=") == 0
    assert "a" not in {each.key for each in onnx.load("f.onnx").metadata_props}


def test_a_text_may_look_like_a_flag() -> None:
    assert edit("net.onnx", "e.onnx", "--description", "--merge=it", "--rename", "data=x") == 0
    made = onnx.load("e.onnx")
    assert (made.doc_string, made.graph.input[0].name) == ("--merge=it", "x")


FAULTS = {
    "--rename dta=x": "no input, output, weight or node is called 'dta'. Did you mean data?",
    "--rename data=w": "'w' is the name of a weight already",
    "--rename w=data": "'data' is the name of another already",
    "--rename data": "expected OLD=NEW",
    "--normalize dta:mean=1": "none of the inputs data. Did you mean data?",
    "--normalize prob:mean=1": "none of the inputs data.",
    "--normalize data:maen=1": "unknown, or given twice: maen",
    "--normalize data:mean=x": "Invalid literal",
    "--normalize data:mean==1": "Invalid literal",
    "--normalize data:mean=1,,std=2": "Invalid literal",
    "--normalize data:mean=1,2": "do not fit",
    "--normalize data:std=0": "do not fit",
    "--normalize data:layout=HCX": "do not fit",
    "--normalize data:layout=NHW": "do not fit",
    "--normalize data:channels=GBR": "do not fit",
    "--normalize data:model_layout=NHWC,mean=1,2,3": "do not fit",
    "--normalize data:dtype=flot": "expected a dtype such as uint8, found 'flot'",
    "--insert-cast dta:int8": "none of the inputs data. Did you mean data?",
    "--insert-cast prob:flot": "cast: attribute dtype: expected",
    "--nms prob": "expected",
    "--nms prb,data": "no value or node is called 'prb'; near it: prob",
    "--nms prob,data,w": "no value or node is called 'data,w'",
    "--nms prob:iou=2": "expected a count, an overlap",
    "--nms prob:layout=NCX": "expected a count, an overlap",
    "--merge first.onnx": "no equal names",
    "--merge first.onnx:prob=x": "x: expected 2 axes, found 4",
    "--merge first.onnx:prb=x": "near it: prob",
    "--merge first.onnx:prob=w": "w",
    "--merge none.onnx": "there is no such file",
    "--replace nonsense": "expected files or functions",
    "--replace none.relay=none.relay": "none.relay",
    "--replace fn(%x){nn.relu(%x)}=fn(%x){%x}": "nothing is nn.relu with",
    "--replace fn(%x){nn.softmax(%x)}=fn(%x){%x}": "nothing is nn.softmax with",
    "--replace fn(%x){exp(nn.softmax(%x,axis=1))}=fn(%x){%x}": "nothing is exp with",
    "--replace fn(%x){nn.softmax(%x,axis=1)}=fn(%x){sum(%x)}": "expected Tensor[(1, 2, 8, 8)",
    "--replace fn(%x){nn.softmax(%x,axis=1)}=fn(%y){%y}": "expected a pattern that has %y",
    "--replace fn(%x){%x}=fn(%x){exp(%x)}": "a pattern that ends in a call",
    "--replace fn(%x){exp(%x}=fn(%x){%x}": "expected ,, found }",
    "--set-metadata owner=": "metadata: 'owner' is none of",
    "--set-metadata owner": "metadata: 'owner' is none of",
}


@pytest.mark.thin(3)
@pytest.mark.parametrize("words", FAULTS)
def test_faults_are_one_line_and_nothing_is_written(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edit("net.onnx", "e.onnx", *words.split(" ", 1)) == 2
    told = capsys.readouterr().err
    assert FAULTS[words] in told
    assert told.count("\n") == 1
    assert not Path("e.onnx").exists()


def test_the_source_is_not_its_own_target() -> None:
    before = Path("net.onnx").read_bytes()
    assert edit("net.onnx", "net.onnx", "--rename", "data=x") == 2
    assert edit("first.onnx", "second.onnx", "--merge", "second.onnx:z=y") == 2
    assert Path("net.onnx").read_bytes() == before


def test_edits_of_python_are_functions(tmp_path: Path) -> None:
    halve = partial(transform.normalize_input, name="x", scale=0.5, dtype="uint8")
    model = serde.to_relay("first.onnx", edits=[halve])
    serde.from_relay(model, path="e.onnx")
    x, s = np.uint8([[1, 2, 255]]), np.float32([1, 2, 3])
    outside = numbers("first.onnx", x=x * np.float32(0.5), s=s)
    np.testing.assert_array_equal(numbers("e.onnx", x=x, s=s)[0], outside[0])


def untyped(model: Any) -> Any:
    body = serde.relay.Function([serde.relay.var("x")], serde.relay.var("y"))
    return model.evolve(mod=serde.relay.IRModule.from_expr(body))


def nameless(model: Any) -> Any:
    return model.evolve(meta=serde.relay.ModelMeta(inputs=("x", "s")))


@pytest.mark.parametrize("own", [untyped, nameless])
def test_an_edit_of_ones_own_is_checked(own: Any) -> None:
    with pytest.raises(OptionError, match="edits: "):
        serde.convert("first.onnx", "e.onnx", edits=[own])
    assert not Path("e.onnx").exists()


def test_outputs_of_one_name_stay_apart() -> None:
    model = serde.to_relay("first.onnx")
    twice = model.evolve(meta=serde.relay.ModelMeta(inputs=("x", "s"), outputs=("y", "y")))
    found = transform.insert_cast(twice, "x", "int8")
    assert found.meta.outputs == ("y", "y")
    assert len(found.main.body.type.fields) == 2
