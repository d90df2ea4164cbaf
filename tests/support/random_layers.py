"""What a random graph may grow by: layers of nets, and control flow around what grows."""

from __future__ import annotations

from support.random_graphs import Item, Maker, Rejected
from support.random_producers import PRODUCERS, SINGLE_ONLY, SMOOTH, is_number, producer, some_axis

from serde.relay import Call, Function, GlobalVar, If, Tuple, TupleGetItem, Var
from serde.relay.ir.dims import SymDim
from serde.relay.ir.registry import infer_call
from serde.relay.ir.types import TensorType

__all__ = ["PRODUCERS"]


def fixed(item: Item, *axes: int) -> list[int]:
    """Return the lengths of axes, or reject where one is symbolic."""
    lengths = [item.shape[axis] for axis in axes]
    if any(isinstance(length, SymDim) for length in lengths):
        raise Rejected
    return [int(str(length)) for length in lengths]


def is_factor(item: Item) -> bool:
    """Whether an item may enter a matrix product.

    ONNX Runtime joins a transposition with a product of float16 behind it, for which it has no
    kernel then, and crashes when it loads the model, as a test of the random graphs shows.
    """
    return item.dtype in ("float32", "float64") and item.value.size > 0


def is_image(item: Item) -> bool:
    """Whether an item may feed a layer of two spatial axes."""
    return item.rank == 4 and item.dtype == "float32" and item.value.size > 0


@producer(2)
def dense(maker: Maker) -> None:
    x = maker.pick(lambda item: is_factor(item) and item.rank in (2, 3))
    (depth,) = fixed(x, x.rank - 1)
    units = maker.integer(1, 4)
    weight = maker.fresh(x.dtype, (units, depth))
    result = maker.add("nn.dense", x, weight, units=units)
    if maker.chance(0.5):
        maker.add("nn.bias_add", result, maker.fresh(x.dtype, (units,)), axis=-1)


@producer(1.5)
def product(maker: Maker) -> None:
    x = maker.pick(lambda item: is_factor(item) and item.rank == 2)
    turn_x, turn_y = maker.chance(0.3), maker.chance(0.3)
    depth = x.shape[0 if turn_x else 1]
    if maker.chance(0.4):
        y = maker.pick(
            lambda item: (
                item.dtype == x.dtype and item.rank == 2 and item.shape[1 if turn_y else 0] == depth
            )
        )
    else:
        shape = (maker.integer(1, 3), depth) if turn_y else (depth, maker.integer(1, 3))
        y = maker.fresh(x.dtype, shape)
    maker.add("nn.matmul", x, y, transpose_a=turn_x, transpose_b=turn_y)


@producer(1)
def batched_product(maker: Maker) -> None:
    x = maker.pick(lambda item: is_factor(item) and item.rank == 3)
    turn_x, turn_y = maker.chance(0.3), maker.chance(0.7)
    batch = maker.one_of([x.shape[0], 1])
    depth, width = x.shape[1 if turn_x else 2], maker.integer(1, 3)
    y = maker.fresh(x.dtype, (batch, width, depth) if turn_y else (batch, depth, width))
    maker.add("nn.batch_matmul", x, y, transpose_a=turn_x, transpose_b=turn_y)


@producer(1)
def new_image(maker: Maker) -> None:
    batch = maker.one_of([1, 2, *maker.random_shape(1)])
    sides = [maker.one_of([3, 5, 6, *maker.random_shape(1)]) for _ in range(2)]
    maker.fresh("float32", (batch, maker.one_of([1, 2, 4]), *sides), kind="input")


