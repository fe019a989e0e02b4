"""Rules of operators that move elements, look them up, write them, or make shapes."""
import math

import numpy as np

from draw import Impossible, rule
from onnx import TensorProto as T, numpy_helper
from rules_elementwise import FLOAT_TO


@rule("Concat")
def concat(d):
    x = list(d.shape(1, 4))
    axis = d.r.randint(-len(x) if d.opset >= 11 else 0, len(x) - 1)
    d.attr("axis", axis)
    for _ in range(d.r.randint(1, 4)):
        x[axis] = d.dim()
        d.floats(tuple(x), index=0)


@rule("Reshape")
def reshape(d):
    x = d.shape(0, 4)
    size = math.prod(x)
    zero = d.opt("allowzero", 0, 1, default=0)
    parts, left = [], max(size, 1)
    for _ in range(d.r.randint(0, 3)):
        n = d.r.choice([n for n in range(1, left + 1) if left % n == 0])
        parts.append(n)
        left //= n
    parts.append(left) if left > 1 or not parts and x else None
    if size == 0:
        parts = list(x) if zero else [0 if i < len(x) and x[i] == 0 else 1 for i in range(len(x))]
        d.r.shuffle(parts) if zero else None
    elif parts and d.r.random() < 0.4:
        parts[d.r.randrange(len(parts))] = -1
    elif not zero:
        parts = [0 if i < len(x) and n == x[i] and d.r.random() < 0.4 else n for i, n in enumerate(parts)]
    d.floats(x)
    if d.has("shape"):
        d.attr("shape", parts)
    else:
        d.ints(parts)


@rule("Flatten")
def flatten(d):
    x = d.shape(0 if d.opset >= 9 else 1, 4)
    d.opt("axis", lambda: d.r.randint(-len(x) if d.opset >= 11 else 0, len(x)))
    d.floats(x)


@rule("Transpose")
def transpose(d):
    x = d.shape(0, 5)
    if x:
        d.opt("perm", lambda: d.r.sample(range(len(x)), len(x)))
    d.floats(x)


@rule("Squeeze", "Unsqueeze")
def squeeze(d):
    x = d.shape(0, 4)
    if d.op == "Unsqueeze":
        count = d.r.randint(1, 2)
        rank = len(x) + count
        axes = d.r.sample(range(rank), count)
    else:
        rank, ones = len(x), [i for i, n in enumerate(x) if n == 1]
        axes = d.r.sample(ones, d.r.randint(0, len(ones)))
    if d.opset >= 11:
        axes = [a - rank * d.r.randint(0, 1) for a in axes]
    d.floats(x)
    if d.op == "Squeeze" and (not axes or d.r.random() < 0.2):
        return
    if d.has("axes"):
        d.attr("axes", axes)
    else:
        d.ints(axes)


@rule("Expand")
def expand(d):
    x = d.shape(0, 4)
    to = [n if n != 1 or d.r.random() < 0.3 else d.r.randint(1, 4) for n in x]
    to = [1 if d.r.random() < 0.2 else n for n in to]
    to = d.shape(0, 2) + tuple(to) if d.r.random() < 0.5 else tuple(to)[d.r.randint(0, 1) if d.r.random() < 0.3 else 0:]
    d.floats(x), d.ints(to)


@rule("Tile")
def tile(d):
    x = d.shape(0, 4)
    d.floats(x)
    d.ints([d.r.choice((0, 1, 1, 2, 3)) if d.r.random() < 0.9 else 1 for _ in x])


@rule("Slice")
def slice_(d):
    x = d.shape(1, 4)
    count = d.r.randint(0, len(x))
    axes = d.r.sample(range(len(x)), count)
    big = 2**31 - 1 if d.r.random() < 0.5 else 2**63 - 1
    starts, ends, steps = [], [], []
    for a in axes:
        n = x[a]
        starts.append(d.r.choice((0, d.r.randint(-n - 2, n + 2))))
        ends.append(d.r.choice((n, big, -big, d.r.randint(-n - 2, n + 2))))
        steps.append(d.r.choice((1, 1, 2, 3, -1, -2)) if d.opset >= 10 else 1)
    if d.opset < 10:
        starts, ends = [max(s, -x[a]) for s, a in zip(starts, axes)], [abs(e) for e in ends]
        if not axes:
            raise Impossible
        d.floats(x)
        d.attr("starts", starts), d.attr("ends", ends)
        if axes != list(range(count)) or d.r.random() < 0.6:
            d.attr("axes", axes)
        return
    kind = d.type(1)
    bound = np.iinfo(kind)
    ends = [min(max(e, bound.min), bound.max) for e in ends]
    d.floats(x), d.ints(starts, kind), d.ints(ends, kind)
    need_steps = any(s != 1 for s in steps)
    if axes != list(range(count)) or d.r.random() < 0.6:
        d.ints([a - len(x) * d.r.randint(0, 1) for a in axes], kind)
    elif need_steps:
        d.inp(None)
    if need_steps or len(d.inputs) == 4 and d.r.random() < 0.5:
        d.ints(steps, kind)


@rule("Split")
def split(d):
    x = list(d.shape(1, 4))
    axis = d.axis(len(x))
    axis = 0 if axis is None else axis
    count = d.r.randint(1, 4)
    parts = [d.dim() for _ in range(count)]
    form = d.r.choice(("given", "equal", "uneven"))
    if form == "uneven" and not d.has("num_outputs"):
        form = "equal"
    if form == "given":
        x[axis] = sum(parts)
    elif form == "equal":
        x[axis] = count * d.dim()
    else:
        size = d.r.randint(2, 4)
        x[axis] = size * count - d.r.randint(0, size - 1)
        if (x[axis] + count - 1) // count * (count - 1) >= x[axis]:
            raise Impossible
    d.floats(tuple(x))
    d.outputs = [f"y{i}" for i in range(count)]
    if form == "given":
        d.attr("split", parts) if d.has("split") else d.ints(parts)
    else:
        d.attr("num_outputs", count)


