"""A mistake on each line that says so."""

from serde import relay

x = relay.var("x", shape=(1, 3, 8, 8))
relay.nn.conv2d(x, x, stride=(2, 2))  # error
relay.nn.conv2d(x)  # error
relay.nn.conv3(x, x)  # error
relay.nn.softmax(x, axis="1")  # error
relay.nn.softmax(x, axis=1)
relay.ad(x, x)  # error
relay.add(x, 1)  # error
relay.split(x, 2).shape  # error
relay.topk(x, ret_type="values")[0]  # error
relay.image.resize(x, (3, 3))  # error
relay.qnn.quantize(x, x, x)  # error
relay.transform.InferTypes()  # error
relay.frontend.from_onxx("a")  # error
relay.IRModule.from_expr(1)  # error
