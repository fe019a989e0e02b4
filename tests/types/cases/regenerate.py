#!/usr/bin/env python3
"""Writes the models, inputs and expected values of the cases that lie beside this file, with the real exporters.

    python3.11 -m venv /elsewhere/venv && /elsewhere/venv/bin/pip install -r tests/types/cases/requirements.txt
    /elsewhere/venv/bin/python tests/types/cases/regenerate.py

NAME.onnx    the model (stack traces and other metadata of the exporter stripped: the files are checked in)
NAME.npz     in/INPUT as .npz can hold it (bfloat16 as uint16 bits), out/OUTPUT in float64
cases.json   per case: where it comes from, tolerances, kind of weights
cases.sha256 hashes of the sources and of all written files; check_fresh.py compares them

Expected values: double_reference.py evaluates the file in float64, keeping the roundings of the Casts that the model
writes. Where PyTorch can run the module in double, that independent result must agree (CHECKED, below). The rotary
angles and the linear layer are computed by NumPy from their formula alone. Deterministic: same packages, same bytes.
"""
import hashlib
import json
import os
import pathlib
import sys
import warnings

os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"  # some machines announce bfloat16 instructions that they lack
os.environ["ATEN_CPU_CAPABILITY"] = "default"

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from torch import nn  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "common")]
import double_reference  # noqa: E402
import sinter_cli  # noqa: E402

SOURCES = ("regenerate.py", "double_reference.py", "requirements.txt")
LIMIT = 300_000
# Difference allowed: of the largest expected value (a few roundings of the narrowest type), and of the value itself
# (the rounding of the output).
PART = {"float32": 1e-4, "float16": 2e-3, "bfloat16": 1.6e-2}
OWN_PART = {"float32": 2.0**-23, "float64": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}
CHECKED = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}  # file in float64 against module in double
TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}

written = {}


def array(t):
    """A tensor as NumPy, bfloat16 included."""
    if t.dtype == torch.bfloat16:
        return t.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return t.numpy()


def export(module, feeds, outputs, exporter, opset, extra=None, optimize=True):
    """The exporter's model. feeds: by the names of forward's parameters, which become the inputs' names."""
    common = dict(kwargs={**feeds, **(extra or {})}, opset_version=opset, input_names=list(feeds), output_names=outputs)
    with torch.no_grad():
        if exporter == "torchscript":
            path = HERE / "export.tmp"
            torch.onnx.export(module, (), str(path), do_constant_folding=False, **common)
            model = onnx.load(str(path))
            path.unlink()
            return model
        return torch.onnx.export(module, (), dynamo=True, optimize=optimize, verbose=False, **common).model_proto


def strip(model):
    """Drops stack traces and the like, keeps names, value_info and structure."""
    def graph(g):
        for n in g.node:
            n.ClearField("doc_string")
            del n.metadata_props[:]
        for v in [*g.input, *g.output, *g.value_info, *g.initializer]:
            v.ClearField("doc_string")
            del v.metadata_props[:]
        del g.metadata_props[:]

    assert not model.functions
    graph(model.graph)
    del model.metadata_props[:]
    return model


def weights_bytes(model):
    return sum(len(numpy_helper.to_array(i).tobytes()) if not i.raw_data else len(i.raw_data)
               for i in model.graph.initializer)


def tolerance(output, expected, kind, scale, absolute):
    """[absolute, relative] of one output."""
    if absolute is not None:
        return [absolute, 0.0]
    size = np.abs(expected).max() if scale is None else scale
    own = np.dtype(helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)).name
    bfloat16 = output.type.tensor_type.elem_type == TensorProto.BFLOAT16
    return [float(f"{PART[kind] * size:.3g}"), OWN_PART["bfloat16" if bfloat16 else own]]


