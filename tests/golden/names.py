#!/usr/bin/env python3
"""The names in JSON and CSV are those of docs/output.md: what a command prints is in a table of its section, and what a table
has is printed.

usage: tests/golden/names.py PROGRAM

A section's tables name keys and columns in backticks, in the columns headed `JSON`, `name` and the like; backticks
elsewhere are values and references, with which a printed name may be documented. Outputs have a table of their own,
which tests/unit/model/test_outputs.c compares word for word; here they are known everywhere.
"""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAMED = {"JSON", "name", "output", "table", "list, section in CSV"}
# Members with the keys of a scenario file, which docs/formats.md has.
OPEN = {"plan", "load"}
# Sections of which not every name is printed here: lists have kinds of their own, captures and summaries many readers.
PARTLY = {"list", "inspect"}
# A section that also has the names of another.
SHARED = {"validate, tables of kernels": "validate, measured points"}
SWEEP = """k25sim: sweep
version: 1
name: columns
base: tp8_bs1
axes:
  - {key: plan.batch, values: [1]}
"""


def ask(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=ROOT)
    if done.returncode > 1 or not done.stdout:
        sys.exit(f"k25sim {' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def json_names(value):
    if isinstance(value, list):
        return {name for item in value for name in json_names(item)}
    if not isinstance(value, dict):
        return set()
    return {name for key, item in value.items() for name in {key} | (set() if key in OPEN else json_names(item))}


def printed(words):
    form = words[words.index("--format") + 1]
    text = ask(*words)
    if form == "json":
        return json_names(json.loads(text))
    if form == "jsonl":
        return json_names(json.loads(text.splitlines()[0]))
    rows = list(csv.DictReader(io.StringIO(text)))
    return set(next(csv.reader(io.StringIO(text)))) | {row["section"] for row in rows if "section" in row}


def sections():
    """Title of a section: the names its tables give, and all that it has in backticks."""
    found, title, head = {}, "", []
    for line in (ROOT / "docs" / "output.md").read_text().splitlines():
        if line.startswith("## "):
            title = line[3:]
            found[title] = (set(), set())
        if not line.startswith("|"):
            head = []
        elif not head:
            head = [cell.strip() for cell in line.strip("|").split("|")]
            continue
        if title:
            found[title][1].update(re.findall(r"`(\w+)`", line))
        if title and head:
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            for column, cell in zip(head, cells):
                if column in NAMED:
                    found[title][0].update(re.findall(r"`(\w+)`", cell))
    return found


def runs(folder):
    fits, misfit, draft = "tp8_bs1", ["--set", "plan.batch=4000"], ["--set", "plan.speculation.method=ngram", "--set",
                                                                  "plan.speculation.tokens=3"]
    yield "predict", ["predict", fits, "--outputs", "--inputs", "--format", "json"]
    yield "predict", ["predict", fits, *misfit, "--format", "json"]
    yield "predict", ["predict", fits, "--format", "csv"]
    yield "predict", ["predict", fits, "--outputs", "--format", "csv"]
    yield "predict", ["predict", fits, "--inputs", "--format", "csv"]
    for form in "json", "csv":
        yield "predict", ["predict", fits, "--compare", fits, "--format", form]
        yield "serve", ["serve", fits, "--format", form]
        yield "explain", ["explain", fits, *draft, "--format", form]
        yield "explain --collectives", ["explain", fits, "--collectives", "--format", form]
    yield "recommend", ["recommend", fits, "--concurrency", "64", "--format", "json"]
    for form in "csv", "jsonl":
        yield "sweep", ["sweep", os.path.join(folder, "sweep.yaml"), "-o", "-", "--format", form]
    more = ["--params", "--points", "--format", "json"]
    yield "validate, measured points", ["validate", "tests/golden/data/points.csv", "--fit", "--cv", "2", *more]
    yield "validate, measured points", ["validate", "tests/golden/data/points.csv", "--set", "machine.gpu.memory_mib=88000",
                                        "--format", "json"]  # some rows do not fit
    yield "validate, tables of kernels", ["validate", "tests/golden/data/absorb.csv", *more]
    for what in re.findall(r"^  (\w+)  ", ask("help", "list"), re.M):
        yield "list", ["list", what, "--format", "json"]
    trace = os.path.join(folder, "trace")
    ask("simulate", fits, "--steps", "6", "--trace", trace)
    yield "inspect", ["inspect", trace, "--format", "json"]


def main():
    page, failures, seen = sections(), [], {}
    outputs = page["Outputs"][0]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "sweep.yaml").write_text(SWEEP)
        for title, words in runs(folder):
            names = printed(words)
            seen.setdefault(title, set()).update(names)
            known = page[title][1] | page.get(SHARED.get(title), ((), set()))[1] | outputs
            for name in sorted(name for name in names - known if "." not in name):  # keys of axes have dots
                failures.append(f"k25sim {' '.join(words)}: '{name}' is not in the section {title}")
        failures += [f"sweep: no column '{name}'" for name in sorted(outputs - seen["sweep"])]
    for title in seen.keys() - PARTLY:
        names = seen[title]
        for name in sorted(page[title][0] - names):
            failures.append(f"section {title}: '{name}' is printed by none of its commands")
    print("\n".join(failures))
    print(f"{sum(len(names) for names in seen.values())} names in {len(seen)} sections, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
