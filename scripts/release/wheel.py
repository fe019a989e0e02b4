#!/usr/bin/env python3
"""Lays out the contents of a wheel of sinter_runtime, which pack.py then packs.

    wheel.py FOLDER PLATFORM BUILT LICENCES

FOLDER gets the wheel's files, and the name of the wheel is printed. PLATFORM is one of the tags of a wheel's platform, with dots between
several; BUILT has the library and the stub (python/CMakeLists.txt); LICENCES is what licences.py wrote. Metadata: pyproject.toml.
"""
import base64
import hashlib
import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def version():
    return re.search(r"project\(Sinter VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def metadata(project, licence_files):
    """METADATA: the core metadata of version 2.4, with the page of docs/ as the description."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version()}", f"Summary: {project['description']}",
             f"License-Expression: {project['license']}"]
    lines += [f"License-File: {name}" for name in licence_files]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    for extra, needs in project.get("optional-dependencies", {}).items():
        lines += [f"Provides-Extra: {extra}"] + [f"Requires-Dist: {need}; extra == '{extra}'" for need in needs]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]
    return "\n".join(lines)


def record(folder, info):
    """RECORD: digest and size of every other file."""
    rows = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        rows.append(f"{path.relative_to(folder).as_posix()},sha256={digest},{path.stat().st_size}\n")
    return "".join(rows) + f"{info.name}/RECORD,,\n"


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    folder, platform, built, licences = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    shutil.copytree(ROOT / "python/sinter_runtime", folder / "sinter_runtime",
                    ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for file in ("libsinter_python.so", "options.pyi"):
        shutil.copy(built / file, folder / "sinter_runtime" / file)
    info = folder / f"{project['name'].replace('-', '_')}-{version()}.dist-info"
    shutil.copytree(licences, info / "licenses")
    (info / "sboms").mkdir()
    (info / "licenses/sinter.spdx.json").rename(info / "sboms/sinter.spdx.json")
    texts = sorted(p.relative_to(info / "licenses").as_posix() for p in (info / "licenses").rglob("*") if p.is_file())
    (info / "METADATA").write_text(metadata(project, texts))
    tags = "".join(f"Tag: py3-none-{tag}\n" for tag in platform.split("."))
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: sinter-release\nRoot-Is-Purelib: false\n{tags}")
    scripts = "".join(f"{name} = {place}\n" for name, place in project["scripts"].items())
    (info / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")
    (info / "RECORD").write_text(record(folder, info))
    print(f"{info.name.removesuffix('.dist-info')}-py3-none-{platform}.whl")


if __name__ == "__main__":
    main()
