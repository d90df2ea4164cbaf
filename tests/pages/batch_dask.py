"""What docs/batch-dask.md takes for granted: a folder of models, and a bucket of S3 with some."""

from pathlib import Path

from support.page_nets import serve_s3, tell_shape, write_checkpoint

import serde

write_checkpoint("net")
Path("models").mkdir()
for number in range(3):
    shapes = {"data": (number + 1, 3, 32, 32)}
    serde.convert("net-symbol.json", f"models/net{number}.onnx", input_shapes=shapes)
tell_shape("net")
store = serve_s3("nets", "onnx")
for name in ("net-symbol.json", "net-0000.params"):
    store.put(name, f"nets/deep/{name}")
