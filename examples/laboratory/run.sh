#!/bin/sh
# run.sh [DIRECTORY]: a noisy experiment in batches, by `eign init`, `ask`, `tell`, `status` and `export`.
#
# Between the commands no program runs: the study is the file lab.db, and the batches are tables that a person could
# fill in by hand. A batch that is told twice is no harm, rows that are known are skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
directory=${1:-laboratory}
mkdir -p "$directory"
cd "$directory"

eign init lab.db "$here/reactor.toml"
for batch in 1 2 3 4 5 6; do
    eign ask lab.db -n 4 --format csv > "batch-$batch.csv"
    sh "$here/measure.sh" "batch-$batch.csv" "$batch" > "measured-$batch.csv"
    eign tell lab.db "measured-$batch.csv"
done
eign tell lab.db measured-6.csv # again, by mistake
eign status lab.db
eign export lab.db lab.csv
