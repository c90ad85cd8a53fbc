#!/bin/sh
# submit.sh STUDY CHAINS JOBS: an optimization on a batch queue, as CHAINS chains of JOBS jobs one after the other.
#
# SUBMIT is how the queue takes a script, for example SUBMIT="sbatch --time=2:00:00". Without it jobs run here.
# If jobs are lost, `eign status STUDY` lists their points as pending, and submitting again goes on with new ones.
set -eu
study=$1 chains=$2 jobs=$3
here=$(cd "$(dirname "$0")" && pwd)

[ -e "$study" ] || eign init "$study" "$here/tin.toml"
for _ in $(seq "$chains"); do
    ${SUBMIT:-sh} "$here/job.sh" "$study" "$jobs" &
done
wait
