"""Cases of sliding windows: borders, paddings, strides, dilations and groups, ranks 1 to 5."""

from __future__ import annotations

import itertools
from typing import Final

from support.nnef_cases import Cases, Draw, call, f, given, var

BORDERS: Final = ["constant", "replicate", "reflect", "reflect-even", "ignore"]

GROUPS: Final = {
    "one": (1, 4, 3, 4),
    "two": (2, 4, 6, 2),
    "depth": (0, 4, 4, 1),
    "double": (0, 4, 8, 1),
}
"""The parameter, channels of the input, of the output, and of the filter."""


def _spatial(rank: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return sizes[:rank]


PADDINGS: Final = ["same", "none", "uneven"]


def _padding(label: str, rank: int) -> list[tuple[int, int]] | None:
    return {"same": None, "none": [(0, 0)] * rank, "uneven": [(1, 2), (2, 0), (0, 1)][:rank]}[label]


def _covering() -> list[tuple[str, str, int, int, str]]:
    """Border, padding, stride, dilation and groups: each pair of two of them occurs."""
    found = []
    axes = (BORDERS[:4], PADDINGS, [1, 2], [1, 2], list(GROUPS))
    for n, point in enumerate(itertools.product(*(range(len(each)) for each in axes))):
        if sum(point) % 3 == 0 or n % 7 == 0:
            found.append(tuple(axis[at] for axis, at in zip(axes, point, strict=True)))
    return found  # type: ignore[return-value]


def add_convs(cases: Cases) -> None:
    for border, padding, stride, dilation, groups in _covering():
        g, c, z, each = GROUPS[groups]
        attributes: dict[str, object] = {
            "border": border,
            "padding": _padding(padding, 2),
            "stride": [stride, 1] if stride > 1 else None,
            "dilation": [1, dilation] if dilation > 1 else None,
            "groups": g if g != 1 else None,
        }
        name = f"conv-2d-{border}-{padding}-s{stride}-d{dilation}-{groups}"
        body = call("conv", "x", "w", "c", **attributes)
        cases.add(name, body, x=f(2, c, 6, 7), w=var(f(z, each, 3, 2)), c=var(f(1, z)))
    for rank, (border, padding, groups) in itertools.product(
        (1, 3), zip(BORDERS, PADDINGS * 2, [*GROUPS, "one"], strict=False)
    ):
        g, c, z, each = GROUPS[groups]
        attributes = {
            "border": border,
            "padding": _padding(padding, rank),
            "stride": [2, 1, 2][:rank],
            "dilation": [1, 2, 1][:rank],
            "groups": g,
        }
        x, w = f(1, c, *(7, 6, 5)[:rank]), var(f(z, each, *(3, 2, 2)[:rank]))
        cases.add(
            f"conv-{rank}d-{border}-{padding}-{groups}",
            call("conv", "x", "w", **attributes),
            x=x,
            w=w,
        )
    for label, bias, tensors in (
        ("none", (), {}),
        ("literal", ("0.5",), {}),
        ("zero", ("0.0",), {}),
        ("input", ("c",), {"c": f(1, 3)}),
    ):
        body = call("conv", "x", "w", *bias, padding=[(1, 1)])
        cases.add(f"conv-bias-{label}", body, x=f(2, 2, 5), w=var(f(3, 2, 3)), **tensors)
    cases.add("conv-filter-input", "conv(x, w)", x=f(1, 2, 5, 5), w=f(3, 2, 3, 3))
    cases.add("conv-even-filter", "conv(x, w)", x=f(1, 2, 5, 6), w=var(f(3, 2, 4, 2)))
    cases.add(
        "conv-stride-same", "conv(x, w, stride = [2, 3])", x=f(1, 2, 7, 8), w=var(f(3, 2, 3, 5))
    )
    cases.add(
        "conv-negative",
        "conv(x, w, padding = [(-1, 0), (0, -1)])",
        x=f(1, 2, 6, 6),
        w=var(f(3, 2, 2, 2)),
    )


def add_deconvs(cases: Cases) -> None:
    grid = itertools.product(("constant", "replicate"), PADDINGS, (1, 2), (1, 2), GROUPS)
    for n, (border, padding, stride, dilation, groups) in enumerate(grid):
        if border == "replicate" and n % 3:
            continue
        g, z = GROUPS[groups][:2]
        attributes: dict[str, object] = {
            "border": border if border != "constant" else None,
            "padding": _padding(padding, 2) if padding != "uneven" else [(1, 0), (0, 1)],
            "stride": [stride, 1] if stride > 1 else None,
            "dilation": [1, dilation] if dilation > 1 else None,
            "groups": g if g != 1 else None,
        }
        if groups == "double":
            continue
        z_out = {"one": 3, "two": 6, "depth": 4}[groups]
        each = z_out // (g or z)
        body = call("deconv", "x", "w", "c", **attributes)
        name = f"deconv-2d-{border}-{padding}-s{stride}-d{dilation}-{groups}"
        cases.add(name, body, x=f(2, z, 4, 5), w=var(f(z, each, 3, 2)), c=var(f(1, z_out)))
    for rank, padding, groups in itertools.product((1, 3), PADDINGS, (1, 2)):
        pads = _padding(padding, rank) if padding != "uneven" else [(1, 0), (0, 1), (1, 1)][:rank]
        body = call("deconv", "x", "w", padding=pads, stride=[2, 1, 2][:rank], groups=groups)
        x, w = f(1, 4, *(4, 3, 3)[:rank]), var(f(4, 2, *(3, 3, 2)[:rank]))
        cases.add(f"deconv-{rank}d-{padding}-g{groups}", body, x=x, w=w)
    for label, attributes in {
        "same": {"stride": [2, 2], "output_shape": [1, 3, 7, 8]},
        "even": {"stride": [2, 2], "output_shape": [1, 3, 8, 8]},
        "padded": {"stride": [2, 2], "padding": [(1, 1), (1, 1)], "output_shape": [1, 3, 8, 7]},
        "valid": {"stride": [2, 3], "padding": [(0, 0), (0, 0)], "output_shape": [1, 3, 9, 12]},
    }.items():
        body = call("deconv", "x", "w", **attributes)
        cases.add(f"deconv-shape-{label}", body, x=f(1, 4, 4, 4), w=var(f(4, 3, 3, 3)))
    body = call("deconv", "x", "w", stride=[2], output_shape=[1, 2, 6], groups=0)
    cases.add("deconv-shape-depth", body, x=f(1, 4, 3), w=var(f(4, 1, 3)))
    for label, bias, tensors in (("literal", "0.5", {}), ("input", "c", {"c": f(1, 3)})):
        body = call("deconv", "x", "w", bias, padding=[(1, 1)], stride=[2])
        cases.add(f"deconv-bias-{label}", body, x=f(2, 2, 4), w=var(f(2, 3, 3)), **tensors)


def add_separable(cases: Cases) -> None:
    for n, (border, padding) in enumerate(itertools.product(BORDERS[:4], PADDINGS)):
        attributes: dict[str, object] = {
            "border": border,
            "padding": _padding(padding, 2),
            "stride": [2, 1] if n % 2 else None,
            "dilation": [1, 2] if n % 3 else None,
            "groups": 2 if n % 4 == 1 else None,
        }
        point = var(f(6, 2 if n % 4 == 1 else 4, 1, 1))
        body = call("separable_conv", "x", "w", "p", "c", **attributes)
        name = f"separable_conv-{border}-{padding}"
        cases.add(name, body, x=f(1, 4, 6, 7), w=var(f(4, 1, 3, 2)), p=point, c=var(f(1, 6)))
    cases.add(
        "separable_conv-plain",
        "separable_conv(x, w, p)",
        x=f(2, 3, 5),
        w=var(f(3, 1, 3)),
        p=var(f(2, 3, 1)),
    )
    cases.add(
        "separable_conv-literal",
        "separable_conv(x, w, p, 0.5)",
        x=f(2, 3, 5),
        w=var(f(3, 1, 3)),
        p=var(f(2, 3, 1)),
    )
    cases.add(
        "separable_conv-3d",
        "separable_conv(x, w, p, 0.0, stride = [1, 2, 1])",
        x=f(1, 2, 3, 4, 3),
        w=var(f(2, 1, 2, 3, 2)),
        p=var(f(4, 2, 1, 1, 1)),
    )
    for n, padding in enumerate(PADDINGS):
        for stride in (1, 2):
            attributes = {
                "padding": _padding(padding, 2) if padding != "uneven" else [(1, 0), (0, 1)],
                "stride": [stride, 1] if stride > 1 else None,
                "dilation": [1, 2] if n == 1 else None,
                "groups": 2 if n == 2 else None,
            }
            body = call("separable_deconv", "x", "w", "p", "c", **attributes)
            point = var(f(6, 2 if n == 2 else 4, 1, 1))
            cases.add(
                f"separable_deconv-{padding}-s{stride}",
                body,
                x=f(1, 6, 4, 3),
                w=var(f(4, 1, 3, 2)),
                p=point,
                c=var(f(1, 4)),
            )
    body = "separable_deconv(x, w, p, stride = [2], output_shape = [1, 3, 7])"
    cases.add("separable_deconv-shape", body, x=f(1, 2, 4), w=var(f(3, 1, 3)), p=var(f(2, 3, 1)))
    body = "separable_deconv(x, w, p, 0.25, border = 'replicate', padding = [(1, 1)])"
    cases.add(
        "separable_deconv-replicate", body, x=f(1, 2, 4), w=var(f(3, 1, 3)), p=var(f(2, 3, 1))
    )


WINDOWS: Final[dict[str, tuple[tuple[int, ...], dict[str, object]]]] = {
    "rank1": ((9,), {"size": [3], "padding": [(1, 1)], "stride": [2]}),
    "rank2": ((5, 6), {"size": [2, 3], "padding": [(0, 1), (1, 1)]}),
    "rank3": (
        (1, 2, 8),
        {"size": [1, 1, 3], "padding": [(0, 0), (0, 0), (1, 0)], "stride": [1, 1, 2]},
    ),
    "same": ((1, 2, 5, 6), {"size": [1, 1, 3, 2]}),
    "same-stride": ((1, 2, 7, 6), {"size": [1, 1, 3, 3], "stride": [1, 1, 2, 2]}),
    "same-dilated": ((1, 2, 7, 6), {"size": [1, 1, 2, 3], "dilation": [1, 1, 3, 2]}),
    "valid": (
        (2, 2, 5, 6),
        {"size": [1, 1, 2, 2], "padding": [(0, 0)] * 4, "stride": [1, 1, 2, 2]},
    ),
    "uneven": ((1, 2, 5, 6), {"size": [1, 1, 3, 3], "padding": [(0, 0), (0, 0), (1, 2), (0, 1)]}),
    "dilated": (
        (1, 2, 7, 7),
        {
            "size": [1, 1, 2, 3],
            "padding": [(0, 0), (0, 0), (1, 1), (2, 2)],
            "dilation": [1, 1, 2, 2],
        },
    ),
    "channels": ((2, 5, 3, 3), {"size": [1, 3, 1, 1], "padding": [(0, 0), (1, 1), (0, 0), (0, 0)]}),
    "batch": (
        (5, 2, 3, 3),
        {"size": [2, 1, 1, 2], "padding": [(1, 0), (0, 0), (0, 0), (0, 1)], "stride": [2, 1, 1, 1]},
    ),
    "all": ((3, 4, 5, 4), {"size": [2, 2, 2, 2], "stride": [1, 2, 2, 1]}),
    "gaps": ((1, 2, 8), {"size": [1, 1, 2], "padding": [(0, 0)] * 3, "stride": [1, 1, 3]}),
    "rank5": (
        (1, 2, 4, 5, 4),
        {
            "size": [1, 1, 2, 3, 2],
            "padding": [(0, 0), (0, 0), (0, 1), (1, 1), (0, 0)],
            "stride": [1, 1, 2, 1, 2],
        },
    ),
}

POOLS: Final = ["box", "max_pool", "avg_pool", "rms_pool", "argmax_pool", "max_pool_with_index"]


def add_pools(cases: Cases) -> None:
    for op, (label, (shape, attributes)) in itertools.product(POOLS, WINDOWS.items()):
        front = "y, z = " if op == "max_pool_with_index" else ""
        for border in BORDERS:
            whole = label in ("same", "uneven", "dilated", "channels")
            if not whole and border != ("ignore" if len(label) % 2 else "constant"):
                continue
            if (
                op in ("argmax_pool", "max_pool_with_index", "rms_pool")
                and whole
                and border == "reflect"
            ):
                continue
            body = front + call(op, "x", border=border, **attributes)
            cases.add(f"{op}-{label}-{border}", body, x=f(*shape))
    for label, (shape, attributes) in WINDOWS.items():
        for border in ("constant", "ignore") if label in ("same", "uneven", "all") else ("ignore",):
            body = call("box", "x", border=border, normalize=True, **attributes)
            cases.add(f"box-mean-{label}-{border}", body, x=f(*shape))
    for op in ("max_pool", "argmax_pool"):
        body = call(
            op, "x", size=[1, 1, 2, 2], border="ignore", stride=[1, 1, 2, 2], padding=[(0, 0)] * 4
        )
        values = [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 3.0]]]]
        cases.add(f"{op}-ties", body, x=given("f", values))
    cases.add(
        "max_pool-negative",
        "max_pool(x, size = [1, 1, 3], padding = [(0, 0), (0, 0), (1, 1)])",
        x=f(1, 2, 5, low=-3.0, high=-1.0),
    )
    cases.add(
        "max_pool-ignored",
        "max_pool(x, size = [1, 1, 3], padding = [(0, 0), (0, 0), (1, 1)], border = 'ignore')",
        x=f(1, 2, 5, low=-3.0, high=-1.0),
    )


