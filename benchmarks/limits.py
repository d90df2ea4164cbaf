"""Prints, as a Markdown table, which ordinary nets come near a default limit of a conversion.

    python benchmarks/limits.py [--share 0.1] [--targets onnx,coreml] [name ...]

Each net is converted by every way in (its live module, TorchScript, ``.pt2``, ONNX; MXNet's files)
to every format under a tenth of all default limits (:class:`serde.core.limits.Limits`, and what
they grow by with a source), and under the limits as they are where that fails, to say how near it
comes. Nets are those of torchvision (``vision:NAME``), small ones of transformers and PyTorch's
layers (``torch:NAME``, :mod:`support.torch_programs`), those of transformers and timm as deep and
wide as they are by default (``transformers:CLASS``, ``timm:NAME``) and of MXNet's own zoo
(``mxnet:NAME``); what is not installed is left out. Each net has a process of its own. The exit
code is 1 where a limit is nearer than a factor of ten.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]

import serde  # noqa: E402
import serde.core.limits as limits  # noqa: E402
from serde.errors import LimitError, SerdeError  # noqa: E402

TARGETS = {
    "onnx": "m.onnx",
    "mxnet": "m-symbol.json",
    "coreml": "m.mlpackage",
    "nnef": "m.nnef.tgz",
    "torch": "torch",
    "relay": "m.relay",
}
LARGE_VISION = (
    "densenet121", "densenet201", "efficientnet_b7", "efficientnet_v2_m", "googlenet",
    "inception_v3", "maxvit_t", "mnasnet1_3", "mobilenet_v3_large", "regnet_y_8gf", "resnet152",
    "resnext50_32x4d", "shufflenet_v2_x2_0", "squeezenet1_1", "swin_s", "swin_v2_s", "vgg19_bn",
    "vit_b_16", "convnext_tiny",
)  # fmt: skip
"""Of each family of torchvision one, mostly the deepest that fits."""

TRANSFORMERS = (
    "BartModel", "BertModel", "BloomModel", "CLIPVisionModel", "ConvNextModel", "DebertaV2Model",
    "GPT2Model", "MobileBertModel", "RobertaModel", "SegformerModel", "SwinModel",
    "T5EncoderModel", "ViTModel", "Wav2Vec2Model", "XLNetModel",
)  # fmt: skip
"""Classes whose default configuration is the usual net: twelve layers of 768 where it is BERT."""

TIMM = (
    "coatnet_0_224", "convnextv2_base", "deit3_base_patch16_224", "eca_nfnet_l0",
    "efficientnetv2_rw_m", "hrnet_w48", "levit_384", "maxvit_base_tf_224", "mixnet_xl",
    "mobilenetv4_hybrid_medium", "nasnetalarge", "regnety_160", "swinv2_base_window8_256",
)  # fmt: skip
"""Of each family of timm one, mostly with many nodes."""

MXNET = ("densenet201", "inceptionv3", "mobilenetv2_1.0", "resnet152_v2", "squeezenet1.1", "vgg19")


@contextmanager
def shared(share: float) -> Iterator[None]:
    """Let every limit be a share of what it is, and of what it grows by with a source."""
    default, grow = limits._DEFAULT, limits.Budget.grow
    parts = {
        name: max(1, int(getattr(default, name) * share)) for name in default.__dataclass_fields__
    }

    def grow_less(self: limits.Budget, *, nodes: int = 0, nbytes: int = 0) -> None:
        before = dict(self._allowed)
        grow(self, nodes=nodes, nbytes=nbytes)
        for name, had in before.items():
            self._allowed[name] = had + int((self._allowed[name] - had) * share)

    limits._DEFAULT, limits.Budget.grow = replace(default, **parts), grow_less
    try:
        yield
    finally:
        limits._DEFAULT, limits.Budget.grow = default, grow


def whole(package: str, name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a net of timm or transformers in its usual size, and an input."""
    import torch
    from support.torch_programs import Plain, declare_torchvision

    declare_torchvision()
    if package == "timm":
        import timm

        module = timm.create_model(name).eval()
        return module, (torch.rand(1, *module.default_cfg["input_size"]),)
    import transformers

    cls = getattr(transformers, name)
    config = cls.config_class()
    config.use_cache = False
    size = getattr(config, "image_size", 224)
    given = {
        "input_ids": torch.randint(3, 1000, (1, 64)),
        "pixel_values": torch.rand(1, 3, size, size),
        "input_values": torch.rand(1, 16_000),
    }
    key = cls.main_input_name
    return Plain(cls(config).eval(), (key,), ("last_hidden_state",)), (given[key],)


