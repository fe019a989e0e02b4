"""Rules of operators that look elements up, write them, or order them."""
import math

import numpy as np

from draw import Impossible, rule


def indices(d, shape, n, kind, negative=True):
    if n == 0:
        if math.prod(shape):
            raise Impossible
        return np.zeros(shape, kind)
    return d.n.integers(-n if negative else 0, n, shape).astype(kind)


@rule("Gather")
def gather(d):
    x = d.shape(1, 4)
    axis = d.axis(len(x)) or 0
    d.floats(x)
    d.inp(indices(d, d.shape(0, 3), x[axis], d.type(1), d.opset >= 11))


@rule("GatherElements")
def gather_elements(d):
    x = d.shape(1, 4)
    axis = d.axis(len(x)) or 0
    shape = [d.r.randint(min(n, 1), n) for n in x]
    shape[axis] = d.dim()
    d.floats(x)
    d.inp(indices(d, shape, x[axis], d.type(1)))


@rule("GatherND")
def gather_nd(d):
    x = d.shape(1, 4)
    batch = d.opt("batch_dims", *range(len(x)), default=0) or 0
    depth = d.r.randint(1, len(x) - batch)
    d.floats(x)
    lead = x[:batch] + d.shape(0 if batch else 1, 2)
    columns = [indices(d, lead, x[batch + k], "i8") for k in range(depth)]
    d.inp(np.stack(columns, -1))


@rule("ScatterElements", "Scatter")
def scatter_elements(d):
    x = d.shape(1, 4)
    axis = d.axis(len(x)) or 0
    reduction = d.opt("reduction", "none", "add", "mul", *(("min", "max") if d.opset >= 18 else ()), default="none")
    shape = [d.r.randint(min(n, 1), n) for n in x]
    d.floats(x)
    if reduction == "none":  # each place once: the last of several is undefined
        if any(n == 0 for n in shape):
            raise Impossible
        order = np.argsort(d.n.random([*shape[:axis % len(x)], x[axis], *shape[axis % len(x) + 1:]]), axis=axis)
        at = np.take(order, np.arange(shape[axis]), axis=axis)
        at = np.where(d.n.random(at.shape) < 0.3, at - x[axis], at).astype(d.type(1))
    else:
        at = indices(d, shape, x[axis], d.type(1))
    d.inp(at)
    d.inp(d.array(at.shape, d.type(0)))


@rule("ScatterND")
def scatter_nd(d):
    x = d.shape(1, 4)
    reduction = d.opt("reduction", "none", "add", "mul", *(("min", "max") if d.opset >= 18 else ()), default="none")
    depth = d.r.randint(1, len(x))
    places = math.prod(x[:depth])
    if places == 0:
        raise Impossible
    count = d.r.randint(0 if d.empty else 1, min(places, 5))
    flat = d.n.permutation(places)[:count] if reduction == "none" else d.n.integers(0, places, count)
    at = np.stack(np.unravel_index(flat, x[:depth]), -1).astype("i8")
    at = np.where(d.n.random(at.shape) < 0.3, at - np.array(x[:depth]), at).astype("i8")
    if d.r.random() < 0.3:
        at = at.reshape(1, *at.shape)
    d.floats(x), d.inp(at)
    d.inp(d.array((*at.shape[:-1], *x[depth:]), d.type(0)))


@rule("OneHot")
def one_hot(d):
    x = d.shape(0, 3)
    d.axis(len(x), extra=1)
    depth = d.r.randint(1, 5)
    at = d.n.integers(-depth - 1, depth + 2, x)
    kind = d.type(0)
    d.inp((np.abs(at) if kind.kind == "u" else at).astype(kind))
    value = np.array(depth, d.type(1))
    d.inp(value.reshape(1) if d.r.random() < 0.5 or d.opset < 11 else value, True)
    d.inp(d.array((2,), d.type(2)))


@rule("TopK")
def top_k(d):
    x = d.shape(1, 4)
    axis = d.axis(len(x))
    axis = -1 if axis is None else axis
    d.opt("largest", 0, 1), d.opt("sorted", 1)
    d.special = False
    k = d.r.randint(0 if d.opset >= 10 else 1, x[axis]) if x[axis] else 0
    d.floats(x)
    d.outputs = ["y0", "y1"]
    if d.has("k"):
        d.attr("k", k)
    else:
        d.ints([k], constant=True)


@rule("Trilu")
def trilu(d):
    x = d.shape(2, 4)
    d.opt("upper", 0, 1)
    d.floats(x)
    if d.r.random() < 0.7:
        k = d.r.randint(-6, 6)
        d.ints(k if d.r.random() < 0.7 else [k])


@rule("DepthToSpace", "SpaceToDepth")
def depth_to_space(d):
    b = d.r.choice((1, 2, 3))
    d.attr("blocksize", b)
    d.opt("mode", "DCR", "CRD")
    n, c, h, w = d.dim(), d.dim(1, 3), d.dim(1, 3), d.dim(1, 3)
    d.floats((n, c * b * b, h, w) if d.op[0] == "D" else (n, c, h * b, w * b))


@rule("ReverseSequence")
def reverse_sequence(d):
    x = d.shape(2, 4)
    batch = d.opt("batch_axis", 0, 1, default=1)
    time = d.opt("time_axis", 0, 1, default=0)
    if batch == time:
        raise Impossible
    d.floats(x)
    d.inp(d.n.integers(1 if x[time] else 0, x[time] + 1, x[batch]).astype("i8"))


@rule("Compress")
def compress(d):
    x = d.shape(1, 4)
    axis = d.axis(len(x)) if d.r.random() < 0.7 else None
    n = math.prod(x) if "axis" not in d.attributes else x[axis]
    d.floats(x)
    d.inp(d.array((d.r.randint(0, n),), "?"), True if d.r.random() < 0.8 else False)


@rule("Unique")
def unique(d):
    x = d.shape(1, 3)
    if d.r.random() < 0.5:
        d.axis(len(x), given=1.0)
    d.opt("sorted", 1, 1, 0)
    d.special = False
    a = d.array(x, d.type(0))
    d.inp(np.round(a) if a.dtype.kind == "f" else a)
