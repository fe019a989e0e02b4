#!/usr/bin/env python3
"""Runs packages of PyPI that use onnxruntime, unmodified, with onnxruntime and with sinter_runtime.onnxruntime in its place.

    bench/dropin/dropin.py --runtime WHEEL|FOLDER [--only PACKAGE]... [--threads 1] [--rounds 3] [--seconds 0.5]
                           [--results bench/results/drop-in.json]

`--runtime` is a wheel of sinter_runtime, or a folder with the package. The first call installs the packages
(requirements.txt) into build/dropin, each into an environment of its own; silero-vad brings torch, which needs 6 GB.

In each round each engine runs all tasks of a package (packages.py) in a fresh process, in an order that changes from round to
round, pinned to THREADS processors, at a real-time priority where that is allowed. Sinter's cache folder is empty in the first
round. Results are what the package returns; they are equal where all texts and lists are, and the largest difference of their
numbers is given. Outputs are the arrays of all sessions in the first call. "First" is the time of the first call: Sinter's
converts the model for the shape, in the first round; with the files in the cache folder in the later ones.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / 'race')]
import environment  # noqa: E402
import results  # noqa: E402

WORK = ROOT / 'build' / 'dropin'
ENGINES = ('onnxruntime', 'sinter')
# basic-pitch asks for TensorFlow, which it does not use where it finds onnxruntime.
INSTALLED = {'silero-vad': ('silero-vad', 'soundfile', 'onnxruntime'), 'magika': ('magika',), 'rapidocr-onnxruntime': ('rapidocr-onnxruntime',),
             'basic-pitch': ('basic-pitch --no-deps', 'onnxruntime', 'librosa', 'mir_eval', 'pretty_midi', 'resampy', 'scikit-learn', 'scipy',
                             'typing_extensions', 'soundfile'),
             'nudenet': ('nudenet',), 'ddddocr': ('ddddocr',)}
MOST_PROCESSES = ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS')


def prepare(package):
    """Returns the interpreter of the package's environment, which is made if it is not there."""
    pins = {line.split('==')[0]: line for line in (HERE / 'requirements.txt').read_text().split('\n') if '==' in line}
    wanted = []
    for one in INSTALLED[package]:
        name, *flags = one.split()
        wanted.append(' '.join([pins[name], *flags]))
    WORK.mkdir(parents=True, exist_ok=True)
    failed = environment.make(WORK / package, sys.executable, wanted, ('--constraint', str(HERE / 'requirements.txt')))
    if failed:
        sys.exit(f'{package} cannot be installed: {failed}')
    return WORK / package / 'bin/python'


def runtime_folder(runtime):
    """Returns the folder that has the package sinter_runtime; a wheel is unpacked."""
    if runtime.is_dir():
        if not (runtime / 'sinter_runtime').is_dir():
            sys.exit(f'{runtime} has no folder sinter_runtime; give a wheel, or the folder that contains the package')
        return runtime
    folder = WORK / 'runtime'
    subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps', '--upgrade', '--disable-pip-version-check',
                    '--target', folder, runtime], check=True)
    return folder


def front(threads):
    """Returns the words before a command that pin it, and give it a real-time priority where that is allowed."""
    processors = sorted(os.sched_getaffinity(0))[-threads:]
    words = ['taskset', '-c', ','.join(map(str, processors))]
    probe = subprocess.run(['chrt', '-f', '50', 'true'], capture_output=True)
    return ['chrt', '-f', '50', *words] if probe.returncode == 0 else words


class Turns:
    """All that the turns of one package gave: times in seconds by engine and task, results, arrays."""

    def __init__(self, package, args, runtime):
        self.package, self.args = package, args
        self.python = prepare(package)
        self.first = {engine: {} for engine in ENGINES}  # lists, one entry for each round
        self.later = {engine: {} for engine in ENGINES}
        self.start = {engine: [] for engine in ENGINES}
        self.found = {}
        with tempfile.TemporaryDirectory(prefix='dropin-') as folder:
            self.folder = pathlib.Path(folder)
            self.environment = dict(os.environ, PYTHONPATH=str(runtime), SINTER_CACHE_DIR=f'{folder}/cache', DROPIN_FOLDER=folder,
                                    PYTHONDONTWRITEBYTECODE='1', **{name: str(args.threads) for name in MOST_PROCESSES})
            self.environment.pop('SINTER_ONNXRUNTIME_FALLBACK', None)
            for round_ in range(args.rounds):
                for engine in ENGINES if round_ % 2 == 0 else ENGINES[::-1]:
                    self.turn(engine, round_)
            # By task, the largest difference of arrays of sessions over their largest magnitude; None where shapes differ.
            self.outputs = json.loads(self.worker('compare', *(str(self.folder / f'{engine}.npz') for engine in ENGINES)))

    def worker(self, *arguments):
        """Returns what packages.py prints."""
        done = subprocess.run([*front(self.args.threads), self.python, HERE / 'packages.py', *arguments], capture_output=True, text=True,
                              env=self.environment, cwd=self.folder)
        if done.returncode:
            sys.exit(f'{self.package}: {" ".join(arguments)} failed:\n{done.stderr[-4000:]}')
        return done.stdout

    def turn(self, engine, round_):
        said = self.worker('run', self.package, engine, str(self.args.threads), str(self.args.seconds), str(self.folder / f'{engine}.npz'))
        report = json.loads(said[said.index('{"start"'):])  # behind what the package prints
        self.start[engine].append(report['start'])
        for task, times in report['tasks'].items():
            self.first[engine].setdefault(task, []).append(times['first'])
            self.later[engine].setdefault(task, []).append(times['later'])
        results_ = {task: times['result'] for task, times in report['tasks'].items()}
        if self.found.setdefault(engine, results_) != results_:
            sys.exit(f'{self.package} with {engine} gives other results in round {round_ + 1} than in the first one')

    def same(self, task):
        """Returns the largest difference of numbers in the two results; None where they differ in texts or sizes."""
        return difference(self.found['onnxruntime'][task], self.found['sinter'][task])


