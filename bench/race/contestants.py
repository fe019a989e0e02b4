"""Sinter and its rivals, as race.py drives them: both convert a network into a folder and measure what is in one."""
import collections
import hashlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE.parent.parent / 'build' / 'race' / 'files'
SECONDS_OF_CONVERSION = 600


class Failure(Exception):
    """What a contestant cannot do; the text is the reason."""


def digest(*parts):
    """Of paths' contents and of texts."""
    h = hashlib.sha256()
    for part in parts:
        h.update(part.read_bytes() if isinstance(part, pathlib.Path) else str(part).encode())
        h.update(b'\0')
    return h.hexdigest()[:24]


def kept(key, make):
    """The folder of `key`, which make(folder) fills once; what failed once is not tried again."""
    folder, failed = CACHE / key, CACHE / (key + '.failed')
    if failed.exists():
        raise Failure(failed.read_text())
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            try:
                make(pathlib.Path(temporary))
            except Failure as e:
                failed.write_text(str(e))
                raise
            shutil.copytree(temporary, folder)
    return folder


class Sinter:
    name = 'sinter'

    def __init__(self, program, cap=None):
        self.program = str(pathlib.Path(program).resolve())
        self.version = subprocess.run([self.program, '--version'], capture_output=True, text=True).stdout.strip()
        self.target = ['--target', f'x86_64+{cap}' if cap else 'native']
        self.identity = digest(pathlib.Path(self.program))
        self.library_bytes, self.library = self.library_size()
        with tempfile.TemporaryDirectory() as folder:
            self.measure_idle(pathlib.Path(folder))

    def flavours(self, precision):
        return [precision]

    def library_size(self):
        """Stripped, with all backends: of the program that runs models where it has been built, else of `sinter`."""
        build = pathlib.Path(self.program).parent.parent
        runner = build / 'bench' / 'device' / 'sinter_run_model'
        path = runner if runner.exists() else pathlib.Path(self.program)
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / 'stripped'
            done = subprocess.run(['strip', '-o', copy, path], capture_output=True)
            return (copy if done.returncode == 0 else path).stat().st_size, path.name

    def measure_idle(self, folder):
        """What the program itself takes: its peak with a network of a single Relu."""
        self.call('convert', HERE.parent / 'relu.onnx', '-o', folder / 'relu.sinter', '--quiet')
        self.idle_bytes = json.loads(self.call('bench', folder / 'relu.sinter', '--seconds', 0, '--json'))['peak_rss_bytes']

    def call(self, *arguments, cores=None, timeout=SECONDS_OF_CONVERSION):
        command = [self.program, *map(str, arguments)]
        pin = (lambda: os.sched_setaffinity(0, cores)) if cores else None
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, preexec_fn=pin)
        except subprocess.TimeoutExpired:
            raise Failure(f'took longer than {timeout} s') from None
        if done.returncode:
            lines = (done.stderr + done.stdout).strip().splitlines()
            raise Failure(lines[0][:200] if lines else f'exit code {done.returncode}')
        return done.stdout

    def convert(self, flavour, network):
        flags = [*network.flags, *self.target]

        def make(folder):
            if flavour == 'int8':
                np.savez(folder / 'samples.npz', **network.samples_for_sinter)
                flags.extend(['--quantize', 'int8', '--calibrate', folder / 'samples.npz'])
            begin = time.perf_counter()
            self.call('convert', network.path, '-o', folder / 'model.sinter', '--quiet', *flags)
            (folder / 'convert_ms').write_text(str(1e3 * (time.perf_counter() - begin)))
            (folder / 'samples.npz').unlink(missing_ok=True)
        return kept(digest('sinter', self.identity, flavour, network.identity, *flags), make)

    def measure(self, folder, network, threads, cores, seconds, save=None):
        if save:
            self.call('run', folder / 'model.sinter', '--inputs', network.inputs_path, '--outputs', save, '--quiet')
        r = json.loads(self.call('bench', folder / 'model.sinter', '--inputs', network.inputs_path, '--threads', threads,
                                 '--seconds', seconds, '--json', cores=cores))
        result = {key: r[key] for key in ('load_ms', 'first_ms', 'median_ms', 'min_ms', 'runs', 'arena_bytes', 'file_bytes')}
        return result | dict(added_bytes=max(0, r['peak_rss_bytes'] - self.idle_bytes),
                             convert_ms=float((folder / 'convert_ms').read_text()))

    def costliest(self, folder, network, count=2):
        """The operations that take most of one thread's time, as text."""
        text = self.call('run', folder / 'model.sinter', '--inputs', network.inputs_path, '--profile', '--json')
        steps = json.loads(text)['profile']
        times = collections.Counter()
        for step in steps:
            times[f"{step['op']} ({step['backend']})"] += step['us']
        total = sum(times.values()) or 1
        largest = max(steps, key=lambda step: step['us'])
        kinds = ', '.join(f'{op} {100 * t / total:.0f} %' for op, t in times.most_common(count))
        name = largest.get('name') or largest.get('output') or ''
        return f"{kinds}; longest step {largest['op']}{' ' + name if name else ''} {100 * largest['us'] / total:.0f} %"

    def close(self):
        pass


class Rival:
    """A process of worker.py."""

    def __init__(self, name):
        self.name = name
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen([sys.executable, HERE / 'worker.py', self.name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        hello = self.answer(120)
        self.version, self.library_bytes = hello['version'], hello['library_bytes']
        self.of_precision, self.borrowed = hello['flavours'], hello['borrowed']

    def answer(self, timeout):
        ready, _, _ = select.select([self.process.stdout], [], [], timeout)
        line = self.process.stdout.readline() if ready else ''
        if not line:
            self.process.kill()
            self.process.wait()
            raise Failure(f'took longer than {timeout} s' if not ready else 'its process has ended')
        result = json.loads(line)
        if 'error' in result:
            raise Failure(result['error'])
        return result

    def ask(self, timeout, **job):
        if self.process.poll() is not None:
            self.start()
        self.process.stdin.write(json.dumps({k: str(v) if isinstance(v, pathlib.Path) else v for k, v in job.items()}) + '\n')
        self.process.stdin.flush()
        return self.answer(timeout)

    def flavours(self, precision):
        return self.of_precision[precision]

    def convert(self, flavour, network):
        def make(folder):
            self.ask(SECONDS_OF_CONVERSION, maker=maker, flavour=flavour, source=network.fixed_path,
                     samples=network.samples_path, folder=folder)
        maker = self.borrowed.get(flavour, self.name)
        sources = [HERE / 'rivals' / f'{maker}.py', *sorted(HERE.glob('requirements*.txt'))]
        return kept(digest(maker, flavour, network.identity, *sources), make)

    def measure(self, folder, network, threads, cores, seconds, save=None):
        return self.ask(300, folder=folder, inputs=network.inputs_path, threads=threads, cores=cores, seconds=seconds, save=save)

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()
