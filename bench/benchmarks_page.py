#!/usr/bin/env python3
"""Write docs/benchmarks.md from the results of the benchmarks, bench/results/*.json.

    benchmarks_page.py            rewrites the page
    benchmarks_page.py --check    exit code 1 if the page is not what this would write
"""
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'scripts'))
from generated_doc import write_or_check  # noqa: E402

RACES = ('race-epyc-avx512', 'race-epyc-avx2-capped', 'race-epyc-avx2', 'race-xeon-avx512')
SHORT_MS = 1.0
LONGEST = 220  # lines of the page
# Networks of which float32 takes less on one thread are in the results alone.
SHOWN_US = 200
LINKED = set()  # names of the results that the page has shown


def load(name):
    return json.loads((ROOT / f'bench/results/{name}.json').read_text())


def notes_of(name, begin=''):
    """The result's notes that begin so, as items of a list."""
    return [f'- {note}' for note in load(name).get('notes', []) if note.startswith(begin)]


def rows_of(name, table=None):
    tables = load(name)['tables']
    return tables[table or next(iter(tables))]['rows']


def number(text):
    """The first number of a cell such as '1,234 (1,300) litert'; None where it has none."""
    found = re.match(r'-?[\d,]*\.?\d+', str(text))
    return float(found[0].replace(',', '')) if found else None


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def lines_of(head, rows, text_columns=1):
    line = '| ' + ' | '.join(['---'] * text_columns + ['---:'] * (len(head) - text_columns)) + ' |'
    return ['| ' + ' | '.join(head) + ' |', line] + ['| ' + ' | '.join(map(str, row)) + ' |' for row in rows]


def link(name, text):
    LINKED.add(name)
    return f'[{text}](../bench/results/{name}.json)'


def provenance(name):
    """Where and when a result was measured, as a link to it."""
    r = load(name)
    return link(name, f"{r['machine']}, {r['date']}, at {r['commit']}")


class Race:
    """One race. A ratio is the fastest other runtime's time over Sinter's: above 1 Sinter is faster."""

    def __init__(self, name):
        self.result = load(name)
        tables = self.result['tables']
        # (precision, threads) -> network -> (Sinter's microseconds, ratio)
        self.times = {(precision, threads): {row[0]: (number(row[at]), number(row[at + 1]) / number(row[at])) for row in tables[precision]['rows']
                                             if number(row[at]) is not None}
                      for precision in ('float32', 'int8') if precision in tables for threads, at in ((1, 1), (2, 4))}

    def score(self, key, short):
        """Networks, those that Sinter runs fastest, geometric mean and lowest ratio, of short or long runs."""
        ratios = [ratio for us, ratio in self.times[key].values() if (us < 1e3 * SHORT_MS) == short]
        return [len(ratios), sum(r >= 1 for r in ratios), f'{mean(ratios):.2f}', f'{min(ratios):.2f}']

    def losses(self):
        """By precision and threads: the networks that another runtime runs faster."""
        parts = []
        for (precision, threads), networks in self.times.items():
            lost = [f'{name} {ratio:.2f}' for name, (_, ratio) in networks.items() if ratio < 1]
            parts.append(f"{precision}, {threads} thread{'s' * (threads > 1)}: {', '.join(lost) or 'none'}")
        return '; '.join(parts)

    def cell(self, precision, threads, network):
        us, ratio = self.times[precision, threads].get(network, (None, None))
        return '-' if us is None else f'{us:,.0f}, {ratio:.2f}' if us >= 100 else f'{us:.3g}, {ratio:.2f}'


def races():
    by_name = {name: Race(name) for name in RACES}
    rows = [[race.result['title'].removeprefix('Race on '), f'{precision}, {threads}', *race.score((precision, threads), True),
             *race.score((precision, threads), False)] for race in by_name.values() for precision, threads in race.times]
    out = ['## Races with other runtimes', '',
           'Each network is run by Sinter, onnxruntime, OpenVINO, LiteRT, MNN, ncnn and tract in turns, each in a fresh process. A',
           "*ratio* is the fastest other runtime's minimum time over Sinter's: above 1 Sinter is faster. A runtime whose results are wrong",
           'does not count. Means are geometric. Runs below 1 ms measure the cost of a call and of small kernels, those above it products.', '',
           *lines_of(['processor', 'precision, threads', 'below 1 ms: networks', 'fastest', 'mean', 'lowest', 'from 1 ms on: networks', 'fastest',
                      'mean', 'lowest'], rows, 2), '']
    out += ['Time of each runtime over that of Sinter in the first two races, geometric mean (networks that it computes right):', '']
    first, second = (load(name)['tables']['runtimes'] for name in RACES[:2])
    capped = {row[0]: row for row in second['rows']}
    rows = [[row[0], row[1], row[2], *row[3:7], *capped[row[0]][3:7], row[7], row[8]] for row in first['rows'] if row[0] != 'sinter']
    head = [f'{kind}{column}' for kind in ('', 'AVX2: ') for column in first['columns'][3:7]]
    out += lines_of(['runtime', 'version', 'library, MB', *head, 'no file or failed', 'wrong'], rows, 2)
    out += ['', '### Where Sinter is slower', '']
    for name, race in by_name.items():
        out.append(f"- **{race.result['title'].removeprefix('Race on ')}** ({provenance(name)}): {race.losses()}.")
    out += ['', 'Causes and remarks, race by race:', '']
    out += [note for name in RACES for note in notes_of(name)]
    return out + ['', *networks(by_name), '', *start()]


