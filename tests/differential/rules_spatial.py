"""Rules of products, windows, resampling and boxes."""

import numpy as np

from draw import Impossible, rule


def window(d, spatial, kernel, transposed=False):
    """Strides, dilations and padding of a window, in every form; returns (strides, dilations)."""
    n = len(spatial)
    strides = d.opt("strides", lambda: [d.r.randint(1, 3) for _ in range(n)], default=[1] * n) or [1] * n
    dilations = d.opt("dilations", lambda: [d.r.choice((1, 1, 2, 3)) for _ in range(n)], default=[1] * n) or [1] * n
    form = d.r.choice(("none", "pads", "pads", "auto"))
    if form == "pads":
        d.attr("pads", [d.r.randint(0, max(0, min(2, k - 1))) for k in [*kernel, *kernel]])
    elif form == "auto":
        auto = d.r.choice(("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
        d.attr("auto_pad", auto)
    return strides, dilations


def spatial_dims(d, rank):
    return tuple(d.dim(3, 9) for _ in range(rank)) if not d.empty else tuple(d.dim(1, 5) for _ in range(rank))


def kernel_dims(d, rank):
    return tuple(d.r.choice((1, 2, 3, 3)) for _ in range(rank))


@rule("Conv", "ConvInteger", "QLinearConv")
def conv(d):
    rank = d.r.choice((1, 2, 2, 2, 3))
    group = d.opt("group", 1, 2, 3, default=1) or 1
    per, out = d.r.choice((1, 1, 2, 3)), group * d.r.choice((1, 2, 3))
    s, k = spatial_dims(d, rank), kernel_dims(d, rank)
    _, dilations = window(d, s, k)
    d.opt("kernel_shape", list(k))
    d.special = False
    del dilations
    x, w = (d.dim(1, 2), group * per, *s), (out, per, *k)
    if d.op == "Conv":
        d.floats(x), d.floats(w)
        d.floats((out,)) if d.r.random() < 0.6 else None
        return
    quantized_product(d, x, w, out)


def zero(d, kind, shape=()):
    kind = np.dtype(kind)
    low, high = (0, 255) if kind == np.uint8 else (-128, 127)
    return d.n.integers(low, high, shape, endpoint=True).astype(kind)


def scale(d, shape=()):
    return d.n.uniform(0.01, 0.1, shape).astype("f4")


def quantized_product(d, x, w, out):
    """The inputs behind the attributes of QLinearConv, ConvInteger, QLinearMatMul and MatMulInteger."""
    def full(shape, kind):
        kind = np.dtype(kind)
        return d.n.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, endpoint=True).astype(kind)
    if d.op.endswith("Integer"):
        a, b = d.type(0), d.type(1)
        d.inp(full(x, a)), d.inp(full(w, b))
        if d.r.random() < 0.7:
            d.inp(zero(d, a))
            per = (out,) if d.op == "ConvInteger" and d.r.random() < 0.3 else ()
            d.inp(zero(d, b, per)) if d.r.random() < 0.7 else None
        return
    x_kind = d.type(0)
    w_kind = d.type(3)
    per = (out,) if d.r.random() < 0.5 and d.op == "QLinearConv" else ()
    y_kind = d.type(7)
    f = d.types.get("TS", np.dtype("f4"))
    f = d.type(1) if f is None else f
    d.inp(full(x, x_kind)), d.inp(scale(d).astype(f), True), d.inp(zero(d, x_kind), True)
    d.inp(full(w, w_kind)), d.inp(scale(d, per).astype(f), True), d.inp(np.zeros(per, w_kind) if d.r.random() < 0.5 else zero(d, w_kind, per), True)
    d.inp((scale(d) * 20).astype(f), True), d.inp(zero(d, y_kind), True)
    if d.op == "QLinearConv" and d.r.random() < 0.6:
        d.inp(d.n.integers(-3000, 3000, (out,)).astype("i4"), True)


@rule("ConvTranspose")
def conv_transpose(d):
    rank = d.r.choice((1, 2, 2, 2, 3))
    group = d.opt("group", 1, 2, default=1) or 1
    per, c = d.r.choice((1, 2, 3)), group * d.r.choice((1, 2))
    s, k = tuple(d.dim(1, 5) for _ in range(rank)), kernel_dims(d, rank)
    strides, dilations = window(d, s, k)
    d.opt("kernel_shape", list(k))
    d.special = False
    if d.r.random() < 0.3:
        d.attr("output_padding", [d.r.randint(0, max(0, max(st, dl) - 1)) for st, dl in zip(strides, dilations)])
    if d.r.random() < 0.15:
        d.attr("output_shape", [st * (n - 1) + (kk - 1) * dl + 1 + d.r.randint(-1, 1) for n, kk, st, dl in zip(s, k, strides, dilations)])
        d.attributes.pop("pads", None)
    d.floats((d.dim(1, 2), c, *s)), d.floats((c, per, *k))
    d.floats((group * per,)) if d.r.random() < 0.5 else None


@rule("DeformConv")
def deform_conv(d):
    group = d.opt("group", 1, 2, default=1) or 1
    og = d.opt("offset_group", 1, 2, default=1) or 1
    c, out = 2 * d.r.choice((1, 2)), group * d.r.choice((1, 2))
    h, w, kh, kw = d.r.randint(3, 6), d.r.randint(3, 6), d.r.randint(1, 3), d.r.randint(1, 3)
    st = d.opt("strides", lambda: [d.r.randint(1, 2) for _ in range(2)]) or [1, 1]
    dl = d.opt("dilations", lambda: [d.r.randint(1, 2) for _ in range(2)]) or [1, 1]
    p = d.opt("pads", lambda: [d.r.randint(0, 1) for _ in range(4)]) or [0] * 4
    d.opt("kernel_shape", [kh, kw])
    oh, ow = (h + p[0] + p[2] - dl[0] * (kh - 1) - 1) // st[0] + 1, (w + p[1] + p[3] - dl[1] * (kw - 1) - 1) // st[1] + 1
    if min(oh, ow) < 1:
        raise Impossible
    d.special = False
    d.floats((1, c, h, w)), d.floats((out, c // group, kh, kw)), d.floats((1, og * kh * kw * 2, oh, ow))
    if d.r.random() < 0.6:
        d.floats((out,)) if d.r.random() < 0.5 else d.inp(None)
        d.floats((1, og * kh * kw, oh, ow), low=0.0, high=1.0) if d.r.random() < 0.7 else None


@rule("MaxPool", "AveragePool", "LpPool")
def pool(d):
    rank = d.r.choice((1, 2, 2, 2, 3))
    s, k = spatial_dims(d, rank), kernel_dims(d, rank)
    d.attr("kernel_shape", list(k))
    window(d, s, k)
    d.opt("ceil_mode", 0, 1, 1), d.opt("count_include_pad", 0, 1), d.opt("storage_order", 0, 1), d.opt("p", 1, 2, 3)
    if d.op != "MaxPool":
        d.special = False
    d.floats((d.dim(1, 2), d.dim(1, 3), *s))


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d):
    d.opt("p", 1, 2, 3)
    d.special = False
    d.floats((d.dim(), d.dim(), *(d.dim() for _ in range(d.r.randint(1, 3)))))


@rule("MaxUnpool")
def max_unpool(d):
    n, c, h, w = 1, d.r.randint(1, 2), d.r.randint(1, 3), d.r.randint(1, 3)
    d.attr("kernel_shape", [2, 2]), d.attr("strides", [2, 2])
    d.opt("pads", [0, 0, 0, 0])
    d.floats((n, c, h, w), constant=False)
    plane = 4 * h * w
    at = np.stack([d.n.permutation(plane)[:h * w] for _ in range(n * c)])
    d.inp((at + np.arange(n * c)[:, None] * plane).reshape(n, c, h, w).astype("i8"))
    if d.r.random() < 0.3:
        d.ints([n, c, 2 * h, 2 * w])


@rule("Gemm")
def gemm(d):
    m, n, k = d.dim(), d.dim(), d.dim()
    ta, tb = d.opt("transA", 0, 1), d.opt("transB", 0, 1)
    d.opt("alpha", 0.5, 2.0, 0.0), d.opt("beta", 0.5, 0.0, -1.0)
    d.special = False
    d.opt("broadcast", 1, 1)
    d.floats((k, m) if ta else (m, k)), d.floats((n, k) if tb else (k, n))
    if d.opset < 11 or d.r.random() < 0.7:
        d.floats(d.r.choice(((m, n), (n,), (1, n), (m, 1), (), (1,))))


@rule("MatMul", "MatMulInteger", "QLinearMatMul")
def matmul(d):
    m, n, k = d.dim(), d.dim(), d.dim()
    batch = d.shape(0, 2)
    a, b = (*batch, m, k), (*(batch[d.r.randint(0, len(batch)):]), k, n)
    if d.r.random() < 0.15:
        a = (k,)
    elif d.r.random() < 0.15:
        b = (k,)
    d.special = False
    if d.op == "MatMul":
        d.floats(a), d.floats(b)
        return
    quantized_product(d, a, b, n)


@rule("Einsum")
def einsum(d):
    letters = d.r.sample("abcdeX", d.r.randint(1, 4))
    size = {x: d.dim(1, 4) for x in letters}
    terms = ["".join(d.r.choice(letters) for _ in range(d.r.randint(0, 3))) for _ in range(d.r.randint(1, 3))]
    used = sorted({x for t in terms for x in t})
    dots = d.shape(1, 2) if d.r.random() < 0.2 else None
    lead = "..." if dots is not None else ""
    text = ",".join(lead + t for t in terms)
    if d.r.random() < 0.7:
        text += "->" + lead + "".join(d.r.sample(used, d.r.randint(0, len(used))))
    if d.r.random() < 0.2:
        text = text.replace(",", " , ").replace("->", " -> ")
    d.attr("equation", text)
    d.special = False
    for t in terms:
        d.floats(((dots or ()) if dots is not None else ()) + tuple(size[x] for x in t), index=0)


@rule("Det")
def det(d):
    n = d.r.randint(1, 4)
    d.special = False
    d.floats((*d.shape(0, 2), n, n))


@rule("Resize", "Upsample")
def resize(d):
    x = tuple(d.r.randint(1, 6) for _ in range(d.r.choice((1, 2, 3, 4, 4, 4, 5))))
    mode = d.opt("mode", "nearest", "linear", *(("cubic",) if d.opset >= 11 and d.op == "Resize" else ()))
    coords = ["half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners", "tf_crop_and_resize"]
    coords += ["half_pixel_symmetric"] if d.opset >= 19 else ["tf_half_pixel_for_nn"] if d.opset < 13 else []
    crop = d.opt("coordinate_transformation_mode", *coords) == "tf_crop_and_resize"
    d.opt("nearest_mode", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    d.opt("cubic_coeff_a", -0.5, -0.75), d.opt("exclude_outside", 0, 1), d.opt("extrapolation_value", 0.5, -1.0)
    d.opt("antialias", 0, 0, 1)
    axes = list(range(len(x)))
    if d.has("axes") and d.r.random() < 0.4:
        axes = d.r.sample(axes, d.r.randint(1, len(axes)))
        d.attr("axes", [a - len(x) * d.r.randint(0, 1) for a in axes])
    d.special = False
    scaled = [d.r.choice((1.0, 2.0, 0.5, 1.5, 0.7, 3.0, 1.25)) for _ in axes]
    if len(axes) == len(x) and len(x) > 2 and d.r.random() < 0.75:
        scaled[0] = scaled[1] = 1.0
    if mode == "cubic" and len(x) > 2:
        scaled = [s if a >= len(x) - 2 else 1.0 for a, s in zip(axes, scaled)]
    if any(int(np.floor(np.float32(x[a]) * np.float32(s))) < 1 for a, s in zip(axes, scaled)):
        raise Impossible
    d.floats(x)
    if d.op == "Upsample" or d.opset < 11:
        scaled = [max(s, 1.0) for s in scaled] if d.op == "Upsample" else scaled
        if d.has("scales"):
            d.attr("scales", scaled)
        else:
            d.ints(scaled, "f4", True)
        return
    roi = [d.r.choice((0.0, 0.1, 0.3)) for _ in axes] + [d.r.choice((1.0, 0.8, 1.2)) for _ in axes] if crop else None
    kind = d.type(1)
    d.inp(np.array(roi, kind) if roi else np.zeros((0,), kind) if d.opset < 13 else None, True)
    if d.r.random() < 0.6:
        d.ints(scaled, "f4", True)
        return
    d.opt("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller")
    d.inp(np.zeros((0,), "f4") if d.opset < 13 else None, True)
    d.ints([max(1, int(x[a] * s)) for a, s in zip(axes, scaled)], constant=True)


@rule("GridSample")
def grid_sample(d):
    rank = d.r.choice((2, 2, 3)) if d.opset >= 20 else 2
    modes = ("linear", "nearest", "cubic") if d.opset >= 20 else ("bilinear", "nearest", "bicubic")
    d.opt("mode", *(modes if rank == 2 else modes[:2])), d.opt("padding_mode", "zeros", "border", "reflection"), d.opt("align_corners", 0, 1)
    n, c = d.r.randint(1, 2), d.r.randint(1, 3)
    d.special = False
    d.floats((n, c, *(d.r.randint(1, 5) for _ in range(rank))))
    d.floats((n, *(d.r.randint(1, 4) for _ in range(rank)), rank), low=-1.7, high=1.7)


@rule("AffineGrid")
def affine_grid(d):
    rank = d.r.choice((2, 3))
    d.opt("align_corners", 0, 1)
    n = d.r.randint(1, 2)
    d.special = False
    d.floats((n, rank, rank + 1)), d.ints([n, 2, *(d.r.randint(1, 4) for _ in range(rank))])


@rule("RoiAlign", "MaxRoiPool")
def roi(d):
    n, c, h, w, k = d.r.randint(1, 2), d.r.randint(1, 2), d.r.randint(4, 8), d.r.randint(4, 8), d.r.randint(0 if d.empty else 1, 3)
    d.opt("coordinate_transformation_mode", "half_pixel", "output_half_pixel"), d.opt("mode", "avg", "max")
    d.opt("output_height", 1, 2, 3), d.opt("output_width", 1, 2, 3), d.opt("sampling_ratio", 0, 1, 2), d.opt("spatial_scale", 1.0, 0.5)
    d.special = False
    d.floats((n, c, h, w))
    lo = d.n.uniform(0, 4, (k, 2))
    boxes = np.concatenate([lo, lo + d.n.uniform(0.5, 4, (k, 2))], 1)
    batch = d.n.integers(0, n, k)
    if d.op == "MaxRoiPool":
        d.attr("pooled_shape", [d.r.randint(1, 3), d.r.randint(1, 3)])
        d.inp(np.concatenate([batch[:, None], np.round(boxes)], 1).astype(d.type(0)))
        return
    d.inp(boxes.astype(d.type(0))), d.inp(batch.astype("i8"))


@rule("NonMaxSuppression")
def nms(d):
    n, boxes, classes = d.r.randint(1, 2), d.r.randint(0 if d.empty else 1, 8), d.r.randint(1, 2)
    d.opt("center_point_box", 0, 1)
    lo = d.n.uniform(0, 1, (n, boxes, 2))
    d.inp(np.concatenate([lo, lo + d.n.uniform(0.1, 0.6, (n, boxes, 2))], 2).astype("f4"))
    d.inp(d.n.uniform(0, 1, (n, classes, boxes)).astype("f4"))
    for value in ([np.array([d.r.randint(0, 4)], "i8"), np.array([0.4], "f4"), np.array([0.3], "f4")][:d.r.randint(0, 3)]):
        d.inp(value, True)
