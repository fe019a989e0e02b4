#!/usr/bin/env python3
"""Latencies of other runtimes on this machine, for the networks of a bundle: a table, medians and minima in microseconds.

    rivals.py FOLDER [--networks REGEX] [--seconds S] [--json FILE]
    rivals.py FOLDER --write-inputs networks.txt    only writes NAME.npz, the inputs of each network (needs onnx)

FOLDER has NAME.onnx and NAME.npz files. The runtimes are ONNX Runtime with its CUDA, TensorRT and CPU providers, and PyTorch by
onnx2torch (eager, and as a captured CUDA graph). A line names each one that is not installed. Inputs and outputs of a GPU are in
its memory, as in a pipeline that keeps them there; a run ends when the device is idle.
"""
import argparse
import glob
import json
import os
import re
import statistics
import sys
import time

# Packages that the bundle brings, after the machine's own.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
try:
    import numpy as np
except ImportError:
    np = None


def made_up(model, top):
    """Inputs from 0 to `top`, with every open dimension 1."""
    import onnx

    r = np.random.default_rng(1)
    constants = {i.name for i in model.graph.initializer}
    arrays = {}
    for i in model.graph.input:
        if i.name in constants:
            continue
        t = i.type.tensor_type
        dims = [d.dim_value or 1 for d in t.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        arrays[i.name] = r.uniform(0, top, dims).astype(dtype) if np.issubdtype(dtype, np.floating) else np.ones(dims, dtype)
    return arrays


def write_inputs(folder, networks):
    import onnx

    tops = {row[0]: float(row[2]) for row in map(str.split, open(networks)) if len(row) > 2}

    for path in sorted(glob.glob(os.path.join(folder, "*.onnx"))):
        np.savez(path[: -len(".onnx")] + ".npz", **made_up(onnx.load(path), tops.get(os.path.basename(path)[: -len(".onnx")], 1)))


def timed(run, wait, seconds):
    """At least five runs, however long they take."""
    for _ in range(3):
        run()
    wait()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        wait()
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times), min(times)


class NotInstalled(Exception):
    pass


def imported(name):
    try:
        return __import__(name)
    except ImportError as e:
        raise NotInstalled(f"not installed ({e})") from e
    except Exception as e:  # a package that does not fit the machine's libraries
        raise NotInstalled(f"cannot be imported ({e})") from e


def onnxruntime(provider, device):
    ort = imported("onnxruntime")
    if provider not in ort.get_available_providers():
        raise NotInstalled(f"not installed (onnxruntime {ort.__version__} is there without {provider})")

    def prepare(path, arrays):
        session = ort.InferenceSession(path, providers=[provider])
        if provider not in session.get_providers():
            raise RuntimeError("the provider does not start here")
        if device == "cpu":
            return lambda: session.run(None, arrays), lambda: None
        binding = session.io_binding()
        for name, a in arrays.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(a, device, 0))
        for o in session.get_outputs():
            binding.bind_output(o.name, device)
        return lambda: session.run_with_iobinding(binding), binding.synchronize_outputs
    return prepare


def torch_module(graph):
    torch = imported("torch")
    if not torch.cuda.is_available():
        raise NotInstalled("not run: this PyTorch finds no GPU")
    onnx2torch = imported("onnx2torch")

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
    "ONNX Runtime, CUDA": lambda: onnxruntime("CUDAExecutionProvider", "cuda"),
    "ONNX Runtime, TensorRT": lambda: onnxruntime("TensorrtExecutionProvider", "cuda"),
    "ONNX Runtime, CPU": lambda: onnxruntime("CPUExecutionProvider", "cpu"),
    "PyTorch": lambda: torch_module(False),
    "PyTorch, CUDA graph": lambda: torch_module(True),
}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--networks", default=".", help="only those whose names contain this expression")
    p.add_argument("--seconds", type=float, default=0.2)
    p.add_argument("--json")
    p.add_argument("--write-inputs", metavar="NETWORKS")
    args = p.parse_args()
    if np is None:
        print("NumPy is not installed, without which no other runtime is measured")
        return 1 if args.write_inputs else 0
    if args.write_inputs:
        return write_inputs(args.folder, args.write_inputs)
    found, table = {}, {}
    for name, make in RIVALS.items():
        try:
            found[name] = make()
        except NotInstalled as e:
            print(f"{name}: {e}", flush=True)
    for path in sorted(glob.glob(os.path.join(args.folder, "*.onnx"))):
        network = os.path.basename(path)[: -len(".onnx")]
        if not re.search(args.networks, network):
            continue
        with np.load(path[: -len(".onnx")] + ".npz") as file:
            arrays = dict(file)
        for name, prepare in found.items():
            try:
                median, minimum = timed(*prepare(path, arrays), args.seconds)
            except Exception as e:  # another runtime's refusal is a result, whatever its type
                print(f"{network:24} {name:24} refused: {(str(e).splitlines() or [type(e).__name__])[0][:90]}", flush=True)
                continue
            table.setdefault(network, {})[name] = [median, minimum]
            print(f"{network:24} {name:24} {median:10.1f} {minimum:10.1f}", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(table, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
