#!/usr/bin/env python3
"""calibrate refuses evidence of something else, names both sides, and takes evidence of the scenario.

usage: tests/golden/evidence.py PROGRAM

Captures are simulated, nccl-tests, tables and load tests are written here. Each wrong case is a scenario, its evidence
and words that the error must have; status 2 and no set. Each healthy one is status 0.
"""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
POINTS = ROOT / "tests" / "golden" / "data" / "points.csv"
os.chdir(ROOT)
folder = pathlib.Path(tempfile.mkdtemp())
failures = []
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="2")


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


def sets(keys):
    return [word for key in keys for word in ("--set", key)]


def capture(name, scenario, *keys, steps=12):
    made = run("simulate", scenario, *sets(keys), "--steps", steps, "--trace", folder / name)
    assert made.returncode == 0, (name, made.stderr)
    return ["--capture", folder / name]


def edited(name, source, old, new):
    """A capture of one rank with its text changed."""
    import gzip
    (folder / name).mkdir()
    for file in (folder / source).iterdir():
        text = gzip.decompress(file.read_bytes()).decode()
        assert old in text, (name, old)
        (folder / name / file.name).write_bytes(gzip.compress(text.replace(old, new).encode()))
    return ["--capture", folder / name]


def nccl(name, gpu, ranks, rows, rate=None):
    """rows: bytes and us."""
    text = f"# Collective test starting: all_reduce_perf\n# nThread 1 nGpus {ranks} minBytes 1024 maxBytes 65536 " \
           "step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
    for rank in range(ranks):
        text += f"#  Rank {rank:2} Group  0 Pid 7 on host device {rank:2} [0000:0{rank}:00] {gpu}\n"
    text += "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw" \
            "   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)" \
            "            (us)  (GB/s)  (GB/s)\n"
    for size, us in rows:
        algbw = size / us / 1e3 if rate is None else rate
        busbw = algbw * 2 * (ranks - 1) / ranks
        half = f"{us:9.2f} {algbw:7.2f} {busbw:7.2f}      0"
        text += f"{size:12} {size // 4:12}     float     sum      -1 {half} {half}\n"
    text += "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n#\n# Collective test concluded: all_reduce_perf\n"
    (folder / name).write_text(text)
    return ["--nccl-tests", folder / name]


