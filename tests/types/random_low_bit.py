#!/usr/bin/env python3
"""Random products with weights of few bits, written in the ways that models write them: the values are those of float64,
whatever becomes of the weights, and those of few bits that are worth it stay packed.

    random_low_bit.py [--sinter PROGRAM] [--count N] [--seed S] [--keep FOLDER] [--jobs N]

MatMulNBits (2 to 8 bits, packed and fractional zero points, groups in any order), GPTQ's and AWQ's words, whole or
slice by slice, DequantizeLinear per tensor, channel and block, transposed or not.
"""
import argparse
import concurrent.futures
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import quantized  # noqa: E402
import sinter_cli as cli  # noqa: E402
import unpacked  # noqa: E402
from type_case import MS, bf16, build, d, f16, f32, i8, i32, node, u8  # noqa: E402

LETTER = {f32: "f", f16: "h", bf16: "w"}
ROUNDING = {f32: 2.0**-23, f16: 2.0**-11, bf16: 2.0**-8}


class Case:
    """nodes, inputs and constants; weights [K, N] and bias in float64; `must`: they have to stay packed."""

    def __init__(self, nodes, x, constants, w, bias, must=False, opset=21):
        self.x, self.w, self.bias, self.must, self.kind = x, w, bias, must, x.dtype.type
        self.model = build(nodes, {"x": x}, f"y:{LETTER[self.kind]}", constants, opset=opset)


def some_x(r, k, kind):
    return r.uniform(-2, 2, (int(r.choice([1, 2, 3, 4, 5, 7, 40])), k)).astype(kind)


