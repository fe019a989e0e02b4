"""Random nodes of ONNX's operators, drawn from their schemas.

A *rule* (`@rule("Conv")`) chooses shapes that fit each other and gives the values that an attribute can have; what the
schema decides (types, opsets, which inputs, outputs and attributes are optional, implicit defaults) is drawn here for all.
"""
import dataclasses
import random

import numpy as np
import onnx
from onnx import defs, helper

RULES = {}
NUMPY = {f"tensor({name})": np.dtype(kind) for name, kind in (
    ("float", "f4"), ("double", "f8"), ("float16", "f2"), ("int8", "i1"), ("int16", "i2"), ("int32", "i4"), ("int64", "i8"),
    ("uint8", "u1"), ("uint16", "u2"), ("uint32", "u4"), ("uint64", "u8"), ("bool", "?"))}
WEIGHT = {"f4": 12, "f8": 2, "f2": 3, "i4": 3, "i8": 4, "i1": 2, "u1": 2, "?": 2}


class Impossible(Exception):
    """A draw that does not lead to a node."""


def rule(*names):
    def add(function):
        for name in names:
            RULES[name] = function
        return function
    return add


@dataclasses.dataclass
class Case:
    op: str
    opset: int
    seed: int
    node: onnx.NodeProto
    feeds: dict       # name: array, given at run time
    constants: dict   # name: array, in the model

    @property
    def arrays(self):
        return {**self.feeds, **self.constants}

    def model(self):
        return model_of([self])

    def attribute(self, name, default=None):
        for a in self.node.attribute:
            if a.name == name:
                value = helper.get_attribute_value(a)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def describe(self):
        parts = []
        for name in self.node.input:
            a = self.arrays.get(name)
            if a is None:
                parts.append("-")
                continue
            text = f"{a.dtype}{list(a.shape)}" + ("c" if name in self.constants else "")
            if a.size <= 8 and a.dtype.kind in "iu":
                text += "=" + ",".join(str(x) for x in a.ravel())
            parts.append(text)
        given = " ".join(f"{a.name}={self.attribute(a.name)!r}" for a in self.node.attribute if a.type != onnx.AttributeProto.TENSOR)
        return f"{self.op}-{self.opset} [{'; '.join(parts)}] {given} -> {len([o for o in self.node.output if o])}"


def renamed(node, prefix):
    new = onnx.NodeProto()
    new.CopyFrom(node)
    new.name = f"{prefix}n"
    del new.input[:], new.output[:]
    new.input.extend(prefix + x if x else "" for x in node.input)
    new.output.extend(prefix + x if x else "" for x in node.output)
    return new


