"""Weights of few bits that a graph unpacks slice by slice, as exporters of AWQ, GPTQ and HQQ write it: whatever the order
of masks, casts and joins, the product keeps them packed and the file is not larger than the words were."""
import itertools

import ml_dtypes
import numpy as np
from nf4 import TABLE as NF4
from type_case import MS, arr64, d, f16, f32, halves, i8, i32, match, node, rng, u8

uint4 = ml_dtypes.uint4
ORDER = {4: [0, 4, 1, 5, 2, 6, 3, 7], 8: [0, 2, 1, 3], 2: list(range(16))}  # where a word's numbers belong


class Graph:
    """Nodes and constants; every method gives the name of what it makes."""

    def __init__(self):
        self.nodes, self.constants, self.count = [], {}, 0

    def op(self, kind, *inputs, **attrs):
        self.count += 1
        name = f"t{self.count}"
        self.nodes.append(node(kind, list(inputs), [name], **attrs))
        return name

    def const(self, a):
        for name, known in self.constants.items():
            if known.dtype == np.asarray(a).dtype and np.array_equal(known, a):
                return name
        self.count += 1
        self.constants[f"c{self.count}"] = np.asarray(a)
        return f"c{self.count}"

    def cast(self, x, kind):
        return self.op("Cast", x, to={f16: 10, f32: 1, i8: 3, i32: 6}[kind])

    def reshape(self, x, *dims):
        return self.op("Reshape", x, self.const(arr64(*dims)))


def pack(v, bits):
    """[rows, columns] -> int32 words along the columns; number i of a word belongs to column ORDER^-1[i]."""
    per = 32 // bits
    v = v.reshape(len(v), -1, per).astype(np.uint64)
    return sum(v[..., j] << np.uint64(bits * i) for j, i in enumerate(ORDER[bits])).astype(np.uint32).view(i32)


