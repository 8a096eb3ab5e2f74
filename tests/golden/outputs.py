#!/usr/bin/env python3
"""No command writes over a file that it reads, nor, without --force, over one that it did not make.

usage: tests/golden/outputs.py PROGRAM

Every command that writes is called with its output in the place of each of its inputs, by name, as ./name, through a
symbolic and through a hard link, with and without --force: status 2, the file is named, and no byte has changed.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests" / "golden" / "data"

failures = []
checks = 0


def check(what, ok, more=""):
    global checks
    checks += 1
    if not ok:
        failures.append(what)
        print(f"FAILED {what}\n  {more}")


def run(words, **keys):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120, **keys)


def everything():
    return {str(path): path.read_bytes() for path in pathlib.Path(".").rglob("*") if path.is_file()}


def refuse(what, words, named, **keys):
    before = everything()
    done = run(words, **keys)
    right = done.returncode == 2 and named in done.stderr and everything() == before
    check(f"{what}: k25sim {' '.join(words)}", right, f"status {done.returncode}: {done.stdout}{done.stderr}")


# What each command reads (files of the folder that make_inputs fills), and how it is called to write OUT.
CALLS = {
    "calibrate": (["box.yaml", "points.csv", "machine.yaml", "gpu.yaml", "set.yaml"],
                  ["calibrate", "box.yaml", "--points", "points.csv", "--only", "kernel.scale", "-o", "OUT"]),
    "calibrate, a capture": (["box.yaml", "capture/" + "TRACE"],
                             ["calibrate", "box.yaml", "--capture", "capture", "--accept", "a toy", "--only", "kernel.scale", "-o", "OUT"]),
    "sweep": (["sweep.yaml", "box.yaml", "machine.yaml", "gpu.yaml", "set.yaml"], ["sweep", "sweep.yaml", "-o", "OUT"]),
    "sweep --merge": (["s1.csv", "s2.csv", "s1.csv.state"], ["sweep", "--merge", "s1.csv", "s2.csv", "-o", "OUT"]),
    "import topo": (["topo.txt", "gpu.yaml"], ["import", "topo", "topo.txt", "--gpu", "./gpu.yaml", "-o", "OUT"]),
    "import hf": (["config.yaml"], ["import", "hf", "config.yaml", "-o", "OUT"]),
}


def make_inputs():
    name = next(iter(sorted((DATA / "capture").iterdir()))).name
    shutil.copytree(DATA / "capture", "capture")
    shutil.copy(DATA / "points.csv", "points.csv")
    shutil.copy(DATA / "topo.txt", "topo.txt")
    shutil.copy(DATA / "llama.json", "config.yaml")  # JSON is YAML; import hf wants a name that ends so
    shutil.copy(ROOT / "hw" / "gpus" / "rtx-pro-6000-server.yaml", "gpu.yaml")
    shutil.copy(ROOT / "hw" / "machines" / "rtx-pro-6000-8x-two-socket.yaml", "machine.yaml")
    machine = pathlib.Path("machine.yaml").read_text()
    pathlib.Path("machine.yaml").write_text(machine.replace("gpu: rtx-pro-6000-server", "gpu: ./gpu.yaml"))
    shutil.copy(ROOT / "calib" / "sets" / "kimi-k26-v4.yaml", "set.yaml")
    scenario = (ROOT / "scenarios" / "kimi-k26-v4.yaml").read_text().splitlines()
    change = {"machine:": "machine: ./machine.yaml\ncalibration: ./set.yaml"}
    pathlib.Path("box.yaml").write_text("\n".join(change.get(line.split(" ")[0], line) for line in scenario) + "\n")
    pathlib.Path("sweep.yaml").write_text("k25sim: sweep\nversion: 1\nname: small\nbase: ./box.yaml\n"
                                          "axes: [{key: plan.batch, values: [1, 2]}]\n")
    for i in (1, 2):
        done = run(["sweep", "sweep.yaml", "-o", f"s{i}.csv", "--shard", f"{i}/2"])
        check(f"shard {i}", done.returncode == 0, done.stderr)
    return name


def over_inputs(trace):
    for what, (inputs, words) in CALLS.items():
        for name in (entry.replace("TRACE", trace) for entry in inputs):
            os.symlink(name, "link")
            os.link(name, "hard")
            for out in (name, "./" + name, "link", "hard"):
                for force in ([], ["--force"]):
                    refuse(what, [out if word == "OUT" else word for word in words] + force, out)
            os.unlink("link")
            os.unlink("hard")
    # A sweep also writes OUT.part and OUT.state, import hf a second file, simulate one a rank.
    shutil.copy("sweep.yaml", "x.part")
    refuse("sweep", ["sweep", "x.part", "-o", "x", "--force"], "x.part")
    os.unlink("x.part")
    with open("topo.txt") as piped:
        refuse("standard input", ["import", "topo", "-", "-o", "topo.txt", "--force"], "topo.txt", stdin=piped)
    refuse("--out=FILE", ["import", "topo", "topo.txt", "--output=topo.txt"], "topo.txt")


def over_others():
    """Files that are somebody else's: refused, then written over with --force."""
    writers = {what: words for what, (_, words) in CALLS.items()}
    writers["init"] = ["init", "OUT"]
    for what, words in writers.items():
        pathlib.Path("others.yaml").write_text("k25sim: scenario\n# written by hand\n")
        words = ["others.yaml" if word == "OUT" else word for word in words]
        refuse(what, words, "others.yaml: is there already; --force writes over it")
        done = run([*words, "--force"])
        check(f"{what} --force", done.returncode == 0 and "by hand" not in pathlib.Path("others.yaml").read_text(),
              done.stderr)
        for path in pathlib.Path(".").glob("others*"):
            path.unlink()
    done = run(["import", "hf", "config.yaml", "-o", "others.yaml"])
    second = next(pathlib.Path(".").glob("others.*.yaml"))
    os.unlink("others.yaml")
    refuse("import hf, both or none", ["import", "hf", "config.yaml", "-o", "others.yaml"], str(second))
    os.unlink(second)


