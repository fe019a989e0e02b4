#!/usr/bin/env python3
"""Accuracy of int8, side by side: Sinter's default against onnxruntime's quantizer in several settings.

    bench/bench_accuracy.py --sinter build/release/bin/sinter --data FOLDER [--only NAME]... [--options "FLAGS"]
                            [--reuse FILE.json] [--json FILE] [--results bench/results/accuracy.json] [--without TECHNIQUE...]

FOLDER holds the output of bench/accuracy_data.py: for each model calib.npz, eval.npz (never the same samples) and
meta.json; --nets adds the networks of tests/quantize/nets. Every setting is calibrated on the same samples; signal over
noise is that of the worst output over all evaluated samples, against the float model in onnxruntime; accuracy is the
share of samples whose largest output is the label's. --without adds the gain of each of Sinter's techniques: dB and points
lost where it is left out (--disable-technique), with nothing kept in float for accuracy. --reuse takes onnxruntime's
columns from an earlier --json FILE.
"Best" and "NNCF" are constants: the best 8-bit setting of seven quantizers, measured elsewhere on other photographs and
speech (bert-toy: other ids); and the best of NNCF on this data.
Needs numpy, onnx and onnxruntime.
"""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.utils
import onnx.version_converter
import onnxruntime as ort

import results

ort.set_default_logger_severity(3)
LEAVE = "leave-float"
SETTINGS = ["default", "per channel", "percentile", "symmetric", "int16"]
TITLES = {"default": "ORT default", "per channel": "ORT per-channel", "percentile": "ORT pc 99.99 %",
          "symmetric": "ORT pc symmetric", "int16": "(ORT int16)"}
# Best 8-bit setting of any tool: dB of the worst output, and accuracy where there are labels.
BEST = {"bert-toy": (29.9,), "cct": (32.4,), "dtln-1": (31.8,), "facemesh-192": (22.6,), "hand-history": (31.7, 95.7),
        "hand-keypoint": (46.2, 96.7), "kws-dscnn": (30.9, 90.9), "mcunet-96": (51.6,), "mnist-mlp-bn": (36.1, 92.0),
        "mnist14-conv": (32.1, 93.9), "mnist8-cntk": (39.9, 99.0), "person-det-192": (25.7,), "silero-vad-v3": (3.6,),
        "silero-vad-v5": (10.7,), "superres-x3": (25.4,), "ultraface-rfb320": (42.6,), "yunet-120x160": (24.5,)}

# Best of six settings of NNCF 3.4.0 (OpenVINO 2026.4.1; default, mixed, mixed with min/max ranges, that without bias
# correction, that without overflow fix, transformer) on the very data of accuracy_data.py, dB of the worst output.
NNCF = {"bert-toy": 26.9, "cct": 32.1, "dtln-1": 21.1, "facemesh-192": 26.2, "gtcrn": 17.2, "hand-history": 31.7,
        "hand-keypoint": 46.2, "kws-dscnn": 21.4, "mcunet-96": 53.7, "mnist14-conv": 38.8, "ocr-angle-cls": 15.6,
        "person-det-192": 26.4, "person-det-255": 20.5, "silero-vad-v3": 9.1, "silero-vad-v5": 15.1, "superres-x3": 25.1,
        "ultraface-rfb320": 41.6, "yunet-120x160": 23.6}


class Case:
    def __init__(self, name, folder, model, flags=(), cut="", scratch="."):
        self.name, self.flags, self.model = name, list(flags), model
        self.calib_file = os.path.join(folder, "calib.npz")
        self.calib, given = dict(np.load(self.calib_file)), dict(np.load(os.path.join(folder, "eval.npz")))
        self.label = given.pop("label", None)
        self.eval, self.scratch = given, scratch
        self.eval_file = os.path.join(scratch, name + ".eval.npz")
        if cut:
            self.model = os.path.join(scratch, name + ".onnx")
            onnx.utils.extract_model(model, self.model, list(given), [cut])
        np.savez(self.eval_file, **given)
        self.float_session = session(self.model)
        self.inputs = {i.name: i for i in self.float_session.get_inputs()}
        self.outputs = [o.name for o in self.float_session.get_outputs()]
        self.exact = self.run(self.float_session)

    def feeds(self, arrays):
        for i in range(len(next(iter(arrays.values())))):
            feed = {}
            for name, a in arrays.items():
                rank = len(self.inputs[name].shape)
                feed[name] = a[i] if a[i].ndim == rank else a[i][None]
            yield feed

    def run(self, s):
        rows = [s.run(self.outputs, f) for f in self.feeds(self.eval)]
        return {name: np.stack([r[i] for r in rows]) for i, name in enumerate(self.outputs)}

    def judge(self, got):
        """Signal over noise of the worst output, which one that is, and accuracy."""
        worst, which = math.inf, ""
        for name, ref in self.exact.items():
            if ref.dtype.kind != "f":
                continue
            a, b = ref.astype(np.float64), np.asarray(got[name], np.float64).reshape(ref.shape)
            noise, signal = ((a - b) ** 2).sum(), (a ** 2).sum()
            db = 10 * math.log10(signal / noise) if noise > 0 and signal > 0 else 200.0
            if not math.isfinite(db):
                db = -100.0
            if db < worst:
                worst, which = db, name
        top1 = None
        if self.label is not None:
            answer = np.asarray(got[self.outputs[0]]).reshape(len(self.label), -1).argmax(1)
            top1 = 100 * float((answer == self.label).mean())
        return {"db": round(worst, 2), "output": which, "top1": top1}


