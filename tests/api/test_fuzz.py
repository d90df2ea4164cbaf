"""The fuzzer: files keep their structure under change, defects are seen, findings stay mended."""

from __future__ import annotations

import io
import itertools
import json
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from fuzz.case import Case
from fuzz.forks import fork_instead
from fuzz.judge import READ, Judge
from fuzz.keeping import Keeper, shrink
from fuzz.mutators.archives import read_tar, read_zip, write_tar, write_zip
from fuzz.mutators.document import Pool
from fuzz.mutators.mutate import learn, mutate, reduce_case
from fuzz.mutators.protobuf import ProtobufDocument, read_message
from fuzz.mutators.text import TextDocument
from fuzz.mutators.trees import JsonDocument
from fuzz.odd import ODD
from fuzz.seeds import Seeds
from fuzz.unreached import REASONS, UNREACHED, unreached_lines
from serde.errors import ConverterBug, FormatError, Unsupported

ROOT = Path(serde.__file__).parent
CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
SECONDS = 20.0
"""Generous: what is slow is found by the fuzzer, whose machine does nothing else."""

TEXT = b"version 1.0;\ngraph net(x) -> (y)\n{\n    x = external<scalar>(shape = [2, -3]);\n}\n"


def model() -> onnx.ModelProto:
    weight = onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    x = onnx.helper.make_tensor_value_info("x", 1, [4, 2])
    y = onnx.helper.make_tensor_value_info("y", 1, [4, 3])
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [x], [y], [weight])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


def honest() -> Case:
    return Case.of("onnx", "net", {"m.onnx": model().SerializeToString()})


# ---- Documents


def test_protobuf_is_written_as_it_was() -> None:
    data = model().SerializeToString()
    fields = read_message(data)
    assert fields is not None
    assert onnx.ModelProto.FromString(ProtobufDocument(fields).content()) == model()
    assert read_message(data[:-1]) is None
    assert read_message(b"\xff" * 12) is None


def test_protobuf_sees_the_fields_within() -> None:
    fields = read_message(model().SerializeToString())
    assert fields is not None
    found = {
        spot.part.value
        for spot in ProtobufDocument(fields).spots()
        if isinstance(spot.part.value, bytes)
    }
    assert {b"MatMul", b"x", b"w", b"y", b"g"} <= found


def test_text_is_written_as_it_was() -> None:
    document = TextDocument.read(TEXT)
    assert document is not None
    assert document.content() == TEXT
    assert {"-3", "external", "->", "{"} <= {spot.part for spot in document.spots()}
    assert TextDocument.read(b"\xff\xfe") is None


def test_json_is_written_as_it_was() -> None:
    value = {"nodes": [{"op": "null", "attrs": {"k": "(1, 2)"}}, 3, 1.5, None, True]}
    document = JsonDocument.read(json.dumps(value).encode())
    assert document is not None
    assert json.loads(document.content()) == value
    assert JsonDocument.read(b"{") is None


def test_archives_are_written_as_they_were() -> None:
    members = [("m/a.json", b"{}"), ("m/data/0", b"\0" * 100)]
    packed = write_zip(members, b"")
    assert read_zip(packed) == members
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for info in archive.infolist():
            start = info.header_offset + 30 + len(info.filename) + len(info.extra)
            assert start % 64 == 0
    compressed = write_tar(members, b"\x1f\x8b")
    assert read_tar(compressed) == members
    with tarfile.open(fileobj=io.BytesIO(compressed), mode="r:gz") as tar:
        assert tar.getnames() == [name for name, _ in members]
    assert read_zip(packed[:60]) is None
    assert read_tar(compressed[:20]) is None


def test_a_case_is_unpacked_as_it_was() -> None:
    case = Case.of("mxnet", "net", {"m/b": b"1", "m/a": b"2", "c": b""}, input_shapes={"x": [1]})
    assert Case.unpack("net", case.pack()) == case
    assert case.main == "m"


