"""Rules of operators that compute element by element, compare, reduce and normalize."""
import numpy as np

from draw import Impossible, rule
from onnx import TensorProto as T

FLOAT_TO = (T.FLOAT, T.DOUBLE, T.FLOAT16)
ANY_TO = (*FLOAT_TO, T.INT8, T.INT16, T.INT32, T.INT64, T.UINT8, T.UINT16, T.UINT32, T.UINT64, T.BOOL)


def broadcast(d, count, low=0, high=4):
    """Shapes that broadcast to one."""
    whole = d.shape(low, high)
    shapes = []
    for _ in range(count):
        cut = d.r.choice((0, 0, d.r.randint(0, len(whole))))
        shapes.append(tuple(1 if d.r.random() < 0.2 else n for n in whole[cut:]))
    shapes[d.r.randrange(count)] = whole
    return shapes


@rule("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "HardSwish",
      "Identity", "IsNaN", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Softplus",
      "Softsign", "Sqrt", "Tan", "Tanh", "NonZero")
def unary(d):
    high = 1.0 if d.op in ("Acos", "Asin", "Atanh") else 4.0
    d.floats(d.shape(0, 5), low=-high, high=high)


@rule("Celu", "Elu", "Selu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Shrink", "Swish", "Gelu")
def activation(d):
    for name in ("alpha", "beta", "gamma", "bias", "lambd"):
        d.opt(name, 0.5, 1.0, 2.0, 0.1, 0.0, -0.5)
    if d.op == "Celu" and d.attributes.get("alpha") == 0.0:
        d.attributes["alpha"] = 3.0
    d.opt("approximate", "none", "tanh")
    d.floats(d.shape(0, 5))


@rule("IsInf")
def is_inf(d):
    d.opt("detect_negative", 0, 1), d.opt("detect_positive", 0, 1)
    d.special = True
    d.floats(d.shape())


@rule("Add", "Sub", "Mul", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterOrEqual", "Less",
      "LessOrEqual", "SwiGLU")
def binary(d):
    d.opt("alpha", 0.5, 2.0)
    for shape in broadcast(d, 2):
        d.floats(shape)


@rule("Div", "Mod")
def divide(d):
    a, b = broadcast(d, 2)
    if d.op == "Mod":
        floating = d.type(0).kind == "f"
        if floating:
            d.attr("fmod", 1)
        else:
            d.opt("fmod", 0, 1)
    d.floats(a)
    y = d.array(b, d.type(0))
    y[y == 0] = 1
    if y.dtype.kind == "i":
        y[y == -1] = 3  # the lowest integer by -1 leaves the type: onnxruntime dies of it
    d.inp(y)


@rule("Pow")
def power(d):
    a, b = broadcast(d, 2)
    d.inp(np.abs(d.array(a, d.type(0))) if d.r.random() < 0.6 else d.array(a, d.type(0)))
    e = d.array(b, d.type(1))
    d.inp(np.clip(e, 0, 4) if e.dtype.kind in "iu" else e)


@rule("BitShift")
def shift(d):
    d.attr("direction", d.r.choice(("LEFT", "RIGHT")))
    a, b = broadcast(d, 2)
    d.floats(a)
    bits = d.type(0).itemsize * 8
    d.inp(d.n.integers(0, bits, b).astype(d.type(0)))


@rule("Sum", "Max", "Min", "Mean")
def variadic(d):
    for shape in broadcast(d, d.r.randint(1, 4)):
        d.floats(shape)


@rule("PRelu")
def prelu(d):
    x = d.shape(1, 4)
    d.floats(x)
    d.floats(tuple(1 if d.r.random() < 0.4 else n for n in x[d.r.randint(0, len(x)):]))


@rule("Where")
def where(d):
    a, b, c = broadcast(d, 3)
    d.inp(d.array(a, "?")), d.floats(b), d.floats(c)


@rule("Clip")
def clip(d):
    if d.has("min"):
        d.opt("min", -1.0, 0.0, 0.5), d.opt("max", 1.0, 6.0, 0.25)
        d.floats(d.shape())
        return
    d.floats(d.shape())
    for low, high in ((-1.5, 0.5), (-0.5, 1.5)):
        d.inp(d.array((), d.type(0), low, high) if d.r.random() < 0.7 else None)


@rule("Cast")
def cast(d):
    kind, to = d.type(0), d.r.choice(ANY_TO)
    d.attr("to", to)
    d.opt("saturate", 0, 1)
    d.opt("round_mode", "up", "down", "nearest", given=0.3)
    d.special = d.special and to in FLOAT_TO + (T.BOOL,)
    a = d.array(d.shape(), kind, *((-100, 100) if d.r.random() < 0.5 else (-2.0, 2.0)))
    if kind.kind == "f" and to not in FLOAT_TO and to in (T.UINT8, T.UINT16, T.UINT32, T.UINT64):
        a = np.abs(a)  # a negative number as an unsigned integer is undefined
    d.inp(a)


@rule("CastLike")
def cast_like(d):
    kind, to = d.type(0), d.type(1)
    d.special = False
    d.opt("saturate", 0, 1), d.opt("round_mode", "up", "down", "nearest", given=0.3)
    a = d.array(d.shape(), kind)
    d.inp(np.abs(a) if kind.kind == "f" and to.kind == "u" else a)
    d.inp(d.array(d.shape(), to))


@rule("BitCast")
def bit_cast(d):
    size = d.type(0).itemsize
    same = {1: (T.INT8, T.UINT8), 2: (T.FLOAT16, T.INT16, T.UINT16), 4: (T.FLOAT, T.INT32, T.UINT32), 8: (T.DOUBLE, T.INT64, T.UINT64)}
    d.attr("to", d.r.choice(same[size]))
    d.floats(d.shape())


