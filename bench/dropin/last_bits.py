#!/usr/bin/env python3
"""Tells whether a difference between onnxruntime and Sinter is one that last bits make in a dynamically quantized model.

    bench/dropin/last_bits.py MODEL.onnx --runtime FOLDER --shape 1,1,64,160 [--trials 10]

DynamicQuantizeLinear rounds float32 numbers to 255 steps: where two runtimes differ in the last bit of a number that is halfway
between two steps, the layers behind it differ by whole steps. This runs copies of the model in which each float32 constant is
moved by one last bit or not, at random. A difference between the runtimes that is no larger than what such copies make in
onnxruntime alone is of that kind.

DynamicQuantizeLSTM rounds x and h to 8 bits in onnxruntime, at every step; Sinter computes it in float32. For models with it, the same is
run with LSTM in its place, whose weights are the same numbers as float32.
"""
import argparse
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper


def with_float_lstm(model):
    """Returns the model with LSTM in place of each DynamicQuantizeLSTM, and how many there are."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    constants = {i.name: i for i in model.graph.initializer}
    count = 0
    for node in model.graph.node:
        if node.op_type != "DynamicQuantizeLSTM":
            continue
        names = [*node.input, *[""] * (12 - len(node.input))]
        floats = []
        for weights, scale, zero in ((1, 8, 9), (2, 10, 11)):
            w, s, z = (numpy_helper.to_array(constants[names[i]]) for i in (weights, scale, zero))
            directions = len(w)  # [directions, inputs, 4 * hidden]; a scale for each direction, or for each column of it
            real = (w.astype(np.int32) - z.astype(np.int32).reshape(directions, 1, -1)).astype(np.float32) * s.reshape(directions, 1, -1)
            floats.append(f"{names[weights]}_float")
            model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(real.transpose(0, 2, 1)), floats[-1]))
        lstm = helper.make_node("LSTM", [names[0], *floats, *names[3:8]], list(node.output), name=node.name)
        lstm.attribute.extend(node.attribute)
        node.CopyFrom(lstm)
        count += 1
    return model, count


def nudged(model, rng):
    """Returns the model with each float32 constant moved up by one last bit, down, or not; but for those that decide shapes."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    fixed = {name for node in model.graph.node if node.op_type in ("Resize", "Upsample") for name in node.input[1:]}
    for constant in model.graph.initializer:
        if constant.data_type == onnx.TensorProto.FLOAT and constant.name not in fixed:
            a = numpy_helper.to_array(constant)
            to = rng.choice(np.array([-np.inf, 0, np.inf], np.float32), a.shape)
            constant.CopyFrom(numpy_helper.from_array(np.where(to == 0, a, np.nextafter(a, to)), constant.name))
    return model


def output(engine, model, x):
    """Returns the first output."""
    options = engine.SessionOptions()
    options.log_severity_level = 4
    session = engine.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0].astype(np.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--runtime", required=True, help="the folder with the package sinter_runtime")
    parser.add_argument("--shape", required=True, help="of the model's one input, whose numbers are drawn from 0 to 1")
    parser.add_argument("--trials", type=int, default=10, help="copies with other last bits")
    args = parser.parse_args()
    sys.path.insert(0, args.runtime)
    import sinter_runtime.onnxruntime as sinter
    rng = np.random.default_rng(0)
    x = rng.random([int(n) for n in args.shape.split(",")], dtype=np.float32)
    given = onnx.load(args.model)
    models = {"the model": given}
    in_float, count = with_float_lstm(given)
    if count:
        models["with LSTM"] = in_float
    first = {}
    for name, model in models.items():
        real, ours = (first.setdefault((name, e), output(e, model, x)) for e in (onnxruntime, sinter))
        largest = np.abs(real).max()
        moved = sorted(np.abs(output(onnxruntime, nudged(model, rng), x) - real).max() / largest for _ in range(args.trials))
        print(f"{name}: onnxruntime and Sinter differ by {np.abs(real - ours).max() / largest:.1e} of the largest number; onnxruntime and "
              f"itself with other last bits by {moved[0]:.1e} to {moved[-1]:.1e}, half of them by at least {moved[len(moved) // 2]:.1e}")
    if count:
        a, b = (first[name, onnxruntime] for name in models)
        print(f"onnxruntime's outputs of the two models differ by {np.abs(a - b).max() / np.abs(a).max():.1e}")


if __name__ == "__main__":
    main()
