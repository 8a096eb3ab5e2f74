#!/usr/bin/env python3
"""Runs what docs/accuracy.md says beside its tables and prints the numbers, row by row.

    tests/bench/accuracy.py build/release/k25sim                     the table, a few minutes
    tests/bench/accuracy.py /other/build/release/k25sim build/release/k25sim
                                                                     before and after, and how many numbers differ
    tests/bench/accuracy.py build/release/k25sim --only Kernels      one section (a part of its name)
    tests/bench/accuracy.py build/release/k25sim --commands          and the commands of every row

Measurements are those of this checkout, whatever program reads them; the library (models, machines, sets, priors) is
each program's own. Rows that a test prints (public hosts, serving) are printed by the tests beside the last program.
"""
import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
POINTS = ROOT / "calib" / "points"
KERNELS = ROOT / "calib" / "kernels_measured"
V4, V3 = ("kimi-k26-v4", POINTS / "kimi_k26_v4.csv"), ("kimi-k26-v3", POINTS / "kimi_k26_v3.csv")
MINIMAX = POINTS / "vs_inference_throughput_vllm_minimax_m25_nvfp4_2gpu_v0.19.1r.csv"
DCP1 = ["--where", "dcp=1", "--where", "spec_kind=none", "--where", "variant=1"]
PLAIN = ["--where", "spec_kind=none", "--where", "variant=1"]
EAGLE = ["--where", "spec_kind=eagle3", "--where", "variant=1"]


class Program:
    """One k25sim, the answers it has given and the calibration sets it has made."""

    def __init__(self, path, folder):
        self.path, self.folder = str(pathlib.Path(path).resolve()), pathlib.Path(folder)
        self.answers = {}
        self.commands = []

    def run(self, *arguments):
        arguments = tuple(str(a) for a in arguments)
        self.commands.append(" ".join(a.removeprefix(f"{ROOT}/") for a in arguments))
        if arguments not in self.answers:
            done = subprocess.run([self.path, *arguments], capture_output=True, text=True)
            if done.returncode > 1:
                sys.exit(f"{' '.join([self.path, *arguments])}\n{done.stderr}")
            self.answers[arguments] = done.stdout
        return self.answers[arguments]

    def table(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.run(*arguments, "--format", "csv"))))

    def calibrated(self, scenario, *arguments):
        """Path of the set that `calibrate` makes."""
        path = self.folder / f"set{abs(hash((scenario, *map(str, arguments))))}.yaml"
        if not path.exists():
            self.run("calibrate", scenario, *arguments, "-o", path)
        return path


def errors(row):
    return [row["rows"], *(percent(row[c]) for c in ("mean_pct", "worst_pct", "inside_pct"))]


def percent(text):
    return f"{float(text):.4g} %" if text else ""


def of(rows, errors_of, variant=None):
    return next(r for r in rows if r["errors_of"] == errors_of and variant in (None, r["variant"]))


def validated(label, file, options, errors_of="held out", variant=None):
    """A row of `validate FILE OPTIONS`; options may be a function of the program that makes a set first."""
    def measure(program):
        given = options(program) if callable(options) else options
        return errors(of(program.table("validate", file, *given), errors_of, variant))
    return label, measure


def with_set(scenario, file, where, judged):
    """Options that judge rows by a set calibrated on others."""
    return lambda program: [*judged, "--set",
                            f"calibration={program.calibrated(scenario, '--points', file, *where)}"]


def served():
    for name, (_, file) in (("v4", V4), ("v3", V3)):
        loo = [*DCP1, "--cv", "loo"]
        yield validated(f"{name}, priors alone", file, loo, "prediction")
        yield validated(f"{name}, leave one out (--cv loo)", file, loo)
        yield validated(f"{name}, five folds (--cv 5)", file, [*DCP1, "--cv", "5"])
        yield validated(f"{name}, half from half, 20 times (--cv half)", file, [*DCP1, "--cv", "half"])
        yield validated(f"{name} by a roofline", file, loo, "roofline")
    yield validated("v3 with v4's parameters, of all DCP sizes and drafts", V3[1],
                    [*DCP1, "--set", "calibration=kimi-k26-v4"], "prediction")
    yield validated("v3 with parameters fitted to these rows of v4", V3[1], with_set(*V4, DCP1, DCP1), "prediction")
    yield validated("v4 with v3's set, of all DCP sizes", V4[1], [*DCP1, "--set", "calibration=kimi-k26-v3"],
                    "prediction")
    yield validated("MiniMax-M2.5 on 2 GPUs, priors alone", MINIMAX, ["--cv", "loo"], "prediction")
    yield validated("MiniMax-M2.5 on 2 GPUs, leave one out", MINIMAX, ["--cv", "loo"])


