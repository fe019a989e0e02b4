#!/usr/bin/env python3
"""Convert and run the type-conflict corpus; compare with what the models' authors meant.

    run.py [--sinter PROGRAM] [--only GLOB]... [--ort] [--jobs N] [--write FOLDER] [--report FILE] [--list]

Each model goes through `sinter convert`, again with --strict, and `sinter run` on the default and the reference backend.
expected_failures.txt names what is known to fall short; a line there that no longer fails is a failure too. --ort runs
onnxruntime over the same models and prints its score beside Sinter's.

Each case's ledger is compared with ledger.txt, which was reviewed line by line when it was written:
--write-ledger writes it anew after a rule has changed, for another reading of the difference.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import corpus  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from type_case import RTOL  # noqa: E402

PLAN_BYTES = 8192  # what a plan of a few steps may take beside the weights


def says(text, word):
    """Is the word in the text? Short ones, the operands' names, only as a word of its own."""
    if len(word) > 3:
        return word.lower() in text.lower()
    return re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.]\w|\w)", text) is not None


def differs(case, got):
    """None, or how the outputs differ from the expected ones."""
    for name, want in case.want.items():
        if name not in got:
            return f"no output {name}"
        g = cli.from_bits(np.asarray(got[name]), want.dtype)
        if g.dtype != want.dtype:
            return f"{name}: type {g.dtype}, want {want.dtype}"
        if g.shape != want.shape:
            return f"{name}: shape {list(g.shape)}, want {list(want.shape)}"
        if want.dtype.kind in "biu" or not want.size:
            outcome = cli.mismatch(g, want, 0, 0)
        else:
            kind = case.unit or (want.dtype.name if want.dtype.name != "float64" else "float32")
            rtol, share = RTOL[kind]
            wide, g = want.astype(np.float64), g.astype(np.float64)
            finite = np.abs(wide[np.isfinite(wide)])
            outcome = cli.mismatch(g, wide, rtol, share * (finite.max() if finite.size else 0.0))
        if outcome:
            return f"{name}: {outcome}"
    return None


def ledger_lines(report):
    """The ledger of a conversion, a short line a decision, and None or what contradicts itself in it."""
    with open(report, encoding="utf-8") as f:
        entries = json.load(f)["types"]
    lines, fault = [], None
    for e in entries:
        where = f" at {e['node']} ({e['op']})" if e["node"] else ""
        lines.append(f"{e['value'] or '-'}{where}: {e['before']} -> {e['after']}, {e['effect']} [{e['rule']}]")
        same = e["before"] == e["after"]
        if same != (e["effect"] in ("kept", "value replaced")) or not e["rule"] or not e["reason"]:
            fault = f"ledger: an entry without effect, rule or reason: {lines[-1]}"
        asked = {r["operand"].split("'")[1]: r["has"] for r in e["requests"] if "'" in r["operand"]}
        if e["effect"] in ("cast", "constant retyped") and asked.get(e["value"], e["before"]) != e["before"]:
            fault = f"ledger: the request contradicts the decision: {lines[-1]}"
    return lines, fault


