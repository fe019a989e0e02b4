"""Puts a table that was measured again in the place of the old one."""


def replace_table(path, heading, lines):
    """In the file at `path` (pathlib), the first table below `heading` that starts with the columns of `lines`."""
    text = path.read_text()
    first_columns = lines[0][:lines[0].index('|', lines[0].index('|', 2) + 1)]
    start = text.index(first_columns, text.index(heading))
    end = text.find('\n\n', start)
    path.write_text(text[:start] + '\n'.join(lines) + (text[end:] if end >= 0 else '\n'))
