#!/usr/bin/env python3
"""Convert and run each network of ../shared/models and compare with golden files or onnxruntime.

    run.py [--sinter PROGRAM] [--filter GLOB]... [--backends portable,default] [--threads 1,2] [--report FILE]

Float outputs may differ by 1e-4 of the output's largest magnitude, quantized ones by one step, integers not at all.
"portable" and "cuda-emulated" are files that are planned for these. For one backend the answer must be the same bits with
every number
of threads. The table is models.tsv; skipped with a plain message where ../shared (or SINTER_SHARED) is absent. Inputs and references are kept in build/golden-cache.
"""
import argparse
import fnmatch
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import networks  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402

CACHE = os.environ.get("SINTER_GOLDEN_CACHE", os.path.join(cli.REPO, "build", "golden-cache"))


def difference(net, model, name, got, want):
    """(largest difference over what is allowed, or a reason)."""
    got = cli.from_bits(got, want.dtype)
    if got.dtype != want.dtype or got.shape != want.shape:
        return None, f"{name}: {got.dtype}{list(got.shape)}, want {want.dtype}{list(want.shape)}"
    if want.size == 0:
        return 0.0, ""
    limit = networks.allowed(net, model, name, want)
    if limit == 0.0 and want.dtype.kind in "biu":
        bad = int(np.count_nonzero(got != want))
        return (0.0, "") if not bad else (None, f"{name}: {bad} of {want.size} integers differ")
    g, w = got.astype(np.float64), want.astype(np.float64)
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    if not np.all(same | (np.isfinite(g) & np.isfinite(w))):
        return None, f"{name}: not finite where onnxruntime is, or the other way round"
    worst = float(np.max(np.where(same, 0, np.abs(np.where(same, 0, g - w)))))
    ratio = 0.0 if worst == 0 else worst / limit if limit else np.inf
    return ratio, "" if ratio <= 1 else f"{name}: largest difference {worst:.3g}, allowed {limit:.3g}"


def planned_but_refused(sinter, file):
    """Steps that the backend they are planned for does not take, although this program has it."""
    r = cli.call(sinter, "inspect", file, "--json")
    fallbacks = json.loads(r.out)["fallbacks"] if r.code == 0 else [dict(name="inspect", expected="none", reason=r.why())]
    return [f"planned for {f['expected']}, which refuses {f['name']}: {f['reason']}" for f in fallbacks
            if "does not link" not in f["reason"]]


def check(net, args, sinter, shared, work):
    """Result of one network: dict with status (pass, refused, FAIL) and details."""
    path = os.path.join(shared, "models", net.file)
    model = onnx.load(path)
    out = dict(model=net.file, status="pass", message="", worst={}, seconds={})
    target = os.path.join(work, "m.sinter")
    flags = list(net.flags)
    fixed = networks.constant_names(net)
    if fixed:
        given = networks.seeded_inputs(net, model)
        for i, name in enumerate(fixed):
            cli.save_npy(os.path.join(work, f"c{i}.npy"), given[name])
            flags += ["--const", f"{name}={work}/c{i}.npy"]
    start = time.monotonic()
    r = cli.call(sinter, "convert", path, "-o", target, "--quiet", *flags, timeout=args.timeout)
    out["seconds"]["convert"] = round(time.monotonic() - start, 2)
    verdict, _, word = net.verdict.partition(":")
    if r.code == 3 and verdict in ("refuse", "may-refuse"):
        told = word.lower() in r.err.lower() and not os.path.exists(target)
        out.update(status="refused" if told else "FAIL",
                   message=r.why() if told else f"refused, but without naming {word}: {r.why()}")
        return out
    if r.code != 0:
        out.update(status="FAIL", message=f"convert: {r.why()}")
        return out
    if verdict == "refuse":
        out.update(status="FAIL", message=f"converted, but {word} should have been refused")
        return out
    failures, files = planned_but_refused(sinter, target), {}
    for name in sorted(set(args.backends.split(",")) & set(cli.PLANNED_FOR)):
        files[name] = os.path.join(work, f"{name}.sinter")
        r = cli.call(sinter, "convert", path, "-o", files[name], *cli.PLANNED_FOR[name], "--quiet", *flags,
                     timeout=args.timeout)
        if r.code != 0:
            failures.append(f"convert {' '.join(cli.PLANNED_FOR[name])}: {r.why()}")
    for number, (feed, expected) in enumerate(networks.cases(net, path, model, CACHE)):
        source, result = os.path.join(work, "in.npz"), os.path.join(work, "out.npz")
        cli.save_npz(source, {k: v for k, v in feed.items() if k not in fixed})
        for backend in args.backends.split(","):
            first = None
            for threads in args.threads.split(","):
                if os.path.exists(result):
                    os.unlink(result)
                label = f"{backend}/{threads}"
                start = time.monotonic()
                chosen = ["--backend", backend] if backend not in ("default", *files) else []
                r = cli.call(sinter, "run", files.get(backend, target), "--inputs", source, "--outputs", result, "--quiet",
                             "--threads", threads, *chosen, timeout=args.timeout)
                out["seconds"][label] = round(time.monotonic() - start, 2)
                if r.code != 0:
                    failures.append(f"{label}: run: {r.why()}")
                    continue
                got = cli.load_npz(result)
                for name, want in expected.items():
                    if name not in got:
                        failures.append(f"{label}: no output {name}")
                        continue
                    ratio, why = difference(net, model, name, got[name], want)
                    if why:
                        failures.append(f"{label}: set {number}: {why}")
                    if ratio is not None:
                        out["worst"][label] = max(out["worst"].get(label, 0.0), ratio)
                if first is None:
                    first = got
                elif any(got[k].tobytes() != first[k].tobytes() for k in first if k in got):
                    failures.append(f"{label}: other bits than with {args.threads.split(',')[0]} thread")
    if failures:
        out.update(status="FAIL", message="; ".join(dict.fromkeys(failures)))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--filter", action="append", help="only networks whose file matches this glob")
    p.add_argument("--backends", default="portable,default")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--report", help="write all results as JSON")
    p.add_argument("--references-only", action="store_true", help="only fill the cache of expected outputs")
    args = p.parse_args()
    shared = cli.find_shared()
    if shared is None:
        cli.skip("no ../shared/models (or SINTER_SHARED): real networks are not tested")
    sinter = None if args.references_only else cli.find_sinter(args.sinter)
    results = []
    for net in networks.selected(shared):
        if args.filter and not any(fnmatch.fnmatchcase(net.file, f) for f in args.filter):
            continue
        if args.references_only:
            path = os.path.join(shared, "models", net.file)
            if not net.verdict.startswith("refuse"):
                done = networks.cases(net, path, onnx.load(path), CACHE)
                print(net.file, [{k: (v.dtype.name, v.shape) for k, v in o.items()} for _, o in done])
            continue
        with tempfile.TemporaryDirectory(prefix="models-") as work:
            results.append(check(net, args, sinter, shared, work))
        r = results[-1]
        worst = f"largest difference {max(r['worst'].values()):.2f} of the allowed" if r["worst"] else ""
        print(f"{r['status']:8s} {net.file:55s} {worst} {r['message']}", flush=True)
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
    if not args.references_only:
        count = {s: sum(r["status"] == s for r in results) for s in ("pass", "refused", "FAIL")}
        print(f"{count['pass']} pass, {count['refused']} refused as allowed, {count['FAIL']} fail")
        sys.exit(count["FAIL"] > 0)


if __name__ == "__main__":
    main()
