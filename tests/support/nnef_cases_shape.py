"""Cases of shapes, types, declarations, normalisations, quantisers and regions."""

from __future__ import annotations

from typing import Final

from support.nnef_cases import Cases, Draw, b, call, f, given, i, pos, var

KINDS: Final = {"scalar": f, "integer": i, "logical": b}

RESHAPES: Final[dict[str, tuple[tuple[int, ...], dict[str, object]]]] = {
    "flat": ((2, 3, 4), {"shape": [24]}),
    "rest": ((2, 3, 4), {"shape": [2, -1]}),
    "copy": ((2, 3, 4), {"shape": [0, -1]}),
    "copies": ((2, 3, 4), {"shape": [0, 0, 2, 2]}),
    "start": ((2, 3, 4), {"shape": [12], "axis_start": 1}),
    "start-copy": ((2, 3, 4), {"shape": [0, 2, 2], "axis_start": 1}),
    "count": ((2, 3, 4, 2), {"shape": [12], "axis_start": 1, "axis_count": 2}),
    "count-split": ((2, 6, 4), {"shape": [2, -1], "axis_start": 1, "axis_count": 1}),
    "count-zero": ((2, 3), {"shape": [1], "axis_start": 1, "axis_count": 0}),
    "count-first": ((2, 3, 4), {"shape": [-1], "axis_start": 0, "axis_count": 2}),
    "end": ((2, 3), {"shape": [1, 1], "axis_start": 2}),
    "rank1": ((6,), {"shape": [2, 3]}),
    "rank5": ((12,), {"shape": [1, 2, 3, 1, 2]}),
    "to-scalar": ((1, 1), {"shape": []}),
    "from-scalar": ((), {"shape": [1, 1]}),
}

SLICES: Final[dict[str, tuple[tuple[int, ...], dict[str, object]]]] = {
    "one": ((4, 5), {"axes": [1], "begin": [1], "end": [3]}),
    "two": ((4, 5, 3), {"axes": [0, 2], "begin": [1, 0], "end": [3, 2]}),
    "to-end": ((4, 5), {"axes": [1], "begin": [2], "end": [0]}),
    "negative-begin": ((4, 5), {"axes": [1], "begin": [-3], "end": [0]}),
    "negative-end": ((4, 5), {"axes": [1], "begin": [1], "end": [-1]}),
    "negative-both": ((4, 5), {"axes": [1], "begin": [-4], "end": [-2]}),
    "beyond": ((4, 5), {"axes": [1], "begin": [2], "end": [99]}),
    "stride": ((4, 7), {"axes": [1], "begin": [1], "end": [7], "stride": [2]}),
    "stride-uneven": ((4, 7), {"axes": [1], "begin": [0], "end": [6], "stride": [4]}),
    "stride-one": ((4, 7), {"axes": [1], "begin": [3], "end": [0], "stride": [1]}),
    "stride-negative-end": ((4, 7), {"axes": [1], "begin": [0], "end": [-1], "stride": [3]}),
    "backwards": ((4, 7), {"axes": [1], "begin": [5], "end": [1], "stride": [-1]}),
    "backwards-to-zero": ((4, 7), {"axes": [1], "begin": [5], "end": [0], "stride": [-1]}),
    "backwards-whole": ((4, 7), {"axes": [1], "begin": [-1], "end": [-8], "stride": [-1]}),
    "backwards-steps": ((4, 7), {"axes": [1], "begin": [6], "end": [0], "stride": [-2]}),
    "mixed": ((4, 5, 6), {"axes": [2, 0], "begin": [4, 0], "end": [1, 0], "stride": [-1, 1]}),
    "rank1": ((6,), {"axes": [0], "begin": [1], "end": [-2]}),
    "rank5": ((2, 3, 2, 4, 2), {"axes": [3, 1], "begin": [1, -2], "end": [3, 0]}),
}

BORDERS: Final = ["constant", "replicate", "reflect", "reflect-even"]


