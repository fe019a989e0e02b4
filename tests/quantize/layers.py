#!/usr/bin/env python3
"""sinter compare --per-layer: where an integer model loses its accuracy, and why.

    layers.py [--sinter PROGRAM]

The networks are made so that one layer is known to be bad, and for a known reason.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
import suite  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

SIDE = 10


def network(factors, bent=False):
    """Three convolutions. Channel i of the second one's result is factors[i] times as large as the others. `bent`: no
    straight line leads from it to the third one, so that no scale can be moved there."""
    r = np.random.default_rng(2)
    n = len(factors)
    factors = np.asarray(factors, np.float32)
    w = [r.normal(0, (2 / (9 * 3)) ** 0.5, (n, 3, 3, 3)), r.normal(0, (2 / (9 * n)) ** 0.5, (n, n, 3, 3)),
         r.normal(0, (2 / (9 * n)) ** 0.5, (n, n, 3, 3))]
    b = [r.normal(0, 0.1, n) for _ in w]
    w[1] = w[1] * factors[:, None, None, None]
    b[1] = b[1] * factors
    constants, nodes, x = [], [], "x"
    for i, name in enumerate(["first", "second", "third"]):
        constants += [numpy_helper.from_array(w[i].astype("f"), f"w{i}"), numpy_helper.from_array(b[i].astype("f"), f"b{i}")]
        nodes.append(helper.make_node("Conv", [x, f"w{i}", f"b{i}"], [name + "_conv"], name=name, pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [name + "_conv"], [name]))
        x = name
        if bent and name == "second":
            nodes.append(helper.make_node("Tanh", [x], ["bent"]))
            x = "bent"
    nodes += [helper.make_node("GlobalAveragePool", ["third"], ["pooled"]), helper.make_node("Flatten", ["pooled"], ["y"])]
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, n])], constants),
        opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    return model


def moving():
    """A value that is cut, joined and given other shapes on its way: most of that costs no step."""
    r = np.random.default_rng(3)
    w = [numpy_helper.from_array(r.normal(0, (2 / (9 * c)) ** 0.5, (8, c, 3, 3)).astype("f"), f"w{i}") for i, c in enumerate([3, 4, 4])]
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c"], name="first", pads=[1, 1, 1, 1]),
             helper.make_node("Split", ["c"], ["left", "right"], axis=1, num_outputs=2),
             helper.make_node("Conv", ["left", "w1"], ["l"], name="second", pads=[1, 1, 1, 1]),
             helper.make_node("Conv", ["right", "w2"], ["r"], name="third", pads=[1, 1, 1, 1]),
             helper.make_node("Concat", ["l", "r"], ["joined"], axis=2),
             helper.make_node("Reshape", ["joined", "shape"], ["flat"]),
             helper.make_node("Sigmoid", ["flat"], ["s"]), helper.make_node("Mul", ["flat", "s"], ["y"])]
    w.append(numpy_helper.from_array(np.array([1, 8, -1], np.int64), "shape"))
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 8, 2 * SIDE * SIDE])], w),
        opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    return model


def scaled_scores():
    """A factor behind a product, whose integers are those of both values."""
    r = np.random.default_rng(4)
    w = [numpy_helper.from_array(r.normal(0, 0.25, (16, 16)).astype("f"), f"w{i}") for i in range(4)]
    w.append(numpy_helper.from_array(np.float32(0.25), "quarter"))
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["q"], name="q"), helper.make_node("MatMul", ["x", "w1"], ["k"], name="k"),
             helper.make_node("Transpose", ["k"], ["t"], perm=[0, 2, 1]),
             helper.make_node("MatMul", ["q", "t"], ["product"], name="product"),
             helper.make_node("Mul", ["product", "quarter"], ["scores"]),
             helper.make_node("Softmax", ["scores"], ["shares"], axis=-1), helper.make_node("MatMul", ["x", "w2"], ["v"], name="v"),
             helper.make_node("MatMul", ["shares", "v"], ["mixed"], name="mixed"),
             helper.make_node("MatMul", ["mixed", "w3"], ["y"], name="last")]
    return model_of(nodes, [1, 6, 16], [1, 6, 16], w)


def given_resize():
    """A table behind a linear Resize of a model that came quantized: uint8, so that the file holds other integers."""
    ends = [numpy_helper.from_array(np.float32(0.02), "s"), numpy_helper.from_array(np.uint8(100), "z"),
            numpy_helper.from_array(np.float32(1 / 255), "s2"), numpy_helper.from_array(np.uint8(0), "z2"),
            numpy_helper.from_array(np.array([1, 1, 2, 1.5], np.float32), "scales")]
    nodes, now = [], "x"
    for i, (kind, inputs, pair) in enumerate([(None, [], ["s", "z"]), ("Resize", ["", "scales"], ["s", "z"]), ("Sigmoid", [], ["s2", "z2"])]):
        if kind:
            how = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"} if inputs else {}
            nodes.append(helper.make_node(kind, [now, *inputs], [f"f{i}"], **how))
            now = f"f{i}"
        nodes += [helper.make_node("QuantizeLinear", [now, *pair], [f"q{i}"]),
                  helper.make_node("DequantizeLinear", [f"q{i}", *pair], [f"d{i}"])]
        now = f"d{i}"
    return model_of(nodes, [1, 3, 6, 6], [1, 3, 12, 9], ends, now)


def model_of(nodes, x, y, constants, result="y"):
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT, y)], constants), opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    return model


class Suite(suite.Suite):
    def convert(self, model, data, *more, out):
        onnx.save(model, self.path("m.onnx"))
        outcome = cli.call(self.sinter, "convert", self.path("m.onnx"), "-o", self.path(out), "--quantize", "int8",
                        "--calibrate", data, *more, timeout=120)
        self.check(f"{out} is converted", outcome.code == 0, outcome.why())

    def layers(self, first, second, data, *more):
        outcome = cli.call(self.sinter, "compare", first, second, "--inputs", data, "--per-layer", "--json", *more, timeout=120)
        self.check("the layers are compared", outcome.code in (0, 1), outcome.why())
        return json.loads(outcome.out) if outcome.code in (0, 1) else {"layers": [], "samples": 0}


def run(s):
    r = np.random.default_rng(1)
    data = s.path("d.npz")
    np.savez(data, x=r.normal(0, 1, (8, 3, SIDE, SIDE)).astype("f"))
    np.savez(s.path("one.npz"), x=r.normal(0, 1, (1, 3, SIDE, SIDE)).astype("f"))

    s.convert(network([1] * 8), data, out="even.sinter")
    even = s.layers(s.path("m.onnx"), s.path("even.sinter"), data)
    by_name = {x["name"]: x for x in even["layers"]}
    s.check("every value that both have is there", {"first", "second", "third"} <= set(by_name), list(by_name))
    s.check("all samples of the stack count", even["samples"] == 8, even["samples"])
    s.check("fewer samples", s.layers(s.path("m.onnx"), s.path("even.sinter"), data, "--samples", 3)["samples"] == 3)
    own = [x["own_sqnr_db"] for x in even["layers"] if x["own_sqnr_db"] is not None]
    s.check("the worst comes first", own == sorted(own), own)
    s.check("every layer is good", own and min(own) > 30, own)
    # Noise gathers on the way; what a layer adds to exact operands does not.
    s.check("noise accumulates", by_name["third"]["sqnr_db"] <= by_name["first"]["sqnr_db"] + 1, by_name)
    s.check("no layer's own noise is more than what reaches its end",
            all(x["own_sqnr_db"] >= x["sqnr_db"] - 1 for x in even["layers"] if x["own_sqnr_db"] is not None), by_name)
    s.check("steps and levels are reported", all(x["scale"] > 0 and x["levels"] == 256 and 100 < x["levels_used"] <= 256
                                             for x in even["layers"] if x["type"] == "int8"), by_name)

    s.convert(network([1, 1, 0.003, 1, 1, 1, 0.005, 1], bent=True), data, out="uneven.sinter")
    uneven = s.layers(s.path("m.onnx"), s.path("uneven.sinter"), s.path("one.npz"))
    bad = {x["name"]: x for x in uneven["layers"]}.get("second", {})
    s.check("channels with few levels are named", "2 of 8 channels use fewer than 8 levels" in bad.get("cause", ""), bad)
    s.check("the worst channel is one of them", bad.get("worst_channel") in (2, 6), bad)

    outcome = cli.call(s.sinter, "compare", s.path("m.onnx"), s.path("uneven.sinter"), "--inputs", s.path("one.npz"),
                    "--per-layer")
    s.check("the table has it", "2 of 8 channels" in outcome.out and "own" in outcome.out.splitlines()[0], outcome.out)
    s.check("its lines are few", len(outcome.out.splitlines()) < 20, outcome.out)
    same = s.layers(s.path("even.sinter"), s.path("even.sinter"), data)
    s.check("a file is as good as itself", all(x["sqnr_db"] == 999 for x in same["layers"]), same["layers"])

    s.convert(moving(), data, out="moving.sinter")
    listed = json.loads(cli.call(s.sinter, "inspect", s.path("moving.sinter"), "--steps", "--json").out)["steps"]
    free = {x["step"] for x in listed if x["elided"]}
    rows = s.layers(s.path("m.onnx"), s.path("moving.sinter"), data)["layers"]
    seen = [x for x in rows if x["step"] in free]
    s.check("values of steps that cost nothing are compared", {"joined", "flat"} & {x["name"] for x in seen}, (rows, listed))
    s.check("they add no noise of their own", all(x["own_sqnr_db"] is None for x in seen), seen)
    s.check("and have what came to them", all(x["sqnr_db"] > 25 for x in seen), seen)
    same = s.layers(s.path("moving.sinter"), s.path("moving.sinter"), data)["layers"]
    s.check("with themselves they are exact", {x["step"] for x in same} >= {x["step"] for x in seen} and
            all(x["sqnr_db"] == 999 for x in same), same)

    rows = r.normal(0, 1, (8, 6, 16)).astype("f")
    np.savez(data, x=rows)
    s.convert(scaled_scores(), data, "--disable-technique", "leave-float", out="scores.sinter")
    by_name = {x["name"]: x for x in s.layers(s.path("m.onnx"), s.path("scores.sinter"), data)["layers"]}
    s.check("a value has its own scale where its integers are another's too", by_name.get("product", {}).get("sqnr_db", 0) > 25, by_name)

    onnx.save(given_resize(), s.path("m.onnx"))
    outcome = cli.call(s.sinter, "convert", s.path("m.onnx"), "-o", s.path("resize.sinter"))
    s.check("a Resize between pairs is converted", outcome.code == 0, outcome.why())
    np.savez(data, x=r.uniform(-2, 3, (8, 3, 6, 6)).astype("f"))
    by_name = {x["name"]: x for x in s.layers(s.path("m.onnx"), s.path("resize.sinter"), data)["layers"]}
    s.check("it has the name of its integers", "q1" in by_name, by_name)
    s.check("a table behind it is exact", by_name.get("q2", {}).get("own_sqnr_db") == 999, by_name)


if __name__ == "__main__":
    sys.exit(suite.run(Suite, run, __doc__))
