"""4-bit weights by GPTQ (Frantar et al., 2022), in the form in which checkpoints of it are spread.

qweight int32 [K / 8, N] has eight rows in a word, the first in the lowest bits; qzeros int32 [K / group, N / 8] the zero points
less one, likewise; scales float16 [K / group, N]; g_idx int32 [K] the group of each row. The weight is scales * (q - zero). Needs torch.
"""
import torch
from torch import nn

BITS, GROUP = 4, 64
PER_WORD = 32 // BITS
LARGEST = (1 << BITS) - 1


class PackedLinear(nn.Module):
    """x [.., K] -> [.., N] without a bias; unpacks its weights in every call, as loaders without kernels of their own do."""

    def __init__(self, q, zeros, scales):
        """q and zeros: integers 0 to 15, [K, N] and [K / GROUP, N]."""
        super().__init__()
        shifts = torch.arange(0, 32, BITS, dtype=torch.int32)
        rows, columns = q.shape

        def words(v, axis):
            v = v.to(torch.int64).unflatten(axis, (-1, PER_WORD))
            shape = [1] * v.dim()
            shape[axis + 1] = PER_WORD
            packed = (v << shifts.to(torch.int64).view(shape)).sum(axis + 1)
            return torch.where(packed >= 1 << 31, packed - (1 << 32), packed).to(torch.int32)

        self.register_buffer('qweight', words(q, 0))
        self.register_buffer('qzeros', words(zeros - 1, 1))
        self.register_buffer('scales', scales.to(torch.float16))
        self.register_buffer('g_idx', torch.arange(rows, dtype=torch.int32) // GROUP)
        self.register_buffer('shifts', shifts)

    def weight(self):
        rows, columns = self.g_idx.shape[0], self.scales.shape[1]
        zeros = torch.bitwise_right_shift(self.qzeros.unsqueeze(2), self.shifts) & LARGEST
        zeros = zeros.reshape(self.scales.shape[0], columns) + 1
        q = torch.bitwise_right_shift(self.qweight.unsqueeze(1), self.shifts.view(1, -1, 1)) & LARGEST
        q = q.reshape(rows, columns)
        return self.scales[self.g_idx.long()] * (q - zeros[self.g_idx.long()]).to(self.scales.dtype)

    def forward(self, x):
        return x @ self.weight().to(x.dtype)


def quantized(weight, hessian):
    """A PackedLinear of weight [N, K] that loses little of x @ weight.T, where hessian [K, K] is the sum of x.T @ x."""
    w = weight.detach().T.double().clone()  # [K, N]
    rows, columns = w.shape
    h = hessian.double().clone()
    dead = h.diagonal() == 0
    h[dead, dead] = 1
    w[dead] = 0
    h.diagonal().add_(0.01 * h.diagonal().mean())
    inverse = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(h)), upper=True)
    q = torch.zeros_like(w)
    scales, zeros = torch.zeros(rows // GROUP, columns).double(), torch.zeros(rows // GROUP, columns).double()
    for k in range(rows):
        g = k // GROUP
        if k % GROUP == 0:
            part = w[k:k + GROUP]
            low, high = part.amin(0).clamp(max=0), part.amax(0).clamp(min=0)
            scales[g] = ((high - low) / LARGEST).clamp(min=1e-6).to(torch.float16).double()
            # Checkpoints hold the zero point less one.
            zeros[g] = (-low / scales[g]).round().clamp(1, LARGEST)
        q[k] = (w[k] / scales[g] + zeros[g]).round().clamp(0, LARGEST)
        error = (w[k] - (q[k] - zeros[g]) * scales[g]) / inverse[k, k]
        w[k + 1:] -= inverse[k, k + 1:, None] * error
    return PackedLinear(q.long(), zeros.long(), scales)


@torch.no_grad()
def quantize(model, ids, positions):
    """Replaces the matrices of all blocks, one after the other, each measured behind those before. ids, positions [B, S]."""
    x, cos, sin, mask = model.begin(ids, positions)
    for block in model.blocks:
        for names in (('q', 'k', 'v'), ('o',), ('gate', 'up'), ('down',)):
            first, sums = getattr(block, names[0]), 0

            def observe(module, given, result):
                nonlocal sums
                rows = given[0].flatten(0, 1)
                sums = sums + rows.T @ rows

            hook = first.register_forward_hook(observe)
            for part in x.split(16):
                block(part, cos[:1], sin[:1], mask[:1], None, model.drop)
            hook.remove()
            for name in names:
                setattr(block, name, quantized(getattr(block, name).weight, sums))
        x = torch.cat([block(part, cos[:1], sin[:1], mask[:1], None, model.drop)[0] for part in x.split(16)])
