#!/usr/bin/env python3
"""What the documents name must exist: flags, scripts, files, links, headings, tests.

    docs_flags.py SOURCE_ROOT [--sinter PROGRAM]
    docs_flags.py --self-test

Checks the Markdown files of the tree, and prints every breach with file and line:

- A relative link or picture points to a file of the tree, its #anchor to a heading there.
- A path in `code` whose first folder is one of the tree's exists (wildcards may be used); so does a bare `name.cc`,
  `name.h`, `name.py` or `name.sh` somewhere, and a C++ test named as `Suite.Name` or `Suite.*`.
- A flag behind a script or program of the tree is in its source.
- Pages for users, those that docs/README.md lists before "How it works", name no file of the source.
- NOTICE names every library that scripts/deps.sha256 pins.
- With --sinter: a flag behind `sinter COMMAND`, and in the section of docs/cli.md with that name, is in
  `sinter COMMAND --help`, as is each of its values written as a|b|c; any other flag belongs to some command or script.
  docs/cli.md names every flag of every command.
"""
import argparse
import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
# Flags of every command: explained once, at the top of docs/cli.md.
COMMON = {"--help", "--json", "--quiet", "--public-key"}
# What other people's programs take; their flags are not ours to check.
FOREIGN = re.compile(r"^(?:[A-Z_]+=\S+ )*(cmake|ctest|apt-get|perf|git|pip|docker|objdump|nm)\b")
SCRIPT = re.compile(r"(?<![\w./-])(?:\./)?((?:[\w.-]+/)*[\w-]+\.(?:py|sh)|(?:\./)(?:test|demo))(?![\w/])")
BINARY = re.compile(r"(?<![\w-])(bench_offsets|sinter_bench|sinter_open_cost|sinter_run_model|golden_run)(?![\w-])")
SUITE = re.compile(r"^([A-Z]\w+)\.(?:([A-Z]\w+)|\*)$")
SOURCE_NAME = re.compile(r"^[\w-]+\.(?:cc|h|py|sh|def|fbs)$")


class Document:
    """One Markdown file: its lines, and for each whether it is in a code block and under which level-2 heading."""

    def __init__(self, path, text):
        self.path = path
        self.lines = []  # (number, text, is code, section)
        self.anchors = set()
        fenced, section, blank = False, "", True
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("```"):
                fenced = not fenced
                continue
            heading = None if fenced else re.match(r"(#+) (.*)", line)
            if heading:
                self.anchors.add(slug(heading[2]))
                if len(heading[1]) <= 2:
                    section = heading[2]
            indented = line.startswith("    ") and (blank or (self.lines and self.lines[-1][2]))
            blank = not line.strip()
            self.lines.append((number, line, fenced or (indented and not blank), section))

    def commands(self):
        """Lines of code, joined where one goes on in the next (a backslash, or flags alone); (number, text, section)."""
        joined = []
        going_on = False
        for number, line, code, section in self.lines:
            if code:
                text = line.strip()
                if joined and (going_on or (joined[-1][3] == number - 1 and re.match(r"\[?--", text))):
                    first, before, _, _ = joined.pop()
                    joined.append((first, before.rstrip("\\ ") + " " + text, section, number))
                else:
                    joined.append((number, text, section, number))
                going_on = text.endswith("\\")
            for span in spans(line) if not code else ():
                if " " in span:
                    joined.append((number, span, section, -1))
        return [(number, re.sub(r"(^| )#.*", "", text), section) for number, text, section, _ in joined]


def spans(line):
    return re.findall(r"`([^`]+)`", line)


def slug(heading):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"`", "", heading).lower()).strip().replace(" ", "-")