def add_reshaping(cases: Cases) -> None:
    for label, (shape, attributes) in RESHAPES.items():
        cases.add(f"reshape-{label}", call("reshape", "x", **attributes), x=f(*shape))
    for kind in ("integer", "logical"):
        draw = KINDS[kind]
        cases.add(f"reshape-{kind}", "reshape(x, shape = [3, -1])", x=draw(2, 3))
        cases.add(f"transpose-{kind}", "transpose(x, axes = [1, 0])", x=draw(2, 3))
        cases.add(f"squeeze-{kind}", "squeeze(x, axes = [0])", x=draw(1, 3))
        cases.add(f"unsqueeze-{kind}", "unsqueeze(x, axes = [1])", x=draw(2, 3))
        cases.add(f"concat-{kind}", "concat([x, w], axis = 1)", x=draw(2, 3), w=draw(2, 2))
        cases.add(f"stack-{kind}", "stack([x, w], axis = 1)", x=draw(2, 3), w=draw(2, 3))
        cases.add(f"split-{kind}", "[y, z] = split(x, axis = 1, ratios = [2, 1])", x=draw(2, 6))
        cases.add(f"unstack-{kind}", "[y, z] = unstack(x, axis = 0)", x=draw(2, 3))
        cases.add(f"tile-{kind}", "tile(x, repeats = [2, 1])", x=draw(2, 3))
        body = "slice(x, axes = [1], begin = [2], end = [0])"
        cases.add(f"slice-{kind}", body, x=draw(2, 5))
    cases.add("reshape-variable", "reshape(w, shape = [6])", x=f(1), w=var(f(2, 3)))
    orders = {"rank2": [1, 0], "prefix1": [0], "prefix2": [1, 0], "prefix3": [2, 0, 1]}
    orders |= {"rank4": [0, 2, 3, 1], "back": [0, 3, 1, 2], "identity": [0, 1, 2]}
    ranks = {"rank2": 2, "prefix1": 3, "prefix2": 4, "prefix3": 5, "identity": 4}
    for label, axes in orders.items():
        shape = (2, 3, 4, 5, 2)[: ranks.get(label, 4)]
        cases.add(f"transpose-{label}", call("transpose", "x", axes=axes), x=f(*shape))
    cases.add("transpose-none", "transpose(x, axes = [])", x=f(2, 3))
    cases.add("transpose-rank5", "transpose(x, axes = [4, 2, 0, 1, 3])", x=f(2, 3, 1, 4, 2))
    for label, shape, axes in (
        ("first", (1, 3), [0]),
        ("last", (2, 3, 1), [2]),
        ("several", (1, 2, 1, 3), [0, 2]),
        ("unordered", (1, 2, 1, 3), [2, 0]),
        ("none", (2, 3), []),
        ("all", (1, 1), [0, 1]),
        ("rank5", (2, 1, 3, 1, 1), [4, 1]),
    ):
        cases.add(f"squeeze-{label}", call("squeeze", "x", axes=axes), x=f(*shape))
    for label, shape, axes in (
        ("first", (2, 3), [0]),
        ("last", (2, 3), [2]),
        ("several", (2, 3), [0, 2]),
        ("unordered", (2, 3), [3, 0]),
        ("none", (2, 3), []),
        ("scalar", (), [0]),
        ("to5", (2, 3), [0, 2, 4]),
    ):
        cases.add(f"unsqueeze-{label}", call("unsqueeze", "x", axes=axes), x=f(*shape))


