"""Folders of diffusers: pipelines of several modules, each of which becomes a model.

Inputs and outputs have the names by which the ONNX pipelines of optimum and diffusers call them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any as AnyValue, Final, TypeAlias

from serde.bridge.parts import Parts
from serde.core import dataclass, require
from serde.engine.base import first_line
from serde.errors import FormatError, OptionError, Unsupported
from serde.io.contained import location_fault
from serde.relay.ir import symbol
from serde.torch.checkpoint import loading
from serde.torch.checkpoint.asked import BATCH, SEQUENCE, Asked, Inputs, Tensors, float_dtype
from serde.torch.checkpoint.files import (
    CONFIG,
    PIPELINE,
    Checkpoint,
    open_checkpoint,
    read_config,
    sidecars,
)

__all__ = ["Component", "find_component", "pipeline_parts"]

Config: TypeAlias = Mapping[str, AnyValue]
Ask: TypeAlias = Callable[[AnyValue, Config], Asked]

_MODEL: Final = "model"
_LEFT_OUT: Final = "StableDiffusionSafetyChecker"
HEIGHT, WIDTH, PATCHES = symbol("height"), symbol("width"), symbol("patches")


@dataclass(frozen=True)
class Component:
    """One model of a pipeline.

    Attributes:
        folder: Where it is read from.
        library: The package that has its class.
        kind: The name of the class.
        ask: Returns how a module of the class is called, by the config of the pipeline.
        pipeline: What the config of the pipeline holds.
        notes: What users should know of it.
    """

    folder: Path
    library: str
    kind: str
    ask: Ask
    pipeline: Config
    notes: tuple[str, ...] = ()

    def asked(self, module: AnyValue) -> Asked:
        """Return how its module is called."""
        return self.ask(module, self.pipeline)

    def load(self, dtype: str) -> loading.Loaded:
        """Return its module without values."""
        return loading.load_module(*self._opened(), dtype)

    def load_values(self, dtype: str) -> AnyValue:
        """Return its module with all values in memory, which can run."""
        return loading.load_values(*self._opened(), dtype)

    def _opened(self) -> tuple[Checkpoint, type[AnyValue], AnyValue]:
        package = require(self.library)
        try:
            kind = getattr(package, self.kind)
        except (AttributeError, ImportError, RuntimeError) as error:
            told = f"{self.library} does not load {self.kind}: {first_line(error)}"
            raise OptionError(told) from error
        if self.library == "diffusers":
            return open_checkpoint(self.folder, "_class_name"), kind, None
        checkpoint = open_checkpoint(self.folder)
        return checkpoint, kind, loading.load_config(checkpoint)


def pipeline_parts(path: Path) -> Parts:
    """Return the models of a pipeline, and what runtimes read beside them.

    Raises:
        FormatError: The folder is malformed.
        OptionError: It has a model of a class that is not known.
    """
    index = read_config(path, PIPELINE)
    found = _components(path, index)
    folders = {os.path.dirname(part): each.folder for part, each in found.items()}
    entries, read = _entries(path, index), {*folders.values()}
    others = {name: path / name for name, (_, kind) in entries.items() if kind != _LEFT_OUT}
    folders |= {name: folder for name, folder in others.items() if folder not in read}
    files: dict[str, Path | str] = {PIPELINE: path / PIPELINE}
    for name, folder in folders.items():
        files |= {f"{name}/{own}": place for own, place in sidecars(folder).items()}
    return Parts(tuple(found), files)


def find_component(path: Path, part: str) -> Component:
    """Return the model of a pipeline that a part names.

    Raises:
        FormatError: The folder is malformed.
        OptionError: There is no such part, or it has a model of a class that is not known.
    """
    found = _components(path, read_config(path, PIPELINE))
    if part not in found:
        raise OptionError(f"it becomes several models; name a folder, or part: {', '.join(found)}")
    return found[part]


def _entries(path: Path, index: Config) -> dict[str, tuple[str, str]]:
    """Return the package and class of what a pipeline is made of, by the names of its folders.

    Raises:
        FormatError: A name is not that of a folder.
    """
    found, root = {}, os.path.realpath(path)
    for name, each in index.items():
        pair = isinstance(each, list) and len(each) == 2 and all(isinstance(x, str) for x in each)
        if name.startswith("_") or not pair:
            continue
        fault = location_fault(name) is not None or os.path.basename(name) != name
        if fault or os.path.realpath(path / name) != os.path.join(root, name):
            raise FormatError(f"{PIPELINE}: {name[:200]!r} names no folder of it", path=path)
        if (path / name).is_dir():
            found[name] = (each[0], each[1])
    return found


def _components(path: Path, index: Config) -> dict[str, Component]:
    """Return the models of a pipeline by the names of the files that they become."""
    entries, found = _entries(path, index), {}
    notes = tuple(
        f"{name} is not converted: the ONNX pipelines of optimum have none"
        for name, (_, kind) in entries.items()
        if kind == _LEFT_OUT
    )
    for name, (library, kind) in entries.items():
        # A scheduler or a tokenizer has a config of another name.
        if kind == _LEFT_OUT or not (path / name / CONFIG).is_file():
            continue
        if kind not in _KNOWN:
            known = ", ".join(sorted(_KNOWN))
            raise OptionError(f"{name}: nothing is known of {library}.{kind} (but of: {known})")
        own, asks = _KNOWN[kind]
        for suffix, ask in asks.items():
            found[f"{name}{suffix}/{_MODEL}"] = Component(path / name, own, kind, ask, index, notes)
    return found


# What modules are asked.


def _unet(module: AnyValue, pipeline: Config) -> Asked:
    """Return a step of a UNet: pictures are as often divided by two as it has stages below."""
    config, floats = module.config, float_dtype(module)
    for name in ("class_embed_type", "num_class_embeds", "encoder_hid_dim_type"):
        if config.get(name) is not None:
            raise Unsupported(f"{name} {config[name]} asks for inputs that no pipeline gives")
    if not isinstance(config.cross_attention_dim, int):
        raise Unsupported("its stages attend to texts of different widths")
    scale = 2 ** (len(config.block_out_channels) - 1)
    inputs: Inputs = {
        "sample": ((BATCH, config.in_channels, scale * HEIGHT, scale * WIDTH), floats),
        # Some schedulers have steps between whole numbers.
        "timestep": ((1,), "float32"),
        "encoder_hidden_states": ((BATCH, SEQUENCE, config.cross_attention_dim), floats),
    }
    added = []
    if config.addition_embed_type == "text_time":
        count = 5 if pipeline.get("requires_aesthetics_score") else 6
        width = config.projection_class_embeddings_input_dim
        width -= count * config.addition_time_embed_dim
        inputs |= {"text_embeds": ((BATCH, width), floats), "time_ids": ((BATCH, count), floats)}
        added = ["text_embeds", "time_ids"]
    elif config.addition_embed_type is not None:
        raise Unsupported(f"addition_embed_type {config.addition_embed_type} is not known")
    if config.time_cond_proj_dim is not None:
        inputs["timestep_cond"] = ((BATCH, config.time_cond_proj_dim), floats)

    def run(tensors: Tensors) -> Tensors:
        found = module(
            tensors["sample"],
            tensors["timestep"],
            tensors["encoder_hidden_states"],
            timestep_cond=tensors.get("timestep_cond"),
            added_cond_kwargs={name: tensors[name] for name in added},
        )
        return {"out_sample": found.sample}

    return Asked(run, inputs)


def _stable_diffusion_3(module: AnyValue, _pipeline: Config) -> Asked:
    """Return a step of a transformer over patches of a picture, and over a text."""
    config, floats, side = module.config, float_dtype(module), module.config.patch_size
    size = (side * HEIGHT, side * WIDTH)
    inputs: Inputs = {
        "hidden_states": ((BATCH, config.in_channels, *size), floats),
        "encoder_hidden_states": ((BATCH, SEQUENCE, config.joint_attention_dim), floats),
        "pooled_projections": ((BATCH, config.pooled_projection_dim), floats),
        "timestep": ((BATCH,), floats),
    }
    module.pos_embed.cropped_pos_embed = partial(_central_places, module.pos_embed)
    return Asked(partial(_transformed, module), inputs)


def _central_places(table: AnyValue, height: AnyValue, width: AnyValue) -> AnyValue:
    """Return the middle of a table of places, by indices: a slice has no length that is told."""
    torch, most = require("torch"), table.pos_embed_max_size
    rows = table.pos_embed.reshape(most, most, -1)
    for axis, pixels in enumerate((height, width)):
        length = pixels // table.patch_size
        rows = rows.index_select(axis, torch.arange(length) + (most - length) // 2)
    return rows.reshape(1, -1, rows.shape[-1])


def _flux(module: AnyValue, _pipeline: Config) -> Asked:
    """Return a step of a transformer over patches, whose places are inputs."""
    config, floats = module.config, float_dtype(module)
    inputs: Inputs = {
        "hidden_states": ((BATCH, PATCHES, config.in_channels), floats),
        "encoder_hidden_states": ((BATCH, SEQUENCE, config.joint_attention_dim), floats),
        "pooled_projections": ((BATCH, config.pooled_projection_dim), floats),
        "timestep": ((BATCH,), floats),
        "img_ids": ((PATCHES, len(config.axes_dims_rope)), floats),
        "txt_ids": ((SEQUENCE, len(config.axes_dims_rope)), floats),
    }
    if config.guidance_embeds:
        inputs["guidance"] = ((BATCH,), floats)
    return Asked(partial(_transformed, module), inputs)


def _transformed(module: AnyValue, tensors: Tensors) -> Tensors:
    return {"out_hidden_states": module(**tensors, return_dict=False)[0]}


def _vae_encoder(module: AnyValue, _pipeline: Config) -> Asked:
    """Return means and logarithms of variances, of which a pipeline draws."""
    shape = (BATCH, module.config.in_channels, HEIGHT, WIDTH)

    def run(tensors: Tensors) -> Tensors:
        return {"latent_parameters": module.encode(tensors["sample"]).latent_dist.parameters}

    return Asked(run, {"sample": (shape, float_dtype(module))})


def _vae_decoder(module: AnyValue, _pipeline: Config) -> Asked:
    shape = (BATCH, module.config.latent_channels, HEIGHT, WIDTH)

    def run(tensors: Tensors) -> Tensors:
        return {"sample": module.decode(tensors["latent_sample"]).sample}

    return Asked(run, {"latent_sample": (shape, float_dtype(module))})


def _text(module: AnyValue, _pipeline: Config) -> Asked:
    """Return all that a text encoder gives; tokens are int32, as diffusers gives them."""
    if getattr(module.config, "use_attention_mask", False):
        raise Unsupported("use_attention_mask: the pipelines of ONNX models give no mask of texts")
    shows = "CLIP" in type(module).__name__

    def run(tensors: Tensors) -> Tensors:
        given = module(tensors["input_ids"], output_hidden_states=shows)
        found = {name: each for name, each in given.items() if name != "hidden_states"}
        layers = given.hidden_states if shows else ()
        return found | {f"hidden_states.{place}": each for place, each in enumerate(layers)}

    return Asked(run, {"input_ids": ((BATCH, SEQUENCE), "int32")})


_KNOWN: Final[Mapping[str, tuple[str, Mapping[str, Ask]]]] = {
    "AutoencoderKL": ("diffusers", {"_encoder": _vae_encoder, "_decoder": _vae_decoder}),
    "CLIPTextModel": ("transformers", {"": _text}),
    "CLIPTextModelWithProjection": ("transformers", {"": _text}),
    "FluxTransformer2DModel": ("diffusers", {"": _flux}),
    "SD3Transformer2DModel": ("diffusers", {"": _stable_diffusion_3}),
    "T5EncoderModel": ("transformers", {"": _text}),
    "UNet2DConditionModel": ("diffusers", {"": _unet}),
}
"""The package of each class, and what it is asked, by what the names of its models end in."""
