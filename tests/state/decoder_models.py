"""Small decoders in the forms that exporters write, with random weights.

with_group_query(): as ONNX Runtime's model builder (onnxruntime-genai) writes them: GroupQueryAttention, whose lengths are
sums of the attention mask, or with by_cache=True follow from the length of a cache, as transformers' own exporter has them; with
quantized=(PER_TENSOR or PER_CHANNEL, bits) the caches hold integers, or floats of 8 bits with bits="float8". with_concat(): as torch
exports of transformers are (optimum): new keys are joined to the past ones, and the mask is computed from the lengths; with
rounded=True keys and values are rounded to 255 steps of their row's largest magnitude before that; with exported=True the
products and mask are as torch.onnx.export(dynamo=True) writes them; with softcap=c scores are c * tanh(scores / c),
as in Gemma 2. One head of keys and values meets all heads of queries by broadcasting. masks="two": causality replaces scores, and
the mask is added (GPT-Neo); "slopes": a slope for each head times the key's position is added, and then scores are replaced (MPT).
sinks=True: a score of each head beside those of the keys (gpt-oss). batched=True: products over [B * H, M, N] (BLOOM). half_past=True: past keys and values
are float16, new ones are not (Gemma in float16 by optimum).
rotated=n: the first n elements of a row are turned (Phi), those of pairs=True with their neighbour (GPT-J). operator="keys": Attention
of opset 23 reads the joined keys; "past": it joins them; "bmm": products are of rank 3, as older models have them. room="ScatterND" or "TensorScatter": caches of a fixed size, into which the model
writes by this operator (transformers' StaticCache); what they hold is counted beside them, and the mask is of rank 4. with_encoder():
with_concat() as the second half of a model whose encoder has run before; merged(): as optimum writes it, with the first run as a branch.
"""
import dataclasses

import numpy as np
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int = 2
    hidden: int = 64
    heads: int = 4
    groups: int = 2
    vocabulary: int = 50
    positions: int = 64

    @property
    def size(self):
        return self.hidden // self.heads


SMALL = Shape()
value = helper.make_tensor_value_info


class Graph:
    """Nodes and constants of a model that is being made."""

    def __init__(self, seed, kind):
        self.rng, self.kind, self.nodes, self.constants, self.count = np.random.default_rng(seed), kind, [], [], 0
        self.onnx_kind = self.cache_kind = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        self.per_byte = 1  # elements of a cache that a byte holds

    def constant(self, a, kind=None):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(a, kind), name))
        return name

    def integers(self, *items):
        return self.constant(items, np.int64)

    def weight(self, *shape):
        return self.constant((self.rng.standard_normal(shape, np.float32) / np.sqrt(shape[0])).astype(self.kind))

    def add(self, op, *inputs, name=None, **attributes):
        self.count += 1
        name = name or f"v{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{self.count}", **attributes))
        return name

    def model(self, inputs, outputs, opset=18):
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)],
                                 ir_version=10)

    def decoder(self, shape, attention):
        """x + attention(norm(x)), x + mlp(norm(x)), for each layer; attention(layer, x) gives [B, S, hidden]."""
        x = self.add("Gather", self.weight(shape.vocabulary, shape.hidden), "input_ids")
        for layer in range(shape.layers):
            norm = self.constant(np.ones(shape.hidden), self.kind)
            mixed = attention(layer, self.add("LayerNormalization", x, norm, axis=-1))
            x = self.add("Add", x, self.add("MatMul", mixed, self.weight(shape.hidden, shape.hidden)))
            h = self.add("LayerNormalization", x, norm, axis=-1)
            h = self.add("Relu", self.add("MatMul", h, self.weight(shape.hidden, 2 * shape.hidden)))
            x = self.add("Add", x, self.add("MatMul", h, self.weight(2 * shape.hidden, shape.hidden)))
        self.add("Cast", self.add("MatMul", x, self.weight(shape.hidden, shape.vocabulary)), name="logits", to=TensorProto.FLOAT)

    def caches(self, shape, when, length):
        return [value(f"{when}.{layer}.{what}", self.cache_kind, ["batch_size", shape.groups, length, shape.size // self.per_byte])
                for layer in range(shape.layers) for what in ("key", "value")]

    def ports(self, shape, mask_length, past, total, positions):
        inputs = [value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
                  value("attention_mask", TensorProto.INT64, ["batch_size", mask_length])]
        if positions:
            inputs.append(value("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"]))
        return (inputs + self.caches(shape, "past_key_values", past),
                [value("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", shape.vocabulary])] +
                self.caches(shape, "present", total))


