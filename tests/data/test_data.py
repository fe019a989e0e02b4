#!/usr/bin/env python3
"""Data as people have it: what pictures, sounds, raw bytes and lists become, and which are refused.

    test_data.py [--sinter PROGRAM] [unittest options]

Expected pixels are those of Pillow (files/expected.npz, made by make_files.py). About 12 s of processor time.
"""
import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import wave
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FILES = os.path.join(HERE, "files")
WIDTH, HEIGHT = 24, 17
SINTER = None


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def png(pixels):
    """A PNG file of uint8 [H,W] or [H,W,3]."""
    height, width = pixels.shape[:2]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="data-")
        cls.expected = dict(np.load(os.path.join(FILES, "expected.npz")))
        cls.models = {}

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def path(cls, name):
        full = os.path.join(cls.scratch.name, name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return full

    @classmethod
    def write(cls, name, data):
        with open(cls.path(name), "wb" if isinstance(data, bytes) else "w") as f:
            f.write(data)
        return cls.path(name)

    def run_sinter(self, *args, code=0, words=()):
        r = cli.call(SINTER, *args, timeout=120)
        text = r.out + r.err
        self.assertEqual(r.code, code, f"{' '.join(map(str, args))}: {text[-800:]}")
        for w in words:
            self.assertIn(w.lower(), text.lower(), f"{' '.join(map(str, args))}: {text[-800:]}")
        return r

    def convert(self, name, nodes, inputs, outputs, initializers=(), *flags, code=0, words=()):
        graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, self.path(name + ".onnx"))
        self.run_sinter("convert", self.path(name + ".onnx"), "-o", self.path(name + ".sinter"), *flags, code=code,
                        words=words)
        return self.path(name + ".sinter")

    def copying(self, shape, kind=TensorProto.FLOAT):
        """A model that hands its input on."""
        key = (tuple(shape), kind)
        if key not in self.models:
            self.models[key] = self.convert(f"copy{len(self.models)}", [helper.make_node("Identity", ["x"], ["y"])],
                                            [value("x", shape, kind)], [value("y", shape, kind)])
        return self.models[key]

    def read(self, data, shape, *flags, kind=TensorProto.FLOAT):
        """What the data become for an input of this shape."""
        out = self.path("out.npz")
        self.run_sinter("run", self.copying(shape, kind), "--inputs", data, "--outputs", out, *flags)
        return cli.load_npz(out)["y"]

    def refused(self, data, shape, *flags, code=5, words=(), kind=TensorProto.FLOAT):
        self.run_sinter("run", self.copying(shape, kind), "--inputs", data, *flags, code=code, words=words)


