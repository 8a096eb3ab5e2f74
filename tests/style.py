#!/usr/bin/env python3
"""Every C file that git tracks is as clang-format 14 writes it by the repository's .clang-format.

usage: tests/style.py [--fix]

Prints the names of the files that differ and exits with 1; --fix rewrites them. Exits with 77, which ctest calls
skipped, without clang-format 14 or outside a checkout: other versions wrap some lines differently.
"""
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = "14"
SKIPPED = 77


def find_program():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path is None:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        if re.search(rf"version {VERSION}\.", said):
            return path
    return None


def differs(program, path):
    text = path.read_bytes()
    done = subprocess.run([program, "--style=file", f"--assume-filename={path}"], input=text, capture_output=True,
                          check=True)
    return done.stdout != text


def main():
    program = find_program()
    if program is None:
        print(f"skipped: there is no clang-format of version {VERSION}")
        return SKIPPED
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "*.c", "*.h"], capture_output=True, text=True)
    if listed.returncode != 0:
        print("skipped: this is no git checkout")
        return SKIPPED
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    if not names:
        print("git lists no C file")
        return 1
    with ThreadPoolExecutor() as pool:
        wrong = pool.map(lambda name: differs(program, ROOT / name), names)
        bad = [name for name, is_wrong in zip(names, wrong) if is_wrong]
    if bad and "--fix" in sys.argv[1:]:
        subprocess.run([program, "-i", "--style=file", *bad], cwd=ROOT, check=True)
        print(f"formatted {len(bad)} of {len(names)} files")
        return 0
    for name in bad:
        print(f"{name}: clang-format would change it; tests/style.py --fix does")
    print(f"{len(names) - len(bad)} of {len(names)} files are as .clang-format says")
    return 1 if bad else 0


sys.exit(main())
