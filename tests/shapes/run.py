#!/usr/bin/env python3
"""Several shape sets in one file: each entry against the file of its shapes alone, what they share, and what is refused.

    run.py [--sinter PROGRAM] [unittest options]

Needs numpy and onnx.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from program_case import ProgramCase, run_cases  # noqa: E402

WIDTH, HIDDEN = 32, 192
SETS = [(1, 16), (8, 24), (3, 1)]  # batch and seq


def text_of(sets):
    return "; ".join(f"batch={batch},seq={seq}" for batch, seq in sets)


def attention():
    """A layer of attention over [batch, seq, WIDTH], whose weights are the largest part of a file."""
    r = np.random.default_rng(1)
    weights = {"w0": (WIDTH, HIDDEN), "b0": (HIDDEN,), "wq": (HIDDEN, HIDDEN), "wk": (HIDDEN, HIDDEN), "w3": (HIDDEN, WIDTH)}
    node = helper.make_node
    nodes = [node("MatMul", ["x", "w0"], ["h0"], name="first"), node("Add", ["h0", "b0"], ["h1"]), node("Relu", ["h1"], ["h"]),
             node("MatMul", ["h", "wq"], ["q"], name="query"), node("MatMul", ["h", "wk"], ["k"], name="key"),
             node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"]), node("Add", ["s", "mask"], ["m"]),
             node("Softmax", ["m"], ["p"], axis=-1), node("MatMul", ["p", "h"], ["c"]), node("MatMul", ["c", "w3"], ["y"], name="last")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "attention",
                              [value("x", TensorProto.FLOAT, ["batch", "seq", WIDTH]), value("mask", TensorProto.FLOAT, ["batch", 1, "seq"])],
                              [value("y", TensorProto.FLOAT, ["batch", "seq", WIDTH])],
                              [numpy_helper.from_array((r.standard_normal(s) / 8).astype("f4"), n) for n, s in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def decoder(rows):
    """Attention over a cache of `rows` rows, into which a run writes those of seq tokens."""
    node, value = helper.make_node, helper.make_tensor_value_info
    nodes = [node("ScatterND", ["past.key", "at", "x"], ["present.key"]), node("ScatterND", ["past.value", "at", "x"], ["present.value"]),
             node("Transpose", ["present.key"], ["kt"], perm=[1, 0]), node("MatMul", ["x", "kt"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1),
             node("MatMul", ["p", "present.value"], ["y"])]
    caches = [value(f"{when}.{what}", TensorProto.FLOAT, [rows, 8]) for when in ("past", "present") for what in ("key", "value")]
    graph = helper.make_graph(nodes, "decoder", [value("x", TensorProto.FLOAT, ["seq", 8]), value("at", TensorProto.INT64, ["seq", 1])] + caches[:2],
                              [value("y", TensorProto.FLOAT, ["seq", 8])] + caches[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


class Case(ProgramCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.onnx = cls.path("attention.onnx")
        onnx.save(attention(), cls.onnx)
        r = np.random.default_rng(2)
        for batch, seq in SETS + [(2, 5)]:
            cli.save_npz(cls.data(batch, seq), {"x": r.standard_normal((batch, seq, WIDTH)).astype("f4"),
                                                "mask": np.where(r.random((batch, 1, seq)) < 0.2, -9, 0).astype("f4")})

    @classmethod
    def data(cls, batch, seq):
        return cls.path(f"x{batch}_{seq}.npz")

    def convert(self, name, *flags, **expected):
        out = self.path(name)
        r = self.call("convert", self.onnx, "-o", out, "--json", *flags, **expected)
        self.assertEqual(os.path.exists(out), r.code == 0)
        return out, json.loads(r.out) if r.code == 0 else r

    def inspect(self, path, *flags):
        return json.loads(self.call("inspect", path, "--json", *flags).out)

    def outputs(self, model, batch, seq, *flags):
        out = self.path("out.npz")
        self.call("run", model, "--inputs", self.data(batch, seq), "--outputs", out, *flags)
        return {name: (a.shape, a.tobytes()) for name, a in cli.load_npz(out).items()}

    def single(self, batch, seq, *flags):
        return self.convert(f"{batch}_{seq}.sinter", "--dim", f"batch={batch}", "--dim", f"seq={seq}", *flags)[0]


class Files(Case):
    def check(self, *flags):
        """The entries give the bits of the files of their own, and share what these have in common."""
        several, report = self.convert("several.sinter", "--shapes", text_of(SETS), *flags)
        facts = self.inspect(several)
        self.assertEqual([e["shapes"] for e in report["entries"]], text_of(SETS).split("; "))
        self.assertEqual([s["trial"]["done"] for s in report["shapes"]], [True] * len(SETS))
        for entry, (batch, seq) in enumerate(SETS):
            alone = self.single(batch, seq, *flags)
            self.assertEqual(self.outputs(several, batch, seq), self.outputs(alone, batch, seq))
            self.assertEqual(self.outputs(several, batch, seq, "--backend", "reference"),
                             self.outputs(alone, batch, seq, "--backend", "reference"))
            mine, own = facts["entries"][entry], self.inspect(alone)
            self.assertEqual(mine["inputs"][0]["shape"], [batch, seq, WIDTH])
            self.assertEqual(mine["arena_bytes"], own["arena_bytes"])
            self.assertEqual(mine["session_bytes"], own["session_bytes"])
            self.assertEqual(self.inspect(several, "--entry", entry)["arena_bytes"], own["arena_bytes"])
            self.assertLess(os.path.getsize(several), os.path.getsize(alone) + 3 * 4096)
            self.assertLess(facts["packed_weights_bytes"], 1.02 * own["packed_weights_bytes"] + 4096)
            self.assertEqual(mine["sharing_session_bytes"], own["sharing_session_bytes"])
        self.assertEqual(facts["shared_weight_bytes"], facts["weight_bytes"])
        return several

    def test_float(self):
        several = self.check()
        for batch, seq in SETS:
            self.call("compare", self.onnx, several, "--inputs", self.data(batch, seq), "--per-layer")

    def test_weights_in_8_bits(self):
        self.check("--quantize", "int8w")

    def test_integers(self):
        """The first set calibrates: its entry is that of the file of its own, and the others compute with its ranges and
        weights, so that a stack of samples gives what the samples give one by one."""
        r = np.random.default_rng(7)
        cli.save_npz(self.path("samples.npz"), {"x": r.standard_normal((24, 2, 16, WIDTH)).astype("f4"),
                                               "mask": np.zeros((24, 2, 1, 16), "f4")})
        stack = {"x": r.standard_normal((8, 16, WIDTH)).astype("f4"), "mask": np.zeros((8, 1, 16), "f4")}
        cli.save_npz(self.path("stack.npz"), stack)
        for mode in ("int8", "int8x16"):
            flags = ("--quantize", mode, "--calibrate", self.path("samples.npz"), "--force-int8")
            several, report = self.convert("several.sinter", "--shapes", "batch=2,seq=16; batch=8,seq=16; batch=3,seq=7", *flags,
                                           "--target", "portable")
            self.assertGreater(sum(layer["integer"] for layer in report["quantized"]["layers"]), 2)
            alone = self.single(2, 16, *flags, "--target", "portable")
            pair = {name: a[:2] for name, a in stack.items()}
            cli.save_npz(self.path("x2_16.npz"), pair)
            self.assertEqual(self.outputs(several, 2, 16), self.outputs(alone, 2, 16))
            cli.save_npz(self.path("x8_16.npz"), stack)
            self.call("run", several, "--inputs", self.path("x8_16.npz"), "--outputs", self.path("all.npz"))
            whole = cli.load_npz(self.path("all.npz"))["y"]
            for first in range(0, 8, 2):
                cli.save_npz(self.path("x2_16.npz"), {name: a[first:first + 2] for name, a in stack.items()})
                self.assertEqual(self.outputs(several, 2, 16)["y"][1], whole[first:first + 2].tobytes())
            cli.save_npz(self.path("x3_7.npz"), {"x": r.standard_normal((3, 7, WIDTH)).astype("f4"),  # as for the calibration
                                                 "mask": np.zeros((3, 1, 7), "f4")})
            self.call("compare", self.onnx, several, "--inputs", self.path("x3_7.npz"), "--entry", 2)
            facts = self.inspect(several)
            self.assertEqual(facts["shared_weight_bytes"], facts["weight_bytes"])
            self.assertLess(os.path.getsize(several), os.path.getsize(alone) + 3 * 8192)

    def test_two_targets(self):
        self.check("--target", "x86_64,portable" if os.uname().machine == "x86_64" else "aarch64,portable")

    def test_inputs_by_shape(self):
        sets = [f"x={b},{s},{WIDTH},mask={b},1,{s}" for b, s in SETS]
        by_shape, _ = self.convert("by_shape.sinter", "--shapes", "; ".join(sets))
        by_name, _ = self.convert("by_name.sinter", "--shapes", text_of(SETS))
        for batch, seq in SETS:
            self.assertEqual(self.outputs(by_shape, batch, seq), self.outputs(by_name, batch, seq))
        # The other dimension by --dim, one set alone, a semicolon at the end.
        one, _ = self.convert("one.sinter", "--shapes", "seq=16;", "--dim", "batch=1")
        self.assertEqual(self.outputs(one, 1, 16), self.outputs(by_name, 1, 16))

    def test_the_data_chooses(self):
        several, _ = self.convert("several.sinter", "--shapes", text_of(SETS))
        self.call("run", several, "--inputs", self.data(2, 5), code=5,
                  words=("no shape set of the file takes", "x float32[2,5,32]", "x float32[8,24,32]"))
        self.call("run", several, "--inputs", self.data(1, 16), "--entry", 1, code=5, words=("but the model takes",))
        self.call("run", several, "--inputs", self.data(1, 16), "--entry", 3, code=2, words=("the file has 3 shape sets",))
        times = json.loads(self.call("bench", several, "--inputs", self.data(8, 24), "--seconds", 0, "--json").out)
        self.assertEqual(times["entry"], 1)
        # Stacks of samples of the set with batch 1.
        x = cli.load_npz(self.data(8, 24))
        cli.save_npz(self.path("stack.npz"), {"x": x["x"][:, :16], "mask": x["mask"][:, :, :16]})
        self.call("run", several, "--inputs", self.path("stack.npz"), "--each", "--outputs", self.path("out.npz"))
        self.assertEqual(cli.load_npz(self.path("out.npz"))["y"].shape, (8, 16, WIDTH))

    def test_commands_of_several_sets(self):
        flags = ("--target", "x86_64", "--prefer-bfloat16") if os.uname().machine == "x86_64" else ()
        page = self.path("several.html")
        several, report = self.convert("several.sinter", "--shapes", "batch=1,seq=16; batch=8,seq=24", "--report", page, *flags)
        texts = [d["message"] for d in report["diagnostics"] if "bfloat16" in d["message"]]
        self.assertEqual(len(texts), len(set(texts)))
        self.assertEqual([(d["name"], d["size"], d["by"]) for d in report["open_dims"]],
                         [("batch", 1, "--shapes"), ("seq", 16, "--shapes"), ("batch", 1, "--shapes"), ("seq", 16, "--shapes")])
        text = " ".join(self.call("convert", self.onnx, "-o", several, "--shapes", "batch=1,seq=16; batch=8,seq=24", *flags).out.split())
        self.assertIn("open dim 'batch' is 1 in the first shape set, by --shapes", text)
        mixed = json.loads(self.call("convert", self.onnx, "-o", self.path("mixed.sinter"), "--shapes", "seq=16", "--dim", "batch=2",
                                     "--json").out)
        self.assertEqual({d["name"]: d["by"] for d in mixed["open_dims"]}, {"batch": "--dim", "seq": "--shapes"})
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("Shape sets", text)
        self.assertIn("<td>batch=8,seq=24</td>", text)
        for entry, shape in enumerate(("[1,16,", "[8,24,")):
            steps = json.loads(self.call("explain", several, "last", "--entry", entry, "--json").out)["steps"]
            self.assertIn(shape, steps[0]["outputs"][0])
            self.assertEqual(self.inspect(several, "--entry", entry)["multiply_adds"], report["entries"][entry]["multiply_adds"])
        self.call("explain", several, "last", "--entry", 2, code=2, words=("--entry 2", "2 shape sets"))
        tuned = self.path("tuned.sinter")
        for given, entries in ((), [0, 1]), (("--entry", 1), [1]), (("--inputs", self.data(8, 24)), [1]):
            r = cli.call(self.sinter, "tune", several, "-o", tuned, "--seconds", "0", "--json", *given, timeout=120)
            self.assertIn(r.code, (0, 1), r.why())  # 1: the machine was not quiet
            self.assertEqual(json.loads(r.out)["entries"], entries)
        self.call("tune", several, "-o", tuned, "--entry", 2, code=2, words=("--entry 2",))

    def test_signed(self):
        self.call("keygen", self.path("key"))
        signed, _ = self.convert("signed.sinter", "--shapes", text_of(SETS), "--sign", self.path("key.key"))
        self.outputs(signed, 8, 24, "--public-key", self.path("key.pub"))

    def test_arenas_are_limited_in_each(self):
        self.convert("limited.sinter", "--shapes", text_of(SETS), "--max-arena", 63000, code=1,
                     words=('with --shapes \\"batch=8,seq=24\\"', "--max-arena 63000"))


class States(Case):
    """tests/python/test_model.py runs a stream through several sets."""
    STATES = ("--state", "present.key=past.key", "--state", "present.value=past.value")

    def convert_decoder(self, rows, *flags, **expected):
        onnx.save(decoder(rows), self.path("decoder.onnx"))
        r = self.call("convert", self.path("decoder.onnx"), "-o", self.path("decoder.sinter"), "--json", *flags, **expected)
        return json.loads(r.out) if r.code == 0 else r

    def test_the_sets_have_one_state(self):
        for flags in (self.STATES, ("--state", "auto"), (*self.STATES, "--target", "portable"), (*self.STATES, "--max-arena", 8192)):
            report = self.convert_decoder(24, "--shapes", "seq=5; seq=1", *flags)
            self.assertEqual([s["input"] for s in report["states"]], ["past.key", "past.value"])
            facts = self.inspect(self.path("decoder.sinter"))
            self.assertEqual((facts["common_arena_bytes"], facts["common_state_bytes"]),
                             (max(e["arena_bytes"] - e["state_bytes"] for e in facts["entries"]), facts["state_bytes"]))
            self.assertEqual([facts["state_bytes"]] * 2, [self.inspect(self.path("decoder.sinter"), "--entry", e)["state_bytes"] for e in range(2)])
            for entry in range(2):
                self.call("compare", self.path("decoder.onnx"), self.path("decoder.sinter"), "--random", 2, "--entry", entry)

    def test_a_state_has_one_shape(self):
        onnx.save(decoder("rows"), self.path("open.onnx"))
        self.call("convert", self.path("open.onnx"), "-o", self.path("no.sinter"), "--shapes", "rows=8,seq=4; rows=16,seq=1", *self.STATES,
                  code=3, words=("--state present.key=past.key: the state is float32[8,8] with", "and float32[16,8] with", "--state present.value"))
        # A pair of auto that has one shape only where there is one token.
        value = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node("Identity", ["h_in"], ["i"]), helper.make_node("Add", ["i", "x"], ["h_out"])], "g",
                                  [value("x", TensorProto.FLOAT, ["seq", 4]), value("h_in", TensorProto.FLOAT, [1, 4])],
                                  [value("h_out", TensorProto.FLOAT, ["seq", 4])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), self.path("auto.onnx"))
        self.call("convert", self.path("auto.onnx"), "-o", self.path("no.sinter"), "--shapes", "seq=1; seq=3", "--state", "auto", code=3,
                  words=("--state h_out=h_in: the two are not of one shape with --shapes \"seq=3\"",))
        self.convert_decoder(24, "--shapes", "seq=5; seq=1", *self.STATES, "--max-arena", 1700, code=1, words=("--max-arena 1700",))
        self.assertFalse(os.path.exists(self.path("no.sinter")))


class Refusals(Case):
    def refused(self, text, *words, code=3, flags=()):
        self.convert("no.sinter", "--shapes", text, *flags, code=code, words=words)

    def test_text(self):
        self.refused("batch=1,seq", "character 9", "'seq' is not a valid size", code=2)
        self.refused("batch=1;;seq=2", "character 9: a set is empty", code=2)
        self.refused("", "a set is empty", code=2)
        self.refused("batch=1,=2", "character 9: a name is missing", code=2)
        self.refused("batch=1,batch=2", "character 9: 'batch' is given twice in one set", code=2)
        self.refused("batch=1,seq=-4", "character 13: '-4' is not a valid size", code=2)
        self.refused("7", "character 1: '7' has no name", code=2)

    def test_names(self):
        self.refused("bach=1,seq=3", "the model has no dimension or input 'bach'", "did you mean 'batch'?")
        self.refused("batch=1,seq=3; batch=2", "\\\"batch=2\\\": 'seq' has no size here")
        self.refused("batch=1,seq=3,4", "dimension 'seq' has 2 sizes")
        self.refused("seq=3; seq=4", "--dim gives dimension 'seq' a size as well", flags=("--dim", "seq=4", "--dim", "batch=1"))
        self.refused("x=1,2,32; x=2,2,32", "--shape gives input 'x' a shape as well", flags=("--shape", "x=1,2,32"))

    def test_sets(self):
        self.refused("batch=1,seq=3; seq=3,batch=1", "the inputs have the same shapes as with \\\"batch=1,seq=3\\\"")
        # A fault of one set names it.
        self.refused(f"x=1,2,{WIDTH}; x=1,2,{WIDTH + 1}", f"with --shapes \\\"x=1,2,{WIDTH + 1}\\\"", flags=("--dim", "seq=2"))

    def test_integers_of_other_operations(self):
        # A Transpose of one row moves nothing, so that it is another operation.
        node, value = helper.make_node, helper.make_tensor_value_info
        weights = np.random.default_rng(4).standard_normal((8, 8)).astype("f4")
        graph = helper.make_graph([node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), node("MatMul", ["t", "w"], ["y"])], "g",
                                  [value("x", TensorProto.FLOAT, ["rows", 5, 8])], [value("y", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(weights, "w")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), self.path("turned.onnx"))
        cli.save_npz(self.path("turned.npz"), {"x": np.random.default_rng(5).standard_normal((8, 5, 8)).astype("f4")})
        self.call("convert", self.path("turned.onnx"), "-o", self.path("no.sinter"), "--shapes", "rows=1; rows=4", "--quantize", "int8",
                  "--calibrate", self.path("turned.npz"), code=2,
                  words=("the sets do not have the same operations", "convert each set into a file of its own"))
        self.assertFalse(os.path.exists(self.path("no.sinter")))

    def test_options(self):
        several, _ = self.convert("several.sinter", "--shapes", text_of(SETS), "--backends", "reference")
        self.call("embed", several, "-o", self.path("net"), code=5, words=("the file has 3 shape sets",))


if __name__ == "__main__":
    run_cases()
