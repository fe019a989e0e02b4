"""What the train_*.py scripts share: training on a task of nets_data.py with fixed seeds, and writing ONNX.

The scripts need PyTorch 2 (CPU) and onnx; nothing else in the project does: the networks are checked in.
"""
import os
import sys

import numpy as np
import torch
from torch import nn

import nets_data

HERE = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(0)
torch.set_num_threads(int(os.environ.get("THREADS", "1")))
torch.use_deterministic_algorithms(True)


def samples(name, n, seed):
    task, _ = nets_data.NETS[name]
    inputs, answer = task(np.random.RandomState(seed), n)
    answer = [torch.from_numpy(np.asarray(a)) for a in (answer if isinstance(answer, tuple) else (answer,))]
    return [torch.from_numpy(x) for x in inputs.values()], [a.long() if a.dtype.is_floating_point is False else a for a in answer]


def classes(output, label):
    return nn.functional.cross_entropy(output, label)


def fit(model, name, n=16000, epochs=12, batch=64, rate=3e-3, loss=classes, decay=1e-4, penalty=None):
    """Adam with one cycle of rates; prints the loss, and ends with the model in evaluation mode."""
    inputs, answers = samples(name, n, 1)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=decay)
    steps = epochs * (n // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps)
    order = torch.Generator().manual_seed(0)
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for part in torch.randperm(n, generator=order)[:n // batch * batch].split(batch):
            value = loss(model(*[x[part] for x in inputs]), *[a[part] for a in answers])
            if penalty is not None:
                value = value + penalty(model)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            schedule.step()
            total += value.item()
        print(f"{name} {epoch}: loss {total / (n // batch):.4f}", flush=True)
    return model.eval()


@torch.no_grad()
def accuracy(model, name, n=4000, seed=2):
    inputs, answers = samples(name, n, seed)
    return 100 * (model(*inputs).argmax(1) == answers[0]).float().mean().item()


def export(model, name, outputs=("scores",)):
    """Writes NAME.onnx for one sample, batch normalization as it is in the network."""
    import onnx
    inputs, _ = samples(name, 1, 3)
    if name == "denoiser":  # its sample is a batch of two
        inputs = [x[0] for x in inputs]
    names = list(nets_data.NETS[name][0](np.random.RandomState(3), 1)[0])
    path = os.path.join(HERE, name + ".onnx")
    torch.onnx.export(model, tuple(inputs), path, input_names=names, output_names=list(outputs), opset_version=17,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, dynamo=False)
    m = onnx.load(path)
    for node in m.graph.node:
        node.doc_string = ""
    m.doc_string = m.graph.doc_string = m.producer_version = ""
    onnx.checker.check_model(m, full_check=True)
    onnx.save(m, path)
    print(f"{name}.onnx: {os.path.getsize(path)} bytes, " + " ".join(sorted({n.op_type for n in m.graph.node})))
    sys.stdout.flush()
