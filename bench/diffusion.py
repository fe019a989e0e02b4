#!/usr/bin/env python3
"""Diffusion models as torch exports them, in 16-bit floats: their values against float64, and the size of the file.

    bench/diffusion.py --sinter build/release/bin/sinter [--only "NAME;..."] [--exporters dynamo,script] [--types float16,bfloat16]
                       [--folder FOLDER] [--results bench/results/diffusion.json]

MODELS are those of diffusers with random weights: few channels and blocks, but every kind of block and operator. Also the
transformer of examples/diffusion, and Flux with its linear layers in float8_e4m3fn, each with a scale. Each is exported in a 16-bit type,
with the float64 constants that it has; what the exporter notes about the sources is removed. Sinter and torch compute in that type, and
both are compared with the same weights and inputs in float64: SQNR in dB. "stripped" is the file without names (--strip). Needs
Python with torch (2.6 or later), diffusers, onnx and onnxscript. FOLDER keeps the ONNX files.
"""
import argparse
import contextlib
import io
import logging
import pathlib
import subprocess
import sys
import tempfile
import unittest.mock
import warnings

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'tests' / 'common'), str(HERE.parent / 'examples'), str(HERE.parent / 'examples' / 'diffusion')]
from exported import drop_notes  # noqa: E402
import results  # noqa: E402
import sinter_cli as cli  # noqa: E402

try:
    import diffusers
    import onnx
    import onnxscript  # noqa: F401
    import torch
    from torch import nn
except ImportError as missing:
    sys.exit(f'bench/diffusion.py: {missing.name} is missing; give a Python that has torch, diffusers, onnx and onnxscript')



class Returned(nn.Module):
    """A model of diffusers whose result is a tensor, not an object; `method`: what is called of it; `fixed`: further arguments."""

    def __init__(self, model, names, method='forward', **fixed):
        super().__init__()
        self.model, self.names, self.method, self.fixed = model, names, method, fixed

    def forward(self, *inputs):
        return getattr(self.model, self.method)(**dict(zip(self.names, inputs)), **self.fixed, return_dict=False)[0]


def flux(**more):
    model = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=2, num_single_layers=2, attention_head_dim=32, num_attention_heads=4,
        joint_attention_dim=64, pooled_projection_dim=32, guidance_embeds=True, axes_dims_rope=[4, 14, 14], **more)
    places = torch.zeros(64, 3)
    places[:, 1], places[:, 2] = torch.arange(64) // 8, torch.arange(64) % 8
    inputs = dict(hidden_states=torch.randn(1, 64, 16), encoder_hidden_states=torch.randn(1, 16, 64), pooled_projections=torch.randn(1, 32),
                  timestep=torch.tensor([0.5]), img_ids=places, txt_ids=torch.zeros(16, 3), guidance=torch.tensor([3.5]))
    return Returned(model, list(inputs)), inputs


class Float8Linear(nn.Module):
    """A linear layer that stores its weight in float8 with a scale, and computes in the type of its input."""

    def __init__(self, linear):
        super().__init__()
        scale = linear.weight.detach().float().abs().max() / torch.finfo(torch.float8_e4m3fn).max
        self.register_buffer('weight', (linear.weight.detach().float() / scale).to(torch.float8_e4m3fn))
        self.register_buffer('scale', scale.to(linear.weight.dtype))
        self.bias = linear.bias

    def _apply(self, change, recurse=True):
        weight = self.weight
        super()._apply(change, recurse)
        self.weight = weight  # stays as it is stored
        return self

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype) * self.scale.to(x.dtype), self.bias)


def flux_float8():
    module, inputs = flux()
    for parent in list(module.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.Linear) and layer.in_features >= 64:
                setattr(parent, name, Float8Linear(layer))
    return module, inputs


def sd3():
    model = diffusers.SD3Transformer2DModel(
        sample_size=16, patch_size=2, in_channels=8, num_layers=3, attention_head_dim=32, num_attention_heads=4, joint_attention_dim=64,
        caption_projection_dim=128, pooled_projection_dim=32, out_channels=8, pos_embed_max_size=16, dual_attention_layers=(0,),
        qk_norm='rms_norm')
    inputs = dict(hidden_states=torch.randn(1, 8, 16, 16), encoder_hidden_states=torch.randn(1, 16, 64), pooled_projections=torch.randn(1, 32),
                  timestep=torch.tensor([500.0]))
    return Returned(model, list(inputs)), inputs