def session(model):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def prepare(model, ready, quant_pre_process):
    """What onnxruntime advises before quantizing; and opset 13 for older ones, without which it has no channels."""
    given, m = model, onnx.load(model)
    if any(o.domain == "" and o.version < 13 for o in m.opset_import):
        try:
            onnx.save(onnx.version_converter.convert_version(m, 13), ready)
            session(ready)
            given = ready
        except Exception:
            given = model
    for skip in (False, True):  # its symbolic shape inference refuses some models
        try:
            quant_pre_process(given, ready, skip_symbolic_shape=skip)
            session(ready)
            return
        except Exception:
            continue
    onnx.save(onnx.load(given), ready)


def onnxruntime_quantized(case, setting):
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rewind()

        def rewind(self):
            self.it = case.feeds(case.calib)

        def get_next(self):
            return next(self.it, None)
    ready, out = os.path.join(case.scratch, case.name + ".pre.onnx"), os.path.join(case.scratch, case.name + ".q.onnx")
    if setting == "default":
        ready = case.model  # as it comes: preparing it is a step of its own
    elif not os.path.exists(ready):
        prepare(case.model, ready, quant_pre_process)
    more = {}
    if setting != "default":
        more["per_channel"] = True
    if setting == "percentile":
        more |= dict(calibrate_method=CalibrationMethod.Percentile, extra_options={"CalibPercentile": 99.99})
    elif setting == "entropy":
        more["calibrate_method"] = CalibrationMethod.Entropy
    elif setting == "symmetric":
        more["extra_options"] = {"ActivationSymmetric": True}
    elif setting == "int16":
        more |= dict(activation_type=QuantType.QInt16, extra_options={"UseQDQContribOps": True})
    try:
        quantize_static(ready, out, Reader(), **more)
        return case.judge(case.run(session(out)))
    except Exception as e:
        return {"failed": f"{type(e).__name__}: {e}".splitlines()[0][:200]}


def sinter_quantized(case, program, options):
    out, result = os.path.join(case.scratch, case.name + ".sinter"), os.path.join(case.scratch, case.name + ".o.npz")
    start = time.monotonic()
    outcome = subprocess.run([program, "convert", case.model, "-o", out, "--quantize", "int8", "--calibrate", case.calib_file,
                           "--json", *case.flags, *options], capture_output=True, text=True)
    seconds = time.monotonic() - start
    if outcome.returncode != 0:
        return {"failed": f"exit {outcome.returncode}: {outcome.stderr.strip()[:300]}"}
    ran = subprocess.run([program, "run", out, "--inputs", case.eval_file, "--each", "--outputs", result, "--quiet"],
                         capture_output=True, text=True)
    if ran.returncode != 0:
        return {"failed": f"run, exit {ran.returncode}: {ran.stderr.strip()[:300]}"}
    report = json.loads(outcome.stdout).get("quantized", {})
    layers = report.get("layers", [])
    return case.judge(dict(np.load(result))) | {"seconds": round(seconds, 1), "layers": len(layers),
                                               "integer": sum(bool(x.get("integer")) for x in layers)}


def cases(args, scratch):
    if args.data:
        for name in sorted(os.listdir(args.data)):
            folder = os.path.join(args.data, name)
            meta = os.path.join(folder, "meta.json")
            if not os.path.exists(meta) or (args.only and name not in args.only):
                continue
            with open(meta) as f:
                m = json.load(f)
            model = os.path.join(args.shared, "models", m["model"])
            if not os.path.exists(model):
                print(f"skip  {name}: no {m['model']}")
                continue
            yield Case(name, folder, model, m["flags"], m["cut"], scratch)
    if args.nets:
        sys.path.insert(0, args.nets)
        import nets_data
        for name in nets_data.NETS:
            if args.only and name not in args.only:
                continue
            folder = os.path.join(scratch, "net-" + name)
            os.makedirs(folder, exist_ok=True)
            calib, evaluate = nets_data.data(name)
            np.savez(os.path.join(folder, "calib.npz"), **calib)
            np.savez(os.path.join(folder, "eval.npz"), **evaluate)
            yield Case(name, folder, os.path.join(args.nets, name + ".onnx"), [], "", scratch)


def cell(r):
    if r is None:
        return ""
    if "failed" in r:
        return "fails"
    return (f"{r['top1']:.1f} % ({r['db']:.1f} dB)" if r["top1"] is not None else f"{r['db']:.1f} dB")