def drafted(program):
    """EAGLE-3 rows, with a fit of the draft's parameters on top of the plain rows: the held-out line of `calibrate`."""
    start = program.calibrated(V4[0], "--points", V4[1], *PLAIN)
    text = program.run("calibrate", V4[0], "--start", start, "--points", V4[1], *EAGLE, "--only", "draft", "--only",
                       "routing.overlap", "--cv", "5", "-o", program.folder / "drafted.yaml")
    return held_out(text)


def held_out(text):
    """'  held out median  1.17 %, mean  1.53 %, worst  3.95 % (D0950), bias -0.06 %; 16 of 17 in their 90 % interval'"""
    words = next(line for line in text.splitlines() if line.startswith("  held out")).split()
    inside, count = words[words.index("of") - 1], words[words.index("of") + 1]
    return [count, words[words.index("mean") + 1] + " %", words[words.index("worst") + 1] + " %",
            f"{100 * int(inside) / int(count):.4g} %"]


def wider():
    for name, (scenario, file), other in (("v4", V4, "v3"), ("v3", V3, "v4")):
        folds = [*PLAIN, "--cv", "5"]
        yield validated(f"{name}, DCP 1, 4 and 8, priors alone", file, folds, "prediction")
        yield validated(f"{name}, DCP 1, 4 and 8, held out", file, folds)
        yield validated(f"{name}, all sizes, by the parameters of {other}", file,
                        [*PLAIN, "--set", f"calibration=kimi-k26-{other}"], "prediction")
        for dcp in ("4", "8"):
            yield validated(f"{name} calibrated on DCP 1 alone: DCP {dcp}", file,
                            with_set(scenario, file, DCP1, [*PLAIN, "--where", f"dcp={dcp}"]), "prediction")
    yield validated("v4 with EAGLE-3, draft at its priors", V4[1], with_set(*V4, PLAIN, EAGLE), "prediction")
    yield "v4 with EAGLE-3, draft.* and routing.overlap fitted, held out", drafted
    glm = POINTS / "glm5.1_v2.csv"
    yield validated("GLM-5.1, DCP 1 to 8, with and without MTP", glm, ["--cv", "5"])
    yield validated("GLM-5.1 without MTP alone", glm, ["--where", "spec_kind=none", "--cv", "5"])
    for variant in "123":
        yield validated(f"Qwen3.5-397B, variant {variant}", POINTS / "qwen35_397b.csv", ["--cv", "5"], variant=variant)
    for variant in "1234":
        yield validated(f"GLM-5 and 5.1 of page glm5, variant {variant}, without MTP", POINTS / "glm5.csv",
                        ["--where", "spec_kind=none", "--cv", "5"], variant=variant)
    yield "Kimi-K2.5, DCP 8, one user, five builds and hosts", kimi_k25


def kimi_k25(program):
    wanted = ("D0001", "D0003", "D0004", "D0007", "D0013")
    rows = [r for r in program.table("validate", POINTS / "kimi_k25.csv", "--points") if r["id"] in wanted]
    off = [abs(float(r["error_pct"])) for r in rows]
    return [str(len(off)), percent(sum(off) / len(off)), percent(max(off)), ""]


def peer():
    def step(batch, *more):
        def measure(program):
            text = program.run("predict", V4[0], "--set", f"plan.batch={batch}", "--set", "plan.context=1024", *more,
                               "--format", "json")
            return [f"{json.loads(text)['step_ms']:.4g} ms"]
        return measure
    for batch in (1, 4, 16, 64, 128):
        yield f"batch {batch}, no parameter fitted", step(batch)
        yield f"batch {batch}, calibrated on the other build", step(batch, "--set", "calibration=kimi-k26-v3")


