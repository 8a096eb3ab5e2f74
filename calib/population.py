#!/usr/bin/env python3
"""The spreads of hw/params/params.yaml as those of a population of builds: how much a parameter varies from box to box.

    calib/population.py PROGRAM [--rounds 5] [--without GROUP] [-o FILE]

Empirical Bayes by expectation and maximisation. Every group of calib/points (one box, build and configuration, rows without
speculation, four or more of them) is calibrated by itself from the current priors; the spread of a parameter then becomes

    s^2 = (V s0^2 + sum w (sd^2 + (x - m)^2)) / (V + W)

with x and sd the posterior of ln(parameter) in a group, m the prior's centre, w = 1 / variants of its page, so that a page with
many variants of one box counts once, W the sum of w, and s0 what is known without any served build, the key `alone` of a
prior, which counts as V = 4 groups. Centres stay what single kernels, data sheets and sources say: moved to the mean of these
boxes they fit no better once calibrated and worse on another GPU. Groups that a parameter does not move in, and those whose
posterior is no narrower than the prior, say nothing. Constants (spread 0) stay, and so do AllReduces, which are measured by
themselves on many hosts.

Rows leave switches open; scenario() fills them by one rule for all. FILE (default: params.yaml itself) is written whole.
--without leaves a page out, for a test on what the priors have not seen."""
import argparse, collections, concurrent.futures, csv, glob, math, os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MACHINES = {"8": "rtx-pro-6000-8x-two-socket", "4": "rtx-pro-6000-4x", "2": "rtx-pro-6000-2x"}
ONESHOT = {"8": 57344, "4": 122880, "2": 8388608}
LIMITS = {"kimi-k26": 262144}  # bytes; of the limits in use the one that its cells at 16 and 32 users fit
ALONE = 4.0  # groups that the spread without a population counts as
ISOLATED = re.compile(r"^(oneshot\.|nccl\.(?!gather))")  # measured by themselves on many hosts: steps know them less well
PRIOR = re.compile(r"^  ([\w.]+):\n    \{centre: ([^,]+), spread: ([^,]+), (?:alone: ([^,]+), )?", re.M)


def scenario(row):
    """The scenario of a group that has none in scenarios/: empty cells are filled by the same rule everywhere."""
    kind = row["allreduce_kind"] or ("oneshot_then_nccl" if row["num_gpus"] == "2" and row["engine"] == "vllm" else "nccl")
    kv = row["kv_dtype"] if row["kv_dtype"] in ("fp8", "bf16") else ("fp8" if row["weights_kind"] == "nvfp4" else "bf16")
    switches = row["num_gpus"] == "8" and row["wiring"] == "one_socket_switches"
    machine = "rtx-pro-6000-8x-switches" if switches else MACHINES[row["num_gpus"]]
    return ("k25sim: scenario\nversion: 1\nname: points\narchitecture: %s\nweights: %s\nmachine: %s\nplan:\n  tp: %s\n"
            "  batch: 1\n  context: 1400\n  kv_dtype: %s\n  memory_utilisation: 0.94\n"
            "  allreduce: {backend: %s, oneshot_max_bytes: %d, protocol: all}\n"
            "load: {short_prompt: 64, output_max: 8192, cell_seconds: 30}\n"
            % (row["model"], row["weights_kind"], machine, row["tp"] or row["num_gpus"], kv, kind,
               LIMITS.get(row["group"], ONESHOT[row["num_gpus"]])))