def replayed(case, listing, steps):
    """None, or what in the written file the ledger does not lead to: the model's own types and the decisions, in their
    order, must give the type of every value that kept its name, and every cast that the model did not write."""
    decisions = listing["decisions"]
    types = {}  # name -> types that the value may have in the file
    packed = {n.input[n.op_type != "DequantizeLinear"] for n in case.model.graph.node
              if n.op_type in ("MatMulNBits", "MatMulBnb4", "DequantizeLinear")}
    for t in case.model.graph.initializer:
        if t.name in packed:  # what the operator makes of it has its name
            continue
        types[t.name] = {onnx.TensorProto.DataType.Name(t.data_type).lower()}
    names = {"float": "float32", "double": "float64"}
    types = {n: {names.get(t, t) for t in ts} for n, ts in types.items()}
    for d in decisions:
        types.setdefault(d["value"], {d["before"]}).add(d["after"])
    found = {}
    for v in listing["types"]:
        found.setdefault(v["value"], set()).add(v["type"])
        if v["value"] in types and v["type"] not in types[v["value"]]:
            return f"replay: {v['value']} is {v['type']}, and the ledger leads to {sorted(types[v['value']])}"
    for step in steps:
        if step["op"] != "Cast" or step["origin"] in ("Cast", "CastLike"):
            continue
        out, to = step["outputs"][0].split(" ")[0], step["outputs"][0].split(" ")[1].split("[")[0]
        # The value may have been widened where it is made or read, and be cast on from there.
        led = {t for d in decisions if d["value"] in (out, step["inputs"][0]) or d["node"] == step["name"]
               for t in (d["before"], d["after"])}
        if led & {"float16", "bfloat16"}:
            led.add("float32")
        if to not in led or not led & found.get(step["inputs"][0], led) - {to}:
            return f"replay: no entry leads to the cast of {step['inputs'][0]} at {step['name']} to {to}"
    return None


def read_ledger():
    """case -> the ledger's lines, as they were reviewed."""
    known, name = {}, None
    path = os.path.join(HERE, "ledger.txt")
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("#") or not line:
                continue
            if line.startswith("  "):
                known[name].append(line[2:])
            else:
                name = line
                known[name] = []
    return known


def write_ledger(known):
    with open(os.path.join(HERE, "ledger.txt"), "w", encoding="utf-8") as f:
        f.write("# The decisions of each case: value, where, types, effect, rule. Written by run.py --write-ledger.\n")
        for name in sorted(known):
            if known[name]:
                f.write(name + "\n" + "".join(f"  {line}\n" for line in known[name]))


def check(case, sinter, timeout, golden, found):
    """None where the case holds, else why not. The ledger's lines go to `found`."""
    with tempfile.TemporaryDirectory(prefix="type-") as work:
        source, target = os.path.join(work, "model.onnx"), os.path.join(work, "m.sinter")
        with open(source, "wb") as f:
            f.write(case.model.SerializeToString())
        report = os.path.join(work, "report.json")
        r = cli.call(sinter, "convert", source, "-o", target, "--report", report, *case.flags, timeout=timeout)
        lacking = [w for w in case.words if not says(r.err, w)]
        if case.expect == "refuse":
            if r.code != 3:
                return f"not refused: {r.why()}"
            if lacking:
                return f"the refusal lacks {lacking}: {r.why()}"
            if os.path.exists(target):
                return "a refusal left an output file"
            outcome = json.loads(cli.call(sinter, "convert", source, "-o", target, "--json", *case.flags,
                                       timeout=timeout).out)["diagnostics"]
            without = [d["message"] for d in outcome if d["severity"] == "refused" and not d["remedy"]]
            return f"a refusal without advice: {without}" if without else None
        if r.code != 0:
            return f"convert: {r.why()}"
        found[case.name], fault = ledger_lines(report)
        if fault:
            return fault
        listing, steps = (json.loads(cli.call(sinter, "inspect", target, what, "--json", timeout=timeout).out)
                          for what in ("--types", "--steps"))
        if fault := replayed(case, listing, steps["steps"]):
            return fault
        if absent := set(case.ops) - {step["op"] for step in steps["steps"]}:
            return f"steps: no {sorted(absent)}"
        size = os.path.getsize(target)
        if case.weights and size > 1.02 * case.weights + PLAN_BYTES:
            return f"size: the file takes {size} bytes, the weights {case.weights}"
        memory = json.loads(cli.call(sinter, "inspect", target, "--json", timeout=timeout).out)
        more = sum(memory[f"{what}_bytes"] for what in ("widened_weight", "prepared", "packed"))
        if case.weights and "LowBitFullyConnected" in case.ops and more > case.weights:
            return f"memory: a session prepares {more} bytes of weights that take {case.weights}"
        feeds, result = os.path.join(work, "in.npz"), os.path.join(work, "out.npz")
        cli.save_npz(feeds, case.feeds)
        for backend in ("default", "reference"):
            choice = [] if backend == "default" else ["--backend", backend]
            ran = cli.call(sinter, "run", target, "--inputs", feeds, "--outputs", result, "--quiet", *choice,
                           timeout=timeout)
            if ran.code != 0:
                return f"run ({backend}): {ran.why()}"
            outcome = differs(case, cli.load_npz(result))
            if outcome:
                return f"values ({backend}): {outcome}"
        if case.expect == "doubtful":
            if "warning" not in r.err.lower():
                return "no warning"
            if lacking:
                return f"the warning lacks {lacking}: {r.err.strip()[:400]}"
        if case.strict is not None:
            s = cli.call(sinter, "convert", source, "-o", os.path.join(work, "s.sinter"), "--strict", *case.flags,
                         timeout=timeout)
            if s.code not in np.atleast_1d(case.strict):
                return f"strict: want exit {case.strict}: {s.why()}"
        if golden is not None and found[case.name] != golden.get(case.name, []):
            return f"ledger: {found[case.name]}, and ledger.txt has {golden.get(case.name, [])}"
    return None


