"""The tables of a race: lines of Markdown, by name."""
import collections
import dataclasses
import math
import re

NAMES = {'float': 'float32', 'int8': 'int8'}


@dataclasses.dataclass
class Cell:
    """One network with one number of threads; times in milliseconds."""
    sinter: float
    sinter_median: float
    best: float
    best_median: float
    best_label: str
    ratio: float
    ratio_of_medians: float


def right(entry, threads):
    return entry['failure'] is None and str(threads) in {str(t) for t in entry['threads']}


def times(entry, threads):
    return entry['threads'].get(threads) or entry['threads'].get(str(threads))


def cell(result, threads):
    """None where Sinter or every rival fails."""
    if 'skipped' in result or not right(result['entries'][0], threads):
        return None
    own = times(result['entries'][0], threads)
    rivals = [(e, times(e, threads)) for e in result['entries'][1:] if right(e, threads)]
    if not rivals:
        return None
    entry, best = min(rivals, key=lambda pair: pair[1]['min_ms'])
    median = min(t['median_ms'] for _, t in rivals)
    return Cell(own['min_ms'], own['median_ms'], best['min_ms'], median, entry['label'], best['min_ms'] / own['min_ms'],
                median / own['median_ms'])


def us(ms):
    return sig(1e3 * ms)


def sig(x):
    return f'{x:.3g}' if x < 1000 else f'{x:,.0f}'


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float('nan')


def score_rows(report):
    rows = ['| precision, threads | networks | Sinter is the fastest on | geometric mean | lowest | of medians: geometric mean |',
            '| --- | ---: | ---: | ---: | ---: | ---: |']
    for precision, results in report['results'].items():
        for t in report['threads']:
            cells = [c for r in results if (c := cell(r, t))]
            if cells:
                ratios = [c.ratio for c in cells]
                rows.append(f'| {NAMES[precision]}, {t} | {len(cells)} | {sum(r >= 1 for r in ratios)} | {geometric_mean(ratios):.2f} | '
                            f'{min(ratios):.2f} | {geometric_mean([c.ratio_of_medians for c in cells]):.2f} |')
    return rows


def rival_rows(report):
    head = [f'{NAMES[p]}, {t}' for p in report['results'] for t in report['threads']]
    rows = ['| runtime | version | library, MB | ' + ' | '.join(head) + ' | no file or failed | wrong |',
            '| --- | --- | ---: |' + ' ---: |' * (len(head) + 2)]
    for name, about in report['contestants'].items():
        cells, failed, wrong = [], 0, 0
        for results in report['results'].values():
            for t in report['threads']:
                ratios = []
                for result in results:
                    if 'skipped' in result or not right(result['entries'][0], t):
                        continue
                    own = [times(e, t)['min_ms'] for e in result['entries'] if e['name'] == name and right(e, t)]
                    if own:
                        ratios.append(min(own) / times(result['entries'][0], t)['min_ms'])
                cells.append(f'{geometric_mean(ratios):.2f} ({len(ratios)})' if ratios else '-')
            for result in results:
                entries = [e for e in result.get('entries', []) if e['name'] == name]
                if entries and all(e['failure'] for e in entries):
                    is_wrong = any(e['failure'].startswith('wrong') for e in entries)
                    wrong, failed = wrong + is_wrong, failed + (not is_wrong)
        version = re.sub(r'-\d+-\w+-releases.*|^sinter ', '', about['version'])
        rows.append(f"| {name} | {version} | {about['library_bytes'] / 1e6:.1f} | " + ' | '.join(cells) + f' | {failed} | {wrong} |')
    return rows


