#!/usr/bin/env python3
"""Run the shared check of the command-line contract (../shared/checks/cli_contract.py), where it is present.

    contract.py PATH/TO/sinter
"""
import os
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
os.execv(sys.executable, [sys.executable, check, program])
