#!/usr/bin/env python3
"""The report of a quantization: the SQNR with its interval, why an output's is low, and what each remedy gains.

    closing_table.py [--sinter PROGRAM]
"""
import json
import os
import re
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

TECHNIQUES = ["equalize", "depthwise-scales", "smooth", "function-ranges", "measured-ranges", "weight-steps",
              "adaptive-rounding", "bias-correction", "leave-float", "wide-activations", "refit"]
PLAIN = [x for name in TECHNIQUES for x in ("--disable-technique", name)]
MOST_LINES = 12
LITTLE = 20  # dB


def many_outputs(count):
    """A value of which one channel is a thousand times as large as the others; every output reads only these."""
    r = np.random.default_rng(4)
    factors = np.array([1] + [0.001] * 7)
    constants = [numpy_helper.from_array((r.normal(0, 0.3, (8, 3, 3, 3)) * factors[:, None, None, None]).astype("f"), "w")]
    nodes = [helper.make_node("Conv", ["x", "w"], ["uneven"], name="first", pads=[1] * 4)]
    outputs = []
    for i in range(count):
        w = r.normal(0, 0.4, (4, 8, 1, 1)) / factors[None, :, None, None]
        w[:, 0] = 0
        constants.append(numpy_helper.from_array(w.astype("f"), f"w{i}"))
        nodes.append(helper.make_node("Conv", ["uneven", f"w{i}"], [f"y{i}"], name=f"head{i}"))
        outputs.append(helper.make_tensor_value_info(f"y{i}", onnx.TensorProto.FLOAT, [1, 4, 8, 8]))
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 8, 8])], outputs, constants),
        opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    return model


class Suite(suite.Suite):
    def call(self, model, data, *more, json_too=True):
        """The lines of the closing table from the mode on, and the JSON's part on quantization."""
        args = ["convert", model, "-o", self.path("q.sinter"), "--calibrate", data, *more]
        plain = cli.call(self.sinter, *args, timeout=120)
        self.check(f"{os.path.basename(model)} {' '.join(more[:2])} converts", plain.code == 0, plain.why())
        lines = plain.out.splitlines()
        starts = [i for i, x in enumerate(lines) if re.match(r"int\d+\w*\s{4}", x)]
        ends = [i for i, x in enumerate(lines) if x.startswith("file ")]
        table = lines[starts[0]:ends[0]] if starts and ends else []
        answer = json.loads(cli.call(self.sinter, *args, "--json", timeout=120).out) if json_too else {}
        return table, answer.get("quantized", {})

    def net(self, name, *more):
        calib, _ = nets_data.data(name)
        np.savez(self.path("c.npz"), **calib)
        return self.call(os.path.join(HERE, "nets", name + ".onnx"), self.path("c.npz"), *more)


def low_outputs(s):
    table, q = s.net("attention", "--quantize", "int8", "--force-int8", *PLAIN)
    text = "\n".join(table)
    low = {x["name"]: x for x in q.get("low", [])}
    s.check("the output under 20 dB is named", set(low) == {x["name"] for x in q["outputs"] if x["sqnr_db"] < LITTLE} and low, q)
    first = next(iter(low.values()), {})
    s.check("with the largest part of its noise", first.get("value") and first["alone_db"] < 25, first)
    s.check("and the cause", "channels use fewer than 8 levels" in first.get("cause", ""), first)
    s.check("the table has the same", "cause " in text and first.get("cause", "-") in text and first.get("value", "-") in text, text)
    s.check("remedies are measured", len(q["remedies"]) >= 2 and all(
        abs(x["gain_db"] - x["after_db"] + x["before_db"]) < 1e-6 for x in q["remedies"]), q["remedies"])
    s.check("the best to try comes first", q["remedies"][0]["after_db"] >= LITTLE, q["remedies"])
    s.check("the table names it with its gain", re.search(rf"next +{re.escape(q['remedies'][0]['flags'])} wins "
                                                          rf"{q['remedies'][0]['gain_db']:.1f} dB", text), text)
    s.check("a dozen lines at most", 0 < len(table) <= MOST_LINES, text)
    for remedy in q["remedies"]:
        flags = remedy["flags"].split()
        mode = [] if "--quantize" in flags else ["--quantize", "int8"]
        off = [] if "int8w" in flags else ["--force-int8", *PLAIN]
        _, then = s.net("attention", *mode, *flags, *off)
        got = min(x["sqnr_db"] for x in then["outputs"])
        s.check(f"{remedy['flags']} gives what was reported", abs(got - remedy["after_db"]) < 3, (got, remedy))
    _, q = s.net("attention", "--quantize", "int8")
    s.check("a good result has no findings", q["low"] == [] and q["remedies"] == [], q)


