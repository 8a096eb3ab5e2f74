#!/usr/bin/env python3
"""What README.md quotes of `k25sim predict scenarios/tp8_bs1.yaml` is what the program prints.

    readme.py [--update] PROGRAM        run from the source root; --update rewrites the quotation
"""
import subprocess
import sys

HEAD = "Both work on a bare Debian 12"
TAIL = "## Ask it something"


def quotation(program):
    out = subprocess.run([program, "predict", "scenarios/tp8_bs1.yaml"], capture_output=True, text=True, check=True).stdout
    lines = out.split("\nassumed\n")[0].rstrip().split("\n")
    return "\n".join("    " + line if line else "" for line in lines)


def main():
    update = "--update" in sys.argv
    program = sys.argv[-1]
    readme = open("README.md", encoding="utf-8").read()
    start = readme.index("\n\n", readme.index(HEAD)) + 2
    end = readme.index(TAIL)
    wanted = quotation(program) + "\n\n"
    if update:
        open("README.md", "w", encoding="utf-8").write(readme[:start] + wanted + readme[end:])
    elif readme[start:end] != wanted:
        print("README.md quotes what the program does not print; tests/golden/readme.py --update PROGRAM rewrites it")
        print("0 passed, 1 failed")
        return 1
    print("1 passed, 0 failed")
    return 0


sys.exit(main())