def model_of(cases, prefixes=None):
    """One model with each case as a part of its own."""
    prefixes = prefixes or [""] * len(cases)
    nodes, inputs, outputs, constants = [], [], [], []
    for case, p in zip(cases, prefixes):
        nodes.append(renamed(case.node, p))
        for name, a in case.feeds.items():
            inputs.append(helper.make_tensor_value_info(p + name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape))
        constants += [onnx.numpy_helper.from_array(a, p + name) for name, a in case.constants.items()]
        outputs += [helper.make_empty_tensor_value_info(p + name) for name in case.node.output if name]
    graph = helper.make_graph(nodes, "cases", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", cases[0].opset)], ir_version=10)


class Draw:
    """One node in the making: what a rule draws from, and what it fills in."""

    def __init__(self, op, opset, seed):
        self.r, self.n, self.seed = random.Random(seed), np.random.default_rng(seed), seed
        self.op, self.opset, self.schema = op, opset, defs.get_schema(op, opset, "")
        self.attributes, self.inputs, self.constant, self.outputs = {}, [], [], None
        self.types = {}
        self.empty = self.r.random() < 0.04
        self.special = self.r.random() < 0.06

    # -- types and numbers ------------------------------------------------------------------------------------------------

    def allowed(self, index):
        port = self.schema.inputs[min(index, len(self.schema.inputs) - 1)]
        return port.type_str, sorted(NUMPY[t].str[1:] if NUMPY[t].kind != "b" else "?" for t in port.types if t in NUMPY)

    def type(self, index=0):
        """That of an input, by the schema's type variable."""
        variable, kinds = self.allowed(index)
        if variable not in self.types:
            if not kinds:
                raise Impossible(variable)
            self.types[variable] = np.dtype(self.r.choices(kinds, [WEIGHT.get(k, 1) for k in kinds])[0])
        return self.types[variable]

    def dim(self, low=1, high=5):
        if self.empty and low <= 1 and self.r.random() < 0.3:
            return 0
        return self.r.choice((1, self.r.randint(low, high), self.r.randint(low, high))) if low <= 1 else self.r.randint(low, high)

    def shape(self, low=0, high=4):
        return tuple(self.dim() for _ in range(self.r.randint(low, high)))

    def array(self, shape, kind, low=-2.0, high=2.0):
        kind, shape = np.dtype(kind), tuple(int(n) for n in shape)
        if kind.kind == "b":
            return np.asarray(self.n.random(shape) < 0.5)
        if kind.kind in "iu":
            bounds = np.iinfo(kind)
            if self.r.random() < 0.15:
                return np.array(self.n.integers(bounds.min, bounds.max, shape, kind, endpoint=True))
            return np.array(self.n.integers(0 if kind.kind == "u" else -9, 9, shape, endpoint=True), kind)
        a = np.array(self.n.uniform(low, high, shape))
        if self.r.random() < 0.25:
            a = np.round(a * 4) / 4  # ties, zeros and equal numbers
        if self.special and a.size and low == -2.0:
            flat = a.reshape(-1)
            for _ in range(self.r.randint(1, 3)):
                flat[self.r.randrange(flat.size)] = self.r.choice((np.nan, np.inf, -np.inf, -0.0, 1e30 if kind.itemsize > 2 else 6e4, 1e-38))
        with np.errstate(over="ignore"):
            return np.asarray(a.astype(kind))

    # -- what a rule fills in ---------------------------------------------------------------------------------------------

    def has(self, name):
        return name in self.schema.attributes

    def attr(self, name, value):
        """A given attribute, where this version has it."""
        if self.has(name):
            self.attributes[name] = value
        return value

    def opt(self, name, *values, default=None, given=0.65):
        """An attribute that may be left to its default; returns what holds. A callable is a value to be drawn."""
        if not self.has(name):
            return default
        known = self.schema.attributes[name]
        if not known.required and self.r.random() >= given:
            if known.default_value.type != onnx.AttributeProto.UNDEFINED:
                value = helper.get_attribute_value(known.default_value)
                return value.decode() if isinstance(value, bytes) else value
            return default
        value = self.r.choice(values)
        self.attributes[name] = value() if callable(value) else value
        return self.attributes[name]

    def inp(self, array, constant=None):
        """The next input. None: left out. `constant`: whether it is in the model; drawn if None."""
        self.inputs.append(None if array is None else np.asarray(array))
        self.constant.append(self.r.random() < (0.15 if len(self.inputs) == 1 else 0.5) if constant is None else constant)
        return array

    def floats(self, shape, index=None, low=-2.0, high=2.0, constant=None):
        """The next input, of the schema's type."""
        return self.inp(self.array(shape, self.type(len(self.inputs) if index is None else index), low, high), constant)

    def ints(self, values, kind="i8", constant=None):
        """An operand that decides a shape or an order: most often in the model."""
        return self.inp(np.array(values, kind), self.r.random() < 0.85 if constant is None else constant)

    def axis(self, rank, name="axis", extra=0, given=0.65):
        if rank + extra <= 0:
            return self.opt(name, 0, default=0, given=given)
        return self.opt(name, lambda: self.r.randint(-rank - extra, rank - 1 + extra), default=0, given=given)

    def case(self):
        names = self.outputs
        if names is None:
            names = [f"y{i}" for i in range(self.r.randint(max(1, self.schema.min_output), len(self.schema.outputs)))]
        inputs = [f"x{i}" if a is not None else "" for i, a in enumerate(self.inputs)]
        while inputs and not inputs[-1]:
            inputs.pop()
        given = {k: v for k, v in self.attributes.items() if not (isinstance(v, (list, tuple)) and len(v) == 0)}
        node = helper.make_node(self.op, inputs, names, **given)
        pairs = [(f"x{i}", a, c) for i, (a, c) in enumerate(zip(self.inputs, self.constant)) if a is not None]
        return Case(self.op, self.opset, self.seed, node, {k: a for k, a, c in pairs if not c},
                    {k: a for k, a, c in pairs if c})


def operators(opset):
    """Those with a rule, at an opset."""
    names = []
    for name in sorted(RULES):
        try:
            schema = defs.get_schema(name, opset, "")
        except defs.SchemaError:
            continue
        if not schema.deprecated:
            names.append(name)
    return names


OPSETS = (7, 8, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 20, 21, 21, 22, 22, 23, 24, 25, 26, 27, 28)


def draw_case(seed, opset, only=None):
    """The case of a seed; None where the draw is impossible."""
    r = random.Random(seed * 7919 + 17)
    names = [n for n in operators(opset) if only is None or n in only]
    if not names:
        return None
    name = r.choice(names)
    d = Draw(name, opset, seed)
    try:
        RULES[name](d)
        return d.case()
    except Impossible:
        return None
