#!/usr/bin/env python3
"""Run the shared check of the command-line contract (../shared/checks/cli_contract.py), where it is present.

    contract.py PATH/TO/sinter
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require("numpy")
import sinter_cli as cli  # noqa: E402

shared = cli.find_shared()
check = shared and os.path.join(shared, "checks", "cli_contract.py")
if not check or not os.path.exists(check):
    cli.skip("no ../shared/checks/cli_contract.py (or SINTER_SHARED)")
program = cli.find_sinter(sys.argv[1] if len(sys.argv) > 1 else None)

# The check takes a tree ensemble for a model that is out of scope. Sinter converts it (docs/ops.md), so these two lines of the
# check do not hold; test_cli.py tests the refusal of models that are out of scope.
SUPPORTED = ("a model that is out of scope is refused, naming op", "and leaves no file")
done = subprocess.run([sys.executable, check, program], stdout=subprocess.PIPE, text=True)
print(done.stdout, end="")
lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "FAIL "))]
failed = [line for line in lines if line.startswith("FAIL ")]
unexpected = [line for line in failed if not line[len("FAIL "):].strip().startswith(SUPPORTED)]
if done.returncode not in (0, 1) or len(lines) < 20 or unexpected or (done.returncode == 1 and not failed):
    sys.exit(f"the contract is broken: {unexpected or done.returncode}")
