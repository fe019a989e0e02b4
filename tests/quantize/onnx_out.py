#!/usr/bin/env python3
"""sinter quantize: the ONNX file beside Sinter's own int8 file, which the same flags give, and beside the float model.

    onnx_out.py [--sinter PROGRAM] [--only NAME]...

Each network of nets/ is quantized both ways. onnx.checker takes the ONNX file with its shapes, and onnxruntime runs it with
its optimizations off and on (int8 weights that meet uint8 as uint8: exact_reference.py). With them off it computes what the
file states, in float, and differs from Sinter's integers where a sum is next to the middle between two integers. The
results differ by AGREEMENT at most; in noise against the float model they are equal to a small margin. The file converts
again, to the same integers but for OTHER_STEPS. Sinter's own file has recurrent layers on integers: these networks are
compared with the file that was converted again. Weights alone, and refusals, follow.
"""
import argparse
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common"), os.path.join(HERE, "nets")]
import pinned  # noqa: E402

pinned.require()
import nets_data  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import sinter_cli as cli  # noqa: E402
import suite  # noqa: E402
from exact_reference import without_saturation  # noqa: E402
from nets import decibels  # noqa: E402

RECURRENT = {"lstm", "lstm_raw", "gru"}  # Sinter's own file computes these layers on integers
MARGIN = 0.5  # dB of SQNR that the ONNX file may have less than Sinter's
SAMPLES = 60  # of each network
# dB of Sinter's result over the difference: rare steps between integers, and the last bits of floats.
AGREEMENT, EQUAL = 45, 110
# Between its integers this network has float operations that a Quantize follows. Products with float results differ in the last bit
# where their scale is read from the file, and so does now and then a rounded value: one of the 60 samples has one.
OTHER_STEPS = {"denoiser"}


def session(model, optimized):
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return onnxruntime.InferenceSession(without_saturation(model).SerializeToString(), options, providers=["CPUExecutionProvider"])


def outputs(model, data, optimized=True):
    s = session(model, optimized)
    ranks = {i.name: len(i.shape) for i in s.get_inputs()}
    rows = [s.run(None, {k: v[i] if v[i].ndim == ranks[k] else v[i][None] for k, v in data.items()})[0] for i in range(SAMPLES)]
    return np.stack([r.reshape(-1) for r in rows])


class Suite(suite.Suite):
    def sinter_outputs(self, file, name):
        result = cli.call(self.sinter, "run", self.path(file), "--inputs", self.path("x.npz"), "--each", "--outputs",
                          self.path("o.npz"), "--quiet", timeout=120)
        return np.load(self.path("o.npz"))[name].reshape(SAMPLES, -1) if result.code == 0 else None


def network(s, name):
    model = os.path.join(HERE, "nets", name + ".onnx")
    calib, evaluate = nets_data.data(name)
    evaluate = {k: v[:SAMPLES] for k, v in evaluate.items() if k != "label"}
    np.savez(s.path("c.npz"), **calib)
    np.savez(s.path("x.npz"), **evaluate)
    out = cli.call(s.sinter, "quantize", model, "-o", s.path("q.onnx"), "--calibrate", s.path("c.npz"), "--json", timeout=240)
    if out.code != 0:
        return s.check(f"{name} is quantized", False, out.why())
    for args in (["convert", model, "-o", s.path("q.sinter"), "--quantize", "int8", "--calibrate", s.path("c.npz"), "--quiet"],
                 ["convert", s.path("q.onnx"), "-o", s.path("again.sinter"), "--quiet"]):
        result = cli.call(s.sinter, *args, timeout=240)
        if result.code != 0:
            return s.check(f"{name} converts", False, result.why())
    quantized = onnx.load(s.path("q.onnx"))
    onnx.checker.check_model(quantized, full_check=True)
    report = json.loads(out.out)["quantized"]
    output = quantized.graph.output[0].name
    exact = outputs(onnx.load(model), evaluate)
    own, again = s.sinter_outputs("q.sinter", output), s.sinter_outputs("again.sinter", output)
    reference = again if name in RECURRENT else own
    before = decibels(exact, reference)
    for what, got, least in (("as stated", outputs(quantized, evaluate, False), AGREEMENT), ("optimized", outputs(quantized, evaluate), AGREEMENT),
                             ("converted again", again, AGREEMENT if name in OTHER_STEPS else EQUAL)):
        db, most = decibels(exact, got), decibels(reference, got)
        s.check(f"{name}, {what}: {db:.2f} dB", db >= min(before, 100) - MARGIN, f"{before:.2f} dB by Sinter's file")
        s.check(f"{name}, {what}: {most:.1f} dB beside Sinter's file", most >= least, f"at least {least}")
    return None


