#!/usr/bin/env python3
"""Times Sinter and onnxruntime on the same models, side by side in the same run.

    bench/bench_models.py --sinter build/release/bin/sinter [--only NAME]... [--rounds 5] [--seconds 0.5]
                          [--json FILE] [--markdown docs/benchmarks.md]

Models: examples/digits, and those of SINTER_SHARED/models (default ../shared), with the conversion flags and
input recipes of tests/models/models.tsv; what is absent is reported and skipped. Needs numpy and onnxruntime (the
venv of the tests has both).

Each measurement is a process of its own, pinned to as many cores as it has threads. In every round both runtimes
take their turn, in an order that changes from round to round, so that a slow phase of the machine hits both. A
round's figure is the median of its runs; the table gives the median over the rounds, and the minimum over all runs.
"file to ready" is from the path to a session that can run (for onnxruntime: InferenceSession(path), without
Python's import); "file to first result" adds the first run. Outputs are compared with onnxruntime's (optimizations
off: with them it quantizes otherwise than the file states) before anything is timed; differences are marked.
"""
import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def worker(model, inputs, threads, seconds):
    """One onnxruntime measurement; prints the fields of `sinter bench --json`."""
    import numpy as np
    import onnxruntime as ort
    feeds = dict(np.load(inputs))
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    begin = time.perf_counter()
    session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
    ready = time.perf_counter()
    names = [o.name for o in session.get_outputs()]
    session.run(names, feeds)
    first = time.perf_counter()
    # Values stay bound, so that Python's conversion of arrays is not timed.
    binding = session.io_binding()
    for name in feeds:
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(feeds[name]))
    for name in names:
        binding.bind_output(name)
    for _ in range(3):
        session.run_with_iobinding(binding)
    times, end = [], time.perf_counter() + seconds
    while len(times) < 10 or (time.perf_counter() < end and len(times) < 100000):
        t = time.perf_counter()
        session.run_with_iobinding(binding)
        times.append(time.perf_counter() - t)
    print(json.dumps(dict(model=model, backend='onnxruntime ' + ort.__version__, threads=threads, runs=len(times),
                          median_ms=1e3 * statistics.median(times), min_ms=1e3 * min(times),
                          load_ms=1e3 * (ready - begin), first_ms=1e3 * (first - begin),
                          peak_rss_bytes=1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)))


def call(command, cores=None, timeout=600):
    if cores:
        command = ['taskset', '-c', cores, *command]
    try:
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, '', f'took longer than {timeout} s')


def last_line(result):
    lines = (result.stderr + result.stdout).strip().splitlines()
    return lines[0][:160] if lines else f'exit code {result.returncode}'


def differs(a, b):
    """Largest difference of two dicts of arrays, over the largest magnitude of the expected one (b)."""
    import numpy as np
    worst = 0.0
    for name, want in b.items():
        if name not in a or a[name].shape != want.shape:
            return float('inf')
        if not want.size or want.dtype.kind not in 'fiub':
            continue
        got, want = a[name].astype(np.float64), want.astype(np.float64)
        scale = np.nanmax(np.abs(want)) or 1.0
        worst = max(worst, float(np.nanmax(np.abs(got - want)) / scale))
    return worst


def bench_one(model, args, folder):
    import numpy as np
    import onnxruntime as ort
    entry = dict(name=model['name'], onnx_bytes=model['path'].stat().st_size)
    for data in model['path'].parent.glob(model['path'].name + '*data'):
        entry['onnx_bytes'] += data.stat().st_size
    out, npz = folder / 'm.sinter', folder / 'in.npz'
    begin = time.perf_counter()
    r = call([args.sinter, 'convert', model['path'], '-o', out, '--quiet', *model['flags']])
    entry['convert_ms'] = 1e3 * (time.perf_counter() - begin)
    if r.returncode:
        return entry | dict(skipped='not converted: ' + last_line(r))
    entry['sinter_bytes'] = out.stat().st_size
    np.savez(npz, **model['inputs'])
    want = None
    try:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(str(model['path']), options, providers=['CPUExecutionProvider'])
        names = [o.name for o in session.get_outputs()]
        want = dict(zip(names, session.run(names, model['inputs'])))
        del session
    except Exception as e:  # onnxruntime refuses some of the models, with an exception of its own type
        entry['onnxruntime_refuses'] = str(e).splitlines()[0][:200]
    r = call([args.sinter, 'run', out, '--inputs', npz, '--outputs', folder / 'out.npz', '--quiet'])
    if r.returncode:
        return entry | dict(skipped='does not run: ' + last_line(r))
    if want is not None:
        entry['difference'] = differs(dict(np.load(folder / 'out.npz')), want)
    rounds = {}
    for k in range(args.rounds):
        for threads in args.threads:
            cores = ','.join(args.cores.split(',')[:threads])
            sinter = [args.sinter, 'bench', out, '--inputs', npz, '--threads', threads, '--seconds', args.seconds, '--json']
            if args.backend:
                sinter += ['--backend', args.backend]
            theirs = [sys.executable, __file__, '--worker', model['path'], npz, threads, args.seconds]
            turns = [('sinter', sinter)] + ([('onnxruntime', theirs)] if want is not None else [])
            for who, command in turns if k % 2 == 0 else turns[::-1]:
                r = call(command, cores)
                if r.returncode:
                    return entry | dict(skipped=f'{who} failed: ' + last_line(r))
                rounds.setdefault((who, threads), []).append(json.loads(r.stdout))
    for (who, threads), got in rounds.items():
        entry[f'{who}_{threads}'] = {key: (min if key == 'min_ms' else statistics.median)([g[key] for g in got])
                                     for key in got[0] if isinstance(got[0][key], (int, float))}
        entry[f'{who}_{threads}']['rounds_median_ms'] = [g['median_ms'] for g in got]
    return entry


