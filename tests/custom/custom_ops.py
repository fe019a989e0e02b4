#!/usr/bin/env python3
"""Custom operators, from a library's source to numbers: what NumPy computes, in every command, and what is refused.

    custom_ops.py --sinter PROGRAM --cc COMPILER

Costs about 2 processor seconds.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import sinter_cli as cli  # noqa: E402
from suite import Suite  # noqa: E402

FAULTS = ["none", "abi", "huge_dims", "negative_dims", "rank", "type", "refusal", "failure", "missing_rule", "twice", "other",
          "newer"]
X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
TABLE = np.array([[1, 2], [3, 4]], np.float32)


def node(op, inputs, outputs, name, **attributes):
    return helper.make_node(op, inputs, outputs, domain="com.test", name=name, **attributes)


def save(path, nodes, outputs, inputs=(("x", TensorProto.FLOAT, [2, 3]),), constants=(), version=1):
    graph = helper.make_graph(list(nodes), "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs], list(constants))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.test", version)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


class Custom(Suite):
    def __init__(self, sinter, folder, compiler):
        super().__init__(sinter, folder)
        self.compiler, self.libraries = compiler, {}
        cli.save_npz(self.path("in.npz"), {"x": X})

    def library(self, fault="none"):
        if fault not in self.libraries:
            to = self.path(f"{fault}.so")
            subprocess.run([self.compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-DFAULT={FAULTS.index(fault)}",
                            f"-I{cli.REPO}/runtime/include", os.path.join(HERE, "library.c"), "-o", to], check=True)
            self.libraries[fault] = to
        return self.libraries[fault]

    def convert(self, name, *more, fault="none"):
        given = ["--custom-ops", self.library(fault)] if fault else []
        return cli.call(self.sinter, "convert", self.path(f"{name}.onnx"), "-o", self.path(f"{name}.sinter"), *given, *more)

    def run(self, name, *more, fault="none"):
        given = ["--custom-ops", self.library(fault)] if fault else []
        out = self.path("out.npz")
        answer = cli.call(self.sinter, "run", self.path(f"{name}.sinter"), "--inputs", self.path("in.npz"), "--outputs", out,
                          *given, *more)
        return answer, cli.load_npz(out) if answer.code == 0 else {}

    def refused(self, what, answer, code, *texts):
        missing = [t for t in texts if t not in answer.err + answer.out]
        self.check(what, answer.code == code and not missing, f"{missing} {answer.why()}")

    def computes(self, what, name, want, *more):
        answer = self.convert(name, *more)
        if answer.code != 0:
            self.check(what, False, answer.why())
            return
        for backend in ([], ["--backend", "reference"]):
            ran, got = self.run(name, *backend)
            bad = [f"{k}: {cli.mismatch(got[k], w, 1e-5, 1e-5)}" for k, w in want.items()
                   if k in got and cli.mismatch(got[k], w, 1e-5, 1e-5)]
            self.check(f"{what} {' '.join(backend)}", ran.code == 0 and not bad and set(got) == set(want), f"{bad} {ran.why()}")


def numbers(s):
    save(s.path("all.onnx"), [
        helper.make_node("Relu", ["x"], ["r"]),
        node("Scale", ["r"], ["y"], "all", factor=2.0, power=3, mode="negative", blob=b"\x05\x00\xff", offsets=[1.0, 2.0, 3.0],
             axes=[4, -1], names=["ab", "", "cde"], table=numpy_helper.from_array(TABLE))], [("y", TensorProto.FLOAT, [2, 3])])
    added = 5 + 3 + 5 + TABLE.sum() + np.array([1, 2, 3])
    s.computes("attributes of every kind reach the kernel", "all", {"y": (np.maximum(X, 0) * -8 + added).astype(np.float32)})
    save(s.path("pair.onnx"), [node("Scale", ["x", "by"], ["y"], "pair", mode="plain", factor=0.5)],
         [("y", TensorProto.FLOAT, [2, 3])], constants=[numpy_helper.from_array(np.float32(3), "by")])
    s.computes("an optional operand", "pair", {"y": X * np.float32(1.5)})
    save(s.path("repeat.onnx"), [node("Repeat", ["x", "n"], ["y", "size"], "repeat")],
         [("y", TensorProto.FLOAT, [4, 2, 3]), ("size", TensorProto.INT64, [])],
         constants=[numpy_helper.from_array(np.int64(4), "n")])
    s.computes("a rule reads a constant operand", "repeat", {"y": np.stack([X] * 4), "size": np.array(24)})
    save(s.path("second.onnx"), [node("Repeat", ["x", "n"], ["", "size"], "repeat")], [("size", TensorProto.INT64, [])],
         constants=[numpy_helper.from_array(np.int64(4), "n")])
    s.computes("a result that nothing reads", "second", {"size": np.array(24)})
    save(s.path("folded.onnx"), [node("Scale", ["c"], ["d"], "folded", mode="negative"), helper.make_node("Add", ["x", "d"], ["y"])],
         [("y", TensorProto.FLOAT, [2, 3])], constants=[numpy_helper.from_array(X, "c")])
    s.computes("constant operands are folded", "folded", {"y": X * 0})
    listed = cli.call(s.sinter, "inspect", s.path("folded.sinter"), "--json")
    s.check("a folded node leaves no step", listed.code == 0 and "Scale" not in listed.out, listed.why())
    half = node("Scale", ["h"], ["i"], "half", mode="negative", factor=2.0)
    save(s.path("half.onnx"), [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), half,
                               helper.make_node("Mul", ["i", "i"], ["j"]), helper.make_node("Sub", ["j", "i"], ["k"]),
                               helper.make_node("Cast", ["k"], ["y"], to=TensorProto.FLOAT)], [("y", TensorProto.FLOAT, [2, 3])])
    s.computes("float16 stays float16 for the rule and the kernel", "half", {"y": X * X + X})
    branch = [helper.make_graph([node("Scale", ["x"], ["b"], name, mode="plain", factor=f)], name, [],
                                [helper.make_tensor_value_info("b", TensorProto.FLOAT, [2, 3])])
              for name, f in (("then", 2.0), ("else", 3.0))]
    save(s.path("branch.onnx"), [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
                                 helper.make_node("Greater", ["sum", "zero"], ["c"]),
                                 helper.make_node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])],
         [("y", TensorProto.FLOAT, [2, 3])], constants=[numpy_helper.from_array(np.float32(0), "zero")])
    s.computes("in the branches of an If", "branch", {"y": X * 3})
    body = helper.make_graph([node("Scale", ["v"], ["w"], "in_loop", mode="plain", factor=2.0),
                              helper.make_node("Identity", ["c_in"], ["c_out"])], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                              helper.make_tensor_value_info("c_in", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("v", TensorProto.FLOAT, [2, 3])],
                             [helper.make_tensor_value_info("c_out", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 3])])
    save(s.path("loop.onnx"), [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [("y", TensorProto.FLOAT, [2, 3])],
         constants=[numpy_helper.from_array(np.int64(3), "n")])
    s.computes("in the body of a Loop", "loop", {"y": X * 8})


def commands(s):
    given = ["--custom-ops", s.library()]
    for name in ("all", "half", "branch"):
        a = cli.call(s.sinter, "compare", s.path(f"{name}.onnx"), s.path(f"{name}.sinter"), "--inputs", s.path("in.npz"), *given)
        s.check(f"compare of {name}", a.code == 0, a.why())
    for words in (["bench", "all.sinter", "--seconds", "0.1"], ["inspect", "all.sinter"], ["explain", "all.sinter", "all"],
                  ["run", "all.sinter", "--random", "1", "--profile"]):
        a = cli.call(s.sinter, *words[:1], s.path(words[1]), *words[2:], *given)
        s.check(f"{words[0]} with the library", a.code == 0, a.why())
    a = s.convert("pair", "--target", "portable")
    a = cli.call(s.sinter, "embed", s.path("pair.sinter"), "-o", s.path("embedded"), *given)
    s.check("embed with the library", a.code == 0, a.why())
    a = cli.call(s.sinter, "run", s.path("all.sinter"), "--random", "1", "--profile", "--json", *given)
    s.check("steps have the operator's name", '"Scale"' in a.out, a.out)
    a = cli.call(s.sinter, "keygen", s.path("owner"))
    a = cli.call(s.sinter, "sign", s.path("all.sinter"), "--key", s.path("owner.key"), "-o", s.path("signed.sinter"))
    s.check("a file is signed without the library", a.code == 0, a.why())
    cli.save_npz(s.path("samples.npz"), {"x": X[np.newaxis]})
    a = cli.call(s.sinter, "convert", s.path("all.onnx"), "-o", s.path("q.sinter"), *given, "--quantize", "int8", "--calibrate",
                 s.path("samples.npz"), "--force-int8")
    s.check("a quantized model keeps the operator in float", a.code == 0, a.why())
    a = cli.call(s.sinter, "compare", s.path("all.onnx"), s.path("q.sinter"), "--inputs", s.path("in.npz"), *given)
    s.check("and computes what the float model does", a.code == 0, a.why())


def refusals(s):
    s.refused("without the library", s.convert("all", fault=None), 3, "'all'", "com.test.Scale", "--custom-ops")
    s.refused("a run without the library", s.run("all", fault=None)[0], 4, "com.test.Scale", "--custom-ops", "all")
    s.refused("a run with another library", s.run("all", fault="other")[0], 4, "com.test.Scale")
    s.refused("a run with another version", s.run("all", fault="newer")[0], 4, "com.test.Scale")
    s.refused("a model older than the operator", s.convert("all", fault="newer"), 3, "version 2", "since_version")
    s.refused("an operator of another interface", s.convert("all", fault="abi"), 2, "version 99", "header")
    s.refused("an operator without a rule", s.convert("all", fault="missing_rule"), 2, "Scale", "rule")
    s.refused("an operator twice", s.convert("all", fault="twice"), 2, "Scale", "twice")
    s.refused("the same library twice", s.convert("all", "--custom-ops", s.library()), 2, "twice")
    s.refused("a library that does not exist", s.convert("all", "--custom-ops", s.path("no.so")), 2, "cannot be loaded")
    for fault, text in (("huge_dims", "too large"), ("negative_dims", "negative dim"), ("rank", "rank"), ("type", "element type"),
                        ("refusal", "this rule refuses everything")):
        s.refused(f"at conversion: {fault}", s.convert("all", fault=fault), 3, "'all'", text)
        a = s.run("all", fault=fault)[0]
        s.refused(f"at opening: {fault}", a, 4, text)
    s.refused("a kernel that fails", s.run("all", fault="failure")[0], 5, "'all'", "(Scale)", "this kernel fails always")
    for what, attributes, text in (("an unknown attribute", {"mode": "a", "other": 1}, "'other'"),
                                   ("a missing attribute", {}, "'mode' is missing"),
                                   ("an attribute of another kind", {"mode": 1}, "kind"),
                                   ("text with a zero byte", {"mode": "a\0b"}, "zero byte")):
        save(s.path("bad.onnx"), [node("Scale", ["x"], ["y"], "bad", **attributes)], [("y", TensorProto.FLOAT, [2, 3])])
        s.refused(what, s.convert("bad"), 3, "'bad'", text)
    save(s.path("bad.onnx"), [node("Scale", ["x", "x", "x"], ["y"], "bad", mode="a")], [("y", TensorProto.FLOAT, [2, 3])])
    s.refused("too many operands", s.convert("bad"), 3, "'bad'", "3 operands")
    save(s.path("bad.onnx"), [node("Repeat", ["x", "n"], ["y"], "bad")], [("y", TensorProto.FLOAT, None)],
         inputs=[("x", TensorProto.FLOAT, [2, 3]), ("n", TensorProto.INT64, [])])
    s.refused("a size that a run computes", s.convert("bad"), 3, "'bad'", "count must be constant")
    save(s.path("bad.onnx"), [helper.make_node("NonZero", ["x"], ["p"]), helper.make_node("Cast", ["p"], ["f"], to=1),
                              node("Scale", ["f"], ["y"], "bad", mode="a")], [("y", TensorProto.FLOAT, None)])
    s.refused("an operand of a bounded length", s.convert("bad"), 3, "'bad'", "bounded")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    parser.add_argument("--cc", default="cc")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        s = Custom(cli.find_sinter(args.sinter), folder, args.cc)
        numbers(s)
        commands(s)
        refusals(s)
        print(s.summary())
    return 1 if s.failed else 0


if __name__ == "__main__":
    sys.exit(main())