def nbits(r):
    bits, block = int(r.choice([2, 3, 4, 4, 5, 6, 7, 8])), int(r.choice([16, 32, 64, 128]))
    k, n = int(r.integers(1, 12)) * int(r.choice([16, 24, 32, 33])), int(r.integers(1, 80))
    kind, zeros, grouped = (f32, f16, bf16)[r.integers(3)], r.choice(["", "packed", "float"]), int(r.integers(3))
    blocks = -(-k // block)
    q, s = r.integers(0, 2**bits, (n, blocks * block)), r.uniform(0.01, 0.05, (n, blocks)).astype(kind)

    def pack(v):
        each_bit = v[:, :, None] >> np.arange(bits) & 1
        return np.packbits(each_bit.reshape(len(v), -1).astype(u8), axis=1, bitorder="little")
    constants = {"w": pack(q).reshape(n, blocks, -1), "s": s.ravel()}
    names, z = ["x", "w", "s", "", "", ""], np.full((n, blocks), 2**(bits - 1))
    if zeros == "packed":
        z = r.integers(0, 2**bits, (n, blocks))
        constants["z"] = pack(z).ravel()
    elif zeros == "float":
        constants["z"] = (r.integers(0, 2**(bits + 1), (n, blocks)) / 2).astype(kind).ravel()
        z = d(constants["z"]).reshape(n, blocks)
    group = np.arange(k) // block
    if grouped:
        group = r.permutation(group) if grouped == 2 else group
        constants["g"] = group.astype(i32)
    bias = np.zeros(n)
    if r.random() < 0.5:
        constants["b"] = r.uniform(-1, 1, n).astype(kind)
        bias = d(constants["b"])
    for i, name in ((3, "z"), (4, "g"), (5, "b")):
        names[i] = name if name in constants else ""
    nodes = [node("MatMulNBits", names, ["y"], domain=MS, K=k, N=n, bits=bits, block_size=block)]
    w = (q[:, :k] - d(z)[:, group]) * d(s)[:, group]
    must = bits < 7 and k % 8 == 0 and k * n >= 8192
    return Case(nodes, some_x(r, k, kind), constants, w.T, bias, must)


def words(r):
    group = int(r.choice([16, 32, 64]))
    bits = int(r.choice([2, 4, 4, 8]))
    k, n = group * int(r.integers(1, 6)), (16 if bits == 2 else 8) * int(r.integers(1, 17))
    if r.random() < 0.4:
        nodes, feeds, want, constants = quantized.awq(k, n, group)
        bits = 4
    else:
        nodes, feeds, want, constants = quantized.gptq(str(r.choice(["bitshift", "div", "logical"])), bits,
                                                       bool(r.integers(2)), 1, k, n, group)
        if r.random() < 0.5:
            constants["group"] = r.permutation(constants["group"])
            want = None
    x = some_x(r, k, f16)
    w = weights_of(constants, bits, k, n)
    if want is not None:  # the same by the corpus' own arithmetic
        assert np.allclose(want, d(feeds["x"]) @ w + d(constants["bias"]), rtol=1e-9, atol=1e-9)
    return Case(nodes, x, constants, w, d(constants["bias"]), bits < 8 and k * n >= 8192, opset=18)


def sliced(r):
    group, bits = int(r.choice([16, 32, 64])), int(r.choice([2, 4, 4, 8]))
    k, n = group * int(r.integers(1, 6)), 32 // bits * int(r.integers(1, 65 if bits == 8 else 33))
    cast = (None, None, i8, f16)[r.integers(4)]
    cast = cast if bits < 8 or cast != i8 else None  # 128 and more would wrap
    mask = str(r.choice(["slice", "first", "mod"] + ["joined"] * (cast is None)))
    how = dict(mask=mask, cast=cast, when=str(r.choice(["slice", "joined"])), join=str(r.choice(["stack", "concat"])),
               order=str(r.choice(["gather", "names"] + ["slices", "transpose"] * (bits == 4))),
               formula=str(r.choice(["sub_mul", "cast_sub_mul", "mul_sub"])), spread=str(r.choice(["expand", "grouped"])),
               per_row=bool(r.integers(2)), scale=(f16, f32)[r.integers(2)])
    parts, w = unpacked.awq(f"random{r.integers(2**31)}", k, n, group, bits, **how)
    return Case(parts["nodes"], parts["inputs"]["x"], parts["constants"], w, d(parts["constants"]["bias"]),
                bits < 8 and k * n >= 16384, opset=18)


def weights_of(constants, bits, k, n):
    """From the packed words again."""
    per, top = 32 // bits, 2**bits - 1
    shifts = bits * np.arange(per, dtype=np.uint32)

    def unpack(v):
        return (v[..., None].view(np.uint32) >> shifts) & np.uint32(top)
    if "columns" in constants:
        columns, group = constants["columns"], np.arange(k) // (k // len(constants["qzeros"]))
        q = unpack(constants["qweight"]).reshape(k, n)[:, columns]
        z = unpack(constants["qzeros"]).reshape(-1, n)[:, columns]
    else:
        group = constants["group"]
        q = np.moveaxis(unpack(constants["qweight"][:, 0]), -1, 1).reshape(k, n)
        z = unpack(constants["qzeros"][:, :, 0]).reshape(-1, n).astype(np.int64) + 1
    return (d(q) - d(z)[group]) * d(constants["scales"])[group]


def dequantized(r):
    kind = (f32, f16, bf16)[r.integers(3)]
    type_, low, high = ((i8, -128, 128), (u8, 0, 256), (ml_dtypes.int4, -8, 8), (ml_dtypes.uint4, 0, 16))[r.integers(4)]
    block = int(r.choice([0, 0, 16, 32]))
    shape = [32 * int(r.integers(1, 9)), 32 * int(r.integers(1, 5))]
    turned, axis = bool(r.integers(2)), int(r.integers(2))
    scales = [1] if not block and r.random() < 0.3 else [shape[axis]]
    if block:
        scales = list(shape)
        scales[axis] //= block
    q, s = r.integers(low, high, shape), r.uniform(0.01, 0.05, scales).astype(kind)
    constants = {"q": q.astype(type_), "s": s if scales != [1] or block else s[0]}

    def along(v):
        if block:
            return np.repeat(v, block, axis)
        return v if scales == [1] else v.reshape([-1 if i == axis else 1 for i in range(2)])
    z = np.zeros(scales)
    if r.random() < 0.6:
        z = r.integers(low, high, scales)
        constants["z"] = (z if constants["s"].ndim else z[0]).astype(type_)
    nodes = [node("DequantizeLinear", "q s z" if "z" in constants else "q s", "w", axis=axis,
                  **({"block_size": block} if block else {}))]
    if turned:
        nodes.append(node("Transpose", "w", "t", perm=[1, 0]))
    w = (d(q) - along(d(z))) * along(d(s))
    w = w.T if turned else w
    nodes.append(node("MatMul", "x t" if turned else "x w", "y"))
    per_row = not block and scales != [1] and (axis == 0) != turned  # a scale for each of the K
    must = high - low == 16 and w.size >= 8192 and not per_row and (not block or (axis == 0) != turned)
    return Case(nodes, some_x(r, len(w), kind), constants, w, np.zeros(w.shape[1]), must)


def check(seed, sinter, keep):
    r = np.random.default_rng(seed)
    case = (nbits, words, dequantized, sliced)[seed % 4](r)
    with tempfile.TemporaryDirectory(prefix="low-bit-") as work:
        outcome = run(case, sinter, work)
        if outcome[1] and keep:
            shutil.copytree(work, os.path.join(keep, f"low_bit_{seed}"), dirs_exist_ok=True)
        return outcome


def run(case, sinter, work):
    """(packed?, None or what is wrong)"""
    source, target, feeds, result = (os.path.join(work, f) for f in ("m.onnx", "m.sinter", "in.npz", "out.npz"))
    with open(source, "wb") as f:
        f.write(case.model.SerializeToString())
    c = cli.call(sinter, "convert", source, "-o", target, "--quiet", timeout=60)
    if c.code != 0:
        return False, f"convert: {c.why()}"
    packed = "LowBitFullyConnected" in cli.call(sinter, "inspect", target, "--steps", timeout=60).out
    if case.must and not packed:
        return packed, "the weights are widened"
    cli.save_npz(feeds, {"x": case.x})
    want, size = d(case.x) @ case.w + case.bias, (np.abs(d(case.x)) @ np.abs(case.w)).max()
    # Sums in float32; weights that the model rounds to its own type, where they are not packed; the result's rounding.
    allowed = size * (2.0**-21 + (0 if packed else 3 * ROUNDING[case.kind])) + 1.01 * ROUNDING[case.kind] * np.abs(want)
    for flags in ((), ("--backend", "reference"), ("--threads", "3")):
        ran = cli.call(sinter, "run", target, "--inputs", feeds, "--outputs", result, "--quiet", *flags, timeout=60)
        if ran.code != 0:
            return packed, f"run {flags}: {ran.why()}"
        y = d(cli.from_bits(np.asarray(cli.load_npz(result)["y"]), np.dtype(case.kind)))
        if y.shape != want.shape or not (np.abs(y - want) <= allowed).all():
            return packed, f"{flags}: off by {np.abs(y - want).max():.3g}, allowed {allowed.min():.3g}"
    return packed, None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--count", type=int, default=120)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", help="write the models that fail here")
    p.add_argument("--jobs", type=int, default=2)
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    seeds = range(args.seed, args.seed + args.count)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        outcome = dict(zip(seeds, pool.map(lambda s: check(s, sinter, args.keep), seeds)))
    for seed, (_, why) in outcome.items():
        if why:
            print(f"FAIL   seed {seed}: {why}")
    bad = sum(why is not None for _, why in outcome.values())
    print(f"{len(outcome) - bad} of {len(outcome)} right, weights packed in {sum(packed for packed, _ in outcome.values())}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