def add_joining(cases: Cases) -> None:
    for axis in range(5):
        shape = [2, 1, 3, 2, 2]
        other = list(shape)
        other[axis] += 1
        body = f"concat([x, w], axis = {axis})"
        cases.add(f"concat-rank5-{axis}", body, x=f(*shape), w=f(*other))
    cases.add("concat-one", "concat([x], axis = 0)", x=f(2, 3))
    cases.add("concat-three", "concat([x, w, x], axis = 1)", x=f(2, 3), w=var(f(2, 2)))
    cases.add("concat-rank1", "concat([x, w], axis = 0)", x=f(2), w=f(3))
    for axis in range(4):
        body = f"stack([x, w, x], axis = {axis})"
        cases.add(f"stack-rank3-{axis}", body, x=f(2, 3, 2), w=f(2, 3, 2))
    cases.add("stack-one", "stack([x], axis = 1)", x=f(2, 3))
    cases.add("stack-rank1", "stack([x, w], axis = 1)", x=f(3), w=var(f(3)))
    cases.add("stack-scalars", "stack([x, w], axis = 0)", x=f(), w=f())
    for label, shape, axis, ratios in (
        ("halves", (2, 4), 1, [1, 1]),
        ("ratios", (2, 9), 1, [1, 2]),
        ("one", (2, 3), 0, [1]),
        ("three", (6, 2), 0, [2, 3, 1]),
        ("rank5", (1, 2, 1, 4, 2), 3, [1, 3]),
        ("rank1", (6,), 0, [1, 2]),
    ):
        names = ["y", "z", "v"][: len(ratios)]
        body = f"[{', '.join(names)}] = " + call("split", "x", axis=axis, ratios=ratios)
        cases.add(f"split-{label}", body, x=f(*shape))
    cases.add(
        "split-used", "[y, z] = split(x, axis = 0, ratios = [1, 1]); v = add(y, z)", x=f(4, 2)
    )
    for axis in range(3):
        shape = [3, 3, 3]
        shape[axis] = 2
        cases.add(f"unstack-rank3-{axis}", f"[y, z] = unstack(x, axis = {axis})", x=f(*shape))
    cases.add("unstack-rank1", "[y, z] = unstack(x, axis = 0)", x=f(2))
    cases.add("unstack-one", "[y] = unstack(x, axis = 1)", x=f(2, 1))
    for label, shape, repeats in (
        ("rank1", (3,), [2]),
        ("rank2", (2, 3), [2, 3]),
        ("rank4", (1, 2, 1, 3), [2, 1, 3, 1]),
        ("rank5", (1, 2, 1, 2, 1), [1, 2, 3, 1, 2]),
        ("ones", (2, 3), [1, 1]),
    ):
        cases.add(f"tile-{label}", call("tile", "x", repeats=repeats), x=f(*shape))
    for label, (shape, attributes) in SLICES.items():
        cases.add(f"slice-{label}", call("slice", "x", **attributes), x=f(*shape))


def add_pads(cases: Cases) -> None:
    for border in BORDERS:
        for rank, shape in {
            1: (5,),
            2: (4, 5),
            3: (1, 3, 4),
            4: (1, 2, 4, 5),
            5: (1, 2, 3, 3, 4),
        }.items():
            padding: list[tuple[int, int]] = [(0, 0)] * max(rank - 2, 0)
            padding += [(2, 1), (1, 2)][-min(rank, 2) :]
            body = call("pad", "x", padding=padding, border=border)
            cases.add(f"pad-{border}-rank{rank}", body, x=f(*shape))
        body = call("pad", "x", padding=[(1, 1), (1, 0), (0, 1), (2, 2)], border=border)
        cases.add(f"pad-{border}-all", body, x=f(2, 2, 3, 4))
        body = call("pad", "x", padding=[(0, 0), (0, 3)], border=border)
        cases.add(f"pad-{border}-end", body, x=f(2, 4))
    cases.add("pad-value", "pad(x, padding = [(1, 2), (0, 1)], value = -1.5)", x=f(2, 3))
    body = "pad(x, padding = [(0, 0), (0, 0), (1, 1), (2, 0)], value = 3.25)"
    cases.add("pad-value-rank4", body, x=f(1, 2, 3, 3))
    cases.add("pad-cropped", "pad(x, padding = [(-1, 0), (1, -2)])", x=f(4, 5))
    body = "pad(x, padding = [(0, 0), (0, 0), (-1, 2), (1, -1)], border = 'replicate')"
    cases.add("pad-cropped-replicate", body, x=f(1, 2, 4, 5))
    cases.add("pad-nothing", "pad(x, padding = [(0, 0), (0, 0)])", x=f(2, 3))


