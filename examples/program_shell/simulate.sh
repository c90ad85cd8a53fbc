#!/bin/sh
# A simulation as a script: simulate.sh INPUT OUTPUT reads {"x": {"radius": ..., "height": ...}}, writes the answer.
#
# The material for a tin, in square centimetres, with a penalty for a volume other than 330 millilitres.
set -eu

number() {
    sed -n "s/.*\"$1\": *\([-+.0-9eE]*\).*/\1/p" "$2"
}

radius=$(number radius "$1")
height=$(number height "$1")
echo "radius $radius, height $height" >&2 # kept in stderr.txt

awk -v r="$radius" -v h="$height" 'BEGIN {
    pi = atan2(0, -1)
    off = pi * r * r * h - 330
    value = 2 * pi * r * (r + h) + 0.02 * off * off
    by_radius = 2 * pi * (2 * r + h) + 0.04 * off * 2 * pi * r * h
    by_height = 2 * pi * r + 0.04 * off * pi * r * r
    printf "{\"value\": %.17g, \"gradient\": {\"radius\": %.17g, \"height\": %.17g}}\n", value, by_radius, by_height
}' > "$2"