# --- onnxruntime, in a process of its own: it may crash ---

def ort_one(case, compare=None):
    """(what, why): right, wrong, unloadable (or not runnable), accepted or rejected for a refusal. `compare` gives the
    difference of the results; by default that from the expected ones."""
    import onnxruntime as ort
    from onnx import helper
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        if case.expect == "refuse":
            return "accepted", ""
        binding = session.io_binding()
        known = {i.name for i in session.get_inputs()} | {i.name for i in session.get_overridable_initializers()}
        for k, a in case.feeds.items():
            if k in known:
                if cli.is_bits(a.dtype):
                    v = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(cli.to_bits(a)),
                                                                        helper.np_dtype_to_tensor_dtype(a.dtype))
                else:
                    v = ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a).reshape(a.shape))
                binding.bind_ortvalue_input(k, v)
        for k in case.want:
            binding.bind_output(k)
        session.run_with_iobinding(binding)
        got = {}
        for k, v in zip(case.want, binding.get_outputs()):
            if v.element_type() == 16:
                import ctypes
                n = int(np.prod(v.shape(), dtype=np.int64))
                bits = (ctypes.c_uint16 * n).from_address(v.data_ptr()) if n else []
                got[k] = np.array(bits, np.uint16).reshape(v.shape())
            else:
                got[k] = v.numpy()
    except Exception as e:  # onnxruntime raises many types
        return ("rejected" if case.expect == "refuse" else "unloadable"), " ".join(str(e).split())[:300]
    outcome = compare(got) if compare else differs(case, got)
    return ("wrong", outcome) if outcome else ("right", "")


def ort_worker():
    names = set(json.loads(sys.stdin.read()))
    for c in corpus.cases():
        if c.name in names:
            print(json.dumps(["start", c.name]), flush=True)
            print(json.dumps(["end", c.name, *ort_one(c)]), flush=True)


def ort_all(chosen):
    """name -> (what, why); a case that kills the process counts as not loadable."""
    results, left = {}, [c.name for c in chosen]
    while left:
        r = subprocess.run([sys.executable, os.path.abspath(__file__), "--ort-worker"], input=json.dumps(left),
                           capture_output=True, text=True)
        current = None
        for line in r.stdout.splitlines():
            entry = json.loads(line)
            current = entry[1] if entry[0] == "start" else None
            if entry[0] == "end":
                results[entry[1]] = tuple(entry[2:])
        if current:
            refused = next(c for c in chosen if c.name == current).expect == "refuse"
            results[current] = ("rejected" if refused else "unloadable", "the process died")
        elif r.returncode:
            sys.exit(f"onnxruntime's process failed: {r.stderr[-2000:]}")
        left = [n for n in left if n not in results]
    return results


