"""Tables in the documents: puts one that was measured again in the place of the old one, and names the commit."""
import pathlib
import subprocess


def replace_table(path, heading, lines):
    """In the file at `path` (pathlib), the first table below `heading` that starts with the columns of `lines`."""
    text = path.read_text()
    first_columns = lines[0][:lines[0].index('|', lines[0].index('|', 2) + 1)]
    start = text.index(first_columns, text.index(heading))
    end = text.find('\n\n', start)
    path.write_text(text[:start] + '\n'.join(lines) + (text[end:] if end >= 0 else '\n'))


def commit():
    """Short hash of the checked-out commit, with a + if the tree differs from it; 'an unknown commit' without git."""
    here = pathlib.Path(__file__).resolve().parent
    try:
        def git(*arguments):
            return subprocess.run(['git', '-C', here, *arguments], capture_output=True, text=True, check=True).stdout.strip()
        return git('rev-parse', '--short', 'HEAD') + ('+' if git('status', '--porcelain', '--untracked-files=no') else '')
    except (OSError, subprocess.CalledProcessError):
        return 'an unknown commit'
