#!/usr/bin/env python3
"""Damage the suite's models at random, by bytes and by fields, and require that `sinter` never crashes.

    fuzz.py [--sinter PROGRAM] [--count N] [--seed S] [--keep FOLDER]

Whatever converts must also run (any exit code from 0 to 6), and then both backends must give the same answer. A crash,
an unlisted code, a hang, an internal error, an output file after a refusal, or a failure without a message is a
finding; --keep saves the file that did it. The seed makes a run repeatable.
"""
import argparse
import concurrent.futures
import os
import random
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import make_cases  # noqa: E402
from case import Case  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402

NUMBERS = (0, 1, -1, 2, 3, 7, -7, 127, 255, 2**15, 2**31 - 1, -2**31, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -2**63)
LARGEST_ARENA = 1 << 28  # larger results of a damaged size are not computed: that takes its time
FLOATS = (0.0, -1.0, 1e-40, 1e38, float("inf"), float("-inf"), float("nan"), 2.0**31)


def damage_bytes(data, r):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 4, 16))):
        at = r.randrange(len(data)) if data else 0
        what = r.randrange(5)
        if what == 0 and data:
            data[at] ^= 1 << r.randrange(8)
        elif what == 1 and data:
            data[at] = r.randrange(256)
        elif what == 2:
            del data[at:at + r.choice((1, 2, 8, 64))]
        elif what == 3:
            data[at:at] = bytes(r.randrange(256) for _ in range(r.choice((1, 2, 8))))
        else:
            del data[at:]
    return bytes(data)


def attributes(graph):
    for n in graph.node:
        for a in n.attribute:
            yield a
            if a.HasField("g"):
                yield from attributes(a.g)


def damage_fields(m, r):
    """Edits that keep the file readable: what a verifier of structure alone lets through."""
    g = m.graph
    nodes = list(g.node)
    for a in attributes(g):
        if a.HasField("g") and r.random() < 0.5:
            nodes += list(a.g.node)
    names = [x for n in nodes for x in (*n.input, *n.output)] + [""]
    n = r.choice(nodes) if nodes else None
    attrs = list(attributes(g))
    what = r.randrange(14)
    if what == 0 and n and n.input:
        n.input[r.randrange(len(n.input))] = r.choice(names)
    elif what == 1 and n and n.output:
        n.output[r.randrange(len(n.output))] = r.choice(names)
    elif what == 2 and n:
        n.op_type = r.choice(nodes).op_type
    elif what == 3 and n and n.input:
        del n.input[r.randrange(len(n.input))]
    elif what == 4 and n:
        n.input.append(r.choice(names))
    elif what == 5 and attrs:
        a = r.choice(attrs)
        if a.ints:
            a.ints[r.randrange(len(a.ints))] = r.choice(NUMBERS)
        a.i, a.f = r.choice(NUMBERS), r.choice(FLOATS)
    elif what == 6 and attrs:
        a = r.choice(attrs)
        del a.ints[r.randrange(len(a.ints) + 1):]
        a.ints.extend(r.choice(NUMBERS) for _ in range(r.randrange(3)))
    elif what == 7 and attrs:
        r.choice(attrs).type = r.randrange(15)
    elif what == 8 and g.input:
        dims = r.choice(g.input).type.tensor_type.shape.dim
        if dims:
            r.choice(dims).dim_value = r.choice(NUMBERS)
    elif what == 9 and g.initializer:
        t = r.choice(g.initializer)
        if t.dims:
            t.dims[r.randrange(len(t.dims))] = r.choice(NUMBERS)
        else:
            t.dims.append(r.choice(NUMBERS))
    elif what == 10 and g.initializer:
        r.choice(g.initializer).data_type = r.randrange(26)
    elif what == 11 and g.input:
        r.choice(g.input).type.tensor_type.elem_type = r.randrange(26)
    elif what == 12 and g.initializer:
        t = r.choice(g.initializer)
        if t.raw_data:
            words = np.array([r.choice(NUMBERS)], np.int64).tobytes()
            t.raw_data = (words * (len(t.raw_data) // 8 + 1))[:len(t.raw_data)]
    elif m.opset_import:
        r.choice(m.opset_import).version = r.choice((1, 5, 7, 10, 13, 18, 28, 29, 0, -1, 2**40))


def may_overflow(data):
    """Whether a damaged weight is so large that sums of products leave float32: the reference kernels sum in float64."""
    m = onnx.ModelProto()
    m.ParseFromString(data)
    for t in m.graph.initializer:
        if t.data_type == onnx.TensorProto.FLOAT and not t.external_data:
            items = np.frombuffer(t.raw_data, np.float32) if t.raw_data else np.array(t.float_data, np.float32)
            if (np.abs(items[np.isfinite(items)]) > 1e15).any():
                return True
    return False


def backends_differ(sinter, target, work, timeout):
    """How the profile's own choice and the reference kernels disagree, or nothing."""
    answers = []
    for backend in ((), ("--backend", "reference")):
        out = os.path.join(work, "out.npz")
        r = cli.call(sinter, "run", target, "--inputs", os.path.join(work, "in.npz"), "--outputs", out, *backend,
                     timeout=timeout)
        if r.code != 0:
            return f"{' '.join(backend)}: {r.why()}"
        answers.append(cli.load_npz(out))
    for name, want in answers[1].items():
        got = answers[0][name]
        if got.dtype.kind == "f" and want.size:
            finite = np.abs(want[np.isfinite(want)])
            scale = float(finite.max()) if finite.size else 0.0
            # In float16, values between the steps may be rounded the other way, too.
            step = float(np.finfo(got.dtype).eps)
            result = cli.mismatch(got, want, max(1e-3, 4 * step), max(1e-4, step) * scale + 1e-6)
        elif got.dtype.kind in "iu" and got.shape == want.shape:
            # An integer computed through floats (a rounding, an ArgMax among equals) may fall the other way.
            near = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= 1
            result = None if near.all() else cli.mismatch(got, want, 0, 0)
        else:
            result = cli.mismatch(got, want, 0, 0)
        if result:
            return f"{name}: {result}"
    return ""


def conformance_cases(folder):
    """ONNX's node tests in scope, with the inputs of their first data set."""
    sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
    import make_data
    import scope
    make_data.make(folder)
    for kind, name, place in scope.tests(folder):
        with open(os.path.join(place, "model.onnx"), "rb") as f:
            m = onnx.ModelProto.FromString(f.read())
        if kind != "node" or scope.classify(kind, name, m)[0] != "in":
            continue
        feeds = {}
        for i, v in enumerate(m.graph.input):
            path = os.path.join(place, "test_data_set_0", f"input_{i}.pb")
            if os.path.exists(path):
                feeds[v.name] = onnx.numpy_helper.to_array(onnx.load_tensor(path))
        # Small inputs but the first become constants, so that operands that decide shapes are damaged too.
        for v in list(m.graph.input)[1:]:
            if v.name in feeds and feeds[v.name].size <= 16:
                m.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop(v.name), v.name))
                m.graph.input.remove(v)
        yield Case(name, m, feeds)


