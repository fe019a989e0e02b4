"""Mixtures of experts that models write without an operator for them: a loop over experts with NonZero, as torch's older exporter
writes it, all experts for all tokens, rows sorted by expert, and weights chosen by GatherND.

Expected: of onnxruntime. What is not proven to be a mixture is computed as it is written.
"""
import numpy as np
from case import floats, ms, node, simple

TOKENS, HIDDEN, INNER, EXPERTS = 5, 16, 24, 4


class Net:
    def __init__(self):
        self.nodes, self.constants, self.count = [], {}, 0

    def add(self, op, *inputs, outputs=1, make=node, **attributes):
        self.count += 1
        names = [f"v{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(make(op, list(inputs), names, name=f"{op}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, a):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(a)
        return name

    def ints(self, *items):
        return self.constant(np.array(items, np.int64))

    def case(self, name, y, feeds, **more):
        self.nodes.append(node("Identity", y, "y"))
        return simple(name, self.nodes, feeds, "y", self.constants, opset=21, ir=10, atol=1e-4, **more)


FEEDS = {"x": floats("ef x", TOKENS, HIDDEN), "r": floats("ef r", TOKENS, EXPERTS)}


def matrix(net, what, e, *shape):
    return net.constant(floats(f"ef {what} {e}", *shape, low=-0.5, high=0.5))