def integers_outside(s):
    """What is proposed works beside --input-type and --output-type, or names the ones that have to go."""
    ports = ["--input-type", "int8", "--output-type", "int8"]
    _, q = s.net("attention", "--quantize", "int8", "--force-int8", *PLAIN, *ports)
    s.check("remedies are measured for integers outside, too", len(q["remedies"]) >= 2, q["remedies"])
    for remedy in q["remedies"]:
        flags, _, without = remedy["flags"].partition(" without ")
        s.check(f"{remedy['flags']} takes away flags that were given", without in ("", "--input-type int8 and --output-type int8"), remedy)
        mode = [] if "--quantize" in flags else ["--quantize", "int8"]
        off = [] if "int8w" in flags else ["--force-int8", *PLAIN]
        s.net("attention", *mode, *flags.split(), *off, *([] if without else ports))


def outputs_of_integers(s):
    """Class numbers are counted where they are right; scores decide."""
    r = np.random.default_rng(5)
    constants = [numpy_helper.from_array(r.normal(0, 0.3, dims).astype("f"), name)
                 for name, dims in (("w", (8, 3, 3, 3)), ("v", (4, 8, 3, 3)))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Conv", ["c", "v"], ["y"]),
             helper.make_node("ArgMax", ["y"], ["best"], axis=1)]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None),
               helper.make_tensor_value_info("best", onnx.TensorProto.INT64, None)]
    np.savez(s.path("x.npz"), x=r.normal(0, 1, (20, 3, 16, 16)).astype("f"))
    flags = ["--quantize", "int8", "--force-int8", "--evaluate", s.path("x.npz"), "--metric", "sqnr"]
    for name, given in (("both", outputs), ("ids", outputs[1:])):
        model = helper.make_model(helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 16, 16])], given, constants),
            opset_imports=[helper.make_opsetid("", 18)])
        model.ir_version = 8
        onnx.save(model, s.path(name + ".onnx"))
        table, q = s.call(s.path(name + ".onnx"), s.path("x.npz"), *flags, "--report", s.path("r.html"))
        for what, list_ in (("held out", q["outputs"]), ("evaluated", q["evaluation"]["outputs"])):
            best = next(x for x in list_ if x["name"] == "best")
            s.check(f"{name}, {what}: the share of equal integers", best["sqnr_db"] is None and 0.9 < best["equal"] < 1, best)
        text = "\n".join(table)
        s.check(f"{name}: the table has it", re.search(r"equal +9\d\.\d+ % of the integers in 'best', on 4 samples held out", text), text)
        with open(s.path("r.html"), encoding="utf-8") as f:
            card = re.search(r"<b>([^<]*)</b><span>(SQNR|equal integers), (worst output )?'(\w+)'", f.read())
        s.check(f"{name}: and the page", card and card.groups()[1:] == (("SQNR", "worst output ", "y") if name == "both" else
                                                                         ("equal integers", None, "best")), card)
        if name == "both":
            y = q["outputs"][0]
            s.check("the table, the evaluation and --min-sqnr are about the scores", y["name"] == "y" and "noise in 'best'" not in text and
                    "worst output 'y'" in text, text)
            _, q = s.call(s.path("both.onnx"), s.path("x.npz"), *flags[:3], "--min-sqnr", f"{y['sqnr_db'] - 2:.0f}")
            s.check("integers suffice for what they have", all(x["integer"] for x in q["layers"] if x["op"] == "Conv"), q["layers"])


