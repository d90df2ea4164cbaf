"""Tiny pipelines of diffusers with random weights, as its package saves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import transformers

CLIP = {
    "vocab_size": 54, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 16, "bos_token_id": 52,
    "eos_token_id": 53, "pad_token_id": 53, "projection_dim": 24,
}  # fmt: skip
T5 = {"vocab_size": 54, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4}
UNET = {
    "block_out_channels": (16, 32), "layers_per_block": 1, "sample_size": 8, "in_channels": 4,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"), "norm_num_groups": 8,
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"), "cross_attention_dim": 32,
    "attention_head_dim": 8, "out_channels": 4,
}  # fmt: skip
XL = {
    "cross_attention_dim": 64, "addition_embed_type": "text_time", "addition_time_embed_dim": 8,
    "projection_class_embeddings_input_dim": 24 + 6 * 8, "use_linear_projection": True,
}  # fmt: skip
VAE = {
    "block_out_channels": (16, 32), "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2, "latent_channels": 4, "norm_num_groups": 8,
}  # fmt: skip
SD3 = {
    "sample_size": 16, "patch_size": 2, "in_channels": 4, "num_layers": 2, "out_channels": 4,
    "attention_head_dim": 8, "num_attention_heads": 4, "joint_attention_dim": 32,
    "caption_projection_dim": 32, "pooled_projection_dim": 48, "pos_embed_max_size": 12,
}  # fmt: skip
FLUX = {
    "patch_size": 1, "in_channels": 16, "num_layers": 1, "num_single_layers": 1,
    "attention_head_dim": 16, "num_attention_heads": 2, "joint_attention_dim": 32,
    "pooled_projection_dim": 32, "axes_dims_rope": (4, 4, 8), "guidance_embeds": True,
}  # fmt: skip


def diffusers() -> Any:
    """Return the package, which does without a torchvision that does not fit PyTorch."""
    transformers()
    package = pytest.importorskip("diffusers")
    package.utils.logging.set_verbosity_error()
    package.utils.logging.disable_progress_bar()
    return package


def drawn(module: Any, seed: int = 0) -> Any:
    """Return a module with weights that keep the spread of what goes through them."""
    import torch

    torch.manual_seed(seed)
    with torch.no_grad():
        for name, each in module.named_parameters():
            scale = 1.2 * each[0].numel() ** -0.5 if each.ndim > 1 else 0.1
            whole = each.ndim == 1 and name.endswith("weight")
            each.copy_(torch.randn_like(each) * scale + whole)
    return module.eval()


def save(folder: Path, name: str, **parts: Any) -> dict[str, Any]:
    """Save modules as a pipeline of a class; return them.

    A part is a class with its config, or an object that saves itself.
    """
    modules, index = {}, {"_class_name": name}
    for part, each in parts.items():
        kind, config = each if isinstance(each, tuple) else (type(each), None)
        library = kind.__module__.partition(".")[0]
        if config is None:
            modules[part] = each
        elif library == "diffusers":
            modules[part] = drawn(kind(**config), len(modules))
        else:
            modules[part] = drawn(kind(kind.config_class(**config)), len(modules))
        modules[part].save_pretrained(folder / part)
        index[part] = [library, kind.__name__]
    (folder / "model_index.json").write_text(json.dumps(index))
    return modules


def save_stable_diffusion(folder: Path, *, xl: bool = False) -> dict[str, Any]:
    """Save a pipeline of texts to images; return its parts."""
    package, texts = diffusers(), transformers()
    scheduler = package.EulerDiscreteScheduler(beta_schedule="scaled_linear")
    parts = {
        "text_encoder": (texts.CLIPTextModel, CLIP),
        "unet": (package.UNet2DConditionModel, {**UNET, **(XL if xl else {})}),
        "vae": (package.AutoencoderKL, VAE),
        "scheduler": scheduler,
    }
    if xl:
        parts["text_encoder_2"] = (texts.CLIPTextModelWithProjection, CLIP)
    found = save(folder, f"StableDiffusion{'XL' if xl else ''}Pipeline", **parts)
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "vocab.json").write_text("{}")
    index = json.loads((folder / "model_index.json").read_text())
    index |= {"tokenizer": ["transformers", "CLIPTokenizer"], "safety_checker": [None, None]}
    (folder / "model_index.json").write_text(json.dumps(index))
    return found
