#!/bin/sh
# private.sh LIST KEPT WATCHED COMMAND…: run COMMAND while each folder of WATCHED is empty but for the
# folders of KEPT (both: paths, one on each line), and write what COMMAND leaves in WATCHED to LIST.
# Start it in a mount namespace of its own.
set -eu
list=$1 kept=$2 watched=$3
shift 3

each() { # each NAME LINES COMMAND…: run COMMAND for each line, which is $NAME
    name=$1 lines=$2
    shift 2
    printf '%s\n' "$lines" | while read -r "$name"; do eval "$*"; done
}

seen() { # the paths in the watched folders, one on each line
    each folder "$watched" 'find "$folder" -xdev -mindepth 1' | sort -u
}

mount -t tmpfs none /mnt
each path "$kept" 'mkdir -p "/mnt$path" && mount --rbind "$path" "/mnt$path"'
each folder "$watched" 'mode=$(stat -c %a "$folder") && mount -t tmpfs -o "mode=$mode" none "$folder"'
each path "$kept" 'mkdir -p "$path" && mount --rbind "/mnt$path" "$path"'
seen >"/mnt/before"
code=0
"$@" || code=$?
seen | grep -vxF -f /mnt/before >"$list" || :
exit "$code"
