"""Fits the coefficients of matrix products and collectives in hw_profiles/ to XLA's measured tables.

    python3 docs/cost_fit.py ../shared/measured/xla_perf_tables gemm          residuals
    python3 docs/cost_fit.py ../shared/measured/xla_perf_tables gemm --yaml   lines for a profile
    python3 docs/cost_fit.py ../shared/measured/xla_perf_tables collective [--yaml]

The formulas are those of model/cost/gemm_time.h and model/cost/collective.h, the peaks those of the
profiles. Every error is out of sample: products of one size (all batches and the transposed one
with it), or every third message size, are left out of the fit and predicted. Needs numpy.
"""

import argparse
import csv
import pathlib
import re
from collections import defaultdict

import numpy as np

PROFILES = pathlib.Path(__file__).resolve().parent.parent / "hw_profiles"
UNITS = {"TFLOP/s": 1e12, "TB/s": 1e12, "GB/s": 1e9, "B": 1, "x": 1}

# ------------------------------------------------------------------------------ fitting


def solve(model, start, x, t, steps=200):
    """Logarithms of positive coefficients that minimise a robust sum of squares of log(model / t).

    Levenberg-Marquardt; residuals beyond some 5 % count linearly (soft L1), so that single rows
    that went wrong do not bend the fit.
    """
    p, damping, scale = np.log(start), 1e-2, 0.05
    residual = lambda q: np.log(model(np.exp(q), x) / t)
    cost = lambda r: np.sum(np.sqrt(1 + (r / scale) ** 2) - 1)
    r = residual(p)
    for _ in range(steps):
        jacobian = np.stack([(residual(p + h) - r) / 1e-6 for h in 1e-6 * np.eye(len(p))], 1)
        weight = 1 / np.sqrt(1 + (r / scale) ** 2)
        normal = jacobian.T @ (jacobian * weight[:, None])
        step = np.linalg.solve(
            normal + damping * np.diag(np.diag(normal) + 1e-9), -jacobian.T @ (weight * r)
        )
        q = np.clip(p + np.clip(step, -1, 1), -40, 40)
        better = residual(q)
        if cost(better) < cost(r):
            small = cost(r) - cost(better) < 1e-10 * cost(r)
            p, r, damping = q, better, damping / 3
            if small:
                break
        else:
            damping *= 4
            if damping > 1e8:
                break
    return np.exp(p)


def left_out_errors(model, start, x, t, fold):
    """|predicted / measured - 1| of each row, from a fit without the rows of its fold."""
    error = np.empty(len(t))
    for f in np.unique(fold):
        out = fold == f
        p = solve(model, start, x[~out], t[~out])
        error[out] = np.abs(model(p, x[out]) / t[out] - 1)
    return error


# ------------------------------------------------------------------------------ profiles


def figure(text, key):
    """The value of the first figure called `key`, in base units."""
    value, unit = re.search(rf'\b{key}: \{{value: "([\d.]+) ([^"]+)"', text).groups()
    return float(value) * UNITS[unit]


class Device:
    """Peaks of a device. AMD has no profiles: data sheet figures, the Infinity Cache for L2."""

    def __init__(self, profile=None, bf16=0.0, hbm=0.0, l2=0.0, beyond=1.2):
        text = (PROFILES / f"{profile}.yaml").read_text() if profile else ""
        peaks = text[text.index("matrix_peak:") : text.index("vector_peak:")] if profile else ""
        self.bf16 = figure(peaks, "bf16") if profile else bf16
        self.hbm = figure(text, "hbm_bandwidth") if profile else hbm
        self.l2 = figure(text, "l2_capacity") if profile else l2
        self.beyond = figure(text, "elementwise") if profile else beyond

    def peak(self, dtype):
        return self.bf16 * (0.5 if dtype.startswith("f32") else 2 if dtype.startswith("f8") else 1)


GEMM_DEVICES = {
    "sm_90": ("H100", Device("h100")),
    "sm_100_B200": ("B200", Device("b200")),
    "sm_107": ("Rubin", Device("vr200")),
    "gfx942": ("MI300", Device(bf16=1307e12, hbm=5300e9, l2=256e6)),
    "gfx950": ("MI350", Device(bf16=2300e12, hbm=7782e9, l2=256e6)),
}