def products(name, gpu, factor=1.0):
    """BF16 products of which the weights come from the DRAM: 3 us and 1.5 TB/s."""
    with open(folder / name, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow("gpu engine kernel dtype m n k latency_us".split())
        for n in (16384, 24576, 32768, 49152):
            for m in (1, 8, 32):
                out.writerow([gpu, "vllm 0.24.0", "torch.nn.functional.linear", "bfloat16", m, n, 16384,
                              factor * (3 + n * 16384 * 2 / 1.5e6)])
    return ["--kernels", folder / name]


def bench(name, model, tpot):
    (folder / name).write_text(
        '{"date": "20260101-000000", "backend": "vllm", "model_id": "%s", "num_prompts": 64, "request_rate": "inf", '
        '"max_concurrency": 8, "duration": 100.0, "completed": 64, "total_input_tokens": 65536, '
        '"total_output_tokens": 16384, "request_throughput": 0.64, "output_throughput": 163.8, '
        '"total_token_throughput": 819.2, "mean_ttft_ms": 300.0, "median_ttft_ms": 300.0, "std_ttft_ms": 1.0, '
        '"p99_ttft_ms": 310.0, "mean_tpot_ms": %g, "median_tpot_ms": %g, "std_tpot_ms": 0.1, "p99_tpot_ms": %g, '
        '"mean_itl_ms": %g, "median_itl_ms": %g, "std_itl_ms": 0.1, "p99_itl_ms": %g}' % (model, *[tpot] * 6))
    return ["--bench", folder / name]


def points(name, change):
    with open(POINTS, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        change(row)
    with open(folder / name, "w", newline="") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)
    return ["--points", folder / name]


def calibrate(scenario, evidence, *more):
    return run("calibrate", *scenario, *evidence, *more, "-o", folder / "set.yaml", "--force")


def refused(what, scenario, evidence, *words):
    (folder / "set.yaml").unlink(missing_ok=True)
    found = calibrate(scenario, evidence)
    wrong = [word for word in words if word not in found.stderr]
    if found.returncode != 2 or wrong or (folder / "set.yaml").exists():
        failures.append(what)
        print(f"FAILED {what}: status {found.returncode}, without {wrong}\n{found.stderr}{found.stdout[:400]}")


def accepted(what, scenario, evidence, *more):
    found = calibrate(scenario, evidence, *more)
    if found.returncode != 0:
        failures.append(what)
        print(f"FAILED {what}: status {found.returncode}\n{found.stderr}")
    return found


SERVER = "RTX PRO 6000 Blackwell Server Edition"
KIMI = ["kimi-k26-v4"]
NCCL = [*KIMI, "--set", "plan.allreduce.backend=nccl"]
LLAMA = sets(["architecture=llama-3.1-70b", "weights=bf16", "plan.allreduce.backend=nccl"])
WIRES = [(1024, 22.0), (4096, 23.0), (16384, 26.0), (65536, 40.0)]

kimi = capture("kimi", "kimi-k26-v4")
over_nccl = capture("nccl", "kimi-k26-v4", "plan.allreduce.backend=nccl")
simple = capture("simple", "kimi-k26-v4", "plan.allreduce.backend=nccl", "plan.allreduce.protocol=simple")
llama = capture("llama", "kimi-k26-v4", "architecture=llama-3.1-70b", "weights=bf16", "plan.allreduce.backend=nccl")
tp4 = capture("tp4", "kimi-k26-v4", "architecture=llama-3.1-70b", "weights=bf16", "plan.allreduce.backend=nccl",
              "plan.tp=4")
qwen = capture("qwen", "qwen35-397b")
glm = capture("glm", "glm5")
dcp = capture("dcp", "kimi-k26-v4", "plan.dcp=8")
b200 = capture("b200", "kimi-k26-v4", "machine=b200-8x-nvlink")
switches = capture("switches", "kimi-k26-v4", "machine=rtx-pro-6000-8x-switches")
eight = capture("eight", "kimi-k26-v4", "plan.batch=8", "plan.context=4096")

# ---- wrong ----
refused("capture of another GPU", KIMI, b200, "b200: rank 0: measured on GPU 'B200 SXM'",
        f"the scenario's machine rtx-pro-6000-8x-two-socket has '{SERVER}'", "--set machine=...")
refused("name of another GPU in a capture", KIMI, edited("h100", "kimi", SERVER, "NVIDIA H100 80GB HBM3"),
        "measured on GPU 'NVIDIA H100 80GB HBM3'", SERVER)
refused("capture of a dense model", NCCL, llama, "161 AllReduces a step, the scenario's step of kimi-k2.6 has 123",
        "llama: no kernel is one of routed experts, the scenario's model kimi-k2.6 has them")
refused("capture of experts, dense scenario", [*KIMI, *LLAMA], over_nccl, "123 AllReduces a step",
        "routed experts, the scenario's model llama-3.1-70b has none", "multi-head latent attention")
refused("capture of linear attention", NCCL, qwen, "kernels of linear attention, the scenario's model kimi-k2.6 has none")
refused("capture of sparse attention", NCCL, glm, "157 AllReduces a step, the scenario's step of kimi-k2.6 has 123",
        "an indexer of sparse attention")
refused("ranks of a capture", [*KIMI, *LLAMA], tp4, "tp4: captured of 4 ranks, the scenario's plan has 8", "plan.tp=4")
refused("world size in a capture", KIMI, edited("world", "kimi", '"world_size": 8', '"world_size": 16'),
        "captured of 16 ranks, the scenario's plan has 8")
refused("NCCL, scenario of one-shot", KIMI, over_nccl, "most AllReduces are NCCL", "the scenario's plan calls one-shot",
        "plan.allreduce.backend")
refused("one-shot, scenario of NCCL", NCCL, kimi, "most AllReduces are one-shot ('vllm::cross_device_reduce_1stage')",
        "the scenario's plan calls NCCL")
refused("protocol of NCCL", [*NCCL, "--set", "plan.allreduce.protocol=ll"], simple, "most AllReduces are NCCL Simple",
        "the scenario's plan calls NCCL LL")
refused("DCP", KIMI, dcp, "gathers, scatters and all-to-alls a step, the scenario's step has", "dcp 1")
refused("two engines", KIMI, [*edited("sglang", "kimi", "vllm::", "sglang::"), "--points", POINTS],
        "sglang: measured with sglang, but points.csv with vllm")
refused("AllReduce below the wire", KIMI, nccl("fast.txt", "NVIDIA " + SERVER, 4, [(1024, 0.52), (8192, 0.75)]),
        "0.52 us for an AllReduce of 1024 bytes on 4 GPUs", "the wires of rtx-pro-6000-8x-two-socket alone take")
refused("AllReduce above the links", KIMI, nccl("wide.txt", "NVIDIA " + SERVER, 8, [(1 << 22, 50.0), (1 << 23, 99.0)]),
        "50 us for an AllReduce of 4194304 bytes on 8 GPUs")
refused("nccl-tests of another GPU", KIMI, nccl("other.txt", "NVIDIA GeForce RTX 4090", 8, WIRES),
        "measured on GPU 'NVIDIA GeForce RTX 4090'", SERVER)
refused("nccl-tests of more ranks", KIMI, nccl("ranks.txt", "NVIDIA " + SERVER, 16, WIRES),
        "an AllReduce of 16 ranks, the scenario's machine rtx-pro-6000-8x-two-socket has 8 GPUs")
refused("doctored nccl-tests", KIMI, nccl("doctored.txt", "NVIDIA " + SERVER, 8, WIRES, rate=5.0),
        "time, bytes and rates of the row do not belong together for 8 ranks")
refused("nccl-tests in ms", KIMI, nccl("ms.txt", "NVIDIA " + SERVER, 8, [(s, u * 1000) for s, u in WIRES]),
        "ms.txt: the fit stays a factor of", "in another unit?")
refused("table of another GPU", KIMI, products("h100.csv", "H100 SXM"), "measured on GPU 'H100 SXM'", SERVER)
refused("table in ms", KIMI, products("ms.csv", "RTX PRO 6000 Server", 1e-3), "of weights or cache", "reads 1597 GB/s")
refused("points of another model", KIMI, ["--points", ROOT / "calib/points/minimax_m25.csv"],
        "measured on model minimax-m2.5", "the scenario's is kimi-k2.6")
refused("points of another GPU", KIMI, points("a100.csv", lambda row: row.update(gpu="NVIDIA A100-SXM4-80GB")),
        "measured on GPU 'NVIDIA A100-SXM4-80GB'", SERVER)
refused("points in other units", KIMI, points("s.csv", lambda row: row.update(value=float(row["value"]) / 1000)),
        "prior spreads away from", "in the right unit?")
refused("load test of another model", KIMI, bench("qwen.json", "Qwen/Qwen3-32B", 20.0),
        "a load test of model 'Qwen/Qwen3-32B', the scenario's is 'kimi-k2.6'")
refused("load test faster than the weights", KIMI, bench("fast.json", "moonshotai/Kimi-K2.6", 0.9),
        "TPOT at 8 sequences: 900 us, but the bytes of the scenario's step")
refused("two tests against each other", KIMI,
        [*nccl("one.txt", "NVIDIA " + SERVER, 8, WIRES),
         *nccl("two.txt", "NVIDIA " + SERVER, 8, [(s, 1.6 * u) for s, u in WIRES])], "contradict each other")

# ---- healthy ----
accepted("capture", KIMI, kimi)
accepted("one rank of a capture", KIMI, ["--capture", sorted((folder / "kimi").iterdir())[0]])
accepted("name as the driver has it", KIMI, edited("driver", "kimi", SERVER, "NVIDIA " + SERVER))
accepted("Workstation edition", KIMI,
         edited("workstation", "kimi", SERVER, "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"))
accepted("NCCL", NCCL, over_nccl)
accepted("Simple", [*NCCL, "--set", "plan.allreduce.protocol=simple"], simple)
accepted("NCCL's name of every protocol", [*NCCL, "--set", "plan.allreduce.protocol=simple"],
         edited("named", "simple", "RING_SIMPLE", "RING_LL"))
accepted("dense model", [*KIMI, *LLAMA], llama)
accepted("TP4", [*KIMI, *LLAMA, "--set", "plan.tp=4"], tp4)
accepted("linear attention", ["qwen35-397b"], qwen)
accepted("sparse attention", ["glm5"], glm)
accepted("DCP", [*KIMI, "--set", "plan.dcp=8"], dcp)
accepted("B200", [*KIMI, "--set", "machine=b200-8x-nvlink"], b200)
accepted("switches", [*KIMI, "--set", "machine=rtx-pro-6000-8x-switches"], switches)
accepted("two captures", KIMI, [*kimi, *eight])
accepted("nccl-tests", KIMI, nccl("wires.txt", "NVIDIA " + SERVER, 8, WIRES))
accepted("nccl-tests of four", KIMI, nccl("four.txt", "NVIDIA " + SERVER, 4, [(s, u * 0.7) for s, u in WIRES]))
accepted("table", KIMI, products("own.csv", "RTX PRO 6000 Server"))
accepted("table without a GPU", KIMI, products("none.csv", ""))
accepted("points", KIMI, ["--points", POINTS])
accepted("load test", KIMI, bench("kimi.json", "moonshotai/Kimi-K2.6", 22.0))
accepted("capture and nccl-tests", KIMI, [*kimi, *nccl("again.txt", "NVIDIA " + SERVER, 8, WIRES)])

# ---- all the same ----
made = accepted("--accept", KIMI, b200, "--accept", "only to see")
text = (folder / "set.yaml").read_text()
for word in ('accepted:\n  why: "only to see"\n  findings:\n    - "b200: rank 0: measured on GPU',):
    if word not in text:
        failures.append("--accept")
        print(f"FAILED --accept: the set lacks {word}\n{text[:600]}")
told = run("predict", *KIMI, "--set", f"calibration={folder / 'set.yaml'}").stdout
if "was written in spite of what is wrong with its evidence: only to see" not in told.replace("\n    ", " "):
    failures.append("predict")
    print(f"FAILED predict does not tell\n{told}")
print(f"{len(failures)} failures")
sys.exit(len(failures) > 0)
