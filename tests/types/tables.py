"""Tables of quantized numbers in which rows are looked up: they stay as narrow as they came, in the file and in memory,
also beside a product with the same table."""
import ml_dtypes
import numpy as np
from type_case import MS, bf16, d, e4m3fn, e5m2, f16, f32, i8, i32, match, node, refuse, rng, u8

int4, uint4 = ml_dtypes.int4, ml_dtypes.uint4
LETTER = {f32: "f", f16: "h", bf16: "w"}
IDS = np.array([[3, 0, 171], [-1, 3, 64]])
ROWS = ("Gather", "Dequantize")


def packed(v, bits):
    """Several numbers a byte along the last axis, low bits first."""
    per = 8 // bits
    v = np.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, -v.shape[-1] % per)])
    return sum(v[..., i::per].astype(np.uint16) << (bits * i) for i in range(per)).astype(u8)


def table(name, kind, bits, shape, block, axis, scale, zeros):
    """-> the stored data, scales and zero points, and the table's values."""
    r = rng(f"table{name}")
    low = -2**(bits - 1) if kind in (i8, int4) else 0
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // block)
    q, s = r.integers(low, low + 2**bits, shape), r.uniform(0.01, 0.1, blocks).astype(scale)
    z = np.full(blocks, 2**(bits - 1) if kind == u8 else 0)
    if zeros:
        z = r.integers(low, low + 2**bits, blocks)

    def along(v):
        return np.take(np.repeat(v, block, axis), np.arange(shape[axis]), axis)
    stored = (packed(q, bits), packed(z, bits)) if kind == u8 else (q.astype(kind), z.astype(kind))
    return stored[0], s, stored[1] if zeros else None, (q - along(z)) * along(d(s))