class Tree:
    """Files, tests and programs that documents may name."""

    def __init__(self, root, files):
        self.root = root
        self.files = set(files)
        self.folders = {str(parent) for f in files for parent in Path(f).parents}
        self.names = {Path(f).name for f in files}
        # Scripts name what they make.
        self.made = "\n".join((root / f).read_text() for f in files if f.startswith("scripts/"))
        self.tests = set()
        for f in files:
            if f.startswith("tests/") and f.endswith((".cc", ".h")):
                self.tests.update(re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)", (root / f).read_text()))
        self.suites = {suite for suite, _ in self.tests}

    def has_path(self, path):
        path = path.rstrip("/")
        if path in self.files or path in self.folders:
            return True
        if not re.search(r"[*{]", path):
            return False
        options = re.split(r"[{}]", path)
        if len(options) == 3:
            return all(self.has_path(options[0] + item.strip() + options[2]) for item in options[1].split(","))
        pattern = re.compile(re.escape(path).replace(r"\*", "[^/]*") + r"(/.*)?")
        return any(pattern.fullmatch(f) for f in self.files)

    def source_of(self, program):
        """Text that lists a program's or script's flags, or None."""
        if program in ("test", "demo"):
            return (self.root / program).read_text()
        matches = [f for f in self.files if f == program or f.endswith("/" + program)]
        if not matches:
            matches = [f for f in self.files if f.startswith(("bench/", "tests/"))
                       and Path(f).name in (program + ".cc", program.removeprefix("sinter_") + ".cc")]
        return "\n".join((self.root / f).read_text() for f in matches) if matches else None

    def script_flags(self):
        """All flags that a script or program of the tree takes, for flags without a command in a text."""
        found = set()
        for f in self.files:
            if f in ("test", "demo") or f.endswith((".py", ".sh")) or f.startswith("bench/"):
                found.update(FLAG.findall((self.root / f).read_text(errors="replace")))
        return found


