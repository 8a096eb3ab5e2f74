#!/usr/bin/env python3
"""Every example of the help texts, README.md, docs/*.md and the manual page runs, with exit status 0.

usage: tests/golden/examples.py PROGRAM

The files of a user that examples name (my-box.yaml, profile/, points.csv, ...) are made first; nvidia-smi, jq, less and
mpirun are stand-ins. A command with --bar may also say that the bar is missed: the figures are ours, the bar is not.
The manual page's synopsis must start each command on a line of its own.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests" / "golden" / "data"

STANDINS = {
    "k25sim": f'exec {shlex.quote(PROGRAM)} "$@"',
    "nvidia-smi": f"cat {shlex.quote(str(DATA / 'topo.txt'))}",
    "jq": "cat >/dev/null",
    "less": "cat >/dev/null",
    "mpirun": 'shift 2; exec "$@"',
}
NCCL = """# nThread 1 nGpus 8 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1000 on       host device  0 [0x01] NVIDIA RTX PRO 6000
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           512  bfloat16     sum      -1    35.10    0.03    0.05      0    34.90    0.03    0.05      0
        2048          1024  bfloat16     sum      -1    36.20    0.06    0.10      0    36.00    0.06    0.10      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.075
"""
PROFILER = """-------------------------------------------------------  ------------  ------------  ------------
                                                   Name     Self CUDA   Self CUDA %    # of Calls
-------------------------------------------------------  ------------  ------------  ------------
ncclDevKernel_AllReduce_Sum_bf16_RING_LL                      11.170ms        51.50%           123
-------------------------------------------------------  ------------  ------------  ------------
Self CUDA time total: 21.690ms
"""
SWEEP = """k25sim: sweep
version: 1
name: mine
base: tp8_bs1
axes: [{key: plan.batch, values: [1, 2, 4, 8]}, {key: plan.context, values: [1024, 4096]}]
constraints: [fits]
objectives: [{maximise: tok_s}, {minimise: tpot_ms}]
"""
failures = []


def make_box(folder):
    """A user's folder, and the stand-ins."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name, text in STANDINS.items():
        path = bin_folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    os.environ["PATH"] = f"{bin_folder}:{os.environ['PATH']}"
    home = folder / "home"
    home.mkdir()
    os.chdir(home)
    for name in ("base", "hw", "model", "calib", "scenarios"):
        os.symlink(ROOT / name, name)
    shutil.copy(DATA / "points.csv", "points.csv")
    shutil.copy(DATA / "llama.json", "config.json")
    shutil.copy(DATA / "topo.txt", "topo.txt")
    pathlib.Path("all_reduce.txt").write_text(NCCL)
    pathlib.Path("all_reduce.log").write_text(NCCL)
    pathlib.Path("profiler_out_0.txt").write_text(PROFILER)
    pathlib.Path("my-sweep.yaml").write_text(SWEEP)
    pathlib.Path("my-rules.yaml").write_text("k25sim: kernels\nversion: 1\nrules:\n  - {class: norm, base: [my_norm]}\n")
    for words in (["init", "box.yaml"], ["simulate", "tp8_bs1", "--steps", "8", "--trace", "profile"]):
        subprocess.run([PROGRAM, *words], check=True, stdout=subprocess.DEVNULL)
    for name in ("my-box.yaml", "my_box.yaml", "my-question.yaml"):
        shutil.copy("box.yaml", name)
    for i in range(1, 9):
        subprocess.run([PROGRAM, "sweep", "my-sweep.yaml", "-o", f"part{i}.csv", "--shard", f"{i}/8"], check=True,
                       stdout=subprocess.DEVNULL)
    return home


def commands():
    out = subprocess.run([PROGRAM, "help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+) ", out.split("commands:")[1].split("\noptions")[0], re.M)


def without_remark(line):
    """An example may be followed by two or more spaces and words."""
    return re.split(r"\s{2,}", line.strip())[0]


def from_help():
    for command in [""] + commands():
        text = subprocess.run([PROGRAM, "help", *command.split()], capture_output=True, text=True, check=True).stdout
        if "\nexamples:\n" not in text:
            continue
        for line in text.split("\nexamples:\n")[1].split("\n\n")[0].splitlines():
            if "k25sim " in line:
                yield f"help {command}", without_remark(line)


def from_markdown():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        joined = re.sub(r"\\\n\s*", "", path.read_text())
        for line in joined.splitlines():
            if re.match(r"    (k25sim|nvidia-smi) ", line):
                line = without_remark(line)
                optional = re.search(r" \[(.*?)\]", line) # what may be left out
                yield path.name, line.replace(optional[0], "") if optional else line
                if optional:
                    yield path.name, line.replace(optional[0], " " + optional[1])


def from_manual():
    for line in (ROOT / "docs" / "k25sim.1").read_text().splitlines():
        if line.startswith(".Dl $ "):
            yield "k25sim.1", line[6:]


def check_synopsis():
    synopsis = (ROOT / "docs" / "k25sim.1").read_text().split(".Sh SYNOPSIS\n")[1].split(".Sh ")[0]
    entries = [entry.strip().splitlines() for entry in re.split(r"^\.Nm$", synopsis, flags=re.M)]
    names = [entry[0].split()[1] for entry in entries if entry and entry[0].startswith(".Cm")]
    for name in commands():
        if name not in names:
            failures.append(f"k25sim.1: the synopsis has no {name} on a line of its own")
    for entry in entries:
        extra = [line for line in entry[1:] if line.startswith(".Cm ") and line.split()[1] in commands()]
        failures.extend(f"k25sim.1: the synopsis joins '{entry[0]}' and '{line}'" for line in extra)


def run(place, line):
    for path in ("my-box-set.yaml", "my_box_set.yaml", "set.yaml", "plans.csv", "my-set.yaml", "part3.csv", "v4.yaml"):
        if f"-o {path}" in line and "--resume" not in line and pathlib.Path(path).exists():
            os.unlink(path)
    if re.search(r"k25sim init \S|k25sim import|--trace ", line):
        line += " --force"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=300)
    good = done.returncode == 0 or (done.returncode == 1 and "--bar" in line)
    if not good:
        failures.append(f"{place}: $ {line}\n  status {done.returncode}: {(done.stderr or done.stdout)[-400:]}")


def main():
    check_synopsis()
    examples = list(dict.fromkeys([*from_help(), *from_markdown(), *from_manual()]))
    with tempfile.TemporaryDirectory() as folder:
        make_box(pathlib.Path(folder))
        for place, line in examples:
            run(place, line)
        os.chdir("/")
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(examples)} examples, {len(failures)} failures")
    sys.exit(1 if failures or len(examples) < 60 else 0)


main()
