#!/usr/bin/env bash
# Starts gloo_program (or octavo) as launchers do, and looks at what comes out.
#
#   launchers.sh CASE PROGRAM
set -euo pipefail

case_name=$1
program=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() { printf 'launchers.sh %s: %s\n' "$case_name" "$*" >&2; tail -n +1 "$folder"/* >&2 || true; exit 1; }
skip() { printf 'launchers.sh %s: skipped: %s\n' "$case_name" "$*" >&2; exit 77; }
expect() { grep -qF -- "$1" "$2" || fail "'$1' is missing in $2"; }

port=$((20000 + RANDOM % 12000))
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
unset RANK WORLD_SIZE || true

# start RANK SIZE MODE: in the background, its output in RANK.out and RANK.err.
start() {
  RANK=$1 WORLD_SIZE=$2 "$program" "$3" >"$folder/$1.out" 2>"$folder/$1.err" &
  pids[$1]=$!
}
pids=()

wait_for_text() {
  local try
  for try in $(seq 200); do
    if grep -q "$1" "$2" 2>/dev/null; then return; fi
    sleep 0.1
  done
  fail "'$1' did not come in $2"
}

case $case_name in
  variables)
    for rank in 0 1 2; do start "$rank" 3 sum; done
    for rank in 0 1 2; do wait "${pids[$rank]}" || fail "rank $rank: exit code $?"; done
    expect "variables: rank 0, rank 1, rank 2; sum 6" "$folder/0.out"
    ;;
  torchrun)
    python=.venv/bin/python
    "$python" -c 'import torch.distributed.run' 2>/dev/null || skip "no torchrun in .venv"
    "$python" -m torch.distributed.run --no-python --standalone --nproc-per-node 2 "$program" sum \
      >"$folder/out" 2>"$folder/err" || fail "exit code $?"
    expect "torchrun: rank 0, rank 1; sum 3" "$folder/out"
    ;;
  srun)
    unset MASTER_ADDR MASTER_PORT
    for rank in 0 1; do
      SLURM_PROCID=$rank SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_ID=$RANDOM$$ SLURM_STEP_NODELIST=localhost \
        SLURM_JOB_ID=$$ "$program" sum >"$folder/$rank.out" 2>"$folder/$rank.err" &
      pids[$rank]=$!
    done
    for rank in 0 1; do wait "${pids[$rank]}" || fail "rank $rank: exit code $?"; done
    expect "srun: rank 0, rank 1; sum 3" "$folder/0.out"
    ;;
  mpirun)
    command -v mpirun >/dev/null || skip "no mpirun"
    unset MASTER_ADDR MASTER_PORT
    mpirun --allow-run-as-root --oversubscribe -n 2 "$program" sum >"$folder/out" 2>"$folder/err" || fail "exit code $?"
    expect "mpirun: rank 0, rank 1; sum 3" "$folder/out"
    ;;
  killed)
    for rank in 0 1 2; do start "$rank" 3 loop; done
    wait_for_text running "$folder/0.out"
    kill -9 "${pids[1]}"
    for rank in 0 2; do
      code=0
      wait "${pids[$rank]}" || code=$?
      ((code == 3)) || fail "rank $rank: exit code $code instead of 3"
      expect "rank 1 failed: its process ended" "$folder/$rank.err"
      expect "over data at step" "$folder/$rank.err"
      expect "rank $rank, the last" "$folder/$rank.err"
    done
    ;;
  signal)
    octavo=$(dirname "$program")/../octavo
    [[ -x $octavo ]] || skip "octavo is not built"
    "$octavo" train --model data/demo-config.json --data data/kjv-train.txt --steps 100000 --layout data=2 \
      --batch 2 --seq-len 64 --out "$folder/model" >"$folder/out" 2>"$folder/err" &
    pid=$!
    sleep 2  # before main has begun, the signal would end it
    for try in $(seq 100); do
      sleep 0.2
      kill -USR1 "$pid" 2>/dev/null || fail "it ended early"
      if grep -q "rank 1, the last .* collectives:" "$folder/err"; then break; fi
    done
    kill "$pid"
    wait "$pid" || true
    expect "rank 0, the last" "$folder/err"
    expect "all_reduce over data" "$folder/err"
    ;;
  missing)
    export DEADLINE=1
    start 0 3 sum
    start 2 3 sum
    for rank in 0 2; do
      code=0
      wait "${pids[$rank]}" || code=$?
      ((code == 3)) || fail "rank $rank: exit code $code instead of 3"
    done
    expect "s for rank 1 of 3 to start" "$folder/0.err"
    (($(wc -l <"$folder/0.err") == 1)) || fail "more than one line"
    start 1 2 sum  # no rank 0
    code=0
    wait "${pids[1]}" || code=$?
    ((code == 3)) || fail "exit code $code instead of 3"
    expect "127.0.0.1:$port was not reached within 1.0 s" "$folder/1.err"
    # Somebody else has the port.
    python3 -c "import socket, time; s = socket.create_server(('127.0.0.1', $port)); time.sleep(20)" &
    taken=$!
    sleep 0.5
    start 0 1 sum
    code=0
    wait "${pids[0]}" || code=$?
    kill "$taken"
    ((code == 2)) || fail "exit code $code instead of 2"
    expect "port $port is taken" "$folder/0.err"
    ;;
  bytes)
    # In a network of its own nothing else passes through the loopback.
    if [[ ${OWN_NETWORK:-} != yes ]]; then
      unshare -n true 2>/dev/null || skip "unshare -n is not permitted"
      OWN_NETWORK=yes exec unshare -n bash "$0" "$case_name" "$program"
    fi
    ip link set lo up
    sent() { awk -F'[: ]+' '/^ *lo:/ { print $3 }' /proc/net/dev; }
    for size in 2 3 4; do
      before=$(sent)
      for ((rank = 0; rank < size; ++rank)); do start "$rank" "$size" bytes; done
      for ((rank = 0; rank < size; ++rank)); do wait "${pids[$rank]}" || fail "rank $rank: exit code $?"; done
      measured=$(($(sent) - before))
      booked=$(<"$folder/0.out")
      printf '%d ranks: %d bytes booked, %d through the loopback\n' "$size" "$booked" "$measured"
      ((measured >= booked && measured * 100 <= booked * 103)) || fail "they differ by more than 3%"
    done
    ;;
  slow_network)
    ((EUID == 0)) || skip "needs root"
    command -v tc >/dev/null && command -v ip >/dev/null || skip "no tc or ip"
    left=octavo-$$-a right=octavo-$$-b
    ip netns add "$left" 2>/dev/null || skip "network namespaces are not permitted"
    ip netns add "$right"
    trap 'ip netns del "$left"; ip netns del "$right"; rm -rf "$folder"' EXIT
    ip link add va netns "$left" type veth peer name vb netns "$right" 2>/dev/null || skip "no veth"
    ip -n "$left" addr add 10.77.0.1/24 dev va
    ip -n "$right" addr add 10.77.0.2/24 dev vb
    for side in "$left va" "$right vb"; do
      ip -n ${side% *} link set "${side#* }" up
      ip -n ${side% *} link set lo up
      ip netns exec ${side% *} tc qdisc add dev "${side#* }" root tbf rate 400mbit burst 64kb latency 50ms 2>/dev/null ||
        skip "no tc tbf"
    done
    export MASTER_ADDR=10.77.0.1
    begin=$(date +%s%N)
    RANK=0 WORLD_SIZE=2 ip netns exec "$left" "$program" bytes >"$folder/0.out" 2>"$folder/0.err" &
    first=$!
    RANK=1 WORLD_SIZE=2 ip netns exec "$right" "$program" bytes >"$folder/1.out" 2>"$folder/1.err" || fail "rank 1: $?"
    wait "$first" || fail "rank 0: $?"
    milliseconds=$((($(date +%s%N) - begin) / 1000000))
    booked=$(<"$folder/0.out")
    # 50 MB/s in each direction: at best half of the bytes go each way at once.
    least=$((booked / 2 / 50000))
    printf '%d bytes booked, %d ms, at least %d by the bandwidth\n' "$booked" "$milliseconds" "$least"
    ((milliseconds >= least)) || fail "faster than the network"
    ;;
  *)
    fail "no such case"
    ;;
esac
