#!/usr/bin/env python3
"""Files of released versions open in this one and compute what they computed.

    released.py [--sinter PROGRAM]
    released.py --write VERSION [--sinter PROGRAM]

Each archive in released/ has .sinter files as the converter of one version wrote them, with inputs, and outputs of that version.
This version runs every file, by its own choice of kernels and by the kernels of reference. A signed file opens with its public key.

--write makes the archive of a new version, before its release: of the files that the models of tests/onnx_cases, tests/golden and
tests/quantize convert to, the fewest that have every operation with every type of a result and every flag of convert, and one file
for each way to convert in WAYS. An archive is never written again.
"""
import argparse
import io
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", d) for d in ("common", "onnx_cases", "golden", "quantize/nets", "state")]
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import sinter_cli as cli  # noqa: E402

FOLDER = os.path.join(HERE, "released")
NETS = os.path.join(HERE, "..", "quantize", "nets")
DIGITS = os.path.join(HERE, "..", "..", "examples", "digits", "digits.onnx")
LARGEST = 100_000  # bytes of a file that is kept for its operations
# Ways to convert the network of digits, beyond operations and types: flags, in which {} is a folder for files.
WAYS = {
    "float": [], "stripped": ["--strip"], "signed": ["--sign", "{}/release.key"], "packed": ["--pack"],
    "portable": ["--target", "portable"], "profiles": ["--target", "x86_64+avx2,aarch64,portable"],
    "int8": ["--quantize", "int8"], "int16": ["--quantize", "int8x16"], "int8w": ["--quantize", "int8w"],
    "int4w": ["--quantize", "int4w"], "bytes": ["--input-type", "uint8", "--scale", "1/16"],
    "named": ["--labels", "{}/classes.txt", "--meta", "license=MIT"], "shapes": ["--shapes", "image=1,1,8,8; image=4,1,8,8"],
}


def run_file(sinter, folder, flags=()):
    """The outputs of a file with its inputs; a string: the failure."""
    out = os.path.join(folder, "computed.npz")
    key = os.path.join(folder, "release.pub")
    signed = ["--public-key", key] if os.path.exists(key) else []
    answer = cli.call(sinter, "run", os.path.join(folder, "model.sinter"), "--inputs", os.path.join(folder, "in.npz"), "--outputs", out,
                      "--quiet", *signed, *flags, timeout=60)
    return cli.load_npz(out) if answer.code == 0 else answer.why()


def difference(got, want, entry):
    """The first difference in words; empty: there is none."""
    if isinstance(got, str):
        return got
    if set(got) != set(want):
        return f"outputs {sorted(got)}, not {sorted(want)}"
    for name, w in want.items():
        outcome = cli.mismatch(got[name], w, entry["rtol"], entry["atol"], entry["steps"])
        if outcome:
            return f"{name}: {outcome}"
    return ""


def check_archive(sinter, path):
    """How many files of an archive open and agree, and how many do not."""
    count = [0, 0]
    with tempfile.TemporaryDirectory() as folder, tarfile.open(path) as archive:
        archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)
        with open(os.path.join(folder, "index.json"), encoding="utf-8") as f:
            index = json.load(f)
        for name, entry in index.items():
            place = os.path.join(folder, name)
            want = cli.load_npz(os.path.join(place, "out.npz"))
            for how, flags in (("own kernels", []), ("kernels of reference", ["--backend", "reference"])):
                flags = [*flags, *(["--each"] if entry["each"] else [])]
                outcome = difference(run_file(sinter, place, flags), want, entry)
                count[bool(outcome)] += 1
                if outcome:
                    print(f"FAIL  {os.path.basename(path)}, {name}, {how}: {outcome}")
    return count


def check(sinter):
    archives = sorted(n for n in os.listdir(FOLDER) if n.endswith(".tar.xz"))
    failed = 0 if archives else 1
    for archive in archives:
        good, bad = check_archive(sinter, os.path.join(FOLDER, archive))
        failed += bad or good == 0
        print(f"{archive}: {good} runs agree, {bad} do not")
    return 1 if failed else 0


