"""Is an output right? Sinter's float32 outputs are what all are compared with."""
import math

import numpy as np

# In dB: of float files, and of int8 ones, whose error may have a quarter of the output's power.
MINIMUM_SQNR = {'float': 40.0, 'int8': 6.0}
MINIMUM_EQUAL = {'float': 0.99, 'int8': 0.5}  # of integers and truth values


def sqnr(got, want):
    """In dB, of arrays of one shape; infinite where they are equal."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    noise = np.where(same, 0, got - want)
    if not np.isfinite(noise).all():
        return -math.inf
    power, error = float(np.square(want[np.isfinite(want)]).sum()), float(np.square(noise).sum())
    if error <= 1e-12 * noise.size:
        return math.inf
    return 10 * math.log10(power / error) if power else -math.inf


def forms(array, shape):
    """What `array` may be in the order of `shape`: as it is, or with the channels at the other end."""
    if array.size != int(np.prod(shape)):
        return
    yield array.reshape(shape)
    plain = array.reshape([d for d in array.shape]) if array.ndim == len(shape) else None
    if plain is not None and array.ndim > 2:
        for order in ([0, *range(2, array.ndim), 1], [0, array.ndim - 1, *range(1, array.ndim - 1)]):
            if (turned := plain.transpose(order)).shape == tuple(shape):
                yield turned


def agreement(got, want, precision):
    """(right, the lowest SQNR in dB of any float output). `got` may have names of its own."""
    lowest, right = math.inf, bool(want)
    for name, expected in want.items():
        candidates = [got[name]] if name in got else list(got.values())
        arrays = [form for c in candidates for form in forms(np.asarray(c), expected.shape)]
        if not arrays:
            return False, -math.inf
        if expected.dtype.kind == 'f':
            lowest = min(lowest, max(sqnr(a, expected) for a in arrays))
        elif expected.size:
            right &= max(float(np.mean(a.astype(expected.dtype) == expected)) for a in arrays) >= MINIMUM_EQUAL[precision]
    return right and lowest >= MINIMUM_SQNR[precision], lowest
