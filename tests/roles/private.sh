#!/bin/sh
# private.sh LIST KEPT WATCHED COMMAND…: run COMMAND while each folder of WATCHED is empty but for the
# folders of KEPT (both: paths, one on each line), and write what COMMAND leaves in WATCHED to LIST.
# Start it in a mount namespace of its own.
set -eu
list=$1 kept=$2 watched=$3
shift 3

lines() { printf '%s\n' "$1"; }

seen() { # the paths in the watched folders, one on each line
    lines "$watched" | while read -r folder; do find "$folder" -xdev -mindepth 1; done | sort -u
}

mount -t tmpfs none /mnt
lines "$kept" | while read -r path; do
    mkdir -p "/mnt$path"
    mount --rbind "$path" "/mnt$path"
done
lines "$watched" | while read -r folder; do
    mount -t tmpfs -o "mode=$(stat -c %a "$folder")" none "$folder"
done
lines "$kept" | while read -r path; do
    mkdir -p "$path"
    mount --rbind "/mnt$path" "$path"
done
seen >"/mnt/before"
code=0
"$@" || code=$?
seen | grep -vxF -f /mnt/before >"$list" || :
exit "$code"
