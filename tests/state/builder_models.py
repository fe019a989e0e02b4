"""Forms that ONNX Runtime's model builder (onnxruntime-genai 0.18) gives decoders of some architectures, with random weights.

grouped(): GroupQueryAttention with, on request,
  open_rows    caches whose rows have no declared size ("kv_cache_dim")
  two_tables   cosines and sines that an If chooses by the number of tokens (LongRoPE)
  rank_3       positions for three axes of pictures, by which queries and keys are rotated before the attention (M-RoPE)
  convolution  a layer whose state has a fixed size in front of the others (LFM2)
multi_head(): MultiHeadAttention, whose caches grow, and positions from the caches' length (Whisper).
"""
import numpy as np
from decoder_models import SMALL, Graph, angles, value
from onnx import TensorProto, helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
CHANGE = 6  # tokens from which on two_tables reads the second pair of tables


def micro(g, op, inputs, outputs, **attributes):
    g.nodes.append(helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", domain="com.microsoft", **attributes))
    return outputs[0]


def tables(g, shape, total, two):
    if not two:
        return [g.constant(f(angles(shape)), g.kind) for f in (np.cos, np.sin)]
    branches = []
    for name, rows, speed in (("large", shape.positions, 0.3), ("small", CHANGE, 1.0)):
        given = [(f"{f.__name__}_{name}", f(angles(shape)[:rows] * speed).astype(g.kind)) for f in (np.cos, np.sin)]
        nodes = [helper.make_node("Constant", [], [n], value=helper.make_tensor(n, g.onnx_kind, a.shape, a.tobytes(), raw=True))
                 for n, a in given]
        branches.append(helper.make_graph(nodes, name, [], [value(n, g.onnx_kind, a.shape) for n, a in given]))
    many = g.add("Greater", total, g.constant(CHANGE, np.int64))
    g.nodes.append(helper.make_node("If", [many], ["cos", "sin"], name="tables", then_branch=branches[0], else_branch=branches[1]))
    return ["cos", "sin"]


def convolved(g, x, shape):
    """x plus what was two tokens before; the last two tokens are kept."""
    across = g.add("Transpose", x, perm=[0, 2, 1])
    joined = g.add("Concat", "past.0.conv", across, axis=2)
    g.add("Slice", joined, g.integers(-2), g.integers(2 ** 62), g.integers(2), name="present.0.conv")
    before = g.add("Slice", joined, g.integers(0), g.integers(-2), g.integers(2))
    return g.add("Add", x, g.add("Transpose", before, perm=[0, 2, 1]))


def grouped(seed=1, shape=SMALL, open_rows=False, two_tables=False, rank_3=False, convolution=False, **attributes):
    g = Graph(seed, np.float32)
    counts = g.add("Sub", g.add("ReduceSum", "attention_mask", g.integers(1), keepdims=0), g.constant(1, np.int64))
    last = g.add("Cast", counts, to=TensorProto.INT32)
    length = g.add("Gather", g.add("Shape", "attention_mask"), g.constant(1, np.int64))
    total = g.add("Cast", length, to=TensorProto.INT32)
    cos, sin = tables(g, shape, length, two_tables)
    widths = {}

    def attention(layer, x):
        if convolution and layer == 0:
            x = convolved(g, x, shape)
        past, present = f"past_key_values.{layer}", f"present.{layer}"
        packed = g.add("MatMul", x, g.weight(shape.hidden, (shape.heads + 2 * shape.groups) * shape.size))
        widths[packed] = (shape.heads + 2 * shape.groups) * shape.size
        operands = [packed, "", ""]
        if rank_3:
            sizes = [n * shape.size for n in (shape.heads, shape.groups, shape.groups)]
            operands = [f"{packed}.{part}" for part in "qkv"]
            g.nodes.append(helper.make_node("Split", [packed, g.integers(*sizes)], operands, axis=2))
            row = g.add("Gather", "position_ids", g.constant(layer, np.int64), axis=0)  # of one axis
            for i, heads in ((0, shape.heads), (1, shape.groups)):
                operands[i] = micro(g, "RotaryEmbedding", [operands[i], row, cos, sin], [f"{operands[i]}.turned"], num_heads=heads)
        turned = ["", ""] if rank_3 else [cos, sin]
        return micro(g, "GroupQueryAttention", operands + [f"{past}.key", f"{past}.value", last, total] + turned,
                     [f"mixed{layer}", f"{present}.key", f"{present}.value"], num_heads=shape.heads, kv_num_heads=shape.groups,
                     do_rotary=0 if rank_3 else 1, **attributes)

    g.decoder(shape, attention)
    inputs, outputs = g.ports(shape, "total_sequence_length", "past_sequence_length", "total_sequence_length", rank_3)
    for port in inputs + outputs:
        dims = port.type.tensor_type.shape.dim
        if port.name == "position_ids":
            port.CopyFrom(value("position_ids", INT64, [3, "batch_size", "sequence_length"]))
        elif open_rows and len(dims) == 4:
            dims[3].dim_param = "kv_cache_dim"
    if convolution:
        inputs.append(value("past.0.conv", FLOAT, ["batch_size", shape.hidden, 2]))
        outputs.append(value("present.0.conv", FLOAT, ["batch_size", shape.hidden, 2]))
    model = g.model(inputs, outputs)
    model.graph.value_info.extend(value(name, FLOAT, ["batch_size", "sequence_length", width]) for name, width in widths.items())
    return model


def multi_head(seed=1, shape=SMALL, masked=False, **attributes):
    g = Graph(seed, np.float32)
    past = g.add("Unsqueeze", g.add("Gather", g.add("Shape", "past_key_values.0.key"), g.constant(2, np.int64)), g.integers(0))
    tokens = g.add("Unsqueeze", g.add("Gather", g.add("Shape", "input_ids"), g.constant(1, np.int64)), g.integers(0))
    places = g.add("Slice", g.weight(shape.positions, shape.hidden), past, g.add("Add", past, tokens), g.integers(0), g.integers(1))

    def attention(layer, x):
        x = g.add("Add", x, places)
        q, k, v = (g.add("MatMul", x, g.weight(shape.hidden, shape.hidden)) for _ in range(3))
        caches = [f"{when}.{layer}.{what}" for when in ("past_key_values", "present") for what in ("key", "value")]
        mask = "seen" if masked else ""
        return micro(g, "MultiHeadAttention", [q, k, v, "", mask, "", *caches[:2]], [f"mixed{layer}", *caches[2:]],
                     num_heads=shape.heads, unidirectional=1, **attributes)

    if masked:
        g.add("Cast", "attention_mask", name="seen", to=TensorProto.INT32)
    g.decoder(shape, attention)
    inputs, outputs = g.ports(shape, "total_sequence_length", "past_sequence_length", "total_sequence_length", False)
    return g.model([i for i in inputs if masked or i.name != "attention_mask"], outputs)
