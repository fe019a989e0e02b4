#!/usr/bin/env python3
"""sinter convert --report: one page that is whole by itself, and the same as JSON; look.py looks at it in a browser.

    report.py [--sinter PROGRAM]
"""
import html
import json
import os
import re
import sys
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
import look  # noqa: E402
import suite  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

LONG = "features/" + "a_name_without_a_place_to_break_it_" * 4  # wider than a phone
ODD = 'a "<b>&\u00e9\' name</script>'  # what a name may hold


def network():
    """A branch that is joined again, and names that have to be escaped."""
    r = np.random.default_rng(7)

    def weights(name, *dims):
        return numpy_helper.from_array(r.normal(0, (2 / np.prod(dims[1:])) ** 0.5, dims).astype("f"), name)

    nodes = [helper.make_node("Conv", ["x", "w0"], ["c0"], name="stem", pads=[1] * 4), helper.make_node("Relu", ["c0"], [ODD]),
             helper.make_node("Conv", [ODD, "w1"], ["c1"], name="left"), helper.make_node("HardSwish", ["c1"], ["left"]),
             helper.make_node("Conv", [ODD, "w2"], ["c2"], name="right", pads=[1] * 4), helper.make_node("Relu", ["c2"], ["right"]),
             helper.make_node("Add", ["left", "right"], ["sum"], name="join"),
             helper.make_node("GlobalAveragePool", ["sum"], ["mean"]), helper.make_node("Flatten", ["mean"], [LONG]),
             helper.make_node("Gemm", [LONG, "w3"], ["scores"], name="head", transB=1),
             helper.make_node("Softmax", ["scores"], ["y"])]
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 5])],
        [weights("w0", 8, 3, 3, 3), weights("w1", 8, 8, 1, 1), weights("w2", 8, 8, 3, 3), weights("w3", 5, 8)]),
        opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    return model


class Suite(suite.Suite):
    def report(self, kind, *more):
        result = cli.call(self.sinter, "convert", self.path("m.onnx"), "-o", self.path("m.sinter"), "--quiet", "--report",
                        self.path("r" + kind), *more, timeout=120)
        self.check(f"{' '.join(more[:2]) or 'float'}: {kind} is written", result.code == 0, result.why())
        with open(self.path("r" + kind), encoding="utf-8") as f:
            return f.read()

    def page(self, *more):
        """The page with everything that any page must be, and the report that it shows."""
        text, data = self.report(".html", *more), json.loads(self.report(".json", *more))
        what = " ".join(more[:2]) or "float"
        try:
            root = xml.etree.ElementTree.fromstring(text)
        except xml.etree.ElementTree.ParseError as e:
            self.check(f"{what}: the page is well formed", False, e)
            return text, data, ""
        self.check(f"{what}: nothing comes from elsewhere", not re.search(r"http|//[a-z]|url\(|@import|\bsrc=|<link", text),
                   re.findall(r".{30}(?:http|//[a-z]|url\(|@import|\bsrc=|<link).{30}", text))
        targets = {e.get("id") for e in root.iter() if e.get("id")}
        ids = [e.get("id") for e in root.iter() if e.get("id")]
        self.check(f"{what}: ids are unique", len(ids) == len(set(ids)))
        links = {e.get("href")[1:] for e in root.iter("a")}
        self.check(f"{what}: every link leads somewhere", links <= targets, links - targets)
        network = [e for e in root.iter("svg") if e.get("class") == "network"]
        shown = "\n".join("".join(e.itertext()) for e in network)
        for step in data["plan"]:
            names = [data["values"][v]["name"] for v in step["outputs"] if v >= 0]
            if not all(n in shown for n in names):
                self.check(f"{what}: the drawing has step {step['op']}", False, names)
        boxes = [e for e in network[0].iter("g")] if network else []
        ports = sum(v["kind"] in ("input", "output") for v in data["values"])
        self.check(f"{what}: a box for every step, input and output", len(boxes) == len(data["plan"]) + ports, len(boxes))
        places = [(float(e.find("rect").get("x")), float(e.find("rect").get("y")), float(e.find("rect").get("width")))
                  for e in boxes]
        apart = all(a[1] != b[1] or abs(a[0] - b[0]) >= a[2] for i, a in enumerate(places) for b in places[:i])
        self.check(f"{what}: no box covers another", apart, places)
        memory = [e for e in root.iter("svg") if e.get("class") == "memory"]
        held = "\n".join("".join(e.itertext()) for e in memory)
        self.check(f"{what}: memory shows every value that has a place",
                   all(data["values"][p["value"]]["name"] in held for p in data["placements"] if p["bytes"] > 0))
        return text, data, "".join(root.itertext())