class Pictures(Case):
    def test_pixels_are_those_of_pillow(self):
        for name in sorted(os.listdir(FILES)):
            if name + ".rgb" not in self.expected:
                continue
            with self.subTest(name):
                rgb = self.read(os.path.join(FILES, name), [1, HEIGHT, WIDTH, 3], kind=TensorProto.UINT8)
                np.testing.assert_array_equal(rgb[0], self.expected[name + ".rgb"])
                grey = self.read(os.path.join(FILES, name), [HEIGHT, WIDTH], kind=TensorProto.UINT8)
                np.testing.assert_array_equal(grey, self.expected[name + ".grey"])
        self.assertGreaterEqual(sum(n.endswith(".rgb") for n in self.expected), 9)

    def test_16_bits_are_rounded_to_8(self):
        grey = self.read(os.path.join(FILES, "deep.png"), [HEIGHT, WIDTH], kind=TensorProto.UINT8)
        np.testing.assert_array_equal(grey, self.expected["deep.png.grey"])

    def test_resizing_is_that_of_pillow(self):
        sizes = [n for n in self.expected if n.count(".") == 2 and n[-1].isdigit()]
        self.assertEqual(len(sizes), 8)
        for key in sizes:
            with self.subTest(key):
                name, size = key.rsplit(".", 1)
                w, h = map(int, size.split("x"))
                got = self.read(os.path.join(FILES, name), [1, h, w, 3], "--resize", "exact", kind=TensorProto.UINT8)
                np.testing.assert_array_equal(got[0], self.expected[key])

    def test_mean_scale_layout_and_order(self):
        file = os.path.join(FILES, "rgb.png")
        pixels = self.expected["rgb.png.rgb"].astype(np.float32)
        mean, scale = np.float32([123.675, 116.28, 103.53]), np.float32([1 / 58.395, 1 / 57.12, 1 / 57.375])
        flags = ["--mean", "123.675,116.28,103.53", "--scale", "1/58.395,1/57.12,1/57.375"]
        want = (pixels - mean) * scale
        np.testing.assert_array_equal(self.read(file, [1, 3, HEIGHT, WIDTH], *flags)[0], want.transpose(2, 0, 1))
        np.testing.assert_array_equal(self.read(file, [HEIGHT, WIDTH, 3], *flags), want)
        bgr = (pixels[..., ::-1] - mean) * scale
        np.testing.assert_array_equal(self.read(file, [HEIGHT, WIDTH, 3], "--channel-order", "bgr", *flags), bgr)
        half = self.read(file, [1, 3, HEIGHT, WIDTH], "--scale", "1/255", kind=TensorProto.FLOAT16)
        np.testing.assert_array_equal(half[0], (pixels * np.float32(1 / 255)).astype(np.float16).transpose(2, 0, 1))
        signed = self.read(file, [HEIGHT, WIDTH, 3], "--mean", "128", kind=TensorProto.INT8)
        np.testing.assert_array_equal(signed, (pixels - 128).astype(np.int8))

    def test_layout_decides_where_the_shape_does_not(self):
        data = np.arange(27, dtype=np.uint8).reshape(3, 3, 3)
        file = self.write("three.png", png(data))
        self.refused(file, [1, 3, 3, 3], kind=TensorProto.UINT8, words=["'x'", "--layout nchw or nhwc"])
        for layout, want in (("nhwc", data), ("nchw", data.transpose(2, 0, 1))):
            got = self.read(file, [1, 3, 3, 3], "--layout", layout, kind=TensorProto.UINT8)
            np.testing.assert_array_equal(got[0], want)

    def test_crop_and_letterbox(self):
        data = np.arange(60, dtype=np.uint8).reshape(6, 10)
        file = self.write("grey.png", png(data))
        crop = self.read(file, [6, 6], "--resize", "crop", kind=TensorProto.UINT8)
        np.testing.assert_array_equal(crop, data[:, 2:8])
        side = self.read(file, [4, 4], "--resize", "crop=6", kind=TensorProto.UINT8)
        np.testing.assert_array_equal(side, data[1:5, 3:7])
        box = self.read(file, [12, 10], "--resize", "letterbox=114", kind=TensorProto.UINT8)
        np.testing.assert_array_equal(box[3:9], data)
        self.assertTrue((box[:3] == 114).all() and (box[9:] == 114).all())
        self.refused(file, [8, 8], "--resize", "crop=6", kind=TensorProto.UINT8, words=["crop=6", "8 x 8"])

    def test_refusals_name_the_file_and_the_remedy(self):
        file = os.path.join(FILES, "rgb.png")
        self.refused(file, [1, 3, HEIGHT, WIDTH], words=["rgb.png", "--scale 1/255"])
        self.refused(file, [1, 3, 8, 8], kind=TensorProto.UINT8, words=["24 x 17", "--resize"])
        self.refused(os.path.join(FILES, "cmyk.jpg"), [HEIGHT, WIDTH, 3], kind=TensorProto.UINT8, words=["cmyk.jpg", "RGB"])
        self.refused(file, [1, 2, 8, 8], kind=TensorProto.UINT8, words=["'x'", "give arrays"])
        self.refused(file, [2, 3, 8, 8], kind=TensorProto.UINT8, words=["'x'", "give arrays"])
        self.refused(file, [HEIGHT, WIDTH, 3], "--scale", "2", kind=TensorProto.INT8, words=["outside the range"])
        self.refused(file, [HEIGHT, WIDTH, 3], "--scale", "1,2", code=2, words=["3 channels"])
        self.refused(file, [HEIGHT, WIDTH, 3], "--scale", "1/255", kind=TensorProto.UINT8, code=2, words=["'x'", "bytes", "--scale"])
        for scale in ("1/0", "0", "1e-60", "1/255,0,1"):
            self.refused(file, [HEIGHT, WIDTH, 3], "--scale", scale, code=2, words=[scale])
        self.refused(file, [HEIGHT, WIDTH, 3], "--resize", "fit", kind=TensorProto.UINT8, code=2, words=["letterbox"])
        self.refused("missing.png", [HEIGHT, WIDTH, 3], code=6, words=["missing.png"])
        cli.save_npz(self.path("x.npz"), {"x": np.zeros([HEIGHT, WIDTH, 3], np.float32)})
        self.refused(self.path("x.npz"), [HEIGHT, WIDTH, 3], "--scale", "2", code=2, words=["--scale", "leave it out"])

    def test_damaged_files_are_refused(self):
        for name in ("rgb.png", "rgb.jpg", "progressive.jpg", "palette.png"):
            with open(os.path.join(FILES, name), "rb") as f:
                whole = f.read()
            kept = self.write("cut" + os.path.splitext(name)[1], whole[:len(whole) * 2 // 3])
            self.refused(kept, [HEIGHT, WIDTH, 3], kind=TensorProto.UINT8, words=["cut", "damaged"])
        text = self.write("text.png", "no picture")
        self.refused(text, [HEIGHT, WIDTH, 3], kind=TensorProto.UINT8, words=["neither a PNG nor a JPEG"])
        huge = bytearray(png(np.zeros([1, 1], np.uint8)))
        huge[16:24] = struct.pack(">II", 65535, 65535)
        huge[29:33] = struct.pack(">I", zlib.crc32(bytes(huge[12:29])))
        self.refused(self.write("huge.png", bytes(huge)), [1, 1], kind=TensorProto.UINT8, words=["65535 x 65535"])

    def test_palettes(self):
        """Of every number of bits, interlaced or not: an index that the palette does not have is no colour."""
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        def packed(row, bits):
            shifts = np.arange(8 // bits - 1, -1, -1) * bits
            row = np.concatenate([row, np.zeros(-len(row) % (8 // bits), np.uint8)]).reshape(-1, 8 // bits)
            return bytes((row << shifts).sum(1).astype(np.uint8))

        def file(pixels, bits, colours, adam7):
            passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)) if adam7 else ((0, 0, 1, 1),)
            rows = b"".join(b"\0" + packed(row, bits) for y, x, dy, dx in passes for row in pixels[y::dy, x::dx] if row.size)
            header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], bits, 3, 0, 0, int(adam7))
            return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", colours.tobytes()) + chunk(b"tRNS", b"\x80") +
                    chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

        rng = np.random.default_rng(4)
        for bits in (1, 2, 4, 8):
            count = min((1 << bits) - 1, 200)
            colours = rng.integers(0, 256, (count, 3), np.uint8)
            pixels = rng.integers(0, count, (11, 13)).astype(np.uint8)
            for adam7 in (False, True):
                name = self.write(f"palette{bits}{adam7}.png", file(pixels, bits, colours, adam7))
                np.testing.assert_array_equal(self.read(name, [11, 13, 3], kind=TensorProto.UINT8), colours[pixels])
                for place in ((0, 0), (10, 12), (5, 7)):
                    wrong = pixels.copy()
                    wrong[place] = count
                    name = self.write("wrong.png", file(wrong, bits, colours, adam7))
                    self.refused(name, [11, 13, 3], kind=TensorProto.UINT8, words=["wrong.png", "colour is not in its palette"])

    def test_a_name_does_not_decide_the_format(self):
        with open(os.path.join(FILES, "rgb.png"), "rb") as f:
            file = self.write("png.JPG", f.read())
        got = self.read(file, [HEIGHT, WIDTH, 3], kind=TensorProto.UINT8)
        np.testing.assert_array_equal(got, self.expected["rgb.png.rgb"])


class Sounds(Case):
    def sound(self, name, frames, width=2, rate=16000):
        """`frames`: whole numbers [T] or [T,C]."""
        channels = 1 if frames.ndim == 1 else frames.shape[1]
        with wave.open(self.path(name), "wb") as w:
            w.setnchannels(channels), w.setsampwidth(width), w.setframerate(rate)
            flat = frames.reshape(-1)
            data = bytes((flat + 128).astype(np.uint8)) if width == 1 else b"".join(
                int(x).to_bytes(width, "little", signed=True) for x in flat)
            w.writeframes(data)
        return self.path(name)

    def test_every_width(self):
        for width in (1, 2, 3, 4):
            top = 1 << (8 * width - 1)
            frames = np.array([0, 1, -1, top - 1, -top, top // 3])
            got = self.read(self.sound("w.wav", frames, width), [1, 6])
            np.testing.assert_array_equal(got[0], (frames / top).astype(np.float32))

    def test_floats_and_extensible_headers(self):
        numbers = np.float32([0, 0.5, -0.25, 1.5])
        for kind in (3, 0xFFFE):
            fmt = struct.pack("<HHIIHH", kind, 1, 8000, 32000, 4, 32)
            if kind == 0xFFFE:
                fmt += struct.pack("<HHIH", 22, 32, 4, 3) + bytes.fromhex("000000001000800000aa00389b71")
            body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"LIST\x03\0\0\0abc\0data"
            file = self.write("f.wav", b"RIFF\0\0\0\0" + body + struct.pack("<I", 16) + numbers.tobytes())
            np.testing.assert_array_equal(self.read(file, [4]), numbers)

    def test_channels_length_and_scale(self):
        stereo = np.array([[1, 3], [2, 4], [4, 7], [6, 2]]) * 4096
        file = self.sound("s.wav", stereo)
        unit = (stereo / 32768).astype(np.float32)
        np.testing.assert_array_equal(self.read(file, [1, 4]), unit.mean(1)[None])
        np.testing.assert_array_equal(self.read(file, [1, 2, 4]), unit.T[None])
        np.testing.assert_array_equal(self.read(file, [4, 2]), unit)
        np.testing.assert_array_equal(self.read(file, [1, 2], "--resize", "crop"), unit.mean(1)[None, 1:3])
        np.testing.assert_array_equal(self.read(file, [6], "--resize", "letterbox", "--scale", "32768"),
                                      np.float32([8192, 12288, 22528, 16384, 0, 0]))
        self.refused(file, [1, 5], words=["s.wav", "letterbox"])
        self.refused(file, [1, 3], words=["s.wav", "crop"])
        self.refused(file, [4, 8, 8], words=["s.wav", "beforehand"])

    def test_one_rate(self):
        self.sound("rates/a.wav", np.arange(4)), self.sound("rates/b.wav", np.arange(4), rate=8000)
        self.refused(self.path("rates"), [4], words=["b.wav", "8000", "16000"])

    def test_damaged(self):
        with open(self.sound("whole.wav", np.arange(40)), "rb") as f:
            whole = f.read()
        self.refused(self.write("cut.wav", whole[:-10]), [40], words=["cut.wav", "truncated"])
        self.refused(self.write("empty.wav", whole[:20]), [40], words=["empty.wav"])
        self.refused(self.write("law.wav", whole[:20] + b"\x06" + whole[21:]), [40], words=["format 6"])
        self.refused(self.write("text.wav", "no sound"), [40], words=["not a WAV"])


class Lists(Case):
    def test_raw_bytes_have_the_exact_size(self):
        numbers = np.arange(6, dtype=np.float32)
        np.testing.assert_array_equal(self.read(self.write("a.bin", numbers.tobytes()), [2, 3]), numbers.reshape(2, 3))
        self.refused(self.write("b.bin", numbers.tobytes() + b"\0"), [2, 3], words=["b.bin", "25 bytes", "24"])
        self.refused(self.write("c.bin", np.float32([1, np.nan]).tobytes()), [2], words=["c.bin", "finite"])

    def several(self):
        for i, name in enumerate(("many/a/0.png", "many/a/1.png", "many/b/2.png")):
            self.write(name, png(np.full([4, 4], 10 * i, np.uint8)))
        return self.path("many")

    def firsts(self, data, *flags):
        return list(self.read(data, [1, 4, 4], *flags, kind=TensorProto.UINT8)[:, 0, 0])

    def test_folders_patterns_and_lists(self):
        folder = self.several()
        self.assertEqual(self.firsts(folder), [0, 10, 20])
        self.assertEqual(self.firsts(folder + "/*/[12].png"), [10, 20])
        names = ["a/1.png", "a/0.png"]
        self.assertEqual(self.firsts(self.write("many/l.json", json.dumps(names))), [10, 0])
        entries = [{"x": "b/2.png", "note": 3}, {"x": "a/0.png"}]
        self.assertEqual(self.firsts(self.write("many/l.jsonl", "\n".join(map(json.dumps, entries)) + "\n\n")), [20, 0])
        self.assertEqual(self.firsts(self.write("many/l.csv", 'file,label\r\n"b/2.png",1\r\na/1.png,0\r\n')), [20, 10])
        self.refused(folder + "/*.tif", [1, 4, 4], words=["*.tif"])
        self.refused(self.write("many/m.json", '["a/9.png"]'), [1, 4, 4], code=6, words=["9.png"])
        self.refused(self.write("many/m.json", '["a/0.png", 3]'), [1, 4, 4], words=["entry 2"])
        self.refused(self.write("many/m.json", '["a/0.png"'), [1, 4, 4], words=["not JSON"])
        self.refused(self.write("many/m.json", '["l.csv"]'), [1, 4, 4], words=["l.csv", ".png"])
        self.refused(self.write("many/m.json", "[]"), [1, 4, 4], words=["no samples"])
        self.refused(self.write("many/m.csv", 'file\n"a'), [1, 4, 4], words=["quotation mark"])

    def test_several_inputs(self):
        two = self.convert("two", [helper.make_node("Add", ["a", "b"], ["y"])], [value("a", [4, 4]), value("b", [4, 4])],
                           [value("y", [4, 4])])
        self.several()
        np.save(self.path("many/n.npy"), np.ones([4, 4], np.float32))
        cli.save_npz(self.path("many/both.npz"), {"a": np.ones([4, 4], np.float32), "b": np.full([4, 4], 2, np.float32)})
        data = self.write("many/two.json", json.dumps([{"a": "b/2.png", "b": "n.npy"}, "both.npz"]))
        out = self.path("two.npz")
        self.run_sinter("run", two, "--inputs", data, "--scale", "1", "--outputs", out)
        np.testing.assert_array_equal(cli.load_npz(out)["y"][:, 0, 0], [21, 3])
        bad = self.write("many/bad.json", json.dumps([{"a": "b/2.png"}]))
        self.run_sinter("run", two, "--inputs", bad, "--scale", "1", code=5, words=["entry 1", "'b'"])
        self.run_sinter("run", two, "--inputs", self.path("many/b"), "--scale", "1", code=5, words=["2 inputs", ".json"])

    def test_other_commands_take_them(self):
        folder = self.several()
        model = self.convert("relu", [helper.make_node("Relu", ["x"], ["y"])], [value("x", [1, 1, 4, 4])],
                             [value("y", [1, 1, 4, 4])])
        source = self.path("relu.onnx")
        r = self.run_sinter("compare", source, model, "--inputs", folder, "--scale", "1/255", "--json")
        self.assertEqual(json.loads(r.out)["samples"], 3)
        r = self.run_sinter("ranges", source, "--calibrate", folder, "--scale", "1/2", "--samples", "2", "--json")
        report = json.loads(r.out)
        self.assertEqual((report["samples"], report["values"][0]["max"]), (2, 5))
        self.run_sinter("bench", model, "--inputs", folder, "--scale", "1", "--seconds", "0.01")
        self.run_sinter("bench", model, "--inputs", folder, "--seconds", "0.01", code=5, words=["--scale"])


class Folders(Case):
    @unittest.skipIf(os.geteuid() == 0 and shutil.which("setpriv") is None, "the superuser reads every folder")
    def test_folders_that_cannot_be_read(self):
        """Below the folder of the data, or that folder itself: exit code 6 with its name, not an internal error."""
        model = self.copying([1, 1, 4, 4])
        os.makedirs(self.path("closed/inner"), exist_ok=True)
        self.write("closed/0.png", png(np.zeros([4, 4], np.uint8)))
        os.symlink("..", self.path("closed/loop"))
        self.run_sinter("run", model, "--inputs", self.path("closed"), "--scale", "1", code=6, words=["loop", "link"])
        os.unlink(self.path("closed/loop"))
        os.chmod(self.path("closed/inner"), 0)
        try:
            self.without_privileges("run", model, "--inputs", self.path("closed"), "--scale", "1", words=["closed/inner"])
            self.without_privileges("run", model, "--inputs", self.path("closed/inner"), "--scale", "1", words=["closed/inner"])
        finally:
            os.chmod(self.path("closed/inner"), 0o755)

    def without_privileges(self, *args, words):
        prefix = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        os.chmod(self.scratch.name, 0o755)
        r = subprocess.run([*prefix, SINTER, *args], capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode, 6, r.stderr)
        for word in [*words, "cannot be read", "permissions"]:
            self.assertIn(word, r.stderr)


class Damaged(Case):
    """Folders in which not every file can be used."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for i in range(3):
            cls.write(f"some/{i}.png", png(np.full([4, 4], 10 * i, np.uint8)))
        cls.broken = [cls.write("some/1a.png", png(np.ones([4, 4], np.uint8))[:45]), cls.write("some/9.jpg", b"")]
        for name in ("0.png", "1.jpg"):
            cls.write("none/" + name, b"nothing")

    def both(self):
        """A model and what it was made from."""
        shape = [1, 1, 4, 4]
        model = self.convert("relu", [helper.make_node("Relu", ["x"], ["y"])], [value("x", shape)], [value("y", shape)])
        return model, self.path("relu.onnx")

    def test_one_file_ends_a_command_that_does_not_skip_it(self):
        model, source = self.both()
        for command in (["run", model, "--inputs"], ["compare", source, model, "--inputs"], ["ranges", source, "--calibrate"]):
            self.run_sinter(*command, self.path("some"), "--scale", "1", code=5, words=["1a.png", "--skip-damaged"])

    def test_skipped_files_are_named(self):
        model, source = self.both()
        for command in (["run", model, "--inputs"], ["compare", source, model, "--inputs"], ["ranges", source, "--calibrate"],
                        ["convert", source, "-o", self.path("q.sinter"), "--quantize", "int8", "--calibrate"]):
            with self.subTest(command):
                flags = [*command, self.path("some"), "--scale", "1", "--skip-damaged"]
                self.run_sinter(*flags, words=["2 damaged samples are left out", *self.broken])
                r = self.run_sinter(*flags, "--json")
                skipped = json.loads(r.out)["skipped"]
                self.assertEqual(len(skipped), 2)
                for reason, file in zip(skipped, self.broken):
                    self.assertIn(file, reason)
        out = self.path("rest.npz")
        self.run_sinter("run", model, "--inputs", self.path("some"), "--scale", "1", "--skip-damaged", "--outputs", out)
        np.testing.assert_array_equal(cli.load_npz(out)["y"][:, 0, 0, 0], [0, 10, 20])

    def test_nothing_is_reported_where_nothing_is_damaged(self):
        model, _ = self.both()
        r = self.run_sinter("run", model, "--inputs", self.path("some/[012].png"), "--scale", "1", "--skip-damaged", "--json")
        self.assertNotIn("skipped", json.loads(r.out))
        self.assertNotIn("damaged", r.err)

    def test_where_all_are_damaged_there_is_no_data(self):
        model, _ = self.both()
        for data in (self.path("none"), self.broken[0]):
            self.run_sinter("run", model, "--inputs", data, "--scale", "1", "--skip-damaged", code=5,
                            words=["all samples are damaged", os.path.basename(data)])

    def test_sounds_arrays_and_lists(self):
        self.write("mixed/0.wav", b"RIFF")
        np.save(self.path("mixed/1.npy"), np.full([1, 1, 4, 4], 5, np.float32))
        self.write("mixed/2.npy", b"\x93NUMPY")
        self.write("mixed/3.png", png(np.full([4, 4], 7, np.uint8)))
        data = self.write("mixed/l.json", json.dumps(["2.npy", "3.png", "0.wav", "1.npy"]))
        out = self.path("mixed.npz")
        r = self.run_sinter("run", self.both()[0], "--inputs", data, "--scale", "1", "--skip-damaged", "--outputs", out, "--json")
        np.testing.assert_array_equal(cli.load_npz(out)["y"][:, 0, 0, 0], [7, 5])
        self.assertEqual(len(json.loads(r.out)["skipped"]), 2)
        for i in range(3):
            np.save(self.path(f"arrays/{i}.npy"), np.full([1, 1, 4, 4], i, np.float32))
        self.write("arrays/1.npy", b"no array")
        self.run_sinter("run", self.both()[0], "--inputs", self.path("arrays"), "--outputs", out, code=5, words=["--skip-damaged"])
        self.run_sinter("run", self.both()[0], "--inputs", self.path("arrays"), "--skip-damaged", "--outputs", out)
        self.assertEqual(len(cli.load_npz(out)["y"]), 2)

    def test_labels_stay_with_their_samples(self):
        weights = numpy_helper.from_array(np.tile(np.float32([0, 10, 20]), (16, 1)), "w")
        bias = numpy_helper.from_array(np.float32([0, -800, -3200]), "b")
        nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("Gemm", ["f", "w", "b"], ["y"])]
        self.convert("near", nodes, [value("x", [1, 1, 4, 4])], [value("y", [1, 3])], [weights, bias])
        for name, level in (("0/a", 0), ("1/a", 10), ("2/a", 40)):
            self.write(f"levels/{name}.png", png(np.full([4, 4], level, np.uint8)))
        self.write("levels/0/0.png", b"")
        r = self.run_sinter("convert", self.path("near.onnx"), "-o", self.path("near.sinter"), "--evaluate", self.path("levels"),
                            "--scale", "1", "--skip-damaged", "--json")
        self.assertEqual(json.loads(r.out)["top1"], 1)


class OwnMetric(Case):
    """A program gets the outputs and prints a number."""

    def setUp(self):
        for i in range(6):
            self.write(f"own/{i}.png", png(np.random.default_rng(i).integers(0, 256, (8, 8, 3), dtype=np.uint8)))
        w = numpy_helper.from_array(np.random.default_rng(1).normal(0, 0.2, (4, 3, 3, 3)).astype(np.float32), "w")
        if not os.path.exists(self.path("own.onnx")):
            self.convert("own", [helper.make_node("Conv", ["x", "w"], ["y"])], [value("x", [1, 3, 8, 8])],
                         [value("y", [1, 4, 6, 6])], [w])

    def measure(self, body, *flags, **kw):
        program = self.write("metric.py", "import json, sys\nimport numpy as np\nm = json.load(open(sys.argv[1]))\n" + body)
        return self.run_sinter("convert", self.path("own.onnx"), "-o", self.path("m.sinter"), "--scale", "1/255", "--evaluate",
                               self.path("own"), "--metric", f"cmd:{sys.executable} {program}", "--json", *flags, **kw)

    MEAN = ("ys = [np.load(s['outputs']['y']) for s in m['samples']]\n"
            "assert [s['index'] for s in m['samples']] == list(range(6)) and m['samples'][2]['files'][0].endswith('2.png')\n"
            "print('a note', file=sys.stderr)\n")

    def test_numbers_and_objects(self):
        r = self.measure(self.MEAN + "print(json.dumps({'peak': float(np.max(ys))}))")
        out = self.path("m.npz")
        self.run_sinter("run", self.path("m.sinter"), "--inputs", self.path("own"), "--scale", "1/255", "--outputs", out)
        got = json.loads(r.out)["metric"]
        self.assertEqual(got["name"], "peak")
        self.assertAlmostEqual(got["value"], float(cli.load_npz(out)["y"].max()), places=6)
        self.assertEqual(json.loads(self.measure("print(1)\nprint()\nprint(2.5)").out)["metric"],
                         {"name": "metric", "value": 1.75})

    def test_the_rule_for_mixed_types_uses_it(self):
        # The metric falls to less than half where a value is rounded to 8 bits.
        exact = self.path("own-exact.npy")
        self.run_sinter("run", self.path("own.sinter"), "--inputs", self.path("own"), "--scale", "1/255", "--outputs", exact)
        body = self.MEAN + (f"e = np.abs(np.concatenate(ys) - np.load({exact!r})).max()\nprint(1 if e < 1e-4 else 0.4)")
        quantize = ["--quantize", "int8", "--force-int8", "--calibrate", self.path("own")]
        report = json.loads(self.measure(body, *quantize, "--max-drop", "10%").out)
        self.assertEqual((report["metric"]["in_float"], report["metric"]["value"]), (1, 1))
        self.assertAlmostEqual(json.loads(self.measure(body, *quantize).out)["quantized"]["accuracy"], 0.4)

    def test_integers_of_outputs_are_measured_as_numbers(self):
        body = self.MEAN + "print(float(np.max(ys)))"
        quantize = ["--quantize", "int8", "--force-int8", "--calibrate", self.path("own")]
        floats = json.loads(self.measure(body, *quantize).out)["metric"]["value"]
        ports = json.loads(self.measure(body, *quantize, "--input-type", "int8", "--output-type", "uint8").out)
        port = ports["outputs"][0]
        self.assertEqual((port["type"], port["onnx_type"]), ("uint8", "float32"))
        self.assertAlmostEqual(ports["metric"]["value"], floats, delta=port["scale"])
        self.assertNotAlmostEqual(floats, 0, places=1)

    def test_failures(self):
        self.measure("sys.exit(3)", code=5, words=["exit code 3"])
        self.measure("import os; os.kill(os.getpid(), 9)", code=5, words=["metric.py"])
        self.measure("print('good')", code=5, words=["'good'", "standard error"])
        self.measure("print(float('nan'))", code=5, words=["neither a number"])
        self.measure("print(json.dumps({'a': 1, 'b': 2}))", code=5, words=["one number"])
        self.measure("", code=5, words=["printed nothing"])
        self.measure("import time; time.sleep(60)", "--metric-seconds", "0.3", code=5, words=["0.3 s", "--metric-seconds"])
        self.measure("print(1)", "--label", "y", code=2, words=["--label"])
        self.run_sinter("convert", self.path("own.onnx"), "-o", self.path("m.sinter"), "--evaluate", "cmd:x", code=2,
                        words=["--metric cmd:PROGRAM"])


class Bytes(Case):
    """Preprocessing that is built into the model."""

    def network(self, name, shape=(1, 3, HEIGHT, WIDTH), kind=TensorProto.FLOAT):
        rng = np.random.default_rng(3)
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        if not os.path.exists(self.path(name + ".onnx")):
            w = numpy_helper.from_array(rng.normal(0, 0.2, (4, 3, 3, 3)).astype(dtype), "w")
            self.convert(name, [helper.make_node("Conv", ["x", "w"], ["y"])], [value("x", shape, kind)],
                         [value("y", None, kind)], [w])
        return self.path(name + ".onnx"), self.path(name + ".sinter")

    FLAGS = ["--mean", "123.675,116.28,103.53", "--scale", "1/58.395,1/57.12,1/57.375"]

    def output(self, model, data, *flags):
        self.run_sinter("run", model, "--inputs", data, "--outputs", self.path("o.npz"), *flags)
        return cli.load_npz(self.path("o.npz"))["y"]

    def test_bytes_give_what_the_host_gives(self):
        picture = os.path.join(FILES, "rgb.png")
        source, plain = self.network("conv")
        for flags in ([], ["--layout", "nhwc"], ["--channel-order", "bgr"], ["--layout", "nhwc", "--channel-order", "bgr"]):
            with self.subTest(flags):
                built, host = self.path("built.sinter"), [f for f in flags if f not in ("--layout", "nhwc")]
                r = self.run_sinter("convert", source, "-o", built, "--input-type", "uint8", *flags, *self.FLAGS)
                self.assertRegex(r.out, r"input +x  uint8\[.*, float32 in the ONNX file")
                shape = [1, HEIGHT, WIDTH, 3] if "nhwc" in flags else [1, 3, HEIGHT, WIDTH]
                ports = json.loads(self.run_sinter("inspect", built, "--json").out)["inputs"]
                self.assertEqual((ports[0]["type"], ports[0]["shape"]), ("uint8", shape))
                want = self.output(plain, picture, *host, *self.FLAGS)
                np.testing.assert_allclose(self.output(built, picture), want, rtol=1e-5, atol=1e-5)
                # As the device gives them.
                pixels = self.expected["rgb.png.rgb"][None]
                np.save(self.path("pixels.npy"), pixels if "nhwc" in flags else pixels.transpose(0, 3, 1, 2))
                np.testing.assert_array_equal(self.output(built, self.path("pixels.npy")), self.output(built, picture))
                for data in (["--inputs", picture], ["--inputs", self.path("pixels.npy")], ["--random", "3"]):
                    self.run_sinter("compare", source, built, *data, "--input-type", "uint8", *flags, *self.FLAGS)
                if "nhwc" in flags:
                    self.run_sinter("compare", source, built, "--inputs", picture, code=2,
                                    words=["'x'", "uint8[1,17,24,3] in B", "--input-type uint8 --layout nhwc"])
                    self.run_sinter("compare", source, built, "--random", "3", "--input-type", "uint8", *self.FLAGS, code=2,
                                    words=["'x'", "give --layout nhwc"])
                else:
                    self.run_sinter("compare", source, built, "--inputs", picture, code=2, words=["'x'", "uint8 in B", "--input-type uint8"])
                for a, b in ((plain, built), (built, plain)):
                    self.run_sinter("compare", a, b, "--random", "3", code=2, words=["'x'", "in B", "the ONNX model"])

    def test_quantized(self):
        for i in range(6):
            self.write(f"cal/{i}.png", png(np.random.default_rng(i).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)))
        source, plain = self.network("conv")
        built = self.path("int8.sinter")
        self.run_sinter("convert", source, "-o", built, "--input-type", "uint8", "--quantize", "int8", "--calibrate",
                        self.path("cal"), *self.FLAGS)
        picture = os.path.join(FILES, "rgb.png")
        want, got = self.output(plain, picture, *self.FLAGS), self.output(built, picture)
        self.assertGreater(10 * np.log10((want**2).sum() / ((want - got) ** 2).sum()), 30)

    def both(self, name, nodes, shape, constants=(), flags=("--scale", "1/255"), others=()):
        """The network in float and, quantized, with bytes as its first input."""
        shapes = {"x": shape, **dict(others)}
        rng, pictures = np.random.default_rng(9), []
        # All bytes in every channel.
        channels = min(shape[1], shape[-1])
        for i in range(6):
            grid = np.arange(256, dtype=np.uint8).reshape(16, 16) if i == 0 else rng.integers(0, 256, (16, 16), dtype=np.uint8)
            pixels = np.stack([np.roll(grid, 5 * c) for c in range(channels)], -1)
            pictures.append({"x": self.relative(name, i, png(pixels if channels == 3 else pixels[..., 0]))})
            for other, of in others:
                np.save(self.path(f"{name}/{other}{i}.npy"), rng.normal(0, 1, of).astype(np.float32))
                pictures[-1][other] = f"{other}{i}.npy"
        data = self.write(f"{name}/list.json", json.dumps(pictures))
        inputs = [value(n, of) for n, of in shapes.items()]
        self.convert(name, nodes, inputs, [value("y", None)], constants)
        built = self.path(name + "8.sinter")
        self.run_sinter("convert", self.path(name + ".onnx"), "-o", built, "--target", "cortex-m4", "--target", "x86_64",
                        "--input-type", "x=uint8", "--quantize", "int8", "--force-int8", "--calibrate", data, *flags)
        plain = self.path(name + ".sinter")
        return data, self.output(plain, data, *[f for f in flags if f not in ("--layout", "nhwc")]), self.output(built, data), built

    def relative(self, name, i, data):
        self.write(f"{name}/{i}.png", data)
        return f"{i}.png"

    def floats_of(self, built):
        """Results of float32 as large as a picture, in the plan for microcontrollers."""
        steps = json.loads(self.run_sinter("inspect", built, "--steps", "--json", "--target", "cortex-m4").out)["steps"]
        shapes = [f"float32[1,{dims}]" for dims in ("16,16,3", "3,16,16", "16,16,1", "1,16,16", "768")]
        return [(s["op"], o) for s in steps for o in s["outputs"] if any(shape in o for shape in shapes)]

    def tables_of(self, built):
        return [s["op"] for s in json.loads(self.run_sinter("inspect", built, "--steps", "--json").out)["steps"]].count("Lut")

    def test_bytes_stay_bytes_until_the_first_product(self):
        rng = np.random.default_rng(5)

        def weights(name, *shape):
            return numpy_helper.from_array(rng.normal(0, 0.4, shape).astype(np.float32), name)

        node, nchw, nhwc = helper.make_node, [1, 3, 16, 16], [1, 16, 16, 3]
        conv = node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1])
        relu = node("Relu", ["c"], ["y"])
        last = [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Conv", ["t", "w"], ["c"]), relu]
        normal = ("--mean", "123.675,116.28,103.53", "--scale", "1/58.395,1/57.12,1/57.375")
        half = ("--mean", "127.5", "--scale", "1/127.5")
        cases = {
            "colour": ([conv, relu], nchw, [weights("w", 4, 3, 3, 3)]),
            "grey": ([conv, relu], [1, 1, 16, 16], [weights("w", 4, 1, 3, 3)]),
            "nhwc": (last, nhwc, [weights("w", 4, 3, 3, 3)]),
            "bytes_last": ([conv, relu], nchw, [weights("w", 4, 3, 3, 3)], ("--layout", "nhwc", *half)),
            "centred": ([conv, relu], nchw, [weights("w", 4, 3, 3, 3)], ("--mean", "128", "--scale", "1/128")),
            "halves": ([conv, relu], nchw, [weights("w", 4, 3, 3, 3)], half),
            "channels": ([conv, relu], nchw, [weights("w", 4, 3, 3, 3)], normal),
            "blue": ([conv, relu], nchw, [weights("w", 4, 3, 3, 3)], ("--channel-order", "bgr", *normal)),
            "sigmoid": ([node("Sigmoid", ["x"], ["s"]), node("Conv", ["s", "w"], ["c"]), relu], nchw, [weights("w", 4, 3, 3, 3)]),
            "pooled": ([node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), node("Conv", ["p", "w"], ["c"]), relu],
                       nchw, [weights("w", 4, 3, 3, 3)]),
            "twice": ([conv, node("Conv", ["x", "v"], ["d"]), node("Add", ["c", "d"], ["y"])], nchw,
                      [weights("w", 4, 3, 3, 3), weights("v", 4, 3, 1, 1)]),
            "joined": ([conv, node("Concat", ["c", "x"], ["j"], axis=1), node("Conv", ["j", "v"], ["y"])], nchw,
                       [weights("w", 4, 3, 3, 3), weights("v", 2, 7, 1, 1)]),
            "flat": ([node("Flatten", ["x"], ["f"]), node("Gemm", ["f", "w"], ["y"])], nchw, [weights("w", 768, 5)]),
            "two": ([conv, node("Gemm", ["z", "v"], ["g"]), node("Reshape", ["g", "to"], ["r"]), node("Add", ["c", "r"], ["y"])], nchw,
                    [weights("w", 4, 3, 3, 3), weights("v", 8, 4), numpy_helper.from_array(np.array([1, 4, 1, 1]), "to")],
                    ("--scale", "1/255"), [("z", [1, 8])]),
        }
        for name, case in cases.items():
            with self.subTest(name):
                _, want, got, built = self.both(name, *case)
                self.assertGreater(10 * np.log10((want**2).sum() / ((want - got) ** 2).sum()), 32)
                self.assertEqual(self.floats_of(built), [])
                self.assertEqual(self.tables_of(built), 2 if name == "joined" else 1)  # a Concat rounds to its own scale

    def test_bytes_are_those_of_dequantized_inputs(self):
        """The same file as with the integers' scale in the ONNX model: not one bit of a result differs."""
        rng, shape = np.random.default_rng(6), [1, 3, 16, 16]
        w = numpy_helper.from_array(rng.normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32), "w")
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
        for zero, scale in ((0, 1 / 255), (128, 1 / 128), (255, 1)):
            with self.subTest(zero=zero, scale=scale):
                data, _, got, built = self.both("exact", nodes, shape, [w], ("--mean", str(zero), "--scale", repr(float(np.float32(scale)))))
                given = [helper.make_node("DequantizeLinear", ["b", "s", "z"], ["x"]), *nodes]
                constants = [w, numpy_helper.from_array(np.float32(scale), "s"), numpy_helper.from_array(np.uint8(zero), "z")]
                self.convert("given", given, [value("b", shape, TensorProto.UINT8)], [value("y", None)], constants)
                twin, listed = self.path("given8.sinter"), self.path("exact/twin.json")
                with open(data, encoding="utf-8") as f:
                    pictures = [{"b": entry["x"]} for entry in json.load(f)]
                self.write("exact/twin.json", json.dumps(pictures))
                self.run_sinter("convert", self.path("given.onnx"), "-o", twin, "--target", "cortex-m4", "--target", "x86_64",
                                "--quantize", "int8", "--force-int8", "--calibrate", listed)
                np.testing.assert_array_equal(got, self.output(twin, listed))
                arenas = [{p["target"]: p["arena_bytes"] for p in json.loads(self.run_sinter("inspect", f, "--json").out)["profiles"]}
                          for f in (built, twin)]
                self.assertEqual(*arenas)

    def test_bytes_become_given_integers_by_tables(self):
        """A quantized ONNX model with its Quantize of floats: not one bit of a result differs."""
        rng, node, nchw = np.random.default_rng(8), helper.make_node, [1, 3, 16, 16]

        def scalar(name, number, kind=np.float32):
            return numpy_helper.from_array(np.array(number, kind), name)

        pixels = np.stack([np.roll(np.arange(256, dtype=np.uint8).reshape(16, 16), 5 * c) for c in range(3)], -1)
        picture = self.write("given.png", png(pixels))
        w = numpy_helper.from_array(rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), "w")
        q, dq = "QuantizeLinear", "DequantizeLinear"
        nodes = [node(q, ["r", "s", "z"], ["xq"]), node(dq, ["xq", "s", "z"], ["xd"]), node(dq, ["w", "sw", "zw"], ["wd"]),
                 node("Conv", ["xd", "wd"], ["c"], pads=[1, 1, 1, 1]), node(q, ["c", "t", "u"], ["yq"]), node(dq, ["yq", "t", "u"], ["y"])]
        for kind, zero in ((np.uint8, 0), (np.uint8, 114), (np.int8, -14)):
            for name, scale, flags in (("unit", 1 / 255, ("--scale", "1/255")), ("half", 2 / 255, ("--mean", "127.5", "--scale", "1/127.5")),
                                       ("channels", 0.0186, self.FLAGS), ("last", 0.0186, ("--layout", "nhwc", *self.FLAGS))):
                with self.subTest(name, kind=kind.__name__, zero=zero):
                    constants = [w, scalar("s", scale), scalar("z", zero, kind), scalar("sw", 0.01), scalar("zw", 0, np.int8), scalar("t", 0.1),
                                 scalar("u", zero, kind)]
                    # Relu is part of the tables.
                    relu = [node("Relu", ["x"], ["r"])] if name == "half" else [node("Identity", ["x"], ["r"])]
                    self.convert("given", relu + nodes, [value("x", nchw)], [value("y", None)], constants)
                    built = self.path("given8.sinter")
                    self.run_sinter("convert", self.path("given.onnx"), "-o", built, "--target", "cortex-m4", "--target", "x86_64",
                                    "--input-type", "uint8", *flags)
                    want = self.output(self.path("given.sinter"), picture, *[f for f in flags if f not in ("--layout", "nhwc")])
                    self.assertGreater(len(np.unique(want)), 15)
                    np.testing.assert_array_equal(self.output(built, picture), want)
                    self.assertEqual(self.floats_of(built), [])
                    self.assertEqual(self.tables_of(built), 3 if flags[-1] == self.FLAGS[-1] else 1)

    def test_integers_as_inputs_and_outputs(self):
        rng, shape, flags = np.random.default_rng(7), [1, 3, 16, 16], ("--mean", "100", "--scale", "1/60")
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
                 helper.make_node("GlobalAveragePool", ["r"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
                 helper.make_node("Gemm", ["f", "v"], ["y"])]
        constants = [numpy_helper.from_array(rng.normal(0, 0.4, dims).astype(np.float32), name)
                     for name, dims in (("w", (8, 3, 3, 3)), ("v", (8, 5)))]
        data, want, _, _ = self.both("ints", nodes, shape, constants, flags)
        source, plain = self.path("ints.onnx"), self.path("ints-float-ports.sinter")
        quantize = ["--quantize", "int8", "--force-int8", "--calibrate", data, *flags]
        self.run_sinter("convert", source, "-o", plain, *quantize)
        floats = self.output(plain, data, *flags)
        for given, made in (("int8", None), (None, "int8"), (None, "uint8"), ("int8", "uint8"), ("x=int8", "y=int8"), ("int8", "float32")):
            with self.subTest(given=given, made=made):
                built = self.path("ints8.sinter")
                types = [*(["--input-type", given] if given else []), *(["--output-type", made] if made else [])]
                self.run_sinter("convert", source, "-o", built, *quantize, *types)
                facts = json.loads(self.run_sinter("inspect", built, "--json").out)
                x, y = facts["inputs"][0], facts["outputs"][0]
                self.assertEqual((x["type"], y["type"]),
                                 ("int8" if given else "float32", made.split("=")[-1] if made else "float32"))
                self.assertRegex(self.run_sinter("inspect", built).out, r"\(q [+-] \d+\) \* 0\.")
                got = self.output(built, data, *flags)
                if given:
                    # A picture is rounded as its declared scale says.
                    pixels = [np.arange(256, dtype=np.float32).reshape(16, 16)]
                    real = (np.stack([np.roll(pixels[0], 5 * c) for c in range(3)]) - 100) * np.float32(1 / 60)
                    q = np.clip(np.rint(real / np.float32(x["scale"])) + x["zero_point"], -128, 127).astype(np.int8)
                    np.save(self.path("q.npy"), q[None])
                    np.testing.assert_array_equal(self.output(built, self.path("q.npy")), got[:1])
                    # And so are floats.
                    np.save(self.path("real.npy"), real[None].astype(np.float32))
                    np.testing.assert_array_equal(self.output(built, self.path("real.npy")), got[:1])
                    np.save(self.path("real.npy"), np.full(shape, np.nan, np.float32))
                    self.run_sinter("run", built, "--inputs", self.path("real.npy"), code=5, words=["'x'", "NaN"])
                    # Pixels without flags: the file states the mean and the scale.
                    np.testing.assert_array_equal(self.output(built, data), got)
                    self.run_sinter("run", built, "--inputs", data, "--scale", "1", code=5, words=["'x'", "far outside the range"])
                if made not in (None, "float32"):
                    real = (got.astype(np.float64) - y["zero_point"]) * y["scale"]
                    self.assertLessEqual(np.abs(real - floats).max(), y["scale"])
                else:
                    np.testing.assert_array_equal(got, floats)
                # Numbers are compared, by the file's scales.
                for inputs, of in ((data, flags), (self.path("q.npy"), ()), (None, ())):
                    if inputs is None or given or inputs == data:
                        chosen = ("--inputs", inputs) if inputs else ("--random", "3")
                        judged = json.loads(self.run_sinter("compare", source, built, *chosen, *of, "--json").out)
                        self.assertGreater(judged["outputs"][0]["sqnr_db"], 25)
        self.assertGreater(10 * np.log10((want**2).sum() / ((want - floats) ** 2).sum()), 25)

    def test_integers_of_any_port(self):
        """Whatever reads an input and makes an output: the numbers are those of float ports within their rounding."""
        rng, node = np.random.default_rng(11), helper.make_node
        constants = [numpy_helper.from_array(rng.normal(0, 0.4, dims).astype(np.float32), name)
                     for name, dims in (("w", (4, 3, 3, 3)), ("v", (8, 4)), ("t", (6, 5)))]
        constants.append(numpy_helper.from_array(np.array([1, 4, 1, 1]), "to"))
        # Sin and Cos compute in float; `same` is an input, `peak` the source of a Sigmoid and of an index.
        nodes = [node("Conv", ["x", "w"], ["c"]), node("Sin", ["z"], ["s"]), node("Gemm", ["s", "v"], ["g"]), node("Reshape", ["g", "to"], ["r"]),
                 node("Add", ["c", "r"], ["peak"]), node("Sigmoid", ["peak"], ["map"]), node("Cos", ["peak"], ["wave"]),
                 node("ArgMax", ["peak"], ["best"], axis=1), node("Identity", ["z"], ["same"]), node("Gather", ["t", "i"], ["row"])]
        inputs = [value("x", [1, 3, 8, 8]), value("z", [1, 8]), value("i", [2], TensorProto.INT64)]
        outputs = [value(n, None) for n in ("peak", "map", "wave", "same", "row")] + [value("best", None, TensorProto.INT64)]
        self.convert("ports", nodes, inputs, outputs, constants)
        data = self.path("ports.npz")
        np.savez(data, x=rng.normal(0, 1, (10, 1, 3, 8, 8)).astype(np.float32), z=rng.normal(0, 1, (10, 1, 8)).astype(np.float32),
                 i=rng.integers(0, 6, (10, 2)))
        source, built = self.path("ports.onnx"), self.path("ports8.sinter")
        quantize = ["--quantize", "int8", "--force-int8", "--calibrate", data]
        every = {"peak", "map", "wave", "same", "row"}
        for flags, given, made in ((["--input-type", "int8"], {"x": "int8", "z": "int8"}, {}),
                                   (["--output-type", "int8"], {}, dict.fromkeys(every, "int8")),
                                   (["--input-type", "z=int8", "--output-type", "uint8"], {"z": "int8"}, dict.fromkeys(every, "uint8")),
                                   (["--output-type", "int8", "--output-type", "map=uint8", "--output-type", "row=float32"], {},
                                    {"peak": "int8", "map": "uint8", "wave": "int8", "same": "int8"})):
            with self.subTest(flags):
                self.run_sinter("convert", source, "-o", built, *quantize, *flags)
                facts = json.loads(self.run_sinter("inspect", built, "--json").out)
                for ports, changed in ((facts["inputs"], given), (facts["outputs"], made)):
                    self.assertEqual({p["name"]: p["type"] for p in ports if p["type"] not in ("float32", "int64")}, changed)
                    self.assertEqual({p["name"] for p in ports if p.get("scale", 0) > 0}, set(changed))
                judged = json.loads(self.run_sinter("compare", source, built, "--inputs", data, "--each", "--min-sqnr", "15", "--json").out)
                self.assertEqual({o["name"] for o in judged["outputs"] if o["sqnr_db"] > 25} | {"best"}, every | {"best"})
        # And some by name; int64 has no scale.
        pictures = [{"x": self.relative("ports", i, png(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))), "z": f"z{i}.npy", "i": f"i{i}.npy"}
                    for i in range(6)]
        for i in range(6):
            np.save(self.path(f"ports/z{i}.npy"), rng.normal(0, 1, (1, 8)).astype(np.float32))
            np.save(self.path(f"ports/i{i}.npy"), rng.integers(0, 6, 2))
        listed = self.write("ports/list.json", json.dumps(pictures))
        self.run_sinter("convert", source, "-o", built, "--quantize", "int8", "--force-int8", "--calibrate", listed, "--scale", "1/255",
                        "--input-type", "x=uint8", "--input-type", "z=int8")
        self.assertEqual([p["type"] for p in json.loads(self.run_sinter("inspect", built, "--json").out)["inputs"]], ["uint8", "int8", "int64"])
        for flags, words in ((["--output-type", "best=int8"], ["'best' is int64"]), (["--input-type", "i=int8"], ["'i' is int64"]),
                             (["--output-type", "Peak=int8"], ["no output of this name", "'peak'"]),
                             (["--output-type", "map=int8", "--output-type", "map=uint8"], ["another type is given for 'map'"]),
                             (["--input-type", "x=uint8", "--input-type", "uint8", "--scale", "1"], ["'x' by name"])):
            self.run_sinter("convert", source, "-o", self.path("no.sinter"), *quantize, *flags, code=2, words=words)
        self.run_sinter("convert", source, "-o", self.path("no.sinter"), "--quantize", "int8x16", "--force-int8", "--calibrate", data,
                        "--output-type", "peak=int8", code=2, words=["'peak'", "int16", "--quantize int8"])
        self.assertFalse(os.path.exists(self.path("no.sinter")))

    def test_integers_of_one_value_under_two_names(self):
        """An output may be another one under a second name, whatever computes it, and refusals name ONNX nodes."""
        rng, node, shape = np.random.default_rng(13), helper.make_node, [1, 3, 8, 8]
        w = numpy_helper.from_array(rng.normal(0, 0.4, (4, 3, 3, 3)).astype(np.float32), "w")
        nodes = [node("Relu", ["x"], ["y"]), node("Identity", ["y"], ["z"]), node("Conv", ["x", "w"], ["c"])]
        self.convert("names", nodes, [value("x", shape)], [value(n, None) for n in ("y", "z", "c")], [w])
        source, built = self.path("names.onnx"), self.path("names8.sinter")
        for i in range(6):
            self.write(f"names/{i}.png", png(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)))
        flags = ["--mean", "127.5", "--scale", "1/127.5"]
        want = self.output(self.path("names.sinter"), self.path("names"), *flags)
        for types in (["--output-type", "int8"], ["--input-type", "uint8", "--output-type", "int8"], ["--input-type", "uint8", "--output-type", "z=uint8"]):
            with self.subTest(types):
                self.run_sinter("convert", source, "-o", built, "--quantize", "int8", "--force-int8", "--calibrate", self.path("names"), *flags, *types)
                ports = {p["name"]: p for p in json.loads(self.run_sinter("inspect", built, "--json").out)["outputs"]}
                self.assertEqual(ports["z"]["type"], types[-1].split("=")[-1])
                self.run_sinter("run", built, "--inputs", self.path("names"), "--outputs", self.path("o.npz"), *([] if "uint8" in types else flags))
                got = cli.load_npz(self.path("o.npz"))["z"].astype(np.float64)
                self.assertLessEqual(np.abs((got - ports["z"]["zero_point"]) * ports["z"]["scale"] - want).max(), ports["z"]["scale"])
        # A layout's Transpose behind both outputs.
        nodes = [node("Conv", ["x", "w"], ["c"]), node("Sin", ["c"], ["y"], name="sine"), node("Conv", ["c", "u"], ["z"], name="other")]
        u = numpy_helper.from_array(rng.normal(0, 0.4, (4, 4, 3, 3)).astype(np.float32), "u")
        self.convert("layout", nodes, [value("x", shape)], [value("y", None), value("z", None)], [w, u])
        for name, words in (("y", "Sin 'sine'"), ("z", "Conv 'other'")):
            self.run_sinter("convert", self.path("layout.onnx"), "-o", built, "--output-type", name + "=int8", code=2,
                            words=[f"'{name}' is computed by {words} in float32"])

    def test_integers_of_given_models(self):
        """An input that is rounded for one of its readers only, and an output that a Quantize does not make."""
        rng, node = np.random.default_rng(12), helper.make_node
        constants = [numpy_helper.from_array(rng.integers(-127, 128, (8, 4)).astype(np.int8), "w"),
                     *[numpy_helper.from_array(np.float32(n), name) for name, n in (("s", 0.02), ("sw", 0.01), ("t", 0.05))],
                     *[numpy_helper.from_array(np.array(n, np.uint8), name) for name, n in (("z", 120), ("u", 130))],
                     numpy_helper.from_array(np.int8(0), "zw")]
        q, dq = "QuantizeLinear", "DequantizeLinear"
        nodes = [node(q, ["x", "s", "z"], ["xq"]), node(dq, ["xq", "s", "z"], ["xd"]), node(dq, ["w", "sw", "zw"], ["wd"]),
                 node("MatMul", ["xd", "wd"], ["m"]), node(q, ["m", "t", "u"], ["yq"]), node(dq, ["yq", "t", "u"], ["y"])]
        x, data = value("x", [4, 8]), self.path("given.npy")
        np.save(data, rng.normal(0, 1, (4, 8)).astype(np.float32))
        self.convert("given-matmul", nodes, [x], [value("y", None)], constants)
        source, built = self.path("given-matmul.onnx"), self.path("given-ports.sinter")
        floats = self.output(self.path("given-matmul.sinter"), data)
        for given, made in ((None, "int8"), ("int8", "int8"), ("int8", "uint8"), ("x=int8", None)):
            with self.subTest(given=given, made=made):
                types = [*(["--input-type", given] if given else []), *(["--output-type", made] if made else [])]
                self.run_sinter("convert", source, "-o", built, *types)
                port = json.loads(self.run_sinter("inspect", built, "--json").out)["outputs"][0]
                got = self.output(built, data)
                if made:
                    self.assertEqual((port["type"], port["zero_point"]), (made, 130 if made == "uint8" else 2))
                    got = (got.astype(np.float32) - port["zero_point"]) * np.float32(port["scale"])
                np.testing.assert_array_equal(got, floats)
                self.run_sinter("compare", source, built, "--inputs", data)
        self.run_sinter("convert", source, "-o", built, "--input-type", "int8", "--output-type", "uint8", "--target", "cortex-m4")
        self.run_sinter("embed", built, "-o", self.path("net"))
        with open(self.path("net.h")) as f:
            header = f.read()
        for line in ("NET_INPUT_0_SCALE 0.0199999996f", "NET_INPUT_0_ZERO_POINT (-8)", "NET_OUTPUT_0_SCALE 0.0500000007f",
                     "NET_OUTPUT_0_ZERO_POINT (130)"):
            self.assertIn(f"#define {line}\n", header)
        twice = [*nodes, node("Sin", ["x"], ["sine"])]
        self.convert("given-twice", twice, [x], [value("y", None), value("sine", None)], constants)
        for flags, words in ((["--input-type", "int8"], ["'x'", "not rounded to int8 by all that reads it"]),
                             (["--output-type", "sine=int8"], ["'sine'", "'Sin_0'", "float32"])):
            self.run_sinter("convert", self.path("given-twice.onnx"), "-o", self.path("no.sinter"), *flags, code=2, words=words)

    def test_float16_and_named_inputs(self):
        source, plain = self.network("half", kind=TensorProto.FLOAT16)
        built = self.path("half8.sinter")
        self.run_sinter("convert", source, "-o", built, "--input-type", "x=uint8", "--scale", "1/255")
        picture = os.path.join(FILES, "rgb.png")
        # The host rounds numbers to float16, the model need not.
        np.testing.assert_allclose(self.output(built, picture), self.output(plain, picture, "--scale", "1/255"), atol=2**-9)

    def test_a_state_keeps_its_type(self):
        """A state may have the shape of a picture; only the input beside it gets bytes."""
        shape = [1, 3, HEIGHT, WIDTH]
        self.convert("recursive", [helper.make_node("Add", ["x", "s_in"], ["y"]), helper.make_node("Identity", ["y"], ["s_out"])],
                     [value("x", shape), value("s_in", shape)], [value("y", shape), value("s_out", shape)])
        source, built = self.path("recursive.onnx"), self.path("built.sinter")
        flags = ["--input-type", "uint8", "--scale", "1/255"]
        self.run_sinter("convert", source, "-o", built, *flags, "--state", "s_out=s_in")
        facts = json.loads(self.run_sinter("inspect", built, "--json").out)
        self.assertEqual([(i["name"], i["type"]) for i in facts["inputs"]], [("x", "uint8")])
        self.run_sinter("compare", source, built, "--inputs", os.path.join(FILES, "rgb.png"), *flags)
        out = self.path("no.sinter")
        self.run_sinter("convert", source, "-o", out, *flags, "--state", "auto", code=2, words=["x, s_in", "--input-type INPUT=uint8"])
        self.run_sinter("convert", source, "-o", out, "--input-type", "s_in=uint8", "--scale", "1", "--state", "s_out=s_in", code=2,
                        words=["this input is a state", "keeps its type", "leave the flag out"])
        cli.save_npz(self.path("states.npz"), {"x": np.random.default_rng(0).normal(0, 1, [10, *shape]).astype(np.float32)})
        for flag, name, kind in (("--input-type", "s_in", "input"), ("--output-type", "s_out", "output")):
            self.run_sinter("convert", source, "-o", out, "--state", "s_out=s_in", "--quantize", "int8", "--calibrate", self.path("states.npz"),
                            flag, name + "=int8", code=2, words=[f"{name}=int8: this {kind} is a state", "leave the flag out"])
        self.assertFalse(os.path.exists(out))

    def test_refusals(self):
        source, _ = self.network("conv")
        out = self.path("no.sinter")
        self.run_sinter("convert", source, "-o", out, "--input-type", "uint8", code=2, words=["--mean and --scale"])
        self.run_sinter("convert", source, "-o", out, "--input-type", "int16", code=2, words=["uint8 or int8"])
        self.run_sinter("convert", source, "-o", out, "--input-type", "int8", code=2, words=["'x'", "--quantize int8"])
        self.run_sinter("convert", source, "-o", out, "--output-type", "int8", code=2, words=["'y'", "--quantize int8"])
        self.run_sinter("convert", source, "-o", out, "--output-type", "z=int8", code=2, words=["z=int8", "no output"])
        self.run_sinter("convert", source, "-o", out, "--output-type", "int16", code=2, words=["int8, uint8 or float32"])
        self.run_sinter("convert", source, "-o", out, "--input-type", "z=uint8", "--scale", "1", code=2, words=["z=uint8"])
        self.copying([5, 6, 7])
        self.run_sinter("convert", self.copying([5, 6, 7]).replace(".sinter", ".onnx"), "-o", out, "--input-type", "uint8",
                        "--scale", "1", code=2, words=["no input"])
        self.assertFalse(os.path.exists(out))


class Random(Case):
    def test_the_seed_decides_the_numbers(self):
        kinds = [(TensorProto.FLOAT, np.float32), (TensorProto.UINT8, np.uint8), (TensorProto.INT64, np.int64),
                 (TensorProto.FLOAT16, np.float16), (TensorProto.BOOL, np.bool_)]
        for kind, dtype in kinds:
            with self.subTest(dtype.__name__):
                model, out = self.copying([40, 5], kind), self.path("random.npz")

                def numbers(seed):
                    self.run_sinter("run", model, "--random", seed, "--outputs", out)
                    return cli.load_npz(out)["y"]

                first = numbers("7")
                np.testing.assert_array_equal(first, numbers("7"))
                self.assertTrue((first != numbers("8")).any())
                self.assertEqual(first.dtype, dtype)
                low, high = {"f": (-1, 1), "u": (0, 255)}.get(first.dtype.kind, (0, 1))
                self.assertTrue(low <= first.min() < first.max() <= high)
                self.assertGreater(float(first.max()) - float(first.min()), 0.9 * (high - low))

    def test_compare_and_refusals(self):
        model = self.copying([4])
        self.run_sinter("compare", model.replace(".sinter", ".onnx"), model, "--random", "1")
        self.run_sinter("run", model, code=2, words=["--inputs", "--random"])
        self.run_sinter("run", model, "--random", "1", "--scale", "2", code=2, words=["--scale"])
        self.run_sinter("run", model, "--random", "one", code=2, words=["--random"])
        self.run_sinter("compare", model, model, "--random", "1", "--inputs", "x.npz", code=2, words=["exclude"])


class Labels(Case):
    """A model whose score c is high where the picture is about 80 * c bright."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for folder, levels in (("cat", (0, 10)), ("dog", (80, 85)), ("emu", (160, 70))):
            for level in levels:
                cls.write(f"set/{folder}/{level}.png", png(np.full([4, 4], level, np.uint8)))

    def evaluate(self, data, *flags, code=0, words=(), source="near"):
        """Scores of three classes; five of the six pictures are right, the last is second."""
        centres = np.float32([0, 80, 160])
        # -(x - c)^2 without the common term x^2.
        weights = numpy_helper.from_array(np.tile(2 * centres / 16, (16, 1)).astype(np.float32), "w")
        bias = numpy_helper.from_array(-centres**2, "b")
        nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("Gemm", ["f", "w", "b"], ["y"])]
        if not os.path.exists(self.path(source + ".onnx")):
            self.convert(source, nodes, [value("x", [1, 1, 4, 4])], [value("y", [1, 3])], [weights, bias])
        r = self.run_sinter("convert", self.path(source + ".onnx"), "-o", self.path("e.sinter"), "--evaluate", data, "--scale",
                            "1", "--json", *flags, code=code, words=words)
        return json.loads(r.out) if code == 0 else None

    def test_folders(self):
        self.assertAlmostEqual(self.evaluate(self.path("set"))["top1"], 5 / 6)
        self.assertEqual(self.evaluate(self.path("set"), "--metric", "top5")["top5"], 1)
        classes = self.write("classes.txt", "emu\ndog\ncat\n")
        self.assertAlmostEqual(self.evaluate(self.path("set"), "--classes", classes)["top1"], 2 / 6)
        self.evaluate(self.path("set"), "--classes", self.write("less.txt", "emu\ncat\n"), code=5, words=["'dog'", "less.txt"])
        self.evaluate(self.path("set/cat"), code=5, words=["no label", "sub-folder"])
        self.evaluate(self.path("set/cat/*.png"), code=5, words=["no label", ".csv"])
        self.evaluate(self.path("set/cat/0.png"), code=2, words=["0.png", "sub-folder"])

    def test_folders_with_numbers_are_these(self):
        for number, level in ((2, 160), (0, 0), (10, 80)):
            self.write(f"numbers/{number}/x.png", png(np.full([4, 4], level, np.uint8)))
        self.evaluate(self.path("numbers"), code=5, words=["label 10", "3 scores"])
        os.rename(self.path("numbers/10"), self.path("numbers/1"))
        self.assertEqual(self.evaluate(self.path("numbers"))["top1"], 1)

    def test_lists(self):
        rows = "path,truth\ncat/0.png,0\ndog/80.png,2\n"
        self.assertEqual(self.evaluate(self.write("set/l.csv", rows))["top1"], 0.5)
        other = self.write("set/m.csv", "path,size,truth\ncat/0.png,7,0\ndog/80.png,7,1\n")
        self.assertEqual(self.evaluate(other, "--label", "truth")["top1"], 1)
        entries = self.write("set/l.json", json.dumps([{"x": "cat/0.png", "is": 0}, {"x": "emu/160.png", "is": "emu"}]))
        classes = self.write("c.txt", "cat\ndog\nemu\n")
        self.assertEqual(self.evaluate(entries, "--label", "is", "--classes", classes)["top1"], 1)
        self.evaluate(entries, "--label", "is", code=5, words=["'emu'", "--classes"])
        self.evaluate(entries, code=2, words=["--label"])
        self.evaluate(entries, "--label", "was", code=5, words=["no label", "--label"])

    def levels(self, name, folders):
        """Folders with 8 pictures each, of the brightness that the function gives for a picture's number."""
        for folder, level in folders.items():
            for i in range(8):
                self.write(f"{name}/{folder}/{i}.png", png(np.full([4, 4], level(i), np.uint8)))
        return self.path(name)

    def warnings(self, data, *flags):
        return [d["message"] for d in self.evaluate(data, *flags)["diagnostics"] if d["severity"] == "warning"]

    def test_folders_in_another_order_than_the_model_s(self):
        """For the model dark pictures are class 0; by their names they are class 1."""
        data = self.levels("order", {"bright": lambda i: 150 + i, "dark": lambda i: i, "grey": lambda i: 76 + i})
        for flags in ((), ("--quantize", "int8", "--force-int8", "--calibrate", data, "--max-drop", "99%")):
            message, = self.warnings(data, *flags)
            for words in ("0.00 % of 24 samples are right in float, no more than by chance (33.33 %)", "it would be 100.00 %",
                          "'bright', here 0, is mostly class 2"):
                self.assertIn(words, message)
        classes = self.write("order.txt", "dark\ngrey\nbright\n")
        self.assertEqual(self.warnings(data, "--classes", classes), [])

    def test_labels_at_chance(self):
        mixed = self.levels("mixed", dict.fromkeys("abc", lambda i: 80 * (i % 3)))
        message, = self.warnings(mixed)
        self.assertIn("no more than by chance", message)
        self.assertNotIn("another order", message)
        labels = self.path("labels.npz")
        x = np.repeat(np.float32([0, 80, 160]), 20)[:, None, None, None, None] * np.ones([1, 1, 1, 4, 4], np.float32)
        for truth, count in ((np.repeat([1, 2, 0], 20), 1), (np.repeat([0, 1, 2], 20), 0), (np.zeros(60, np.int64), 1)):
            cli.save_npz(labels, {"x": x, "label": truth})
            r = self.run_sinter("convert", self.path("near.onnx"), "-o", self.path("e.sinter"), "--evaluate", labels, "--label",
                                "label", "--json")
            self.assertEqual(r.out.count("samples are right in float"), count, truth)

    def test_what_is_no_reason_for_a_warning(self):
        """Few samples, one wrong class among many, a label for most of the samples, and many classes with a sample or two each."""
        self.assertEqual(self.warnings(self.path("set")), [])
        half = self.levels("half", {"a": lambda i: i, "b": lambda i: 80, "c": lambda i: 80 if i % 2 else 160})
        self.assertEqual(self.warnings(half), [])
        rows = "".join(f"half/a/{i % 8}.png,0\n" for i in range(30)) + "half/c/0.png,2\n"
        self.assertEqual(self.warnings(self.write("most.csv", rows)), [])
        random = np.random.default_rng(0)
        x, w = random.standard_normal([30, 1, 64], np.float32), random.standard_normal([64, 200], np.float32)
        best = (x @ w)[:, 0].argsort(-1)
        truth = np.where(random.random(30) < 0.3, best[:, -1], best[:, -2])
        cli.save_npz(self.path("many.npz"), {"x": x, "label": truth})
        self.convert("many", [helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 64])], [value("y", [1, 200])],
                     [numpy_helper.from_array(w, "w")])
        r = self.run_sinter("convert", self.path("many.onnx"), "-o", self.path("e.sinter"), "--evaluate", self.path("many.npz"),
                            "--label", "label", "--json")
        self.assertNotIn("right in float", r.out)

    def test_with_quantization(self):
        report = self.evaluate(self.path("set"), "--quantize", "int8", "--calibrate", self.path("set"), "--max-drop", "20%")
        self.assertAlmostEqual(report["quantized"]["float_accuracy"], 5 / 6)
        self.evaluate(self.path("set"), "--quantize", "int8", "--calibrate", self.path("set"), "--metric", "sqnr")