@pytest.mark.wide
def test_a_seed_gives_the_same_changes_again() -> None:
    def made(seed: int) -> Case:
        pool, rng = Pool(), random.Random(seed)
        learn(honest(), pool, rng)
        return mutate(honest(), pool, rng)

    found = [made(seed) for seed in range(50)]
    assert found == [made(seed) for seed in range(50)]
    assert len({each.digest for each in found}) > 40
    parsed = [read_message(each.files["m.onnx"]) for each in found]
    assert sum(each is not None for each in parsed) > 40


# ---- Judgement


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    found = Judge(tmp_path / "run", seconds=SECONDS)
    found.warm(honest(), [READ, "relay"])
    return found


def test_an_honest_file_passes(judge: Judge) -> None:
    assert judge.run(honest(), READ) is None
    assert judge.run(honest(), "relay") is None
    assert judge.gave_model


def test_a_refusal_passes(judge: Judge) -> None:
    assert judge.run(honest().with_file("m.onnx", b"\xff"), READ) is None
    assert not judge.gave_model


def raises(error: BaseException) -> Callable[..., None]:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (KeyError("x"), "KeyError"),
        (MemoryError(), "MemoryError"),
        (RecursionError(), "RecursionError"),
        (Unsupported("no"), "Unsupported"),
        (ConverterBug("a defect"), "ConverterBug"),
        (OSError("no such file"), "OSError"),
        (FormatError("no"), None),
    ],
)
def test_errors(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, error: BaseException, what: str | None
) -> None:
    monkeypatch.setattr(serde, "to_relay", raises(error))
    found = judge.run(honest(), READ)
    assert (None if found is None else found.what) == what