def linear(net, x, what, e, inputs, outputs, bits):
    if not bits:
        return net.add("MatMul", x, matrix(net, what, e, inputs, outputs))
    packed = np.random.default_rng(e).integers(0, 256, (outputs, 1, inputs // 2)).astype(np.uint8)
    scales = floats(f"ef s {what} {e}", outputs, low=0.02, high=0.1)
    return net.add("MatMulNBits", x, net.constant(packed), net.constant(scales), make=ms, K=inputs, N=outputs, bits=4, block_size=16)


def expert(net, x, e, biased, bits, inner=16):
    inner = INNER if not bits else inner
    gate, up = (linear(net, x, what, e, HIDDEN, inner, bits) for what in ("gate", "up"))
    if biased:
        gate = net.add("Add", gate, net.constant(floats(f"ef b {e}", inner)))
    h = net.add("Mul", net.add("Mul", gate, net.add("Sigmoid", gate)), up)
    return linear(net, h, "down", e, inner, HIDDEN, bits)


def loop(name, k=2, order=(2, 1, 0), experts=range(EXPERTS), biased=False, bits=0, given=False, whole=False, start=0.0, token_weights=False,
         **more):
    """`given`: the caller chooses; `whole`: a norm over an expert's rows; `token_weights`: the first choice's for all."""
    net = Net()
    if given:
        best, weights = "i", "w"
    else:
        weights, best = net.add("TopK", net.add("Softmax", "r", axis=-1), net.ints(k), outputs=2)
    hot = net.add("OneHot", best, net.ints(EXPERTS), net.ints(0, 1))
    hot = net.add("Transpose", hot, perm=list(order))
    y = net.constant(np.full((TOKENS, HIDDEN), start, np.float32))
    shape = net.ints(TOKENS, HIDDEN)
    for e in experts:
        mask = net.add("Cast", net.add("Gather", hot, net.constant(np.int64(e)), axis=0), to=9)
        found = net.add("Transpose", net.add("NonZero", mask), perm=[1, 0])
        parts = [net.add("Squeeze", part, net.ints(1)) for part in net.add("Split", found, outputs=2, axis=1, num_outputs=2)]
        choice, token = parts if order == (2, 1, 0) else parts[::-1]
        rows = net.add("Reshape", net.add("Gather", net.add("Unsqueeze", "x", net.ints(0)), token, axis=1), net.ints(-1, HIDDEN))
        out = expert(net, rows, e, biased, bits)
        if whole:
            out = net.add("Sub", out, net.add("ReduceMax", out, net.ints(0)))
        place = net.add("Mul", token, net.ints(k))
        each = net.add("Gather", net.add("Reshape", weights, net.ints(-1, 1)),
                       place if token_weights else net.add("Add", choice, place), axis=0)
        out = net.add("Mul", out, each)
        zeros = net.add("ConstantOfShape", shape)
        at = net.add("Expand", net.add("Unsqueeze", token, net.ints(1)), net.add("Shape", out))
        y = net.add("Add", y, net.add("ScatterElements", zeros, at, out, axis=0))
    feeds = dict(FEEDS)
    if given:
        feeds = {"x": FEEDS["x"], "i": np.argsort(FEEDS["r"], -1)[:, -k:].copy(), "w": floats("ef w", TOKENS, k)}
    return net.case(f"experts_loop_{name}", y, feeds, **more)


def dense(name, k=2, given=False, whole=False, reduction="none"):
    net = Net()
    if given:
        best, weights = "i", "w"
    else:
        top, best = net.add("TopK", "r", net.ints(k), outputs=2)
        weights = net.add("Softmax", top, axis=1)
    zeros = net.constant(np.zeros((TOKENS, EXPERTS), np.float32))
    scores = net.add("ScatterElements", zeros, best, weights, axis=1, reduction=reduction)
    rows = net.add("Reshape", net.add("Tile", "x", net.ints(EXPERTS, 1)), net.ints(EXPERTS, -1, HIDDEN))
    both = net.add("MatMul", rows, net.constant(floats("ef both", EXPERTS, HIDDEN, 2 * INNER, low=-0.5, high=0.5)))
    both = net.add("Add", both, net.constant(floats("ef bb", EXPERTS, 1, 2 * INNER)))
    last = net.ints(2)
    gate, up = (net.add("Slice", both, net.ints(first), net.ints(2**40), last, net.ints(2)) for first in (0, 1))
    gate = net.add("Clip", gate, "", net.constant(np.float32(1.5)))
    glu = net.add("Mul", gate, net.add("Sigmoid", net.add("Mul", gate, net.constant(np.float32(1.702)))))
    h = net.add("Mul", net.add("Add", up, net.constant(np.float32(1))), glu)
    out = net.add("MatMul", h, net.constant(floats("ef down", EXPERTS, INNER, HIDDEN, low=-0.5, high=0.5)))
    out = net.add("Add", out, net.constant(floats("ef db", EXPERTS, 1, HIDDEN)))
    if whole:
        out = net.add("Softmax", out, axis=1)
    out = net.add("Reshape", out, net.ints(EXPERTS, 1, TOKENS, HIDDEN))
    each = net.add("Reshape", net.add("Transpose", scores, perm=[1, 0]), net.ints(EXPERTS, 1, TOKENS, 1))
    y = net.add("ReduceSum", net.add("Mul", out, each), net.ints(0), keepdims=0)
    feeds = dict(FEEDS)
    if given:
        feeds = {"x": FEEDS["x"], "i": np.array([[0, 2], [1, 1], [3, 0], [2, 2], [1, 0]]), "w": floats("ef w", TOKENS, 2)}
    return net.case(f"experts_dense_{name}", y, feeds, holds={"ExpertFullyConnected": 0 if given or whole or k == EXPERTS else 2})


def grouped(name, given=False, descending=False, twos=False, **more):
    """Rows sorted by expert, and a product of each group's, as transformers' OnnxExporter writes torch's grouped_mm. `given`: the
    groups' ends are the caller's; `twos`: the histogram counts each row twice."""
    net = Net()
    best = net.add("Reshape", net.add("TopK", "r", net.ints(2), outputs=2)[1], net.ints(-1))
    chosen, order = net.add("TopK", best, net.ints(2 * TOKENS), outputs=2, largest=int(descending))
    rows = net.add("Gather", "x", net.add("Div", order, net.constant(np.int64(2))))
    zeros, ones = net.constant(np.zeros(EXPERTS, np.float32)), net.constant(np.float32(2 if twos else 1))
    counts = net.add("ScatterElements", zeros, chosen, net.add("Expand", ones, net.add("Shape", chosen)), axis=0, reduction="add")
    ends = "e" if given else net.add("Cast", net.add("CumSum", net.add("Cast", counts, to=6), net.constant(np.int64(0))), to=7)
    ends = net.add("Split", ends, outputs=EXPERTS, axis=0, num_outputs=EXPERTS)

    def product(x, what, inputs, outputs):
        matrices = net.add("Split", net.constant(floats(f"ef g {what}", EXPERTS, inputs, outputs, low=-0.5, high=0.5)), outputs=EXPERTS,
                           axis=0, num_outputs=EXPERTS)
        begin, parts = net.constant(np.int64(0)), []
        for end, matrix in zip(ends, matrices):
            limit = net.add("Squeeze", end, net.ints(0))
            places = net.add("Range", begin, limit, net.constant(np.int64(1)))
            parts.append(net.add("MatMul", net.add("Gather", x, places, axis=0), net.add("Squeeze", matrix, net.ints(0))))
            begin = limit
        return net.add("Concat", *parts, axis=0)
    h = product(rows, "up", HIDDEN, INNER)
    y = product(net.add("Mul", h, net.add("Sigmoid", h)), "down", INNER, HIDDEN)
    feeds = {**FEEDS, "e": np.array([2, 3, 7, 2 * TOKENS])} if given else FEEDS
    return net.case(f"experts_grouped_{name}", y, feeds, **more)


def by_gather_nd():
    net = Net()
    best = net.add("TopK", "r", net.ints(2), outputs=2)[1]
    places = net.add("Unsqueeze", net.add("Reshape", best, net.ints(-1)), net.ints(-1))
    weights = net.constant(floats("ef nd", EXPERTS, INNER, HIDDEN, low=-0.5, high=0.5))
    rows = net.add("Reshape", net.add("Expand", net.add("Unsqueeze", "x", net.ints(1)), net.ints(TOKENS, 2, HIDDEN)),
                   net.ints(2 * TOKENS, HIDDEN, 1))
    y = net.add("Squeeze", net.add("MatMul", net.add("GatherND", weights, places), rows), net.ints(2))
    return net.case("experts_by_gather_nd", y, FEEDS, holds={"ExpertFullyConnected": 1, "GatherNd": 0})


def cases():
    one_pass, as_written = ({"ExpertFullyConnected": n, "NonZero": m} for n, m in ((3, 0), (0, EXPERTS)))
    yield loop("choices_first", holds=one_pass)
    yield loop("tokens_first", order=(2, 0, 1), holds=one_pass)
    yield loop("three_of_four", k=3, biased=True, holds=one_pass)
    yield loop("any_order", experts=(2, 0, 3, 1), holds=one_pass)
    yield loop("packed", bits=4, holds=one_pass)
    yield loop("given", given=True, holds=as_written)
    yield loop("over_rows", whole=True, holds=as_written)
    yield loop("one_missing", experts=(0, 1, 3), holds=one_pass)
    # The first two are chosen ones of four; the others stay.
    yield loop("one_twice", experts=(0, 1, 1, 3), holds={"ExpertFullyConnected": 3, "NonZero": 2})
    yield loop("from_one", start=1.0, holds=as_written)
    yield loop("weights_of_tokens", token_weights=True, holds=as_written)
    yield dense("two_of_four")
    yield dense("one_of_four", k=1)
    yield dense("all", k=EXPERTS)
    yield dense("given", given=True)
    yield dense("given_added", given=True, reduction="add")
    yield dense("over_tokens", whole=True)
    yield by_gather_nd()
    yield grouped("sorted", holds={"ExpertFullyConnected": 2})
    yield grouped("in_another_order", descending=True, holds={"ExpertFullyConnected": 2})
    # What depends on data has no bound where the ends are not those of a histogram.
    for name, options in (("given", dict(given=True)), ("counted_twice", dict(twos=True))):
        yield grouped(name, **options, expect="refuse", words=("Range",))
