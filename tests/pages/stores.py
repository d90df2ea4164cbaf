"""What docs/stores.md takes for granted: buckets of S3, archives, a store in memory."""

import tarfile
import zipfile
from pathlib import Path

import fsspec
from support.page_nets import serve_s3, tell_shape, write_checkpoint

import serde

FILES = ("resnet50-symbol.json", "resnet50-0000.params")
write_checkpoint("resnet50")
tell_shape("resnet50")
with tarfile.open("model.tar.gz", "w:gz") as archive:
    for name in FILES:
        archive.add(name, name.replace("resnet50", "model"))
with zipfile.ZipFile("squeezenet.mar", "w") as archive:
    for name in FILES:
        archive.write(name, name.replace("resnet50", "squeezenet"))
store, memory = serve_s3("models", "public-models"), fsspec.filesystem("memory")
for name in FILES:
    store.put(name, f"models/{name}")
    memory.put(name, "/models/" + name.replace("resnet50", "net"))
serde.convert("model.tar.gz", "net.onnx")
for bucket in ("models", "public-models"):
    store.put("net.onnx", f"{bucket}/net.onnx")
store.chmod("public-models/net.onnx", "public-read")
Path("net.onnx").unlink()