def difference(a, b):
    """Returns the largest difference of numbers; None where anything else differs."""
    if isinstance(a, (list, dict)):
        if type(a) is not type(b) or len(a) != len(b) or isinstance(a, dict) and a.keys() != b.keys():
            return None
        pairs = [difference(a[i], b[i]) for i in (a if isinstance(a, dict) else range(len(a)))]
        return None if None in pairs else max(pairs, default=0.0)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and not isinstance(a, bool):
        return abs(a - b)
    return 0.0 if a == b else None


def pair(times):
    """Returns the least time and, in brackets, the median of the rounds' medians, in milliseconds."""
    return f'{number(min(map(min, times)))} ({number(statistics.median(map(statistics.median, times)))})'


def number(seconds):
    ms = 1e3 * seconds
    return f'{ms:.0f}' if ms >= 100 else f'{ms:.3g}'


def rows_of(turns):
    for task in turns.found['sinter']:
        real, ours = turns.later['onnxruntime'][task], turns.later['sinter'][task]
        first = turns.first['sinter'][task]
        same, outputs = turns.same(task), turns.outputs[task]
        ratio = min(map(min, real)) / min(map(min, ours))
        yield [turns.package, task, 'other' if same is None else 'equal' if same == 0 else f'{same:.1g}',
               'other' if outputs is None else f'{outputs:.1g}', number(min(turns.first['onnxruntime'][task])), number(first[0]),
               number(min(first[1:])) if len(first) > 1 else '-', pair(real), pair(ours), f'{ratio:.2f}']


NOTES = [
    'Times are in milliseconds: the least one, and the median in brackets. `first` is the time of the first call, with the conversion, and '
    "`from the cache` that of later processes. The ratio is onnxruntime's least time over Sinter's.",
    "`result` is the largest difference of the numbers that the package returns; its texts and lists are equal unless it is 'other'. "
    '`outputs` is the largest difference in the arrays of its sessions, over the largest number.',
    "ddddocr's default and old models were quantized dynamically: 21 ConvInteger and a DynamicQuantizeLSTM. Three quarters of Sinter's time "
    'is the LSTM, which it computes in float32, where onnxruntime rounds x and h to 8 bits at each step. Their outputs differ because a number '
    'that is halfway between two of 255 steps is rounded by its last bit: `bench/dropin/last_bits.py` moves the constants of the model by '
    'one last bit, which changes the outputs of onnxruntime alone by as much (0.014, 0.016 and 0.021 for three widths of the picture, where '
    'onnxruntime and Sinter differ by 0.003, 0.007 and 0.011).',
]
COLUMNS = ['package', 'task', 'result', 'outputs', 'first: onnxruntime', 'first: Sinter', 'from the cache', 'onnxruntime', 'Sinter', 'ratio']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--runtime', type=pathlib.Path, required=True, help='a wheel of sinter_runtime, or a folder with the package')
    parser.add_argument('--only', action='append', choices=sorted(INSTALLED), help='these packages; all without it')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=0.5, help='of later calls of each task in each round')
    parser.add_argument('--results', help='where to write the result')
    args = parser.parse_args()
    runtime = runtime_folder(args.runtime.resolve())
    lines = ['| ' + ' | '.join(COLUMNS) + ' |', '|' + ' --- |' * len(COLUMNS)]
    print('\n'.join(lines), flush=True)
    wrong = 0
    for package in args.only or INSTALLED:
        for row in rows_of(Turns(package, args, runtime)):
            wrong += row[2] == 'other'
            lines.append('| ' + ' | '.join(row) + ' |')
            print(lines[-1], flush=True)
    if args.results:
        results.store(args.results, "Packages with Sinter in place of onnxruntime", {'packages': lines}, notes=NOTES)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
