#!/usr/bin/env python3
"""Latencies of other runtimes on this machine's GPU, for the networks of a bundle: a table, medians and minima in microseconds.

    rivals.py FOLDER [--seconds S] [--json FILE]
    rivals.py FOLDER --write-inputs     only writes NAME.npz, the inputs of each network

FOLDER has NAME.onnx files. ONNX Runtime's CUDA and TensorRT providers, and PyTorch (by onnx2torch; eager, and as a captured CUDA
graph), each where it is installed; what is missing is listed. Inputs are on the device already, as in a pipeline that keeps them
there: times are those of a run that ends with the device idle.
"""
import argparse
import glob
import json
import os
import statistics
import sys
import time

import numpy as np
import onnx


def made_up(model):
    """Inputs with every open dimension 1."""
    r = np.random.default_rng(1)
    constants = {i.name for i in model.graph.initializer}
    arrays = {}
    for i in model.graph.input:
        if i.name in constants:
            continue
        t = i.type.tensor_type
        dims = [d.dim_value or 1 for d in t.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        arrays[i.name] = r.uniform(0, 1, dims).astype(dtype) if np.issubdtype(dtype, np.floating) else np.ones(dims, dtype)
    return arrays


def timed(run, wait, seconds):
    for _ in range(10):
        run()
    wait()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 20:
        start = time.perf_counter()
        run()
        wait()
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times), min(times)


def onnxruntime(provider):
    import onnxruntime as ort

    if provider not in ort.get_available_providers():
        raise ImportError(f"this onnxruntime has no {provider}")

    def prepare(path, arrays):
        session = ort.InferenceSession(path, providers=[provider])
        binding = session.io_binding()
        for name, a in arrays.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(a, "cuda", 0))
        for o in session.get_outputs():
            binding.bind_output(o.name, "cuda")
        return lambda: session.run_with_iobinding(binding), binding.synchronize_outputs
    return prepare


def torch_module(graph):
    import onnx2torch
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch finds no GPU")

    def prepare(path, arrays):
        module = onnx2torch.convert(path).eval().cuda()
        inputs = [torch.from_numpy(a).cuda() for a in arrays.values()]
        with torch.inference_mode():
            module(*inputs)
            if not graph:
                def run():
                    with torch.inference_mode():
                        module(*inputs)
                return run, torch.cuda.synchronize
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    module(*inputs)
            torch.cuda.synchronize()
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                module(*inputs)
        return captured.replay, torch.cuda.synchronize
    return prepare


RIVALS = {
    "ONNX Runtime, CUDA": lambda: onnxruntime("CUDAExecutionProvider"),
    "ONNX Runtime, TensorRT": lambda: onnxruntime("TensorrtExecutionProvider"),
    "PyTorch": lambda: torch_module(False),
    "PyTorch, CUDA graph": lambda: torch_module(True),
}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--json")
    p.add_argument("--write-inputs", action="store_true")
    args = p.parse_args()
    if args.write_inputs:
        for path in sorted(glob.glob(os.path.join(args.folder, "*.onnx"))):
            np.savez(path[: -len(".onnx")] + ".npz", **made_up(onnx.load(path)))
        return
    found, table = {}, {}
    for name, make in RIVALS.items():
        try:
            found[name] = make()
        except ImportError as e:
            print(f"left out: {name} ({e})")
    for path in sorted(glob.glob(os.path.join(args.folder, "*.onnx"))):
        network = os.path.basename(path)[: -len(".onnx")]
        arrays = made_up(onnx.load(path))
        for name, prepare in found.items():
            try:
                median, minimum = timed(*prepare(path, arrays), args.seconds)
            except Exception as e:  # another runtime's refusal is a result, whatever its type
                print(f"{network:24} {name:24} refused: {str(e).splitlines()[0][:90]}")
                continue
            table.setdefault(network, {})[name] = [median, minimum]
            print(f"{network:24} {name:24} {median:10.1f} {minimum:10.1f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(table, f, indent=1)


if __name__ == "__main__":
    sys.exit(main())
