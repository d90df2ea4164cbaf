"""Relay, written as with TVM."""

import numpy as np
from typing_extensions import assert_type

from serde import relay

data = relay.var("data", shape=(1, 3, 224, 224), dtype="float32")
weight = relay.var("weight", relay.TensorType((64, 3, 7, 7), "float32"))
conv = relay.nn.conv2d(data, weight, strides=(2, 2), padding=3, channels=64, kernel_size=[7, 7])
assert_type(conv, relay.Expr)
ones = relay.const(np.ones(64, "float32"))
normal, mean, variance = relay.nn.batch_norm(conv, ones, ones, ones, ones, epsilon=1e-3)
first = relay.nn.relu(normal)
pooled = relay.nn.max_pool2d(first, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
parts = relay.split(pooled, 2, axis=1)
assert_type(parts, relay.TupleWrapper)
joined = relay.concatenate([parts[0], relay.nn.softmax(parts[1], axis=1)], axis=1)
again = relay.concatenate(parts.astuple(), axis=-1)
values, places = relay.topk(relay.nn.batch_flatten(joined), k=5)
assert_type(relay.topk(again, ret_type="indices"), relay.Expr)
flat = relay.reshape(joined, newshape=(0, -1))
shaped = relay.reshape(joined, relay.shape_of(flat))
small = relay.image.resize2d(data, size=(112, 112), method="cubic")
quantized = relay.qnn.op.quantize(flat, relay.const(0.1), relay.const(0), out_dtype=np.int8)
zeros = relay.zeros((1, relay.Any(), 3), "float16")
gelu = relay.serde.gelu(flat)
sized = relay.dyn.ones(relay.shape_of(data), dtype="int32")
total = (conv + first * relay.const(2.0)).astype("float16")

function = relay.Function([data, weight], relay.Tuple([values, places]))
mod = relay.IRModule.from_expr(function.with_attr("Primitive", 1))
mod = relay.transform.InferType()(mod)
mod = relay.transform.Sequential([relay.transform.FoldConstant()])(mod)
assert_type(mod.astext(), str)
assert_type(relay.fromtext(mod.astext()), relay.IRModule)
result = relay.create_executor("graph", mod=mod).evaluate()(np.zeros((1, 3, 224, 224)))
imported, params = relay.frontend.from_onnx("net.onnx", shape={"data": (1, 3, 224, 224)})
assert_type(imported, relay.IRModule)
loop = relay.loops.while_loop(
    lambda i: relay.less(i, relay.const(3)), [places], lambda i: [relay.add(i, i)]
)
