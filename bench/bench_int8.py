#!/usr/bin/env python3
"""Times models converted to float32 and to int8 against each other, in the same run.

    bench/bench_int8.py --sinter build/release/bin/sinter [--only NAME]... [--skip NAME]... [--rounds 5] [--seconds 0.3] [--layers]
                        [--json FILE] [--markdown docs/benchmarks.md] [-- FLAG OF sinter convert]...

Models and inputs are those of bench_models.py. int8 is calibrated on a few disturbed copies of the input: what a
model computes does not matter here, only how long it takes. In every round both files are timed, in an order that
changes from round to round, on one thread pinned to one core; the ratio is the median over the rounds of int8 over
float, and each time is the minimum over all rounds. --layers: where the time goes, by kind of operation.
"""
import argparse
import collections
import json
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'bench'))
from bench_models import call, cpu, last_line, sig  # noqa: E402
from markdown_table import commit  # noqa: E402

SAMPLES = 8
HEADING = '\n## int8 against float32\n'


def disturbed(inputs):
    """Stacks of samples, as --calibrate and --each take them."""
    import numpy as np
    rng = np.random.RandomState(0)
    out = {}
    for name, x in inputs.items():
        copies = [x]
        for _ in range(SAMPLES - 1):
            if x.dtype.kind == 'f':
                noise = rng.standard_normal(x.shape) * (x.std() or 1.0)
                copies.append((0.8 * x + 0.3 * noise).clip(x.min(), x.max()).astype(x.dtype))
            else:
                copies.append(x)
        one = x.ndim > 0 and x.shape[0] == 1
        out[name] = np.concatenate(copies) if one else np.stack(copies)
    return out


def profile(sinter, path, samples, core):
    """Microseconds a run by kind of operation."""
    r = call([sinter, 'run', path, '--inputs', samples, '--each', '--profile', '--json'], core)
    times = collections.Counter()
    if r.returncode:
        return times
    for step in json.loads(r.stdout)['profile']:
        times[f"{step['op']} ({step['backend']})"] += step['us'] / SAMPLES
    return times


def bench_one(model, args, folder):
    import numpy as np
    entry = dict(name=model['name'])
    samples, one = folder / 'samples.npz', folder / 'one.npz'
    np.savez(samples, **disturbed(model['inputs']))
    np.savez(one, **model['inputs'])
    files = dict(float=folder / 'float.sinter', int8=folder / 'int8.sinter')
    flags = dict(float=[], int8=['--quantize', 'int8', '--calibrate', samples, *args.flags])
    for kind, path in files.items():
        r = call([args.sinter, 'convert', model['path'], '-o', path, '--quiet', *model['flags'], *flags[kind]], timeout=900)
        if r.returncode:
            return entry | dict(skipped=f'no {kind} file: ' + last_line(r))
    times, ratios = dict(float=[], int8=[]), []
    for k in range(args.rounds):
        kinds = list(files) if k % 2 == 0 else list(files)[::-1]
        for kind in kinds:
            r = call([args.sinter, 'bench', files[kind], '--inputs', one, '--threads', 1, '--seconds', args.seconds, '--json'],
                     args.core)
            if r.returncode:
                return entry | dict(skipped=f'{kind} does not run: ' + last_line(r))
            times[kind].append(json.loads(r.stdout))
        ratios.append(times['int8'][-1]['median_ms'] / times['float'][-1]['median_ms'])
    for kind in files:
        entry[kind + '_us'] = 1e3 * min(t['min_ms'] for t in times[kind])
        entry[kind + '_arena'] = times[kind][0]['arena_bytes']
        entry[kind + '_bytes'] = files[kind].stat().st_size
    entry['ratio'] = statistics.median(ratios)
    entry['least_ratio'] = entry['int8_us'] / entry['float_us']
    if args.layers:
        entry['layers'] = {kind: profile(args.sinter, path, samples, args.core) for kind, path in files.items()}
    return entry


def markdown(result, command):
    rows = [f"| {e['name']} | {sig(e['float_us'])} | {sig(e['int8_us'])} | {e['ratio']:.2f} | {e['least_ratio']:.2f} |"
            for e in result['models'] if 'skipped' not in e]
    notes = [f"- {e['name']}: {e['skipped']}" for e in result['models'] if 'skipped' in e]
    text = [HEADING, '    ' + command, '', f"At {result['commit']} on {result['cpu']}, one thread, {result['rounds']} alternating rounds. The ratio is",
            'int8 over float32, by the medians of the rounds, and by the minimum times.', '',
            '| model | float32, us | int8, us | ratio | of minima |', '| --- | ---: | ---: | ---: | ---: |', *rows, '']
    return '\n'.join(text + (['Not timed:', '', *notes, ''] if notes else []))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sinter', required=True)
    parser.add_argument('--only', action='append', help='a part of a model name; may be repeated')
    parser.add_argument('--skip', action='append', default=[], help='a part of a model name; may be repeated')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.3)
    parser.add_argument('--core', default='1')
    parser.add_argument('--layers', action='store_true')
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--markdown', type=pathlib.Path)
    parser.add_argument('flags', nargs='*', help='for sinter convert --quantize int8')
    args = parser.parse_args()
    args.sinter = pathlib.Path(args.sinter).resolve()
    import model_list
    result = dict(commit=commit(), cpu=cpu(), rounds=args.rounds, models=[])
    for model in model_list.models():
        if args.only and not any(word in model['name'] for word in args.only):
            continue
        if 'absent' in model or any(word in model['name'] for word in args.skip):
            continue
        with tempfile.TemporaryDirectory() as folder:
            entry = bench_one(model, args, pathlib.Path(folder))
        result['models'].append(entry)
        if 'skipped' in entry:
            print(f"{entry['name']:28s} {entry['skipped']}", flush=True)
            continue
        print(f"{entry['name']:28s} float {sig(entry['float_us']):>6s} us  int8 {sig(entry['int8_us']):>6s} us  "
              f"ratio {entry['ratio']:.2f} (least {entry['least_ratio']:.2f})", flush=True)
        for kind, times in entry.get('layers', {}).items():
            print(f'  {kind:5s}', ', '.join(f'{op} {sig(t)}' for op, t in times.most_common(12)), flush=True)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + '\n')
    if args.markdown:
        written = args.markdown.read_text() if args.markdown.exists() else ''
        before, _, rest = written.partition(HEADING)
        after = rest[rest.find('\n## '):] if '\n## ' in rest else ''
        args.markdown.write_text(before + markdown(result, 'bench/bench_int8.py ' + ' '.join(sys.argv[1:])) + after)


if __name__ == '__main__':
    main()
