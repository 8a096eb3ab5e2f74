#!/usr/bin/env python3
"""100 MB of nesting: refused with a position or by size, quickly and in little memory.

    tests/golden/big_nesting.py PROGRAM
"""
import os
import resource
import subprocess
import sys
import tempfile
import time

MEGABYTES = 100
CASES = {
    "brackets": b"[",  # flow sequences
    "braces": b"{a: ",  # flow mappings
    "dashes": b"- ",  # block sequences on one line
}


def main(program):
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for name, unit in CASES.items():
            for size in (15, MEGABYTES):  # below the largest file that is read, and above
                path = os.path.join(tmp, "%s-%d.yaml" % (name, size))
                with open(path, "wb") as file:
                    file.write(unit * (size * 1000000 // len(unit)))
                start = time.monotonic()
                done = subprocess.run([program, "check", path], capture_output=True, text=True, timeout=60)
                seconds = time.monotonic() - start
                os.unlink(path)
                good = done.returncode == 2 and path in done.stderr and len(done.stderr) < 400 and seconds < 5
                failed += not good
                print("%s %s, %d MB: status %d in %.2f s: %s" %
                      ("ok    " if good else "FAILED", name, size, done.returncode, seconds, done.stderr.strip()[-160:]))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    failed += memory > 200
    print("largest resident memory %.0f MB" % memory)
    print("%d passed, %d failed" % (2 * len(CASES) + 1 - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