UNPOOLS: Final[dict[str, tuple[tuple[int, ...], dict[str, object]]]] = {
    "blocks": (
        (1, 2, 3, 3),
        {"size": [1, 1, 2, 2], "padding": [(0, 0)] * 4, "stride": [1, 1, 2, 2]},
    ),
    "same": ((1, 2, 3, 4), {"size": [1, 1, 3, 3], "stride": [1, 1, 2, 2]}),
    "overlap": ((1, 2, 4, 4), {"size": [1, 1, 3, 2], "padding": [(0, 0), (0, 0), (1, 1), (0, 1)]}),
    "gaps": ((1, 2, 3, 3), {"size": [1, 1, 2, 2], "padding": [(0, 0)] * 4, "stride": [1, 1, 3, 3]}),
    "rank3": ((2, 2, 4), {"size": [1, 1, 2], "padding": [(0, 0)] * 3, "stride": [1, 1, 2]}),
    "rank5": (
        (1, 2, 2, 2, 2),
        {"size": [1, 1, 2, 1, 2], "padding": [(0, 0)] * 5, "stride": [1, 1, 2, 1, 2]},
    ),
    "shape": (
        (1, 2, 3, 3),
        {"size": [1, 1, 3, 3], "stride": [1, 1, 2, 2], "output_shape": [1, 2, 5, 6]},
    ),
    "shape-padded": (
        (1, 2, 3, 3),
        {
            "size": [1, 1, 2, 2],
            "padding": [(0, 0)] * 4,
            "stride": [1, 1, 2, 2],
            "output_shape": [1, 2, 7, 6],
        },
    ),
    "dilated": (
        (1, 2, 4, 4),
        {
            "size": [1, 1, 2, 2],
            "padding": [(0, 0), (0, 0), (1, 1), (0, 0)],
            "dilation": [1, 1, 2, 3],
        },
    ),
    "channels": ((1, 3, 3), {"size": [1, 2, 1], "padding": [(0, 0)] * 3, "stride": [1, 2, 1]}),
    "rank2": ((3, 4), {"size": [2, 1], "padding": [(0, 0), (0, 0)], "stride": [2, 1]}),
    "rank1": ((4,), {"size": [2], "padding": [(0, 0)], "stride": [2]}),
}


