#!/usr/bin/env bash
# gpu_check.sh [OUT]: what only a machine with a GPU can check, in under eight minutes on an H200.
#   1. builds spillway-probe with nvcc alone, unless a build tree has it
#   2. measures the machine                              OUT/probe.json
#   3. measures real training steps with JAX             OUT/steps      (not where tests/data/h200 holds a run)
#   4. fits a profile                                    OUT/profile.yaml, OUT/fit.txt, OUT/copies.svg
#   5. sets predictions against measured steps           OUT/comparison.md
# 4 and 5 need spillway itself ($SPILLWAY, or a build tree's). A bare machine that cannot build or run it
# stops after 3 and says how to go on at home: gpu_check.sh --fit OUT does 4 and 5 with the files of OUT.
# BASE names the profile to start from (h200), PROBE_SECONDS how long to measure the machine (100).
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
only_fit=
if [ "${1:-}" = --fit ]; then only_fit=1; shift; fi
out=${1:-$root/build/gpu_check}
base=${BASE:-h200}
seconds=${PROBE_SECONDS:-100}
began=$SECONDS
mkdir -p "$out" || exit 3

say() { echo "[$((SECONDS - began)) s] $*"; }
failed=()

find_program() {  # find_program NAME PATH...: the first that is there and starts
  local path
  for path in "${@:2}"; do
    [ -x "$path" ] && "$path" --help >/dev/null 2>&1 && { echo "$path"; return; }
  done
  return 1
}

build_probe() {
  local toolkit=${CUDA_HOME:-/usr/local/cuda}
  local nvcc; nvcc=$(command -v nvcc || echo "$toolkit/bin/nvcc")
  [ -x "$nvcc" ] || { say "no nvcc: the probe cannot be built"; return 1; }
  probe=$out/spillway-probe
  # One architecture, that of the GPU at hand; the kernels are C++17, the rest C++20 and all at once.
  local objects jobs=() job; objects=$(mktemp -d)
  "$nvcc" -std=c++17 -O2 -arch=native -I"$root" -c "$root/calibration/probe/cuda/kernels.cu" -o "$objects/kernels.o" & jobs+=($!)
  for source in "$root"/calibration/probe/*.cpp "$root"/calibration/probe/cuda/*.cpp; do
    "${CXX:-g++}" -std=c++20 -O2 -I"$root" -isystem "$toolkit/include" -c "$source" -o "$objects/$(basename "$source" .cpp).o" & jobs+=($!)
  done
  local status=0
  for job in "${jobs[@]}"; do wait "$job" || status=1; done
  [ $status = 0 ] && { "$nvcc" -cudart static "$objects"/*.o -o "$probe" -ldl || status=1; }
  rm -r "$objects"
  return $status
}

measure_machine() {
  probe=$(find_program probe "$root"/build/{release,dev}/calibration/probe/cuda/spillway-probe) || build_probe || return 1
  say "measuring the machine for $seconds s with $probe"
  timeout $((seconds + 60)) "$probe" --seconds "$seconds" --out "$out/probe.json" 2>"$out/probe.log"
  local status=$?
  # Without a GPU there is nothing else to check.
  grep -q '^nothing to measure' "$out/probe.log" && { cat "$out/probe.log"; exit 1; }
  tail -1 "$out/probe.log"
  return $status
}

measure_steps() {
  if [ -e "$root/tests/data/h200/measured.jsonl" ]; then
    say "tests/data/h200 holds a run of training steps: not measured again"
    return 0
  fi
  say "measuring training steps"
  local left=$((460 - SECONDS + began))
  [ $left -gt 60 ] || { say "too little time is left for them"; return 1; }
  timeout $left python3 "$root/calibration/gpu_measure.py" "$out/steps"
}

fit_profile() {
  say "fitting"
  "$spillway" calibrate --from "$out/probe.json" --base "$base" --id "$base-measured" --out "$out/profile.yaml" \
    --plot "$out/copies.svg" >"$out/fit.txt"
  local status=$?
  cat "$out/fit.txt"
  return $status
}

compare() {
  local steps=$out/steps
  [ -e "$steps/measured.jsonl" ] || steps=$root/tests/data/h200
  [ -e "$steps/measured.jsonl" ] || { say "no measured steps to compare with"; return 1; }
  local machines=("$base")
  [ -e "$out/profile.yaml" ] && machines+=("$out/profile.yaml")
  SPILLWAY=$spillway python3 "$root/calibration/compare_steps.py" "$steps" "${machines[@]}" | tee "$out/comparison.md"
}

if [ -z "$only_fit" ]; then
  measure_machine || failed+=("the probe")
  measure_steps || failed+=("training steps")
fi
if spillway=$(find_program spillway ${SPILLWAY:+"$SPILLWAY"} "$root"/build/{release,dev}/cli/spillway); then
  [ -e "$out/probe.json" ] && { fit_profile || failed+=("the fit"); }
  compare || failed+=("the comparison")
else
  say "spillway does not run here; where it does: calibration/gpu_check.sh --fit $out"
fi
if [ ${#failed[@]} -gt 0 ]; then
  say "failed: ${failed[*]}"
  exit 1
fi
say "done: $out"