def kernels():
    """Families by table; every one that has a row or a bar in docs/accuracy.md, and the others after them."""
    def family(table, name):
        def measure(program):
            row = next(r for r in program.table("validate", KERNELS / f"{table}.csv.gz") if r["family"] == name)
            return [row["scored"], row["warm"], percent(row["median_pct"]), percent(row["p90_pct"]),
                    percent(row["table_median_pct"]), percent(row["table_p90_pct"])]
        return measure

    def names(table):
        reference = Program(PROGRAM, ".")
        return [r["family"] for r in reference.table("validate", KERNELS / f"{table}.csv.gz") if r["median_pct"]]
    for table in ("gemm", "moe", "mla_decode", "mla_absorb", "attention_decode", "collective"):
        for name in names(table):
            yield f"{table}: {name}", family(table, name)
    yield "v4 by a set of kernels alone", by_kernels
    yield "v4 by kernels and points on top, held out", by_kernels_and_points


KERNEL_SET = ["--kernels", KERNELS / "gemm.csv.gz", "--kernels", KERNELS / "moe.csv.gz", "--kernel-family", "torch",
              "--kernel-family", "vllm_compressedtensorswna16"]


def by_kernels(program):
    made = program.calibrated(V4[0], *KERNEL_SET)
    return errors(of(program.table("validate", V4[1], *DCP1, "--set", f"calibration={made}"), "prediction"))


def by_kernels_and_points(program):
    start = program.calibrated(V4[0], *KERNEL_SET)
    return held_out(program.run("calibrate", V4[0], "--start", start, "--points", V4[1], *DCP1, "--cv", "5", "-o",
                                program.folder / "on_top.yaml"))


def memory():
    def of_kimi(key, scale, unit):
        def measure(program):
            value = json.loads(program.run("predict", "kimi-k25", "--format", "json"))["memory"][key]
            return [f"{value / scale:.10g} {unit}"]
        return measure
    yield "weights of one rank at TP8", of_kimi("weights_bytes", 1e9, "GB")
    yield "KV pool at utilisation 0.94, FP8", of_kimi("kv_pool_tokens", 1, "tokens")
    yield ("parameters and checkpoint",
           lambda program: [program.run("predict", "kimi-k25").split("(")[1].split(")")[0]])


def printed(test, *marks):
    """Lines that a test of this checkout prints, by the words they start with."""
    path = pathlib.Path(PROGRAM).resolve().parent / "tests" / test
    if not path.exists():
        yield f"{test} is not built", lambda program: []
        return
    text = subprocess.run([str(path)], capture_output=True, text=True, cwd=ROOT)
    for line in (text.stdout + text.stderr).splitlines():
        if line.startswith(marks):
            yield " ".join(line.split()), lambda program: []


SECTIONS = {
    "Served steps": served,
    "DCP, speculation, other models": wider,
    "Beside the best known peer": peer,
    "Kernels and collectives": kernels,
    "AllReduce on other hosts": lambda: printed("test_scenarios_facts", "one-shot", "NCCL"),
    "Memory": memory,
    "Serving on H200": lambda: printed("test_scenarios_serving", "all "),
}


def main():
    global PROGRAM
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="+", help="k25sim, or two of them: before and after")
    parser.add_argument("--only", default="", help="sections with this in their name")
    parser.add_argument("--commands", action="store_true", help="the commands of every row, too")
    given = parser.parse_args()
    PROGRAM = given.program[-1]
    folders = [tempfile.TemporaryDirectory() for _ in given.program]
    programs = [Program(path, folder.name) for path, folder in zip(given.program, folders)]
    numbers = different = 0
    for section, cases in SECTIONS.items():
        if given.only.lower() not in section.lower():
            continue
        print(f"\n{section}", flush=True)
        for label, measure in cases():
            programs[0].commands.clear()
            cells = [measure(program) for program in programs]
            same = all(c == cells[0] for c in cells)
            shown = [" | ".join(c) for c in cells[:1 if same else None]]
            numbers += len(cells[0])
            different += sum(a != b for a, b in zip(cells[0], cells[-1]))
            print(f"  {label:<62} {'   NOW   '.join(shown)}", flush=True)
            for command in programs[0].commands if given.commands else []:
                print(f"      k25sim {command}")
    if len(programs) > 1:
        print(f"\n{different} of {numbers} numbers differ")
    return different > 0


sys.exit(main())
