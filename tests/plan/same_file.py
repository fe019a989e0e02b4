#!/usr/bin/env python3
"""One machine's file is every machine's: models are converted natively and under qemu as other processors, for every target,
and the files are compared byte by byte.

Needs qemu-x86_64 and a program for x86-64. Costs about 60 CPU seconds.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import sinter_cli as cli  # noqa: E402

TARGETS = ("x86_64", "x86_64+avx2", "aarch64", "armv7", "cortex-m4", "portable")
PROCESSORS = ("Nehalem", "Haswell")
NETS = os.path.join(cli.REPO, "tests", "quantize", "nets")


def windows(path):
    """Convolutions whose kernels need different workspaces by the width of vectors: dilated ones in three dimensions, and
    groups of one to sixteen channels."""
    rng = np.random.default_rng(3)
    nodes, weights, value, channels = [], [], "x", 16
    for i, (out, group, dilation) in enumerate(((16, 1, 2), (16, 16, 2), (16, 8, 1), (32, 4, 2), (32, 2, 1), (48, 1, 1))):
        w = rng.standard_normal((out, channels // group, 3, 3, 3)).astype(np.float32) * 0.1
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], [f"y{i}"], group=group, dilations=[dilation] * 3,
                                      pads=[dilation] * 6, name=f"conv{i}"))
        value, channels = f"y{i}", out
    graph = helper.make_graph(nodes, "windows", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 6, 6, 6])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def tiles(path):
    """Convolutions of 3x3 for which the converter measures the rounding error of Winograd's algorithm: one that it may use, one
    that it may not, and one of few channels."""
    rng = np.random.default_rng(4)
    exact = np.zeros((32, 32, 3, 3), np.float32)
    exact[np.arange(32), np.arange(32), 1, 1] = 0.7
    weights = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate((
        rng.standard_normal((32, 3, 3, 3)).astype(np.float32), rng.standard_normal((32, 32, 3, 3)).astype(np.float32), exact))]
    nodes = [helper.make_node("Conv", [value, f"w{i}"], [result], pads=[1] * 4, name=f"conv{i}")
             for i, (value, result) in enumerate((("x", "a"), ("a", "b"), ("b", "y")))]
    graph = helper.make_graph(nodes, "tiles", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 64, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def products(path):
    """Products of computed matrices, for which the weights' panels are workspace."""
    shape = [2, 4, 9, 9]
    nodes = [helper.make_node("MatMul", ["x", "x"], ["a"]), helper.make_node("Softmax", ["a"], ["b"], axis=-1),
             helper.make_node("MatMul", ["b", "x"], ["c"]), helper.make_node("Div", ["c", "x"], ["d"]),
             helper.make_node("Sqrt", ["d"], ["y"])]
    graph = helper.make_graph(nodes, "products", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter", required=True)
    args = parser.parse_args()
    sinter = cli.find_sinter(args.sinter)
    qemu = shutil.which("qemu-x86_64")
    if not qemu:
        cli.skip("qemu-x86_64 is not installed")
    failed = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        windows(os.path.join(folder, "windows.onnx"))
        products(os.path.join(folder, "products.onnx"))
        tiles(os.path.join(folder, "tiles.onnx"))
        models = [os.path.join(folder, f"{name}.onnx") for name in ("windows", "products", "tiles")]
        models.append(os.path.join(cli.REPO, "examples", "digits", "digits.onnx"))
        models += sorted(os.path.join(NETS, f) for f in os.listdir(NETS) if f.endswith(".onnx"))
        cases = [(m, t, []) for m in models for t in TARGETS]
        cases += [(m, "x86_64", flags) for m in models[:4] for flags in (["--quantize", "int8w"], ["--max-arena", "40000"])]
        for model, target, flags in cases:
            files = []
            for processor in (None, *PROCESSORS):
                out = os.path.join(folder, f"{processor}.sinter")
                command = [sinter, "convert", model, "-o", out, "--target", target, "--quiet", "--no-trial", *flags]
                done = subprocess.run(command if processor is None else [qemu, "-cpu", processor, *command],
                                      capture_output=True, text=True, check=False)
                if done.returncode not in (0, 1):
                    print(f"{model} for {target} as {processor}: exit code {done.returncode}: {done.stderr[-300:]}")
                    failed += 1
                if os.path.exists(out):
                    with open(out, "rb") as file:
                        files.append(file.read())
                    os.remove(out)
                else:
                    files.append(b"refused")  # --max-arena
            compared += 1
            for processor, file in zip(PROCESSORS, files[1:]):
                if file != files[0]:
                    print(f"{os.path.basename(model)} {' '.join(flags)} for {target}: converted as {processor} it is another file")
                    failed += 1
    print(f"{compared} conversions, each as {', '.join(('this processor', *PROCESSORS))}: {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
