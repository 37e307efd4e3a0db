#!/usr/bin/env python3
"""`summary.py BUILD`: adds up what ctest, GoogleTest and lit wrote as JUnit XML and prints one line, `N passed, M failed[, K skipped]`.

A ctest entry counts as the tests inside it where it left a report (BUILD/results/NAME.xml), else as one test. An entry that failed without a
failed test in its report (a crash, a timeout) counts as one failure more. Exit status 1 if anything failed or nothing ran.
"""
import os
import sys
import xml.etree.ElementTree as xml


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled") or case.get("result") in ("skipped", "suppressed"):
        return "skipped"
    return "passed"


def main(build):
    total = dict(passed=0, failed=0, skipped=0)
    for entry in xml.parse(os.path.join(build, "ctest.xml")).iter("testcase"):
        report = os.path.join(build, "results", entry.get("name") + ".xml")
        inside = dict(passed=0, failed=0, skipped=0)
        try:
            cases = list(xml.parse(report).iter("testcase"))
        except (OSError, xml.ParseError):
            cases = []
        for case in cases:
            kind = outcome(case)
            inside[kind] += 1
            if kind == "failed":
                print(f"failed: {case.get('classname')}.{case.get('name')}")
        kind = outcome(entry)
        if not cases or (kind == "failed" and not inside["failed"]):
            inside[kind] += 1
            if kind == "failed":
                print(f"failed: {entry.get('name')}")
        for key in total:
            total[key] += inside[key]
    print(f"{total['passed']} passed, {total['failed']} failed" + (f", {total['skipped']} skipped" if total["skipped"] else ""))
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