@producer(2)
def convolution(maker: Maker) -> None:
    x = maker.pick(is_image)
    (channels,) = fixed(x, 1)
    groups = maker.one_of([g for g in (1, 1, 2, 4) if channels % g == 0])
    filters, size = groups * maker.integer(1, 2), maker.one_of([1, 2, 3])
    if groups == channels and groups > 1:
        filters = groups
    weight = maker.fresh("float32", (filters, channels // groups, size, size), -0.5, 0.5)
    result = maker.add(
        "nn.conv2d",
        x,
        weight,
        strides=(maker.integer(1, 2),) * 2,
        padding=[maker.integer(0, 2) for _ in range(4)],
        dilation=(maker.one_of([1, 1, 2]),) * 2,
        groups=groups,
        channels=filters,
        kernel_size=(size, size),
    )
    if not result.value.size:
        raise Rejected  # a window longer than the axis
    if maker.chance(0.4):
        result = maker.add("nn.bias_add", result, maker.fresh("float32", (filters,)))
    if maker.chance(0.5):
        _batch_norm(maker, result)


def _batch_norm(maker: Maker, x: Item) -> Item:
    (channels,) = fixed(x, 1)
    gamma, beta, mean = (maker.fresh(x.dtype, (channels,)) for _ in range(3))
    variance = maker.fresh(x.dtype, (channels,), 0.5, 2.0)
    result = maker.add("nn.batch_norm", x, gamma, beta, mean, variance, keep=False)[0]
    maker.scope.append(result)
    return result


@producer(0.7)
def batch_norm(maker: Maker) -> None:
    _batch_norm(maker, maker.pick(lambda item: item.rank in (2, 3, 4) and item.dtype == "float32"))


@producer(0.7)
def layer_norm(maker: Maker) -> None:
    x = maker.pick(lambda item: item.is_float and item.rank > 1 and item.value.size > 0)
    (width,) = fixed(x, x.rank - 1)
    if width < 2:
        raise Rejected
    gamma, beta = (maker.fresh(x.dtype, (width,)) for _ in range(2))
    maker.add("nn.layer_norm", x, gamma, beta, axis=-1, epsilon=2.0**-7)


@producer(0.4)
def instance_norm(maker: Maker) -> None:
    x = maker.pick(lambda item: is_image(item) and item.value.size > item.value.shape[0])
    (channels,) = fixed(x, 1)
    gamma, beta = (maker.fresh(x.dtype, (channels,)) for _ in range(2))
    maker.add("nn.instance_norm", x, gamma, beta, axis=1, epsilon=2.0**-7)


@producer(1.5)
def pooling(maker: Maker) -> None:
    x = maker.pick(is_image)
    if maker.chance(0.3):
        maker.add(maker.one_of(["nn.global_avg_pool2d", "nn.global_max_pool2d"]), x)
        return
    name = maker.one_of(["nn.max_pool2d", "nn.avg_pool2d"])
    attrs = {"count_include_pad": maker.chance(0.5)} if name == "nn.avg_pool2d" else {}
    size = maker.one_of([1, 2, 3])
    result = maker.add(
        name,
        x,
        exact=name == "nn.max_pool2d",
        pool_size=(size, size),
        strides=(maker.integer(1, 2),) * 2,
        padding=[maker.integer(0, size // 2) for _ in range(4)],
        **attrs,
    )
    if not result.value.size:
        raise Rejected


@producer(1.5)
def softmax(maker: Maker) -> None:
    x = maker.pick(lambda item: item.is_float and item.rank > 0 and item.value.size > 0)
    maker.add(maker.one_of(["nn.softmax", "nn.log_softmax"]), x, axis=some_axis(maker, x))


@producer(0.7)
def field_of_tuple(maker: Maker) -> None:
    first, second = maker.pick(), maker.pick()
    maker.put(second, TupleGetItem(Tuple([first.expr, second.expr]), 1))


def _function(maker: Maker, count: int) -> tuple[Function, list[Item], list[Item]]:
    """Return a function of things in scope, its arguments, and the items of its results."""
    given = [maker.pick() for _ in range(maker.integer(1, 2))]
    params = [Var(f"a{index}", item.expr.type) for index, item in enumerate(given)]
    with maker.inside(
        [maker.renamed(item, param) for item, param in zip(given, params, strict=True)], closed=True
    ):
        maker.grow(count)
        made = [item for item in maker.scope if item.expr not in params]
        if not made:
            raise Rejected
        results = [made[-1]] if maker.chance(0.7) else made[-2:]
        body = results[0].expr if len(results) == 1 else Tuple([item.expr for item in results])
        function = Function(params, maker.with_lets(body))
    return function, given, results


def _note_results(maker: Maker, call: Call, results: list[Item]) -> None:
    if len(results) == 1:
        maker.put(results[0], call)
        return
    for index, item in enumerate(results):
        maker.put(item, TupleGetItem(call, index))


@producer(1)
def literal_call(maker: Maker) -> None:
    """A call of a function literal."""
    if maker.depth > 1:
        raise Rejected
    function, given, results = _function(maker, maker.integer(1, 4))
    call = Call(function, [item.expr for item in given])
    call.type = infer_call(call)
    _note_results(maker, call, results)


@producer(0.7)
def global_call(maker: Maker) -> None:
    """A call of a function of the module, sometimes two."""
    if maker.depth:
        raise Rejected
    function, given, results = _function(maker, maker.integer(1, 4))
    variable = GlobalVar(f"f{len(maker.functions)}", function.type)
    maker.functions[variable] = function
    for _ in range(maker.integer(1, 2)):
        call = Call(variable, [item.expr for item in given])
        call.type = infer_call(call)
        _note_results(maker, call, results)


@producer(1)
def let(maker: Maker) -> None:
    """A value bound by a let around the body that grows."""
    if "let" not in maker.control:
        raise Rejected
    item = maker.pick(lambda each: not isinstance(each.expr, Var))
    variable = Var(f"v{maker.integer(0, 9)}", item.expr.type)
    maker.let(variable, item)
    maker.put(item, variable)


def _same_type(maker: Maker, x: Item) -> Item:
    """Grow a chain from an item that keeps its type, and return its end."""
    for _ in range(maker.integer(1, 3)):
        step = maker.one_of([_add_constant, _combine, _apply])
        x = step(maker, x)
    return x


def _add_constant(maker: Maker, x: Item) -> Item:
    return maker.add("add", x, maker.constant(maker.one_of([1, -1, 2]), x.dtype))


def _combine(maker: Maker, x: Item) -> Item:
    other = maker.pick(lambda item: (item.dtype, item.shape) == (x.dtype, x.shape))
    return maker.add(maker.one_of(["maximum", "add", "multiply"]), x, other)


def _apply(maker: Maker, x: Item) -> Item:
    names = [name for name in SMOOTH if x.dtype != "float64" or name not in SINGLE_ONLY]
    return maker.add(maker.one_of(names) if x.is_float else "negative", x)


def scalar_truth(maker: Maker) -> Item:
    """Return a scalar condition: one in scope, or one made of something in scope."""
    found = [item for item in maker.scope if item.dtype == "bool" and item.rank == 0]
    if found and maker.chance(0.5):
        return maker.one_of(found)
    x = maker.pick(lambda item: is_number(item) and item.value.size > 0)
    total = maker.add("max", x, exact=True)
    bound = maker.constant(maker.one_of([0, 1, -1]), x.dtype)
    if total.noise and abs(float(total.value) - float(bound.value)) <= total.margin:
        raise Rejected
    return maker.add("greater", total, bound)


@producer(1.5)
def conditional(maker: Maker) -> None:
    """One of two values of a type; each branch uses what is around it."""
    if "if" not in maker.control or maker.depth > 1:
        raise Rejected
    condition = scalar_truth(maker)
    x = maker.pick(is_number)
    ends: list[Item] = []
    exprs = []
    for _ in range(2):
        with maker.inside(maker.scope, closed=False):
            end = _same_type(maker, x)
            exprs.append(maker.with_lets(end.expr))
            ends.append(end)
    taken = ends[0] if bool(condition.value) else ends[1]
    result = If(condition.expr, *exprs)
    if not isinstance(result.type, TensorType):
        raise Rejected
    maker.put(taken, result)
