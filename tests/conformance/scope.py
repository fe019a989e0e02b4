#!/usr/bin/env python3
"""Which of ONNX's backend tests Sinter must pass, decided from the model alone.

Classes: `in` must pass; `later` planned (control flow, newest ops); `const` an operand of a type that only files
hold; `bounded` the output's shape depends on data; `out` passes or is refused with the reason.

    scope.py [FOLDER] [--list]      counts per class, checked against the table that the project agreed on
"""
import argparse
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import make_data  # noqa: E402
import onnx  # noqa: E402

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
LOW_BITS = {"FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "FLOAT4E2M1",
            "UINT4", "INT4", "UINT2", "INT2"}
STRING_OPS = {"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer"}
LOSSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
LOSS_TESTS = ("test_nllloss", "test_sce")
BOUNDED_OPS = {"NonMaxSuppression", "Unique", "Compress", "NonZero"}
NEWEST = {"CausalConvWithState": "test_causal_conv", "LinearAttention": "test_linear_attention",
          "FlexAttention": "test_flexattention"}

# (class, reason) -> tests: the agreed table for onnx 1.23.2.
EXPECTED = {
    ("in", ""): 1531,
    ("later", "newest sequence ops (by function body)"): 51,
    ("later", "control flow (If, Loop, Scan)"): 28,
    ("later", "DeformConv"): 4,
    ("const", "sub-byte or float8 input, decoded at conversion when constant"): 77,
    ("bounded", "output shape depends on data"): 23,
    ("out", "training loss functions"): 104,
    ("out", "sub-byte and float8 values produced at run time"): 87,
    ("out", "Sequence, Optional, Map types"): 42,
    ("out", "strings and text"): 35,
    ("out", "preview domain (FlexAttention)"): 11,
    ("out", "training ops"): 9,
    ("out", "image decoder"): 9,
    ("out", "classical ML (ai.onnx.ml)"): 8,
    ("out", "training mode (BatchNormalization, Dropout)"): 8,
    ("out", "random numbers"): 6,
}


def all_nodes(graph):
    for node in graph.node:
        yield node
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from all_nodes(a.g)
            for g in a.graphs:
                yield from all_nodes(g)


def type_name(info):
    kind = info.type.WhichOneof("value")
    return onnx.TensorProto.DataType.Name(info.type.tensor_type.elem_type) if kind == "tensor_type" else kind


def classify(kind, name, model):
    """(class, reason) of one test; the first rule that matches decides."""
    nodes = list(all_nodes(model.graph))
    ops = {n.op_type for n in nodes}
    domains = {n.domain for n in nodes}
    ins = {type_name(v) for v in model.graph.input}
    outs = {type_name(v) for v in model.graph.output}
    if any(t and t.endswith("_type") for t in ins | outs) or any("Sequence" in o or "Optional" in o for o in ops
                                                                 if o != "ReverseSequence"):
        return "out", "Sequence, Optional, Map types"
    if "ai.onnx.ml" in domains:
        return "out", "classical ML (ai.onnx.ml)"
    if "STRING" in ins | outs or ops & STRING_OPS:
        return "out", "strings and text"
    if ops & set(LOSSES) or name.startswith(LOSS_TESTS):
        return "out", "training loss functions"
    if "ai.onnx.preview.training" in domains:
        return "out", "training ops"
    if "ImageDecoder" in ops:
        return "out", "image decoder"
    if "ai.onnx.preview" in domains:
        return "out", "preview domain (FlexAttention)"
    if any(o in ops for o in ("Bernoulli", "RandomUniformLike", "RandomNormalLike", "Multinomial")):
        return "out", "random numbers"
    if is_training(model, nodes):
        return "out", "training mode (BatchNormalization, Dropout)"
    if outs & LOW_BITS:
        return "out", "sub-byte and float8 values produced at run time"
    if ins & LOW_BITS:
        return "const", "sub-byte or float8 input, decoded at conversion when constant"
    if ops & {"If", "Loop", "Scan"}:
        return "later", "control flow (If, Loop, Scan)"
    if ops & set(NEWEST) or name.startswith(tuple(NEWEST.values())):
        return "later", "newest sequence ops (by function body)"
    if "DeformConv" in ops:
        return "later", "DeformConv"
    if ops & BOUNDED_OPS:
        return "bounded", "output shape depends on data"
    return "in", ""


def is_training(model, nodes):
    """BatchNormalization with training_mode, or Dropout whose training_mode operand is true."""
    for n in nodes:
        if n.op_type == "BatchNormalization" and any(a.name == "training_mode" and a.i for a in n.attribute):
            return True
        if n.op_type == "Dropout" and len(n.input) > 2 and n.input[2]:
            for c in nodes:
                if c.op_type == "Constant" and n.input[2] in c.output:
                    return bool(onnx.numpy_helper.to_array(c.attribute[0].t))
            for i in model.graph.initializer:
                if i.name == n.input[2]:
                    return bool(onnx.numpy_helper.to_array(i))
            if n.input[2] in {v.name for v in model.graph.input}:
                return True  # the tests that feed it, feed true
    return False


def main_op(kind, name, model):
    """The op that a test is about, for the table."""
    if kind != "node":
        return f"({kind})"
    if name.endswith("_expanded") or len(model.graph.node) != 1:
        return ""
    return model.graph.node[0].op_type


def tests(folder):
    for kind in KINDS:
        base = os.path.join(folder, kind)
        for name in sorted(os.listdir(base)) if os.path.isdir(base) else ():
            if os.path.exists(os.path.join(base, name, "model.onnx")):
                yield kind, name, os.path.join(base, name)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", nargs="?", default=make_data.DEFAULT, help="folder of make_data.py (written if absent)")
    p.add_argument("--list", action="store_true", help="print every test with its class")
    args = p.parse_args()
    make_data.make(args.folder)
    count = collections.Counter()
    for kind, name, place in tests(args.folder):
        key = classify(kind, name, onnx.load(os.path.join(place, "model.onnx")))
        count[key] += 1
        if args.list:
            print(f"{kind}/{name}\t{key[0]}\t{key[1]}")
    wrong = 0
    for key in sorted(set(EXPECTED) | set(count)):
        differs = count[key] != EXPECTED.get(key, 0)
        wrong += differs
        print(f"{count[key]:5d}  {key[0]:8s} {key[1]}" + (f"   expected {EXPECTED.get(key, 0)}" if differs else ""),
              file=sys.stderr if args.list else sys.stdout)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
