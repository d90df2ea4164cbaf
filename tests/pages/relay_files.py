"""What docs/relay-files.md takes for granted: a checkpoint, and a module as text and in memory."""

import numpy as np
from support.page_nets import write_checkpoint

import serde
import serde.relay as relay

write_checkpoint("m")
serde.convert("m-symbol.json", "net.relay", input_shapes={"data": (1, 3, 32, 32)})
x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
params = {"w": np.ones((4, 3), np.float32)}
