#!/usr/bin/env python3
"""Builds the documentation as a site that needs no network: search, light and dark, every link checked.

    scripts/site.py [--out FOLDER] [--serve]

    --out    where the site goes (default: build/site); open index.html in a browser
    --serve  serves it on 127.0.0.1:8000 and builds again when a page changes

The pages are the Markdown files of the repository, with the paths that they have there, so that their links need no second form.
Files that they link to are copied beside them. A broken link or anchor, and a page that mkdocs.yml does not list, fails the build.
Needs mkdocs-material of scripts/requirements.txt. 6 s of processor time.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r'(?:\]\(|src=")([^)#"\s]+)')
LARGEST_COPY = 2 << 20


def sources():
    """The repository's Markdown files and what they link to, as paths from its root."""
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = set(listed.stdout.split('\n')) - {''}
    pages = {p for p in tracked if p.endswith('.md')}
    files = set(pages)
    for page in pages:
        with open(os.path.join(ROOT, page)) as f:
            for link in LINK.findall(f.read()):
                path = os.path.normpath(os.path.join(os.path.dirname(page), link))
                if path in tracked and os.path.getsize(os.path.join(ROOT, path)) <= LARGEST_COPY:
                    files.add(path)
    return files


def stage(folder):
    """Copies the sources to `folder`, which mkdocs reads; what has not changed keeps its time."""
    wanted = sources()
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            if os.path.relpath(path, folder) not in wanted:
                os.remove(path)
    for path in wanted:
        to = os.path.join(folder, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if not os.path.exists(to) or os.path.getmtime(to) != os.path.getmtime(os.path.join(ROOT, path)):
            shutil.copy2(os.path.join(ROOT, path), to)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', default=os.path.join(ROOT, 'build', 'site'))
    parser.add_argument('--serve', action='store_true')
    args = parser.parse_args()
    try:
        import mkdocs.commands.build  # noqa: F401
        import material  # noqa: F401
    except ImportError:
        print('site.py: mkdocs-material is missing; scripts/install.sh installs it, or pip install -r scripts/requirements.txt',
              file=sys.stderr)
        return 77
    stage(os.path.join(ROOT, 'build', 'site-pages'))
    how = ['serve', '-a', '127.0.0.1:8000'] if args.serve else ['build', '--strict', '-d', os.path.abspath(args.out)]
    command = [sys.executable, '-m', 'mkdocs', *how, '-f', os.path.join(ROOT, 'mkdocs.yml')]
    env = dict(os.environ, NO_MKDOCS_2_WARNING='1')
    if args.serve:
        return subprocess.run(command, env=env).returncode
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr, end='')
        return 1
    print(f'The site is in {os.path.relpath(args.out)}: open index.html in a browser.')
    return 0


if __name__ == '__main__':
    sys.exit(main())
