"""ncnn, with files of pnnx (weights kept in float32) and without 16-bit storage or arithmetic. Its quantizer is not in its
package, so there is no int8."""
import importlib.util
import pathlib
import re
import shutil
import subprocess

import numpy as np

import ncnn

PACKAGE = 'ncnn'
LIBRARIES = ['ncnn/ncnn.*.so', 'ncnn.libs/*']
FLAVOURS = {'float': ['float'], 'int8': []}
# How the program that pnnx writes beside its files hands over an input, and takes an output.
INPUT = re.compile(r'ex\.input\("(\w+)", ncnn\.Mat\((\w+?)(\.squeeze\((\d+)\))?\.numpy\(\)(?:, batch_index=(\d+))?\)')
OUTPUT = re.compile(r'= ex\.extract\("(\w+)"\)\s+out\.append\(torch\.from_numpy\(\w+\.numpy\((?:batch_index=(\d+))?\)\)'
                    r'(\.unsqueeze\((\d+)\))?')


def convert(flavour, source, samples, folder):
    program = pathlib.Path(importlib.util.find_spec('pnnx').origin).parent / 'pnnx'
    shutil.copy(source, folder / 'model.onnx')
    done = subprocess.run([program, 'model.onnx', 'fp16=0'], capture_output=True, text=True, cwd=folder)
    wanted = {'model.ncnn.param', 'model.ncnn.bin', 'model_ncnn.py'}
    missing = wanted - {p.name for p in folder.iterdir()}
    if done.returncode or missing:
        raise RuntimeError('pnnx: ' + ((done.stderr + done.stdout).strip().splitlines() or ['failed'])[-1])
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink()
    text = (folder / 'model_ncnn.py').read_text()
    if 'ignore' in done.stderr and 'not supported' in done.stderr or not INPUT.search(text):
        raise RuntimeError('pnnx: ' + next((s for s in done.stderr.splitlines() if 'not supported' in s), 'no inputs'))


class Model:
    def __init__(self, folder, inputs, threads):
        text = (folder / 'model_ncnn.py').read_text()
        self.net = ncnn.Net()
        options = self.net.opt
        options.num_threads = threads
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        options.use_bf16_storage = options.use_vulkan_compute = False
        if self.net.load_param(str(folder / 'model.ncnn.param')) or self.net.load_model(str(folder / 'model.ncnn.bin')):
            raise RuntimeError('the file was refused')
        arrays = list(inputs.values())
        self.feeds = []
        for name, variable, _, squeezed, batch in INPUT.findall(text):
            array = arrays[int(variable.removeprefix('in'))]
            array = np.ascontiguousarray(array.astype(np.int32) if array.dtype.kind in 'iub' else array)
            if squeezed:
                array = array.squeeze(int(squeezed))
            mat = ncnn.Mat(array, batch_index=int(batch)) if batch else ncnn.Mat(array)
            self.feeds.append((name, mat.clone()))
        self.takes = [(name, batch) for name, batch, _, _ in OUTPUT.findall(text)]
        self.results = []

    def run(self):
        with self.net.create_extractor() as extractor:
            for name, mat in self.feeds:
                if extractor.input(name, mat):
                    raise RuntimeError('an input was refused')
            self.results = []
            for name, _ in self.takes:
                code, mat = extractor.extract(name)
                if code:
                    raise RuntimeError('a run failed')
                self.results.append(mat)

    def outputs(self):
        return {i: np.array(mat.numpy(batch_index=int(batch)) if batch else mat)
                for i, ((_, batch), mat) in enumerate(zip(self.takes, self.results))}