class Program:
    """The commands of `sinter` and their help."""

    def __init__(self, sinter):
        top = self.ask(sinter, "--help")
        self.help = {name: self.ask(sinter, name, "--help") for name in
                     re.findall(r"^  (\w+)\s", top.split("Commands:", 1)[-1], re.MULTILINE)}
        if not self.help:
            sys.exit(f"docs_flags.py: no commands in `{sinter} --help`")
        self.flags = {name: set(FLAG.findall("\n".join(re.findall(r"^  (-.*?)(?:  |$)", text, re.MULTILINE))))
                      for name, text in self.help.items()}
        self.all_flags = set().union(*self.flags.values()) | set(FLAG.findall(top))

    @staticmethod
    def ask(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def described(self, command, flag):
        """The help of one flag."""
        text = self.help[command]
        at = re.search(rf"^  (?:-\w,)?{flag}\b.*(?:\n   +.*)*", text, re.MULTILINE)
        return at[0] if at else ""


def link_faults(doc, tree, documents):
    for number, line, code, _ in doc.lines:
        if code:
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", line) + re.findall(r'(?:src|srcset|href)="([^"]+)"', line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            to = doc.path
            if path:
                parts = []
                for part in (Path(doc.path).parent / path).parts:
                    if part == "..":
                        if not parts:
                            parts = None
                            break
                        parts.pop()
                    else:
                        parts.append(part)
                to = "/".join(parts) if parts is not None else ""
                if not tree.has_path(to):
                    yield number, f"the link {target} points to nothing"
                    continue
            if anchor and to in documents and anchor not in documents[to].anchors:
                yield number, f"the link {target}: {to} has no heading for #{anchor}"


def name_faults(doc, tree):
    tops = {f.split("/")[0] for f in tree.files if "/" in f}
    for number, line, code, _ in doc.lines:
        for span in () if code else spans(line):
            test = SUITE.match(span)
            if test and Path(span).suffix not in (".md", ".cc") and span not in tree.names:
                known = (test[1], test[2]) in tree.tests if test[2] else test[1] in tree.suites
                if not known and (test[1] in tree.suites or test[2] is None):
                    yield number, f"there is no C++ test {span}"
            word = span.split(" ")[0]
            if SOURCE_NAME.match(word) and word not in tree.names and word not in tree.made:
                yield number, f"there is no file {word} in the tree"
            if re.fullmatch(r"[\w.*{},/-]+", word) and "/" in word and word.split("/")[0] in tops:
                if not tree.has_path(word):
                    yield number, f"there is no {word} in the tree"


def users_pages(documents):
    """The pages that docs/README.md lists before its shelf for those who change Sinter."""
    index = documents.get("docs/README.md")
    before = takewhile(lambda line: line[3] != "How it works", index.lines) if index else ()
    return {"docs/" + target for _, line, _, _ in before for target in re.findall(r"\]\((\w+\.md)\)", line)}


def source_faults(doc):
    """Files of the source on a page for users. Scripts, toolchain files and examples are theirs; so are headers as they are installed."""
    for number, line, _, _ in doc.lines:
        for word in re.findall(r"[\w.*{},/-]+", line):
            if re.match(r"(\.\./)*(?!.*README\.md)(application|converter|platforms|python|runtime|schemas|tests)/[\w*]", word):
                yield number, f"a page for users names {word}"
            elif re.fullmatch(r"[\w./-]*\.(cc|cu|def|fbs)|(?!sinter/)[\w./-]+/[\w-]+\.h", word):
                yield number, f"a page for users names {word}"


def flag_faults(doc, tree, program):
    script_flags = tree.script_flags()
    for number, text, _ in doc.commands():
        if FOREIGN.match(text):
            continue
        for part in re.split(r"; | && | \| ", text):
            sinter = re.search(r"(?:^|[\s/])sinter (\w+)", part)
            named = SCRIPT.findall(part) + BINARY.findall(part)
            if sinter and program:
                command = sinter[1]
                if command not in program.help:
                    if not command.isupper():
                        yield number, f"there is no command `sinter {command}`"
                    continue
                for flag in FLAG.findall(part[sinter.start():]):
                    if flag not in program.flags[command]:
                        yield number, f"`sinter {command}` does not take {flag}"
                for flag, values in re.findall(r"(--[a-z0-9-]+)[ =]([\w.-]+(?:\|[\w.-]+)+)", part):
                    described = program.described(command, flag)
                    for value in values.split("|"):
                        if value.islower() and not re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", described):
                            yield number, f"`sinter {command} --help` does not name {value} for {flag}"
            elif named and not sinter:
                source = "\n".join(filter(None, (tree.source_of(n.removeprefix("./")) for n in named)))
                source += " --help" * ("ArgumentParser(" in source)
                for flag in FLAG.findall(part):
                    if source and flag not in source and not flag.startswith("--benchmark"):
                        yield number, f"{named[-1]} does not take {flag}"
    if not program:
        return
    for number, line, code, section in doc.lines:
        commands = [c for c in re.split(r"[, ]+", section) if c in program.help] if doc.path == "docs/cli.md" else []
        for span in () if code else spans(line):
            flags = FLAG.findall(span) if span.startswith("--") else []
            for flag in flags:
                if flag in COMMON or flag.startswith("--benchmark"):
                    continue
                if flag not in program.all_flags and flag not in script_flags:
                    yield number, f"nothing takes {flag}"
                elif commands and line.startswith(f"| `{flag}") and not any(flag in program.flags[c] for c in commands):
                    yield number, f"`sinter {commands[0]}` does not take {flag}"


def undocumented(doc, program):
    """Flags of the commands that docs/cli.md leaves out."""
    for command, flags in program.flags.items():
        result = "\n".join(line for _, line, _, section in doc.lines if command in re.split(r"[, ]+", section))
        for flag in sorted(flags - COMMON - {"--output", "--version"}):
            if flag not in FLAG.findall(result):
                yield 1, f"the section on `sinter {command}` does not mention {flag}"


def notice_faults(root):
    """Libraries that are built from source and linked, but not named in NOTICE."""
    pinned, notice = root / "scripts/deps.sha256", root / "NOTICE"
    if not pinned.exists():
        return
    result = notice.read_text().lower() if notice.exists() else ""
    for name in re.findall(r"  ([^_\s]+)_", pinned.read_text()):
        if name not in result:
            yield f"NOTICE: {name} of scripts/deps.sha256 is missing"


def listed_files(root):
    try:
        out = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                             check=True).stdout.split("\n")
        found = [f for f in out if f and (root / f).is_file()]
    except (OSError, subprocess.CalledProcessError):
        found = []
    if not found:  # an exported tree
        found = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]
    return [f for f in found if not re.match(r"(build|\.venv|\.cache|\.git)/", f)]


def check(root, sinter):
    files = listed_files(root)
    tree = Tree(root, files)
    documents = {f: Document(f, (root / f).read_text()) for f in files if f.endswith(".md")}
    program = Program(sinter) if sinter else None
    users = users_pages(documents)
    faults = list(notice_faults(root))
    for path, doc in sorted(documents.items()):
        found = [*link_faults(doc, tree, documents), *name_faults(doc, tree), *flag_faults(doc, tree, program)]
        if program and path == "docs/cli.md":
            found += undocumented(doc, program)
        if path in users:
            found += source_faults(doc)
        faults += [f"{path}:{number}: {what}" for number, what in sorted(set(found))]
    print("\n".join(faults) if faults else f"{len(documents)} documents name only what exists"
          + ("" if program else " (flags of sinter not checked: no program given)"))
    return 1 if faults else 0


def self_test():
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        program = root / "sinter"
        program.write_text("#!/bin/sh\ncase $1 in run) echo '  --backend TEXT   Use this: reference, simd';"
                           " echo '  --each   One by one';; *) echo 'Commands:'; echo '  run   Run';; esac\n")
        program.chmod(0o755)
        (root / "docs").mkdir()
        (root / "bench").mkdir()
        (root / "bench/tool.py").write_text("# --seconds\nArgumentParser()\n")
        (root / "docs/good.md").write_text("# A title\n[x](good.md#a-title) `bench/*.py` `bench/tool.py --help --seconds 1`\n\n"
                                           "    sinter run M --backend reference|simd\n               --each\n")
        (root / "docs/cli.md").write_text("## run\n`--backend`, `--each`\n")
        (root / "docs/bad.md").write_text(
            "[x](gone.md) [y](good.md#gone) `bench/gone.py` `gone.cc` `bench/tool.py --gone` `--stateful`\n\n"
            "    sinter run M --backend reference|onednn\n               --stateful\n    sinter fly M\n")
        tree = Tree(root, listed_files(root))
        documents = {f: Document(f, (root / f).read_text()) for f in tree.files if f.endswith(".md")}
        known = Program(str(program))
        found = {f: {what for _, what in [*link_faults(d, tree, documents), *name_faults(d, tree), *flag_faults(d, tree, known)]}
                 for f, d in documents.items()}
        wanted = {"the link gone.md points to nothing", "the link good.md#gone: docs/good.md has no heading for #gone",
                  "there is no bench/gone.py in the tree", "there is no file gone.cc in the tree", "tool.py does not take --gone",
                  "nothing takes --stateful", "`sinter run` does not take --stateful",
                  "`sinter run --help` does not name onednn for --backend", "there is no command `sinter fly`"}
        bad = {re.sub(r"^bench/(?=tool)", "", what) for what in found["docs/bad.md"]}
        assert not found["docs/good.md"], found["docs/good.md"]
        assert bad == wanted, (bad - wanted, wanted - bad)
        assert not list(undocumented(documents["docs/cli.md"], known))
        (root / "scripts").mkdir()
        (root / "scripts/deps.sha256").write_text("00  highway_1.3.0.orig.tar.gz\n00  fxdiv_0.orig.tar.xz\n")
        (root / "NOTICE").write_text("Highway 1.3.0\n")
        assert list(notice_faults(root)) == ["NOTICE: fxdiv of scripts/deps.sha256 is missing"]
        index = Document("docs/README.md", "## How to\n[a](a.md)\n## How it works\n[b](b.md)\n")
        assert users_pages({"docs/README.md": index}) == {"docs/a.md"}
        named = {what for _, what in source_faults(Document("docs/a.md", "`runtime/core/x.h`, `y.cc`, `sinter/z.h`, `tests/`, [b](../bench/b.cc)\n"))}
        assert named == {"a page for users names " + name for name in ("runtime/core/x.h", "y.cc", "../bench/b.cc")}, named
        left_out = list(undocumented(Document("docs/cli.md", "## run\n`--each`\n"), known))
        assert left_out == [(1, "the section on `sinter run` does not mention --backend")], left_out
    print("finds every planted fault")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path)
    parser.add_argument("--sinter", help="the program; without it its flags are not checked")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.root is None:
        parser.error("SOURCE_ROOT is missing")
    return check(arguments.root.resolve(), arguments.sinter)


if __name__ == "__main__":
    sys.exit(main())
