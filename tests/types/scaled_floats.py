"""Weights of float8 and float4 with a scale for a block, a row or all of them (MXFP8, MXFP4, NVFP4 and float8 checkpoints):
products read them as they are stored."""
import ml_dtypes
import numpy as np
from type_case import arr64, d, e4m3fn, e4m3fnuz, e5m2, e5m2fnuz, f16, f32, halves, match, node, rng

e2m1, e8m0 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu
K, N, BLOCK = 128, 96, 32


def stored(a):
    return (a.size + 1) // 2 if a.dtype == e2m1 else a.nbytes


def numbers(name, kind, *shape):
    most = 6 if kind == e2m1 else 240
    return rng(name).normal(0, most / 4, shape).clip(-most, most).astype(kind)


def scales(name, kind, *shape):
    powers = np.exp2(rng(name).integers(-9, -4, shape)).astype(f32)
    return (powers if kind == e8m0 else powers * rng(name).uniform(1, 2, shape).astype(f32)).astype(kind)


def product(name, nodes, x, w, constants, bits_of, y="y", packed=True, **kw):
    return match(f"scaled_{name}", "unpack.lowbit", [*nodes, node("MatMul", "x w", "y")], {"x": x}, y, d(x) @ w, constants,
                 ops=("LowBitFullyConnected",) if packed else (), strict=None, opset=24, ir=11,
                 weights=sum(stored(a) for a in bits_of), **kw)


def blocks():
    for kind in (e2m1, e4m3fn, e4m3fnuz, e5m2, e5m2fnuz):
        name = np.dtype(kind).name.replace("float", "f")
        for of in (f32, f16, e8m0):
            q, s = numbers("fq", kind, K, N), scales("fs", of, K // BLOCK, N)
            out = f16 if of == f16 else f32
            x = halves("fx", 3, K).astype(out)
            yield product(f"{name}_by_{np.dtype(of).name}",
                          [node("DequantizeLinear", "q s", "w", axis=0, block_size=BLOCK,
                                **({"output_dtype": 1} if of == e8m0 else {}))],
                          x, d(q) * np.repeat(d(s), BLOCK, 0), {"q": q, "s": s}, (q, s), "y:h" if of == f16 else "y")
    for kind in (e2m1, e4m3fn):
        name = np.dtype(kind).name.replace("float", "f")
        k = 2048 if kind == e4m3fn else K
        q, x = numbers("fq", kind, k, 544), halves("fx", 2, k).astype(f32)
        s = scales("fs", f32, 544)
        yield product(f"{name}_by_column", [node("DequantizeLinear", "q s", "w", axis=1)], x, d(q) * d(s),
                      {"q": q, "s": s}, (q, s))
        yield product(f"{name}_by_tensor", [node("DequantizeLinear", "q s", "w")], x, d(q) * 0.0123,
                      {"q": q, "s": f32(0.0123)}, (q,))


def written_out():
    """Casts and products instead of DequantizeLinear, as torch exports what a module computes."""
    for kind in (e4m3fn, e5m2):
        q, s = numbers("wq", kind, N, K), scales("ws", f32, N, K // BLOCK, 1)
        nodes = [node("Cast", "q", "c", to=1), node("Reshape", "c dims", "g"), node("Mul", "g s", "m"),
                 node("Reshape", "m whole", "r"), node("Transpose", "r", "w", perm=[1, 0])]
        yield product(f"products_of_{np.dtype(kind).name.replace('float', 'f')}", nodes, halves("wx", 3, K).astype(f32),
                      (d(q) * np.repeat(d(s[..., 0]), BLOCK, 1)).T,
                      {"q": q, "s": s, "dims": arr64(N, K // BLOCK, BLOCK), "whole": arr64(N, K)}, (q, s))
    # A scale of the model times one of each block, in float8.
    q, s, whole = numbers("nq", e2m1, N, K), numbers("ns", e4m3fn, N, K // 16), f32(0.00317)
    nodes = [node("DequantizeLinear", "s whole", "ws"),
             node("DequantizeLinear", "q ws", "r", axis=1, block_size=16), node("Transpose", "r", "w", perm=[1, 0])]
    yield product("f4_by_scaled_f8", nodes, halves("nx", 3, K).astype(f32),
                  (d(q) * np.repeat((d(s) * d(whole)), 16, 1)).T, {"q": q, "s": s, "whole": whole}, (q, s))
    # NaN stays NaN.
    q = numbers("uq", e4m3fn, K, N)
    q[5, 7], q[0, 0] = np.nan, np.nan
    s = scales("fs", f32, K // BLOCK, N)
    yield product("f8_with_nan", [node("DequantizeLinear", "q s", "w", axis=0, block_size=BLOCK)],
                  halves("fx", 3, K).astype(f32), d(q) * np.repeat(d(s), BLOCK, 0), {"q": q, "s": s}, (q, s))


def cases():
    yield from blocks()
    yield from written_out()