class Scales(Case):
    """Calibration data on another scale than that of training is named, with the scale that fits."""
    FLAGS = {"0 to 1": ["--scale", "1/255"], "0 to 255": ["--scale", "1"], "-1 to 1": ["--mean", "127.5", "--scale", "1/127.5"]}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        random = np.random.default_rng(7)
        steps = np.linspace(0, 1, 8)
        pictures = []
        for i in range(24):
            a, b, low, high = *random.uniform(-1, 1, 2), *np.sort(random.uniform(0, 255, 2))
            ramp = a * steps[:, None] + b * steps
            ramp = (ramp - ramp.min()) / (np.ptp(ramp) + 1e-9)
            pictures.append(np.clip(low + (high - low) * ramp + random.normal(0, 12, [8, 8]), 0, 255).astype(np.uint8))
            cls.write(f"pictures/{i}.png", png(pictures[-1]))
        cls.pixels = np.stack(pictures).astype(np.float32)[:, None]
        cls.random = random

    def numbers(self, scale):
        return {"0 to 1": self.pixels / 255, "0 to 255": self.pixels, "-1 to 1": self.pixels / 127.5 - 1}[scale]

    def messages(self, name, flags):
        r = self.run_sinter("convert", self.path(name + ".onnx"), "-o", self.path("s.sinter"), "--quantize", "int8", "--force-int8",
                            "--calibrate", self.path("pictures"), "--json", *flags)
        return [d["message"] + ": " + d["remedy"] for d in json.loads(r.out)["diagnostics"]
                if d["severity"] == "warning" and "calibration data" in d["message"]]

    def normalizing(self, scale, spread=1.0, shift=0.0):
        """A convolution whose BatchNormalization holds the moments of the pictures on this scale."""
        w = self.random.standard_normal([6, 1, 3, 3]).astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(self.numbers(scale)[:, 0], (3, 3), (1, 2))
        products = np.einsum("nhwij,cij->cnhw", windows, w[:, 0]).reshape(6, -1)
        arrays = {"w": w, "g": np.ones(6, np.float32), "b": np.zeros(6, np.float32),
                  "m": (products.mean(1) + shift * products.std(1)).astype(np.float32),
                  "v": (products.var(1) * spread**2).astype(np.float32)}
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="first"),
                 helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"], name="norm"),
                 helper.make_node("Relu", ["n"], ["y"])]
        self.convert("norm", nodes, [value("x", [1, 1, 8, 8])], [value("y", [1, 6, 6, 6])],
                     [numpy_helper.from_array(a, n) for n, a in arrays.items()])

    def test_moments_of_training(self):
        for trained in self.FLAGS:
            self.normalizing(trained)
            for (given, flags), built_in in itertools.product(self.FLAGS.items(), ([], ["--input-type", "uint8"])):
                with self.subTest(trained=trained, given=given, built_in=built_in):
                    found = self.messages("norm", flags + built_in)
                    if given == trained:
                        self.assertEqual(found, [])
                    elif "0 to 255" in (given, trained):
                        self.assertEqual(len(found), 1)
                        self.assertIn(f"of the usual scales, {trained} (pictures: {' '.join(self.FLAGS[trained])})", found[0])

    def test_data_of_another_contrast_or_brightness(self):
        """What an ordinary set of pictures may differ by is no warning."""
        for spread, shift in ((2, 0.5), (0.5, 0.5), (1, 1)):
            self.normalizing("0 to 1", spread, shift)
            self.assertEqual(self.messages("norm", self.FLAGS["0 to 1"]), [], (spread, shift))

    def test_networks_that_were_not_trained(self):
        arrays = {"w": self.random.standard_normal([6, 1, 3, 3]), "g": np.ones(6), "b": np.zeros(6), "m": np.zeros(6),
                  "v": np.ones(6), "c": self.random.uniform(-1 / 3, 1 / 3, 6)}
        nodes = [helper.make_node("Conv", ["x", "w", "c"], ["p"]),
                 helper.make_node("BatchNormalization", ["p", "g", "b", "m", "v"], ["n"]), helper.make_node("Relu", ["n"], ["y"])]
        self.convert("norm", nodes, [value("x", [1, 1, 8, 8])], [value("y", [1, 6, 6, 6])],
                     [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()])
        for flags in self.FLAGS.values():
            self.assertEqual(self.messages("norm", flags), [])

    def test_a_bias_larger_than_its_products(self):
        w = self.random.standard_normal([6, 1, 3, 3]).astype(np.float32) / 100
        arrays = {"w": w, "b": self.random.uniform(0.5, 1.5, 6).astype(np.float32)}
        self.convert("bias", [helper.make_node("Conv", ["x", "w", "b"], ["c"], name="first"), helper.make_node("Relu", ["c"], ["y"])],
                     [value("x", [1, 1, 8, 8])], [value("y", [1, 6, 6, 6])], [numpy_helper.from_array(a, n) for n, a in arrays.items()])
        self.assertEqual(self.messages("bias", self.FLAGS["0 to 255"]), [])
        for given in ("0 to 1", "-1 to 1"):
            found, = self.messages("bias", self.FLAGS[given])
            self.assertIn("0 to 255 (pictures: --scale 1) fits", found)
        found, = self.messages("bias", ["--scale", "1/16"])
        self.assertIn("multiplied by 16, so that it reaches from 0 to 255, it fits", found)

    def test_one_class_for_every_sample(self):
        """A classifier without a bias in front: on numbers that are too small its last bias decides alone."""
        w = self.random.standard_normal([64, 16]).astype(np.float32) / 100
        v = self.random.standard_normal([16, 4]).astype(np.float32)
        v -= v.mean(0)
        arrays = {"w": w, "v": v, "b": np.float32([0.5, 0, -0.5, 0])}
        nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["h"]),
                 helper.make_node("Relu", ["h"], ["r"]), helper.make_node("Gemm", ["r", "v", "b"], ["s"])]
        for name, last in (("scores", []), ("shares", [helper.make_node("Softmax", ["s"], ["y"], axis=1)])):
            out = last or [helper.make_node("Identity", ["s"], ["y"])]
            self.convert(name, nodes + out, [value("x", [1, 1, 8, 8])], [value("y", [1, 4])],
                         [numpy_helper.from_array(a, n) for n, a in arrays.items()])
            self.assertEqual(self.messages(name, self.FLAGS["0 to 255"]), [])
            for built_in in ([], ["--input-type", "uint8"]):
                found = self.messages(name, ["--scale", "1/65025", *built_in])
                self.assertTrue(any("gives class 0 ('y') for all of 16 samples" in f and "0 to 255 (pictures: --scale 1)" in f
                                    for f in found), found)

    def test_one_class_of_samples_is_no_fault(self):
        """All pictures are of one class, and a network may give one class whatever it gets."""
        w = np.tile(np.float32([1, 0.5, -1]), (64, 1)) / 64
        for name, bias in (("bright", [0, 0, 0]), ("dead", [1e5, 0, 0])):
            self.convert(name, [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("Gemm", ["f", "w", "b"], ["y"])],
                         [value("x", [1, 1, 8, 8])], [value("y", [1, 3])],
                         [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.float32(bias), "b")])
            for flags in (self.FLAGS["0 to 1"], self.FLAGS["0 to 255"]):
                self.assertEqual(self.messages(name, flags), [])


def main():
    global SINTER
    SINTER, argv = cli.program_and_argv()
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
