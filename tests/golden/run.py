#!/usr/bin/env python3
"""Runs the golden cases: what the program prints, word for word.

    tests/golden/run.py [--update] PROGRAM [CASE.case]...

A case is a text file of one or more steps:

    # a comment
    $ k25sim predict tp8_bs1 --set plan.tpp=4
    status: 2
    stdout:
    stderr:
      k25sim predict: --set plan.tpp=4: unknown key 'tpp' in plan, did you mean 'tp'?

Lines of output are indented by two spaces. Steps run in the source folder. {tmp} is a fresh folder, the same for all steps of
a case; {root} stands for the source folder in what is printed, {version} for the program's version where it says it. Other programs (`cat`, `head`) show a written file; `< FILE` and `> FILE`
redirect. To add a case, write its `$` lines and run with --update, then read what came out.
"""
import functools
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def read_case(path):
    """Comments and steps as text: a list of (comments, command, expectation)."""
    steps, comments = [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                comments.append(line)
            elif line.startswith("$ "):
                steps.append([comments, line[2:].rstrip("\n"), ""])
                comments = []
            elif line.strip() and steps:
                steps[-1][2] += line
            elif steps and steps[-1][2]:
                steps[-1][2] += line  # a blank line of output; trailing ones are cut below
    for step in steps:
        step[2] = step[2].rstrip("\n") + "\n"
    return steps


def indent(text):
    return "".join("  " + line + "\n" if line else "\n" for line in text.split("\n")).rstrip("\n")


def block(name, text):
    return name + ":\n" + (indent(text.rstrip("\n")) + "\n" if text else "")


@functools.cache
def version_of(program):
    return subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout.split()[1]


def masked(text, program, tmp):
    """What differs between places and releases."""
    version = version_of(program)
    for written in ("k25sim %s", 'program: "%s"'):
        text = text.replace(written % version, written % "{version}")
    return text.replace(tmp, "{tmp}").replace(ROOT + "/", "{root}/")


def run_step(program, command, tmp):
    words = [w.replace("{tmp}", tmp) for w in shlex.split(command)]
    stdin, stdout = subprocess.DEVNULL, subprocess.PIPE
    if "<" in words:
        at = words.index("<")
        stdin = open(os.path.join(ROOT, words[at + 1]), "rb")
        words = words[:at] + words[at + 2:]
    if ">" in words:
        at = words.index(">")
        stdout = open(os.path.join(ROOT, words[at + 1]), "wb")
        words = words[:at] + words[at + 2:]
    words = [program if w == "k25sim" else w for w in words]
    done = subprocess.run(words, cwd=ROOT, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=120)
    out, err = [masked((b or b"").decode("utf-8", "backslashreplace"), program, tmp) for b in (done.stdout, done.stderr)]
    return "status: %d\n" % done.returncode + block("stdout", out) + block("stderr", err)


def run_case(program, path, update):
    steps = read_case(path)
    ok, text = True, ""
    with tempfile.TemporaryDirectory() as tmp:
        for comments, command, expected in steps:
            got = run_step(program, command, tmp).rstrip("\n") + "\n"
            text += "".join(comments) + "$ " + command + "\n" + got + "\n"
            if got != expected and not update:
                ok = False
                print("FAILED %s: $ %s" % (os.path.relpath(path, ROOT), command))
                difference(expected, got)
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")
    return ok


def difference(expected, got):
    import difflib
    lines = difflib.unified_diff(expected.splitlines(), got.splitlines(), "expected", "got", lineterm="", n=1)
    for line in list(lines)[:40]:
        print("  " + line)


def main(arguments):
    update = "--update" in arguments
    arguments = [a for a in arguments if a != "--update"]
    if not arguments:
        sys.exit(__doc__)
    program = os.path.abspath(arguments[0])
    cases = arguments[1:] or sorted(os.path.join(HERE, n) for n in os.listdir(HERE) if n.endswith(".case"))
    results = [run_case(program, os.path.abspath(case), update) for case in cases]
    print("%d passed, %d failed" % (results.count(True), results.count(False)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