class Writer:
    """Converts models into folders, of which `chosen` go into the archive."""

    def __init__(self, sinter, folder):
        self.sinter, self.folder, self.made = sinter, folder, {}

    def add(self, name, model, flags, feeds, always=False, steps=0, rtol=1e-4, atol=1e-5, each=False):
        """Converts a model and runs it; keeps it where both of its runs agree."""
        place = os.path.join(self.folder, name)
        os.makedirs(place)
        cli.save_npz(os.path.join(place, "in.npz"), feeds)
        if "--sign" in flags:
            shutil.copy(os.path.join(self.folder, "release.pub"), place)
        answer = cli.call(self.sinter, "convert", model, "-o", os.path.join(place, "model.sinter"), "--quiet", *flags, timeout=300)
        if answer.code != 0:
            return print(f"left out  {name}: {answer.why()[:100]}") if always else None
        return self.keep(name, always, dict(rtol=rtol, atol=atol, steps=steps, each=each, has={f for f in flags if f.startswith("--")}))

    def keep(self, name, always, entry):
        place = os.path.join(self.folder, name)
        each = ["--each"] if entry["each"] else []
        want = run_file(self.sinter, place, each)
        outcome = want if isinstance(want, str) else difference(run_file(self.sinter, place, [*each, "--backend", "reference"]), want, entry)
        if outcome:
            return print(f"left out  {name}: {outcome[:100]}") if always else None
        cli.save_npz(os.path.join(place, "out.npz"), want)
        entry["has"] |= self.contents(os.path.join(place, "model.sinter"))
        entry["bytes"] = sum(os.path.getsize(os.path.join(place, n)) for n in ("model.sinter", "in.npz", "out.npz"))
        if always or entry["bytes"] < LARGEST:
            self.made[name] = {**entry, "always": always}
        return None

    def contents(self, file):
        """The operations of a file, with the types of their results."""
        answer = cli.call(self.sinter, "inspect", file, "--steps", "--json", timeout=60)
        results = [(s["op"], re.search(r" ([a-z]\w*)(\[|$)", o)) for s in json.loads(answer.out)["steps"] for o in s["outputs"]]
        return {f"{op} {typed[1] if typed else ''}" for op, typed in results}

    def chosen(self):
        """Names of files: those that are always kept, then the smallest ones for what is not yet there."""
        names = [n for n, e in self.made.items() if e["always"]]
        there = {h for n in names for h in self.made[n]["has"]}
        while True:
            def gain(name):
                return len(self.made[name]["has"] - there) / (2000 + self.made[name]["bytes"])
            best = max(self.made, key=gain)
            if gain(best) == 0:
                return sorted(names), sorted(there)
            names.append(best)
            there |= self.made[best]["has"]


def add_cases(writer):
    """The models of tests/onnx_cases."""
    import make_cases
    import run as onnx_cases
    for case in make_cases.cases():
        if case.expect == "refuse":
            continue
        with tempfile.TemporaryDirectory() as work:
            onnx_cases.write(case, work)
            consts = [f for name in case.consts for f in ("--const", f"{name}={work}/{name}.const.npy")]
            writer.add(case.name, os.path.join(work, "model.onnx"), [*case.flags, *consts], case.feeds, steps=case.steps, rtol=case.rtol,
                       atol=case.atol)


def add_networks(writer):
    """Networks that come in integers, and trained ones that the converter quantizes."""
    import nets_data
    import networks
    for name, model in networks.all_networks().items():
        rng = np.random.default_rng(2)
        feeds = {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
                 for i in model.graph.input}
        path = os.path.join(writer.folder, f"{name}.onnx")
        with open(path, "wb") as f:
            f.write(model.SerializeToString())
        writer.add(name, path, [], feeds, steps=1)
    for file in sorted(n for n in os.listdir(NETS) if n.endswith(".onnx")):
        name = file[:-5]
        calibrate, evaluate = ({k: v for k, v in d.items() if k != "label"} for d in nets_data.data(name))
        np.savez(os.path.join(writer.folder, f"{name}.npz"), **calibrate)
        feeds = {k: v[:1] for k, v in evaluate.items()}
        for flags in (["int8", "--force-int8"], ["int8x16"], ["int8w"], ["int4w"], ["int4w", "--activations", "int8"]):
            writer.add("_".join([name, *flags]).replace("-", ""), os.path.join(NETS, file),
                       ["--quantize", *flags, "--calibrate", os.path.join(writer.folder, f"{name}.npz")], feeds, steps=1, rtol=0.02, atol=0.02)


