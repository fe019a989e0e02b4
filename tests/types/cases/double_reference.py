"""Evaluates an ONNX file in float64: the expected values of regenerate.py.

Every floating-point value is a double, constants included, so operand types that differ do not matter. A Cast that the
model itself writes is kept: it rounds to its target type and the rounded value goes on as a double. Integer operators
compute as ONNX defines them (Div truncates, BitShift shifts unsigned numbers).
"""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

FLOATS = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.DOUBLE: np.float64,
          TensorProto.BFLOAT16: ml_dtypes.bfloat16, TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn}


class RoundTo(OpRun):
    op_domain = "double"

    def _run(self, x, to=None, saturate=None):
        return (np.asarray(x).astype(np.float64).astype(FLOATS[to]).astype(np.float64),)


class Div(OpRun):
    op_domain = "double"

    def _run(self, a, b):
        if a.dtype.kind == "f":
            return (a / b,)
        q = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64)) * np.sign(a).astype(np.int64) * np.sign(b)
        return (q.astype(a.dtype),)


class Pow(OpRun):
    op_domain = "double"

    def _run(self, a, b):
        return (np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype),)


class Add(OpRun):
    op_domain = "double"

    def _run(self, a, b):
        return (np.add(a, b),)


class Sub(OpRun):
    op_domain = "double"

    def _run(self, a, b):
        return (np.subtract(a, b),)


class Mul(OpRun):
    op_domain = "double"

    def _run(self, a, b):
        return (np.multiply(a, b),)


class CastLike(OpRun):
    op_domain = "double"

    def _run(self, x, like, saturate=None):
        return (np.asarray(x).astype(like.dtype),)


# Add, Sub and Mul because onnx refuses an integer beside a float there.
OWN = {c.__name__: c for c in (Add, Sub, Mul, Div, Pow, CastLike)}


def widen(tensor):
    if tensor.data_type not in FLOATS:
        return tensor
    a, real = numpy_helper.to_array(tensor), np.dtype(FLOATS[tensor.data_type])
    if a.dtype != real and a.dtype.itemsize == real.itemsize:  # bits, under a type that onnx made up
        a = np.ascontiguousarray(a).view(f"u{real.itemsize}").view(real)
    return numpy_helper.from_array(a.astype(np.float64), tensor.name)


def declare(value):
    if value.type.tensor_type.elem_type in FLOATS:
        value.type.tensor_type.elem_type = TensorProto.DOUBLE


def evaluate(model, feeds):
    """Outputs by name; floating-point feeds in any type."""
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    g = twin.graph
    del g.value_info[:]
    for value in [*g.input, *g.output]:
        declare(value)
    for tensor in g.initializer:
        tensor.CopyFrom(widen(tensor))
    for n in g.node:
        for a in n.attribute:
            if a.HasField("t"):
                a.t.CopyFrom(widen(a.t))
            assert not a.HasField("g"), "no subgraphs expected here"
        if n.op_type == "Cast":
            to = n.attribute[0].i
            if to in FLOATS:
                n.op_type, n.domain = "RoundTo", "double"
        elif n.op_type in OWN:
            n.domain = "double"
    twin.opset_import.append(onnx.helper.make_opsetid("double", 1))
    run = ReferenceEvaluator(twin, new_ops=[RoundTo, *OWN.values()])
    wide = {k: v.astype(np.float64) if v.dtype.kind in "fV" or v.dtype in map(np.dtype, FLOATS.values()) else v
            for k, v in feeds.items()}
    return dict(zip((o.name for o in model.graph.output), run.run(None, wide)))