def add_lookups(cases: Cases) -> None:
    for rank, indices in {0: (), 1: (3,), 2: (2, 2), 3: (1, 2, 2)}.items():
        for axis in range(3):
            body = call("gather", "x", "j", axis=axis)
            cases.add(f"gather-rank{rank}-{axis}", body, x=f(4, 4, 4), j=i(*indices, high=4))
    cases.add("gather-default", "gather(x, j)", x=f(4, 2), j=i(3, high=4))
    cases.add("gather-stored", "gather(x, j, axis = 1)", x=f(2, 4), j=var(i(3, high=4)))
    cases.add("gather-table", "gather(w, j)", w=var(f(5, 3)), j=i(2, 3, high=5))
    cases.add("gather-integer", "gather(x, j)", x=i(4, 2), j=i(3, high=4))
    cases.add("gather-logical", "gather(x, j, axis = 1)", x=b(2, 4), j=i(3, high=4))
    cases.add("gather-rank5", "gather(x, j, axis = 3)", x=f(1, 2, 1, 4, 2), j=i(2, high=4))
    numbers = [-2.7, -1.0, -0.4, 0.0, 0.4, 1.6, 2.5]
    for target in KINDS:
        cases.add(f"cast-scalar-{target}", f"cast<{target}>(x)", x=given("f", numbers))
        cases.add(f"cast-integer-{target}", f"cast<{target}>(x)", x=i(2, 3, low=-2, high=3))
        cases.add(f"cast-logical-{target}", f"cast<{target}>(x)", x=b(2, 3))
    cases.add("cast-rank5", "cast<scalar>(x)", x=i(1, 2, 1, 2, 2))
    cases.add("cast-compared", "c = gt(x, 0.0); y = cast<scalar>(c)", x=f(2, 3))
    cases.add("cast-index", "j = argmax_reduce(x, axes = [1]); y = cast<scalar>(j)", x=f(2, 4))


def add_declarations(cases: Cases) -> None:
    cases.add(
        "constant-fill", "w = constant(shape = [2, 3], value = [1.5]); y = add(x, w)", x=f(2, 3)
    )
    values = "[1.0, -2.0, 0.5, 4.0]"
    cases.add(
        "constant-each", f"w = constant(shape = [2, 2], value = {values}); y = mul(x, w)", x=f(2, 2)
    )
    cases.add(
        "constant-scalar", "w = constant(shape = [], value = [2.5]); y = mul(x, w)", x=f(2, 2)
    )
    body = "w = constant<integer>(shape = [3], value = [2, 0, 1]); y = gather(x, w)"
    cases.add("constant-integer", body, x=f(3, 2))
    body = "w = constant<logical>(shape = [2], value = [true, false]); y = select(w, x, 0.0)"
    cases.add("constant-logical", body, x=f(2, 2))
    cases.add(
        "constant-output", "w = constant(shape = [2], value = [3.0, 4.0]); y = copy(w)", x=f(1)
    )
    cases.add(
        "constant-output-integer", "y = constant<integer>(shape = [2, 2], value = [7])", x=f(1)
    )
    body = "w = constant(shape = [1, 3], value = [1.0, 2.0, 3.0]); y = add(x, w)"
    cases.add("constant-leading", body, x=f(2, 3, 2))
    cases.add("variable-output", "copy(w)", x=f(1), w=var(f(2, 3)))
    cases.add(
        "variable-integer", "add_ = copy(w); y = gather(x, add_)", x=f(4, 2), w=var(i(2, high=4))
    )
    cases.add("variable-logical", "select(w, x, 0.0)", x=f(2, 9), w=var(b(2, 9)))
    cases.add("variable-scalar", "mul(x, w)", x=f(2, 3), w=var(f()))
    cases.add("variable-twice", "v = mul(x, w); y = add(v, w)", x=f(2, 3), w=var(f(1, 3)))
    for kind, draw in KINDS.items():
        cases.add(f"external-{kind}", "copy(x)", x=draw(2, 3))
    cases.add("update-plain", "v = add(w, x); y = update(w, v)", x=f(2, 3), w=var(f(2, 3)))
    cases.add("copy_n-three", "[y, z, v] = copy_n(x, times = 3)", x=f(2, 3))
    cases.add("copy_n-one", "[y] = copy_n(x, times = 1)", x=f(2, 3))
    cases.add("copy_n-integer", "[y, z] = copy_n(x, times = 2)", x=i(2, 3))
    cases.add("copy_n-rank5", "[y, z] = copy_n(x, times = 2)", x=f(1, 2, 1, 2, 2))
    cases.add("add_n-one", "add_n([x])", x=f(2, 3))
    cases.add("add_n-three", "add_n([x, w, x])", x=f(2, 3), w=var(f(2, 3)))
    cases.add("add_n-five", "add_n([x, w, x, w, w])", x=f(1, 2, 1, 2, 2), w=f(1, 2, 1, 2, 2))


