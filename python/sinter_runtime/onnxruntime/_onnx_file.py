"""The facts of an ONNX file that a session shows: inputs, outputs, initializers, metadata.

The converter reads the whole model; this reader takes the names, types and shapes alone, and skips nodes and weights.
"""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

# Names of onnx.TensorProto.DataType as onnxruntime writes them.
ELEMENT_TYPES = {1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
                 10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
                 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
                 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2"}


class Damaged(ValueError):
    """The bytes are not an ONNX model."""


@dataclasses.dataclass(frozen=True)
class Value:
    """An input or output: its type in onnxruntime's words, and its dimensions: sizes, names, or None. `shape` is None where the
    file does not state one."""

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None


@dataclasses.dataclass
class Facts:
    """What a model's file states about itself."""

    inputs: list[Value] = dataclasses.field(default_factory=list)
    outputs: list[Value] = dataclasses.field(default_factory=list)
    initializers: set[str] = dataclasses.field(default_factory=set)
    external_files: set[str] = dataclasses.field(default_factory=set)
    ir_version: int = 0
    producer_name: str = ""
    domain: str = ""
    version: int = 0x7FFFFFFFFFFFFFFF  # onnxruntime's number for a model without one
    description: str = ""
    graph_name: str = ""
    graph_description: str = ""
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    has_graph: bool = False


def _varint(data: Any, at: int, end: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= end or shift > 63:
            raise Damaged(f"the number at byte {at} does not end")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def _fields(data: Any, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields the fields of a protobuf message in data[at:end]: number, value of a varint (else 0), and the place of the contents."""
    while at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise Damaged(f"the field at byte {at} has no number")
        if kind == 0:
            value, at = _varint(data, at, end)
            yield number, value, at, at
            continue
        if kind == 2:
            length, at = _varint(data, at, end)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise Damaged(f"the field at byte {at} has the unknown kind {kind}")
        if length > end - at:
            raise Damaged(f"the field at byte {at} is longer than the file")
        yield number, 0, at, at + length
        at += length


def _text(data: Any, start: int, end: int) -> str:
    return bytes(data[start:end]).decode("utf-8", "surrogateescape")


def _pair(data: Any, start: int, end: int) -> tuple[str, str]:
    """Returns the key and the value of a StringStringEntryProto."""
    texts = {number: _text(data, a, b) for number, _, a, b in _fields(data, start, end)}
    return texts.get(1, ""), texts.get(2, "")


def _tensor_type(data: Any, start: int, end: int) -> tuple[str, tuple[int | str | None, ...] | None]:
    element, shape = 0, None
    for number, value, a, b in _fields(data, start, end):
        if number == 1:
            element = value
        elif number == 2:
            shape = tuple(_dim(data, c, d) for field, _, c, d in _fields(data, a, b) if field == 1)
    return ELEMENT_TYPES.get(element, "undefined"), shape


def _dim(data: Any, start: int, end: int) -> int | str | None:
    for number, value, a, b in _fields(data, start, end):
        if number == 1:
            return value if value < 1 << 63 else None
        if number == 2:
            return _text(data, a, b) or None
    return None


def _type(data: Any, start: int, end: int) -> tuple[str, tuple[int | str | None, ...] | None]:
    """Returns a TypeProto in onnxruntime's words, and the shape of a tensor."""
    for number, _, a, b in _fields(data, start, end):
        if number in (1, 8):
            element, shape = _tensor_type(data, a, b)
            return f"{'tensor' if number == 1 else 'sparse_tensor'}({element})", shape
        if number in (4, 9):
            inner = next((_type(data, c, d)[0] for field, _, c, d in _fields(data, a, b) if field == 1), "")
            return f"{'seq' if number == 4 else 'optional'}({inner})", None
        if number == 5:
            key, inner = "undefined", ""
            for field, value, c, d in _fields(data, a, b):
                key, inner = (ELEMENT_TYPES.get(value, key), inner) if field == 1 else (key, _type(data, c, d)[0])
            return f"map({key},{inner})", None
    return "", None


def _value(data: Any, start: int, end: int) -> Value:
    name, kind, shape = "", "", None
    for number, _, a, b in _fields(data, start, end):
        if number == 1:
            name = _text(data, a, b)
        elif number == 2:
            kind, shape = _type(data, a, b)
    return Value(name, kind, shape)


def _tensor(data: Any, start: int, end: int, facts: Facts) -> str:
    """Returns an initializer's name, and adds the file that has its elements."""
    name = ""
    for number, _, a, b in _fields(data, start, end):
        if number == 8:
            name = _text(data, a, b)
        elif number == 13:
            key, location = _pair(data, a, b)
            if key == "location":
                facts.external_files.add(location)
    return name


def _graph(data: Any, start: int, end: int, facts: Facts, nodes: bool) -> None:
    facts.has_graph = True
    for number, _, a, b in _fields(data, start, end):
        if number == 1 and nodes:
            _inner_tensors(data, a, b, facts)
        elif number == 2:
            facts.graph_name = _text(data, a, b)
        elif number == 5:
            facts.initializers.add(_tensor(data, a, b, facts))
        elif number == 10:
            facts.graph_description = _text(data, a, b)
        elif number == 11:
            facts.inputs.append(_value(data, a, b))
        elif number == 12:
            facts.outputs.append(_value(data, a, b))


def _inner_tensors(data: Any, start: int, end: int, facts: Facts) -> None:
    """Adds the external files of the tensors in a node's attributes and their graphs."""
    for number, _, a, b in _fields(data, start, end):
        if number != 5:
            continue
        for field, _, c, d in _fields(data, a, b):
            if field in (5, 10):
                _tensor(data, c, d, facts)
            elif field in (6, 11):
                _graph(data, c, d, Facts(external_files=facts.external_files), True)


def read(data: Any) -> Facts:
    """Returns the facts of a model, given as bytes or a mapped file. Raises Damaged where it is none."""
    facts = Facts()
    nodes = data.find(b"location") >= 0  # elements in other files may belong to tensors of nodes
    for number, value, a, b in _fields(data, 0, len(data)):
        if number == 1:
            facts.ir_version = value
        elif number == 2:
            facts.producer_name = _text(data, a, b)
        elif number == 4:
            facts.domain = _text(data, a, b)
        elif number == 5:
            facts.version = value - (1 << 64) if value >= 1 << 63 else value
        elif number == 6:
            facts.description = _text(data, a, b)
        elif number == 7:
            _graph(data, a, b, facts, nodes)
        elif number == 14:
            key, text = _pair(data, a, b)
            facts.metadata[key] = text
    return facts


def external_paths(facts: Facts, model: str) -> list[str]:
    """Returns the paths of the files that hold the model's elements."""
    return sorted(os.path.join(os.path.dirname(os.path.abspath(model)), name) for name in facts.external_files)