def unpack(g, words, rows, columns, bits=4, mask="slice", cast=None, when="slice", join="stack", order="gather"):
    """The words' numbers, [rows, columns]."""
    per, top = 32 // bits, 2**bits - 1
    slices = []
    for i in range(per):
        if mask == "first":  # the number's own bits, then the shift, which copies the sign into the highest
            bits_of = g.op("BitwiseAnd", words, g.const(np.uint32((top << (bits * i)) & 0xFFFFFFFF).astype(i32)))
            t = g.op("BitShift", bits_of, g.const(i32(bits * i)), direction="RIGHT")
            t = g.op("BitwiseAnd", t, g.const(i32(top))) if i == per - 1 else t
        else:
            t = g.op("BitShift", words, g.const(i32(bits * i)), direction="RIGHT")
        if mask == "slice":
            t = g.op("BitwiseAnd", t, g.const(i32(top)))
        if mask == "mod":
            t = g.op("Mod", t, g.const(i32(top + 1)))
        slices.append(g.cast(t, cast) if cast and when == "slice" else t)
    if order == "names":  # joined in their order at once
        slices = [slices[i] for i in ORDER[bits]]
    if join == "stack":
        q = g.op("Concat", *(g.op("Unsqueeze", t, g.const(arr64(2))) for t in slices), axis=-1)
    else:  # all first numbers, then all second ones
        q = g.op("Concat", *slices, axis=1)
    if mask == "joined":
        q = g.op("BitwiseAnd", q, g.const(i32(top)))
    words_of = np.arange(columns) // per
    number = np.array(ORDER[bits])[np.arange(columns) % per]
    if order == "slices" and join == "stack":  # the even numbers and the odd ones alternate
        axis, far, step = g.const(arr64(2)), g.const(arr64(per)), g.const(arr64(1))
        halves_ = [g.op("Slice", q, g.const(arr64(a)), g.const(arr64(b)) if b < per else far, axis, step)
                   for a, b in ((0, per // 2), (per // 2, per))]
        q = g.op("Concat", *(g.op("Unsqueeze", t, g.const(arr64(3))) for t in halves_), axis=-1)
        q = g.reshape(q, rows, columns)
    elif order == "transpose" and join == "stack":
        q = g.op("Transpose", g.reshape(q, rows, columns // per, 2, per // 2), perm=[0, 1, 3, 2])
        q = g.reshape(q, rows, columns)
    elif order == "gather" and join == "stack":
        q = g.op("Gather", q, g.const(np.array(ORDER[bits])), axis=2)
        q = g.reshape(q, rows, columns)
    elif join == "stack":
        q = g.reshape(q, rows, columns)
    else:
        # Number i of word w is in column i * words + w.
        own = np.arange(columns) % per if order == "names" else number
        q = g.op("Gather", q, g.const(own * (columns // per) + words_of), axis=1)
    return g.cast(q, cast) if cast and when == "joined" else q


def awq(name, k=256, n=128, group=64, bits=4, formula="sub_mul", spread="expand", scale=f16, per_row=False, **how):
    """per_row: groups in any order of the rows, by an index, as GPTQ writes it. -> a case's parts, and the weights."""
    r = rng(f"unpacked{name}")
    rows = r.permutation(k) % (k // group) if per_row else np.arange(k) // group
    q, z = r.integers(0, 2**bits, (k, n)), r.integers(0, 2**bits, (k // group, n))
    s, bias = r.uniform(0.01, 0.05, (k // group, n)).astype(scale), r.uniform(-1, 1, n).astype(f16)
    g = Graph()
    kind = how.get("cast")
    unpacked = unpack(g, g.const(pack(q, bits)), k, n, bits, **how)
    if formula == "product_difference":  # z * s as numbers of the scales' type
        zs = (d(z) * d(s)).astype(scale)
        zero, w = g.const(zs), d(q) * d(s)[rows] - d(zs)[rows]
        stored = pack(q, bits).nbytes + s.nbytes + zs.nbytes
    else:
        zero, w = unpack(g, g.const(pack(z, bits)), k // group, n, bits, **how), (q - z[rows]) * d(s)[rows]
        stored = pack(q, bits).nbytes + pack(z, bits).nbytes + s.nbytes
    scales, stored = g.const(s), stored + bias.nbytes

    def spreads(v):
        if per_row:
            return g.op("Gather", v, g.const(rows))
        if spread == "expand":
            v = g.op("Expand", g.op("Unsqueeze", v, g.const(arr64(1))), g.const(arr64(k // group, group, n)))
            return g.reshape(v, k, n)
        return g.reshape(v, k // group, 1, n)
    if spread == "grouped" and not per_row:
        unpacked = g.reshape(unpacked, k // group, group, n)
    if formula == "sub_mul":
        difference = g.op("Sub", unpacked, spreads(zero))
        difference = difference if kind in (f16, f32) else g.cast(difference, scale)
        weights = g.op("Mul", difference, spreads(scales))
    elif formula == "cast_sub_mul":
        real = [v if kind in (f16, f32) else g.cast(v, scale) for v in (unpacked, zero)]
        weights = g.op("Mul", g.op("Sub", real[0], spreads(real[1])), spreads(scales))
    elif formula == "mul_sub":  # q * s - z * s
        real = [v if kind in (f16, f32) else g.cast(v, scale) for v in (unpacked, zero)]
        weights = g.op("Sub", g.op("Mul", real[0], spreads(scales)), spreads(g.op("Mul", real[1], scales)))
    else:
        real = unpacked if kind in (f16, f32) else g.cast(unpacked, scale)
        weights = g.op("Sub", g.op("Mul", real, spreads(scales)), spreads(zero))
    if spread == "grouped" and not per_row:
        weights = g.reshape(weights, k, n)
    x = halves("awqx", 3, k).astype(scale)
    g.constants["bias"] = bias.astype(scale)
    g.nodes += [node("MatMul", ["x", weights], ["m"]), node("Add", "m bias", "y")]
    if per_row:
        stored += 4 * k
    out = "y:h" if scale == f16 else "y"
    return dict(nodes=g.nodes, inputs={"x": x}, outputs=out, want=d(x) @ w + d(bias.astype(scale)),
                constants=g.constants, weights=stored), w


def case(name, ops=("LowBitFullyConnected",), slack=0, **how):
    parts, _ = awq(name, **how)
    parts["weights"] += slack
    return match(f"unpacked_{name}", "unpack.lowbit", opset=18, strict=None, ops=ops, **parts)


def slices():
    for mask, (cast, when), join in itertools.product(
            ("slice", "joined", "first"), ((None, "slice"), (i8, "slice"), (f16, "slice"), (i8, "joined"), (f16, "joined")),
            ("stack", "concat")):
        if mask == "joined" and cast and when == "slice":
            continue  # the mask would lose what the cast kept
        word = f"{mask}_{np.dtype(cast).name if cast else 'int32'}_{when}_{join}" if cast else f"{mask}_int32_{join}"
        yield case(f"awq_{word}", mask=mask, cast=cast, when=when, join=join)
    for order in ("slices", "transpose", "names"):
        yield case(f"awq_order_by_{order}", order=order)
        yield case(f"awq_order_by_{order}_of_float16", order=order, cast=f16)
    yield case("awq_order_by_names_concat", order="names", join="concat")
    yield case("awq_modulo", mask="mod")
    for formula in ("cast_sub_mul", "mul_sub", "product_difference"):
        for spread in ("expand", "grouped"):
            yield case(f"awq_{formula}_{spread}", formula=formula, spread=spread)
        yield case(f"awq_{formula}_float16_slices", formula=formula, cast=f16)
        yield case(f"awq_{formula}_float32_scales", formula=formula, scale=f32)
    yield case("awq_grouped", spread="grouped")
    yield case("awq_int8_grouped", spread="grouped", cast=i8)
    for formula in ("sub_mul", "mul_sub"):
        yield case(f"gptq_rows_in_any_order_{formula}", formula=formula, per_row=True)
    yield case("awq_rows_in_any_order_int8", cast=i8, per_row=True)
    yield case("words_of_8_bits", bits=8)
    yield case("words_of_8_bits_int32_concat", bits=8, join="concat", mask="joined")
    yield case("words_of_8_bits_rows_in_any_order", bits=8, per_row=True)
    # As small as the words were, but no product of 2 bits: floats once a session is there.
    more = 4096  # for a plan of forty small steps
    yield case("words_of_2_bits", ops=(), bits=2, slack=more)
    yield case("words_of_2_bits_int8", ops=(), bits=2, cast=i8, slack=more)
    yield case("words_of_2_bits_grouped", ops=(), bits=2, spread="grouped", join="concat", slack=more)


def sliced_products(name, k=256, n=128, group=64, scaled=False):
    """Every slice is a weight of its own before they are joined: (q - z) * s or q * s - z * s of every eighth column."""
    r = rng(f"unpacked{name}")
    q, z = r.integers(0, 16, (k, n)), r.integers(0, 16, (k // group, n))
    s, x = r.uniform(0.01, 0.05, (k // group, n)).astype(f16), halves("awqx", 3, k)
    g = Graph()
    words, slices = g.const(pack(q, 4)), []
    for column in range(8):
        t = g.op("BitShift", words, g.const(i32(4 * ORDER[4][column])), direction="RIGHT")
        t = g.cast(g.op("BitwiseAnd", t, g.const(i32(15))), f16)
        t = g.reshape(t, k // group, group, n // 8)
        zero, scale = (v[:, None, column::8].astype(f16) for v in (z, s))
        if scaled:
            t = g.op("Sub", g.op("Mul", t, g.const(scale)), g.op("Mul", g.const(zero), g.const(scale)))
        else:
            t = g.op("Mul", g.op("Sub", t, g.const(zero)), g.const(scale))
        slices.append(g.op("Unsqueeze", g.reshape(t, k, n // 8), g.const(arr64(2))))
    w = g.reshape(g.op("Concat", *slices, axis=2), k, n)
    g.nodes.append(node("MatMul", ["x", w], ["y"]))
    want = d(x) @ ((q - np.repeat(z, group, 0)) * np.repeat(d(s), group, 0))
    return match(f"unpacked_{name}", "unpack.lowbit", g.nodes, {"x": x}, "y:h", want, g.constants, opset=18,
                 strict=None, weights=q.size // 2 + s.nbytes + 2 * z.size, ops=("LowBitFullyConnected",))


def three_bits(k=512, n=256, group=64):
    """32 numbers of 3 bits in three words along the depth. Those that span two words, the 11th and the 22nd, are kept
    beside the words, in 4 bits."""
    r = rng("three")
    q, z = r.integers(0, 8, (k, n)), r.integers(0, 8, (k // group, n))
    s, x = r.uniform(0.01, 0.05, (k // group, n)).astype(f16), halves("awqx", 3, k)
    numbers = q.reshape(k // 32, 32, n).astype(object)
    whole = sum(numbers[:, i] << (3 * i) for i in range(32))
    words = np.stack([(whole >> (32 * i) & 0xFFFFFFFF).astype(np.uint32).view(i32) for i in range(3)], 1)
    shifts = np.array([[*range(0, 31, 3), 0], [0, *range(1, 32, 3)], [0, *range(2, 30, 3), 0]], i32)
    g = Graph()
    t = g.op("Expand", g.op("Unsqueeze", g.const(words), g.const(arr64(2))), g.const(arr64(k // 32, 3, 12, n)))
    t = g.op("BitwiseAnd", g.op("BitShift", t, g.const(shifts.reshape(1, 3, 12, 1)), direction="RIGHT"),
             g.const(i32(7)))

    def part(word, begin, end):
        t1 = g.op("Gather", t, g.const(np.array(word)), axis=1)
        return g.op("Slice", t1, g.const(arr64(begin)), g.const(arr64(end)), g.const(arr64(1)))

    def split(low, low_bits, high):
        high = g.op("BitShift", g.op("Cast", high, to=12), g.const(np.uint32(low_bits)), direction="LEFT")
        high = g.op("BitwiseAnd", g.cast(high, i32), g.const(i32(7 & ~(2**low_bits - 1))))
        return g.op("BitwiseOr", g.op("BitwiseAnd", low, g.const(i32(2**low_bits - 1))), high)
    parts = [part(0, 0, 10), split(part(0, 10, 11), 2, part(1, 0, 1)), part(1, 1, 11),
             split(part(1, 11, 12), 1, part(2, 0, 1)), part(2, 1, 11)]
    real = g.reshape(g.op("Concat", *parts, axis=1), k // group, group, n)
    zero = g.const(z.astype(i32).reshape(k // group, 1, n))
    w = g.op("Mul", g.cast(g.op("Sub", real, zero), f16), g.const(s.reshape(k // group, 1, n)))
    g.nodes.append(node("MatMul", ["x", g.reshape(w, k, n)], ["y"]))
    want = d(x) @ ((q - np.repeat(z, group, 0)) * np.repeat(d(s), group, 0))
    return match("unpacked_words_of_3_bits", "unpack.lowbit", g.nodes, {"x": x}, "y:h", want, g.constants, opset=18,
                 strict=None, weights=words.nbytes + s.nbytes + 4 * z.size + 2 * k * n // 64)


def odd_shapes():
    """A last row of one number, and groups that are shorter than what a product takes at once."""
    r = rng("oddshapes")
    for k, block in ((255, 0), (255, 16), (256, 8)):
        for zeros in (False, True):
            q = r.integers(0, 16, (128, k))
            s = r.uniform(0.01, 0.05, (128, -(-k // block)) if block else 128).astype(f16)
            z = r.integers(0, 16, s.shape) if zeros else np.full(s.shape, 0)
            constants = {"q": q.astype(uint4), "s": s} | ({"z": z.astype(uint4)} if zeros else {})
            x = halves(f"odd{k}", 3, k)

            def along(v):
                return np.repeat(v, block, 1)[:, :k] if block else v[:, None]
            name = f"{k}_columns_{f'by_{block}' if block else 'by_rows'}{'_zeros' if zeros else ''}"
            yield match(f"unpacked_{name}", "unpack.lowbit",
                        [node("DequantizeLinear", "q s z" if zeros else "q s", "w", axis=1 if block else 0,
                              **({"block_size": block} if block else {})), node("Gemm", "x w", "y", transB=1)],
                        {"x": x}, "y:h", d(x) @ ((q - along(z)) * along(d(s))).T, constants, opset=21, strict=None,
                        weights=128 * (k + 1) // 2 + s.nbytes + (s.size + 1) // 2 * zeros,
                        ops=() if block == 8 else ("LowBitFullyConnected",))


def written(g, packed, runs):
    """`q = empty(2 * n); q[1::2] = packed & 15; q[::2] = packed >> 4` as torch's newer exporter writes it, or with q[n:] and q[:n] if
    runs: what is empty is a scalar that is repeated, places are slices of a Range, and the shift is one of signed numbers,
    which chooses by the sign."""
    count = 2 * len(g.constants[packed])
    places = g.op("Range", g.const(np.array(0)), g.const(np.array(count)), g.const(np.array(1)))
    shifted = g.op("BitShift", packed, g.const(u8(4)), direction="RIGHT")
    signed = g.op("Where", g.op("Less", packed, g.const(u8(0))),
                  g.cast(g.op("BitwiseOr", shifted, g.const(u8(240))), i8), g.cast(shifted, i8))
    q = g.op("Expand", g.const(i32(0)), g.const(arr64(count)))
    for first, half in ((1, g.op("BitwiseAnd", packed, g.const(u8(15)))), (0, signed)):
        begin, end = (first * count // 2, (first + 1) * count // 2) if runs else (first, 2**63 - 1)
        at = g.op("Slice", places, g.const(arr64(begin)), g.const(arr64(end)), g.const(arr64(0)), g.const(arr64(1 if runs else 2)))
        q = g.op("ScatterND", q, g.op("Unsqueeze", at, g.const(arr64(-1))), g.cast(half, i32))
    return q


def nibbles(g, packed, form):
    """The places of numbers, of which the first of a byte is in its high bits, in the order of the numbers."""
    if form in ("strided", "runs"):
        return written(g, packed, form == "runs")
    if form == "divisions":
        pair = g.op("Div", packed, g.const(u8(16))), g.op("Mod", packed, g.const(u8(16)))
    else:
        pair = g.op("BitShift", packed, g.const(u8(4)), direction="RIGHT"), g.op("BitwiseAnd", packed, g.const(u8(15)))
    if form == "scattered":  # into the even places, then into the odd ones
        count = 2 * len(g.constants[packed])
        q = g.const(np.zeros(count, i32))
        for first, half in enumerate(pair):
            q = g.op("ScatterND", q, g.const(np.arange(first, count, 2)[:, None]), g.cast(half, i32))
        return q
    halves_ = [g.op("Unsqueeze", g.op("Cast", half, to=7), g.const(arr64(1))) for half in pair]
    return g.op("Reshape", g.op("Concat", *halves_, axis=-1), g.const(arr64(-1)))


def looked_up(form, kind=f32, nd=False, product="Gemm", nested=False, n=128, k=256, block=64):
    """Numbers of NF4 as torch's exporters write what bitsandbytes computes: indices into a table of the type that the model
    computes in, times a float32 scale for each block of all numbers. nested: scales are bytes, indices into another table, with
    a scale for 256 of them and an offset."""
    r = rng(f"lookedup{form}")
    packed, s = r.integers(0, 256, n * k // 2, u8), r.uniform(0.1, 1, (n * k // block, 1)).astype(f32)
    stored = packed.nbytes + s.nbytes + 64
    table, x = NF4.astype(kind), halves("lookedupx", 3, k).astype(kind)
    g = Graph()
    q, t = nibbles(g, g.const(packed), form), g.const(table)
    w = g.op("GatherND", t, g.op("Unsqueeze", q, g.const(arr64(-1)))) if nd else g.op("Gather", t, q)
    w, scales = g.reshape(w, n * k // block, block), g.const(s)
    if nested:
        codes, levels = r.integers(0, 256, len(s), u8), np.linspace(-1, 1, 256, dtype=f32)
        more = r.uniform(0.1, 0.4, (len(s) // 256, 1)).astype(f32)
        scales = g.op("Gather", g.const(levels), g.op("Cast", g.const(codes), to=7))
        scales = g.reshape(g.op("Mul", g.reshape(scales, -1, 256), g.const(more)), -1)
        scales = g.reshape(g.op("Add", scales, g.const(f32(0.7))), -1, 1)
        s = ((levels[codes].reshape(-1, 256) * more).reshape(-1, 1) + f32(0.7)).astype(f32)
        stored = packed.nbytes + codes.nbytes + levels.nbytes + more.nbytes + 64
    w = g.reshape(g.op("Mul", w if kind == f32 else g.cast(w, f32), scales), n, k)
    w = w if kind == f32 else g.cast(w, kind)
    if product == "Gemm":
        g.nodes.append(node("Gemm", ["x", w], ["y"], transB=1))
    else:
        g.nodes.append(node("MatMul", ["x", g.op("Transpose", w, perm=[1, 0])], ["y"]))
    q = np.stack([packed >> 4, packed & 15], 0 if form == "runs" else 1).reshape(-1, block)
    want = d(x) @ (d(table)[q] * d(s)).reshape(n, k).T
    name = f"unpacked_nf4_{form}_{np.dtype(kind).name}{'_nd' if nd else ''}{'_nested' if nested else ''}_{product.lower()}"
    return match(name, "unpack.lowbit", g.nodes, {"x": x}, "y" if kind == f32 else "y:h", want, g.constants, opset=18,
                 strict=None, weights=stored, ops=("LowBitFullyConnected",))


def bitsandbytes():
    """MatMulBnb4: blocks that are parts of rows, those that cross rows and have 32 numbers in common with them, and those
    that have 8, which a session widens."""
    r = rng("bitsandbytes")
    for n, k, block in ((128, 256, 64), (256, 64, 16), (96, 128, 128), (64, 96, 64), (64, 72, 16)):
        packed, s = r.integers(0, 256, n * k // 2, u8), r.uniform(0.1, 1, n * k // block).astype(f32)
        q = np.stack([packed >> 4, packed & 15], 1).reshape(-1, block)
        x = halves("bnbx", 3, k).astype(f32)
        yield match(f"unpacked_bnb4_{n}x{k}_by_{block}", "unpack.lowbit",
                    [node("MatMulBnb4", "x w s", "y", domain=MS, K=k, N=n, block_size=block, quant_type=1)], {"x": x}, "y",
                    d(x) @ (d(NF4)[q] * d(s)[:, None]).reshape(n, k).T, {"w": packed, "s": s}, strict=None,
                    weights=packed.nbytes + s.nbytes + 64, ops=("LowBitFullyConnected",) if k != 72 else ("FullyConnected",))


def tables():
    for form in ("stacked", "divisions", "scattered"):
        for kind in (f32, f16):
            yield looked_up(form, kind)
            yield looked_up(form, kind, nd=True, product="MatMul")
    for kind in (f32, f16):
        yield looked_up("stacked", kind, nested=True, n=1024, k=1024)
        # More numbers than the importer computes at once.
        for nested in (False, True):
            yield looked_up("strided", kind, nd=True, nested=nested, n=1024, k=512)
        yield looked_up("runs", kind, nd=True, n=1024, k=512)
    yield from bitsandbytes()


def cases():
    yield from tables()
    yield from odd_shapes()
    yield three_bits()
    yield sliced_products("sliced_products")
    yield sliced_products("sliced_products_and_differences", scaled=True)
    yield from slices()
