"""One model of the type-conflict corpus and what its author meant.

The expected values are float64 NumPy (integers: Python's or NumPy's own width), rounded once to the type that the model
declares for the output. `unit` names the type whose precision bounds the error: the narrowest in which the result was
stored; by default the declared one (a float64 output: float32, unless the case is about float64 itself).

match     converts, both backends give the values; --strict finds nothing (strict=None: not asked)
doubtful  converts with a warning, exit code 0; the values hold; --strict ends with 1
refuse    exit code 3 and the words; no output file
"""
import dataclasses
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "onnx_cases"))

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from case import MS, arr64, floats, ints, model, node, rng  # noqa: E402, F401
from onnx import helper, numpy_helper  # noqa: E402

bf16 = ml_dtypes.bfloat16
f16, f32, f64 = np.float16, np.float32, np.float64
i8, i16, i32, i64 = np.int8, np.int16, np.int32, np.int64
u8, u16, u32, u64 = np.uint8, np.uint16, np.uint32, np.uint64
e4m3fn, e5m2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
e4m3fnuz, e5m2fnuz = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz

LETTERS = {"f": f32, "d": f64, "h": f16, "w": bf16, "c": i8, "s": i16, "i": i32, "l": i64, "B": u8, "S": u16, "I": u32,
           "L": u64, "b": np.bool_}
# Relative to the value, and to the largest value of the output (sums of mixed signs).
RTOL = {"float64": (1e-11, 1e-12), "float32": (1e-5, 1e-6), "float16": (2.0**-10, 2.0**-12),
        "bfloat16": (2.0**-7, 2.0**-9), "exact": (0.0, 0.0)}


@dataclasses.dataclass
class TypeCase:
    name: str
    rule: str  # the first rule of docs/numerics.md that it tests
    model: object
    feeds: dict
    want: dict  # output name -> array of the type that is to come out; None for a refusal
    expect: str = "match"
    words: tuple = ()
    strict: object = 0  # expected exit code(s) with --strict; None: not checked
    unit: str = ""
    flags: tuple = ()
    ops: tuple = ()  # operators that the file must have steps of
    weights: int = 0  # bytes that the weights have in the model; the file may take 1.02 times these and a plan


def dtype_of(letter):
    return np.dtype(LETTERS[letter])


def tensor(a, name):
    return numpy_helper.from_array(np.asarray(a), name)


def value(name, a, shape="of"):
    """A declaration: of an array, or of a dtype with a shape (None: open)."""
    if isinstance(a, np.ndarray):
        kind = helper.np_dtype_to_tensor_dtype(a.dtype)
        return helper.make_tensor_value_info(name, kind, list(a.shape) if shape == "of" else shape)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(a)),
                                         None if shape == "of" else shape)


def body(nodes, inputs, outputs, constants=None, name="body"):
    """A subgraph: inputs and outputs as "name:letter ..." (shapes open)."""
    def declare(words):
        return [value(n, LETTERS[t or "f"]) for n, _, t in (w.partition(":") for w in words.split())]
    return helper.make_graph(nodes, name, declare(inputs), declare(outputs),
                             [tensor(v, k) for k, v in (constants or {}).items()])


def build(nodes, inputs, outputs, constants=None, opset=17, value_info=(), functions=(), extra=(), ir=10,
          shapes=None):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    ins = [value(k, np.asarray(a)) for k, a in inputs.items()]
    outs = [value(n, LETTERS[t or "f"], (shapes or {}).get(n, "of"))
            for n, _, t in (w.partition(":") for w in outputs.split())]
    inits = [v if isinstance(v, onnx.TensorProto) else tensor(v, k) for k, v in (constants or {}).items()]
    g = helper.make_graph(nodes, "g", ins, outs, inits, value_info=list(value_info))
    return model(g, opset, functions, extra, ir)


def match(name, rule, nodes, inputs, outputs, want, constants=None, edit=None, **kw):
    """want: an array (the only output) or name -> array; each is rounded once to the output's declared type, or to
    the type that `computed` names where the declaration is the mistake."""
    parts = {k: kw.pop(k) for k in ("opset", "value_info", "functions", "extra", "ir", "shapes") if k in kw}
    computed = kw.pop("computed", {})
    m = build(nodes, inputs, outputs, constants, **parts)
    if edit:
        edit(m)
    words = [w.partition(":") for w in outputs.split()]
    want = want if isinstance(want, dict) else {words[0][0]: want}
    rounded = {}
    for n, _, t in words:
        kind = computed.get(n) or LETTERS[t or "f"]
        with np.errstate(over="ignore", invalid="ignore"):
            rounded[n] = np.asarray(want[n]).astype(kind)
    return TypeCase(name, rule, m, {k: np.asarray(a) for k, a in inputs.items()}, rounded, **kw)


def doubtful(name, rule, nodes, inputs, outputs, want, constants=None, words=(), **kw):
    kw.setdefault("strict", 1)
    return match(name, rule, nodes, inputs, outputs, want, constants, expect="doubtful", words=tuple(words), **kw)


def refuse(name, rule, nodes, inputs, outputs, words, constants=None, edit=None, **kw):
    parts = {k: kw.pop(k) for k in ("opset", "value_info", "functions", "extra", "ir", "shapes") if k in kw}
    m = nodes if isinstance(nodes, onnx.ModelProto) else build(nodes, inputs, outputs, constants, **parts)
    if edit:
        edit(m)
    return TypeCase(name, rule, m, {}, None, expect="refuse", words=tuple(words), **kw)


def const(name, a):
    """A Constant node."""
    return node("Constant", [], [name], value=tensor(a, name), name=f"/{name}")


def halves(name, *shape, low=-2.0, high=2.0, kind=f16):
    """Values of a 16-bit type (or any type), made from a seed by name."""
    return rng(name).uniform(low, high, shape).astype(kind)


def d(a):
    """Float64, exactly."""
    return np.asarray(a).astype(f64)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