SIZES: Final = {
    "channels": ((2, 5, 3, 3), [1, 3, 1, 1]),
    "channels-even": ((2, 5, 3, 3), [1, 4, 1, 1]),
    "spatial": ((1, 2, 5, 4), [1, 1, 3, 3]),
    "uneven": ((1, 2, 5, 4), [1, 1, 2, 3]),
    "all": ((2, 3, 4, 4), [2, 3, 3, 2]),
    "rank2": ((2, 6), [1, 3]),
    "rank3": ((2, 4, 5), [1, 3, 1]),
    "rank5": ((1, 4, 2, 3, 2), [1, 3, 1, 1, 1]),
    "one": ((2, 3, 2), [1, 1, 1]),
}


def add_normalizations(cases: Cases) -> None:
    for label, (shape, size) in SIZES.items():
        for op, attributes in {
            "local_response_normalization": {"alpha": 0.7, "beta": 0.75, "bias": 1.5},
            "local_mean_normalization": {},
            "local_variance_normalization": {"bias": 0.5, "epsilon": 0.9},
            "local_contrast_normalization": {"bias": 0.25, "epsilon": 0.6},
        }.items():
            body = call(op, "x", size=size, **attributes)
            cases.add(f"{op}-{label}", body, x=f(*shape))
    x = f(2, 5, 3, 3)
    size = [1, 3, 1, 1]
    lrn = "local_response_normalization"
    for key, value in {"alpha": 0.25, "beta": 1.0, "bias": 2.0}.items():
        cases.add(f"{lrn}-{key}", call(lrn, "x", size=size, **{key: value}), x=x)
    cases.add(f"{lrn}-defaults", call(lrn, "x", size=size), x=x)
    for op in ("local_variance_normalization", "local_contrast_normalization"):
        cases.add(f"{op}-defaults", call(op, "x", size=size), x=x)
        cases.add(f"{op}-bias", call(op, "x", size=size, bias=0.75), x=x)
        cases.add(f"{op}-epsilon", call(op, "x", size=size, epsilon=1.25), x=x)
    for op in ("l1_normalization", "l2_normalization"):
        for axes in ([1], [0], [2, 3], [1, 2, 3], [3, 0]):
            label = "".join(map(str, axes))
            cases.add(f"{op}-axes{label}", call(op, "x", axes=axes), x=f(2, 3, 4, 2))
        cases.add(f"{op}-bias", call(op, "x", axes=[1], bias=0.5), x=f(2, 3))
        cases.add(f"{op}-epsilon", call(op, "x", axes=[1], epsilon=2.0), x=f(2, 3))
        cases.add(f"{op}-both", call(op, "x", axes=[1], bias=0.25, epsilon=1.5), x=f(4, 3))
        cases.add(f"{op}-rank1", call(op, "x", axes=[0], epsilon=1e-3), x=f(5))
        cases.add(f"{op}-rank5", call(op, "x", axes=[1], epsilon=1e-3), x=f(1, 3, 2, 2, 2))
    body = "batch_normalization(x, m, v, o, s, epsilon = 0.01)"
    for rank in range(2, 6):
        shape = (2, 3, 4, 2, 2)[:rank]
        each = var(f(1, 3))
        cases.add(
            f"batch_normalization-rank{rank}",
            body,
            x=f(*shape),
            m=each,
            v=var(pos(1, 3)),
            o=each,
            s=each,
        )
    each = f(1, 3)
    cases.add("batch_normalization-inputs", body, x=f(2, 3, 4), m=each, v=pos(1, 3), o=each, s=each)
    literal = "batch_normalization(x, m, v, 0.0, 1.0, epsilon = 0.1)"
    cases.add(
        "batch_normalization-literals", literal, x=f(2, 3, 4), m=var(f(1, 3)), v=var(pos(1, 3))
    )
    each = var(f(2, 3))
    cases.add(
        "batch_normalization-wide", body, x=f(2, 3, 4), m=each, v=var(pos(2, 3)), o=each, s=each
    )