def run(s):
    onnx.save(network(), s.path("m.onnx"))
    np.savez(s.path("d.npz"), x=np.random.default_rng(1).normal(0, 1, (24, 3, 12, 12)).astype("f"))
    pages = {}

    def keep(name, page):
        pages[name] = s.path(name + ".html")
        with open(pages[name], "w", encoding="utf-8") as f:
            f.write(page)

    keep("float", s.page()[0])
    text, data, words = s.page("--quantize", "int8", "--calibrate", s.path("d.npz"))
    rows = {x["value"]: x for x in data.get("noise", [])}
    s.check("noise of every layer", {ODD, "left", "right", "sum"} <= set(rows), list(rows))
    s.check("rows are linked from the drawing", all(f'href="#{x["id"]}"' in text for x in data["noise"]))
    s.check("names are escaped", ODD in words and html.escape(ODD, quote=False) not in words)
    for x in data["noise"]:
        if "scale" not in x:
            continue
        h = x["histogram"]
        s.check(f"histogram and range of {x['value']}", sum(h["counts"]) > 0 and h["low"] <= x["chosen_low"] + 1e-6 and
                h["high"] >= x["chosen_high"] - 1e-6 and abs(x["chosen_high"] - x["chosen_low"] - 255 * x["scale"]) < 1e-3, x)
    s.check("a graph of every range", text.count("<figure>") == sum("scale" in x for x in data["noise"]))
    s.check("the float layer has its reason", all(x["reason"] in words for x in data["quantized"]["layers"] if not x["integer"]))
    s.check("casts are listed", any(p["op"] == "Quantize" for p in data["plan"]) and "Casts at run time" in words)
    keep("int8", text)
    keep("int8w", s.page("--quantize", "int8w")[0])
    lines = s.report(".jsonl", "--quantize", "int8", "--calibrate", s.path("d.npz")).splitlines()
    s.check("lines of JSON", all(json.loads(x) is not None for x in lines) and any("own_sqnr_db" in x for x in lines))
    first = s.report(".html", "--quantize", "int8", "--calibrate", s.path("d.npz"))
    s.check("the same page twice", first == text)
    memory = cli.call(s.sinter, "inspect", s.path("m.sinter"), "--memory", "--html", s.path("memory.html"))
    s.check("the page of the memory is written", memory.code == 0, memory.why())
    # Values that share memory while both are held, whose names met.
    np.savez(s.path("digits.npz"), image=np.random.default_rng(0).uniform(0, 16, (64, 1, 8, 8)).astype("f"))
    digits = os.path.join(cli.REPO, "examples", "digits", "digits.onnx")
    made = cli.call(s.sinter, "convert", digits, "-o", s.path("digits.sinter"), "--quantize", "int8", "--calibrate",
                    s.path("digits.npz"), "--force-int8", "--report", s.path("digits.html"), timeout=120)
    s.check("the page of the digits is written", made.code == 0, made.why())
    look.look(s, pages | {"memory": s.path("memory.html"), "digits": s.path("digits.html")})


if __name__ == "__main__":
    sys.exit(suite.run(Suite, run, __doc__))
