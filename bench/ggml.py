"""Builds rivals/ggml_model.cc and runs it: the models of decoders.py and prefill.py on ggml, the library of tensors in llama.cpp."""
import json
import pathlib
import subprocess
import tempfile

HELP = ("a folder with ggml's sources, built in FOLDER/build as static libraries with GGML_LLAMAFILE, as llama.cpp builds it "
        '(bench/README.md)')


class Rival:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder  # The folder is removed with this object.

    def run(self, model, ggml_type, count, threads, seconds):
        """The line of JSON that the program prints; its head documents it."""
        done = subprocess.run([self.program, model, ggml_type, str(count), str(threads), str(seconds)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f'ggml_model: {done.stderr.strip()[-200:]}')
        return json.loads(done.stdout)


def build(folder):
    source = pathlib.Path(__file__).resolve().parent / 'rivals' / 'ggml_model.cc'
    place = tempfile.TemporaryDirectory()
    program = pathlib.Path(place.name) / 'ggml_model'
    libraries = [folder / 'build' / 'src' / f'lib{name}.a' for name in ('ggml', 'ggml-cpu', 'ggml-base')]
    subprocess.run(['c++', '-std=c++20', '-O2', '-I', folder / 'include', '-o', program, source, *libraries, '-lpthread', '-ldl'], check=True)
    return Rival(program, place)
