#!/usr/bin/env python3
"""Writes the licence texts of a package and the SPDX list of what it contains.

    licences.py FOLDER PACKAGE VERSION NAME...

FOLDER gets LICENSE, NOTICE, licenses/NAME.txt for each component and sinter.spdx.json (SPDX 2.3). A NAME is one of
third_party/components.tsv, whose last columns say where its text is: files in a source archive of scripts/deps.sha256, in the Python
package ziglang, or the copyright file of a Debian package.
"""
import csv
import datetime
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHA256 = dict(reversed(line.split()) for line in (ROOT / "scripts/deps.sha256").read_text().splitlines())
ARCHIVES = {name.split("_")[0]: name for name in SHA256}


def components():
    """The rows of components.tsv by name."""
    with open(ROOT / "third_party/components.tsv", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def from_archive(row):
    """Version, text and digest of a component that is built from a source archive."""
    path = output_of("bash", "scripts/deps.sh", "--source", row["from"])
    texts = []
    with tarfile.open(path) as tar:
        # Some archives have one top folder, some have none.
        members = {re.sub(r"^\./", "", name): name for name in tar.getnames()}
        for wanted in row["files"].split():
            found = [name for short, name in members.items() if re.fullmatch(rf"([^/]+/)?{re.escape(wanted)}", short)]
            if not found:
                sys.exit(f"licences: {Path(path).name} has no {wanted}; correct third_party/components.tsv")
            texts.append(tar.extractfile(min(found, key=len)).read().decode("utf-8", "replace"))
    name = ARCHIVES[row["from"]]
    return re.sub(r"\.orig\.tar.*", "", name.split("_", 1)[1]), "\n".join(texts), SHA256[name]


def text_of(row):
    """Version, text and, if there is an archive, its digest."""
    if row["from"] in ARCHIVES:
        return from_archive(row)
    if row["from"] == "ziglang":
        import ziglang

        folder = Path(ziglang.__file__).parent
        return importlib.metadata.version("ziglang"), "\n".join((folder / f).read_text() for f in row["files"].split()), None
    package = row["from"]
    version = output_of("dpkg-query", "-W", "-f=${Version}", package)
    return version, Path(f"/usr/share/doc/{package}/copyright").read_text(), None


def spdx(package, version, parts):
    """The list as SPDX 2.3 in JSON: Sinter's package contains each component."""
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)

    def entry(name, number, licence, digest, identifier):
        result = {"SPDXID": identifier, "name": name, "versionInfo": number, "downloadLocation": "NOASSERTION",
                  "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
        if digest:
            result["comment"] = f"The SHA-256 digest of the source archive is {digest}."
        return result

    packages = [entry(package, version, "Apache-2.0", None, "SPDXRef-Package")]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-Package"}]
    for name, number, licence, digest in parts:
        identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", name.replace("+", "p")).strip("-")
        packages.append(entry(name, number, licence, digest, identifier))
        relations.append({"spdxElementId": "SPDXRef-Package", "relationshipType": "CONTAINS", "relatedSpdxElement": identifier})
    # A namespace is unique to its contents.
    unique = hashlib.sha256(json.dumps([packages, relations]).encode()).hexdigest()[:32]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{package}-{version}",
            "documentNamespace": f"urn:sinter:spdx:{package}-{version}-{unique}",
            "creationInfo": {"created": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: Sinter's release script"]},
            "packages": packages, "relationships": relations}


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    folder, package, version, names = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
    known = components()
    (folder / "licenses").mkdir(parents=True, exist_ok=True)
    for file in ("LICENSE", "NOTICE"):
        (folder / file).write_bytes((ROOT / file).read_bytes())
    parts = []
    for name in names:
        number, text, digest = text_of(known[name])
        parts.append((name, number, known[name]["licence"], digest))
        (folder / "licenses" / (re.sub(r"[^A-Za-z0-9+.-]+", "-", name).strip("-") + ".txt")).write_text(text)
    (folder / "sinter.spdx.json").write_text(json.dumps(spdx(package, version, parts), indent=1) + "\n")


if __name__ == "__main__":
    main()
