#!/bin/sh
# holder.sh keeps the name of the run that holds this node, if no scheduler keeps it.
#
#   holder.sh look|claim|release NAME
#
# Prints the other name that was found, or nothing. claim writes NAME if there is none, and release
# removes NAME. With PROBE_ROOT=DIR the file is in DIR (tests and virtual nodes).
set -eu
folder=${PROBE_ROOT:-}/var/lib/proofmark
file=$folder/.holder

if [ "$1" = claim ]; then
    [ -d "$folder" ] || mkdir -p "$folder"
    fresh=$file.$$
    printf '%s\n' "$2" >"$fresh"
    ln "$fresh" "$file" 2>/dev/null || [ -e "$file" ] || { rm -f "$fresh"; exit 1; }
    rm -f "$fresh"
fi
[ -e "$file" ] || exit 0
found=$(cat "$file")
if [ "$found" != "$2" ]; then printf '%s\n' "${found:-an empty file $file}"
elif [ "$1" = release ]; then rm "$file"
fi
