"""Many cases through `sinter` at once: each is a part of its own of one model, and a refusal names its node."""
import json
import os
import re
import tempfile

import sinter_cli as cli
from draw import model_of


class Outcome:
    """Of one case: `arrays`, or why there are none."""

    def __init__(self, kind, text="", arrays=None, warnings=()):
        self.kind, self.text, self.arrays, self.warnings = kind, text, arrays, list(warnings)  # kind: ran, refused, failed, broken


def number(node):
    at = re.match(r"c(\d+)\.", node or "")
    return int(at.group(1)) if at else None


def convert_and_run(sinter, cases, flags=(), timeout=60):
    """Outcomes, in order. Broken: a crash, an internal error, a refusal without a place, a run that fails."""
    outcomes = [None] * len(cases)
    pending = list(range(len(cases)))
    while pending:
        refused, failure, arrays, warned = attempt(sinter, [cases[i] for i in pending], pending, flags, timeout)
        if arrays is not None:
            for i in pending:
                outcomes[i] = Outcome("ran", arrays=[arrays.get(f"c{i}.{name}") for name in cases[i].node.output if name],
                                      warnings=warned.get(i, ()))
            return outcomes
        if refused:
            for i, text in refused.items():
                outcomes[i] = Outcome("refused", text)
            pending = [i for i in pending if i not in refused]
        elif len(pending) == 1:
            outcomes[pending[0]] = Outcome("broken", failure)
            return outcomes
        else:
            half = len(pending) // 2
            for part in (pending[:half], pending[half:]):
                for i, outcome in zip(part, convert_and_run(sinter, [cases[i] for i in part], flags, timeout)):
                    outcomes[i] = outcome
            return outcomes
    return outcomes


def attempt(sinter, cases, numbers, flags, timeout):
    """(refused by number, failure, arrays, warnings by number): the first, the second, or the last two."""
    with tempfile.TemporaryDirectory(prefix="differential-") as work:
        source, target, inputs, outputs = (os.path.join(work, x) for x in ("m.onnx", "m.sinter", "in.npz", "out.npz"))
        prefixes = [f"c{i}." for i in numbers]
        with open(source, "wb") as f:
            f.write(model_of(cases, prefixes).SerializeToString())
        r = cli.call(sinter, "convert", source, "-o", target, "--json", *flags, timeout=timeout)
        if r.code is None or r.crashed or "internal error" in r.err:
            return {}, r.why(), None, {}
        try:
            diagnostics = json.loads(r.out).get("diagnostics", []) if r.out.strip() else []
        except ValueError:
            return {}, f"no JSON: {r.why()}", None, {}
        found = {}
        for d in diagnostics:
            i = number(d.get("node"))
            if i is not None:
                found.setdefault(d["severity"], {}).setdefault(i, []).append(d["message"])
        if r.code != 0:
            refused = {i: "; ".join(texts) for i, texts in found.get("refused", {}).items()}
            return refused, "" if refused else r.why(), None, {}
        cli.save_npz(inputs, {p + name: a for c, p in zip(cases, prefixes) for name, a in c.feeds.items()})
        given = ["--inputs", inputs] if any(c.feeds for c in cases) else ["--random", "1"]
        r = cli.call(sinter, "run", target, *given, "--outputs", outputs, timeout=timeout)
        if r.code != 0:
            return {}, f"run: {r.why()}", None, {}
        return {}, "", cli.load_npz(outputs), found.get("warning", {})