def weights_only(s):
    table, q = s.net("attention", "--quantize", "int4w")
    low = q["low"]
    s.check("weights of 4 bits: the layer and its bits", len(low) == 1 and low[0]["node"] and "4 bits" in low[0]["cause"], low)
    best = q["remedies"][0]
    s.check("weights of 8 bits are the remedy", best["flags"] == "--quantize int8w" and best["gain_db"] > 5, q["remedies"])
    s.check("the table names it", any("--quantize int8w wins" in x for x in table), table)
    table, q = s.net("outliers", "--quantize", "int4w")
    s.check("without noise there is no number for it", any("is exact" in x for x in table), table)


def many(s):
    onnx.save(many_outputs(9), s.path("many.onnx"))
    np.savez(s.path("many.npz"), x=np.random.default_rng(1).normal(0, 1, (8, 3, 8, 8)).astype("f"))
    table, q = s.call(s.path("many.onnx"), s.path("many.npz"), "--quantize", "int8", "--force-int8", *PLAIN)
    s.check("every output is low", len(q["low"]) == 9, q["low"])
    s.check("all for the same cause", {x["value"] for x in q["low"]} == {"uneven"}, q["low"])
    s.check("7 of 8 channels", all("7 of 8 channels use fewer than 8 levels" in x["cause"] for x in q["low"]), q["low"])
    s.check("reported once, for all", sum(x.startswith("cause") for x in table) == 1 and any("and 7 others" in x for x in table), table)
    s.check("a dozen lines for nine outputs", len(table) <= MOST_LINES, table)
    s.check("every output's gain is in the JSON", all(len(x["outputs"]) == 9 for x in q["remedies"]), q["remedies"])
    with_page = cli.call(s.sinter, "convert", s.path("many.onnx"), "-o", s.path("q.sinter"), "--quantize", "int8", "--calibrate",
                         s.path("many.npz"), "--force-int8", *PLAIN, "--report", s.path("r.html"), timeout=120)
    page = open(s.path("r.html"), encoding="utf-8").read() if with_page.code == 0 else ""
    s.check("the page has it too", "Low SQNR" in page and "7 of 8 channels" in page, with_page.why())


def beyond_reach(s):
    calib, _ = nets_data.data("attention")
    np.savez(s.path("c.npz"), **calib)
    outcome = cli.call(s.sinter, "convert", os.path.join(HERE, "nets", "attention.onnx"), "-o", s.path("n.sinter"), "--quantize", "int8",
                    "--calibrate", s.path("c.npz"), "--min-sqnr", "190", timeout=120)
    s.check("a target out of reach: the best result is reported",
            outcome.code == 1 and re.search(r"--min-sqnr 190: .* gives \d+\.\d dB", outcome.err), outcome.err)


