#!/usr/bin/env python3
"""Checks a wheel of sinter_runtime: its size, what its library needs and exports, and auditwheel's verdict on the platform.

    check_wheel.py WHEEL
"""
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

MOST_BYTES = 6_000_000
# Parts of the C library; a processor's loader is one of them, too.
C_LIBRARY = re.compile(r"(lib(c|m|pthread|dl)\.so\.[0-9]+|ld-linux.*\.so\.[0-9]+)")


def faults_of(wheel):
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        yield f"it has {size} bytes, more than {MOST_BYTES}"
    with zipfile.ZipFile(wheel) as archive:
        elf = ELFFile(archive.open("sinter_runtime/libsinter_python.so"))
        needed = [tag.needed for section in elf.iter_sections() if isinstance(section, DynamicSection)
                  for tag in section.iter_tags("DT_NEEDED")]
        foreign = [name for name in needed if not C_LIBRARY.fullmatch(name)]
        if foreign:
            yield f"its library needs {', '.join(foreign)}"
        exported = [symbol.name for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
                    if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"]
        others = [name for name in exported if not name.startswith(("sinter_", "SINTER"))]
        if others or not exported:
            yield f"its library exports {others[:5] or 'nothing'}"
        if elf.get_section_by_name(".symtab") or elf.get_section_by_name(".debug_info"):
            yield "its library is not stripped"
    shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    said = " ".join((shown.stdout + shown.stderr).split())
    verdict = re.search(r'consistent with the following platform tag: "(\w+)"', said)
    if shown.returncode != 0 or not verdict:
        yield f"auditwheel refuses it: {said}"
    elif verdict[1] not in wheel.name:
        yield f"auditwheel finds that its platform is {verdict[1]}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wheel = Path(sys.argv[1])
    faults = [f"{wheel.name}: {fault}" for fault in faults_of(wheel)]
    print("\n".join(faults) or f"{wheel.name}: {wheel.stat().st_size} bytes, needs nothing but the C library")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