def pixart():
    model = diffusers.PixArtTransformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, out_channels=8, num_layers=2, attention_head_dim=32, num_attention_heads=8,
        cross_attention_dim=256, caption_channels=64, use_additional_conditions=False)
    inputs = dict(hidden_states=torch.randn(2, 4, 16, 16), encoder_hidden_states=torch.randn(2, 12, 64), timestep=torch.tensor([500, 500]),
                  encoder_attention_mask=torch.tensor([[1] * 12, [1] * 7 + [0] * 5]))
    return Returned(model, list(inputs), added_cond_kwargs=dict(resolution=None, aspect_ratio=None)), inputs


def sana():
    model = diffusers.SanaTransformer2DModel(
        sample_size=16, patch_size=1, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=32, num_attention_heads=8,
        num_cross_attention_heads=8, cross_attention_head_dim=32, cross_attention_dim=256, caption_channels=64)
    inputs = dict(hidden_states=torch.randn(1, 4, 16, 16), encoder_hidden_states=torch.randn(1, 12, 64), timestep=torch.tensor([500.0]))
    return Returned(model, list(inputs)), inputs


def cogview4():
    model = diffusers.CogView4Transformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, out_channels=4, num_layers=3, attention_head_dim=32, num_attention_heads=4,
        text_embed_dim=64, time_embed_dim=64, condition_dim=64, pos_embed_max_size=16, rope_axes_dim=(32, 32))
    sizes = dict(original_size=torch.full((1, 2), 64.0), target_size=torch.full((1, 2), 64.0), crop_coords=torch.zeros(1, 2))
    inputs = dict(hidden_states=torch.randn(1, 4, 16, 16), encoder_hidden_states=torch.randn(1, 12, 64), timestep=torch.tensor([500]), **sizes)
    return Returned(model, list(inputs)), inputs


def ltx_video():
    model = diffusers.LTXVideoTransformer3DModel(in_channels=16, out_channels=16, num_layers=3, attention_head_dim=32, num_attention_heads=4,
                                                 cross_attention_dim=128, caption_channels=64)
    inputs = dict(hidden_states=torch.randn(1, 64, 16), encoder_hidden_states=torch.randn(1, 12, 64), timestep=torch.tensor([500]),
                  encoder_attention_mask=torch.tensor([[1] * 9 + [0] * 3]))
    return Returned(model, list(inputs), num_frames=4, height=4, width=4, rope_interpolation_scale=(0.2, 32, 32)), inputs


def wan():
    model = diffusers.WanTransformer3DModel(in_channels=4, out_channels=4, num_layers=3, attention_head_dim=32, num_attention_heads=4, text_dim=64,
                                            freq_dim=64, ffn_dim=256, rope_max_seq_len=32)
    inputs = dict(hidden_states=torch.randn(1, 4, 3, 16, 16), timestep=torch.tensor([500]), encoder_hidden_states=torch.randn(1, 12, 64))
    return Returned(model, list(inputs)), inputs


def unet():
    model = diffusers.UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, layers_per_block=2, block_out_channels=(32, 64, 64), norm_num_groups=8,
        cross_attention_dim=32, attention_head_dim=8, down_block_types=('CrossAttnDownBlock2D', 'CrossAttnDownBlock2D', 'DownBlock2D'),
        up_block_types=('UpBlock2D', 'CrossAttnUpBlock2D', 'CrossAttnUpBlock2D'))
    inputs = dict(sample=torch.randn(2, 4, 16, 16), timestep=torch.tensor([500, 500]), encoder_hidden_states=torch.randn(2, 16, 32))
    return Returned(model, list(inputs)), inputs


class Conditioned(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, sample, timestep, encoder_hidden_states, text_embeds, time_ids):
        added = dict(text_embeds=text_embeds, time_ids=time_ids)
        return self.model(sample, timestep, encoder_hidden_states, added_cond_kwargs=added, return_dict=False)[0]