def groups(without):
    found = collections.OrderedDict()
    for path in sorted(glob.glob(os.path.join(ROOT, "calib/points/*.csv"))):
        with open(path, newline="") as f:
            for r in csv.DictReader(f):
                known = os.path.exists(os.path.join(ROOT, "model/zoo/%s.%s.yaml" % (r["model"], r["weights_kind"])))
                if r["anomaly"] == "1" or r["spec_kind"] != "none" or not known or r["num_gpus"] not in MACHINES:
                    continue
                if r["group"] == without:
                    continue
                r["kv_dtype"] = "" if r["kv_dtype"] == "auto" else r["kv_dtype"]
                key = (r["group"], r["variant"], r["num_gpus"], r["wiring"], r["model"], r["weights_kind"])
                found.setdefault(key, []).append(r)
    return {key: rows[::max(1, len(rows) // 30)] for key, rows in found.items() if len(rows) >= 4}


def posterior(program, data, folder, number, rows):
    """Calibrates one group: {parameter: (value, sd of its logarithm)}, or None where nothing can be predicted."""
    name = rows[0]["group"].replace("/", "-")
    if not os.path.exists(os.path.join(ROOT, "scenarios", name + ".yaml")):
        name = os.path.join(folder, "s%d.yaml" % number)
        with open(name, "w") as f:
            f.write(scenario(rows[0]))
    points, out = os.path.join(folder, "p%d.csv" % number), os.path.join(folder, "o%d.yaml" % number)
    with open(points, "w", newline="") as f:
        writer = csv.DictWriter(f, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    limit = LIMITS.get(rows[0]["group"])
    extra = ["--set", "plan.allreduce.oneshot_max_bytes=%d" % limit] if limit else []
    done = subprocess.run([program, "calibrate", name, "--points", points, "--set", "calibration=none", *extra, "-o", out,
                           "--data", data], capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        return None
    found = re.finditer(r"^  ([\w.]+): \{value: ([^,]+),.*log_sd: ([^}]+)\}", open(out).read(), re.M)
    return {m.group(1): (float(m.group(2)), float(m.group(3))) for m in found}


def maximise(name, centre, alone, now, results):
    """The new spread of a parameter. results: (weight, {parameter: posterior})"""
    said = [(w, math.log(p[name][0] / centre), p[name][1]) for w, p in results if name in p and p[name][1] < 0.98 * now]
    squares = sum(w * (sd * sd + x * x) for w, x, sd in said)
    return math.sqrt((ALONE * alone**2 + squares) / (ALONE + sum(w for w, _, _ in said)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program"), parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without", default=""), parser.add_argument("-o", "--output")
    a = parser.parse_args()
    path = os.path.join(ROOT, "hw/params/params.yaml")
    text = open(path).read()
    centre = {m.group(1): float(m.group(2)) for m in PRIOR.finditer(text)}
    alone = {m.group(1): float(m.group(4) or m.group(3)) for m in PRIOR.finditer(text)}
    now, measured = dict(alone), groups(a.without)
    program = os.path.abspath(a.program)
    pages = collections.Counter(key[0] for key in measured)

    def written(values):
        def line(m):
            name, s0, s = m.group(1), alone[m.group(1)], values[m.group(1)]
            said = "%.3g, alone: %.4g" % (s, s0) if s0 > 0 and abs(s / s0 - 1) > 0.05 else "%.4g" % s0
            return "  %s:\n    {centre: %s, spread: %s, " % (name, m.group(2), said)
        return PRIOR.sub(line, text)

    for round_ in range(a.rounds):
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "data")
            for part in ("hw", "model", "calib", "scenarios"):
                shutil.copytree(os.path.join(ROOT, part), os.path.join(data, part),
                                ignore=lambda d, names: [n for n in names if n.endswith((".c", ".h", ".csv", ".gz"))])
            with open(os.path.join(data, "hw/params/params.yaml"), "w") as f:
                f.write(written(now))
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                jobs = [pool.submit(posterior, program, data, folder, i, rows) for i, rows in enumerate(measured.values())]
                results = [(1 / pages[key[0]], job.result()) for key, job in zip(measured, jobs)]
        results = [(w, p) for w, p in results if p]
        now = {n: s if alone[n] == 0 or ISOLATED.match(n) else maximise(n, centre[n], alone[n], s, results)
               for n, s in now.items()}
        print("round %d: %d groups of %d pages" % (round_ + 1, len(results), len(pages)), file=sys.stderr)
    out = a.output or path
    with open(out + ".part", "w") as f:
        f.write(written(now))
    os.replace(out + ".part", out)


main()
