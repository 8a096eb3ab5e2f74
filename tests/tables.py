#!/usr/bin/env python3
"""Every table that an enum indexes has a row for each of its values, and every member that holds an enum has its type.

usage: tests/tables.py COMPILER

Reads the sources as the compiler's preprocessor leaves them, so rows made by lists of macros count. A table is an array
with rows like `[K25_MLA] = ...`. Faults:

* its size is not a count of the enum, its last value or one in its midst;
* a value of the enum has no row;
* it is as long as an enum but its rows do not say which value they are for;
* in a header: an array of names without a size;
* an int with an enum in its comment.

The last words of main() try all of that on text that is wrong. Exit status 1 with the faults on standard output.
"""
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLOORS = ("base", "hw", "model", "calib", "scenarios", "cli")
TABLE = re.compile(r"\b(\w+)\s*((?:\[[^\]{};]*\]\s*)+)=\s*\{")
# Tables that say of most values that they have no such thing.
SPARSE = {
    "reach",    # hw/kernel/residual.c: classes that can have a residual table
    "numbers",  # calib/trace/fields.c: fields that are signed numbers
    "ids",      # ... that are ids
}
ENUM = re.compile(r"\benum\b\s*\w*\s*\{([^{}]*)\}")


def enums_of(text):
    """The number of each value, and the enum that it is in: a dictionary from a name to (number, all names of the enum)."""
    found = {}
    for body in ENUM.findall(text):
        numbers, number = {}, -1
        for part in body.split(","):
            name, _, given = (word.strip() for word in part.partition("="))
            if name:
                number = number_of(given, numbers, found) if given else number + 1
                numbers[name] = number
        found.update((name, (number, numbers)) for name, number in numbers.items())
    return found


def number_of(given, numbers, found):
    """The value of "7", "K25_LAST - 1", "1 << 4"; a large one for what is more than that."""
    known = {name: number for name, (number, _) in found.items()} | numbers
    given = re.sub(r"\b[A-Za-z_]\w*", lambda m: str(known.get(m.group(0), 1 << 30)), given)
    return eval(given) if re.fullmatch(r"[\d\s+\-*()<]+", given) else 1 << 30


def items(text, at):
    """The initialisers between the brace at `at` and its partner: (designator or None, where its braces open or -1)."""
    depth, start, out = 0, at + 1, []
    quote = None
    for i in range(at, len(text)):
        c = text[i]
        if quote:
            quote = None if c == quote and text[i - 1] != "\\" else quote
        elif c in "\"'":
            quote = c
        elif c in "{([":
            depth += 1
        elif c in "})]":
            depth -= 1
        if not quote and ((c == "," and depth == 1) or depth == 0):
            item = text[start:i]
            if item.strip():
                said = re.match(r"\s*\[\s*(\w+)\s*\]\s*(?:=|\[)", item)
                brace = re.match(r"\s*(?:\[[^\]]*\]\s*=\s*)?\{", item)
                out.append((said.group(1) if said else None, start + brace.end() - 1 if brace else -1))
            start = i + 1
        if depth == 0:
            return out
    return out


def check_level(text, at, name, dims, enums, faults):
    rows = items(text, at)
    said = {enums[row][0]: row for row, _ in rows if row in enums}
    sizes = [enums[word][0] for word in re.findall(r"\w+", dims[0]) if word in enums]
    if said:
        numbers = enums[said[min(said)]][1]
        if not sizes or sizes[0] <= max(said):
            faults.append(f"{name}: its size is not the count of the enum with {said[max(said)]}")
        elif name not in SPARSE:
            names = {number: value for value, number in reversed(numbers.items())}
            faults.extend(f"{name}: no row for {names[n]}" for n in range(sizes[0]) if n not in said)
    elif sizes and len(rows) > 1:
        faults.append(f"{name}: as long as an enum, but its rows do not say which value they are for")
    if len(dims) > 1:
        for _, brace in rows:
            if brace >= 0:
                check_level(text, brace, name, dims[1:], enums, faults)


def check_tables(text):
    """Faults of preprocessed text."""
    faults, enums = [], enums_of(text)
    for match in TABLE.finditer(text):
        dims = re.findall(r"\[([^\]]*)\]", match.group(2))
        check_level(text, match.end() - 1, match.group(1), dims, enums, faults)
    return faults


def check_source(name, text):
    """Faults of text as it is written."""
    faults = [f"line {text.count(chr(10), 0, m.start()) + 1}: an int that holds an enum: {m.group(0).strip()}"
              for m in re.finditer(r"\bint\s+[\w, ]+;\s*/\*\s*enum \w+", text)]
    if name.endswith(".h"):
        faults += [f"line {text.count(chr(10), 0, m.start()) + 1}: names without a size: {m.group(0)}"
                   for m in re.finditer(r"const char \*const \w+\[\]", text)]
    return faults


def preprocess(compiler, path):
    command = [compiler, "-E", "-P", "-std=c17", "-D_GNU_SOURCE", '-DK25_VERSION=""', '-DK25_SOURCE_DIR=""',
               '-DK25_DATA_DIR=""', f"-I{ROOT}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{path}: {done.stderr}")
    return done.stdout


def faults_of(compiler, path):
    text = path.read_text()
    faults = check_source(path.name, text)
    if path.suffix == ".c" and re.search(r"\]\s*=\s*\{", text):
        faults += check_tables(preprocess(compiler, path))
    return [f"{path.relative_to(ROOT)}: {fault}" for fault in faults]


WRONG = {
    "enum e { A, B, N }; const int t[] = {[A] = 1, [B] = 2};": "its size is not the count",
    "enum e { A, B, N }; const int t[N] = {[A] = 1};": "no row for B",
    "enum e { A, B, M, L = M - 1, C = M, N }; const int t[N] = {[A] = 1, [B] = 2};": "no row for M",
    "enum e { A, B, N }; const int t[N + 1] = {1, 2};": "do not say which value",
    "enum e { A, B, N }; enum f { C, D, M }; int t[N][M] = {[A] = {[C] = 1, [D] = 2}, [B] = {[C] = 1}};":
        "no row for D",
}
RIGHT = [
    "enum e { A, B, N }; const char *const t[N + 1] = {[A] = \"},[\", [B] = \"b\"};",
    "enum e { A, B, N }; struct s t[N] = {0}; int u[4] = {1, 2, 3, 4}; int v[N][2] = {[A] = {1, 2}, [B] = {3, 4}};",
]


def main():
    for text, fault in WRONG.items():
        assert any(fault in said for said in check_tables(text)), (text, check_tables(text))
    for text in RIGHT:
        assert check_tables(text) == [], (text, check_tables(text))
    assert check_source("a.h", "    int kind; /* enum k25_kind */\nextern const char *const a[];\n")[0].startswith("line 1")
    assert len(check_source("a.h", "    int kind; /* enum k25_kind */\nextern const char *const a[];\n")) == 2
    paths = sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.[ch]"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for found in pool.map(lambda path: faults_of(sys.argv[1], path), paths) for fault in found]
    print("\n".join(faults + [f"{len(paths)} files, {len(faults)} faults"]))
    return 1 if faults else 0


sys.exit(main())