def add_unpools(cases: Cases) -> None:
    for label, (shape, attributes) in UNPOOLS.items():
        count = 1
        for each in attributes["size"]:  # type: ignore[attr-defined]
            count *= each
        index = Draw(shape, "i", 0, count)
        for border in ("constant", "ignore"):
            cases.add(
                f"debox-{label}-{border}",
                call("debox", "x", border=border, **attributes),
                x=f(*shape),
            )
            cases.add(
                f"desample-{label}-{border}",
                call("desample", "x", "j", border=border, **attributes),
                x=f(*shape),
                j=index,
            )
        body = call("debox", "x", normalize=True, **attributes)
        cases.add(f"debox-mean-{label}", body, x=f(*shape))
        for op in ("max_unpool", "avg_unpool"):
            more = ("j",) if op == "max_unpool" else ()
            tensors = {"x": f(*shape)} | ({"j": index} if more else {})
            cases.add(f"{op}-{label}", call(op, "x", *more, **attributes), **tensors)
    cases.add(
        "debox-mean-ignored",
        call(
            "debox",
            "x",
            size=[1, 1, 3],
            padding=[(0, 0), (0, 0), (1, 1)],
            border="ignore",
            normalize=True,
        ),
        x=f(1, 2, 4),
    )
    for border in ("replicate", "reflect", "reflect-even"):
        body = call("debox", "x", size=[1, 1, 3], padding=[(0, 0), (0, 0), (1, 1)], border=border)
        cases.add(f"debox-{border}", body, x=f(1, 2, 4))
    pair = "v, j = {pool}; y = {back}"
    for label in ("blocks", "overlap", "rank3", "same"):
        shape, attributes = UNPOOLS[label]
        shape = tuple(n * 2 for n in shape)
        back = {key: value for key, value in attributes.items() if key != "output_shape"}
        pool = call("max_pool_with_index", "x", border="ignore", **back)
        body = pair.format(pool=pool, back=call("desample", "v", "j", border="ignore", **back))
        cases.add(f"desample-pooled-{label}", body, x=f(*shape))
    for label, (shape, attributes) in WINDOWS.items():
        sample = call(
            "sample", "x", "j", border="ignore" if label != "uneven" else "replicate", **attributes
        )
        pool = call(
            "argmax_pool", "x", border="ignore" if label != "uneven" else "replicate", **attributes
        )
        cases.add(f"sample-{label}", f"j = {pool}; y = {sample}", x=f(*shape))
    for border in BORDERS[:4]:
        attributes = {"size": [1, 1, 3], "padding": [(0, 0), (0, 0), (1, 1)], "border": border}
        body = call("sample", "x", "j", **attributes)
        cases.add(f"sample-index-{border}", body, x=f(1, 2, 5), j=Draw((1, 2, 5), "i", 0, 3))


