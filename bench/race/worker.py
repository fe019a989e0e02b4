"""Runs one rival: a process that imports it once and starts a fresh copy of itself for each measurement.

    worker.py RIVAL

Reads one JSON object a line, prints one a line. A measurement: {"folder", "inputs", "threads", "cores", "seconds", "save"}
-> {"load_ms", "first_ms", "median_ms", "min_ms", "runs", "added_bytes"}; a conversion: {"maker", "flavour", "source",
"samples", "folder"} -> {}. Where it fails: {"error"}. The times of the copy start when the rival has been imported, so that neither
Python's start nor the import counts; `added_bytes` is the peak of resident memory above what it was then.
"""
import glob
import importlib
import importlib.metadata
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

WARM_RUNS = 3
MINIMUM_RUNS = 2
SECONDS_OF_CHILD = 240


def status(field):
    return 1024 * int(re.search(field + r':\s+(\d+)', pathlib.Path('/proc/self/status').read_text()).group(1))


def load_arrays(path):
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays}


def timed_runs(run, prepare, seconds):
    """Seconds of each run."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < MINIMUM_RUNS or (time.perf_counter() < end and len(times) < 100000):
        prepare()
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return times


def measure(rival, job):
    os.sched_setaffinity(0, job['cores'])
    inputs = load_arrays(job['inputs'])
    before = status('VmRSS')
    pathlib.Path('/proc/self/clear_refs').write_text('5')  # the peak starts again from here
    begin = time.perf_counter()
    model = rival.Model(pathlib.Path(job['folder']), inputs, job['threads'])
    ready = time.perf_counter()
    model.run()
    first = time.perf_counter()
    prepare = getattr(model, 'prepare', lambda: None)
    added = max(0, status('VmHWM') - before)
    if first - ready < job['seconds']:
        for _ in range(WARM_RUNS):
            prepare()
            model.run()
    times = timed_runs(model.run, prepare, job['seconds'])
    if job.get('save'):
        np.savez(job['save'], **{str(name): value for name, value in model.outputs().items()})
    return dict(load_ms=1e3 * (ready - begin), first_ms=1e3 * (first - begin), median_ms=1e3 * statistics.median(times),
                min_ms=1e3 * min(times), runs=len(times), added_bytes=added)


def convert(_, job):
    stacks = load_arrays(job['samples'])
    count = len(next(iter(stacks.values())))
    samples = [{name: stack[i] for name, stack in stacks.items()} for i in range(count)]
    maker = importlib.import_module('rivals.' + job['maker'])
    maker.convert(job['flavour'], pathlib.Path(job['source']), samples, pathlib.Path(job['folder']))
    return {}


def child(rival, job, out):
    signal.alarm(SECONDS_OF_CHILD)
    null = os.open(os.devnull, os.O_WRONLY)
    log = tempfile.TemporaryFile('w+') if os.environ.get('SINTER_RACE_LOG') is None else None
    os.dup2(log.fileno() if log else 2, 1)
    os.dup2(log.fileno() if log else null, 2)
    try:
        result = (convert if 'flavour' in job else measure)(rival, job)
    except BaseException as e:  # whatever the rival throws is its result
        text = ' '.join(str(e).split()) or type(e).__name__
        result = dict(error=f'{type(e).__name__}: {text}'[:300])
    os.write(out, json.dumps(result).encode())
    os._exit(0)


def in_a_copy(rival, job):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        child(rival, job, write)
    os.close(write)
    text = b''
    while part := os.read(read, 1 << 16):
        text += part
    os.close(read)
    _, state = os.waitpid(pid, 0)
    if text:
        return json.loads(text)
    number = state & 0x7f
    return dict(error=f'took longer than {SECONDS_OF_CHILD} s' if number == signal.SIGALRM else f'crashed (signal {number})')


def stripped_bytes(patterns):
    site = pathlib.Path(np.__file__).parent.parent
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for pattern in patterns:
            for path in glob.glob(str(site / pattern)):
                copy = pathlib.Path(folder) / 'library'
                done = subprocess.run(['strip', '-o', copy, path], capture_output=True)
                total += (copy if done.returncode == 0 else pathlib.Path(path)).stat().st_size
    return total


def main():
    # What the rivals print themselves must not get between the answers.
    answers = os.fdopen(os.dup(1), 'w', buffering=1)
    os.dup2(2, 1)
    try:
        rival = importlib.import_module('rivals.' + sys.argv[1])
    except Exception as e:
        print(json.dumps(dict(error=f'{type(e).__name__}: {e}'[:300])), file=answers)
        return
    print(json.dumps(dict(version=importlib.metadata.version(rival.PACKAGE), library_bytes=stripped_bytes(rival.LIBRARIES),
                          flavours=rival.FLAVOURS, borrowed=getattr(rival, 'BORROWED', {}))), file=answers)
    for line in sys.stdin:
        print(json.dumps(in_a_copy(rival, json.loads(line))), file=answers)


if __name__ == '__main__':
    main()
