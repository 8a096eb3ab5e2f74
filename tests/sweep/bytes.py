#!/usr/bin/env python3
"""The rows of a sweep are the same bytes, however they are made: threads, chunks, shards, processes, and kills at any moment.

    tests/sweep/bytes.py PROGRAM
"""
import csv
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
KILLS = 20
FIXED = 20260729  # of the random numbers

SWEEP = '''
k25sim: sweep
version: 1
name: bytes
base: tp8_bs1
axes:
  - {variants: {fitted: {calibration: k25_tp8_vllm}, "priors, \\"bare\\"": {calibration: none}}, name: box}
  - {zip: {plan.tp: [3, 4, 8], plan.memory_utilisation: [0.9, 0.94, 0.95]}}
  - {key: plan.allreduce.backend, values: [nccl, fastest]}
  - {key: plan.context, from: 1024, to: 16384, step: 512}
  - {key: plan.batch, from: 1, to: 32, step: 1}
constraints: ["plan.batch * plan.context <= 400000", "tpot_ms < 60 || !fits"]
objectives: [{maximise: tok_s}, {minimise: tpot_ms}, {minimise: kv_pool_gb}]
group_by: [box, plan.allreduce.backend]
top: 3
'''

failures = []
passed = []


def check(what, ok, more=""):
    (passed if ok else failures).append(what)
    print("%s %s%s" % ("ok    " if ok else "FAILED", what, "" if ok else ": " + str(more)))


def run(words, threads=1, **keys):
    # Open MPI frees little of its own when it ends.
    leaks = {"ASAN_OPTIONS": "detect_leaks=0"} if "mpirun" in words[0] else {}
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), **leaks)
    return subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, **keys)


def sweep(out, *more, threads=1, file="sweep.yaml"):
    done = run([PROGRAM, "sweep", file, "-o", out, *more], threads)
    if done.returncode != 0:
        check("sweep " + out, False, done.stderr)
    return done


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def leftovers(out):
    return [out + end for end in (".part", ".state") if os.path.exists(out + end)]


def without_intervals(summary):
    """The summary as of merged rows: without the last column, which needs the sweep, and the line about it."""
    lines, cut = [], None
    for line in summary.splitlines():
        if "tok_s +- %" in line and not line.startswith("tok_s +- %:"):
            cut = line.index("tok_s +- %")
        if line == "":
            cut = None
        if not line.startswith("tok_s +- %:"):
            lines.append(line if cut is None else line[:cut].rstrip())
    return "\n".join(lines).rstrip()


def same(what, out, summary=None):
    check(what + ": rows", os.path.exists(out) and digest(out) == WANTED, out)
    if summary is not None:
        check(what + ": summary", summary == SUMMARY, summary)


def threads_and_chunks():
    for threads, chunk in ((1, 1), (2, 8192), (3, 97), (2, 1000), (3, 100000)):
        out = "t%d_%d.csv" % (threads, chunk)
        done = sweep(out, "--chunk", str(chunk), threads=threads)
        same("%d threads, chunks of %d" % (threads, chunk), out, done.stdout)
        check("nothing is left of %s" % out, leftovers(out) == [])
    done = run([PROGRAM, "sweep", "sweep.yaml", "-o", "-"], 2)
    check("to standard output", hashlib.sha256(done.stdout.encode()).hexdigest() == WANTED)


def shards():
    for count in (1, 2, 3, 7):
        names = ["shard%d_of_%d.csv" % (i, count) for i in range(1, count + 1)]
        for i, name in enumerate(names):
            sweep(name, "--shard", "%d/%d" % (i + 1, count), "--chunk", str(50 + 400 * i), threads=2)
        random.shuffle(names)
        if count > 1:
            done = run([PROGRAM, "sweep", "--merge", *names, "-o", "merged%d.csv" % count])
            same("%d shards merged" % count, "merged%d.csv" % count)
            check("%d shards merged: summary" % count, done.stdout.rstrip() == without_intervals(SUMMARY), done.stdout)
    done = run([PROGRAM, "sweep", "--merge", "shard1_of_3.csv", "shard3_of_3.csv", "-o", "no.csv"])
    check("a missing shard is an error", done.returncode == 2 and "shard 2 of 3 is missing" in done.stderr, done.stderr)
    done = run([PROGRAM, "sweep", "--merge", "shard1_of_2.csv", "shard1_of_2.csv", "-o", "no.csv"])
    check("a shard given twice is an error", done.returncode == 2 and "are both shard 1" in done.stderr, done.stderr)


def processes():
    mpirun = shutil.which("mpirun")
    if mpirun is None or not os.path.exists(os.path.join(os.path.dirname(PROGRAM), "k25sim_mpi.so")):
        print("skipped: processes under mpirun (%s)" % ("no mpirun" if mpirun is None else "built without MPI"))
        return
    for count in (1, 2, 4):
        out = "mpi%d.csv" % count
        words = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", str(count), PROGRAM, "sweep", "sweep.yaml", "-o", out,
                 "--chunk", "77"]
        done = run(words)
        check("mpirun -n %d" % count, done.returncode == 0, done.stderr)
        same("%d processes" % count, out, done.stdout)
    with open("bad.yaml", "w") as file:
        file.write(SWEEP.replace("tpot_ms <", "tpot_mss <"))
    done = run([*words[:5], PROGRAM, "sweep", "bad.yaml"])
    check("an error is said once by several processes", done.stderr.count("did you mean 'tpot_ms'") == 1, done.stderr)
    check("and its status is that of one process", done.returncode == 2, done.returncode)
    done = run([*words[:3], "-n", "1", PROGRAM, "sweep", "sweep.yaml", "-o", "odd.csv", ":", "-n", "1", PROGRAM, "sweep",
                "sweep.yaml", "-o", "odd.csv", "--chunk", "5"])
    check("processes with other options are refused", "different files or options" in done.stderr, done.stderr)
    killed_processes(mpirun)