def angles(shape):
    pairs = shape.size // 2
    return np.arange(shape.positions)[:, None] / 100.0 ** (np.arange(pairs)[None] / pairs)


def with_group_query(kind=np.float32, seed=1, shape=SMALL, quantized=None, by_cache=False, **attributes):
    g = Graph(seed, kind)
    if quantized:
        how, bits = quantized
        g.cache_kind, g.per_byte, largest = {8: (TensorProto.INT8, 1, 127), 4: (TensorProto.UINT8, 2, 7),
                                             "float8": (TensorProto.FLOAT8E4M3FN, 1, 448)}[bits]
        attributes = dict(attributes, k_quant_type=how, v_quant_type=how, kv_cache_bit_width=4 if bits == 4 else 8)

    drawn = np.random.default_rng(seed + 100)  # apart from the weights, which are those of the model without

    def scales():
        count = 1 if how == "PER_TENSOR" else shape.groups * shape.size
        return g.constant(drawn.uniform(3, 5, count) / largest, np.float32)

    counts = g.add("Sub", g.add("ReduceSum", "attention_mask", g.integers(1), keepdims=0), g.constant(1, np.int64))
    last = g.add("Cast", counts, to=TensorProto.INT32)
    total = g.add("Cast", g.add("Gather", g.add("Shape", "attention_mask"), g.constant(1, np.int64)), to=TensorProto.INT32)
    cos, sin = (g.constant(f(angles(shape)), kind) for f in (np.cos, np.sin))
    bias = ""
    if by_cache:
        past, tokens = (g.add("Gather", g.add("Shape", name), g.constant(axis, np.int64))
                        for name, axis in (("past_key_values.0.value", 2), ("input_ids", 1)))
        count, zero, one = g.add("Add", past, tokens), g.constant(0, np.int64), g.constant(1, np.int64)
        total = g.add("Cast", count, to=TensorProto.INT32)
        last = g.add("Reshape", g.add("Sub", total, g.constant(1, np.int32)), g.integers(1))
        rows = g.add("Unsqueeze", g.add("Range", past, count, one), g.integers(1))
        seen = g.add("LessOrEqual", g.add("Unsqueeze", g.add("Range", zero, count, one), g.integers(0)), rows)
        bias = g.add("Where", g.add("Unsqueeze", seen, g.integers(0, 1)), g.constant(0, kind), g.constant(-3e4, kind))

    def attention(layer, x):
        packed = g.add("MatMul", x, g.weight(shape.hidden, (shape.heads + 2 * shape.groups) * shape.size))
        past, present = f"past_key_values.{layer}", f"present.{layer}"
        g.nodes.append(helper.make_node(
            "GroupQueryAttention", [packed, "", "", f"{past}.key", f"{past}.value", last, total, cos, sin] +
            (["", "", "", scales(), scales()] if quantized else ["", bias] if bias else []),
            [f"mixed{layer}", f"{present}.key", f"{present}.value"], name=f"attention_{layer}", domain="com.microsoft",
            num_heads=shape.heads, kv_num_heads=shape.groups, do_rotary=1, **attributes))
        return f"mixed{layer}"

    g.decoder(shape, attention)
    return g.model(*g.ports(shape, "total_sequence_length", "past_sequence_length", "total_sequence_length", False))


