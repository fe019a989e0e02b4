#!/usr/bin/env python3
"""What keeps the accuracy of an int8 model where it is asked to be: --min-sqnr, --max-drop, --keep-float,
--require-int8, --disable-technique.

    gate.py [--sinter PROGRAM]
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common"), os.path.join(HERE, "nets")]
import pinned  # noqa: E402

pinned.require()
import nets_data  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
import suite  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

REASONS = {"no kernel", "range", "accuracy", "slower", "user"}
TECHNIQUES = ["equalize", "depthwise-scales", "smooth", "function-ranges", "measured-ranges", "weight-steps",
              "adaptive-rounding", "bias-correction", "wide-activations", "leave-float", "refit"]


class Suite(suite.Suite):
    def convert(self, net, *more, out="q.sinter"):
        """Exit code, the answer as JSON, and everything that was printed."""
        calib, labelled = nets_data.data(net)
        np.savez(self.path("c.npz"), **calib)
        np.savez(self.path("e.npz"), **labelled)
        if os.path.exists(self.path(out)):
            os.remove(self.path(out))
        result = cli.call(self.sinter, "convert", os.path.join(HERE, "nets", net + ".onnx"), "-o", self.path(out), "--quantize",
                        "int8", "--calibrate", self.path("c.npz"), "--json", *more, timeout=120)
        return result.code, json.loads(result.out) if result.out.strip() else {}, result.out + result.err

    def written(self, out="q.sinter"):
        return os.path.exists(self.path(out))


def floats(answer):
    return [x for x in answer["quantized"]["layers"] if not x["integer"]]


def worst(answer):
    return min(x["sqnr_db"] for x in answer["quantized"]["outputs"])


def target_sqnr(s):
    plain = [x for name in TECHNIQUES for x in ("--disable-technique", name)]
    code, bare, result = s.convert("attention", *plain)
    s.check("without any technique it converts", code == 0, result)
    s.check("and none is reported", bare.get("quantized", {}).get("techniques") == [], bare)
    counts = []
    for target in (25, 55):
        code, answer, result = s.convert("attention", "--min-sqnr", str(target))
        s.check(f"{target} dB: written", code == 0 and s.written(), result)
        s.check(f"{target} dB: reached", worst(answer) >= target, worst(answer))
        counts.append(sum(x["reason"] == "accuracy" for x in floats(answer)))
        s.check("every float layer has a reason", {x["reason"] for x in floats(answer)} <= REASONS, floats(answer))
        sources = answer["quantized"]["noise"]
        s.check("sources are ranked", len(sources) > 3 and [x["alone_db"] for x in sources] == sorted(x["alone_db"] for x in sources))
        warned = [d for d in answer["diagnostics"] if "nothing computes on integers" in d["message"]]
        s.check("integers are left, without a warning", not warned and any(x["integer"] for x in answer["quantized"]["layers"]), warned)
    s.check("a higher target keeps more in float", counts[0] < counts[1], counts)
    code, answer, result = s.convert("attention", "--min-sqnr", "100")
    warned = [d["severity"] for d in answer.get("diagnostics", []) if "--min-sqnr 100 keeps every operation in float" in d["message"]]
    s.check("a target that leaves no integers is a warning", code == 0 and warned == ["warning"], result[-500:])
    code, answer, result = s.convert("attention", "--min-sqnr", "190")
    s.check("what cannot be is refused", code == 1 and "no file is written" in result and "--min-sqnr" in result, result)
    s.check("and nothing is written", not s.written())


def accuracy(s):
    evaluate = ["--evaluate", s.path("e.npz"), "--label", "label"]
    code, answer, result = s.convert("depthwise", "--max-drop", "0.5%", *evaluate)
    q = answer.get("quantized", {})
    s.check("--max-drop is met", code == 0 and q["accuracy"] >= q["float_accuracy"] - 0.005 - 1e-9, result)
    s.check("what is written is what was measured", abs(answer.get("top1", -1) - q.get("accuracy", 0)) < 1e-9, (answer.get("top1"), q))
    s.convert("attention")
    off = [x for name in ("smooth", "measured-ranges", "bias-correction") for x in ("--disable-technique", name)]
    code, answer, result = s.convert("attention", "--max-drop", "0", *off, *evaluate)
    q = answer.get("quantized", {})
    s.check("layers are kept in float until the accuracy is there", code == 0 and q["accuracy"] >= q["float_accuracy"], result)
    code, _, result = s.convert("attention", "--max-drop", "0.5%")
    s.check("--max-drop without data is wrong usage", code == 2 and "--evaluate" in result, result)
    code, _, result = s.convert("attention", "--max-drop", "half", *evaluate)
    s.check("a drop that is not a number is wrong usage", code == 2 and "0.5%" in result, result)
    code, _, result = s.convert("attention", "--max-drop", "1%", "--min-sqnr", "30", *evaluate)
    s.check("two targets are wrong usage", code == 2, result)
    code, _, result = s.convert("attention", "--max-drop", "1%", "--evaluate", s.path("e.npz"), "--label", "nothing")
    s.check("a label that is not there is wrong data", code == 5 and "nothing" in result and not s.written(), result)


def evaluated(answer):
    return {x["name"]: x["sqnr_db"] for x in answer["quantized"]["evaluation"]["outputs"]}


def evaluation(s):
    """SQNR on data that did not calibrate, and a target that is judged there."""
    data = ["--evaluate", s.path("e.npz"), "--metric", "sqnr"]
    s.convert("attention")
    code, answer, result = s.convert("attention", *data)
    q = answer.get("quantized", {})
    count = len(nets_data.data("attention")[1]["label"])
    s.check("--metric sqnr needs no label", code == 0 and s.written() and "top1" not in answer, result)
    s.check("all samples are measured", q["evaluation"]["samples"] == count > q["measured_samples"], q["evaluation"])
    s.check("beside those of the calibration", set(evaluated(answer)) == {x["name"] for x in q["outputs"]}, q["evaluation"])
    net = os.path.join(HERE, "nets", "attention.onnx")
    np.savez(s.path("x.npz"), **{name: a for name, a in np.load(s.path("e.npz")).items() if name != "label"})
    told = cli.call(s.sinter, "compare", net, s.path("q.sinter"), "--inputs", s.path("x.npz"), "--each", "--json", "--min-sqnr", "1")
    other = {x["name"]: x["sqnr_db"] for x in json.loads(told.out)["outputs"]} if told.code == 0 else {}
    s.check("as sinter compare finds it on the file", set(other) == set(evaluated(answer)) and
            all(abs(other[n] - db) < 0.1 for n, db in evaluated(answer).items()), (other, evaluated(answer)))
    result = cli.call(s.sinter, "convert", net, "-o", s.path("w.sinter"), "--quantize", "int8w", "--json", *data)
    weights = json.loads(result.out) if result.code == 0 else {}
    s.check("weights alone, without calibration, too", result.code == 0 and 10 < min(evaluated(weights).values()) < 100 and
            weights["quantized"]["outputs"] == [], result.why())
    result = cli.call(s.sinter, "convert", net, "-o", s.path("w.sinter"), "--quantize", "int8w", *data).out
    s.check("the closing table has it", f"evaluation: worst output 'scores' {min(evaluated(weights).values()):.1f} dB, on {count}" in result, result)

    # Louder than what was calibrated with: ranges are too small for it.
    away = {name: (3 * a).astype(a.dtype) if a.dtype.kind == "f" else a for name, a in np.load(s.path("e.npz")).items()}
    np.savez(s.path("away.npz"), **away)
    away = ["--evaluate", s.path("away.npz"), "--metric", "sqnr"]
    _, answer, _ = s.convert("attention", *away)
    there, here = min(evaluated(answer).values()), worst(answer)
    s.check("other data has more noise", there < here - 4, (there, here))
    target = f"{(there + here) / 2:.0f}"
    _, plain, _ = s.convert("attention", "--min-sqnr", target)
    code, answer, result = s.convert("attention", "--min-sqnr", target, *away)
    s.check(f"--min-sqnr {target} is reached on the data to evaluate", code == 0 and s.written() and
            min(evaluated(answer).values()) >= float(target) and answer["quantized"]["reached"], result)
    s.check("which takes more than on the samples of the calibration", len(floats(answer)) > len(floats(plain)),
            (len(floats(answer)), len(floats(plain))))
    code, answer, result = s.convert("attention", "--min-sqnr", "190", *away)
    s.check("what cannot be there is refused", code == 1 and not s.written() and "--evaluate" in result and
            "--calibrate" in result and not answer["quantized"]["reached"], result)
    for words, more in ((["--max-drop", "--min-sqnr"], ["--max-drop", "1%"]), (["--label", "top1"], ["--label", "label"])):
        code, _, result = s.convert("attention", *data, *more)
        s.check(f"{more[0]} beside --metric sqnr is wrong usage", code == 2 and not s.written() and all(w in result for w in words), result)
    bad = {name: np.where(np.arange(a.size).reshape(a.shape) == 7, np.nan, a).astype(a.dtype) if a.dtype.kind == "f" else a
           for name, a in np.load(s.path("e.npz")).items()}
    np.savez(s.path("bad.npz"), **bad)
    code, _, result = s.convert("attention", "--evaluate", s.path("bad.npz"), "--metric", "sqnr")
    s.check("NaN in the data is wrong data", code == 5 and "--evaluate" in result and not s.written(), result)


def narrow_output(s):
    """The noise of an output that is handed out in float16 is measured as well."""
    r = np.random.default_rng(0)
    kinds = onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
         helper.make_node("Conv", ["b", "v"], ["c"]), helper.make_node("Cast", ["c"], ["y"], to=kinds.FLOAT16)], "g",
        [helper.make_tensor_value_info("x", kinds.FLOAT, [1, 8, 12, 12])],
        [helper.make_tensor_value_info("y", kinds.FLOAT16, [1, 8, 8, 8])],
        [numpy_helper.from_array(r.normal(0, 0.1, (8, 8, 3, 3)).astype("f"), name) for name in "wv"])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, s.path("narrow.onnx"))
    np.savez(s.path("n.npz"), x=r.normal(0, 1, (32, 8, 12, 12)).astype("f"))
    result = cli.call(s.sinter, "convert", s.path("narrow.onnx"), "-o", s.path("n.sinter"), "--quantize", "int8", "--force-int8",
                    "--calibrate", s.path("n.npz"), "--evaluate", s.path("n.npz"), "--metric", "sqnr", "--json")
    answer = json.loads(result.out) if result.code == 0 else {}
    # Judges are some of the samples that are evaluated.
    reported = answer["quantized"]["outputs"][0] if answer else {}
    s.check("noise of a float16 output is measured", result.code == 0 and 20 < worst(answer) < 60 and
            abs(evaluated(answer)["y"] - worst(answer)) < 4 and
            reported["low_db"] < evaluated(answer)["y"] < reported["high_db"], (reported, result.why()))


def users_choice(s):
    code, answer, result = s.convert("unet")
    layers = [x["node"] for x in answer["quantized"]["layers"] if x["integer"] and x["op"] == "Conv"]
    s.check("there are integer convolutions", code == 0 and len(layers) > 2, result)
    code, answer, result = s.convert("unet", "--keep-float", layers[1])
    kept = {x["node"]: x["reason"] for x in floats(answer)}
    s.check("--keep-float is obeyed", code == 0 and kept.get(layers[1]) == "user", kept)
    code, _, result = s.convert("unet", "--keep-float", "no such layer")
    s.check("a layer that is not there is wrong usage", code == 2 and "no such layer" in result, result)
    code, answer, result = s.convert("unet", "--require-int8", "--keep-float", layers[1])
    s.check("--require-int8 lists operations kept in float", code == 1 and layers[1] in result and "user" in result, result)
    s.check("and nothing is written then", not s.written())
    code, _, result = s.convert("unet", "--disable-technique", "magic")
    s.check("a technique that is not there is wrong usage", code == 2 and "magic" in result, result)
    result = cli.call(s.sinter, "convert", "--help").out
    s.check("--help lists all techniques", all(name in result for name in TECHNIQUES), result[-2000:])
    for name in TECHNIQUES:
        code, answer, result = s.convert("boxes", "--disable-technique", name)
        tried = [x["name"] for x in answer.get("quantized", {}).get("techniques", [])]
        s.check(f"--disable-technique {name}", code == 0 and not any(name in x for x in tried), result)
    result = cli.call(s.sinter, "convert", os.path.join(HERE, "nets", "boxes.onnx"), "-o", s.path("f.sinter"), "--min-sqnr", "30")
    s.check("--min-sqnr without --quantize is wrong usage", result.code == 2, result.why())


def costs(s):
    _, answer, result = s.convert("lstm")
    s.check("where nothing gains by integers, a reason is given", all(x["reason"] in ("slower", "no kernel") for x in floats(answer)), result)
    code, forced, result = s.convert("lstm", "--force-int8")
    s.check("--force-int8 has them all the same", code == 0 and len(floats(forced)) < len(floats(answer)), result)


def sixteen_bits(s):
    """Where integers are required and 8 bits are too few, single values get 16 before an operation is kept in float."""
    wanted = ["--require-int8", "--force-int8", "--min-sqnr", "33"]
    code, answer, result = s.convert("prelu", *wanted, "--disable-technique", "wide-activations")
    s.check("8 bits alone do not reach it", code == 1 and not s.written() and "PRelu" in result, result)
    code, answer, result = s.convert("prelu", *wanted)
    layers = answer.get("quantized", {}).get("layers", [])
    s.check("with 16 for some it is reached, on integers alone", code == 0 and s.written() and not floats(answer) and
            worst(answer) >= 33, result)
    wide = [x for x in layers if x["int16_activations"]]
    s.check("some operations have int16 activations, others not", 0 < len(wide) < len(layers), [x["node"] for x in wide])
    s.check("with what they gain", all("8 bits alone" in x["int16_activations"] and "int16" in x["int16_activations"]
                                       for x in wide), wide)
    done = {x["done"] for x in answer["quantized"]["noise"]}
    s.check("the ranked table lists what was done", done == {"", "int16 activations"}, done)
    listed = cli.call(s.sinter, "inspect", s.path("q.sinter"), "--steps").out
    steps = [line.split() for line in listed.splitlines() if line.startswith("0.")]
    kinds = {x[1] for x in steps}
    s.check("between them it is requantized", "QRequantize" in kinds and kinds <= {
        "Quantize", "Transpose", "View", "QConv", "QDepthwiseConv", "QPRelu", "QRequantize", "QMean", "QFullyConnected"}, kinds)
    net = [x for x in np.load(s.path("e.npz")).items() if x[0] != "label"]
    np.savez(s.path("x.npz"), **{name: a[:8] for name, a in net})
    bits = []
    for more in [], ["--backend", "reference"], ["--backend", "simd"], ["--threads", "3"]:
        ran = cli.call(s.sinter, "run", s.path("q.sinter"), "--inputs", s.path("x.npz"), "--each", "--outputs",
                       s.path("y.npz"), "--quiet", *more)
        bits.append(b"".join(a.tobytes() for a in np.load(s.path("y.npz")).values()) if ran.code == 0 else ran.why())
    s.check("with the same bits on every backend", len(set(bits)) == 1 and isinstance(bits[0], bytes), bits[-1][:200])
    first = open(s.path("q.sinter"), "rb").read()
    s.convert("prelu", *wanted)
    s.check("and the same file twice", open(s.path("q.sinter"), "rb").read() == first)
    evaluate = ["--evaluate", s.path("e.npz"), "--label", "label"]
    code, answer, result = s.convert("outliers", "--require-int8", "--force-int8", "--max-drop", "0", *evaluate)
    q = answer.get("quantized", {})
    s.check("--max-drop, too", code == 0 and q["accuracy"] >= q["float_accuracy"] and not floats(answer) and
            any(x["int16_activations"] for x in q["layers"]), result)
    code, answer, result = s.convert("prelu", "--require-int8", "--force-int8", "--min-sqnr", "120")
    s.check("what 16 bits do not reach either is refused", code == 1 and not s.written(), result)


def repeatable(s):
    files = []
    for out in ("a.sinter", "b.sinter"):
        s.convert("attention", out=out)
        files.append(open(s.path(out), "rb").read())
    s.check("the same bytes twice", files[0] == files[1])


def everything(s):
    target_sqnr(s)
    accuracy(s)
    evaluation(s)
    narrow_output(s)
    users_choice(s)
    costs(s)
    sixteen_bits(s)
    repeatable(s)


if __name__ == "__main__":
    sys.exit(suite.run(Suite, everything, __doc__))