@rule("Pad")
def pad(d):
    x = d.shape(1, 4)
    mode = d.opt("mode", "constant", "reflect", "edge", *(("wrap",) if d.opset >= 19 else ()))
    axes = list(range(len(x)))
    partial = d.opset >= 18 and d.r.random() < 0.4
    if partial:
        axes = d.r.sample(axes, d.r.randint(1, len(axes)))
    def one(a):
        n = x[a]
        if n == 0 and mode != "constant":
            return 0
        most = {"reflect": n - 1, "edge": 3, "wrap": n}.get(mode, 3)
        return d.r.randint(-min(1, max(n - 2, 0)) // 1 if d.r.random() < 0.3 else 0, max(most, 0))
    pads = [one(a) for a in axes] + [one(a) for a in axes]
    d.floats(x)
    if d.has("pads"):
        d.attr("pads", pads)
        d.opt("value", 0.5, -1.0)
        return
    d.ints(pads)
    if d.r.random() < 0.5 or partial:
        d.inp(d.array((), d.type(0)) if d.r.random() < 0.7 else None)
    if partial:
        d.ints([a - len(x) * d.r.randint(0, 1) for a in axes], d.r.choice(("i8", "i4")))


@rule("Shape")
def shape(d):
    x = d.shape(0, 4)
    d.opt("start", lambda: d.r.randint(-len(x) - 1, len(x) + 1)), d.opt("end", lambda: d.r.randint(-len(x) - 1, len(x) + 1))
    d.floats(x)


@rule("ConstantOfShape")
def constant_of_shape(d):
    if d.r.random() < 0.7:
        kind = d.r.choice(("f4", "i8", "i4", "?", "f2", "u1"))
        d.attributes["value"] = numpy_helper.from_array(d.array((1,), kind))
    d.ints(d.shape(0, 3))


@rule("EyeLike")
def eye_like(d):
    d.opt("k", 0, 1, -1, 2, -5), d.opt("dtype", T.FLOAT, T.INT64, T.DOUBLE, T.INT32)
    d.floats((d.dim(), d.dim()))


@rule("Range")
def range_(d):
    kind = d.type(0)
    d.opt("stash_type", 1, 11, given=0.3)
    delta = d.r.choice((1, 2, 3, -1, -2)) if kind.kind != "f" else d.r.choice((0.5, 1.0, -0.25, 3.0))
    start = d.r.randint(-5, 5)
    for v in (start, start + delta * d.r.randint(-1, 6), delta):
        d.ints(v, kind)


@rule("Constant")
def constant(d):
    d.attributes[d.r.choice(("value",))] = numpy_helper.from_array(d.array(d.shape(), "f4"))
    if d.has("value_ints") and d.r.random() < 0.6:
        d.attributes = d.r.choice(({"value_int": 3}, {"value_float": 0.5}, {"value_ints": [1, 2]}, {"value_floats": [0.5, 1.0]}))


@rule("CenterCropPad")
def center_crop_pad(d):
    x = d.shape(1, 4)
    axes = list(range(len(x)))
    if d.r.random() < 0.6:
        axes = d.r.sample(axes, d.r.randint(1, len(axes)))
        d.attr("axes", [a - len(x) * d.r.randint(0, 1) for a in axes])
    d.floats(x), d.ints([d.r.randint(1, 6) for _ in axes], d.type(1))


@rule("Col2Im")
def col2im(d):
    image = [d.r.randint(3, 6) for _ in range(d.r.choice((1, 2, 2)))]
    block = [d.r.randint(1, 3) for _ in image]
    s = d.opt("strides", lambda: [d.r.randint(1, 2) for _ in image]) or [1] * len(image)
    dil = d.opt("dilations", lambda: [d.r.randint(1, 2) for _ in image]) or [1] * len(image)
    p = d.opt("pads", lambda: [d.r.randint(0, 1) for _ in range(2 * len(image))]) or [0] * 2 * len(image)
    counts = [(image[i] + p[i] + p[i + len(image)] - dil[i] * (block[i] - 1) - 1) // s[i] + 1 for i in range(len(image))]
    if min(counts) < 1:
        raise Impossible
    d.special = False
    d.floats((d.dim(), d.dim(1, 2) * math.prod(block), math.prod(counts)))
    d.ints(image), d.ints(block)


@rule("HammingWindow", "HannWindow", "BlackmanWindow")
def window(d):
    d.opt("periodic", 0, 1), d.opt("output_datatype", *FLOAT_TO)
    d.ints(d.r.randint(2, 9), d.type(0))


@rule("TensorScatter")
def tensor_scatter(d):
    x = list(d.shape(3, 4))
    if 0 in x:
        raise Impossible
    axis = d.opt("axis", *range(-len(x) + 1, 0), default=-2)
    if axis % len(x) == 0:
        raise Impossible
    circular = d.opt("mode", "linear", "circular") == "circular"
    x[axis] = d.r.randint(3, 6)
    update = list(x)
    update[axis] = d.r.randint(1, 3)
    d.floats(tuple(x)), d.floats(tuple(update))
    if d.r.random() < 0.7:
        d.inp(d.n.integers(0, x[axis] if circular else x[axis] - update[axis] + 1, x[0]).astype("i8"))