def sources(name: str, folder: Path) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield every way in of a net: what it is called, the source, and options of reading."""
    package, _, net = name.partition(":")
    if package == "mxnet":
        from support.zoo import zoo_net

        fed = zoo_net(net)
        shapes = {key: value.shape for key, value in fed.inputs(0).items()}
        options = {"params": {**fed.args, **fed.aux}, "input_shapes": shapes}
        yield "mxnet", fed.symbol, options
        return
    import torch
    from support import nnef_torchvision, torch_programs

    build = {"vision": nnef_torchvision.build, "torch": torch_programs.build}.get(package)
    program = torch_programs.Program(*whole(package, net)) if build is None else build(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = program.inputs
        yield "live", program.module, {"example_inputs": inputs}
        traced = torch.jit.trace(program.module, inputs, strict=False)
        tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
        shapes = [tuple(each.shape) for each in tensors]
        dtypes = [str(each.dtype).removeprefix("torch.") for each in tensors]
        names = [each.debugName().partition(".")[0] for each in traced.graph.inputs()][1:]
        torch.jit.save(traced, folder / "in.pt")
        shown = {"input_shapes": dict(zip(names, shapes, strict=False))}
        shown |= {"input_dtypes": dict(zip(names, dtypes, strict=False))}
        yield "traced", folder / "in.pt", shown
        torch.export.save(torch.export.export(program.module, inputs), folder / "in.pt2")
        yield "pt2", folder / "in.pt2", {}
        nnef_torchvision.export(program, folder / "in.onnx")
        yield "onnx", folder / "in.onnx", {}


def judge(name: str, share: float, targets: list[str]) -> dict[str, str]:
    """Return what limits a net comes near, by its ways."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        try:
            for way, source, options in sources(name, folder):
                for target in targets:
                    with tempfile.TemporaryDirectory() as place:
                        where = {**options, "target_format": target}
                        said = convert(source, f"{place}/{TARGETS[target]}", share, where)
                    if said:
                        found[f"{way}>{target}"] = said
        except Exception as error:  # what a framework cannot export is its own affair
            found["not built"] = f"{type(error).__name__}: {error}"[:100]
    return found


def convert(source: Any, target: str, share: float, options: dict[str, Any]) -> str:
    """Return what limit a conversion comes near, or why it is none; empty where all is well."""
    try:
        with shared(share), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            serde.convert(source, target, **options)
    except LimitError as error:
        return f"limit: {error}"
    except SerdeError as error:
        return f"refused: {error}".partition("\n")[0][:100]
    return ""


def measured(name: str, options: argparse.Namespace) -> dict[str, str]:
    """Return what :func:`judge` says, in a process of its own."""
    command = [sys.executable, __file__, "--here", "--share", str(options.share)]
    done = subprocess.run(
        [*command, "--targets", options.targets, name], capture_output=True, text=True, check=False
    )
    line = done.stdout.strip().rpartition("\n")[2]
    return json.loads(line) if done.returncode == 0 else {"not built": done.stderr[-100:]}


def main() -> int:
    """Judge the nets that are asked for, or all."""
    parser = argparse.ArgumentParser(description="Ordinary nets against a share of the limits.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(judge(options.names[0], options.share, options.targets.split(","))))
        return 0
    near = 0
    print("| net | way | found |\n|---|---|---|")
    for name in options.names or list(all_names()):
        found = measured(name, options)
        near += sum(said.startswith("limit") for said in found.values())
        for way, said in found.items() or [("all", "no limit near")]:
            print(f"| {name} | {way} | {said} |", flush=True)
    return 1 if near else 0


def all_names() -> Iterator[str]:
    """Yield the nets for which what builds them is installed."""
    if importlib.util.find_spec("torch") is not None:
        from support.torch_programs import PROGRAMS

        yield from (f"vision:{name}" for name in LARGE_VISION)
        yield from (f"torch:{name}" for name in PROGRAMS)
        for package, names in (("transformers", TRANSFORMERS), ("timm", TIMM)):
            if importlib.util.find_spec(package) is not None:
                yield from (f"{package}:{name}" for name in names)
    if importlib.util.find_spec("gluoncv") is not None:
        yield from (f"mxnet:{name}" for name in MXNET)


if __name__ == "__main__":
    sys.exit(main())