def expected_failures():
    """name -> reason."""
    known, reason = {}, ""
    with open(os.path.join(HERE, "expected_failures.txt"), encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if line.startswith("#"):
                continue
            if line.startswith("["):
                reason = line.strip("[]")
            elif line:
                assert reason, f"{line}: no reason given"
                assert line not in known, f"{line}: listed twice"
                known[line] = reason
    return known


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--only", action="append", help="only cases whose name or rule matches this glob")
    p.add_argument("--ort", action="store_true", help="run onnxruntime on the same models too")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=float, default=60)
    p.add_argument("--write", help="only write all models, inputs and expected outputs into this folder")
    p.add_argument("--list", action="store_true", help="only list the cases")
    p.add_argument("--report", help="write all results as JSON")
    p.add_argument("--write-ledger", action="store_true", help="write ledger.txt anew")
    p.add_argument("--ort-worker", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.ort_worker:
        return ort_worker()
    everything = list(corpus.cases())
    names = [c.name for c in everything]
    assert len(set(names)) == len(names), sorted({n for n in names if names.count(n) > 1})
    known = expected_failures()
    assert not set(known) - set(names), f"expected_failures.txt: no such case: {sorted(set(known) - set(names))}"
    chosen = [c for c in everything if not args.only or any(fnmatch.fnmatchcase(n, f) for f in args.only
                                                            for n in (c.name, c.rule))]
    if args.list:
        for c in chosen:
            print(f"{c.expect:8s} {c.rule:18s} {c.name}")
        print(f"{len(chosen)} cases")
        return None
    if args.write:
        for c in chosen:
            folder = os.path.join(args.write, c.name)
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "model.onnx"), "wb") as f:
                f.write(c.model.SerializeToString())
            cli.save_npz(os.path.join(folder, "in.npz"), c.feeds)
            cli.save_npz(os.path.join(folder, "want.npz"), c.want or {})
        return None
    if args.write_ledger and args.only:
        p.error("--write-ledger needs all cases")
    sinter = cli.find_sinter(args.sinter)
    golden, found = None if args.write_ledger else read_ledger(), {}
    assert not set(golden or ()) - set(names), f"ledger.txt: no such case: {sorted(set(golden) - set(names))}"
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda c: check(c, sinter, args.timeout, golden, found), chosen)
        outcome = dict(zip((c.name for c in chosen), results))
    if args.write_ledger:
        write_ledger(found)
    theirs = ort_all(chosen) if args.ort else {}
    bad = 0
    for c in chosen:
        why, listed = outcome[c.name], c.name in known
        if why and not listed:
            print(f"FAIL   {c.name} [{c.rule}]: {why}", flush=True)
        elif not why and listed:
            print(f"STALE  {c.name}: passes, but is listed in expected_failures.txt ({known[c.name]})", flush=True)
        bad += bool(why) != listed
    values = [c for c in chosen if c.expect != "refuse"]
    wanted = [c for c in chosen if c.expect == "refuse"]
    wrong = sum((outcome[c.name] or "").startswith("values") for c in values)
    doubt = sum(c.expect == "doubtful" for c in values)
    print(f"sinter: {len(values)} models that can be repaired ({doubt} of them with a warning): "
          f"{sum(not outcome[c.name] for c in values)} right, {wrong} wrong values, "
          f"{sum(bool(outcome[c.name]) for c in values) - wrong} not converted or not as expected; "
          f"{len(wanted)} to be refused: {sum(not outcome[c.name] for c in wanted)} refused with the right words")
    if args.ort:
        def count(what):
            return sum(theirs[c.name][0] == what for c in chosen)
        import onnxruntime
        print(f"onnxruntime {onnxruntime.__version__}: {len(values)} models: {count('right')} load and are right, "
              f"{count('wrong')} load and are wrong, {count('unloadable')} do not load or run; {len(wanted)} to be "
              f"refused: {count('rejected')} rejected, {count('accepted')} accepted")
    print(f"{len(chosen)} cases, {sum(map(bool, outcome.values()))} known or new failures, {bad} unexpected")
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump([dict(case=c.name, rule=c.rule, expect=c.expect, sinter=outcome[c.name] or "pass",
                            known=known.get(c.name), onnxruntime=theirs.get(c.name)) for c in chosen], f, indent=1)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