def networks(by_name):
    full, capped = by_name[RACES[0]], by_name[RACES[1]]
    keys = [(race, precision, threads) for race in (full, capped) for precision, threads in race.times]
    names = [name for name, (us, _) in full.times['float32', 1].items() if us >= SHOWN_US]
    rows = [[name, *(race.cell(precision, threads, name) for race, precision, threads in keys)] for name in names]
    head = [f"{'AVX2: ' * (race is capped)}{precision}, {threads}" for race, precision, threads in keys]
    return ['### Networks', '', "Sinter's time in microseconds, and the ratio, in the first two races; shorter networks are in the results.", '',
            *lines_of(['network', *head], rows)]


def start():
    """Ratios of the times to start and of memory, by race."""
    rows = []
    for name in RACES:
        found = rows_of(name, 'start')
        row = [load(name)['title'].removeprefix('Race on ')]
        for at in (1, 3, 5):
            ratios = [(number(r[at + 1]) / number(r[at]), r[0]) for r in found if number(r[at + 1]) is not None and number(r[at])]
            worst = [f'{network} {ratio:.2f}' for ratio, network in sorted(ratios) if ratio < 1]
            row.append(f"{mean([ratio for ratio, _ in ratios]):.1f}" + (f" ({', '.join(worst)})" if worst else ''))
        rows.append(row)
    return ['### Start and memory', '',
            'From file to ready, from file to first result, and the memory that loading and one run add: the best other runtime over Sinter,',
            'geometric mean (networks on which another one is better); float32, one thread.', '',
            *lines_of(['processor', 'ready', 'first result', 'memory'], rows)]


def decoders():
    found, model, rows = rows_of('decoders'), None, {}
    for row in found:
        model = row[0] or model
        program = row[1].split(',')[0]
        fails = 'kernel' in str(row[6])
        rows.setdefault(model, {})[program, row[2]] = '-' if fails else f'{number(row[9])}'
        if program == 'Sinter':
            rows[model]['start', row[2]] = f'{row[7]:,}'
        elif program == 'ONNX Runtime' and not fails:
            rows[model]['rival', row[2]] = f'{row[6] + row[7]:,}'
    programs = ('Sinter', 'ONNX Runtime', 'ggml')
    head = ['weights, GB'] + [f'{p}, {t} thread{"s" * (t > 1)}' for t in (1, 2) for p in programs]
    lines = [[name, *(cells.get((p, t), '-') for t in (1, 2) for p in programs), cells['start', 1], cells.get(('rival', 1), '-')]
             for name, cells in rows.items()]
    return ['## Language models', '', 'Tokens per second (the fastest token), and milliseconds from the file to the first token on one thread.',
            f"{provenance('decoders')}; ONNX Runtime 1.31, ggml d99724f2.", '',
            *lines_of([*head, 'Sinter: first token, ms', 'ONNX Runtime: first token, ms'], lines), '',
            *notes_of('decoders', 'ggml'), '']


def prefill():
    def spread(table, weights, column):
        values = [row[column] for row in table['rows'] if row[0] == weights and row[column] is not None]
        return f'{min(values):.2f} to {max(values):.2f}' if values else '-'
    def dynamic(kind):
        return spread(load('prefill-dynamic')['tables']['products'], kind, 5)
    full, capped = (load(name)['tables']['products'] for name in ('prefill', 'prefill-avx2'))
    rows = [[weights, spread(full, weights, 5), spread(full, weights, 7), spread(capped, weights, 5)]
            for weights in dict.fromkeys(row[0] for row in full['rows'])]
    return ['Products of 128 and 512 rows, as of a prompt, on one and two threads: time of the other runtime over that of Sinter with int8',
            f"activations. {provenance('prefill')}; AVX2: {provenance('prefill-avx2')}.", '',
            *lines_of(['weights', 'ONNX Runtime', 'ggml', 'AVX2: ONNX Runtime'], rows), '', *notes_of('prefill-avx2', 'onnxruntime'),
            f"- As `quantize_dynamic` writes them, with 1, 128 and 512 rows: {dynamic('AVX-512, VNNI')} with AVX-512, {dynamic('AVX2')} with AVX2 "
            f"({provenance('prefill-dynamic')}).", '']


def gpu():
    columns, rows = load('cuda-h200')['tables']['networks, us'].values()
    return ['## NVIDIA GPU', '', f"Microseconds: medians, in brackets minima. {provenance('cuda-h200')}.", '',
            *lines_of(columns[:6], [[('-' if c in ('–', None) else c) for c in row[:6]] for row in rows]), '',
            *notes_of('cuda-h200')[:5], '']


