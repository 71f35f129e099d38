#!/bin/bash
# A job that goes on when a node fails: sbatch slurm.sh
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
#SBATCH --no-kill

set -euo pipefail
: "${WORKERS_PER_NODE:=4}"

# Node 0, for the start only. After it any node may fail, but this script and srun run on node 0:
# where it fails, Slurm requeues the job or ends it, unless `salloc` or `srun` was run elsewhere.
master=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# Of this attempt alone, on a file system that all nodes see. Who can read it can join the job. The
# last launcher removes it after success; else remove it yourself.
members=$SLURM_SUBMIT_DIR/members-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}
export master members WORKERS_PER_NODE

# A secret that all nodes see, made once: (umask 077; openssl rand -hex 32 > "$HOME/job.secret")
if [[ -e $HOME/job.secret ]]; then export GOSSAMER_SECRET_FILE=$HOME/job.secret; fi
# For a firewall between nodes: one port per worker; Gloo takes ephemeral ones, see install.md.
export GOSSAMER_PORTS=${GOSSAMER_PORTS:-40000-40100}
# export GLOO_SOCKET_IFNAME=ib0    # where the way to node 0 is not the fast one

# One launcher for each node. A launcher that fails ends no other one.
srun --no-kill --kill-on-bad-exit=0 --cpus-per-task="$SLURM_CPUS_PER_TASK" bash -c '
  exec gossamer launch -n "$WORKERS_PER_NODE" --hosts "$SLURM_NNODES" --host "$SLURM_NODEID" \
    --master "$master:29500" --members "$members" --restarts 10 -- \
    python train.py'