def arena(result):
    """The arena's bytes, from the output of `sinter convert`."""
    return int(re.search(r"^arena +(\d+) bytes", result, re.M).group(1))


def trial(job):
    number, name, data, files, flags, feeds, sinter, timeout, keep = job
    with tempfile.TemporaryDirectory(prefix="fuzz-") as work:
        source, target = os.path.join(work, "model.onnx"), os.path.join(work, "m.sinter")
        for path, content in {"model.onnx": data, **files}.items():
            os.makedirs(os.path.dirname(os.path.join(work, path)), exist_ok=True)
            with open(os.path.join(work, path), "wb") as f:
                f.write(content)
        r, step = cli.call(sinter, "convert", source, "-o", target, *flags, timeout=timeout), "convert"
        code, result = r.code, ""
        if r.code is None or r.crashed:
            result = r.why()
        elif "internal error" in r.err:
            result = r.why()
        elif r.code != 0 and os.path.exists(target):
            result = f"left an output file: {r.why()}"
        elif r.code not in (0, 2, 3, 4, 5, 6) and not (r.code == 1 and "--strict" in flags):
            result = f"unexpected: {r.why()}"
        elif r.code != 0 and not r.err.strip():
            result = f"exit {r.code} without a message"
        elif r.code == 0 and arena(r.out) < LARGEST_ARENA:
            cli.save_npz(os.path.join(work, "in.npz"), feeds)
            r, step = cli.call(sinter, "run", target, "--inputs", os.path.join(work, "in.npz"), timeout=timeout), "run"
            if r.code is None and b"Loop" in data:
                pass  # a damaged trip count may be astronomical
            elif r.code is None or r.crashed or r.code in (3, 4):
                result = r.why()
            elif r.code == 0:
                step, result = "compare", "" if may_overflow(data) else backends_differ(sinter, target, work, timeout)
        if result and keep:
            os.makedirs(keep, exist_ok=True)
            with open(os.path.join(keep, f"{number}-{name}.onnx"), "wb") as f:
                f.write(data)
        return number, name, code, f"{step}: {result}" if result else ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--count", type=int, default=1500)
    p.add_argument("--data", help="folder of ../conformance/make_data.py: damage ONNX's node tests instead")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--timeout", type=float, default=20)
    p.add_argument("--workers", type=int, default=os.cpu_count())
    p.add_argument("--keep", help="folder for files that lead to a finding")
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    cases = list(conformance_cases(args.data)) if args.data else list(make_cases.cases())
    jobs = []
    for number in range(args.count):
        r = random.Random(args.seed * 1000003 + number)
        c = r.choice(cases)
        m = onnx.ModelProto()
        m.CopyFrom(c.model)
        if r.random() < 0.7:
            for _ in range(r.choice((1, 1, 2, 3))):
                damage_fields(m, r)
            data = m.SerializeToString()
        else:
            data = damage_bytes(m.SerializeToString(), r)
        jobs.append((number, c.name, data, c.files, c.flags, c.feeds, sinter, args.timeout, args.keep))
    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        results = list(pool.map(trial, jobs))
    bad = [x for x in results if x[3]]
    for number, name, _, result in bad:
        print(f"FAIL {number} {name}: {result}")
    codes = sorted({x[2] for x in results}, key=str)
    print(f"{len(results)} damaged models, seed {args.seed}: {len(bad)} findings; exit codes of convert: "
          + ", ".join(f"{c}: {sum(x[2] == c for x in results)}" for c in codes))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
