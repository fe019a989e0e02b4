"""Results of benchmarks: bench/results/NAME.json, from which bench/benchmarks_page.py writes docs/benchmarks.md."""
import datetime
import json
import pathlib
import platform
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / 'results'
# Flags of /proc/cpuinfo that divide processors of one name into kinds, the most telling first.
KINDS = (('amx_int8', 'AMX'), ('avx512_vnni', 'AVX-512 and VNNI'), ('avx512bw', 'AVX-512'), ('avx_vnni', 'AVX2 and VNNI'),
         ('avx2', 'AVX2'), ('i8mm', 'i8mm'), ('asimddp', 'dot product'))


def cpu(kind=None):
    """The name that the processor gives itself, and `kind`, or its largest instruction set."""
    text = pathlib.Path('/proc/cpuinfo').read_text()
    names = [line.split(':')[1].strip() for line in text.splitlines() if line.startswith('model name')]
    kind = kind or next((kind for flag, kind in KINDS if flag in text.split()), None)
    return (names[0] if names else platform.machine()) + (f', {kind}' if kind else '')


def commit():
    """Short hash of the checked-out commit, with a + if the tree differs from it; 'an unknown commit' without git."""
    def git(*arguments):
        return subprocess.run(['git', '-C', FOLDER.parent, *arguments], capture_output=True, text=True, check=True).stdout.strip()
    try:
        return git('rev-parse', '--short', 'HEAD') + ('+' if git('status', '--porcelain', '--untracked-files=no') else '')
    except (OSError, subprocess.CalledProcessError):
        return 'an unknown commit'


def cell(text):
    """A cell of a Markdown table as a number where it is one, else as text; None where it is empty."""
    text = text.strip().replace('\\|', '|')
    if re.fullmatch(r'-?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?', text):
        number = text.replace(',', '')
        return float(number) if '.' in number else int(number)
    return text or None


def table(lines):
    """Columns and rows of the lines of a Markdown table."""
    rows = [re.split(r'(?<!\\)\|', line)[1:-1] for line in lines]
    return dict(columns=[c.strip() for c in rows[0]], rows=[[cell(c) for c in row] for row in rows[2:]])


def dumps(result):
    """JSON with a line for each row of a table."""
    def listed(items, indent):
        return '[\n' + ',\n'.join(indent + json.dumps(i, ensure_ascii=False) for i in items) + '\n' + indent[1:] + ']'

    def value(key, v):
        if key == 'tables':
            return '{\n' + ',\n'.join(f'  {json.dumps(name)}: {{"columns": {json.dumps(t["columns"], ensure_ascii=False)}, "rows": '
                                      + listed(t['rows'], '   ') + '}' for name, t in v.items()) + '\n }'
        return listed(v, '  ') if isinstance(v, list) else json.dumps(v, ensure_ascii=False)
    return '{\n ' + ',\n '.join(f'{json.dumps(k)}: {value(k, v)}' for k, v in result.items()) + '\n}\n'


def store(path, title, tables, **more):
    """Writes a result in the place of an older one. `tables`: lists of lines of Markdown, by name."""
    result = dict(title=title, machine=cpu(), date=datetime.date.today().isoformat(), commit=commit(),
                  command=' '.join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])) | more
    result['tables'] = {name: table(lines) for name, lines in tables.items()}
    pathlib.Path(path).write_text(dumps(result))
