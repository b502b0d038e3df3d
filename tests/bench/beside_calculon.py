"""Evaluations a second of Spillway's estimates and of Calculon, on this machine, in one run.

    beside_calculon.py CALCULON ESTIMATE_BENCH PROFILES [SECONDS]

CALCULON is a checkout of github.com/calculon-ai/calculon, which is no part of this project. Both
answer for Megatron's 175B model on 64 A100. Calculon runs in this process, its inputs parsed once:
`compile` and `run` of one model object a time. The two take turns, three times; the median is printed.
"""

import logging
import os
import statistics
import subprocess
import sys
import time


def calculon_rate(folder, seconds):
    sys.path.insert(0, folder)
    import calculon
    from calculon.llm import Llm, System

    read = calculon.io.read_json_file
    app = Llm.Application(read(os.path.join(folder, "models/gpt3-175B.json")))
    execution = read(os.path.join(folder, "validation/seqsel/tab5/gpt3-175B_full.json"))
    system = System(read(os.path.join(folder, "systems/a100_80g.json")))
    log = logging.getLogger("calculon")
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        execution["batch_size"] = 8 * (1 + count % 64)
        model = Llm(app, log)
        model.compile(system, Llm.Execution.from_json(execution))
        model.run(system)
        count += 1
    return count / (time.perf_counter() - begin)


def spillway_rates(bench, profiles, seconds):
    out = subprocess.run([bench, profiles, str(seconds)], check=True, capture_output=True, text=True)
    return [float(word) for word in out.stdout.split()[:2]]


def main():
    folder, bench, profiles = sys.argv[1:4]
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 5
    theirs, ours, anew = [], [], []
    for _ in range(3):
        theirs.append(calculon_rate(folder, seconds))
        changed, made = spillway_rates(bench, profiles, seconds)
        ours.append(changed)
        anew.append(made)
    print(f"Calculon {statistics.median(theirs):.0f}/s")
    print(f"Spillway {statistics.median(ours):.0f}/s with batch and policy changed,"
          f" {statistics.median(anew):.0f}/s with all made anew")


if __name__ == "__main__":
    main()
