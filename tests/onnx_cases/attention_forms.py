"""Attention and rotary embeddings in forms that exporters write: scores beside sinks, batches of heads (torch.baddbmm), and
torch.repeat_interleave of angles.

Expected: of onnxruntime.
"""
import numpy as np
from case import floats
from expert_forms import Net

HEADS, QUERIES, KEYS, SIZE = 3, 2, 5, 8


def rows(name, count):
    return floats(f"af {name}", 1, HEADS, count, SIZE)


FEEDS = {"q": rows("q", QUERIES), "k": rows("k", KEYS), "v": rows("v", KEYS)}


def sinks(name, shifted=True, kept=slice(0, -1), apart=None, taken=True):
    net = Net()
    last = net.ints(3)
    scores = net.add("Mul", net.add("MatMul", "q", net.add("Transpose", "k", perm=[0, 1, 3, 2])), net.constant(np.float32(0.3)))
    scores = net.add("Add", scores, net.constant(floats("af bias", 1, 1, QUERIES, KEYS)))
    sink = floats("af sink", 1, HEADS, 1, 1)
    if apart:
        column = net.constant(floats("af apart", 1, HEADS, QUERIES, 1))
    else:
        column = net.add("Expand", net.constant(sink), net.ints(1, HEADS, QUERIES, 1))
    both = net.add("Concat", scores, column, axis=-1)
    if shifted:
        both = net.add("Sub", both, net.add("ReduceMax", both, last))
    weights = net.add("Softmax", both, axis=-1)
    weights = net.add("Slice", weights, net.ints(kept.start), net.ints(kept.stop), last)
    return net.case(f"sinks_{name}", net.add("MatMul", weights, "v"), FEEDS, holds={"Attention": int(taken)})


def batched(name, mixed=False):
    """[heads, rows, size], as BLOOM has them; `mixed`: the softmax is over [1, heads, queries, keys] in another order."""
    net = Net()
    q, k, v = (net.add("Reshape", n, net.ints(HEADS, -1, SIZE)) for n in "qkv")
    scores = net.add("Mul", net.add("MatMul", q, net.add("Transpose", k, perm=[0, 2, 1])), net.constant(np.float32(0.3)))
    scores = net.add("Add", scores, net.constant(floats("af slopes", HEADS, 1, KEYS)))
    scores = net.add("Reshape", scores, net.ints(1, QUERIES, HEADS, KEYS) if mixed else net.ints(1, HEADS, QUERIES, KEYS))
    mask = np.where(np.arange(KEYS) < [[3], [4]], 0, np.finfo(np.float32).min).astype(np.float32)[None, None]
    if not mixed:
        scores = net.add("Add", scores, net.constant(mask))
    weights = net.add("Reshape", net.add("Softmax", scores, axis=-1), net.ints(HEADS, QUERIES, KEYS))
    return net.case(f"attention_batched_{name}", net.add("MatMul", weights, v), FEEDS, holds={"Attention": int(not mixed)})


def interleaved(name, twice=True):
    """Angles of pairs, repeated as torch's older exporter writes it; `twice`: each, or all of them one behind the other."""
    net = Net()
    pairs = SIZE // 2
    found = np.argwhere(np.ones((pairs, 2))) if twice else np.array([(i, 0) for i in range(pairs)] * 2)
    turned = net.add("Transpose", net.add("Mul", "p", net.constant(floats("af f", 1, pairs, 1))), perm=[1, 2, 0])
    both = net.add("Expand", net.add("Unsqueeze", turned, net.ints(1)), net.ints(pairs, 2, KEYS, 1))
    angles = net.add("Transpose", net.add("GatherND", both, net.constant(found)), perm=[2, 1, 0])
    cos, sin = (net.add("Unsqueeze", net.add(f, angles), net.ints(1)) for f in ("Cos", "Sin"))
    last = net.ints(3)
    a, b = (net.add("Slice", "k", net.ints(first), net.ints(2**40), last, net.ints(2)) for first in (0, 1))
    across = net.add("Concat", *(net.add("Unsqueeze", x, net.ints(4)) for x in (net.add("Neg", b), a)), axis=4)
    across = net.add("Reshape", across, net.ints(1, HEADS, KEYS, SIZE))
    y = net.add("Add", net.add("Mul", "k", cos), net.add("Mul", across, sin))
    return net.case(f"rope_{name}", y, {"k": FEEDS["k"], "p": floats("af p", 1, 1, KEYS)}, holds={"Rope": int(twice), "GatherNd": int(not twice)})


def halves(name, neighbours=True, minus=True):
    """Pairs of neighbours that become halves (DeepSeek); `minus`: the first is a difference."""
    net = Net()
    last, big = net.ints(3), net.ints(2**40)
    if neighbours:
        a, b = (net.add("Slice", "k", net.ints(first), big, last, net.ints(2)) for first in (0, 1))
    else:
        a, b = net.add("Slice", "k", net.ints(0), net.ints(SIZE // 2), last), net.add("Slice", "q", net.ints(0), net.ints(SIZE // 2), last)
    cos, sin = (net.add("Unsqueeze", net.add(f, "p"), net.ints(1)) for f in ("Cos", "Sin"))
    left = net.add("Sub" if minus else "Add", net.add("Mul", a, cos), net.add("Mul", b, sin))
    right = net.add("Add", net.add("Mul", b, cos), net.add("Mul", a, sin))
    feeds = {"k": FEEDS["k"], "p": floats("af p", 1, KEYS, SIZE // 2)}
    if not neighbours:
        feeds["q"] = floats("af other", 1, HEADS, KEYS, SIZE)
    return net.case(f"rope_{name}", net.add("Concat", left, right, axis=-1), feeds, holds={"Rope": int(minus)})


def cases():
    yield sinks("shifted")
    yield sinks("plain", shifted=False)
    yield sinks("first_column_dropped", kept=slice(1, 2**40), taken=False)
    yield sinks("of_queries", apart=True, taken=False)
    yield batched("slopes")
    yield batched("mixed", mixed=True)
    yield interleaved("interleaved")
    yield halves("neighbours_to_halves")
    yield halves("of_two_values", neighbours=False)
    yield halves("sums", minus=False)
    yield interleaved("one_behind_the_other", twice=False)