def test_the_cause_of_a_defect_is_told(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    defect = ConverterBug("a defect")
    defect.__cause__ = IndexError("list index out of range")
    monkeypatch.setattr(serde, "to_relay", raises(defect))
    found = judge.run(honest(), READ)
    assert found is not None
    assert found.what == "IndexError"


def test_endless_work_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(*args: object, **kwargs: object) -> None:
        while True:
            pass

    monkeypatch.setattr(serde, "to_relay", spin)
    found = Judge(tmp_path / "run", seconds=0.01).run(honest(), READ)
    assert found is not None
    assert found.kind == "slow"


@pytest.mark.wide
def test_memory_is_seen(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    if not judge.memory:
        pytest.skip("the peak of memory cannot be told here")

    def hold(*args: object, **kwargs: object) -> None:
        np.ones(100 * 2**20, np.uint8).sum()
        raise FormatError("no")

    monkeypatch.setattr(serde, "to_relay", hold)
    found = judge.run(honest(), READ)
    assert found is not None
    assert found.kind == "memory"


def test_what_is_left_behind_is_seen(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(source: Path, target: Path, **kwargs: object) -> None:
        target.write_bytes(b"half")
        raise FormatError("no")

    monkeypatch.setattr(serde, "convert", leave)
    found = judge.run(honest(), "relay")
    assert found is not None
    assert found.kind == "files"

    def change(source: Path, **kwargs: object) -> None:
        source.write_bytes(b"")
        raise FormatError("no")

    monkeypatch.setattr(serde, "to_relay", change)
    found = judge.run(honest(), READ)
    assert found is not None
    assert found.what == "source"


# ---- Findings


def test_a_finding_is_made_smaller_and_kept(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(source: Path, **kwargs: object) -> None:
        if b"MatMul" in source.read_bytes():
            raise KeyError("MatMul")
        raise FormatError("no")

    monkeypatch.setattr(serde, "to_relay", fail)
    case = honest().with_file("m.onnx.data", b"1234")
    found = judge.run(case, READ)
    assert found is not None
    smaller, same = shrink(judge, case, found, base=0.0, detect=False)
    assert same == found
    assert list(smaller.files) == ["m.onnx"]
    # The fields that MatMul is in: graph, node, op_type.
    assert len(smaller.files["m.onnx"]) == len(b"MatMul") + 3 * 2
    keeper = Keeper(tmp_path / "found")
    keeper.keep(found, smaller, {"run": 1})
    keeper.keep(found, case, {"run": 2})
    (kept,) = (tmp_path / "found").glob("*.zip")
    assert Case.unpack("net", kept.read_bytes()).files == smaller.files
    assert json.loads(kept.with_suffix(".json").read_text())["run"] == 1


def test_texts_and_members_are_left_out() -> None:
    packed = write_zip([("a.txt", b"one two three"), ("b.txt", b"four five")], b"")
    case = Case.of("nnef", "net", {"m.zip": packed, "m.nnef": TEXT})
    smaller = reduce_case(
        case,
        lambda each: (
            b"two" in each.files.get("m.zip", b"") and b"-3" in each.files["m.nnef"]
            if "m.nnef" in each.files
            else False
        ),
    )
    assert read_zip(smaller.files["m.zip"]) == [("a.txt", b" two ")]
    assert smaller.files["m.nnef"].strip() == b"-3"


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            each,
            id=f"{each.parent.name}-{each.stem}",
            # Of these a process is started to read each.
            marks=[pytest.mark.wide] if each.parent.name == "relax" else [],
        )
        for each in sorted(CORPUS.glob("*/*.zip"))
    ],
)
def test_a_finding_stays_mended(path: Path, tmp_path: Path) -> None:
    case = Case.unpack(path.stem, path.read_bytes())
    if case.main.endswith(".pt"):
        pytest.importorskip("torch", reason="TorchScript is read by PyTorch")
    judge = Judge(tmp_path / "run", seconds=SECONDS)
    target = path.stem.partition("-")[0]
    judge.warm(case, [target])
    found = judge.run(case, target)
    assert found is None, found.trace or found.message


def test_small_families_of_seeds_are_drawn_as_well() -> None:
    many = [Case.of("onnx", f"sample-{number}", {"m.onnx": b""}) for number in range(400)]
    few = [Case.of("onnx", "external-w", {"m.onnx": b""})]
    seeds, rng = Seeds([*many, *few]), random.Random(1)
    assert few[0] in seeds.sample(20, rng)
    drawn = [seeds.choose(rng).name for _ in range(1000)]
    assert 10 < drawn.count("external-w") < 200


# ---- Coverage


@pytest.mark.wide
def test_lines_that_no_file_reaches_are_there_and_have_a_reason() -> None:
    for module, reasons in UNREACHED.items():
        assert set(reasons.values()) <= REASONS.keys()
        for begin in reasons:  # Which fails where no statement begins so.
            assert unreached_lines(ROOT / module, {begin: reasons[begin]})


@pytest.mark.wide
def test_every_reader_is_named_once() -> None:
    pytest.importorskip("coverage")
    from fuzz.lines import READERS, modules

    for format, patterns in READERS.items():
        found = [path for each in patterns for path in modules([each])]
        assert len(found) == len(set(found))
        assert all(modules([each]) for each in patterns), format


@pytest.mark.wide
@pytest.mark.parametrize("format", [each for each in ODD if each != "torch"])
def test_models_made_by_hand_are_made_alike(format: str) -> None:
    first = [case.digest for case in itertools.islice(ODD[format](), 20)]
    assert first == [case.digest for case in itertools.islice(ODD[format](), 20)]


def test_expressions_of_nnef_are_parsed_in_a_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serde.nnef.text import apart
    from serde.relax.text import reading

    monkeypatch.setattr(apart, "subprocess", apart.subprocess)
    monkeypatch.setattr(reading, "call_in_process", reading.call_in_process)
    fork_instead()
    path = tmp_path / "m.nnef"
    path.write_text(
        "version 1.0;\nextension KHR_enable_operator_expressions;\n"
        "graph net(x) -> (y)\n{\n    x = external<scalar>(shape = [2, 3]);\n    y = x * 2.0;\n}\n"
    )
    assert serde.to_relay(path).meta.outputs == ("y",)