def held_out(s):
    """The reported SQNR is that of samples by which nothing was chosen, with its interval."""
    r = np.random.default_rng(8)
    constants = [numpy_helper.from_array(r.normal(0, (2 / n) ** 0.5, (n, m)).astype("f"), name)
                 for name, n, m in (("w0", 24, 64), ("w1", 64, 64), ("w2", 64, 3))]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "w1"], ["c"]), helper.make_node("Relu", ["c"], ["d"]),
             helper.make_node("MatMul", ["d", "w2"], ["y"])]
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 24])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 3])], constants),
        opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    onnx.save(model, s.path("tabular.onnx"))
    # A table whose columns have long tails: what comes later reaches further.
    x = r.standard_t(6, (1060, 24)).astype("f")
    np.savez(s.path("few.npz"), x=x[:60])
    np.savez(s.path("later.npz"), x=x[60:])
    table, q = s.call(s.path("tabular.onnx"), s.path("few.npz"), "--quantize", "int8", "--force-int8", "--evaluate", s.path("later.npz"),
                      "--metric", "sqnr")
    reported, later = q["outputs"][0], q["evaluation"]["outputs"][0]["sqnr_db"]
    s.check("one sample in five is held out", q["held_out"] and 10 <= q["measured_samples"] <= 12 and
            q["samples"] + q["measured_samples"] == 60, (q["samples"], q["measured_samples"]))
    s.check("the file is fitted to all in the end", q["fitted_samples"] == 60 and
            any(x["name"] == "refit" and x["kept"] for x in q["techniques"]), (q["fitted_samples"], q["techniques"]))
    s.check("the table has that, and what the interval is of", any("for data of this kind" in line and "fitted to all 60" in line
                                                                       for line in table), table)
    _, bare = s.call(s.path("tabular.onnx"), s.path("few.npz"), "--quantize", "int8", "--force-int8", "--disable-technique", "refit")
    s.check("the judges judged a file without them", bare["outputs"] == q["outputs"] and bare["fitted_samples"] == q["samples"],
            (bare["outputs"], q["outputs"]))
    s.check("the interval holds what comes later", reported["low_db"] < later < reported["high_db"], (reported, later))
    s.check("and is narrow enough to be of use", reported["high_db"] - reported["low_db"] < 20, reported)
    signal = r"dB \(\d+\.\d to \d+\.\d\) over noise in 'y', median sample \d+\.\d, worst \d+\.\d, on 1\d samples held out"
    s.check("the table has them", any(re.search(signal, line) for line in table), table)
    s.check("the worst sample is below the median one", reported["worst_sample_db"] < reported["median_sample_db"], reported)
    s.check("more than 10 dB are said to be in doubt", (reported["high_db"] - reported["low_db"] > 10) ==
            any("(cannot tell from 1" in line for line in table), table)
    s.check("all multiply-adds on integers", q["integer_multiply_adds_share"] == 1 and "100 % of the multiply-adds" in table[0], table)
    np.savez(s.path("three.npz"), x=x[:3])
    outcome = cli.call(s.sinter, "convert", s.path("tabular.onnx"), "-o", s.path("q.sinter"), "--quantize", "int8", "--calibrate",
                    s.path("three.npz"), timeout=120)
    s.check("too few to hold one out", outcome.code == 0 and "samples that also chose the ranges" in outcome.out and
            "can be held out" in outcome.err, outcome.why())


def streamed(s):
    """A command may write more samples than are kept."""
    r = np.random.default_rng(9)
    w = numpy_helper.from_array(r.normal(0, 0.1, (4, 3, 8, 8)).astype("f"), "w")
    model = helper.make_model(helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["a"], strides=[8, 8]), helper.make_node("Relu", ["a"], ["y"])], "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 4, 28, 28])], [w]),
        opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    onnx.save(model, s.path("large.onnx"))
    for count in (13, 14, 70):
        program = ("import sys, numpy as n; r = n.random.default_rng(1); "
                   f"[n.save(sys.stdout.buffer, r.normal(0, 1, (1, 3, 224, 224)).astype('f')) for _ in range({count})]")
        outcome = cli.call(s.sinter, "convert", s.path("large.onnx"), "-o", s.path("q.sinter"), "--quantize", "int8", "--force-int8",
                        "--calibrate", f'cmd:{sys.executable} -c "{program}"', "--json", timeout=120)
        q = json.loads(outcome.out)["quantized"] if outcome.code == 0 else {}
        s.check(f"{count} samples from a command", outcome.code == 0 and q["outputs"][0]["sqnr_db"] > 30 and
                q["held_out"] == (count > 13), outcome.why())


