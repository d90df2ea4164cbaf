"""Nets as the pages take for granted, small, under the names that the pages give them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from serde.compat import import_mxnet

__all__ = [
    "draw_params",
    "serve_s3",
    "tell_shape",
    "write_checkpoint",
    "write_labels",
    "write_photos",
]

FISH = ("tench", "goldfish", "shark", "ray")


def symbol(mx: Any) -> Any:
    """A net of one convolution and four classes, for images of any size."""
    x = mx.sym.Convolution(
        mx.sym.var("data"), kernel=(3, 3), num_filter=8, pad=(1, 1), name="conv0"
    )
    x = mx.sym.BatchNorm(x, fix_gamma=False, name="bn0")
    x = mx.sym.Activation(x, act_type="relu", name="relu0")
    x = mx.sym.Pooling(x, global_pool=True, kernel=(1, 1), pool_type="avg", name="pool0")
    x = mx.sym.FullyConnected(mx.sym.Flatten(x, name="flatten0"), num_hidden=4, name="fc0")
    return mx.sym.softmax(x, name="prob")


def draw_params(net: Any) -> dict[str, Any]:
    """Weights of a symbol by MXNet's names for files, drawn."""
    mx, rng = import_mxnet(), np.random.default_rng(7)
    shapes, _, aux = net.infer_shape(data=(1, 3, 32, 32))
    kinds = [("arg", net.list_arguments(), shapes), ("aux", net.list_auxiliary_states(), aux)]
    return {
        f"{kind}:{name}": mx.nd.array(rng.uniform(0.2, 1.0, shape).astype(np.float32))
        for kind, names, sizes in kinds
        for name, shape in zip(names, sizes, strict=True)
        if name != "data"
    }


def write_checkpoint(prefix: str) -> Any:
    """Write ``prefix-symbol.json`` and ``prefix-0000.params`` and return the symbol."""
    mx = import_mxnet()
    net = symbol(mx)
    net.save(f"{prefix}-symbol.json")
    mx.nd.save(f"{prefix}-0000.params", draw_params(net))
    return net


def write_labels() -> None:
    """Write the names of the classes."""
    Path("synset.txt").write_text("\n".join(FISH) + "\n", encoding="utf-8")


def write_photos(shape: tuple[int, int]) -> None:
    """Write a folder of two pictures of this height and width."""
    from PIL import Image

    Path("photos").mkdir()
    rng = np.random.default_rng(5)
    for number in range(2):
        pixels = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(f"photos/{number}.png")


def tell_shape(prefix: str) -> None:
    """Let a symbol tell the shape of its input."""
    path = Path(f"{prefix}-symbol.json")
    graph = json.loads(path.read_text(encoding="utf-8"))
    graph["nodes"][0]["attrs"] = {"__shape__": "(1, 3, 224, 224)"}
    path.write_text(json.dumps(graph), encoding="utf-8")


def serve_s3(*buckets: str) -> Any:
    """Start a server of S3 with these buckets, which this process takes for S3 itself."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    os.environ |= {
        "AWS_ENDPOINT_URL": "http://{}:{}".format(*server.get_host_and_port()),
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    store = fsspec.filesystem("s3")
    for bucket in buckets:
        store.mkdir(bucket)
    return store