def network_rows(report, precision):
    """With a column of Sinter's int8 over its float32 where both were raced."""
    floats = {r['network']: r for r in report['results'].get('float', []) if precision == 'int8'}
    first = report['threads'][0]
    head = '| network |'
    for t in report['threads']:
        plural = 'threads' if t > 1 else 'thread'
        head += f' Sinter, {t} {plural}, us | best other | ratio |'
    rows = [head + ' int8 / float32 |' * bool(floats),
            '| --- |' + ' ---: | --- | ---: |' * len(report['threads']) + ' ---: |' * bool(floats)]
    for result in report['results'][precision]:
        cells = [cell(result, t) for t in report['threads']]
        if any(cells):
            rows.append(f"| {result['network']} | " + ' | '.join(
                f'{us(c.sinter)} ({us(c.sinter_median)}) | {us(c.best)} ({us(c.best_median)}) {c.best_label} | {c.ratio:.2f}' if c
                else '- | - | -' for c in cells) + ' |')
            if floats:
                own, other = cell(floats.get(result['network'], dict(skipped='')), first), cells[0]
                rows[-1] += f' {other.sinter / own.sinter:.2f} |' if own and other else ' - |'
    return rows


def start_rows(report):
    """File to ready, file to first result and added memory, of float32 on the first number of threads."""
    t = report['threads'][0]
    rows = ['| network | file to ready, ms: Sinter | best other | first result, ms: Sinter | best other | memory, MB: Sinter | '
            'best other | arena, kB | file, kB | convert, ms |', '| --- | ---: | --- | ---: | --- | ---: | --- | ---: | ---: | ---: |']
    for result in report['results'].get('float', []):
        if 'skipped' in result or not right(result['entries'][0], t):
            continue
        parts = []
        for key, scale in (('load_ms', 1), ('first_ms', 1), ('added_bytes', 1e-6)):
            own = times(result['entries'][0], t)[key]
            others = [(times(e, t)[key], e['label']) for e in result['entries'][1:] if right(e, t)]
            parts += [sig(scale * own), '{} {}'.format(sig(scale * min(others)[0]), min(others)[1]) if others else '-']
        own = times(result['entries'][0], t)
        parts += [f"{own['arena_bytes'] / 1e3:,.0f}", f"{own['file_bytes'] / 1e3:,.0f}", sig(own['convert_ms'])]
        rows.append(f"| {result['network']} | " + ' | '.join(parts) + ' |')
    return rows


def loss_lines(report):
    lines = []
    for precision, results in report['results'].items():
        for result in results:
            lost = [(t, c) for t in report['threads'] if (c := cell(result, t)) and c.ratio < 1]
            if lost:
                cells = ', '.join(f'{c.ratio:.2f} of {c.best_label} with {t} thread{"s" if t > 1 else ""}' for t, c in lost)
                lines.append(f"{result['network']}, {NAMES[precision]}: {cells}. {result.get('costliest', '')}.")
    return lines


def failure_lines(report):
    """By contestant: networks that it has no file for, cannot run, or computes wrong. The reasons are in the JSON."""
    lines = [f'{name}: not installed: {why}' for name, why in report['absent'].items()]
    for precision, results in report['results'].items():
        kinds = collections.defaultdict(lambda: collections.defaultdict(list))
        skipped = [f"{r['network']} ({r['skipped']})" for r in results if 'skipped' in r]
        for result in results:
            for e in result.get('entries', []):
                why = e['failure']
                if why:
                    kind = 'no file' if why.startswith('no file') else 'wrong' if why.startswith('wrong') else 'fails'
                    kinds[e['label']][kind].append(result['network'] + why.removeprefix('wrong:') * (kind == 'wrong'))
        name = NAMES[precision]
        lines += [f'{name}, not raced: {", ".join(skipped)}.'] if skipped else []
        lines += [f'{name}, {label}: ' + '; '.join(f'{kind}: {", ".join(names)}' for kind, names in by.items()) + '.'
                  for label, by in kinds.items()]
    return lines


def tables(report):
    found = {'score': score_rows(report), 'runtimes': rival_rows(report)}
    found |= {NAMES[precision]: network_rows(report, precision) for precision in report['results']}
    return found | ({'start': start_rows(report)} if 'float' in report['results'] else {})


def facts(report):
    """What a result has beside the tables: how the race was run, and lists of losses and of networks without a time."""
    return dict(target=report['target'], rounds=report['rounds'], seconds=report['seconds'], others=round(report['others'], 2),
                sinter_library=report['sinter_library'], losses=loss_lines(report), without=failure_lines(report), notes=[])
