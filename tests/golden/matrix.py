#!/usr/bin/env python3
"""Every scenario that comes along with every command and format, and every value of every key of a plan that has few.

usage: tests/golden/matrix.py PROGRAM

What there is to try is asked of the program: commands, their flags and formats from its help, scenarios, sweeps, models,
machines and GPUs from its lists, keys of a plan with their values and ranges from the scenario that `init` writes. Of
each run the exit status is 0, 1 or 2, 2 with a message; nothing crashes, no sanitizer speaks, no "(null)", "nan" or "inf"
is printed, JSON and JSON lines can be read, CSV is rectangular. What is right to print is not asked here: other golden
cases and unit tests do.

Prints the number of runs; exit status 1 with the runs that failed.
"""
import csv
import io
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1")

# Commands that take no scenario and have cases of their own: they read what a user brings.
OTHERS = {"import", "help", "version"}
# What a command needs beside a scenario, and flags that do not change what is printed, or take minutes.
EXTRA = {"recommend": ["--concurrency", "8"], "simulate": ["--steps", "3"]}
SKIPPED_FLAGS = {"--help", "--force", "--lenient", "--fit", "--resume", "--merge"}
# Plans in which the keys mean something: a shared cache, data-parallel attention, a pipeline, a draft, a prompt.
SETTINGS = [
    [],
    ["plan.dcp=8"],
    ["plan.attention_dp=true", "plan.ep=8", "plan.batch=64"],
    ["plan.tp=4", "plan.pp=2", "plan.batch=16"],
    ["plan.speculation.method=ngram", "plan.speculation.tokens=3", "plan.speculation.acceptance=0.6"],
    ["plan.prefill.tokens=512", "plan.prefill.context=2048", "plan.dcp=2", "plan.batch=4"],
]
BASES = ["tp8_bs1", "glm5.1_v2"]  # latent attention without and with an indexer


# ---- what there is ----

