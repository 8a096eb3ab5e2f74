#!/usr/bin/env python3
"""Makes the measurements of this folder from tables as they were collected. Not needed to build or to run anything.

    calib/convert.py DATA

DATA has decode/*.csv, kernels/*.csv.gz, kernels/other_gpus/*.csv.gz, serving/h200.csv.gz and
collectives/rtx_pro_6000_hosts.csv. What is kept are figures, names and where each row is from; sentences (notes,
descriptions of boxes, of weights, of drafts) stay out, and so do tables that the program does not read. The same input
gives the same bytes. The folders' README.md say what the sources are and what may be done with them.
"""
import csv
import gzip
import io
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent

# The points format of docs/formats.md, in the order of the collected tables.
POINT_COLUMNS = """id group variant model weights_kind spec_kind attention moe_kernel allreduce_kind oneshot_max_bytes
    oneshot_max_rows wiring gpu_edition acceptance_kind cell_seconds kv_dtype engine gpu num_gpus tp ep dp pp dcp
    spec_tokens spec_acceptance concurrency context prompt_len output_len metric value anomaly source""".split()

SERVING_COLUMNS = "model quant engine gpu n tp ep dp spec isl osl concurrency metric value".split()

# Tables that calib/kernels/ reads, and of the other GPUs one shape in so many.
KERNELS = {"gemm": 8, "moe": 10, "mla_decode": 4, "mla_absorb": 1, "attention_decode": 10, "collective": 1}
# Columns along which a curve runs: rows that agree in all others but the latency are one shape and stay together.
CURVE = {"m", "tokens", "batch", "context", "bytes", "latency_us"}

# AllReduce on other hosts: how the published topology and backend begin, what else the topology says, and what the row
# is for the program: a short name of the host, the nearest machine file, the backend. nccl_no_ring: its search for a
# ring fails; nccl_graph: a graph file or a tuned build, the cheapest protocol.
HOSTS = [
    ("host B", "", "custom one-shot", "host-b", "rtx-pro-6000-8x-switches", "oneshot"),
    ("host B", "", "NCCL default", "host-b", "rtx-pro-6000-8x-switches", "nccl"),
    ("host A", "", "NCCL default (no graph xml)", "host-a", "rtx-pro-6000-8x-two-socket", "nccl_no_ring"),
    ("host A", "", "NCCL with NCCL_GRAPH_FILE", "host-a", "rtx-pro-6000-8x-two-socket", "nccl_graph"),
    ("ASUS", "4 GPU same NUMA", "SGLang PCIe oneshot", "esc8000a-4", "rtx-pro-6000-4x", "oneshot"),
    ("ASUS", "4 GPU same NUMA", "NCCL", "esc8000a-4", "rtx-pro-6000-4x", "nccl"),
    ("ASUS", "cross-socket", "NCCL", "esc8000a-8", "rtx-pro-6000-8x-two-socket", "nccl_no_ring"),
    ("local 8-GPU host", "", "fused one-stage", "host-l", "rtx-pro-6000-8x-two-socket", "oneshot"),
    ("local 8-GPU host", "", "vLLM PyNCCL", "host-l", "rtx-pro-6000-8x-two-socket", "nccl_graph"),
    ("local 8-GPU host", "", "torch.distributed NCCL", "host-l", "rtx-pro-6000-8x-two-socket", "nccl_graph"),
    ("dual EPYC 9575F", "same NUMA", "NCCL 2.28.3 baseline", "epyc-9575f-4", "rtx-pro-6000-4x", "nccl"),
    ("dual EPYC 9575F", "cross-socket", "NCCL 2.28.3 baseline", "epyc-9575f-8", "rtx-pro-6000-8x-two-socket", "nccl"),
]


def text(columns, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[c] for c in columns] for row in rows)
    return out.getvalue()


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(content.encode())
    else:
        path.write_text(content)
    print(f"{path.relative_to(HERE)}: {content.count(chr(10)) - 1} rows, {path.stat().st_size} bytes")


def read(path):
    opened = gzip.open(path, "rt", newline="") if path.suffix == ".gz" else open(path, newline="")
    with opened as file:
        return list(csv.DictReader(file))


def points(data):
    for path in sorted((data / "decode").glob("*.csv")):
        write(HERE / "points" / path.name, text(POINT_COLUMNS, read(path)))


def thinned(rows, step):
    """Every step-th shape with all its rows, the shapes of each kernel of each GPU counted in the order they come."""
    shapes, count, kept = {}, {}, []
    for row in rows:
        family = tuple(row.get(c) for c in ("gpu", "engine", "kernel", "dtype"))
        shape = tuple(value for column, value in row.items() if column not in CURVE)
        if shape not in shapes:
            count[family] = count.get(family, -1) + 1
            shapes[shape] = count[family] % step == 0
        if shapes[shape]:
            kept.append(row)
    return kept


def kernels(data):
    for name, step in KERNELS.items():
        rows = read(data / "kernels" / f"{name}.csv.gz")
        write(HERE / "kernels_measured" / f"{name}.csv.gz", text(rows[0].keys(), rows))
        other = data / "kernels" / "other_gpus" / f"{name}.csv.gz"
        rows = thinned(read(other), step) if other.exists() else []
        for gpu in sorted({row["gpu"] for row in rows}):
            folder = gpu.lower().replace(" ", "-")
            own = [row for row in rows if row["gpu"] == gpu]
            write(HERE / "kernels_measured" / "other_gpus" / folder / f"{name}.csv.gz", text(rows[0].keys(), own))


def serving(data):
    write(HERE / "points" / "serving" / "h200.csv.gz", text(SERVING_COLUMNS, read(data / "serving" / "h200.csv.gz")))


def hosts(data):
    columns = "id host machine gpus backend bytes latency_us busbw_gbs anomaly source".split()
    out = []
    for row in read(data / "collectives" / "rtx_pro_6000_hosts.csv"):
        known = [h for h in HOSTS if row["topology"].startswith(h[0]) and h[1] in row["topology"]
                 and row["backend"].startswith(h[2])]
        if row["kind"] != "allreduce" or not row["message_bytes"] or not known:
            continue
        host, machine, backend = known[0][3:]
        odd = "ANOMALY" in row["notes"] or "outlier" in row["notes"]
        out.append({"id": row["id"], "host": host, "machine": machine, "gpus": row["gpus"], "backend": backend,
                    "bytes": row["message_bytes"], "latency_us": row["latency_us"], "busbw_gbs": row["busbw_gbs"],
                    "anomaly": int(odd), "source": f'{row["source_file"]}#L{row["source_line"]}'})
    write(HERE / "kernels_measured" / "allreduce_hosts.csv", text(columns, out))


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1], "decode").is_dir():
        sys.exit("usage: calib/convert.py DATA    (a folder with decode/, kernels/, serving/ and collectives/)")
    data = pathlib.Path(sys.argv[1])
    points(data)
    kernels(data)
    serving(data)
    hosts(data)


main()
