#!/bin/sh
# measure.sh BATCH SEED: the laboratory. Reads the rows of `eign ask --format csv`, prints them with what was measured.
#
# The profit is the yield of B less 0.003 a minute. Its standard error is 0.01: the variance is the square. A sensor in the
# reactor sees how fast B grows, which is the derivative by time; in every third run it is not there, and the
# derivative by temperature never is: those cells stay empty. The last run of the first batch fails: its value is nan.
set -eu
awk -F, -v OFS=, -v seed="$2" '
    function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand()) }
    BEGIN { srand(seed) }
    NR == 1 { print "temperature,minutes,value,value_variance,gradient_minutes,gradient_variance_minutes"; next }
    seed == 1 && NR == 5 { print $1, $2, "nan", "", "", ""; next }
    {
        k1 = 0.08 * exp(5000 * (1 / 330 - 1 / $1)); k2 = 0.01 * exp(9000 * (1 / 330 - 1 / $1))
        a = exp(-k1 * $2); b = k1 / (k2 - k1) * (a - exp(-k2 * $2))
        y = b - 0.003 * $2 + 0.01 * normal()
        slope = k1 * a - k2 * b - 0.003 + 0.002 * normal()
        if (NR % 3 == 1) print $1, $2, y, 1e-4, "", ""
        else print $1, $2, y, 1e-4, slope, 4e-6
    }' "$1"
