"""What docs/batch.md takes for granted: models in a folder, a manifest and a bucket of S3."""

import json
import tarfile
from pathlib import Path

from support.page_nets import serve_s3, tell_shape, write_checkpoint

import serde

write_checkpoint("net")
tell_shape("net")
Path("models").mkdir()
for number in range(2):
    shapes = {"data": (number + 1, 3, 32, 32)}
    serde.convert("net-symbol.json", f"models/net{number}.onnx", input_shapes=shapes)
entry = {"source": "net-symbol.json", "input_shapes": {"data": [1, 3, 32, 32]}}
Path("models.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
with tarfile.open("model.tar.gz", "w:gz") as archive:
    for name in ("net-symbol.json", "net-0000.params"):
        archive.add(name)
store = serve_s3("bucket")
store.put("model.tar.gz", "bucket/nets/one/model.tar.gz")
