#!/usr/bin/env bash
# The program's ranks as processes, started by plain variables: what runs as threads gives the same, and a lost rank
# ends the others with exit code 3.
#
#   processes.sh CASE OCTAVO
set -euo pipefail

case_name=$1
octavo=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { printf 'processes.sh %s: %s\n' "$case_name" "$*" >&2; tail -n +1 "$folder"/*.out "$folder"/*.err >&2; exit 1; }

export MASTER_ADDR=127.0.0.1
pids=()
codes=()

# start SIZE ARGUMENTS: all ranks in the background, the output of each in RANK.out and RANK.err.
start() {
  local size=$1 rank
  shift
  export MASTER_PORT=$((20000 + RANDOM % 12000))
  for ((rank = 0; rank < size; ++rank)); do
    RANK=$rank WORLD_SIZE=$size "$octavo" "$@" --threads-per-rank 1 >"$folder/$rank.out" 2>"$folder/$rank.err" &
    pids[$rank]=$!
  done
}

finish() {
  local rank
  codes=()
  for rank in "${!pids[@]}"; do
    codes[$rank]=0
    wait "${pids[$rank]}" || codes[$rank]=$?
  done
}

verify() {
  pids=()
  start "$@"
  finish
  local rank
  for rank in "${!codes[@]}"; do
    ((codes[rank] == 0)) || fail "$*: rank $rank ended with exit code ${codes[$rank]}"
  done
  grep -qx verified "$folder/0.out" || fail "$*: rank 0 did not verify"
  [[ ! -s $folder/1.out ]] || fail "$*: rank 1 spoke"
}

model=(--model data/demo-config.json --seq-len 21)
case $case_name in
  verify)
    verify 2 verify "${model[@]}" --layout tensor=2:replicate --dtype fp64
    verify 4 verify "${model[@]}" --layout "data=2:zero1 tensor=2:scatter:pad" --stash recompute
    verify 3 verify "${model[@]}" --layout data=3
    # Weights of MLP and vocabulary go round a ring, or come straight from their owners.
    verify 3 verify "${model[@]}" --layout fold=3:weights --dtype fp64
    verify 5 verify "${model[@]}" --layout fold=5:weights --dtype fp64 --stash recompute
    verify 4 verify "${model[@]}" --layout fold=4:weights:direct --dtype fp64
    verify 4 verify "${model[@]}" --layout "data=2:zero1 fold=2:weights" --stash attention
    verify 2 verify --reference tests/data/cases/qwen3 --layout tensor=2
    # Five KV heads over two ranks: one rank's head has rows on the other. Forms differ between the directions.
    verify 2 verify "${model[@]}" --layout fold=2:activations
    verify 4 verify "${model[@]}" --layout "fold=2 tensor=2:scatter:pad" --stash recompute --dtype fp64
    ;;
  disagree)
    # Sums of different sequences would be nonsense, tensors of different sizes a crash.
    export MASTER_PORT=$((20000 + RANDOM % 12000))
    pids=()
    for rank in 0 1; do
      RANK=$rank WORLD_SIZE=2 "$octavo" eval --model tests/data/cases/llama-gqa --data data/kjv-valid.txt \
        --layout data=2 --seq-len 16 --sequences $((5 + rank)) >"$folder/$rank.out" 2>"$folder/$rank.err" &
      pids[$rank]=$!
    done
    finish
    for rank in 0 1; do
      ((codes[rank] == 2)) || fail "rank $rank ended with exit code ${codes[$rank]}, not 2"
      grep -q 'rank 0 has "sequences 5", rank 1 has "sequences 6"' "$folder/$rank.err" || fail "rank $rank does not say why"
    done
    ;;
  killed)
    start 3 train --model data/demo-config.json --data data/kjv-valid.txt --layout data=3 --steps 100000 \
      --seq-len 32 --out "$folder/model" --deadline 20
    for _ in $(seq 300); do
      ! grep -q "^step 1/" "$folder/0.out" || break
      sleep 0.1
    done
    kill -9 "${pids[1]}"
    begin=$SECONDS
    finish
    ((SECONDS - begin < 20)) || fail "the others took $((SECONDS - begin)) s to end"
    for rank in 0 2; do
      ((codes[rank] == 3)) || fail "rank $rank ended with exit code ${codes[$rank]}, not 3"
      grep -q "rank $rank: .* over .*step .*rank 1" "$folder/$rank.err" || fail "rank $rank does not say what it lost"
    done
    [[ ! -e $folder/model ]] || fail "a model was written"
    ;;
  *) fail "unknown case" ;;
esac