@rule("ArgMax", "ArgMin")
def arg_extreme(d):
    x = d.shape(1, 4)
    d.axis(len(x)), d.opt("keepdims", 0, 1), d.opt("select_last_index", 0, 1)
    d.special = False
    d.floats(x)


@rule(*(f"Reduce{x}" for x in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")))
def reduce(d):
    x = d.shape(0, 4)
    rank = len(x)
    d.opt("keepdims", 0, 1), d.opt("noop_with_empty_axes", 0, 1)
    axes = [a - rank * d.r.randint(0, 1) for a in d.r.sample(range(rank), d.r.randint(0, rank))]
    low = (0.1, 2.0) if d.op == "ReduceLogSum" else (-2.0, 2.0)
    d.floats(x, low=low[0], high=low[1])
    if d.has("axes"):
        if axes and d.r.random() < 0.8:
            d.attr("axes", axes)
    elif d.r.random() < 0.8:
        d.ints(axes)


@rule("CumSum", "CumProd")
def cumulate(d):
    x = d.shape(1, 4)
    d.opt("exclusive", 0, 1), d.opt("reverse", 0, 1)
    d.floats(x)
    axis = d.r.randint(-len(x), len(x) - 1)
    d.ints(axis if d.r.random() < 0.7 else [axis], d.type(1))


@rule("Softmax", "LogSoftmax", "Hardmax")
def softmax(d):
    x = d.shape(1, 4)
    if d.opset < 13:
        d.opt("axis", lambda: d.r.randint(0 if d.opset < 11 else -len(x), len(x) - 1))
    else:
        d.axis(len(x))
    d.floats(x)


@rule("LpNormalization")
def lp_norm(d):
    x = d.shape(1, 4)
    d.axis(len(x)), d.opt("p", 1, 2)
    d.floats(x)


@rule("MeanVarianceNormalization")
def mvn(d):
    x = tuple(d.dim(2) for _ in range(d.r.choice((4, 4, 3, 2))))
    if len(x) != 4 or d.r.random() < 0.5:
        d.attr("axes", sorted(d.r.sample(range(len(x)), d.r.randint(1, len(x)))))
    d.special = False
    d.floats(x)


@rule("LayerNormalization", "RMSNormalization")
def layer_norm(d):
    x = d.shape(1, 4)
    axis = d.axis(len(x))
    axis = len(x) - 1 if axis is None else axis
    d.opt("epsilon", 1e-5, 1e-3, 0.1), d.opt("stash_type", 1)
    d.special = False
    d.floats(x)
    tail = x[axis:]
    d.floats(tail if d.r.random() < 0.8 else tuple(1 if d.r.random() < 0.5 else n for n in tail))
    if d.op == "LayerNormalization" and d.r.random() < 0.6:
        d.floats(tail)


@rule("InstanceNormalization", "GroupNormalization", "BatchNormalization")
def batch_norm(d):
    groups = d.r.choice((1, 2, 3)) if d.op == "GroupNormalization" else 1
    c = groups * d.r.randint(1, 3)
    x = (d.dim(), c, *(d.dim() for _ in range(d.r.randint(1 if d.op[0] == "I" else 0, 3))))
    d.special = False
    d.attr("num_groups", groups), d.opt("epsilon", 1e-5, 1e-2, 0.5), d.opt("stash_type", 1), d.opt("momentum", 0.5)
    if d.op == "BatchNormalization":
        if len(x) < 2:
            raise Impossible
        d.opt("spatial", 1)
        d.outputs = ["y0"]
    per = groups if d.op == "GroupNormalization" and d.opset < 21 else c
    d.floats(x)
    d.floats((per,)), d.floats((per,))
    if d.op == "BatchNormalization":
        d.floats((c,)), d.floats((c,), low=0.1, high=2.0)


@rule("LRN")
def lrn(d):
    d.attr("size", d.r.choice((1, 2, 3, 4, 5)))
    d.opt("alpha", 0.1, 1.0), d.opt("beta", 0.5, 1.0), d.opt("bias", 2.0, 0.5)
    d.special = False
    d.floats((d.dim(), d.dim(1, 6), *(d.dim() for _ in range(d.r.choice((0, 1, 2, 2, 2))))))


@rule("Dropout")
def dropout(d):
    d.opt("seed", 3), d.opt("ratio", 0.3)
    d.floats(d.shape())
    if d.opset >= 12 and d.r.random() < 0.6:
        d.inp(np.array(d.r.choice((0.0, 0.5)), d.type(1)), True)
        if d.r.random() < 0.5:
            d.inp(np.array(False), True)


@rule("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d):
    n, c, rest = d.dim(), d.r.randint(1, 5), d.shape(0, 2)
    d.special = False
    d.opt("reduction", "mean", "sum", "none")
    ignored = d.opt("ignore_index", 0, c - 1, -1, 100)
    d.floats((n, c, *rest))
    t = d.n.integers(0, c, (n, *rest)).astype(d.type(1))
    if ignored is not None and t.size and d.r.random() < 0.6:
        t.reshape(-1)[0] = ignored
    d.inp(t)
    if d.r.random() < 0.5:
        d.floats((c,), low=0.1, high=2.0)


@rule("DynamicQuantizeLinear")
def dynamic_quantize(d):
    d.special = False
    d.outputs = ["y0", "y1", "y2"]
    low, high = d.r.choice(((-2.0, 1.9), (0.5, 3.0), (-3.0, -0.5)))
    d.floats(d.shape(), low=low, high=high)