def killed_processes(mpirun):
    words = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", PROGRAM, "sweep", "sweep.yaml", "-o", "mpik.csv",
             "--chunk", "20"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    limit = time.monotonic() + 60
    while time.monotonic() < limit and process.poll() is None:
        if os.path.exists("mpik.csv.part") and os.path.getsize("mpik.csv.part") > 20000:
            break
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1)  # mpirun's processes have groups of their own and end when they find it gone
    done = run([*words, "--resume"])
    check("killed processes resume", done.returncode == 0, done.stderr)
    same("killed processes", "mpik.csv")


def kill_and_resume(trial, seconds):
    out = "kill%d.csv" % trial
    chunk = random.choice((1, 7, 50, 300, 2000))
    kills = random.randint(1, 3)
    for _ in range(kills):
        process = subprocess.Popen([PROGRAM, "sweep", "sweep.yaml", "-o", out, "--resume", "--chunk", str(chunk)],
                                   env=dict(os.environ, OMP_NUM_THREADS=str(random.randint(1, 3))),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, seconds))
        process.kill()
        process.wait()
    done = sweep(out, "--resume", threads=2)
    same("killed %d times (chunks of %d), then resumed" % (kills, chunk), out, done.stdout)
    check("nothing is left of %s" % out, leftovers(out) == [])


def interrupted():
    """Ctrl-C keeps what is done; a damaged part is found and made again."""
    process = subprocess.Popen([PROGRAM, "sweep", "sweep.yaml", "-o", "int.csv", "--chunk", "1"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=dict(os.environ, OMP_NUM_THREADS="2"))
    limit = time.monotonic() + 60
    while time.monotonic() < limit and process.poll() is None:
        if os.path.exists("int.csv.part") and os.path.getsize("int.csv.part") > 4000:
            break
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    check("Ctrl-C: status 3 and what to do", process.returncode == 3 and "--resume goes on" in errors, errors)
    done = run([PROGRAM, "sweep", "sweep.yaml", "-o", "int.csv"])
    check("an unfinished sweep is not overwritten", done.returncode == 2 and "unfinished" in done.stderr, done.stderr)
    with open("other.yaml", "w") as file:
        file.write(SWEEP.replace("< 60", "< 61"))
    done = run([PROGRAM, "sweep", "other.yaml", "-o", "int.csv", "--resume"])
    check("another sweep does not resume it", done.returncode == 2 and "another sweep" in done.stderr, done.stderr)
    with open("int.csv.part", "r+b") as file:
        file.seek(2000)
        byte = file.read(1)
        file.seek(2000)
        file.write(bytes([byte[0] ^ 1]))
    sweep("int.csv", "--resume")
    same("a damaged part", "int.csv")


def like_predict():
    """A row says what predict says of the same plan."""
    with open("all.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    names = ("step_ms", "tpot_ms", "tok_s", "gpu_busy_ms", "kernels_ms", "allreduce_ms", "allreduce_transfer_ms",
             "allreduce_wait_ms", "allreduce_share", "other_collectives_ms", "gaps_ms", "host_ms", "launches", "allreduces",
             "distinct_experts", "tokens_per_step")
    fitting = [row for row in rows if row["fits"] == "true"]
    for row in random.sample(fitting, 12) + [fitting[0], fitting[-1]]:
        settings = ["--set=%s=%s" % (key, value) for key, value in row.items() if key.startswith("plan.")]
        settings.append("--set=calibration=" + ("k25_tp8_vllm" if row["box"] == "fitted" else "none"))
        answer = json.loads(run([PROGRAM, "predict", "tp8_bs1", "--format", "json", *settings]).stdout)
        wrong = [name for name in names if row[name] != "%.6g" % answer[name]]
        wrong += ["largest_batch"] if row["largest_batch"] != "%.6g" % answer["memory"]["largest_batch"] else []
        check("row of TP%s, batch %s, context %s" % (row["plan.tp"], row["plan.batch"], row["plan.context"]), not wrong, wrong)
    misfits = [row for row in rows if row["fits"] == "false"]
    check("what does not fit has no step", misfits != [] and all(row["step_ms"] == "" for row in misfits))
    sweep("all.jsonl")
    with open("all.jsonl") as file:
        objects = [json.loads(line) for line in file]
    check("JSON lines have the same rows", len(objects) == len(rows) and all(
        list(o) == list(r) and o["box"] == r["box"] and ("%.6g" % o["tok_s"] if o["fits"] else "") == r["tok_s"]
        for o, r in zip(objects, rows)))


def main():
    global WANTED, SUMMARY
    random.seed(FIXED)
    with open("sweep.yaml", "w") as file:
        file.write(SWEEP)
    start = time.monotonic()
    done = sweep("all.csv", threads=1)
    seconds = time.monotonic() - start
    WANTED, SUMMARY = digest("all.csv"), done.stdout
    check("there are rows", os.path.getsize("all.csv") > 100000)
    like_predict()
    threads_and_chunks()
    shards()
    for trial in range(KILLS):
        kill_and_resume(trial, seconds * 1.2)
    interrupted()
    processes()
    print("%d passed, %d failed" % (len(passed), len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        status = main()
        os.chdir("/")
    sys.exit(status)
