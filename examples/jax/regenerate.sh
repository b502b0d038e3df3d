#!/usr/bin/env bash
# Compiles the committed dumps anew. No GPU is needed; JAX and PyYAML are:
#   pip install -r examples/jax/requirements.txt
# PYTHON chooses the interpreter, and the arguments, if any, the dumps: regenerate.sh keep
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}

policy_of() {
  local choice
  case $1 in
    keep | keep_batch_32) choice=keep ;;
    offload_all) choice=offload ;;
    offload_qkv)  # all three choices in one program; the MLP's two are recomputed
      echo decoder_layer_input=keep,query_proj=offload,key_proj=offload,value_proj=offload
      return ;;
    *)
      echo "error: there is no dump '$1'; there are keep, keep_batch_32, offload_qkv and offload_all" >&2
      exit 2 ;;
  esac
  for name in decoder_layer_input query_proj key_proj value_proj mlpwi_0 mlpwi_1; do
    printf '%s=%s,' "$name" "$choice"
  done
}

[ $# -gt 0 ] || set -- keep keep_batch_32 offload_qkv offload_all
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir -p dumps
for dump in "$@"; do
  policy=$(policy_of "$dump")
  packing=lean
  [ "$dump" != offload_qkv ] || packing=full  # one .hlo.pb and one schedule are enough
  batch=64
  [ "$dump" != keep_batch_32 ] || batch=32  # a second size, for what-ifs of others
  "$python" compile_step.py --gpu "${GPU:-gb200}" --devices 8 --policy "$policy" \
    --batch "$batch" --pack "$packing" --out "$fresh/$dump"
  rm -rf "dumps/$dump"
  mv "$fresh/$dump" "dumps/$dump"
  echo
done
