#!/usr/bin/env python3
"""The eleven instances of data/minimalloc have to be arranged within their capacity, each within a minute of one core.

bench_offsets prints what it found; this reads the arrangement's facts, prints a table row for docs/memory.md per
instance and fails where one does not fit, is not valid, or takes longer.
"""
import argparse
import glob
import json
import os
import resource
import subprocess
import sys

SECONDS = 60


def shared_folder():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.environ.get("SINTER_SHARED") or os.path.join(here, "..", "..", "..", "shared")


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the bench_offsets program")
    args = parser.parse_args()
    files = sorted(glob.glob(os.path.join(shared_folder(), "data", "minimalloc", "*.csv")))
    if not files:
        print("skipped: no data/minimalloc in the shared folder (SINTER_SHARED)")
        return 77
    failed = 0
    print("| instance | blocks | capacity | largest sum of live bytes | arranged in | nodes | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for path in files:
        before = cpu_seconds()
        done = subprocess.run([args.bench, "--nodes", "20000000", path], capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)))
        seconds = cpu_seconds() - before
        name = os.path.basename(path)
        if not done.stdout:
            print(f"| {name} | no result after {seconds:.1f} s: {done.stderr.strip()} |")
            failed += 1
            continue
        r = json.loads(done.stdout)
        good = done.returncode == 0 and r["valid"] and r["live"] <= r["bytes"] <= r["capacity"]
        failed += not good
        print(f"| {name} | {r['blocks']} | {r['capacity']:,} | {r['live']:,} | {r['bytes']:,}{'' if good else ' FAIL'} "
              f"| {r['nodes']:,} | {seconds:.2f} |")
    print(f"{len(files) - failed} of {len(files)} fit")
    return 1 if failed or len(files) != 11 else 0


if __name__ == "__main__":
    sys.exit(main())