def add_quantizers(cases: Cases) -> None:
    x = f(2, 3, 4)
    for bits in (2, 4, 8):
        cases.add(
            f"linear_quantize-bits{bits}", f"linear_quantize(x, -1.5, 1.25, bits = {bits})", x=x
        )
        cases.add(
            f"logarithmic_quantize-bits{bits}", f"logarithmic_quantize(x, 1.5, bits = {bits})", x=x
        )
    channel: dict[str, Draw] = {
        "a": var(given("f", [[-1.0, -2.0, -0.5]])),
        "c": var(given("f", [[1.0, 1.5, 2.0]])),
    }
    cases.add("linear_quantize-channels", "linear_quantize(x, a, c, bits = 5)", x=x, **channel)
    zero = given("f", [0.0, 0.3, -0.3, 2.0, -5.0])
    cases.add("logarithmic_quantize-zero", "logarithmic_quantize(x, 2.0, bits = 3)", x=zero)
    cases.add(
        "logarithmic_quantize-channels", "logarithmic_quantize(x, c, bits = 4)", x=x, c=channel["c"]
    )
    for signed in (False, True):
        for symmetric in (False, True):
            flags = {"signed": signed, "symmetric": symmetric}
            label = f"{'signed' if signed else 'unsigned'}{'-symmetric' if symmetric else ''}"
            for bits in (3, 8):
                body = call("min_max_linear_quantize", "x", "-1.4", "1.1", bits=bits, **flags)
                cases.add(f"min_max_linear_quantize-{label}{bits}", body, x=x)
                body = call("zero_point_linear_quantize", "x", "2", "0.3", bits=bits, **flags)
                cases.add(f"zero_point_linear_quantize-{label}{bits}", body, x=x)
    flags = {"signed": True, "symmetric": False}
    body = call("min_max_linear_quantize", "x", "a", "c", bits=6, **flags)
    cases.add("min_max_linear_quantize-channels", body, x=x, **channel)
    body = call("zero_point_linear_quantize", "x", "z", "s", bits=6, **flags)
    stored = {"z": var(given("i", [[0, 2, -3]])), "s": var(given("f", [[0.1, 0.07, 0.25]]))}
    cases.add("zero_point_linear_quantize-channels", body, x=x, **stored)
    for label, line in {
        "linear": "linear_quantize(min = -1.5, max = 1.0, bits = 4)",
        "min_max": "min_max_linear_quantize(min = -1.5, max = 1.0, bits = 4, "
        "signed = true, symmetric = true)",
        "zero_point": "zero_point_linear_quantize(zero_point = 1, scale = 0.2, bits = 4, "
        "signed = true, symmetric = false)",
        "logarithmic": "logarithmic_quantize(max = 1.0, bits = 3)",
    }.items():
        quant = f'"x": {line};\n"v": {line};\n'
        cases.add(
            f"{line.partition('(')[0]}-file-{label}", "v = mul(x, 0.75); y = copy(v)", quant, x=x
        )


ROIS: Final = [[0.0, 0.0, 3.0, 4.0], [1.0, 2.0, 5.0, 5.0], [2.0, 1.0, 4.0, 3.0]]
PARTS: Final = [[0.5, 0.75, 3.5, 4.0], [1.25, 2.0, 4.75, 5.25], [2.0, 1.5, 4.5, 3.0]]


def add_regions(cases: Cases) -> None:
    x = f(2, 2, 7, 7)
    index = given("i", [0, 1, 1])
    for op in ("avg_roi_pool", "max_roi_pool"):
        for size in ([2, 2], [3, 2], [1, 1]):
            body = call(op, "x", "r", "j", output_size=size)
            cases.add(f"{op}-{size[0]}x{size[1]}", body, x=x, r=given("f", ROIS), j=index)
        body = call(op, "x", "r", "j", output_size=[2, 2])
        cases.add(f"{op}-stored", body, x=x, r=var(given("f", ROIS)), j=var(index))
    for method in ("symmetric", "asymmetric", "aligned"):
        for size in ([2, 2], [3, 4]):
            body = call("roi_resample", "x", "r", "j", output_size=size, method=method)
            name = f"roi_resample-{method}{size[0]}x{size[1]}"
            cases.add(name, body, x=x, r=given("f", PARTS), j=index)
        for op in ("avg_roi_align", "max_roi_align"):
            for rate in ([2, 2], [1, 3]):
                attributes = {"output_size": [2, 3], "sampling_rate": rate, "resize_method": method}
                name = f"{op}-{method}{rate[0]}x{rate[1]}"
                body = call(op, "x", "r", "j", **attributes)
                cases.add(name, body, x=x, r=given("f", PARTS), j=index)


def add_all(cases: Cases) -> None:
    """Add the cases of this module."""
    for each in (
        add_reshaping,
        add_joining,
        add_pads,
        add_lookups,
        add_declarations,
        add_normalizations,
        add_quantizers,
        add_regions,
    ):
        each(cases)