# ------------------------------------------------------------------------------ matrix products

BYTES = {"bf16": 2, "f16": 2, "f32": 4}


def width(dtype):
    return BYTES.get(dtype, 1)


def gemm_model(device, dtype):
    left, result = dtype.split("x")[0], dtype.split("->")[1]

    def terms(x):
        b, m, n, k = x.T
        compute = 2 * b * m * n * k / device.peak(dtype)
        written = width(result) * b * m * n
        moved = width(left) * b * (m * k + k * n) + written
        near = np.clip((3 * device.l2 - moved) / 2, 0, moved)
        far = moved - near
        return compute, written / device.hbm, k / 1024, near / device.hbm, far / device.hbm

    def time(p, x):
        overhead, factor, result_factor, depth, operands = p
        compute, written, deep, near, far = terms(x)
        work = factor * compute + result_factor * written
        memory = operands * near + device.beyond * far
        return overhead + np.sqrt(work**2 + (depth * deep) ** 2 + memory**2)

    def two_parameters(p, x):
        compute, _, _, near, far = terms(x)
        return p[0] + p[1] * np.maximum(compute, near + far)

    return time, two_parameters


def size_folds(x, folds=5):
    """Products with the same m, n (in either order) and k share a fold, whatever their batch."""
    sizes = np.sort(x[:, 1:3], axis=1)
    _, group = np.unique(np.column_stack([sizes, x[:, 3]]), axis=0, return_inverse=True)
    group = group.ravel()
    return np.random.default_rng(0).permutation(group.max() + 1)[group] % folds


def transposed_difference(x, t):
    """How far a product is from the one with m and n swapped, in the mean: what no model of sizes
    alone that treats both alike can get below."""
    times = {tuple(row): time for row, time in zip(x, t)}
    pairs = [(v, times[(b, n, m, k)]) for (b, m, n, k), v in times.items() if m < n]
    return np.mean([abs(v - w) / (v + w) for v, w in pairs])


def fit_gemm(folder, yaml):
    rows = defaultdict(list)
    for r in csv.DictReader(open(folder / "matmul.csv")):
        rows[r["device"], r["dtype"]].append([float(r[c]) for c in ("b", "m", "n", "k", "measured_ns")])
    if not yaml:
        print("| device | type | two parameters | this form: mean / median / p95 | transposed | largest |")
        print("|---|---|---|---|---|---|")
    for (name, dtype), table in sorted(rows.items()):
        if name not in GEMM_DEVICES or (dtype.startswith("f8") and not dtype.endswith("bf16")):
            continue
        label, device = GEMM_DEVICES[name]
        x, t = np.array(table)[:, :4], np.array(table)[:, 4] * 1e-9
        model, two = gemm_model(device, dtype)
        start = [5e-6, 1.3, 0.7, 1.2e-6, 0.4]
        p = solve(model, start, x, t)
        if yaml:
            print(
                f'{label} {dtype}: factor {p[1]:.3f}  {{overhead: "{p[0] * 1e6:.2f} us", '
                f'depth: "{p[3] * 1e6:.2f} us", operands: "{p[4]:.2f} x", result: "{p[2]:.2f} x"}}'
            )
            continue
        fold = size_folds(x)
        error = left_out_errors(model, start, x, t, fold)
        simple = left_out_errors(two, [5e-6, 1.4], x, t, fold)
        large = 2 * x.prod(axis=1) > 6e10
        bias = np.mean(model(p, x[large]) / t[large] - 1)
        print(
            f"| {label} | `{dtype}` | {simple.mean():.1%} | {error.mean():.1%} / {np.median(error):.1%}"
            f" / {np.percentile(error, 95):.1%} | {transposed_difference(x, t):.1%} | {bias:+.1%} |"
        )


# ------------------------------------------------------------------------------ collectives

COLLECTIVE_DEVICES = {
    "sm_90": "H100",
    "sm_100_B200": "B200",
    "sm_100_GB200": "GB200",
    "sm_103": "GB300",
    "sm_107": "Rubin",
}
SMALLEST = 65536  # bytes of tensor: what lies below is quantised, or launch


def bus_share(op, n):
    if op == "collective-permute":
        return 1
    return (2 if op == "all-reduce" else 1) * (n - 1) / n


def alpha_beta(p, s):
    return p[0] + s / p[1]


