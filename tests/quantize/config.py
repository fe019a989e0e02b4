#!/usr/bin/env python3
"""--quantize-config: a run takes the settings that an earlier one reports, and encodings of other tools. Costs 10 s.

    config.py [--sinter PROGRAM]
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
import sinter_cli as cli  # noqa: E402
import suite  # noqa: E402

NET = "prelu"


class Suite(suite.Suite):
    def convert(self, *more, net=NET, mode="int8", out="q.sinter"):
        """The result of the program, and its answer as JSON."""
        calib, _ = nets_data.data(net)
        np.savez(self.path("c.npz"), **calib)
        if os.path.exists(self.path(out)):
            os.remove(self.path(out))
        result = cli.call(self.sinter, "convert", os.path.join(HERE, "nets", net + ".onnx"), "-o", self.path(out), "--quantize",
                          mode, "--calibrate", self.path("c.npz"), "--json", *more, timeout=120)
        return result, json.loads(result.out) if result.out.strip() else {}

    def given(self, settings, more=(), **how):
        with open(self.path("given.json"), "w") as f:
            f.write(settings if isinstance(settings, str) else json.dumps(settings))
        return self.convert("--quantize-config", self.path("given.json"), *more, **how)

    def refused(self, what, settings, *words, **how):
        result, _ = self.given(settings, **how)
        text = result.out + result.err
        self.check(what, result.code == 2 and all(w in text for w in ("--quantize-config", *words)) and
                   not os.path.exists(self.path("q.sinter")), text)


def settings_of(answer):
    return answer["quantized"]["quantize_config"]


def again(s):
    """What a run states is what the next one makes of it."""
    for net, more in ("prelu", []), ("attention", []), ("prelu", ["--force-int8", "--require-int8"]):
        result, first = s.convert("--report", s.path("first.json"), *more, net=net)
        s.check(f"{net} {more}: converts", result.code == 0, result.why())
        result, second = s.convert("--quantize-config", s.path("first.json"), *more, net=net)
        s.check(f"{net} {more}: and by its report", result.code == 0, result.why())
        a, b = settings_of(first), settings_of(second)
        s.check(f"{net} {more}: the same operations", a["layers"] == b["layers"], (a["layers"], b["layers"]))
        ranges = {name: v for name, v in a["values"].items() if "low" in v}
        s.check(f"{net} {more}: the same ranges and bits", all(b["values"].get(n) == v for n, v in ranges.items()),
                (a["values"], b["values"]))
        s.check(f"{net} {more}: which are not all rescaled", len(ranges) > 0, a["values"])


def own(s):
    _, plain = s.convert()
    config = settings_of(plain)
    name = next(n for n, v in config["values"].items() if "low" in v)
    _, answer = s.given({"sinter_quantize_config": 1, "techniques": [], "values": {name: {"low": -3.0, "high": 5.0}}})
    value = settings_of(answer)["values"][name]
    s.check("a range is taken", abs(value["high"] - value["low"] - 8) < 1e-5 and abs(value["low"] + 3) < 8 / 255, value)
    _, answer = s.given({"sinter_quantize_config": 1, "techniques": [], "values": {name: {"bits": 16}}})
    value = settings_of(answer)["values"][name]
    s.check("so are 16 bits", value["bits"] == 16 and any(x["int16_activations"] for x in answer["quantized"]["layers"]), value)
    layer = next(n for n, kind in config["layers"].items() if kind == "int8")
    _, answer = s.given({"sinter_quantize_config": 1, "layers": {layer: "float"}})
    s.check("an operation is kept in float", settings_of(answer)["layers"].get(layer) == "float", settings_of(answer))
    _, answer = s.given({"sinter_quantize_config": 1, "techniques": []})
    s.check("techniques that are not listed are not used", answer["quantized"]["techniques"] == [], answer)
    head = {"sinter_quantize_config": 1}
    s.refused("another version", {"sinter_quantize_config": 2}, "version 1")
    s.refused("a wrong key", {**head, "value": {}}, "'value'")
    s.refused("a name of no value", {**head, "values": {name + "x": {"bits": 8}}}, name + "x", "did you mean")
    s.refused("a name of no operation", {**head, "layers": {"nothing": "float"}}, "'nothing'")
    s.refused("4 bits", {**head, "values": {name: {"bits": 4}}}, "8 or 16")
    s.refused("half a range", {**head, "values": {name: {"low": -1}}}, "both")
    s.refused("a range without 0", {**head, "values": {name: {"low": 1, "high": 2}}}, "contains 0")
    s.refused("a range that is text", {**head, "values": {name: {"low": "a", "high": 2}}}, "not a number")
    s.refused("a wrong word", {**head, "layers": {layer: "int4"}}, "int4")
    s.refused("an unknown technique", {**head, "techniques": ["smoothe"]}, "smooth")
    s.refused("8 bits with int8x16", {**head, "values": {name: {"bits": 8}}}, "int8x16", mode="int8x16")
    s.refused("weights alone", head, "int8x16", mode="int8w")


def foreign(s):
    _, plain = s.convert()
    values = settings_of(plain)["values"]
    name = next(iter(values))
    aimet = {"activation_encodings": {name: [{"bitwidth": 8, "dtype": "int", "is_symmetric": "False", "min": -3.0, "max": 5.0,
                                              "offset": -96, "scale": 8 / 255}], "gone": [{"bitwidth": 8, "min": 0, "max": 1}]},
             "param_encodings": {"w": []}, "version": "0.6.1"}
    newer = {"version": "1.0.0", "activation_encodings": [
        {"name": name, "bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": False, "offset": [-96], "scale": [8 / 255]}],
        "param_encodings": [{"name": "w"}]}
    newest = {"version": "2.0.0", "encodings": [
        {"name": name, "output_dtype": "uint8", "y_scale": 8 / 255, "y_zero_point": 96},
        {"name": "w", "output_dtype": "int8", "y_scale": [0.1, 0.2]}]}
    torch = {name + ".activation_post_process.min_val": -3.0, name + ".activation_post_process.max_val": 5.0}
    for what, settings in ("AIMET 0.6", aimet), ("AIMET 1.0", newer), ("AIMET 2.0", newest), ("observers", torch), (
            "nested observers", {name: {"min_val": [-3.0], "max_val": 5.0}}):
        result, answer = s.given(settings, more=["--disable-technique", "leave-float"])
        value = settings_of(answer)["values"].get(name, {}) if answer else {}
        s.check(f"{what}: the range is taken", result.code == 0 and abs(value.get("high", 0) - value.get("low", 0) - 8) < 1e-4 and
                abs(value["low"] + 3) < 8 / 255, (value, result.why()))
    node = next(x["node"] for x in plain["quantized"]["layers"] if x["integer"] and x["op"] == "Conv")
    with open(s.path("given.json"), "w") as f:
        json.dump(aimet, f)
    calib = ["--quantize", "int8", "--calibrate", s.path("c.npz"), "--quantize-config", s.path("given.json")]
    text = cli.call(s.sinter, "convert", os.path.join(HERE, "nets", NET + ".onnx"), "-o", s.path("q.sinter"), *calib).out
    s.check("the summary counts what was left out", "1 values" in text and "1 names belong to no value" in text and
            "1 encodings of parameters" in text, text)
    result, answer = s.given({node: {"min_val": -3.0, "max_val": 5.0}})
    s.check("the name of a node will do", result.code == 0, result.why())
    s.refused("nothing of 8 or 16 bits", {"activation_encodings": {name: [{"bitwidth": 4, "min": 0, "max": 1}]}}, "8 or 16 bits")
    for what, text in ("no JSON", "{"), ("a list", "[]"), ("a number", "3"), ("an empty object", "{}"), ("nothing", ""), (
            "deep nesting", "[" * 100000 + "]" * 100000), ("an object in its place", '{"activation_encodings": 3}'), (
            "numbers beyond all", '{"a": {"min_val": -1e999, "max_val": 1e999}}'):
        s.refused(what, text)
    missing, _ = s.convert("--quantize-config", s.path("missing.json"))
    s.check("a missing file has its own exit code", missing.code == 6, missing.why())


def everything(s):
    again(s)
    own(s)
    foreign(s)


if __name__ == "__main__":
    sys.exit(suite.run(Suite, everything, __doc__))