def behind(row):
    """By how much Sinter is behind the best 8-bit setting of onnxruntime and NNCF on this data, and the best known."""
    s = row["sinter"]
    if "failed" in s:
        return None, None
    here = [r["db"] for k, r in row["ort"].items() if k != "int16" and "db" in r]
    here += [NNCF[row["model"]]] if row["model"] in NNCF else []
    known = BEST.get(row["model"])
    return (max(here) - s["db"] if here else None), (known[0] - s["db"] if known else None)


def table(rows):
    titles = " | ".join(TITLES[s] for s in SETTINGS)
    out = [f"| model | float | Sinter | int ops | {titles} | NNCF | best known 8-bit | behind |",
           "| --- |" + " --- |" * (len(SETTINGS) + 6)]
    for r in rows:
        best = BEST.get(r["model"])
        known = "" if not best else (f"{best[1]} % ({best[0]} dB)" if len(best) > 1 else f"{best[0]} dB")
        lag = [x for x in behind(r) if x is not None and x > 0.05]
        s = r["sinter"]
        out.append(f"| {r['model']} | " + (f"{r['float']:.1f} %" if r["float"] is not None else "-") + f" | {cell(s)} | " +
                   (f"{s['integer']} of {s['layers']}" if "layers" in s else "") + " | " +
                   " | ".join(cell(r["ort"].get(k)) for k in SETTINGS) +
                   f" | {str(NNCF[r['model']]) + ' dB' if r['model'] in NNCF else ''} | {known} | " +
                   (f"{max(lag):.1f} dB" if lag else "") + " |")
    return out


def gain(a, b):
    """What a technique wins: dB, and points of accuracy where these change."""
    if "failed" in a or "failed" in b:
        return "fails"
    points = 0 if a["top1"] is None else a["top1"] - b["top1"]
    return f"{a['db'] - b['db']:+.1f} dB" + (f", {points:+.1f}" if abs(points) >= 0.05 else "")


def technique_table(rows, names):
    """Whatever is missing, `leave-float` makes up for by leaving more in float: the others are judged without it."""
    out = ["| model | default | nothing kept in float | " + " | ".join(names) + " |", "| --- |" + " --- |" * (len(names) + 2)]
    for r in rows:
        base = r["without"][LEAVE]
        out.append(f"| {r['model']} | {cell(r['sinter'])} | {cell(base)} | " +
                   " | ".join(gain(base, r["without"][n]) for n in names) + " |")
    return out


def parser_of(doc, command):
    """The parser of a benchmark whose networks cases() finds and whose earlier rows earlier_rows() reads."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter", required=True)
    parser.add_argument("--data")
    parser.add_argument("--nets", help="the folder tests/quantize/nets")
    parser.add_argument("--shared", default=os.environ.get("SINTER_SHARED", "../shared"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--options", default="", help=f"more options for {command}")
    parser.add_argument("--reuse")
    parser.add_argument("--json")
    parser.add_argument("--results")
    return parser


def earlier_rows(args):
    """The rows of the --json FILE that --reuse names, by model."""
    if not args.reuse or not os.path.exists(args.reuse):
        return {}
    with open(args.reuse) as f:
        return {r["model"]: r for r in json.load(f)["rows"]}


def main():
    parser = parser_of(__doc__, "sinter convert")
    parser.add_argument("--without", nargs="*", default=[])
    args = parser.parse_args()
    known, rows = earlier_rows(args), []
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases(args, scratch):
            row = {"model": case.name, "float": None if case.label is None else case.judge(case.exact)["top1"], "ort": {}}
            row["sinter"] = sinter_quantized(case, args.sinter, shlex.split(args.options))
            row["without"] = {}
            for t in [LEAVE, *args.without] if args.without else []:
                off = [x for name in {LEAVE, t} for x in ("--disable-technique", name)]
                row["without"][t] = sinter_quantized(case, args.sinter, shlex.split(args.options) + off)
            for setting in SETTINGS:
                row["ort"][setting] = (known.get(case.name, {}).get("ort", {}).get(setting) or
                                       onnxruntime_quantized(case, setting))
            rows.append(row)
            lag = " ".join(f"{x:+.1f}" for x in behind(row) if x is not None)
            print(f"{case.name}: Sinter {cell(row['sinter'])} {row['sinter'].get('output', row['sinter'].get('failed'))}; "
                  + ", ".join(f"{k} {cell(v)}" for k, v in row["ort"].items()) + f"; behind {lag}", flush=True)
            if args.json:
                with open(args.json, "w") as f:
                    json.dump({"rows": rows, "onnxruntime": ort.__version__, "options": args.options}, f, indent=1)
    found = {"quantizers": table(rows)} | ({"techniques": technique_table(rows, args.without)} if args.without else {})
    print("\n\n".join(map("\n".join, found.values())))
    if args.results:
        results.store(args.results, "Accuracy of int8 beside other quantizers", found)


if __name__ == "__main__":
    main()
