#!/usr/bin/env python3
"""Random graphs whose operands differ in type: they convert, twice to the same bytes, and the values are those of a
float64 evaluation, within what rounding each result to the narrowest type of its operands explains.

    random_graphs.py [--sinter PROGRAM] [--count N] [--seed S] [--keep FOLDER] [--jobs N]

Integers are exact and of NumPy's promoted type; floats carry an error bound that grows with every operation.
"""
import argparse
import concurrent.futures
import filecmp
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import sinter_cli as cli  # noqa: E402
from type_case import (LETTERS, bf16, body, build, d, f16, f32, f64, i8, i16, i32, i64, node, u8, value)  # noqa: E402

FLOATS = (f16, bf16, f32, f64)
INTS = (i8, u8, i16, i32, i64)
LETTER = {np.dtype(v): k for k, v in LETTERS.items()}
LIMIT = 2.0**13  # values beyond are not made: float16 must hold them all, with room for sums


def unit(kind):
    """Half a unit in the last place of the type; float64 may be computed in float32 where that is enough."""
    return {np.dtype(f16): 2.0**-11, np.dtype(bf16): 2.0**-8}.get(np.dtype(kind), 2.0**-22)


class Value:
    def __init__(self, name, kind, exact, error=None, constant=False):
        self.name, self.kind, self.constant = name, np.dtype(kind), constant
        self.exact = exact
        self.error = np.zeros(np.shape(exact)) if error is None else np.asarray(error)

    @property
    def is_float(self):
        return self.kind.kind not in "biu"


def meet(a, b):
    """The type in which two operands meet, as the author means it."""
    if a == b:
        return a
    floats = [k for k in (a, b) if k.kind not in "biu"]
    if len(floats) == 1:
        return floats[0]
    if floats:
        return np.dtype(f64) if np.dtype(f64) in floats else np.dtype(f32)
    return np.result_type(a, b)


