#!/usr/bin/env python3
"""How fast traces are read, beside `gzip -dc`, `igzip -dc` and Python's json.load, on this machine and in this run.

    tests/bench/trace.py BUILD/bench_trace TRACE.json.gz [--runs N] [--python] [--bar 2.5]

Every round runs each reader once, so that what disturbs the machine disturbs them alike; medians and the ratio to
`igzip -dc` of the same round are printed. Exit status 1 when the median ratio is above the bar. The trace of the
project's bar is made with

    python3 make_big_trace.py --rank 0 --target-mb 80 --seed 1 --out DIR

and holds 1,733,092 kernels of 43,140,502.724 us.
"""
import argparse
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time


def timed(command):
    start = time.perf_counter()
    out = subprocess.run(command, stdout=subprocess.PIPE if 'bench_trace' in command[0] else subprocess.DEVNULL,
                         check=True).stdout
    return time.perf_counter() - start, out


def python_load(path):
    """In a process of its own: json.load of 1.7 GB takes more than 6 GB."""
    start = time.perf_counter()
    if os.fork() == 0:
        with gzip.open(path) as file:
            json.load(file)
        os._exit(0)
    os.wait()
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('bench')
    parser.add_argument('trace')
    parser.add_argument('--runs', type=int, default=7)
    parser.add_argument('--python', action='store_true', help='also json.load, once (minutes, gigabytes)')
    parser.add_argument('--bar', type=float, default=2.5)
    options = parser.parse_args()
    if shutil.which('igzip') is None:
        sys.exit("trace.py: no igzip (Debian's package isal)")

    commands = {'k25 trace reader': [options.bench, options.trace], 'igzip -dc': ['igzip', '-dc', options.trace],
                'gzip -dc': ['gzip', '-dc', options.trace]}
    times = {name: [] for name in commands}
    report = {}
    for run in range(options.runs + 1):  # the first one warms the page cache
        for name, command in commands.items():
            if name == 'gzip -dc' and run not in (1, 2, 3):
                continue
            seconds, out = timed(command)
            if run > 0:
                times[name].append(seconds)
            if out:
                report = json.loads(out)

    gzip_mb = os.path.getsize(options.trace) / 1e6
    json_mb = report['json_mb_s'] * report['seconds']
    igzip = statistics.median(times['igzip -dc'])
    rows = [(name, statistics.median(values)) for name, values in times.items() if values]
    if options.python:
        seconds, peak = python_load(options.trace)
        rows.append((f'python json.load ({peak:.0f} MB)', seconds))
    print(f"{report['kernels']:,} kernels, {report['kernel_ns']:,} ns; peak memory of the reader {report['peak_mb']} MB")
    print(f"{'':30} {'s':>8} {'MB/s gzip':>10} {'MB/s JSON':>10} {'x igzip -dc':>12}")
    for name, seconds in rows:
        print(f'{name:30} {seconds:8.3f} {gzip_mb / seconds:10.1f} {json_mb / seconds:10.1f} {seconds / igzip:12.2f}')
    ratios = [a / b for a, b in zip(times['k25 trace reader'], times['igzip -dc'])]
    ratio = statistics.median(ratios)
    print(f'ratio to igzip -dc, round by round: median {ratio:.2f}, best {min(ratios):.2f}, worst {max(ratios):.2f}'
          f' (bar {options.bar})')
    return ratio > options.bar


if __name__ == '__main__':
    sys.exit(main())
