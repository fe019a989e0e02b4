#!/usr/bin/env python3
"""Trains small networks of kinds that tests/quantize/nets lacks, on the data of trained_data.py, and writes them as ONNX.

    bench/trained/train.py --out FOLDER [--only NAME]...

FOLDER/NAME/model.onnx is the network as torch exports it and FOLDER/NAME/meta.json has what it reached on fresh data.
All of them take some minutes of one core. Needs requirements.txt, in an environment of its own.
"""
import argparse
import json
import os
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "tests", "quantize", "nets"), os.path.join(HERE, "..", "..", "examples")]
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import trained_data  # noqa: E402
import trained_networks as networks  # noqa: E402
from exported import drop_notes  # noqa: E402

SEED_TO_TRAIN, SEED_TO_TEST, TESTED = 1, 2, 1000


def tensors(name, seed, count):
    inputs, answer = trained_data.TASKS[name][0](np.random.RandomState(seed), count)
    answers = answer if isinstance(answer, tuple) else (answer,)
    return [torch.from_numpy(x) for x in inputs.values()], [torch.from_numpy(np.asarray(a)) for a in answers]


def fit(model, name, count, epochs, rate, loss, batch=64):
    inputs, answers = tensors(name, SEED_TO_TRAIN, count)
    model.prepare(*inputs)
    steps = epochs * (count // batch)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps)
    order = torch.Generator().manual_seed(0)
    model.train()
    for _ in range(epochs):
        for part in torch.randperm(count, generator=order)[:count // batch * batch].split(batch):
            optimizer.zero_grad()
            loss(model(*[x[part] for x in inputs]), *[a[part] for a in answers]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


@torch.no_grad()
def reached(model, name, loss):
    """The accuracy on fresh samples where the answer is a class, and the loss beside that of an untrained guess (0)."""
    inputs, answers = tensors(name, SEED_TO_TEST, TESTED)
    got = model(*inputs)
    found = {"loss": round(loss(got, *answers).item(), 4)}
    if trained_data.TASKS[name][1] or name == "tagger":
        found["accuracy"] = round(100 * (got.argmax(-1) == answers[0]).float().mean().item(), 1)
    return found


def export(model, name, folder):
    given = trained_data.draw(name, 3, 1)
    path = os.path.join(folder, "model.onnx")
    torch.onnx.export(networks.Served(model), tuple(torch.from_numpy(x) for x in given.values()), path, input_names=list(given),
                      output_names=model.outputs, opset_version=17, dynamo=False)
    drop_notes(path)
    onnx.checker.check_model(path, full_check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name, (make, count, epochs, rate, loss) in networks.NETWORKS.items():
        if args.only and name not in args.only:
            continue
        folder, start = os.path.join(args.out, name), time.process_time()
        os.makedirs(folder, exist_ok=True)
        torch.manual_seed(0)
        model = fit(make(), name, count, epochs, rate, loss)
        meta = reached(model, name, loss) | {"seconds": round(time.process_time() - start)}
        export(model, name, folder)
        with open(os.path.join(folder, "meta.json"), "w") as f:
            json.dump(meta, f)
        print(name, meta, os.path.getsize(os.path.join(folder, "model.onnx")), "bytes", flush=True)


if __name__ == "__main__":
    main()