def doubtful_data(s):
    """Data that cannot be right are named, and good data are not."""
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("Mul", ["rows", "time"], ["a"]),
         helper.make_node("MatMul", ["a", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [1, 20]), helper.make_tensor_value_info("time", onnx.TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 20, 4])],
        [numpy_helper.from_array(np.random.default_rng(2).normal(0, 1, dims).astype("f"), name)
         for name, dims in (("table", (50, 16)), ("w", (16, 4)))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    onnx.save(model, s.path("ids.onnx"))
    ids = np.random.default_rng(3).integers(0, 50, (32, 20))
    time = np.geomspace(0.001, 999, 32).astype("f")[:, None]

    def convert(**arrays):
        np.savez(s.path("d.npz"), **arrays)
        return cli.call(s.sinter, "convert", s.path("ids.onnx"), "-o", s.path("q.sinter"), "--quantize", "int8", "--strict",
                        "--calibrate", s.path("d.npz"), timeout=120)
    outcome = convert(ids=ids, time=time)
    s.check("times of any size are good data", outcome.code == 0, outcome.why())
    ids[17, 3] = 50
    outcome = convert(ids=ids, time=time)
    s.check("an id out of range: input and sample", outcome.code == 5 and "input 'ids', sample 17: 50 at [0,3]" in outcome.err and
            "'table'" in outcome.err, outcome.why())


def base(name):
    """The ONNX value that a value of the file represents."""
    for ending in (".int8", ".int16", ".scaled"):
        name = name.removesuffix(ending)
    return name


def ledger_of(s, what, model, data, *more):
    """The written file, replayed: the model's own types and the ledger's rows give the type of every value in it."""
    outcome = cli.call(s.sinter, "convert", model, "-o", s.path("l.sinter"), "--calibrate", data, *more, "--json", timeout=120)
    s.check(f"{what}: converted", outcome.code == 0, outcome.why())
    layers = json.loads(outcome.out)["quantized"]["layers"]
    listing, steps = (json.loads(cli.call(s.sinter, "inspect", s.path("l.sinter"), x, "--json").out) for x in ("--types", "--steps"))
    rows, steps = listing["decisions"], steps["steps"]
    graph = onnx.load(model).graph
    own = {t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    own |= {x.name for x in graph.input} | {x for n in graph.node for x in n.output}
    about = {}
    for row in rows:
        about.setdefault(row["value"], []).append(row)
    unled = []
    for v in listing["types"]:
        name = base(v["value"])
        if v["type"] not in ("int8", "int16", "int32", "int64") or name not in own:
            continue
        led = [r for r in about.get(name, []) if r["before"] == "float32" and r["after"] == v["type"]]
        if not led or ("scale" in v and not any(abs(r["scale"] - v["scale"]) < 1e-6 * v["scale"] and
                                                r["zero_point"] == v["zero_point"] for r in led)):
            unled.append((v, led))
    s.check(f"{what}: every value that became integers has its row, with scale and zero point", not unled, unled)
    kinds = {v["value"]: v["type"] for v in listing["types"]}
    wrong = [r for r in rows if r["effect"] == "kept" and kinds.get(r["value"], "float32") != r["after"]]
    s.check(f"{what}: what was kept has its type", not wrong, wrong)
    casts = [x for x in steps if x["op"] in ("Quantize", "Dequantize")]
    spoken = set(about) | {r["node"] for r in rows}
    bare = [x for x in casts if not {base(x["inputs"][0]), base(x["outputs"][0].rsplit(" ", 1)[0]), x["name"]} & spoken]
    s.check(f"{what}: no cast without a row", not bare, bare)
    floats = {(r["node"], r["op"]): r["reason"] for r in rows if r["rule"] == "quantize.float"}
    lost = [x for x in layers if not x["integer"] and not floats.get((x["node"], x["op"]), "").startswith(x["reason"] or "weights")]
    s.check(f"{what}: every operation in float has its row and reason", not lost, lost)
    return rows, steps


def ledger(s):
    for net in ("unet", "boxes", "attention", "lstm", "depthwise"):
        calib, _ = nets_data.data(net)
        np.savez(s.path("c.npz"), **calib)
        model = os.path.join(HERE, "nets", net + ".onnx")
        rows, _ = ledger_of(s, net, model, s.path("c.npz"), "--quantize", "int8")
        if net == "unet":
            ledger_of(s, "unet, int8x16", model, s.path("c.npz"), "--quantize", "int8x16")
            ledger_of(s, "unet, --force-int8 --min-sqnr 45", model, s.path("c.npz"), "--quantize", "int8", "--force-int8", "--min-sqnr", "45")
        if net == "lstm":  # trials that came to nothing leave no rows
            s.check("lstm: only what was done", sum(r["rule"] == "quantize.weights" for r in rows) == 2, rows)
    onnx.save(many_outputs(2), s.path("two.onnx"))
    np.savez(s.path("two.npz"), x=np.random.default_rng(1).normal(0, 1, (8, 3, 8, 8)).astype("f"))
    rows, steps = ledger_of(s, "two outputs", s.path("two.onnx"), s.path("two.npz"), "--quantize", "int8", "--force-int8")
    for name, words in (("uneven", "quantize.values"), ("head0", "quantize.weights"), ("head1", "quantize.weights"), ("x", "quantize.values")):
        outcome = cli.call(s.sinter, "explain", s.path("l.sinter"), name)
        s.check(f"explain {name}", outcome.code == 0 and words in outcome.out and "scale" in outcome.out, outcome.why())
    answer = json.loads(cli.call(s.sinter, "explain", s.path("l.sinter"), "uneven", "--json").out)
    s.check("explain --json: one row of the value, with its grid", sum("zero_point" in x for x in answer["types"]) == 1 and
            any(v.get("scale") == x.get("scale") for v in answer["values"] for x in answer["types"] if "scale" in x), answer)
    outcome = cli.call(s.sinter, "inspect", s.path("l.sinter"), "--types")
    s.check("inspect --types lists them", "[quantize.values]" in outcome.out and "[quantize.weights]" in outcome.out, outcome.out)
    calib, _ = nets_data.data("attention")
    np.savez(s.path("c.npz"), **calib)
    ledger_of(s, "attention, int8w", os.path.join(HERE, "nets", "attention.onnx"), s.path("c.npz"), "--quantize", "int8w")


def costs_of_the_device(s):
    """What is slower on integers follows --target, not the machine that converts."""
    kept, gains = {}, {}
    for name, flags in (("avx512vnni", []), ("avx2", ["--target", "x86_64+avx2"]), ("dotprod", ["--target", "aarch64"]),
                        ("armv7", ["--target", "armv7"]), ("portable", ["--target", "portable"]),
                        ("portable", ["--backends", "reference"]), ("cortex-m4", ["--target", "cortex-m4"])):
        _, q = s.net("depthwise", "--quantize", "int8", *flags)
        s.check(f"{flags}: the costs of {name}", q["cpu"] == name, q.get("cpu"))
        layers = [(x["node"], x["integer"]) for x in q["layers"]]
        s.check(f"{flags}: one choice for one table", kept.setdefault(name, layers) == layers, (kept[name], layers))
        gains[name] = sum(x["float_ns"] for x in q["layers"]) / sum(x["integer_ns"] for x in q["layers"])
    s.check("without dot products of bytes, integers gain less", gains["avx512vnni"] > 1.2 * gains["avx2"], gains)
    for name in ("portable", "cortex-m4"):
        _, q = s.net("depthwise", "--quantize", "int8", "--target", name, "--force-int8")
        forced = [(x["node"], x["integer"]) for x in q["layers"]]
        s.check(f"{name}: on the reference kernels all that can be are integers", kept[name] == forced, (kept[name], forced))
    _, q = s.net("depthwise", "--quantize", "int8", "--target", "x86_64+avx2", "--force-int8")
    s.check("every layer is computed on integers where they are asked for", sum(x["integer"] for x in q["layers"]) >= 11, q["layers"])
    s.check("every operation has both times", all(x["float_ns"] > 0 and x["integer_ns"] > 0 for x in q["layers"]), q["layers"])


def everything(s):
    costs_of_the_device(s)
    ledger(s)
    held_out(s)
    streamed(s)
    doubtful_data(s)
    low_outputs(s)
    integers_outside(s)
    outputs_of_integers(s)
    weights_only(s)
    many(s)
    beyond_reach(s)


if __name__ == "__main__":
    sys.exit(suite.run(Suite, everything, __doc__))
