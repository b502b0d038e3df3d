#!/usr/bin/env python3
"""compare_steps.py STEPS MACHINE...: predictions against the steps that gpu_measure.py measured.

STEPS is gpu_measure.py's folder (measured.jsonl and CASE.tar.gz), a MACHINE a profile's id or YAML file. Prints a Markdown
table: for each case the median step and the memory that XLA assigned, and for each machine what `spillway simulate` predicts.
The binary is $SPILLWAY, or that of build/release or build/dev. Exit code 1 when no case could be compared.
"""
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def find_binary():
    named = os.environ.get("SPILLWAY")
    candidates = [Path(named)] if named else [ROOT / "build" / p / "cli" / "spillway" for p in ("release", "dev")]
    return next((str(c) for c in candidates if c.exists()), None)


def measured_steps(folder):
    """The last record of each case."""
    path = Path(folder) / "measured.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return {record["case"]: record for record in records}


def device_bytes(record):
    """What XLA's allocations come to: arguments and results that share memory count once."""
    memory = record.get("memory") or {}
    parts = ("temp_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes")
    if any(part not in memory for part in parts):
        return None
    return sum(memory[part] for part in parts) - memory.get("alias_size_in_bytes", 0)


def simulate(binary, dump, machine):
    """The prediction, or why there is none."""
    done = subprocess.run([binary, "simulate", str(dump), "--hw", machine, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit code {done.returncode}"
    return json.loads(done.stdout), ""


def off(predicted, measured):
    return f"{(predicted / measured - 1) * 100:+.1f} %" if measured else "-"


def rows_of(binary, steps, machines):
    for case, record in measured_steps(steps).items():
        archive = Path(steps) / f"{case}.tar.gz"
        if not archive.exists():
            yield case, record, None, f"{archive.name} is not there"
            continue
        with tempfile.TemporaryDirectory() as dump:
            with tarfile.open(archive) as tar:
                for member in tar.getmembers():  # plain files of the folder alone
                    if member.isfile() and "/" not in member.name and not member.name.startswith("."):
                        tar.extract(member, dump)
            answers, why = [], ""
            for machine in machines:
                answer, why = simulate(binary, dump, machine)
                if answer is None:
                    break
                answers.append(answer)
        yield case, record, answers if len(answers) == len(machines) else None, why


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    steps, machines = sys.argv[1], sys.argv[2:]
    binary = find_binary()
    if binary is None:
        sys.exit("spillway is not built: set SPILLWAY, or run make")
    head = ["case", "measured step"] + [part for m in machines for part in (f"by {Path(m).stem}", "off")]
    head += ["device memory", "predicted", "off"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    compared = 0
    for case, record, answers, why in rows_of(binary, steps, machines):
        step = statistics.median(record["step_seconds"])
        if answers is None:
            print(f"| {case} | {step * 1e3:.1f} ms | {why} |" + " |" * (len(head) - 3))
            continue
        compared += 1
        cells = [case, f"{step * 1e3:.1f} ms"]
        for answer in answers:
            cells += [f"{answer['step_seconds'] * 1e3:.1f} ms", off(answer["step_seconds"], step)]
        memory, peak = device_bytes(record), answers[-1]["peak_device_bytes"]
        cells += [f"{memory / 2**30:.2f} GiB" if memory else "-", f"{peak / 2**30:.2f} GiB", off(peak, memory)]
        print("| " + " | ".join(cells) + " |")
    sys.exit(0 if compared else 1)


if __name__ == "__main__":
    main()