def pipelined(p, s):
    latency, rate, pipeline = p
    return latency + s / rate + 2 * np.sqrt(pipeline * s / rate)


def few_channels(p, s):
    latency, rate, slow, up_to = p
    return latency + np.maximum(s / rate, np.minimum(s, up_to) / slow)


def solve_collective(model, s, t):
    rate = np.max(s / t)
    starts = {
        alpha_beta: [[t.min(), rate]],
        pipelined: [[t.min() * 0.8, rate * 1.05, 1e-6], [t.min() * 0.8, rate * 1.05, 3e-5]],
        few_channels: [
            [t.min(), rate, rate / f, up] for f in (3, 6, 20) for up in (3e6, 1e7, 3e7, 1e8)
        ],
    }[model]
    fits = [solve(model, start, s, t) for start in starts]
    score = lambda p: np.mean(np.minimum(np.abs(np.log(model(p, s) / t)), 0.5))
    return min(fits, key=score)


def collective_errors(model, s, t):
    error = np.empty(len(t))
    for f in range(3):
        out = np.arange(len(t)) % 3 == f
        error[out] = np.abs(model(solve_collective(model, s[~out], t[~out]), s[out]) / t[out] - 1)
    return error


def launch_time(rows, name):
    """The tables of H100 and B200 time whole executables, but permutes in a loop: what two ranks
    take for small messages beyond what a permute takes is launch. The others time kernels."""
    if name not in ("sm_90", "sm_100_B200"):
        return 0.0
    small = lambda key: [t for s, t in rows[key] if s <= SMALLEST]
    two = [t for op in ("all-gather", "reduce-scatter", "all-reduce") for t in small((name, op, "", 2))]
    return np.median(two) - np.median(small((name, "collective-permute", "one_way", 8)))


def fit_collective(folder, yaml):
    rows = defaultdict(list)
    for r in csv.DictReader(open(folder / "collective.csv")):
        key = (r["device"], r["op"], r["pattern"], int(r["n_devices"]))
        rows[key].append((float(r["tensor_bytes"]), float(r["measured_ns"]) * 1e-9))
    rows = dict(rows)
    scores = defaultdict(list)
    for key in sorted(rows):
        name, op, pattern, n = key
        # A group size is there once for each number of groups: the median stands for them.
        sizes, index = np.unique([s for s, _ in rows[key]], return_inverse=True)
        times = np.array([t for _, t in rows[key]])
        t = np.array([np.median(times[index == i]) for i in range(len(sizes))])
        use = sizes >= SMALLEST
        s, t = sizes[use] * bus_share(op, n), t[use]
        if len(s) < 8:
            continue
        model = few_channels if op == "collective-permute" else pipelined
        if yaml:
            p = solve_collective(model, s, t)
            launch = launch_time(rows, name) if op != "collective-permute" else 0
            latency = max(p[0] - launch, 3e-6) * 1e6
            line = f"gpus: {n}, latency: {latency:.1f} us, bus_bandwidth: {p[1] / 1e9:.0f} GB/s"
            if model is pipelined:
                line += f", pipeline: {p[2] * 1e6:.2f} us"
            else:
                line += f", slow_bandwidth: {p[2] / 1e9:.1f} GB/s, slow_up_to: {p[3] / 1e6:.1f} MB"
            print(f"{COLLECTIVE_DEVICES[name]} {op} {pattern}: {{{line}}}  launch {launch * 1e6:.1f} us")
            continue
        for form in (alpha_beta, pipelined, few_channels):
            scores[name, op, form].append(collective_errors(form, s, t))
    if yaml:
        return
    print("| device | collective | two parameters | pipelined | few channels |")
    print("|---|---|---|---|---|")
    for name, op in sorted({(name, op) for name, op, _ in scores}):
        mean = [np.concatenate(scores[name, op, f]).mean() for f in (alpha_beta, pipelined, few_channels)]
        print(f"| {COLLECTIVE_DEVICES[name]} | {op} | " + " | ".join(f"{m:.1%}" for m in mean) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("what", choices=["gemm", "collective"])
    parser.add_argument("--yaml", action="store_true")
    args = parser.parse_args()
    (fit_gemm if args.what == "gemm" else fit_collective)(args.folder, args.yaml)


if __name__ == "__main__":
    main()
