#!/usr/bin/env python3
"""The cost of calibration: time and peak memory of watching every value of a MobileNetV2 at 224 (random weights), by
the number of samples, against the same samples run without observation.

    bench/bench_calibration.py --sinter build/release/bin/sinter [--samples 32 512 4096] [--json FILE]

The data are N(0,1) images in a .npy file in the temporary folder (0.6 MB a sample), made before anything is timed.
"check" is the pass that checks the data alone, before the first run; "convert" the whole of sinter convert --quantize
int8, with everything that it tries for the accuracy. Times are CPU seconds of one pass on one
thread, so that other work on the machine matters less; "ratio" is watched over plain. Needs numpy and onnx.
"""
import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


class Network:
    """MobileNetV2 1.0 with batch normalization folded away; weights that keep the values' sizes."""

    def __init__(self):
        self.random = np.random.RandomState(0)
        self.nodes, self.weights = [], []
        self.constant("low", np.float32(0))
        self.constant("high", np.float32(6))

    def constant(self, name, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def conv(self, x, channels, out, kernel=1, stride=1, group=1, clip=True):
        n = str(len(self.nodes))
        fan = channels // group * kernel * kernel
        w = self.random.randn(out, channels // group, kernel, kernel) * np.sqrt((2 if clip else 1) / fan)
        names = [x, self.constant("w" + n, w), self.constant("b" + n, self.random.randn(out) * 0.1)]
        self.nodes.append(helper.make_node("Conv", names, ["c" + n], kernel_shape=[kernel] * 2, strides=[stride] * 2,
                                           pads=[kernel // 2] * 4, group=group))
        if clip:
            self.nodes.append(helper.make_node("Clip", ["c" + n, "low", "high"], ["a" + n]))
        return ("a" if clip else "c") + n

    def model(self):
        x, c = self.conv("x", 3, 32, 3, 2), 32
        for widen, out, repeats, stride in STAGES:
            for i in range(repeats):
                step = stride if i == 0 else 1
                y = self.conv(x, c, c * widen) if widen > 1 else x
                y = self.conv(y, c * widen, c * widen, 3, step, c * widen)
                y = self.conv(y, c * widen, out, clip=False)
                if step == 1 and c == out:
                    name = f"sum{len(self.nodes)}"
                    self.nodes.append(helper.make_node("Add", [x, y], [name]))
                    y = name
                x, c = y, out
        self.nodes.append(helper.make_node("GlobalAveragePool", [self.conv(x, c, 1280)], ["pooled"]))
        self.nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
        weights = [self.constant("w", self.random.randn(1000, 1280) * 0.03), self.constant("b", np.zeros(1000))]
        self.nodes.append(helper.make_node("Gemm", ["flat", *weights], ["y"], transB=1))
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "mobilenet_v2", [value("x", TensorProto.FLOAT, [1, 3, 224, 224])],
                                  [value("y", TensorProto.FLOAT, [1, 1000])], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_samples(path, n):
    images = np.lib.format.open_memmap(path, "w+", np.float32, (n, 3, 224, 224))
    for i in range(n):
        images[i] = np.random.RandomState(i).randn(3, 224, 224)


def ranges(sinter, model, data, *flags):
    r = subprocess.run([sinter, "ranges", model, "--calibrate", data, "--json", "--quiet", *flags],
                       capture_output=True, text=True)
    if r.returncode != 0:
        sys.exit(f"sinter ranges: {r.stderr.strip()}")
    return json.loads(r.stdout)


def convert(sinter, model, data, out):
    """CPU seconds and peak memory in bytes of the whole conversion."""
    child = subprocess.Popen([sinter, "convert", model, "-o", out, "--quantize", "int8", "--calibrate", data, "--quiet"])
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit("sinter convert failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sinter", default="build/release/bin/sinter")
    parser.add_argument("--samples", type=int, nargs="+", default=[32, 512, 4096])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="calibration-") as folder:
        model = os.path.join(folder, "net.onnx")
        onnx.save(Network().model(), model)
        print(f"{'samples':>8} {'check s':>8} {'plain s':>8} {'watched s':>9} {'ratio':>6} {'peak MB':>8} {'plain MB':>8} "
              f"{'convert s':>9} {'convert MB':>10}")
        for n in arguments.samples:
            data = os.path.join(folder, "samples.npy")
            # In a process of its own: a child's peak memory begins with its parent's.
            process = multiprocessing.get_context("spawn").Process(target=write_samples, args=(data, n))
            process.start()
            process.join()
            plain, watched = ranges(arguments.sinter, model, data, "--plain"), ranges(arguments.sinter, model, data)
            seconds, peak = convert(arguments.sinter, model, data, os.path.join(folder, "net.sinter"))
            os.remove(data)
            row = dict(samples=n, check_seconds=watched["check_seconds"], plain_cpu_seconds=plain["cpu_seconds"],
                       cpu_seconds=watched["cpu_seconds"], seconds=watched["seconds"],
                       ratio=watched["cpu_seconds"] / plain["cpu_seconds"],
                       peak_rss_bytes=watched["peak_rss_bytes"], plain_peak_rss_bytes=plain["peak_rss_bytes"],
                       convert_cpu_seconds=seconds, convert_peak_rss_bytes=peak)
            rows.append(row)
            print(f"{n:>8} {row['check_seconds']:>8.2f} {row['plain_cpu_seconds']:>8.2f} {row['cpu_seconds']:>9.2f} "
                  f"{row['ratio']:>6.2f} {row['peak_rss_bytes'] / 1e6:>8.1f} {row['plain_peak_rss_bytes'] / 1e6:>8.1f} "
                  f"{seconds:>9.2f} {peak / 1e6:>10.1f}",
                  flush=True)
    if arguments.json:
        with open(arguments.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
