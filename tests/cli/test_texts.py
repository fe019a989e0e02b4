#!/usr/bin/env python3
"""Metadata and class names: what convert writes and refuses, what inspect and run show, what rewritten files keep."""
import json
import os
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from program_case import ProgramCase, run_cases  # noqa: E402

DIGITS = os.path.join(cli.REPO, "examples", "digits", "digits.onnx")
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "acht \u00fc", "nine"]


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, list(shape))


def model_of(nodes, inputs, outputs, **facts):
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, **facts)


def identity(shape, **facts):
    return model_of([helper.make_node("Neg", ["x"], ["y"])], [value("x", shape)], [value("y", shape)], **facts)


def grey_png(pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Case(ProgramCase):
    def setUp(self):
        self.out = self.path("m.sinter")
        if os.path.exists(self.out):
            os.remove(self.out)

    def put(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else data.SerializeToString())
        return self.path(name)

    def convert(self, model, *flags):
        return json.loads(self.call("convert", model, "-o", self.out, *flags, "--json").out)

    def inspect(self, model):
        return json.loads(self.call("inspect", model, "--json").out)

    def refuse(self, code, model, *flags, words=()):
        self.call("convert", model, "-o", self.out, *flags, code=code, words=words)
        self.assertFalse(os.path.exists(self.out))


class Labels(Case):
    def labels(self, text="\n".join(NAMES) + "\n"):
        return self.put("labels.txt", text)

    def test_written_and_shown(self):
        said = self.convert(DIGITS, "--labels", self.labels())
        self.assertEqual(said["labels"], {"probabilities": NAMES})
        self.assertEqual(self.inspect(self.out)["labels"], {"probabilities": NAMES})
        self.call("inspect", self.out, words=("labels    probabilities: zero, one, two", "and 2 more"))
        image = np.random.default_rng(1).integers(0, 17, (3, 1, 8, 8)).astype(np.float32)
        cli.save_npz(self.path("x.npz"), {"image": image})
        outputs = self.path("y.npz")
        run = ("run", self.out, "--inputs", self.path("x.npz"), "--each")
        self.call(*run, "--outputs", outputs)
        scores = cli.load_npz(outputs)["probabilities"]
        best = json.loads(self.call(*run, "--json").out)["outputs"][0]["best"]
        self.assertEqual(len(best), 3)
        for row, five in zip(scores, best):
            order = np.argsort(-row, kind="stable")[:5]
            self.assertEqual([c["index"] for c in five], order.tolist())
            self.assertEqual([c["label"] for c in five], [NAMES[i] for i in order])
            np.testing.assert_allclose([c["score"] for c in five], row[order], rtol=1e-6)
        text = self.call(*run).out.splitlines()
        for i, row in enumerate(scores):
            self.assertTrue(text[1 + i].startswith(f"  {i}: {NAMES[row.argmax()]} {row.max():.4g}, "), text)
        # Without class names there are numbers alone.
        self.convert(DIGITS)
        self.assertNotIn("best", json.loads(self.call(*run, "--json").out)["outputs"][0])
        self.assertEqual(len(self.call(*run).out.splitlines()), 1)

    def test_scores_of_integers_are_numbers(self):
        cli.save_npz(self.path("c.npz"), {"image": np.random.default_rng(2).integers(0, 17, (40, 1, 8, 8)).astype(np.float32)})
        self.convert(DIGITS, "--labels", self.labels(), "--quantize", "int8", "--calibrate", self.path("c.npz"), "--output-type", "int8",
                     "--input-type", "int8")
        said = json.loads(self.call("run", self.out, "--random", "3", "--json").out)["outputs"][0]
        self.assertEqual(said["type"], "int8")
        best = said["best"][0][0]["score"]
        self.assertTrue(0.1 <= best <= 1, best)

    def test_files(self):
        for text in ("\n".join(NAMES), "\r\n".join(NAMES) + "\r\n", "\ufeff" + "\n".join(NAMES) + "\n"):
            self.assertEqual(self.convert(DIGITS, "--labels", self.labels(text))["labels"]["probabilities"], NAMES)
        # Two classes may have one name, as in ImageNet.
        self.convert(DIGITS, "--labels", self.labels("a\n" * 10))
        os.remove(self.out)
        for text, words in (("", ("is empty", "one name a line")), ("\n".join(NAMES[:4] + [""] + NAMES[5:]), ("line 5", "missing")),
                            ("\n".join(NAMES) + "\n\n", ("line 11", "missing")), ("\n".join(NAMES[:9]), ("line 10", "10 classes")),
                            ("\n".join(NAMES + ["ten"]), ("line 11", "one too many")), (b"a\n\xff\n" + b"c\n" * 8, ("line 2", "UTF-8")),
                            (b"a\n" + b"b\0\n" * 9, ("line 2", "UTF-8")), ("a\n" + "b" * 4096 + "\n" + "c\n" * 8, ("line 2", "4095"))):
            self.refuse(5, DIGITS, "--labels", self.labels(text), words=("labels.txt", *words))
        self.refuse(6, DIGITS, "--labels", self.path("none.txt"), words=("none.txt",))
        self.refuse(6, DIGITS, "--labels", self.scratch.name)
        self.refuse(2, DIGITS, "--labels", "=", words=("[OUTPUT=]FILE",))
        labels = self.labels()
        self.call("convert", DIGITS, "-o", labels, "--labels", labels, code=2)
        with open(labels, encoding="utf-8") as f:
            self.assertEqual(f.read().split("\n")[:10], NAMES)

    def test_json(self):
        forms = (NAMES, {str(i): n for i, n in reversed(list(enumerate(NAMES)))}, {n: i for i, n in enumerate(NAMES)},
                 {str(i): [f"n0{i}", n] for i, n in enumerate(NAMES)}, {"id2label": {str(i): n for i, n in enumerate(NAMES)}, "x": [1]},
                 {"id2label": {n: i for i, n in enumerate(NAMES)}})
        for form in forms:
            self.assertEqual(self.convert(DIGITS, "--labels", self.put("l.json", json.dumps(form)))["labels"], {"probabilities": NAMES})
        os.remove(self.out)
        for text, words in (("", ("no list of names",)), ("[", ("no list of names",)), ("[]", ("no list of names",)), ("{}", ("no list of names",)),
                            ("[1, 2]", ("no list of names",)), ('{"0": "a", "2": "b"}', ("no list of names",)),
                            ('{"0": "a", "0": "b"}', ("no list of names",)), ('{"a": 0, "b": 0}', ("no list of names",)),
                            ('{"0": "a", "00": "b"}', ("no list of names",)), ('{"a": -1}', ("no list of names",)), ("7", ("no list of names",)),
                            (b'["\xff"]', ("no list of names",)), (json.dumps(NAMES[:4] + [""] + NAMES[5:]), ("name 5", "missing")),
                            (json.dumps(NAMES[:9]), ("name 10", "10 classes")), (json.dumps(["a\0b"] * 10), ("name 1", "UTF-8")),
                            ("[" * 100000, ("no list of names",))):
            self.refuse(5, DIGITS, "--labels", self.put("l.json", text), words=("l.json", *words))

    def test_names_in_the_onnx_file(self):
        for text in ("{0: 'cat', 1: \"dog's\"}", '{"0": "cat", "1": "dog\'s"}', '["cat", "dog\'s"]', "['cat', 'dog\\'s']"):
            model = identity((1, 2))
            helper.set_model_props(model, {"names": text, "task": "classify"})
            said = self.convert(self.put("own.onnx", model))
            self.assertEqual((said["labels"], said["metadata"]), ({"y": ["cat", "dog's"]}, {"task": "classify"}), text)
        own = self.path("own.onnx")
        self.call("inspect", self.out, words=("labels    y: cat, dog's",))
        said = self.convert(own, "--labels", self.put("two.txt", "p\nq\n"))
        self.assertEqual((said["labels"], said["metadata"]["names"]), ({"y": ["p", "q"]}, text))
        self.assertEqual(self.convert(own, "--meta", "names=")["labels"], {})
        self.assertEqual(self.convert(own, "--strip")["labels"], {})
        self.assertEqual(self.convert(own, "--target", "cortex-m4")["labels"], {})
        for text in ("{0: 'cat', 1: 'dog', 2: 'bird'}", "cat, dog", "{0: 'cat', 1: 'd\\x41'}", "{0: 'cat', 1: 'dog'", "['0', '1']", "{0: 'a', 0: 'b'}"):
            model = identity((1, 2))
            helper.set_model_props(model, {"names": text})
            said = self.convert(self.put("own.onnx", model))
            self.assertEqual((said["labels"], said["metadata"]), ({}, {"names": text}), text)
        for count, kept in ((1000, True), (5000, False)):
            model = identity((1, count))
            names = [f"class number {i}" for i in range(count)]
            helper.set_model_props(model, {"names": str(dict(enumerate(names)))})
            said = self.convert(self.put("own.onnx", model))
            self.assertEqual((said["labels"], said["metadata"]), ({"y": names} if kept else {}, {}))
            self.assertEqual("not kept" in json.dumps(said["diagnostics"]), not kept)

    def test_labels_of_classifiers(self):
        def classifier(outputs, **labels):
            nodes = [helper.make_node("LinearClassifier", ["x"], ["l", "p"], domain="ai.onnx.ml", coefficients=[1.0, 2, 3, 4, 5, 6],
                                      intercepts=[0.0, 1, 2], **labels),
                     helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml",
                                      **{k.replace("_ints", "_int64s"): v for k, v in labels.items()})]
            model = model_of(nodes[:1 if "p" in outputs else 2], [value("x", (1, 2))],
                             [value("l", (1,), TensorProto.INT64)] + [value(n, (1, 3)) for n in outputs])
            model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
            return self.put("ml.onnx", model)
        for output in "pz":
            self.assertEqual(self.convert(classifier([output], classlabels_strings=["a", "b", "c"]))["labels"], {output: ["a", "b", "c"]})
        self.assertEqual(self.convert(classifier(["p"], classlabels_ints=[3, 5, 7]))["labels"], {"p": ["3", "5", "7"]})
        self.assertEqual(self.convert(classifier(["p"], classlabels_ints=[0, 1, 2]))["labels"], {})

    def test_several_outputs(self):
        split = helper.make_node("Split", ["x"], ["a=b", "c"], axis=1)
        model = self.put("two.onnx", model_of([split], [value("x", (1, 6))], [value("a=b", (1, 3)), value("c", (1, 3))]))
        labels = self.put("l=1.txt", "p\nq\nr\n")
        self.assertEqual(self.convert(model, "--labels", "a=b=" + labels)["labels"], {"a=b": ["p", "q", "r"]})
        self.assertEqual(set(self.convert(model, "--labels", "a=b=" + labels, "--labels", "c=" + labels)["labels"]), {"a=b", "c"})
        os.remove(self.out)
        self.refuse(2, model, "--labels", labels, words=("2 outputs", "OUTPUT=", "a=b, c"))
        self.refuse(2, model, "--labels", "d=" + labels, words=("no output 'd'",))
        self.refuse(2, model, "--labels", "c=" + labels, "--labels", "c=" + labels, words=("'c'", "give one"))

    def test_the_axis_of_classes(self):
        two = self.put("two.txt", "p\nq\n")
        for shape in ((2,), (1, 2), (3, 2), (1, 2, 1, 1), (1, 4, 2)):
            self.convert(self.put("axis.onnx", identity(shape)), "--labels", two)
            rows = json.loads(self.call("run", self.out, "--random", "1", "--json").out)["outputs"][0]["best"]
            self.assertEqual(len(rows), np.prod(shape) // 2)
            self.assertEqual({c["label"] for c in rows[0]}, {"p", "q"})
        os.remove(self.out)
        self.refuse(5, self.put("axis.onnx", identity((1, 2, 7, 7))), "--labels", two, words=("axis 3", "7 classes"))
        self.refuse(5, self.put("axis.onnx", identity(())), "--labels", two, "--shape", "x=scalar", words=("single number",))
        graph = model_of([helper.make_node("NonZero", ["x"], ["y"])], [value("x", (6,))], [value("y", (1, None), TensorProto.INT64)])
        self.refuse(5, self.put("axis.onnx", graph), "--labels", two, words=("depends on the run",))
        open_model = self.put("sets.onnx", identity(("n", "c")))
        self.refuse(5, open_model, "--labels", two, "--shapes", "n=1,c=2; n=1,c=3", words=("3 classes",))
        self.convert(open_model, "--labels", two, "--shapes", "n=1,c=2; n=4,c=2")


class Metadata(Case):
    def facts(self, **more):
        model = identity((1, 2), producer_name="exporter", producer_version="2.1", domain="org.example", model_version=7,
                         doc_string="What it does.")
        helper.set_model_props(model, {"author": "someone", "license": "MIT", **more})
        return self.put("facts.onnx", model)

    CARRIED = {"model.domain": "org.example", "model.version": "7",
               "model.description": "What it does.", "author": "someone", "license": "MIT"}

    def test_facts_of_the_onnx_file(self):
        said = self.convert(self.facts())
        self.assertEqual(said["metadata"], self.CARRIED)
        self.assertEqual(self.inspect(self.out)["metadata"], self.CARRIED)
        self.call("inspect", self.out, words=("metadata  author: someone", "metadata  model.version: 7"))
        with_facts = os.path.getsize(self.out)
        for flags in (("--strip",), ("--target", "cortex-m4")):
            self.assertEqual(self.convert(self.facts(), *flags)["metadata"], {})
        self.assertEqual(self.convert(self.facts(), "--target", "cortex-m4", "--meta", "a=b")["metadata"], {"a": "b"})
        plain = identity((1, 2))
        self.assertEqual(self.convert(self.put("plain.onnx", plain))["metadata"], {})
        self.assertLess(os.path.getsize(self.out), with_facts)

    def test_meta(self):
        r = self.call("convert", self.facts(), "-o", self.out, "--meta", "license=Apache-2.0", "--meta", "url=a=b", "--meta", "author=",
                        words=("license (by --meta, in place of the ONNX file's)",))
        self.assertNotIn("url (by", r.out)
        expected = {**self.CARRIED, "license": "Apache-2.0", "url": "a=b"}
        del expected["author"]
        self.assertEqual(self.inspect(self.out)["metadata"], expected)
        os.remove(self.out)
        for text, words in (("x", ("KEY=VALUE",)), ("=x", ("KEY=VALUE",)), ("k" * 256 + "=x", ("256 bytes", "shorten")),
                            ("a=\udcff", ("UTF-8",))):
            self.refuse(2, DIGITS, "--meta", text, words=words)
        self.refuse(2, DIGITS, "--meta", "a=1", "--meta", "a=2", words=("a is given twice",))
        many = [flag for i in range(1025) for flag in ("--meta", f"k{i}=x")]
        self.refuse(2, DIGITS, *many, words=("1024",))
        self.refuse(2, *self.large(), words=("4194304",))

    def large(self):
        """Arguments: files of labels that together have more text than a file may have."""
        split = helper.make_node("Split", ["x"], ["a", "b"], axis=1)
        model = model_of([split], [value("x", (1, 2000))], [value("a", (1, 1000)), value("b", (1, 1000))])
        labels = self.put("large.txt", ("x" * 4000 + "\n") * 1000)
        return [self.put("large.onnx", model), "--labels", "a=" + labels, "--labels", "b=" + labels]

    def test_what_is_too_large_or_damaged_is_noted(self):
        said = self.convert(self.facts(vocabulary="x" * 5000))
        self.assertEqual(said["metadata"], self.CARRIED)
        self.assertIn("'vocabulary'", json.dumps(said["diagnostics"]))
        self.call("convert", self.facts(vocabulary="x" * 5000), "-o", self.out, words=("not kept: 'vocabulary' has 5000 bytes",))
        self.assertEqual(len(self.convert(self.facts(**{f"k{i}": "x" * 4000 for i in range(9)}))["metadata"]), len(self.CARRIED) + 4)
        self.assertEqual(len(self.convert(self.facts(**{f"k{i}": "x" for i in range(2000)}))["metadata"]), 256)
        self.assertEqual(self.convert(self.facts(**{"a\0b": "x", "c": "d\0e"}))["metadata"], self.CARRIED)
        self.assertEqual(self.convert(self.facts(**{"k" * 300: "x", "": "y", "empty": "", "model.version": "9"}))["metadata"], self.CARRIED)

    def test_preprocessing(self):
        digits = self.path("set")
        os.makedirs(digits)
        rng = np.random.default_rng(3)
        for i in range(6):
            with open(os.path.join(digits, f"{i}.bin"), "wb") as f:
                f.write(rng.integers(0, 17, 64).astype(np.float32).tobytes())
        self.assertEqual(self.convert_with(digits), {})
        pictures = self.path("pictures")
        os.makedirs(pictures)
        for i in range(6):
            with open(os.path.join(pictures, f"{i}.png"), "wb") as f:
                f.write(grey_png(rng.integers(0, 256, (8, 8), np.uint8)))
        self.assertEqual(self.convert_with(pictures, "--scale", "1/16", "--mean", "2", "--resize", "letterbox=7", "--layout", "nchw"),
                         {"preprocessing.mean": "2", "preprocessing.scale": "0.0625", "preprocessing.resize": "letterbox=7",
                          "preprocessing.layout": "nchw"})
        self.assertEqual(self.convert_with(pictures, "--scale", "1/16", "--resize", "crop", "--input-type", "uint8"),
                         {"preprocessing.resize": "crop", "preprocessing.uint8": "pixels"})
        self.assertEqual(self.convert_with(pictures, "--scale", "1/16", "--resize", "crop", "--meta", "preprocessing.scale="),
                         {"preprocessing.resize": "crop"})
        os.remove(self.out)
        self.refuse(2, DIGITS, "--meta", "preprocessing.scale=1", words=("preprocessing.scale", "--scale", "another key"))

    def test_run_takes_what_the_file_states(self):
        picture, array = self.path("one.png"), self.path("one.npz")
        pixels = np.random.default_rng(4).integers(0, 17, (8, 8), np.uint8)
        with open(picture, "wb") as f:
            f.write(grey_png(pixels))
        np.savez(array, image=(pixels.astype(np.float32) - 2)[None, None] / 16)
        self.convert(DIGITS, "--scale", "1/16", "--mean", "2")
        said = [self.call("run", self.out, "--inputs", *data).out for data in ((array,), (picture,), (picture, "--scale", "1/16"))]
        self.assertEqual(said[0], said[1])
        self.assertNotEqual(said[0], said[2])  # the flag is in place of the scale and the mean
        self.convert(DIGITS)
        self.call("run", self.out, "--inputs", picture, code=5, words=("--scale",))
        # An input of bytes takes pixels as they are, and the other one their numbers.
        shape = (1, 1, 8, 8)
        two = model_of([helper.make_node("Add", ["x", "z"], ["y"])], [value("x", shape), value("z", shape)], [value("y", shape)])
        listed = self.put("two.json", json.dumps([{"x": picture, "z": picture}]))
        self.convert(self.put("two.onnx", two), "--scale", "1/16")
        numbers = self.call("run", self.out, "--inputs", listed).out
        self.convert(self.path("two.onnx"), "--scale", "1/16", "--input-type", "x=uint8")
        self.assertEqual(self.call("run", self.out, "--inputs", listed).out, numbers)

    def test_preprocessing_without_data(self):
        """The flags are for the application alone."""
        said = self.convert(DIGITS, "--scale", "1/16", "--layout", "nchw")["metadata"]
        self.assertEqual((said["preprocessing.scale"], said["preprocessing.layout"]), ("0.0625", "nchw"))
        colours = self.put("colours.onnx", identity((1, 3, 8, 8)))
        self.assertEqual(self.convert(colours, "--mean", "1,2,3", "--scale", "1/255", "--channel-order", "bgr")["metadata"],
                         {"preprocessing.mean": "1,2,3", "preprocessing.scale": "0.003921569", "preprocessing.channel_order": "bgr"})
        sound = self.put("sound.onnx", identity((1, 16000)))
        self.assertEqual(self.convert(sound, "--scale", "2")["metadata"], {"preprocessing.scale": "2"})
        os.remove(self.out)
        self.refuse(2, colours, "--mean", "1,2", "--scale", "1", words=("--mean", "3 channels"))
        self.refuse(2, self.put("cube.onnx", identity((4, 5, 6))), "--scale", "1", words=("--scale", "leave it out"))
        for flags in (("--strip",), ("--target", "cortex-m4")):
            self.refuse(2, colours, "--scale", "1", *flags, words=("--scale", "leave it out"))

    def convert_with(self, data, *flags):
        return self.convert(DIGITS, "--quantize", "int8", "--calibrate", data, *flags)["metadata"]

    def test_other_commands_keep_them(self):
        labels = self.put("labels.txt", "\n".join(NAMES))
        self.convert(DIGITS, "--labels", labels, "--meta", "a=b", "--target", "native")
        before = self.inspect(self.out)
        key, copy = self.path("k"), self.path("copy.sinter")
        self.call("keygen", key)
        for command in (["sign", self.out, "--key", key + ".key", "-o", copy], ["pack", self.out, "-o", copy],
                        ["pack", self.out, "--packed-only", "-o", copy]):
            if os.path.exists(copy):
                os.remove(copy)
            self.call(*command)
            after = self.inspect(copy)
            self.assertEqual((after["metadata"], after["labels"]), (before["metadata"], before["labels"]), command)


if __name__ == "__main__":
    run_cases()