def sdxl():
    model = diffusers.UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, layers_per_block=2, block_out_channels=(32, 64, 64), norm_num_groups=8,
        cross_attention_dim=64, attention_head_dim=(2, 4, 8), use_linear_projection=True, transformer_layers_per_block=(1, 2, 2),
        down_block_types=('DownBlock2D', 'CrossAttnDownBlock2D', 'CrossAttnDownBlock2D'),
        up_block_types=('CrossAttnUpBlock2D', 'CrossAttnUpBlock2D', 'UpBlock2D'), addition_embed_type='text_time', addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=80)
    inputs = dict(sample=torch.randn(2, 4, 16, 16), timestep=torch.tensor([500, 500]), encoder_hidden_states=torch.randn(2, 12, 64),
                  text_embeds=torch.randn(2, 32), time_ids=torch.full((2, 6), 64.0))
    return Conditioned(model), inputs


def vae():
    return diffusers.AutoencoderKL(
        sample_size=32, block_out_channels=(32, 64), norm_num_groups=8, latent_channels=4, layers_per_block=1,
        down_block_types=('DownEncoderBlock2D',) * 2, up_block_types=('UpDecoderBlock2D',) * 2)


def vae_decoder():
    return Returned(vae(), ['z'], 'decode'), dict(z=torch.randn(1, 4, 16, 16))


def video_decoder():
    model = diffusers.AutoencoderKLHunyuanVideo(
        latent_channels=4, block_out_channels=(16, 32, 32, 32), layers_per_block=1, norm_num_groups=8,
        down_block_types=('HunyuanVideoDownBlock3D',) * 4, up_block_types=('HunyuanVideoUpBlock3D',) * 4)
    return Returned(model, ['z'], 'decode'), dict(z=torch.randn(1, 4, 3, 2, 2))


class Encoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model.encode(x, return_dict=False)[0].mean


def vae_encoder():
    return Encoder(vae()), dict(x=torch.randn(1, 3, 32, 32))


def example():
    from denoiser import Denoiser, Shape
    model = Denoiser(Shape())
    for p in model.parameters():  # training begins with some at zero
        if not p.any():
            nn.init.normal_(p, std=0.05)
    return model, dict(x=torch.randn(2, 1, Shape.side, Shape.side), t=torch.tensor([0.3, 0.3]), label=torch.tensor([3, Shape.labels]))


MODELS = {'Flux': flux, 'Flux, float8': flux_float8, 'SD3': sd3, 'PixArt': pixart, 'Sana': sana, 'CogView4': cogview4, 'LTX-Video': ltx_video,
          'Wan': wan, 'UNet': unet, 'UNet of SDXL': sdxl, 'VAE decoder': vae_decoder, 'VAE encoder': vae_encoder, 'video decoder': video_decoder,
          'example': example}
KEPT_IN_FLOAT32 = {'example': ('t',)}  # inputs


def rms_norm(x, shape, weight=None, eps=None):
    """What nn.functional.rms_norm computes, which the script exporter does not have."""
    y = x.float()
    y = (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + (torch.finfo(x.dtype).eps if eps is None else eps))).to(x.dtype)
    return y if weight is None else y * weight


def floats(values, change, kept=()):
    return [change(v) if v.is_floating_point() and name not in kept else v for name, v in values.items()]


def export(module, inputs, names, exporter, path):
    """Writes the ONNX file without what the exporter notes about the sources."""
    log, script = io.StringIO(), exporter == 'script'
    with contextlib.ExitStack() as stack:
        for context in (torch.no_grad(), contextlib.redirect_stdout(log), contextlib.redirect_stderr(log)):
            stack.enter_context(context)
        if script:
            stack.enter_context(unittest.mock.patch('torch.nn.functional.rms_norm', rms_norm))
            stack.enter_context(unittest.mock.patch('torch.rms_norm', rms_norm))
        torch.onnx.export(module, tuple(inputs), str(path), dynamo=not script, input_names=names, output_names=['out'], external_data=False,
                          **(dict(opset_version=18, do_constant_folding=False) if script else {}))
    drop_notes(path)


def has_float64(path):
    graph = onnx.load(path).graph
    constants = [*graph.initializer, *(a.t for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.TENSOR)]
    return any(c.data_type == onnx.TensorProto.DOUBLE for c in constants)


