"""Tables in the documents: puts one that was measured again in the place of the old one; names the commit and the CPU."""
import pathlib
import platform
import subprocess


def replace_table(path, heading, lines):
    """In the file at `path` (pathlib), the first table below `heading` that starts with the columns of `lines`."""
    text = path.read_text()
    first_columns = lines[0][:lines[0].index('|', lines[0].index('|', 2) + 1)]
    start = text.index(first_columns, text.index(heading))
    end = text.find('\n\n', start)
    path.write_text(text[:start] + '\n'.join(lines) + (text[end:] if end >= 0 else '\n'))


def replace_section(path, heading, text):
    """In the file at `path` (pathlib), the section of `heading`, or, if it has none, a new one before its first section
    that has the same level."""
    written = path.read_text()
    level = '\n' + heading.split(' ')[0] + ' '
    start = written.find(heading + '\n')
    if start < 0:
        start = written.find(level) + 1 or len(written)
        path.write_text(written[:start] + text + '\n' * (start < len(written)) + written[start:])
        return
    end = written.find(level, start)
    path.write_text(written[:start] + text + (written[end:] if end >= 0 else ''))


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
    here = pathlib.Path(__file__).resolve().parent
    try:
        def git(*arguments):
            return subprocess.run(['git', '-C', here, *arguments], capture_output=True, text=True, check=True).stdout.strip()
        return git('rev-parse', '--short', 'HEAD') + ('+' if git('status', '--porcelain', '--untracked-files=no') else '')
    except (OSError, subprocess.CalledProcessError):
        return 'an unknown commit'
