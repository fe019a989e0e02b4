#!/usr/bin/env python3
"""Accuracy of int8 ONNX files in onnxruntime: `sinter quantize` beside onnxruntime's own quantizer.

    bench/bench_onnx_out.py --sinter build/release/bin/sinter --data FOLDER [--nets tests/quantize/nets] [--only NAME]...
                            [--reuse FILE.json] [--json FILE] [--results bench/results/onnx-out.json]

FOLDER holds the output of bench/accuracy_data.py; bench_accuracy.py states its layout and how files are judged. All files
are calibrated on the same samples and run in onnxruntime, with all its optimizations, on the others, which no choice has
seen: dB of the worst output against the float model in onnxruntime, and accuracy where there are labels. onnxruntime's
settings are quantize_static with MinMax per tensor (its default), and per channel with MinMax, Entropy and Percentile
(99.99), after its own preparation of the model. "int8" is the share of the operations that Sinter rounds; --force-int8 and
--disable-technique leave-float of `sinter quantize` are in --options. --reuse takes onnxruntime's columns from an earlier
--json FILE. Needs numpy, onnx and onnxruntime.
"""
import json
import os
import shlex
import subprocess
import tempfile

import bench_accuracy as accuracy
import onnxruntime as ort
import results

SETTINGS = {"default": "ORT default", "per channel": "ORT MinMax", "entropy": "ORT Entropy", "percentile": "ORT Percentile"}


def quantized(case, program, options):
    out = os.path.join(case.scratch, case.name + ".int8.onnx")
    outcome = subprocess.run([program, "quantize", case.model, "-o", out, "--calibrate", case.calib_file, "--json", *case.flags,
                              *options], capture_output=True, text=True)
    if outcome.returncode != 0:
        return {"failed": f"exit {outcome.returncode}: {outcome.stderr.strip()[:300]}"}
    report = json.loads(outcome.stdout)["quantized"]
    layers = report["layers"]
    return case.judge(case.run(accuracy.session(out))) | {
        "layers": len(layers), "integer": sum(x["integer"] for x in layers), "reported": min(o["sqnr_db"] for o in report["outputs"]),
        "agreement": min((o["sqnr_db"] for o in report["standard"]["agreement"] if "sqnr_db" in o), default=None)}


def loss(row):
    """By how much the best setting of onnxruntime is better: dB, and points of accuracy."""
    ours, theirs = row["sinter"], [r for r in row["ort"].values() if "db" in r]
    if "failed" in ours or not theirs:
        return None, None
    points = [r["top1"] for r in theirs if r["top1"] is not None]
    return max(r["db"] for r in theirs) - ours["db"], max(points) - ours["top1"] if points else None


def table(rows):
    lines = ["| model | float | sinter quantize | int8 | " + " | ".join(SETTINGS.values()) + " | behind |", "| --- |" + " --- |" * (len(SETTINGS) + 4)]
    for r in rows:
        ours = r["sinter"]
        db, points = loss(r)
        behind = [f"{db:.1f} dB"] if db is not None and db > 0.05 else []
        behind += [f"{points:.1f} points"] if points is not None and points > 0.05 else []
        lines.append(f"| {r['model']} | " + (f"{r['float']:.1f} %" if r["float"] is not None else "-") + f" | {accuracy.cell(ours)} | " +
                     (f"{ours['integer']} of {ours['layers']}" if "layers" in ours else "") + " | " +
                     " | ".join(accuracy.cell(r["ort"].get(k)) for k in SETTINGS) + f" | {', '.join(behind)} |")
    return lines


def main():
    args = accuracy.parser_of(__doc__, "sinter quantize").parse_args()
    known, rows = accuracy.earlier_rows(args), []
    with tempfile.TemporaryDirectory() as scratch:
        for case in accuracy.cases(args, scratch):
            row = {"model": case.name, "float": None if case.label is None else case.judge(case.exact)["top1"], "ort": {}}
            row["sinter"] = quantized(case, args.sinter, shlex.split(args.options))
            for setting in SETTINGS:
                row["ort"][setting] = known.get(case.name, {}).get("ort", {}).get(setting) or accuracy.onnxruntime_quantized(case, setting)
            rows.append(row)
            print(f"{case.name}: sinter {accuracy.cell(row['sinter'])} {row['sinter'].get('failed', '')}; "
                  + ", ".join(f"{k} {accuracy.cell(v)}" for k, v in row["ort"].items()), flush=True)
            if args.json:
                with open(args.json, "w") as f:
                    json.dump({"rows": rows, "onnxruntime": ort.__version__, "options": args.options}, f, indent=1)
    found = {"onnxruntime": table(rows)}
    print("\n".join(found["onnxruntime"]))
    behind = [r["model"] for r in rows if max(x for x in (*loss(r), 0) if x is not None) > 0.05]
    print(f"{len(rows) - len(behind)} of {len(rows)} networks are at least as accurate as by onnxruntime's best setting; behind: "
          + (", ".join(behind) or "none"))
    if args.results:
        results.store(args.results, "Accuracy of int8 ONNX files in onnxruntime", found)


if __name__ == "__main__":
    main()