def weights_alone(s):
    """int8w and int4w as DequantizeLinear, with blocks, and as MatMulNBits: the same numbers in onnxruntime and here."""
    model = os.path.join(HERE, "nets", "attention.onnx")
    _, evaluate = nets_data.data("attention")
    evaluate = {k: v[:SAMPLES] for k, v in evaluate.items() if k != "label"}
    np.savez(s.path("x.npz"), **evaluate)
    for mode in ("int8w", "int4w"):
        own = cli.call(s.sinter, "convert", model, "-o", s.path("w.sinter"), "--quantize", mode, "--quiet", timeout=120)
        for more in ([], ["--microsoft"]):
            name = " ".join([mode, *more])
            result = cli.call(s.sinter, "quantize", model, "-o", s.path("w.onnx"), "--quantize", mode, "--quiet", *more, timeout=120)
            if own.code != 0 or result.code != 0:
                s.check(f"{name} is written", False, result.why() if result.code else own.why())
                continue
            written = onnx.load(s.path("w.onnx"))
            onnx.checker.check_model(written, full_check=not more)
            expected = s.sinter_outputs("w.sinter", written.graph.output[0].name)
            db = decibels(expected, outputs(written, evaluate))
            s.check(f"{name}: {db:.1f} dB beside Sinter's file", db >= 80, "at least 80")


def refusals(s):
    model = os.path.join(HERE, "nets", "boxes.onnx")
    calib, _ = nets_data.data("boxes")
    np.savez(s.path("c.npz"), **calib)
    np.savez(s.path("wrong.npz"), **{k: v[..., :3] for k, v in calib.items()})
    data, out = ["--calibrate", s.path("c.npz")], s.path("r.onnx")
    for what, code, args in (
            ("no samples", 2, ["-o", out]), ("a target", 2, ["-o", out, *data, "--target", "x86_64"]), ("int5w", 2, ["-o", out, "--quantize", "int5w"]),
            ("an old opset", 2, ["-o", out, *data, "--opset", "12"]), ("the model as output", 2, ["-o", model, *data]),
            ("a target of weights alone", 2, ["-o", out, "--quantize", "int4w", "--min-sqnr", "20"]),
            ("samples that are missing", 6, ["-o", out, "--calibrate", s.path("none.npz")]), ("wrong samples", 5, ["-o", out, "--calibrate", s.path("wrong.npz")]),
            ("a folder that is missing", 6, ["-o", s.path("none/r.onnx"), *data]),
            ("an SQNR that integers do not reach", 1, ["-o", out, *data, "--min-sqnr", "190", "--require-int8"])):
        result = cli.call(s.sinter, "quantize", model, *args, "--quiet", timeout=120)
        s.check(f"refused: {what}", result.code == code and not os.path.exists(out), result.why())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        s = Suite(cli.find_sinter(args.sinter), folder)
        for name in nets_data.NETS:
            if not args.only or name in args.only:
                network(s, name)
        if not args.only:
            weights_alone(s)
            refusals(s)
        print(s.summary())
    return 1 if s.failed else 0


if __name__ == "__main__":
    sys.exit(main())
