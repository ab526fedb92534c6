#!/usr/bin/env python3
"""Adds up test results and ends with `N passed, N failed`.

Reads JSON lines of Meson's testlog.json. A test program prints `ok   name` or
`skip name: why` for each of its cases; one that prints neither counts as one case. A
program that fails counts as one failure in addition to its passed cases.
"""
import json
import re
import sys

passed = failed = skipped = 0
for line in open(sys.argv[1], encoding="utf-8"):
    test = json.loads(line)
    out = test.get("stdout") or ""
    ok = len(re.findall(r"^ok ", out, re.M))
    for why in re.findall(r"^skip (.*)", out, re.M):
        skipped += 1
        print(f"SKIPPED {test['name']}: {why}")
    if test["result"] == "SKIP":
        skipped += 1
        print(f"SKIPPED {test['name']}: {out.strip() or 'no reason given'}")
    elif test["result"] in ("OK", "EXPECTEDFAIL"):
        passed += ok or 1
    else:
        passed += ok
        failed += 1
        print(f"FAILED {test['name']}: {test['result']}")
print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(1 if failed or not passed else 0)