def save(name, model, feeds, want, source, kind, scale=None, absolute=None, double=None, size=True,
         steps=None):
    """One case. want: name -> float64 for outputs with an independent value; the others come from the file itself.
    double: name -> float64 of the module in double, which must agree loosely. scale: what the tolerance is a part of,
    if not the largest value. size: must the constants stay as small as they are? steps: how many of an operation the
    plan must have."""
    model = strip(model)
    onnx.checker.check_model(model, full_check=False)
    feeds = {k: array(v) if isinstance(v, torch.Tensor) else v for k, v in feeds.items()}
    of_file = double_reference.evaluate(model, feeds)
    expected = {o.name: np.asarray((want or {}).get(o.name, of_file[o.name]), np.float64) for o in model.graph.output}
    for k, d in {**(double or {}), **(want or {})}.items():
        off = np.abs(of_file[k] - d).max() / np.abs(d).max()
        assert off <= CHECKED[kind], (name, k, off)
    data = model.SerializeToString(deterministic=True)
    assert len(data) < LIMIT, (name, len(data))
    (HERE / f"{name}.onnx").write_bytes(data)
    sinter_cli.save_npz(HERE / f"{name}.npz", {**{f"in/{k}": v for k, v in feeds.items()},
                                               **{f"out/{k}": v for k, v in expected.items()}})
    written[name] = dict(
        source=source, kind=kind, weights_bytes=weights_bytes(model), size=size, **(dict(steps=steps) if steps else {}),
        tolerance={o.name: tolerance(o, expected[o.name], kind, scale, absolute) for o in model.graph.output})
    print(f"{name}: {len(data)} bytes")


def in_double(module, feeds, **extra):
    """The module with its own (rounded) weights, everything else in double."""
    with torch.no_grad():
        return module.double()(**{k: v.double() if v.is_floating_point() else v for k, v in feeds.items()}, **extra)


# 1. Rotary Einsum of float64 frequencies with float16 or bfloat16 positions.

AXES = (4, 6, 6)


def positions(dtype):
    img = torch.zeros(1, 6, 3)
    img[0, :, 1] = torch.tensor([0, 1, 500, 1000, 1992, 2000.0])  # all exact in bfloat16
    img[0, :, 2] = torch.tensor([2000, 7, 1024, 3, 1, 2000.0])
    return torch.zeros(1, 4, 3).to(dtype), img.to(dtype)


def angles(ids, axis):
    """Positions times frequencies, in double, from the formula."""
    p = ids[..., axis].double().numpy()
    return p[..., None] * (1.0 / 10000.0 ** (np.arange(0, AXES[axis], 2) / AXES[axis]))


def rotary_table(ids):
    a = np.concatenate([angles(ids, k) for k in range(3)], axis=-1)
    c, s = np.cos(a), np.sin(a)
    return np.stack([c, -s, s, c], axis=-1).reshape(*a.shape, 2, 2)[:, None]


def flux(dtype_name, exporter):
    from diffusers import FluxTransformer2DModel
    from diffusers.models.transformers.transformer_flux import EmbedND
    dtype = TYPES[dtype_name]
    tag = {"float16": "f16", "bfloat16": "bf16"}[dtype_name]
    source = f"diffusers 0.30.0, torch 2.6.0, {exporter}"
    txt, img = positions(dtype)

    # The embedding alone: cosines and sines tell the angles at position 2000 to 1e-5.
    ids = torch.cat((txt, img), dim=1)
    model = export(EmbedND(32, 10000, AXES), dict(ids=ids), ["emb"], exporter, 18)
    assert sum(n.op_type == "Einsum" for n in model.graph.node) == 3
    save(f"rope_{tag}_{exporter}", model, dict(ids=ids), {"emb": rotary_table(ids)}, source, "float32", absolute=1e-5,
         size=False)

    torch.manual_seed(1)
    module = FluxTransformer2DModel(
        patch_size=1, in_channels=8, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=16, pooled_projection_dim=16, guidance_embeds=False, axes_dims_rope=list(AXES)).eval()
    module = module.to(dtype)
    torch.manual_seed(2)
    feeds = dict(hidden_states=torch.randn(1, 6, 8).to(dtype), encoder_hidden_states=torch.randn(1, 4, 16).to(dtype),
                 pooled_projections=torch.randn(1, 16).to(dtype), timestep=torch.tensor([0.5]).to(dtype), img_ids=img,
                 txt_ids=txt)
    model = export(module, feeds, ["sample"], exporter, 18, dict(return_dict=False))
    double = in_double(module, feeds, return_dict=False)[0]
    save(f"flux_{tag}_{exporter}", model, feeds, None, source, dtype_name, double={"sample": double.numpy()},
         steps={"Rope": 4, "Attention": 2})


