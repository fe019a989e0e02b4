"""Whether Sinter's arrays are those of an oracle, within what the types explain."""
import numpy as np

# Operators whose float32 results carry sums, functions or divisions by small numbers: relative to the largest result.
UNIT = {np.dtype("f2"): 2.0**-10, np.dtype("f4"): 2.0**-23, np.dtype("f8"): 2.0**-23}


def narrowest(case, want):
    kinds = [a.dtype for a in case.arrays.values() if a.dtype.kind == "f"] + [want.dtype]
    return max(UNIT.get(k, 2.0**-23) for k in kinds)


def mismatch(case, got, want):
    """None, or one line with the difference of two results."""
    if got is None:
        return "no such output"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, want {want.dtype}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, want {list(want.shape)}"
    if want.dtype.kind != "f":
        bad = got != want
        far = np.abs(got.astype("f8") - want.astype("f8")) if want.dtype.kind in "iu" else bad
    else:
        unit = narrowest(case, want)
        with np.errstate(all="ignore"):
            g, w = got.astype("f8"), want.astype("f8")
            finite = w[np.isfinite(w)]
            peak = float(np.abs(finite).max()) if finite.size else 0.0
            far = np.abs(g - w)
            bad = ~((far <= 512 * unit * np.abs(w) + 64 * unit * min(peak, 1e30) + 1e-7) | (g == w) | (np.isnan(g) & np.isnan(w)))
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0]) if want.ndim else ()
    return f"{int(bad.sum())} of {want.size} differ, first at {list(at)}: {got[at]}, want {want[at]}"


def compare(case, arrays, want):
    if len(arrays) != len(want):
        return f"{len(arrays)} outputs, want {len(want)}"
    for i, (g, w) in enumerate(zip(arrays, want)):
        found = mismatch(case, g, w)
        if found:
            return f"output {i}: {found}"
    return None


def judge(case, outcome, answers):
    """(verdict, text, the differing oracles with what differs). Verdicts: agrees, refused, nobody (no oracle has an answer),
    and to be decided: one-sided (agrees with one of two that differ), wrong (with none), broken (a crash, an internal error, or
    a run that fails although an oracle computes it)."""
    known = {name: a for name, a in answers.items() if not isinstance(a, str)}
    if outcome.kind == "refused":
        return "refused", outcome.text, {}
    if outcome.kind == "broken":
        internal = not outcome.text.startswith("run: exit") or "internal error" in outcome.text
        return "broken" if known or internal else "nobody", outcome.text, {}
    found = {name: compare(case, outcome.arrays, want) for name, want in known.items()}
    differing = {name: t for name, t in found.items() if t}
    text = "; ".join(f"{name}: {t}" for name, t in differing.items())
    if not known:
        return "nobody", "", {}
    if not differing:
        return "agrees", "", {}
    return "wrong" if len(differing) == len(known) else "one-sided", text, differing