def with_concat(kind=np.float32, seed=1, shape=SMALL, rounded=False, exported=False, softcap=None, masks="one", rotated=None,
                pairs=False, sinks=False, batched=False, half_past=False, operator=None, room=None):
    g = Graph(seed, kind)
    zero, one = g.constant(0, np.int64), g.constant(1, np.int64)
    past = g.add("Gather", g.add("Shape", "past_key_values.0.key"), g.constant(2, np.int64))
    tokens = g.add("Gather", g.add("Shape", "input_ids"), one)
    total = g.add("Add", past, tokens)
    # [1, 1, S, T] by causality, and [B, 1, 1, T] by the mask.
    rows = g.add("Unsqueeze", g.add("Range", past, total, one), g.integers(1))
    columns = g.add("Unsqueeze", g.add("Range", zero, total, one), g.integers(0))
    causal = g.add("Unsqueeze", g.add("GreaterOrEqual", rows, columns), g.integers(0, 1))
    if exported:
        # The mask's element of each key, by its place.
        places = g.add("Unsqueeze", g.add("Range", zero, total, one), g.integers(1))
        places = g.add("Concat", g.add("Mul", places, zero), places, axis=-1)
        kept = g.add("GatherND", g.add("Cast", "attention_mask", to=TensorProto.BOOL), places)
        kept = g.add("Unsqueeze", kept, g.integers(0, 1, 2))
    else:
        kept = g.add("Cast", g.add("Unsqueeze", "attention_mask", g.integers(1, 2)), to=TensorProto.BOOL)
    seen = "attention_mask" if room else g.add("And", causal, kept)
    none, hidden = g.constant(0, kind), g.constant(-30000.0 if kind == np.float16 else -3.0e38, kind)

    def masked(products):
        if masks == "two":
            return g.add("Add", g.add("Where", causal, products, hidden), g.add("Where", kept, none, hidden))
        if masks == "slopes":
            slopes = g.constant(np.arange(1, shape.heads + 1).reshape(-1, 1, 1) / 8, kind)
            products = g.add("Add", products, g.add("Mul", slopes, g.add("Cast", columns, to=g.onnx_kind)))
            return g.add("Where", g.add("Not", seen), hidden, products)
        return g.add("Add", products, bias)
    bias = g.add("Where", seen, none, hidden)
    rotated = shape.size if rotated is None else rotated
    table = angles(dataclasses.replace(shape, hidden=rotated * shape.heads))
    table = np.repeat(table, 2, 1) if pairs else np.concatenate([table] * 2, 1)
    cos, sin = (g.add("Unsqueeze", g.add("Gather", g.constant(f(table), kind), "position_ids"), g.integers(1)) for f in (np.cos, np.sin))

    def turned(x):
        def part(first, last, step=1):
            return g.add("Slice", x, g.integers(first), g.integers(last), g.integers(3), g.integers(step))
        passed = part(rotated, shape.size) if rotated < shape.size else None
        x = part(0, rotated) if passed else x
        a, b = (part(0, rotated, 2), part(1, rotated, 2)) if pairs else (part(0, rotated // 2), part(rotated // 2, rotated))
        if pairs:
            last = g.integers(-1)
            across = g.add("Concat", g.add("Unsqueeze", g.add("Neg", b), last), g.add("Unsqueeze", a, last), axis=-1)
            across = g.add("Reshape", across, g.integers(0, 0, 0, rotated))
        else:
            across = g.add("Concat", g.add("Neg", b), a, axis=3)
        y = g.add("Add", g.add("Mul", x, cos), g.add("Mul", across, sin))
        return g.add("Concat", y, passed, axis=-1) if passed else y

    def attention(layer, x):
        def heads(count):
            y = g.add("MatMul", x, g.weight(shape.hidden, count * shape.size))
            return g.add("Transpose", g.add("Reshape", y, g.integers(0, 0, count, shape.size)), perm=[0, 2, 1, 3])

        def kept(rows):
            if not rounded:
                return rows
            step = g.add("Div", g.add("ReduceMax", g.add("Abs", rows), g.integers(3)), g.constant(127, kind))
            return g.add("Mul", g.add("Round", g.add("Div", rows, step)), step)

        def repeated(rows):
            if shape.groups in (1, shape.heads):
                return rows
            each = g.add("Expand", g.add("Unsqueeze", rows, g.integers(2)), g.integers(1, 1, shape.heads // shape.groups, 1, 1))
            return g.add("Reshape", each, g.integers(0, shape.heads, -1, shape.size))
        q, k, v = turned(heads(shape.heads)), turned(heads(shape.groups)), heads(shape.groups)
        k, v = kept(k), kept(v)
        def earlier(what):
            name = f"past_key_values.{layer}.{what}"
            return g.add("Cast", name, to=g.onnx_kind) if half_past else name
        if operator == "past":
            names = [f"{when}.{layer}.{what}" for when in ("past_key_values", "present") for what in ("key", "value")]
            g.nodes.append(helper.make_node("Attention", [q, k, v, "", *names[:2]], [f"mixed{layer}", *names[2:]],
                                            name=f"attention_{layer}", is_causal=1))
            return g.add("Reshape", g.add("Transpose", f"mixed{layer}", perm=[0, 2, 1, 3]), g.integers(0, 0, shape.hidden))
        if room:
            count = f"past_key_values.{layer}.count"
            k, v = (written(rows, count, f"{layer}.{what}") for rows, what in ((k, "key"), (v, "value")))
            g.add("Add", count, tokens, name=f"present.{layer}.count")
        else:
            k = g.add("Concat", earlier("key"), k, name=f"present.{layer}.key", axis=2)
            v = g.add("Concat", earlier("value"), v, name=f"present.{layer}.value", axis=-2)
        k, v = repeated(k), repeated(v)
        if operator == "keys":
            mixed = g.add("Attention", q, k, v, seen, scale=shape.size ** -0.5)
            return g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]), g.integers(0, 0, shape.hidden))
        if operator == "bmm":
            first = g.integers(shape.heads)
            apart = [g.add("Concat", *(g.add("Reshape", n, g.integers(1)) if n in (tokens, total) else n for n in dims), axis=0)
                     for dims in ([first, tokens, g.integers(shape.size)], [g.integers(1), first, tokens, total], [first, tokens, total],
                                  [g.integers(1), first, tokens, g.integers(shape.size)])]
            q = g.add("Reshape", g.add("Mul", q, g.constant(shape.size ** -0.5, kind)), apart[0])
            k, v = (g.add("Reshape", x, g.integers(shape.heads, -1, shape.size)) for x in (k, v))
            products = g.add("Reshape", g.add("MatMul", q, g.add("Transpose", k, perm=[0, 2, 1])), apart[1])
            weights = g.add("Softmax", g.add("Reshape", g.add("Add", products, bias), apart[2]), axis=-1)
            mixed = g.add("Transpose", g.add("Reshape", g.add("MatMul", weights, v), apart[3]), perm=[0, 2, 1, 3])
            return g.add("Reshape", mixed, g.integers(0, 0, shape.hidden))
        if batched:
            q, k, v = (g.add("Reshape", rows, g.integers(shape.heads, -1, shape.size)) for rows in (q, k, v))
        products = (exported_scores if exported else scores)(q, k)
        if batched:
            products = g.add("Reshape", products, g.add("Concat", g.integers(1, shape.heads), g.add("Unsqueeze", tokens, g.integers(0)),
                                                        g.add("Unsqueeze", total, g.integers(0)), axis=0))
        if softcap is not None:
            cap = g.constant(softcap, kind)
            products = g.add("Mul", g.add("Tanh", g.add("Div", products, cap)), cap)
        products = masked(products)
        if sinks:
            sink = g.constant(g.rng.standard_normal((1, shape.heads, 1, 1)), kind)
            column = g.add("Expand", sink, g.add("Concat", g.integers(1, 1), g.add("Unsqueeze", tokens, g.integers(0)), g.integers(1), axis=0))
            products = g.add("Concat", products, column, axis=-1)
            products = g.add("Sub", products, g.add("ReduceMax", products, g.integers(-1)))
        weights = g.add("Softmax", products, axis=-1)
        if sinks:
            weights = g.add("Slice", weights, g.integers(0), g.integers(-1), g.integers(3))
        if batched:
            weights = g.add("Reshape", weights, g.add("Concat", g.integers(shape.heads), g.add("Unsqueeze", tokens, g.integers(0)),
                                                      g.add("Unsqueeze", total, g.integers(0)), axis=0))
        if exported:
            weights = g.add("Where", g.add("IsNaN", weights), g.constant(0, kind), weights)
        mixed = g.add("MatMul", weights, v)
        if batched:
            mixed = g.add("Reshape", mixed, g.integers(1, shape.heads, -1, shape.size))
        return g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]), g.integers(0, 0, shape.hidden))

    def written(rows, count, name):
        past, present = f"past_key_values.{name}", f"present.{name}"
        if room == "TensorScatter":
            return g.add(room, past, rows, g.add("Unsqueeze", count, g.integers(0)), name=present, axis=2)
        places = g.add("Unsqueeze", g.add("Add", g.add("Range", zero, tokens, one), count), g.integers(-1))
        past, rows = (g.add("Transpose", x, perm=[2, 0, 1, 3]) for x in (past, rows))
        return g.add("Transpose", g.add("ScatterND", past, places, rows), name=present, perm=[1, 2, 0, 3])

    def scores(q, k):
        turned = g.add("Transpose", k, perm=[0, 2, 1] if batched else [0, 1, 3, 2])
        return g.add("Div", g.add("MatMul", q, turned), g.constant(np.sqrt(shape.size), kind))

    def exported_scores(q, k):
        # Keys are transposed as [B * H, T, D]; queries and keys each take the root of the scale.
        root = g.constant(shape.size ** -0.25, kind)
        dims = g.add("Shape", k)
        heads, rows, size = (g.add("Slice", dims, g.integers(a), g.integers(b)) for a, b in ((0, -2), (-2, -1), (-1, 2**63 - 1)))
        turned = g.add("Transpose", g.add("Reshape", k, g.add("Concat", g.integers(-1), rows, size, axis=0)), perm=[0, 2, 1])
        turned = g.add("Reshape", turned, g.add("Concat", heads, size, rows, axis=0))
        return g.add("MatMul", g.add("Mul", q, root), g.add("Mul", turned, root))

    g.decoder(shape, attention)
    total = "past_sequence_length + sequence_length"
    if room:
        inputs, outputs = g.ports(shape, "cache_length", "cache_length", "cache_length", True)
        inputs[1] = value("attention_mask", TensorProto.BOOL, [1, 1, "sequence_length", "cache_length"])
        for ports, when in ((inputs, "past_key_values"), (outputs, "present")):
            ports.extend(value(f"{when}.{layer}.count", TensorProto.INT64, []) for layer in range(shape.layers))
        return g.model(inputs, outputs, 24)
    inputs, outputs = g.ports(shape, total, "past_sequence_length", total, True)
    if half_past:
        for port in inputs[3:]:
            port.type.tensor_type.elem_type = TensorProto.FLOAT16
    return g.model(inputs, outputs, 23 if operator else 18)