def sig(x):
    return f'{x:.3g}' if x < 1000 else f'{x:.0f}'


def markdown(result, command):
    rows, notes, first = [], [], result['threads'][0]
    for e in result['models']:
        if 'skipped' in e:
            notes.append(f"- {e['name']}: {e['skipped']}")
            continue
        mark = ' (+)' if 'difference' not in e else '' if e['difference'] <= 1e-4 else ' (*)'
        cells = [e['name'] + mark]

        def pair(key):
            return ' / '.join(sig(e[who][key]) if who in e else '-' for who in (f'sinter_{first}', f'onnxruntime_{first}'))
        for t in result['threads']:
            s, o = e[f'sinter_{t}'], e.get(f'onnxruntime_{t}')
            cells += [f"{sig(1e3 * x['median_ms'])} ({sig(1e3 * x['min_ms'])})" if x else '-' for x in (s, o)]
            cells += [f"{o['median_ms'] / s['median_ms']:.2f}" if o else '-']
        cells += [pair('load_ms'), pair('first_ms'), sig(e['convert_ms']),
                  f"{e['onnx_bytes'] / 1e3:.0f} / {e['sinter_bytes'] / 1e3:.0f}",
                  f"{e[f'sinter_{first}']['arena_bytes'] / 1e3:.0f}"]
        rows.append('| ' + ' | '.join(cells) + ' |')
    head = ['model']
    for t in result['threads']:
        head += [f'Sinter, {t}T, us', f'ORT, {t}T, us', 'ORT / Sinter']
    head += ['file to ready, ms (Sinter / ORT)', 'file to first result, ms (Sinter / ORT)', 'convert, ms',
             'ONNX / .sinter, kB', 'arena, kB']
    text = ['# Benchmarks', '', 'Written by', '', '    ' + command, '',
            f"at {result['commit']} on {result['cpu']}, {result['rounds']} alternating rounds, against onnxruntime "
            f"{result['onnxruntime']}. Times are",
            'medians over the rounds, in brackets the fastest single run; "ORT / Sinter" above 1 means that Sinter is',
            'faster. `bench/bench_models.py` states how each figure is taken. Absolute times hold for this machine only.', '',
            '| ' + ' | '.join(head) + ' |', '|' + ' --- |' + ' ---: |' * (len(head) - 1), *rows, '']
    if any('(*)' in r for r in rows):
        text += ['(*) differs from onnxruntime (optimizations off) by more than 1e-4 of the largest magnitude with these inputs: '
                 + ', '.join(f"{e['name']} {e['difference']:.1e}" for e in result['models']
                             if e.get('difference', 0) > 1e-4 and 'skipped' not in e) + '.', '']
    for e in result['models']:
        if 'onnxruntime_refuses' in e and 'skipped' not in e:
            text += [f"(+) onnxruntime refuses {e['name']}: {e['onnxruntime_refuses']}", '']
    if notes:
        text += ['Not timed:', '', *notes, '']
    return '\n'.join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sinter', required=True)
    parser.add_argument('--only', action='append', help='a part of a model name; may be repeated')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.5, help="how long a timed loop lasts")
    parser.add_argument('--threads', type=lambda s: [int(t) for t in s.split(',')], default=[1, 2])
    parser.add_argument('--cores', default='0,1')
    parser.add_argument('--backend')
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--markdown', type=pathlib.Path)
    args = parser.parse_args()
    args.sinter = pathlib.Path(args.sinter).resolve()
    sys.path.insert(0, str(ROOT / 'bench'))
    import model_list
    import onnxruntime
    from markdown_table import commit

    result = dict(commit=commit(), cpu=cpu(), threads=args.threads, rounds=args.rounds, onnxruntime=onnxruntime.__version__, models=[])
    for model in model_list.models():
        if args.only and not any(word in model['name'] for word in args.only):
            continue
        if 'absent' in model:
            entry = dict(name=model['name'], skipped=model['absent'])
        else:
            with tempfile.TemporaryDirectory() as folder:
                entry = bench_one(model, args, pathlib.Path(folder))
        result['models'].append(entry)
        t = args.threads[0]
        if 'skipped' in entry:
            outcome = entry['skipped']
        else:
            outcome = f"sinter {sig(1e3 * entry[f'sinter_{t}']['median_ms'])} us"
            if 'difference' in entry:
                outcome += f", onnxruntime {sig(1e3 * entry[f'onnxruntime_{t}']['median_ms'])} us, difference {entry['difference']:.1e}"
        print(f"{entry['name']:28s} {outcome}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + '\n')
    if args.markdown:
        shown = [a for a in sys.argv[1:]]
        written = args.markdown.read_text() if args.markdown.exists() else ''
        remarks = written[written.find('\n## '):] if '\n## ' in written else ''
        args.markdown.write_text(markdown(result, 'bench/bench_models.py ' + ' '.join(shown)) + remarks)


def cpu():
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return f"{line.split(':')[1].strip()} ({os.cpu_count()} cores, {platform.machine()})"
    return platform.machine()


if __name__ == '__main__':
    if sys.argv[1:2] == ['--worker']:
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
