#!/usr/bin/env python3
"""What run_demo.sh prints: the figures of one conversion and run, from the files that the commands left.

    report.py EXAMPLE_FOLDER RESULTS_FOLDER

Exit code 1 if Sinter's answers are not the original's.
"""
import json
import pathlib
import sys

import npz

example, results = map(pathlib.Path, sys.argv[1:3])
labels = npz.load(example / 'digits_eval.npz')['label'][1]
(count, classes), original = npz.load(example / 'digits_expected.npz')['probabilities']


def read(name):
    path = results / name
    return json.loads(path.read_text()) if path.exists() and path.stat().st_size else {}


def answers(values):
    rows = [values[i * classes:(i + 1) * classes] for i in range(count)]
    return [max(range(classes), key=row.__getitem__) for row in rows]


def right(values):
    n = sum(a == b for a, b in zip(answers(values), labels))
    return f'{n} of {count} ({100 * n / count:.2f} %)'


def outputs(name):
    shape, values = npz.load(results / name)['probabilities']
    if shape != (count, classes):
        sys.exit(f'{name}: shape {shape}, expected {(count, classes)}')
    return values, max(abs(a - b) for a, b in zip(values, original))


def line(title, text):
    print(f'  {title:<11}{text}')


def graph():
    """What the converter did, from its report."""
    report = read('convert.json')
    line('graph', f"{report['onnx_nodes']} ONNX nodes became {report['lowered_nodes']} operations, these {report['steps']} steps, "
                  f"{report['elided_steps']} of them without any work")
    for entry in report['passes']:
        if entry['changes']:
            line('', f"{entry['pass']} ({entry['changes']}): {entry['what']}")


def size(n):
    return f'{n:,} bytes'


ours, difference = outputs('outputs.npz')
_, difference_reference = outputs('outputs_reference.npz')
same = sum(a == b for a, b in zip(answers(ours), answers(original)))
bench = read('bench.json')

print(f'Handwritten digits: a residual network, 8x8 grey images, {count} of them to evaluate\n')
graph()
line('accuracy', f'Sinter {right(ours)}; the original in onnxruntime {right(original)}; same answer on {same}')
line('difference', f'at most {difference:.1e} in any probability ({difference_reference:.1e} on the reference backend)')
line('size', f"ONNX {size((example / 'digits.onnx').stat().st_size)}, "
             f".sinter {size((results / 'digits.sinter').stat().st_size)}, arena {size(bench['arena_bytes'])}")
line('latency', f"{1e3 * bench['median_ms']:.1f} us median, {1e3 * bench['min_ms']:.1f} us at best, over {bench['runs']} runs "
                f"on one thread ({bench['backend']})")
line('start', f"{bench['load_ms']:.2f} ms from file to ready, {bench['first_ms']:.2f} ms to the first result")
if same != count or not difference <= 1e-4:
    sys.exit('Sinter does not give what the original gives.')