def bytes_of(*arrays):
    return sum((-(-a.size // 2) if a.dtype in (int4, uint4) else a.nbytes) for a in arrays if a is not None)


def blocked(name, kind=u8, bits=4, shape=(300, 64), block=16, axis=1, gather=0, scale=f32, zeros=True, ids=IDS, **kw):
    data, s, z, value = table(name, kind, bits, shape, block, axis, scale, zeros)
    constants = {"t": data, "s": s} | ({"z": z} if zeros else {})
    attrs = dict(gather_axis=gather, quantize_axis=axis, block_size=block)
    if bits != 4 or kind != u8:
        attrs["bits"] = bits
    return match(f"gatherblockquantized_{name}", "store.narrow",
                 node("GatherBlockQuantized", "t i s z" if zeros else "t i s", "y", domain=MS, **attrs),
                 {"i": np.asarray(ids)}, f"y:{LETTER[scale]}", np.take(value, ids, gather), constants, opset=21,
                 weights=bytes_of(data, s, z), ops=kw.pop("ops", ROWS), strict=None, **kw)


def gathered_blocks():
    for scale, word in ((f32, "f32"), (f16, "f16"), (bf16, "bf16")):
        for zeros in (False, True):
            tail = f"{word}{'_zeros' if zeros else ''}"
            yield blocked(f"uint8_4bit_{tail}", scale=scale, zeros=zeros)
            yield blocked(f"uint8_8bit_{tail}", bits=8, scale=scale, zeros=zeros)
            yield blocked(f"uint8_2bit_{tail}", bits=2, scale=scale, zeros=zeros)
            for kind in (int4, uint4):
                yield blocked(f"{np.dtype(kind).name}_{tail}", kind=kind, scale=scale, zeros=zeros)
    yield blocked("default_block", shape=(300, 256), block=128)
    yield blocked("last_block_short", shape=(300, 72), block=32)
    yield blocked("odd_number_of_blocks", shape=(300, 48), block=16)
    yield blocked("int32_indices", ids=IDS.astype(i32))
    yield blocked("one_index", ids=np.int64(7), kind=int4)
    yield blocked("blocks_along_the_table", kind=uint4, shape=(320, 64), axis=0, gather=1, ids=np.array([5, 0]), ops=())
    yield blocked("rank_3", kind=int4, shape=(40, 10, 32), axis=2, ids=np.array([5, 39]))
    yield blocked("rank_3_middle", kind=int4, shape=(10, 40, 32), axis=2, gather=1, ids=np.array([[5], [39]]))
    yield blocked("rank_3_blocks_in_the_middle", kind=uint4, shape=(40, 32, 10), axis=1, ids=np.array([5, 39]))
    yield blocked("negative_axes", kind=int4, axis=-1, gather=-2, ids=np.array([5, 39]))
    r = rng("tablef8")
    for kind in (e4m3fn, e5m2):
        q, s = r.uniform(-4, 4, (300, 64)).astype(kind), f32(0.25).reshape(1, 1)
        yield match(f"gatherblockquantized_{np.dtype(kind).name}_one_scale", "store.narrow",
                    node("GatherBlockQuantized", "t i s", "y", domain=MS, gather_axis=0, quantize_axis=1, block_size=0),
                    {"i": IDS}, "y", d(q)[IDS] * 0.25, {"t": q, "s": s}, opset=21, weights=q.nbytes, strict=None)


def dequantized_tables():
    v, k = 300, 64
    r = rng("tables")
    for word, kind, low, high in (("int8", i8, -128, 128), ("uint8", u8, 0, 256), ("int4", int4, -8, 8),
                                  ("uint4", uint4, 0, 16)):
        q, z = r.integers(low, high, (v, k)), r.integers(low, high)
        for scale in (f32, f16):
            for axis, shape in ((0, (v, 1)), (1, (1, k)), (None, ())):
                s = r.uniform(0.01, 0.1, shape).astype(scale)
                zero = np.full(shape, z) if axis is None else r.integers(low, high, shape)
                constants = {"t": q.astype(kind), "s": s.ravel() if shape else s,
                             "z": zero.astype(kind).ravel() if shape else zero.astype(kind)}
                attrs = {} if axis is None else dict(axis=axis)
                where = {0: "rows", 1: "columns", None: "tensor"}[axis]
                yield match(f"table_{word}_by_{where}_{np.dtype(scale).name}", "store.narrow",
                            [node("DequantizeLinear", "t s z", "w", **attrs), node("Gather", "w i", "y")],
                            {"i": IDS}, f"y:{LETTER[scale]}", ((q - zero) * d(s))[IDS], constants, opset=21, ops=ROWS,
                            weights=bytes_of(*constants.values()), strict=None)
    data, s, z, value = table("blocks", int4, 4, (v, k), 16, 1, f16, True)
    lookup = [node("DequantizeLinear", "t s z", "w", axis=1, block_size=16), node("Gather", "w i", "e")]
    c = {"t": data, "s": s, "z": z}
    size = bytes_of(*c.values())
    yield match("table_int4_blocked", "store.narrow", [*lookup, node("Cast", "e", "y", to=1)], {"i": IDS}, "y",
                value[IDS], c, opset=21, weights=size, ops=ROWS, strict=None)
    yield match("table_int4_blocked_columns", "store.narrow",
                [lookup[0], node("Gather", "w i", "y", axis=1)], {"i": np.array([3, 63])}, "y:h", value[:, [3, 63]], c,
                opset=21, weights=size, strict=None)
    yield match("table_int8_cast_to_f16", "store.narrow",
                [node("DequantizeLinear", "t s", "w", axis=0), node("Cast", "w", "h", to=10), node("Gather", "h i", "y")],
                {"i": IDS}, "y:h", (d(data) * d(s[:, :1]))[IDS].astype(f32),
                {"t": data.astype(i8), "s": s[:, 0].astype(f32)}, opset=21, weights=v * k + 4 * v, ops=ROWS, strict=None)
    q = r.uniform(-4, 4, (v, k)).astype(e4m3fn)
    yield match("table_float8_by_rows", "store.narrow",
                [node("DequantizeLinear", "t s", "w", axis=0), node("Gather", "w i", "y")], {"i": IDS}, "y:h",
                (d(q) * d(s[:, :1]))[IDS], {"t": q, "s": s[:, 0]}, opset=21, weights=v * k + 2 * v, ops=ROWS,
                strict=None)
    # The same table as the weights of the last product.
    head = [node("Transpose", "w", "wt", perm=[1, 0]), node("MatMul", "e wt", "y")]
    yield match("table_int4_tied_to_a_product", "unpack.lowbit", [*lookup, *head], {"i": IDS}, "y:h",
                value[IDS] @ value.T, c, opset=21, weights=size, ops=(*ROWS, "LowBitFullyConnected"), strict=None)
    for zeros in (False, True):
        data, s, z, value = table(f"tied{zeros}", u8, 4, (v, k), 16, 1, f16, zeros)
        c = {"t": data, "s": s, "b": data.reshape(v, k // 16, 8), "s1": s.ravel()}
        if zeros:
            c |= {"z": z, "z1": z.ravel()}
        yield match(f"gatherblockquantized_tied_to_matmulnbits{'_zeros' if zeros else ''}", "unpack.lowbit",
                    [node("GatherBlockQuantized", "t i s z" if zeros else "t i s", "e", domain=MS, block_size=16),
                     node("MatMulNBits", "e b s1 z1" if zeros else "e b s1", "y", domain=MS, K=k, N=v, bits=4,
                          block_size=16)], {"i": IDS}, "y:h", value[IDS] @ value.T, c, opset=21,
                    weights=bytes_of(data, s, z), ops=(*ROWS, "LowBitFullyConnected"), strict=None)


def impossible():
    data, s, z, _ = table("bad", u8, 4, (300, 64), 16, 1, f32, True)
    op = dict(name="here", domain=MS, block_size=16)
    for name, change, attrs, words in (
            ("3_bits", {}, {"bits": 3}, ["uint8", "3 bits"]),
            ("scales_of_another_shape", {"s": s[:, :3].copy()}, {}, ["[300,3]", "[300,64]", "16"]),
            ("zero_points_of_another_shape", {"z": z[:200].copy()}, {}, ["[200,2]", "[300,64]"]),
            ("zero_points_of_another_type", {"z": z.astype(i8)}, {}, ["int8", "uint8"]),
            ("float_data", {"t": s}, {}, ["float32"]),
            ("axis_beyond_the_data", {}, {"gather_axis": 2}, ["2"])):
        yield refuse(f"gatherblockquantized_{name}", "refuse", node("GatherBlockQuantized", "t i s z", "y", **op, **attrs),
                     {"i": IDS}, "y", ["here", "GatherBlockQuantized", *words], {"t": data, "s": s, "z": z} | change,
                     opset=21)
    yield refuse("gatherblockquantized_data_as_input", "refuse", node("GatherBlockQuantized", "t i s", "y", **op),
                 {"t": data, "i": IDS}, "y", ["here", "GatherBlockQuantized", "constant"], {"s": s}, opset=21)


def cases():
    yield from impossible()
    yield from gathered_blocks()
    yield from dequantized_tables()