def over_its_own():
    """What a command made before, and says so, is written over."""
    shutil.copy("set.yaml", "other_set.yaml")
    refuse("sweep over a set", ["sweep", "sweep.yaml", "-o", "other_set.yaml"], "is there already")
    words = ["calibrate", "box.yaml", "--points", "points.csv", "--only", "kernel.scale", "-o", "mine.yaml"]
    for _ in range(2):
        done = run(words)
        check("calibrate over its own set", done.returncode == 0, done.stderr)
    traces = ["simulate", "tp8_bs1", "--steps", "2", "--trace", "traces"]
    check("simulate", run(traces).returncode == 0)
    refuse("simulate", traces, "traces/rank0.")
    check("simulate --force", run([*traces, "--force"]).returncode == 0)
    sweep = ["sweep", "sweep.yaml", "-o", "rows.csv"]
    check("sweep", run(sweep).returncode == 0)
    refuse("sweep", sweep, "rows.csv: is there already")
    check("sweep --resume over rows of its own columns", run([*sweep, "--resume"]).returncode == 0)
    pathlib.Path("notes.csv").write_text("a,b\n1,2\n")
    refuse("sweep --resume over other rows", ["sweep", "sweep.yaml", "-o", "notes.csv", "--resume"],
           "notes.csv: is there already")
    check("sweep --force", run([*sweep, "--force"]).returncode == 0)
    shard = ["sweep", "sweep.yaml", "-o", "s1.csv", "--shard", "1/2"]
    check("a shard with its state is looked through again", run([*shard, "--resume"]).returncode == 0)
    pathlib.Path("sweep.yaml").write_text(pathlib.Path("sweep.yaml").read_text().replace("[1, 2]", "[1, 3]"))
    refuse("rows of another sweep", [*shard, "--resume"], "s1.csv: the rows of another sweep")
    for name in ("set", "o", "a=b"):  # named like an option, or like a key with its value
        pathlib.Path(name).write_text("k25sim: scenario\n")
        done = run(["import", "topo", "topo.txt", "-o", name, "--force", "--name", "box"])
        check(f"-o {name}", done.returncode == 0, done.stderr)
        os.unlink(name)
    check("a device", run(["import", "topo", "topo.txt", "-o", "/dev/null"]).returncode == 0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        trace = make_inputs()
        over_inputs(trace)
        over_others()
        over_its_own()
        os.chdir("/")
    print(f"{checks - len(failures)} of {checks} checks passed")
    sys.exit(1 if failures else 0)


main()