def add_states(writer):
    """Decoders and other networks with state, three runs one after another."""
    import decoder_models as models
    tokens = {"input_ids": np.array([[3], [17], [7]]), "attention_mask": np.ones((3, 1), np.int64)}
    shape = models.Shape(layers=1, hidden=16, heads=2, groups=1, vocabulary=20, positions=16)
    decoders = {"joined": models.with_concat(shape=shape), "grouped": models.with_group_query(shape=shape)}
    for name, model in decoders.items():
        path = os.path.join(writer.folder, f"{name}.onnx")
        with open(path, "wb") as f:
            f.write(model.SerializeToString())
        for cache in ("model", "float16", "int8"):
            kept = [] if cache == "model" else ["--kv-cache", cache]
            writer.add(f"decoder_{name}_{cache}", path, ["--shapes", "sequence_length=1", "--max-context", "8", *kept], tokens, always=True,
                       each=True, rtol=0.02, atol=0.02)


def add_operations(writer):
    """Operations that the models of the other suites do not have."""
    from onnx import TensorProto, helper
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
    for op in ("Erf", "HardSwish", "Sign", "ReverseSequence"):
        lengths = {"lengths": np.array([4, 3, 2, 1, 4, 2])} if op == "ReverseSequence" else {}
        shapes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6]),
                  *(helper.make_tensor_value_info(n, TensorProto.INT64, [6]) for n in lengths)]
        graph = helper.make_graph([helper.make_node(op, ["x", *lengths], ["y"])], op, shapes,
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 6])])
        path = os.path.join(writer.folder, f"{op}.onnx")
        with open(path, "wb") as f:
            f.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
        writer.add(op, path, [], {"x": x, **lengths})


def add_ways(writer):
    """The network of digits, converted in each of the ways."""
    rng = np.random.default_rng(1)
    samples = rng.integers(0, 17, (64, 1, 8, 8)).astype(np.float32) / 16
    np.savez(os.path.join(writer.folder, "digits.npz"), image=samples)
    with open(os.path.join(writer.folder, "classes.txt"), "w", encoding="utf-8") as f:
        f.write("".join(f"{i}\n" for i in range(10)))
    cli.call(writer.sinter, "keygen", os.path.join(writer.folder, "release"))
    for name, flags in WAYS.items():
        flags = [f.format(writer.folder) for f in flags]
        if "--quantize" in flags:
            flags += ["--calibrate", os.path.join(writer.folder, "digits.npz")]
        image = (samples[:1] * 16).astype(np.uint8) if "uint8" in flags else samples[:1]
        quantized = dict(rtol=0.02, atol=0.02) if "--quantize" in flags else {}
        writer.add(name, DIGITS, flags, {"image": image}, always=True, **quantized)


def write(sinter, version):
    target = os.path.join(FOLDER, f"{version}.tar.xz")
    if os.path.exists(target):
        sys.exit(f"{target} exists; the files of a version that is released do not change")
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(sinter, folder)
        add_ways(writer)
        add_operations(writer)
        add_networks(writer)
        add_states(writer)
        add_cases(writer)
        names, there = writer.chosen()
        index = {n: {k: writer.made[n][k] for k in ("rtol", "atol", "steps", "each")} for n in names}
        with tarfile.open(target + ".part", "w:xz", preset=9) as archive:
            def put(name, data):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
            put("index.json", json.dumps(index, indent=1).encode())
            for n in names:
                for part in ("model.sinter", "in.npz", "out.npz", "release.pub"):
                    path = os.path.join(folder, n, part)
                    if os.path.exists(path):
                        with open(path, "rb") as f:
                            put(f"{n}/{part}", f.read())
        os.replace(target + ".part", target)
    operations = {h.split()[0] for h in there}
    with open(os.path.join(HERE, "..", "..", "schemas", "ops.def"), encoding="utf-8") as f:
        rows = re.findall(r"^SINTER_OP\((\w+)", f.read(), re.M)
    print(f"{target}: {len(names)} of {len(writer.made)} files, {os.path.getsize(target)} bytes, {len(there)} pairs of operation and type, or flags; "
          f"without a file: {' '.join(sorted(set(rows) - operations)) or 'none'}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--write", metavar="VERSION", help="write the archive of a new version")
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    if args.write:
        write(sinter, args.write)
    else:
        sys.exit(check(sinter))


if __name__ == "__main__":
    main()