# The other ways in which rotary embeddings and masked attention are written.

class RotaryPairs(nn.Module):
    """Neighbours turned by angles in double: "stacked" beside themselves (diffusers), as a "product" of complex
    numbers, by "strides" (GPT-J)."""

    def __init__(self, form):
        super().__init__()
        self.form = form

    def forward(self, x, positions):
        a = torch.outer(positions.double(), 1.0 / 10000.0 ** (torch.arange(0, 16, 2, dtype=torch.float64) / 16))
        cos, sin = a.cos(), a.sin()
        if self.form == "product":
            cos, sin = cos.float(), sin.float()
            r, i = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
            return torch.stack([r * cos - i * sin, r * sin + i * cos], dim=-1).flatten(-2).type_as(x)
        cos, sin = (t.repeat_interleave(2, dim=1).float()[None, None] for t in (cos, sin))
        if self.form == "strides":
            r, i = x[..., ::2], x[..., 1::2]
        else:
            r, i = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        turned = torch.stack([-i, r], dim=-1).flatten(3)
        return (x.float() * cos + turned.float() * sin).to(x.dtype)


class MaskedAttention(nn.Module):
    """Softmax attention with a mask that comes with the inputs: "added" by scaled_dot_product_attention, or scores
    "filled" with the type's lowest number."""

    def __init__(self, form):
        super().__init__()
        self.form = form

    def forward(self, q, k, v, mask):
        if self.form == "added":
            return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) @ v


def patterns():
    torch.manual_seed(11)
    x, p = torch.randn(1, 2, 6, 16), torch.tensor([0, 1, 7, 500, 1992, 2000.0])
    for form, kind, exporter, optimize in (
            ("stacked", "bfloat16", "dynamo", True), ("stacked", "float16", "torchscript", True),
            ("stacked", "float32", "dynamo", False), ("product", "float16", "dynamo", True),
            ("strides", "bfloat16", "torchscript", True)):
        feeds = dict(x=x.to(TYPES[kind]), positions=p.to(TYPES[kind]))
        model = export(RotaryPairs(form), feeds, ["y"], exporter, 18, optimize=optimize)
        name = f"rotary_{form}_{exporter}" + ("" if optimize else "_unoptimized")
        double = RotaryPairs(form)(feeds["x"].double(), feeds["positions"].double())
        save(name, model, feeds, None, f"torch 2.6.0, {exporter}", kind, double={"y": double.numpy()}, size=False,
             steps={"Rope": 1})
    q, k, v = (torch.randn(2, 2, n, 16) for n in (5, 7, 7))
    mask = torch.rand(2, 1, 5, 7) > 0.4
    mask[:, :, :, 0] |= ~mask.any(-1)
    for form, kind, exporter in (("added", "float16", "dynamo"), ("added", "float32", "torchscript"),
                                 ("filled", "float16", "torchscript"), ("filled", "float32", "dynamo")):
        feeds = dict(q=q.to(TYPES[kind]), k=k.to(TYPES[kind]), v=v.to(TYPES[kind]), mask=mask)
        model = export(MaskedAttention(form), feeds, ["y"], exporter, 18)
        double = MaskedAttention(form)(*(feeds[n].double() for n in "qkv"), mask)
        save(f"attention_mask_{form}_{exporter}", model, feeds, None, f"torch 2.6.0, {exporter}", kind,
             double={"y": double.numpy()}, size=False, steps={"Attention": 1})


# 2. A decoder layer whose linear layers unpack 4-bit weights from int32.