def stored(tensor):
    """As .npz files hold it for `sinter run`: bfloat16 as its bits."""
    return tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def loaded(array, dtype):
    return torch.from_numpy(array).view(dtype) if array.dtype == np.uint16 else torch.from_numpy(array)


def sqnr(values, exact):
    noise = ((values.double() - exact) ** 2).sum().item()
    return 10 * np.log10((exact ** 2).sum().item() / noise) if noise else float('inf')


def measure(sinter, name, type_name, exporter, folder):
    torch.manual_seed(1)
    module, given = MODELS[name]()
    dtype, kept = getattr(torch, type_name), KEPT_IN_FLOAT32.get(name, ())
    module = module.eval().to(dtype)
    inputs = floats(given, lambda v: v.to(dtype), kept)
    model, out = folder / f'{name}_{type_name}_{exporter}.onnx'.replace(', ', '_').replace(' ', '_'), folder / 'out.sinter'
    row = dict(model=name, type=type_name, exporter=exporter)
    export(module, inputs, list(given), exporter, model)
    with torch.no_grad():
        own = module(*inputs)
        exact = module.double()(*[v.double() if v.is_floating_point() else v for v in inputs])
    row |= dict(torch=sqnr(own, exact), onnx_bytes=model.stat().st_size, float64=has_float64(model))
    np.savez(folder / 'in.npz', **{n: stored(v) for n, v in zip(given, inputs)})
    bare = folder / 'bare.sinter'
    for command in (['convert', model, '-o', out, '--quiet'],
                    ['convert', model, '-o', bare, '--quiet', '--strip'],
                    ['run', out, '--inputs', folder / 'in.npz', '--outputs', folder / 'out.npz', '--quiet']):
        done = subprocess.run([sinter, *map(str, command)], capture_output=True, text=True)
        if done.returncode:
            return row | dict(refused=f'{command[0]}: {done.stderr.strip()[-400:]}')
    result = np.load(folder / 'out.npz')
    return row | dict(sinter=sqnr(loaded(result[result.files[0]], dtype), exact), file_bytes=out.stat().st_size,
                      stripped_bytes=bare.stat().st_size)


def cells(row):
    first = [row['model'], row['type'], row['exporter'], 'yes' if row['float64'] else 'no', f'{row["torch"]:.1f}']
    if 'refused' in row:
        return [*first, row['refused'].replace('|', '/').replace('\n', ' '), '', '', '']

    def size(kind):
        return f'{row[kind]:,} ({100 * (row[kind] / row["onnx_bytes"] - 1):+.1f} %)'
    return [*first, f'{row["sinter"]:.1f}', f'{row["onnx_bytes"]:,}', size('file_bytes'), size('stripped_bytes')]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sinter')
    parser.add_argument('--only', help='names, separated by semicolons: ' + '; '.join(MODELS))
    parser.add_argument('--exporters', default='dynamo,script')
    parser.add_argument('--types', default='float16,bfloat16')
    parser.add_argument('--folder', type=pathlib.Path, help='where the ONNX files are kept')
    parser.add_argument('--results', type=pathlib.Path)
    args = parser.parse_args()
    sinter = cli.find_sinter(args.sinter)
    names = args.only.split(';') if args.only else list(MODELS)
    if unknown := [n for n in names if n not in MODELS]:
        parser.error(f'{unknown[0]} is not a model; the models are {"; ".join(MODELS)}')
    warnings.filterwarnings('ignore')
    logging.disable(logging.WARNING)
    rows = []
    lines = ['| model | type | exporter | float64 inside | torch, dB | Sinter, dB | ONNX, bytes | .sinter | stripped |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    print('\n'.join(lines))
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            for type_name in args.types.split(','):
                for exporter in args.exporters.split(','):
                    rows.append(measure(sinter, name, type_name, exporter, folder))
                    lines.append('| ' + ' | '.join(cells(rows[-1])) + ' |')
                    print(lines[-1], flush=True)
    if args.results:
        results.store(args.results, 'Diffusion models against float64, and sizes of files', {'models': lines})
    return int(any('refused' in row or max(row['file_bytes'], row['stripped_bytes']) > row['onnx_bytes'] or row['sinter'] < row['torch']
                   for row in rows))


if __name__ == '__main__':
    sys.exit(main())