def ask(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT)
    if done.returncode != 0:
        sys.exit(f"k25sim {' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def commands():
    text = ask("help")
    return re.findall(r"^  (\w+) ", text[text.index("\ncommands:"):text.index("\noptions")], re.M)


class Help:
    def __init__(self, command):
        text = ask("help", command)
        self.takes = re.search(rf"^usage: k25sim {command} \[?([A-Z]+)?", text, re.M).group(1)
        options = re.findall(r"^  (?:-\w, )?(--[\w-]+)( [A-Za-z|=./]+)?   *(.*)$", text, re.M)
        self.flags = [name for name, argument, _ in options if not argument and name not in SKIPPED_FLAGS]
        formats = [words for name, _, words in options if name == "--format"]
        self.formats = formats_of(formats[0]) if formats else [None]


def formats_of(words):
    """"of the rows: csv (default) or jsonl" as ["csv", "jsonl"]."""
    return re.split(r", | or ", words.replace(" (default)", "").split(": ")[-1])


def names(what, key):
    return [entry[key] for entry in json.loads(ask("list", what, "--format", "json"))]


def plan_keys():
    """Each key of the plan with the values to try: words, truth values, the ends of a range."""
    found, path = {}, {}
    for line in ask("init").split("\n"):
        match = re.match(r"( *)(\w+):(?: +(\S+))?(?: +# (.*))?$", line)
        if not match:
            continue
        indent, key, _, words = match.groups()
        path = {depth: name for depth, name in path.items() if depth < len(indent)} | {len(indent): key}
        full = ".".join(path[depth] for depth in sorted(path))
        if full.startswith("plan.") and words:
            found[full] = values_of(words)
    return {key: values for key, values in found.items() if values}


def values_of(words):
    text = re.sub(r"; required$", "", words)
    choice = re.search(r"; one of ([\w, ]+)$", text)
    bounds = re.search(r"; (-?[\d.]+) to (-?[\d.]+)(?: \(\w+\))?$", text)
    least = re.search(r"; at least (-?[\d.]+)(?: \(\w+\))?$", text)
    if choice:
        return choice.group(1).split(", ")
    if text.endswith("; true or false"):
        return ["true", "false"]
    return list(bounds.groups()) if bounds else [least.group(1), "100000"] if least else []


# ---- what is wrong with a run ----

def no_constant(word):
    raise ValueError(f"the number {word}")


def check_json(text):
    json.loads(text, parse_constant=no_constant)


def check_jsonl(text):
    for line in text.splitlines():
        json.loads(line, parse_constant=no_constant)


def check_csv(text):
    rows = list(csv.reader(io.StringIO(text)))
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise ValueError(f"rows of {sorted(widths)} cells")


CHECKS = {None: lambda text: None, "table": lambda text: None, "json": check_json, "jsonl": check_jsonl,
          "csv": check_csv}


def fault_of(words, form, status, out, err):
    for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
        if word in err:
            return err[err.index(word):][:300]
    if status not in (0, 1, 2):
        return f"status {status}: {err[:200]}"
    said = re.match(rf"(k25sim {words[0]}|[^\s:]+:\d+(:\d+)?): .+", err)
    if (status == 2 or (status == 1 and out == "")) and not said:
        return f"status {status} without a message: {err[:200]!r}"
    strange = re.search(r"\(null\)|(?<![\w/.-])-?(?:nan|inf)(?![\w/.-])", out + err, re.I)
    if strange:
        start = max(0, strange.start() - 80)
        return f"'{strange.group(0)}' in ...{(out + err)[start:strange.end() + 20]!r}"
    try:
        if out or status == 0:
            CHECKS[form](out)
    except ValueError as error:
        return f"{form}: {error}"
    return None


def try_faults():
    """A check that finds nothing wrong in this finds nothing."""
    wrong = [(0, "json", '{"a": NaN}', ""), (0, "json", "", ""), (0, "csv", "a,b\n1\n", ""), (0, "jsonl", "{}\n{\n", ""),
             (0, "table", "step  (null)\n", ""), (0, "csv", "a\nnan\n", ""), (0, "table", "up to -inf us\n", ""),
             (-11, "table", "", ""), (3, None, "", "k25sim list: no file\n"), (2, "table", "", "no\n"), (1, "csv", "", ""),
             (1, None, "", "x.c:1:2: runtime error: signed integer overflow\n")]
    right = [(0, "json", '{"a": null, "b": "information"}', ""), (0, "csv", 'a,b\n1,"x,\ny"\n', ""),
             (2, "json", "", "k25sim list: there is no list of 'x'\n"), (1, "json", "", "k25sim list: nothing fits\n"),
             (2, "csv", "", "/a/b.yaml:3:4: plan.tp: 9, expected 8\n"), (0, "table", "nanoseconds a/nan.csv\n", "")]
    for status, form, out, err in wrong + right:
        fault = fault_of(["list"], form, status, out, err)
        assert (fault is None) == ((status, form, out, err) in right), (status, form, out, err, fault)


class Matrix:
    def __init__(self):
        self.runs = self.positive = self.refused = 0
        self.failures = []

    def run(self, words, form=None):
        words = list(words) + (["--format", form] if form else [])
        done = subprocess.run([PROGRAM, *words], capture_output=True, cwd=ROOT, env=ENVIRONMENT, timeout=300)
        out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        return words, done.returncode, fault_of(words, form, done.returncode, out, err)

    def all(self, pool, jobs):
        for words, status, fault in pool.map(lambda job: self.run(*job), jobs):
            self.runs += 1
            self.positive += status == 0
            self.refused += status == 2
            if fault:
                self.failures.append(f"k25sim {' '.join(words)}: {fault}")


# ---- what is run ----

def sets(values):
    return [word for value in values for word in ("--set", value)]


def scenario_jobs(known, scenarios):
    for command, about in known.items():
        if about.takes != "SCENARIO" or command == "calibrate":
            continue
        for scenario, flag, form in itertools.product(scenarios, [None, *about.flags], about.formats):
            yield [command, scenario, *EXTRA.get(command, []), *([flag] if flag else [])], form
    for scenario, form in itertools.product(scenarios, known["predict"].formats):
        yield ["predict", scenario, "--compare", scenarios[0]], form


def plan_jobs(known, keys):
    """Each value in each of the settings, and each pair of words of different keys in one of them."""
    few = {key: values for key, values in keys.items() if not re.match(r"-?\d", values[0])}
    for base, setting, (key, values) in itertools.product(BASES, SETTINGS, keys.items()):
        for value in values:
            given = sets([*setting, f"{key}={value}"])
            yield ["predict", base, "--ops", *given], "json"
            if key in few:
                yield ["predict", base, "--ops", *given], "table"
                yield ["predict", base, *given], "csv"
                yield ["explain", base, *given], "csv"
    for (a, some), (b, others) in itertools.combinations(few.items(), 2):
        for one, other in itertools.product(some, others):
            yield ["predict", BASES[0], "--ops", *sets([f"{a}={one}", f"{b}={other}", "plan.dcp=2", "plan.batch=8"])], "json"
    for command, (key, values) in itertools.product(("explain", "serve", "recommend", "simulate"), few.items()):
        for value, form in itertools.product(values, known[command].formats):
            yield [command, BASES[0], *EXTRA.get(command, []), *sets([f"{key}={value}"])], form


def list_jobs(known):
    text = ask("help", "list")
    for what, form in itertools.product(re.findall(r"^  (\w+)  ", text[text.index("WHAT is one of"):], re.M),
                                        known["list"].formats):
        yield ["list", what], form
    for model in json.loads(ask("list", "models", "--format", "json")):
        given = sets([f"architecture={model['architecture']}", f"weights={model['weights']}"])
        yield ["predict", BASES[0], "--ops", *given], "json"
    for machine in names("machines", "name"):
        yield ["predict", BASES[0], *sets([f"machine={machine}", "plan.tp=2"])], "json"
        yield ["explain", BASES[0], "--collectives", *sets([f"machine={machine}"])], "csv"
    for gpu in names("gpus", "file"):
        yield ["predict", BASES[0], *sets([f"machine.gpu={gpu}"])], "table"
    for form in known["sweep"].formats:
        for sweep in names("sweeps", "name"):
            yield ["sweep", sweep, "-o", "-"], form
            yield ["check", f"scenarios/{sweep}.yaml"], None
    for points, form in itertools.product(sorted((ROOT / "calib" / "points").rglob("*.csv")), known["validate"].formats):
        for flag in [None, "--points"]:
            yield ["validate", str(points.relative_to(ROOT)), *([flag] if flag else [])], form


def trace_jobs(known, scenarios, folder):
    """Simulated captures first, then what reads them."""
    places = {}
    for scenario, (number, setting) in itertools.product(scenarios, enumerate([[], *SETTINGS[1:3]])):
        if not number or scenario in BASES:
            places[scenario, number] = folder / f"{scenario}.{number}"
            places[scenario, number].mkdir()
    first = [(["simulate", scenario, "--steps", "4", "--trace", str(place), *sets(SETTINGS[number])], None)
             for (scenario, number), place in places.items()]
    second = [(["inspect", str(place)], form) for place in places.values() for form in known["inspect"].formats]
    second += [(["calibrate", scenario, "--capture", str(place), "-o", str(place) + ".yaml", *sets(SETTINGS[number])],
                None) for (scenario, number), place in places.items()]
    return first, second


def main():
    try_faults()
    known = {command: Help(command) for command in commands() if command not in OTHERS}
    scenarios, keys = names("scenarios", "name"), plan_keys()
    matrix = Matrix()
    with ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder) / "mine.yaml"
        first, second = trace_jobs(known, scenarios, pathlib.Path(folder))
        jobs = [*scenario_jobs(known, scenarios), *plan_jobs(known, keys), *list_jobs(known)]
        jobs += [(["init", str(written)], None)]
        jobs += [(["check", str(ROOT / "scenarios" / f"{scenario}.yaml")], None) for scenario in scenarios]
        matrix.all(pool, jobs + first)
        matrix.all(pool, second + [(["check", str(written)], None)])
        tried = {words[0] for words, _ in jobs + first + second}
    matrix.failures += [f"no run of k25sim {command}" for command in known if command not in tried]
    values = sum(len(given) for given in keys.values())
    print("\n".join(matrix.failures[:40]))
    print(f"{matrix.runs} runs: {len(known)} commands, {len(scenarios)} scenarios, {len(keys)} keys of a plan with {values} "
          f"values; {matrix.positive} answered, {matrix.refused} refused, {len(matrix.failures)} failed")
    return 1 if matrix.failures else 0


sys.exit(main())
