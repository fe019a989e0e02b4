#!/usr/bin/env python3
"""Compare Sinter with onnxruntime and ONNX's reference evaluator on random nodes, drawn from the schemas of ONNX.

    run.py [--sinter PROGRAM] [--count N] [--seed S] [--only OP[,OP]] [--batch N] [--summary FILE] [--show VERDICT]

Case n of seed S is always the same node with the same numbers; `--seed S --first N --count 1` repeats it. A finding is a case
in which Sinter crashes, fails with an internal error, writes a file that cannot run, or differs from an oracle without a
row in decided.py, which holds the disagreements that were looked at. A finding fails the run.
"""
import argparse
import collections
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import batch  # noqa: E402
import decided  # noqa: E402
import draw  # noqa: E402
import oracles  # noqa: E402
import rules_elementwise  # noqa: E402,F401
import rules_indexed  # noqa: E402,F401
import rules_layers  # noqa: E402,F401
import rules_movement  # noqa: E402,F401
import rules_spatial  # noqa: E402,F401
import sinter_cli as cli  # noqa: E402
from compare import judge  # noqa: E402

FINDINGS = ("wrong", "one-sided", "broken")


def draw_batch(seed, number, size, only):
    """The cases of a batch: one opset, so that they fit one model."""
    opset = draw.OPSETS[(seed * 31 + number * 5) % len(draw.OPSETS)]
    first = seed * 100_000_000 + number * 1000
    return [c for i in range(size) for c in [draw.draw_case(first + i, opset, only)] if c is not None]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--count", type=int, default=3000, help="cases")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0, help="the first batch")
    p.add_argument("--batch", type=int, default=50, help="cases of one model")
    p.add_argument("--only", help="operators, with commas")
    p.add_argument("--flags", default="", help="more flags of convert, with spaces")
    p.add_argument("--keep", help="folder for the models of findings")
    p.add_argument("--summary", help="a JSON file with all disagreements")
    p.add_argument("--show", action="append", default=[], help="print the cases of a verdict, too")
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    only = set(args.only.split(",")) if args.only else None
    verdicts, rows, findings, log, done = collections.Counter(), collections.Counter(), 0, [], 0
    by_op = collections.defaultdict(collections.Counter)
    begun = time.time()
    number = args.first
    while done < args.count:
        cases = draw_batch(args.seed, number, min(args.batch, args.count - done), only)
        number += 1
        done += min(args.batch, args.count - done)
        if not cases:
            continue
        outcomes = batch.convert_and_run(sinter, cases, args.flags.split())
        for case, outcome, answer in zip(cases, outcomes, oracles.all_answers(cases)):
            verdict, text, differing = judge(case, outcome, answer)
            found = [decided.find(case, oracle, t) for oracle, t in differing.items()]
            rows.update(row.name for row in found if row)
            if found and all(found):
                verdict = "decided"
            verdicts[verdict] += 1
            by_op[case.op][verdict] += 1
            if verdict in FINDINGS:
                findings += 1
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    with open(os.path.join(args.keep, f"{case.op}-{case.seed}.onnx"), "wb") as f:
                        f.write(case.model().SerializeToString())
                    cli.save_npz(os.path.join(args.keep, f"{case.op}-{case.seed}.npz"), case.feeds)
            if verdict in FINDINGS or verdict in args.show:
                others = {k: v for k, v in answer.items() if isinstance(v, str)}
                print(f"{verdict:9s} batch {number - 1} seed {case.seed} {case.describe()}\n          {text[:400]}"
                      + (f"\n          {str(others)[:300]}" if others else ""), flush=True)
            if verdict in FINDINGS:
                log.append({"verdict": verdict, "op": case.op, "seed": case.seed, "case": case.describe(), "text": text[:300]})
    if args.summary:
        with open(args.summary, "w", encoding="utf-8") as f:
            json.dump({"verdicts": verdicts, "rows": rows, "by_op": by_op, "log": log}, f, indent=1)
    print(f"{sum(verdicts.values())} cases of {len(by_op)} operators in {time.time() - begun:.0f} s, seed {args.seed}: "
          + ", ".join(f"{n} {v}" for v, n in sorted(verdicts.items())))
    for name, n in sorted(rows.items()):
        print(f"  decided: {name}: {n}")
    sys.exit(findings > 0)


if __name__ == "__main__":
    main()