def arm():
    rows = rows_of('arm-instructions', 'networks')
    ratios, saved = [r[2] for r in rows], [r[4] for r in rows]
    lost = ', '.join(f'{r[0]} ({r[2]:.2f})' for r in rows if r[2] < 1)
    return (f'- **ARM**: no board has been measured. On {len(rows)} networks in float32, the best of MNN, ncnn and OpenVINO executes '
            f'{mean(ratios):.2f} times as many instructions as Sinter (geometric mean; {min(ratios):.2f} to {max(ratios):.2f}), fewer on {lost or "none"}. '
            f"Sinter's int8 takes {mean(saved):.2f} of its float32 ({min(saved):.2f} to {max(saved):.2f}). {provenance('arm-instructions')}.")


def drop_in():
    """By package: ratios of onnxruntime's times to Sinter's, and the slowest first call."""
    found = load('drop-in')['tables']['packages']
    at = {column: i for i, column in enumerate(found['columns'])}
    packages = {}
    for row in found['rows']:
        packages.setdefault(row[0], []).append(row)
    rows = []
    for name, tasks in packages.items():
        ratios = [number(row[at['ratio']]) for row in tasks]
        other = [row[1] for row in tasks if row[at['result']] == 'other']
        slowest = max(tasks, key=lambda row: number(row[at['first: Sinter']]))
        rows.append([name, len(tasks), ', '.join(other) or 'none', max((row[at['outputs']] for row in tasks), key=lambda cell: math.inf if cell == 'other' else float(cell)),
                     f'{mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})', sum(ratio < 1 for ratio in ratios),
                     *(slowest[at[column]] for column in ('first: onnxruntime', 'first: Sinter', 'from the cache'))])
    head = ['package', 'tasks', 'other results', 'outputs differ by', 'ratio', 'slower', 'slowest first call, ms: onnxruntime', 'Sinter', 'with the cache']
    return ['## In place of onnxruntime', '',
            'Packages of PyPI, unmodified, with their own models, on one thread. A ratio is the time of a call of the package with onnxruntime over',
            'that with Sinter: above 1 Sinter is faster. The time includes what the package does itself. Outputs: of the models, relative to the largest number.', '',
            *lines_of(head, rows), '', *notes_of('drop-in'), '', f"{provenance('drop-in')}, all tasks.", '']


def accuracy():
    found = load('accuracy')['tables']['quantizers']
    at = {column: i for i, column in enumerate(found['columns'])}

    def decibels(text):
        inside = re.search(r'(-?[\d.]+) dB', str(text or ''))
        return float(inside[1]) if inside else None
    others = ('ORT default', 'ORT per-channel', 'ORT pc 99.99 %', 'ORT pc symmetric', 'NNCF', 'best known 8-bit')
    gains = {row[0]: decibels(row[at['Sinter']]) - max(d for o in others if (d := decibels(row[at[o]])) is not None)
             for row in found['rows'] if any(decibels(row[at[o]]) is not None for o in others)}
    lost = ', '.join(f'{name} ({gain:+.1f} dB)' for name, gain in gains.items() if gain < 0)
    return (f'- **Accuracy of int8**: on {len(gains)} networks, the worst output of Sinter\'s quantized model has a higher signal-to-noise ratio than '
            f'that of any 8-bit setting of onnxruntime, of NNCF and of the best known quantizer, by {sorted(gains.values())[len(gains) // 2]:.1f} dB at '
            f"the median; exceptions: {lost or 'none'}. {provenance('accuracy')}.")


def microcontrollers():
    rows = rows_of('tflm')
    return (f'- **Microcontrollers**: a session takes {min(r[2] / r[1] for r in rows):.2f} to {max(r[2] / r[1] for r in rows):.2f} of the arena of '
            f'TensorFlow Lite Micro on {len(rows)} networks. {provenance("tflm")}.')


def results():
    rows = []
    for path in sorted((ROOT / 'bench/results').glob('*.json')):
        r = json.loads(path.read_text())
        if path.stem not in LINKED:
            rows.append([link(path.stem, r['title']), r['machine'], r['date'], r['commit']])
    return ['## Other results', '', *lines_of(['result', 'machine', 'date', 'commit'], rows, 4)]


def document():
    out = ['# Benchmarks', '',
           'This page is generated from the files in `bench/results/`, which the benchmarks write; do not edit it. The files have',
           'all numbers, the commands, and notes on how the numbers are to be read. [`bench/README.md`](../bench/README.md) describes the programs.', '']
    out += races() + [''] + drop_in() + decoders() + prefill() + gpu()
    out += ['## ARM, accuracy, microcontrollers', '', arm(), accuracy(), microcontrollers(), '']
    out += results()
    if len(out) > LONGEST:
        sys.exit(f'docs/benchmarks.md would have {len(out)} lines, more than {LONGEST}')
    return '\n'.join(out) + '\n'


if __name__ == '__main__':
    sys.exit(write_or_check('docs/benchmarks.md', document, __doc__))
