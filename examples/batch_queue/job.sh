#!/bin/sh
# job.sh STUDY LEFT: one job of the queue. It asks for a point, evaluates it, tells the answer, and submits its
# successor while LEFT is above 1. Nothing else runs: between jobs the study is the file STUDY and no process.
set -eu
study=$1 left=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

eign ask "$study" > "$work/point.json"
# A simulation that fails is told too: null is a failed evaluation, and the point is not proposed again.
"$here/../program_shell/simulate.sh" "$work/point.json" "$work/answer.json" || echo '{"value": null}' > "$work/answer.json"
eign tell "$study" "$work/answer.json" --point "$work/point.json"

[ "$left" -le 1 ] || ${SUBMIT:-sh} "$here/job.sh" "$study" $((left - 1))
