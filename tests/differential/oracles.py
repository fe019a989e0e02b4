"""What onnxruntime (without graph optimizations) and ONNX's reference evaluator compute, each in a process that may die."""
import multiprocessing
import os
import warnings

import numpy as np
import onnx
from onnx import helper

TOO_LARGE = 1 << 22  # elements of a result that are compared


def run_onnxruntime(model, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.use_per_session_threads = True
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, {k: feeds[k] for k in names})


def run_reference(model, feeds):
    from onnx.reference import ReferenceEvaluator
    session = ReferenceEvaluator(model)
    arrays = [np.asarray(a) for a in session.run(None, dict(feeds))]
    # Where its result does not have the type or the rank that the schema gives it, its numbers are not the operator's.
    graph = onnx.shape_inference.infer_shapes(model).graph
    for a, info in zip(arrays, graph.output):
        t = info.type.tensor_type
        if t.elem_type and helper.tensor_dtype_to_np_dtype(t.elem_type) != a.dtype:
            raise ValueError(f"gives {a.dtype} against the schema")
        if t.HasField("shape") and len(t.shape.dim) != a.ndim:
            raise ValueError(f"gives rank {a.ndim} against the schema")
    node = graph.node[0]
    schema = onnx.defs.get_schema(node.op_type, model.opset_import[0].version, node.domain)
    kinds = {i.name: helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in graph.input}
    kinds |= {i.name: helper.tensor_dtype_to_np_dtype(i.data_type) for i in graph.initializer}
    variables = {p.type_str: kinds[x] for p, x in zip(schema.inputs, node.input) if x}
    for a, port in zip(arrays, schema.outputs):
        if a.dtype != variables.get(port.type_str, a.dtype):
            raise ValueError(f"gives {a.dtype} against the schema")
    return arrays


ORACLES = {"onnxruntime": run_onnxruntime, "reference": run_reference}


def answers(case, skip=()):
    """For each oracle: a list of arrays, or a text why there is none."""
    result = {}
    model = case.model()
    for name, run in ORACLES.items():
        if name in skip:
            result[name] = "died"
            continue
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result[name] = [np.asarray(a) for a in run(model, case.feeds)]
        except Exception as e:  # both raise many types
            result[name] = f"{type(e).__name__}: {e}"[:300]
    return result


def serve(pipe, cases, first, skip):
    os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    for i in range(first, len(cases)):
        pipe.send((i, None))
        pipe.send((i, answers(cases[i], skip if i == first else ())))
    pipe.close()


def all_answers(cases, timeout=30):
    """answers() of all cases, in order. A case that ends the process is tried again without onnxruntime."""
    results, first, skip = {}, 0, ()
    context = multiprocessing.get_context("fork")
    while first < len(cases):
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=serve, args=(there, cases, first, skip), daemon=True)
        child.start()
        there.close()
        begun = first
        try:
            while True:
                if not here.poll(timeout):
                    raise EOFError
                i, answer = here.recv()
                begun = i
                if answer is not None:
                    results[i] = answer
        except EOFError:
            pass
        child.kill() if child.is_alive() and len(results) < len(cases) else None
        child.join()
        if len(results) == len(cases):
            break
        first = begun if begun not in results else begun + 1
        if begun in results:
            skip = ()
        elif skip:
            results[begun] = {name: "died" for name in ORACLES}
            first, skip = begun + 1, ()
        else:
            skip = ("onnxruntime",)
    return [results[i] for i in range(len(cases))]
