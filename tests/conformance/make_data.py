#!/usr/bin/env python3
"""Write ONNX's own backend tests from the installed wheel into a folder.

    make_data.py [FOLDER]            (default: build/conformance-data in the repository)

The layout is ONNX's usual one: KIND/NAME/model.onnx and KIND/NAME/test_data_set_N/{input,output}_M.pb. The wheel
holds `simple`, `pytorch-converted` and `pytorch-operator` as files, `real` as models without weights plus their
outputs, and `node` only as Python code that is run here. A stamp makes the second call return at once.
"""
import argparse
import hashlib
import json
import os
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT = os.path.join(HERE, "..", "..", "build", "conformance-data")
WHEEL_DATA = loader.DATA_DIR
COUNTS = {"node": 1884, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35, "real": 9}


def stamp():
    own = hashlib.sha256(open(__file__, "rb").read()).hexdigest()[:16]
    return json.dumps({"onnx": onnx.__version__, "script": own})


def proto_bytes(value, info):
    """A test's value as the message that its declared type asks for."""
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name).SerializeToString(deterministic=True)
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name).SerializeToString(deterministic=True)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name).SerializeToString(deterministic=True)
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString(deterministic=True)
    return numpy_helper.from_array(np.asarray(value), info.name).SerializeToString(deterministic=True)


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def node_tests(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = loader.load_node_model_tests()
    for case in cases:
        place = os.path.join(folder, case.name)
        os.makedirs(place)
        write(os.path.join(place, "model.onnx"), case.model.SerializeToString(deterministic=True))
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = os.path.join(place, f"test_data_set_{i}")
            os.makedirs(data)
            for what, values, infos in (("input", inputs, case.model.graph.input),
                                        ("output", outputs, case.model.graph.output)):
                for j, value in enumerate(values):
                    write(os.path.join(data, f"{what}_{j}.pb"), proto_bytes(value, infos[j]))
    return len(cases)


def file_tests(folder, kind):
    shutil.copytree(os.path.join(WHEEL_DATA, kind), folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return sum(os.path.exists(os.path.join(folder, n, "model.onnx")) for n in os.listdir(folder))


def real_tests(folder):
    """Whole networks whose weights are generated in the graph; their input is a ramp, as ONNX's runner makes it."""
    count = 0
    for name in sorted(os.listdir(os.path.join(WHEEL_DATA, "real"))):
        spec = os.path.join(WHEEL_DATA, "real", name, "data.json")
        if not os.path.exists(spec):
            continue
        with open(spec, encoding="utf-8") as f:
            info = json.load(f)
        source = os.path.join(WHEEL_DATA, "light", os.path.basename(info["url"]))
        model = onnx.load(source)
        place = os.path.join(folder, name)
        data = os.path.join(place, "test_data_set_0")
        os.makedirs(data)
        shutil.copyfile(source, os.path.join(place, "model.onnx"))
        with open(os.path.join(place, "data.json"), "w", encoding="utf-8") as f:
            json.dump({"rtol": info["rtol"], "atol": info["atol"]}, f)
        initializers = {i.name for i in model.graph.initializer}
        for j, x in enumerate(x for x in model.graph.input if x.name not in initializers):
            shape = [d.dim_value if d.HasField("dim_value") else 1 for d in x.type.tensor_type.shape.dim]
            n = int(np.prod(shape))
            ramp = (np.arange(n).reshape(shape) / n).astype(np.float32)
            write(os.path.join(data, f"input_{j}.pb"), numpy_helper.from_array(ramp, x.name).SerializeToString())
        for j in range(len(model.graph.output)):
            shutil.copyfile(source[:-len(".onnx")] + f"_output_{j}.pb", os.path.join(data, f"output_{j}.pb"))
        count += 1
    return count


def make(folder):
    folder = os.path.abspath(folder)
    mark = os.path.join(folder, "stamp.json")
    if os.path.exists(mark) and open(mark, encoding="utf-8").read() == stamp():
        return False
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    made = {"node": node_tests(os.path.join(folder, "node")), "real": real_tests(os.path.join(folder, "real"))}
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        made[kind] = file_tests(os.path.join(folder, kind), kind)
    for kind, want in COUNTS.items():
        if made[kind] != want:
            sys.exit(f"make_data: {kind}: {made[kind]} tests in onnx {onnx.__version__}, expected {want}: "
                     f"is this the pinned wheel?")
    write(mark, stamp().encode())
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", nargs="?", default=DEFAULT)
    folder = p.parse_args().folder
    print(f"{os.path.abspath(folder)}: {'written' if make(folder) else 'up to date'}")


if __name__ == "__main__":
    main()