def with_encoder():
    model = with_concat()
    graph = model.graph
    graph.node[-1].output[0] = "own"
    values = "past_key_values.0.encoder.value"
    graph.initializer.append(numpy_helper.from_array(np.array([1, 3]), "places"))
    graph.node.extend([helper.make_node("Cast", ["encoder_attention_mask"], ["kept"], to=TensorProto.FLOAT),
                       helper.make_node("Unsqueeze", ["kept", "places"], ["rows"]),
                       helper.make_node("Mul", [values, "rows"], ["read"]),
                       helper.make_node("ReduceSum", ["read"], ["sum"], keepdims=0),
                       helper.make_node("Add", ["own", "sum"], ["logits"]),
                       helper.make_node("Identity", [values], [values.replace("past_key_values", "present")])])
    dims = ["batch_size", SMALL.groups, "encoder_length", SMALL.size]
    graph.input.insert(0, value("encoder_attention_mask", TensorProto.INT64, ["batch_size", "encoder_length"]))
    graph.input.append(value(values, TensorProto.FLOAT, dims))
    graph.output.append(value(values.replace("past_key_values", "present"), TensorProto.FLOAT, dims))
    return model


def merged():
    """with_encoder() behind an If, whose other branch computes the first run, here as the first one does with no past."""
    model = with_encoder()
    graph = model.graph
    encoder = "past_key_values.0.encoder.value"
    pasts = [i.name for i in graph.input if i.name.startswith("past")]
    first = onnx_graph(graph, {encoder: "encoder_hidden_states", **{name: "no " + name for name in pasts if name != encoder}})
    none = np.zeros([1, SMALL.groups, 0, SMALL.size], np.float32)
    first.initializer.extend(numpy_helper.from_array(none, "no " + name) for name in pasts if name != encoder)
    branches = {"then_branch": onnx_graph(graph, {}), "else_branch": first}
    outputs = [o.name for o in graph.output]
    del graph.node[:], graph.initializer[:]
    graph.node.append(helper.make_node("If", ["use_cache_branch"], outputs, name="merged", **branches))
    hidden = next(i for i in graph.input if i.name == encoder)
    graph.input.append(value("encoder_hidden_states", TensorProto.FLOAT, [d.dim_param or d.dim_value for d in hidden.type.tensor_type.shape.dim]))
    graph.input.append(value("use_cache_branch", TensorProto.BOOL, [1]))
    return model