class Graph:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.n = np.random.default_rng(seed)
        self.values, self.nodes, self.feeds, self.constants, self.infos = [], [], {}, {}, []
        self.shape = (self.r.choice((2, 3)), 4)
        for i in range(self.r.randrange(2, 5)):
            self.feeds[f"x{i}"] = self.fresh(f"x{i}")
        for _ in range(self.r.randrange(3, 30)):
            self.step()

    def array(self, kind, shape):
        if np.dtype(kind) == np.bool_:
            return self.n.random(shape) < 0.5
        if np.dtype(kind).kind in "iu":
            return self.n.integers(0 if np.dtype(kind).kind == "u" else -9, 10, shape).astype(kind)
        return self.n.uniform(-2, 2, shape).astype(kind)

    def fresh(self, name, constant=False, shape=None):
        kind = self.r.choice(FLOATS + FLOATS + INTS + (np.bool_,))
        a = self.array(kind, self.shape if shape is None else shape)
        if a.dtype.kind not in "biu":
            a = a + np.asarray(0.0, a.dtype)
        exact = a if a.dtype.kind in "biu" else d(a)
        self.values.append(Value(name, kind, exact, constant=constant))
        return a

    def operand(self):
        """An earlier value, or a new initializer: a row or a whole array."""
        if self.r.random() < 0.3:
            name = f"c{len(self.constants)}"
            self.constants[name] = self.fresh(name, True, self.r.choice((self.shape, (4,))))
            return self.values[-1]
        return self.r.choice(self.values)

    def step(self):
        op = self.r.choice(("Add", "Sub", "Mul", "Max", "Min", "Where", "Div", "Concat", "MatMul", "Tanh", "Neg", "Less",
                            "ReduceSum", "Clip"))
        a, b = self.operand(), self.operand()
        made = getattr(self, f"on_{op.lower()}", None)
        made = self.arithmetic(op, a, b) if made is None else made(a, b)
        if made is None:
            return
        nodes, kind, exact, error = made
        exact = np.asarray(exact)
        kind = np.dtype(kind)
        if exact.dtype.kind in "biu":
            if kind.kind in "iu" and exact.size and (exact.max() > np.iinfo(kind).max or exact.min() < np.iinfo(kind).min):
                return
        elif not np.isfinite(exact).all():
            return
        if exact.size and np.abs(d(exact)).max() > LIMIT:
            return
        if not any(v.constant is False for v in (a, b)):
            return
        name = f"v{len(self.nodes)}"
        self.nodes.append((name, nodes(name)))
        if kind.kind not in "biu":
            error = error + unit(kind) * np.abs(exact)
        error = np.broadcast_to(error, exact.shape)
        self.values.append(Value(name, kind, exact.astype(kind) if kind.kind in "biu" else exact, error))

    # Each gives (name of the result -> nodes, type, exact values, error bound without the rounding of the result).
    def arithmetic(self, op, a, b):
        kind = meet(a.kind, b.kind)
        if kind == np.bool_ and op != "Where":
            return None
        f = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum}[op]
        wide = np.int64 if kind.kind in "iu" else f64
        x, y = np.asarray(a.exact).astype(wide), np.asarray(b.exact).astype(wide)
        exact = self.try_broadcast(f, x, y)
        if exact is None:
            return None
        if op == "Mul":
            error = np.abs(x) * b.error + np.abs(y) * a.error + a.error * b.error
        elif op in ("Max", "Min"):
            error = np.maximum(a.error, b.error)
        else:
            error = a.error + b.error
        return lambda out: [node(op, [a.name, b.name], [out])], kind, exact, error

    @staticmethod
    def try_broadcast(f, *arrays):
        try:
            np.broadcast_shapes(*(np.shape(x) for x in arrays))
        except ValueError:
            return None
        return f(*arrays)

    def on_div(self, a, b):
        """By a constant away from zero: true where either is a float, truncating where both are integers."""
        kind = self.r.choice(FLOATS + (i32, i64))
        c = (self.n.integers(1, 8, (4,)) if np.dtype(kind).kind == "i" else self.n.uniform(1, 3, (4,))).astype(kind)
        if a.kind == np.bool_ or np.shape(a.exact)[-1:] != (4,):
            return None
        met = meet(a.kind, c.dtype)
        name = f"c{len(self.constants)}"
        self.constants[name] = c
        if met.kind in "iu":
            x = np.asarray(a.exact).astype(i64)
            exact, error = np.sign(x) * (np.abs(x) // c.astype(i64)), 0
        else:
            exact, error = d(a.exact) / d(c), a.error / d(c)
        return lambda out: [node("Div", [a.name, name], [out])], met, exact, error

    def on_where(self, a, b):
        conditions = [v for v in self.values if v.kind == np.bool_]
        if not conditions:
            return None
        c, kind = self.r.choice(conditions), meet(a.kind, b.kind)
        wide = np.bool_ if kind == np.bool_ else np.int64 if kind.kind in "iu" else f64
        exact = self.try_broadcast(np.where, c.exact, np.asarray(a.exact).astype(wide), np.asarray(b.exact).astype(wide))
        if exact is None:
            return None
        return (lambda out: [node("Where", [c.name, a.name, b.name], [out])], kind, exact,
                np.where(c.exact, a.error, b.error))

    def on_concat(self, a, b):
        if np.ndim(a.exact) != np.ndim(b.exact) or np.shape(a.exact)[1:] != np.shape(b.exact)[1:]:
            return None
        kind = meet(a.kind, b.kind)
        wide = np.bool_ if kind == np.bool_ else np.int64 if kind.kind in "iu" else f64
        return (lambda out: [node("Concat", [a.name, b.name], [out], axis=0)], kind,
                np.concatenate([np.asarray(a.exact).astype(wide), np.asarray(b.exact).astype(wide)]),
                np.concatenate([a.error, b.error]))

    def on_matmul(self, a, _):
        if np.ndim(a.exact) != 2 or np.shape(a.exact)[1] != 4 or not (a.is_float or a.kind.kind in "iu"):
            return None
        kind = self.r.choice(FLOATS)
        w = self.array(kind, (4, 4))
        name = f"c{len(self.constants)}"
        self.constants[name] = w
        x = d(a.exact)
        met = meet(a.kind, np.dtype(kind))
        return (lambda out: [node("MatMul", [a.name, name], [out])], met, x @ d(w),
                a.error @ np.abs(d(w)) + 4 * unit(f32) * (np.abs(x) @ np.abs(d(w))))

    def on_tanh(self, a, _):
        return (lambda out: [node("Tanh", [a.name], [out])], a.kind, np.tanh(a.exact), a.error) if a.is_float else None

    def on_neg(self, a, _):
        return (lambda out: [node("Neg", [a.name], [out])], a.kind, -d(a.exact), a.error) if a.is_float else None

    def on_less(self, a, b):
        """Only where no rounding can turn the answer."""
        kind = meet(a.kind, b.kind)
        if kind == np.bool_:
            return None
        gap = self.try_broadcast(lambda x, y: np.abs(x - y), d(a.exact), d(b.exact))
        if gap is None or (kind.kind not in "biu" and (gap <= a.error + b.error + unit(kind) * LIMIT).any()):
            return None
        return (lambda out: [node("Less", [a.name, b.name], [out])], np.bool_, d(a.exact) < d(b.exact), 0)

    def on_reducesum(self, a, _):
        if not a.is_float or np.ndim(a.exact) != 2:
            return None
        name = "axes"
        self.constants.setdefault(name, np.array([1]))
        return (lambda out: [node("ReduceSum", [a.name, name], [out])], a.kind, a.exact.sum(1, keepdims=True),
                a.error.sum(1, keepdims=True) + 4 * unit(f32) * np.abs(a.exact).sum(1, keepdims=True))

    def on_clip(self, a, _):
        """Bounds of some other type, of which all values are exact in every type here."""
        if not a.is_float:
            return None
        kind = self.r.choice(FLOATS + (i32, i64))
        n = len(self.constants)
        self.constants.update({f"c{n}": np.asarray(-1).astype(kind), f"c{n + 1}": np.asarray(2).astype(kind)})
        return (lambda out: [node("Clip", [a.name, f"c{n}", f"c{n + 1}"], [out])], a.kind, np.clip(a.exact, -1, 2),
                a.error)

    def model(self):
        """The whole, with branches, wrong claims and disorder thrown in; and the outputs that are to be compared."""
        flat, used = [], set()
        for name, nodes in self.nodes:
            made = next(v for v in self.values if v.name == name)
            if self.r.random() < 0.15:
                kind = LETTER[made.kind]
                self.feeds.setdefault("taken", np.array(self.r.random() < 0.5))
                inner = [[type(n).FromString(n.SerializeToString()) for n in nodes] for _ in range(2)]
                for k, branch in enumerate(inner):
                    branch[-1].output[0] = f"{name}_{k}"
                nodes = [node("If", ["taken"], [name], then_branch=body(inner[0], "", f"{name}_0:{kind}"),
                              else_branch=body(inner[1], "", f"{name}_1:{kind}"))]
            flat += nodes
            if self.r.random() < 0.15:
                self.infos.append(value(name, self.r.choice(FLOATS + INTS), self.r.choice(([4], [2, 2, 2], None))))
            used.add(name)
        if self.r.random() < 0.25:
            self.r.shuffle(flat)
        outs, want = [], {}
        results = [v for v in self.values if v.name in used]
        for v in self.r.sample(results, min(3, len(results))):
            kind = self.r.choice(FLOATS) if v.is_float else v.kind
            outs.append(f"{v.name}:{LETTER[np.dtype(kind)]}")
            error = v.error + unit(kind) * np.abs(d(v.exact)) if v.is_float else v.error
            want[v.name] = (np.dtype(kind), v.exact, error)
        return build(flat, self.feeds, " ".join(outs), self.constants, value_info=self.infos), want


def check(seed, sinter, keep):
    """None, or what is wrong."""
    g = Graph(seed)
    if not g.nodes:
        return None
    m, want = g.model()
    with tempfile.TemporaryDirectory(prefix="types-") as work:
        source = os.path.join(work, "model.onnx")
        with open(source, "wb") as f:
            f.write(m.SerializeToString())
        outcome = converted(sinter, work, source, g.feeds, want)
        if outcome and keep:
            os.makedirs(keep, exist_ok=True)
            with open(os.path.join(keep, f"{seed}.onnx"), "wb") as f:
                f.write(m.SerializeToString())
            cli.save_npz(os.path.join(keep, f"{seed}.npz"), g.feeds)
        return outcome


def converted(sinter, work, source, feeds, want):
    targets = [os.path.join(work, f"{n}.sinter") for n in "ab"]
    for t in targets:
        r = cli.call(sinter, "convert", source, "-o", t, timeout=60)
        if r.code != 0:
            return f"convert: {r.why()}"
    if not filecmp.cmp(*targets, shallow=False):
        return "two conversions give different files"
    given, result = os.path.join(work, "in.npz"), os.path.join(work, "out.npz")
    cli.save_npz(given, feeds)
    for backend in ([], ["--backend", "reference"]):
        r = cli.call(sinter, "run", targets[0], "--inputs", given, "--outputs", result, "--quiet", *backend, timeout=60)
        if r.code != 0:
            return f"run {' '.join(backend)}: {r.why()}"
        got = cli.load_npz(result)
        for name, (kind, exact, error) in want.items():
            g = cli.from_bits(got[name], kind)
            if g.dtype != kind or g.shape != np.shape(exact):
                return f"{name}: {g.dtype}{list(g.shape)}, want {kind}{list(np.shape(exact))}"
            bad = (g != exact) if kind.kind in "biu" else ~(np.abs(d(g) - exact) <= error + 1e-7)
            if bad.any():
                at = tuple(int(i) for i in np.argwhere(bad)[0])
                bound = "exactly" if kind.kind in "biu" else f"within {float(np.broadcast_to(error, g.shape)[at]):.3g}"
                return f"{name}{list(at)} {' '.join(backend)}: {g[at]}, want {exact[at]} {bound}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", help="save the models of findings here")
    p.add_argument("--jobs", type=int, default=2)
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    seeds = range(args.seed, args.seed + args.count)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        outcome = list(pool.map(lambda s: check(s, sinter, args.keep), seeds))
    for s, why in zip(seeds, outcome):
        if why:
            print(f"FAIL seed {s}: {why}")
    bad = sum(map(bool, outcome))
    print(f"{args.count} graphs, {bad} findings")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