class QuantLinear(nn.Module):
    """GPTQ storage: eight 4-bit numbers per int32 along the inputs, zeros along the outputs and one too small."""

    def __init__(self, inputs, outputs, bias, seed, group=32, shuffled=False, negative=True):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        q = torch.randint(0, 16, (inputs, outputs), generator=g)
        if not negative:  # the eighth number of a word decides the word's sign
            q[7::8] %= 8
        zeros = torch.randint(4, 12 if negative else 8, (inputs // group, outputs), generator=g)
        self.register_buffer("qweight", self.pack(q))
        self.register_buffer("qzeros", self.pack((zeros - 1).T).T.contiguous())
        scales = (torch.rand(inputs // group, outputs, generator=g) * 0.5 + 0.5) / (4.6 * inputs**0.5)
        self.register_buffer("scales", scales.half())
        order = torch.randperm(inputs, generator=g) if shuffled else torch.arange(inputs)
        self.register_buffer("g_idx", (order // group).to(torch.int32))
        self.register_buffer("wf", torch.arange(0, 32, 4, dtype=torch.int32).unsqueeze(0))
        self.bias = nn.Parameter((torch.randn(outputs, generator=g) * 0.1).half(), requires_grad=False) if bias else None

    @staticmethod
    def pack(t):
        t = t.reshape(t.shape[0] // 8, 8, -1)
        word = sum(t[:, k] << (4 * k) for k in range(8))
        return torch.where(word >= 2**31, word - 2**32, word).to(torch.int32)

    def forward(self, x):
        zeros = torch.bitwise_right_shift(self.qzeros.unsqueeze(2).expand(-1, -1, 8), self.wf.unsqueeze(0))
        zeros = (torch.bitwise_and(zeros, 15) + 1).reshape(self.scales.shape)
        weight = torch.bitwise_right_shift(self.qweight.unsqueeze(1).expand(-1, 8, -1), self.wf.unsqueeze(-1))
        weight = torch.bitwise_and(weight, 15)
        weight = weight.reshape(weight.shape[0] * weight.shape[1], weight.shape[2])
        g_idx = self.g_idx.long()
        weight = self.scales[g_idx] * (weight - zeros[g_idx])
        y = torch.matmul(x, weight.to(x.dtype))
        return y + self.bias if self.bias is not None else y


def arithmetic_shifts(model):
    """The same model with each truncating Div of a packed word written as the shift that was meant, in the form that
    later exporters write: with n = Cast(Less(x, 0)), the shift of x is Sub(Div(Add(x, n), d), n)."""
    nodes, count = [], 0
    makers = {o: n for n in model.graph.node for o in n.output}
    for n in model.graph.node:
        packed = n.op_type == "Div" and makers.get(n.input[0]) is not None and makers[n.input[0]].op_type == "Expand"
        if not packed:
            nodes.append(n)
            continue
        count += 1
        at, x = n.name, n.input[0]
        nodes += [
            helper.make_node("Constant", [], [f"{at}/zero"], f"{at}/Constant",
                             value=numpy_helper.from_array(np.int32(0))),
            helper.make_node("Less", [x, f"{at}/zero"], [f"{at}/Less_output_0"], f"{at}/Less"),
            helper.make_node("Cast", [f"{at}/Less_output_0"], [f"{at}/Cast_output_0"], f"{at}/Cast",
                             to=TensorProto.INT32),
            helper.make_node("Add", [x, f"{at}/Cast_output_0"], [f"{at}/Add_output_0"], f"{at}/Add"),
            helper.make_node("Div", [f"{at}/Add_output_0", n.input[1]], [f"{at}/Div_output_0"], f"{at}/Div"),
            helper.make_node("Sub", [f"{at}/Div_output_0", f"{at}/Cast_output_0"], list(n.output), f"{at}/Sub"),
        ]
    assert count, "no packed Div found"
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def without_casts(model):
    """The same model as converted by hand: int32 shifted as it is, int32 times float16, float32 norms into float16
    layers, so that products and the addition of the bias see different types too."""
    g = model.graph
    makers = {o: n for n in g.node for o in n.output}
    aliases = {}
    for n in g.node:
        above = makers.get(n.input[0]) if n.input else None
        if n.op_type == "Div" and above is not None and above.op_type == "Expand":
            power = makers[makers[n.input[1]].input[0]]
            assert power.op_type == "Pow"
            amount = makers[power.input[1]].input[0]  # before its Cast to float
            n.op_type, n.input[1] = "BitShift", amount
            n.attribute.append(helper.make_attribute("direction", "RIGHT"))
        elif n.op_type == "Cast" and above is not None and (
                (above.op_type == "Sub" and "_proj" in n.name) or
                (above.op_type == "Mul" and "layernorm" in n.name)):
            aliases[n.output[0]] = n.input[0]
    assert len(aliases) == 7 + 2, sorted(aliases)
    for n in g.node:
        for k, i in enumerate(n.input):
            n.input[k] = aliases.get(i, i)
    used = {i for n in g.node for i in n.input} | {o.name for o in g.output}
    while dead := [n for n in g.node if not used.intersection(n.output)]:
        for n in dead:
            g.node.remove(n)
        used = {i for n in g.node for i in n.input} | {o.name for o in g.output}
    del g.value_info[:]
    return model


class DecoderLayer(nn.Module):
    def __init__(self, negative):
        super().__init__()
        from transformers import Qwen2Config
        from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer
        torch.manual_seed(4)
        config = Qwen2Config(hidden_size=64, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2,
                             num_hidden_layers=1, max_position_embeddings=32, attn_implementation="eager")
        self.layer = Qwen2DecoderLayer(config, 0).half().eval()
        linear = [(parent, name, m) for parent in self.layer.modules() for name, m in parent.named_children()
                  if isinstance(m, nn.Linear)]
        for k, (parent, name, m) in enumerate(linear):
            setattr(parent, name, QuantLinear(m.in_features, m.out_features, m.bias is not None, seed=k + 1,
                                              shuffled=name == "o_proj", negative=negative))
        for norm in (self.layer.input_layernorm, self.layer.post_attention_layernorm):
            norm.weight.data = (1 + 0.2 * torch.randn(64)).half()

    def forward(self, hidden_states, attention_mask, position_ids):
        return self.layer(hidden_states, attention_mask=attention_mask, position_ids=position_ids)[0]


def qwen():
    torch.manual_seed(5)
    x = torch.randn(1, 5, 64)
    x[0, :, 3] = 300  # its square leaves float16
    feeds = dict(hidden_states=x.half(), position_ids=torch.arange(5)[None],
                 attention_mask=torch.full((5, 5), torch.finfo(torch.float16).min).triu(1)[None, None].half())
    feeds = {k: feeds[k] for k in ("hidden_states", "attention_mask", "position_ids")}
    source = "transformers 4.44.2, torch 2.6.0"
    for name, exporter, negative in (("torchscript", "torchscript", False), ("shift_by_division", "torchscript", True),
                                     ("mixed", "torchscript", True), ("dynamo", "dynamo", True)):
        module = DecoderLayer(negative)
        # Optimized, the unpacking would be folded away.
        model = export(module, feeds, ["out"], exporter, 18, optimize=False)
        said = f"{source}, {exporter}"
        if name == "torchscript":
            said += "; words never negative, as this exporter writes their shift as a truncating division"
        if name == "shift_by_division":
            model = arithmetic_shifts(model)
            said += "; each division of a packed word then replaced by Less, Cast, Add, Div, Sub"
        if name == "mixed":
            model = without_casts(model)
            said += "; packed words then shifted by BitShift on int32, and Casts of weights and norms left out"
        double = in_double(module, feeds).numpy()
        # The residual of 300 hides the rest: a part of the largest value without that column.
        rest = np.abs(np.delete(double, 3, axis=-1)).max()
        save(f"qwen2_gptq_{name}", model, feeds, None, said, "float16", scale=rest, double={"out": double})

    # What the TorchScript exporter makes of words that may be negative is another number: ONNX's integer Div
    # truncates. The file counts, so the trap must not be "repaired" into a shift.
    torch.manual_seed(6)
    feeds = dict(x=torch.randn(3, 64).half())
    model = export(QuantLinear(64, 32, True, seed=9), feeds, ["y"], "torchscript", 18)
    save("gptq_truncating_division", model, feeds, None, "torch 2.6.0, torchscript: a wrong export, kept as it is",
         "float16", size=False)


# 3. A linear layer with float8 weight and bias under bfloat16.

class Float8Linear(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        f8 = torch.float8_e4m3fn
        self.weight = nn.Parameter((torch.randn(128, 256) * 0.3).to(f8), requires_grad=False)
        self.bias = nn.Parameter(torch.randn(128).to(f8), requires_grad=False)

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


def float8():
    module = Float8Linear()
    torch.manual_seed(8)
    feeds = dict(x=torch.randn(3, 256).bfloat16())
    y = feeds["x"].double() @ module.weight.double().T + module.bias.double()
    for exporter in ("torchscript", "dynamo"):
        model = export(module, feeds, ["y"], exporter, 19)
        save(f"linear_f8_{exporter}", model, feeds, {"y": y.numpy()}, f"torch 2.6.0, {exporter}", "bfloat16")
    # As checkpoints are converted by hand: no Cast anywhere.
    f8 = TensorProto.FLOAT8E4M3FN
    bits = {k: getattr(module, k).view(torch.uint8).numpy() for k in ("weight", "bias")}
    graph = helper.make_graph(
        [helper.make_node("Transpose", ["fc.weight"], ["/fc/Transpose_output_0"], "/fc/Transpose", perm=[1, 0]),
         helper.make_node("MatMul", ["x", "/fc/Transpose_output_0"], ["/fc/MatMul_output_0"], "/fc/MatMul"),
         helper.make_node("Add", ["/fc/MatMul_output_0", "fc.bias"], ["y"], "/fc/Add")],
        "main_graph", [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [3, 256])],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [3, 128])],
        [helper.make_tensor(f"fc.{k}", f8, b.shape, b.tobytes(), raw=True) for k, b in bits.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9,
                              producer_name="by hand")
    save("linear_f8_no_casts", model, feeds, {"y": y.numpy()}, "by hand", "bfloat16")


# 4. Trained in bfloat16, exported with a float32 sample.

def bfloat16_network():
    torch.manual_seed(9)
    net = nn.Sequential(nn.Linear(128, 192), nn.GELU(), nn.LayerNorm(192), nn.Linear(192, 128)).eval()
    for p in net.parameters():
        p.data = p.data.bfloat16().float()
    net[2].weight.data = (1 + 0.2 * torch.randn(192)).bfloat16().float()

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net(x)

    feeds = dict(x=torch.randn(2, 3, 128))
    model = export(Network(), feeds, ["y"], "torchscript", 17)
    for i in model.graph.initializer:  # exact: the values are bfloat16 already
        values = numpy_helper.to_array(i).astype(ml_dtypes.bfloat16)
        i.CopyFrom(helper.make_tensor(i.name, TensorProto.BFLOAT16, values.shape, values.view(np.uint8).tobytes(),
                                      raw=True))
    save("bf16_weights_f32_sample", model, feeds, None,
         "torch 2.6.0, torchscript, in float32; initializers then stored in bfloat16, as PyTorch itself refuses to "
         "trace the mixed product", "float32", double={"y": in_double(net, {"input": feeds["x"]}).numpy()})


# 5. A UNet with /time_proj/Mul: two timesteps times half the channels' frequencies.

def unet():
    from diffusers import UNet2DConditionModel
    torch.manual_seed(10)
    module = UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(8, 8), norm_num_groups=2,
        cross_attention_dim=8, attention_head_dim=4, down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D")).eval()
    feeds = dict(sample=torch.randn(2, 4, 8, 8), timestep=torch.tensor([981, 500]),
                 encoder_hidden_states=torch.randn(2, 5, 8))
    model = export(module, feeds, ["out_sample"], "torchscript", 17, dict(return_dict=False))
    assert any(n.name == "/time_proj/Mul" for n in model.graph.node)
    double = in_double(module, feeds, return_dict=False)[0].numpy()
    save("unet", model, feeds, None, "diffusers 0.30.0, torch 2.6.0, torchscript", "float32",
         double={"out_sample": double})


def main():
    warnings.filterwarnings("ignore")
    torch.backends.mkldnn.enabled = False
    torch.set_num_threads(1)
    for dtype_name in ("float16", "bfloat16"):
        for exporter in ("torchscript", "dynamo"):
            flux(dtype_name, exporter)
    patterns()
    qwen()
    float8()
    bfloat16_network()
    unet()
    (HERE / "cases.json").write_text(json.dumps(written, indent=1) + "\n")
    names = [*SOURCES, "cases.json", *(f"{n}.{end}" for n in sorted(written) for end in ("onnx", "npz"))]
    lines = [f"{hashlib.sha256((HERE / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (HERE / "cases.sha256").write_text("".join(lines))
    for p in HERE.iterdir():
        if p.suffix in (".onnx", ".npz") and p.stem not in written:
            p.unlink()
            print("removed", p.name)


if __name__ == "__main__":
    main()
