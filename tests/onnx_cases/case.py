"""One test model of our own, and how its expected outputs come about.

Expected outputs: of onnxruntime on the model itself ("ort"), of onnxruntime on a twin in modern form (old opsets that
onnxruntime no longer reads), or given as arrays. A refusal case gives the words that the message must hold.
"""
import dataclasses
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

MS = "com.microsoft"


@dataclasses.dataclass
class Case:
    name: str
    model: object  # ModelProto or bytes
    feeds: dict = dataclasses.field(default_factory=dict)
    expect: str = "ort"  # ort, twin, given, refuse
    twin: object = None
    given: dict = None
    words: tuple = ()
    absent: tuple = ()  # words that it must not hold
    codes: tuple = (3,)
    flags: tuple = ()
    files: dict = dataclasses.field(default_factory=dict)  # beside the model: name -> bytes
    consts: dict = dataclasses.field(default_factory=dict)  # --const
    rtol: float = 1e-4
    atol: float = 1e-5
    steps: int = 0  # integer outputs may differ by this many steps (onnxruntime rounds elsewhere)
    wanted: bool = False  # may still be refused
    more: tuple = ()  # further feeds for the same file
    holds: dict = dataclasses.field(default_factory=dict)  # operation -> how often the file has it
    fails: tuple = ()  # feeds that `run` must refuse, each with words of its message


def rng(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def node(op, ins, outs, domain="", name="", **attributes):
    """A node; attributes of domain-less ops as helper.make_node takes them."""
    return helper.make_node(op, ins.split() if isinstance(ins, str) else ins,
                            outs.split() if isinstance(outs, str) else outs, name=name, domain=domain, **attributes)


def ms(op, ins, outs, **attributes):
    return node(op, ins, outs, domain=MS, **attributes)


def info(name, a=None, kind=None, shape="of"):
    kind = kind or (helper.np_dtype_to_tensor_dtype(a.dtype) if a is not None else onnx.TensorProto.FLOAT)
    return helper.make_tensor_value_info(name, kind, None if a is None and shape == "of" else
                                         list(a.shape) if shape == "of" else shape)


KINDS = {"f": onnx.TensorProto.FLOAT, "d": onnx.TensorProto.DOUBLE, "h": onnx.TensorProto.FLOAT16,
         "i": onnx.TensorProto.INT32, "l": onnx.TensorProto.INT64, "b": onnx.TensorProto.BOOL,
         "B": onnx.TensorProto.UINT8, "c": onnx.TensorProto.INT8, "w": onnx.TensorProto.BFLOAT16, "U": onnx.TensorProto.UINT16}


def graph(nodes, inputs, outputs, constants=None, value_info=()):
    """inputs: name -> array or (array, declared dims); outputs: "y z:l" (type letters of KINDS, default float)."""
    ins = []
    for k, a in inputs.items():
        ins.append(info(k, a[0], shape=a[1]) if isinstance(a, tuple) else info(k, a))
    outs = []
    for word in outputs.split():
        name, _, letter = word.partition(":")
        outs.append(info(name, kind=KINDS[letter or "f"]))
    inits = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    return helper.make_graph(nodes, "g", ins, outs, inits, value_info=list(value_info))


def model(g, opset=17, functions=(), extra=(), ir=8):
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    imports += [helper.make_opsetid(d, v) for d, v in extra]
    return helper.make_model(g, opset_imports=imports, functions=list(functions), ir_version=ir)


def simple(name, nodes, inputs, outputs="y", constants=None, opset=17, **kw):
    """A case from nodes and arrays; shapes of outputs are not declared."""
    nodes = nodes if isinstance(nodes, list) else [nodes]
    feeds = {k: (a[0] if isinstance(a, tuple) else a) for k, a in inputs.items()}
    twin = kw.pop("twin", None)
    ir = kw.pop("ir", 8)
    value_info = kw.pop("value_info", ())
    functions, extra = kw.pop("functions", ()), kw.pop("extra", ())
    m = model(graph(nodes, inputs, outputs, constants, value_info), opset, functions, extra, ir)
    if twin is not None:
        twin_nodes, twin_constants, twin_opset = (*twin, None, None)[:3] if isinstance(twin, tuple) else (twin, None,
                                                                                                        None)
        twin_nodes = twin_nodes if isinstance(twin_nodes, list) else [twin_nodes]
        kw.update(expect="twin", twin=model(graph(twin_nodes, {k: feeds[k] for k in feeds}, outputs,
                                                  {**(constants or {}), **(twin_constants or {})}), twin_opset or 17))
    return Case(name, m, feeds, **kw)


def refused(name, m, *words, codes=(3,), **kw):
    return Case(name, m, expect="refuse", words=words, codes=codes, **kw)


def floats(name, *shape, low=-2.0, high=2.0):
    return rng(name).uniform(low, high, shape).astype(np.float32)


def ints(name, *shape, low=0, high=9, dtype=np.int64):
    return rng(name).integers(low, high + 1, shape).astype(dtype)


def arr64(*v):
    return np.array(v, np.int64)