def add_resampling(cases: Cases) -> None:
    for op in ("nearest_downsample", "area_downsample", "nearest_upsample"):
        for label, shape, factor in (
            ("1d", (2, 2, 6), [3]),
            ("2d", (1, 2, 4, 6), [2, 2]),
            ("uneven", (1, 2, 4, 6), [2, 3]),
            ("one", (1, 2, 4, 6), [1, 2]),
            ("3d", (1, 2, 4, 2, 6), [2, 1, 3]),
        ):
            cases.add(f"{op}-{label}", call(op, "x", factor=factor), x=f(*shape))
    for method, border in itertools.product(
        ("symmetric", "asymmetric", "aligned"), ("constant", "replicate")
    ):
        for label, shape, factor in (
            ("1d", (2, 2, 5), [2]),
            ("1d-three", (2, 2, 4), [3]),
            ("2d", (1, 2, 3, 4), [2, 2]),
            ("2d-uneven", (1, 2, 3, 4), [2, 3]),
            ("2d-one", (1, 2, 3, 4), [1, 2]),
            ("3d", (1, 2, 2, 3, 2), [2, 1, 2]),
        ):
            body = call("multilinear_upsample", "x", factor=factor, method=method, border=border)
            cases.add(f"multilinear_upsample-{method}-{border}-{label}", body, x=f(*shape))


def add_all(cases: Cases) -> None:
    """Add the cases of this module."""
    for each in (add_convs, add_deconvs, add_separable, add_pools, add_unpools, add_resampling):
        each(cases)