def onnx_graph(graph, renamed):
    """A branch that computes what the graph does, from inputs of other names."""
    nodes = []
    for node in graph.node:
        nodes.append(type(node).FromString(node.SerializeToString()))
        nodes[-1].input[:] = [renamed.get(i, i) for i in node.input]
    return helper.make_graph(nodes, "branch", [], graph.output, graph.initializer)


def without_caches():
    g = Graph(1, np.float32)
    g.add("MatMul", "x", g.weight(8, 8), name="y")
    return g.model([value("x", TensorProto.FLOAT, [1, 8])], [value("y", TensorProto.FLOAT, [1, 8])])


class Growing:
    """onnxruntime's answers, whose caller carries the caches, which grow, or have a fixed size (`room`)."""

    def __init__(self, model, room=0):
        import onnxruntime
        onnxruntime.set_default_logger_severity(3)  # TensorScatter warns of each copy
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        inputs = self.session.get_inputs()
        self.names = [i.name for i in inputs]
        kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
                 "tensor(int64)": np.int64}
        self.past, self.room = 0, room
        # Of an open size only lengths and rows of unknown size ("kv_cache_dim"); axis 0 is the batch.
        open_sizes = {"kv_cache_dim": SMALL.size, "batch_size": 1, "cache_length": room}
        self.caches = {i.name: np.zeros([d if isinstance(d, int) else open_sizes.get(d, 0) for d in i.shape], kinds[i.type])
                       for i in inputs if i.name.startswith("past")}
        self.position_rank = next((len(i.shape) for i in inputs if i.name == "position_ids"), 2)

    def __call__(self, ids):
        ids = np.asarray(ids, np.int64)[None]
        past, total = self.past, self.past + ids.shape[1]
        self.past = total
        mask = np.ones((1, total), np.int64)
        if self.room:
            mask = (np.arange(self.room) <= np.arange(past, total)[:, None])[None, None]
        feeds = {"input_ids": ids, "attention_mask": mask,
                 "position_ids": np.arange(past, total, dtype=np.int64)[None], **self.caches}
        if self.position_rank == 3:
            feeds["position_ids"] = np.repeat(feeds["position_ids"][None], 3, 0)
        outputs = [o.name for o in self.session.get_outputs()]
        results = dict(zip(outputs, self.session.run(outputs, {n: feeds[n] for n in self.names})))
        self.caches = {n: results[n.replace("past_key_values", "present").replace("past.", "present.")].astype(a.dtype)
                       for n, a in self.caches.items()}
        return results["logits"]
