#!/bin/sh
# Replaces ssh: runs the script on stdin with the files of NODE, which are in FOLDER/NODE.
#
#   sh remote-shell.sh FOLDER NODE
folder=$1/$2
if [ ! -d "$folder" ] || [ -e "$folder/down" ]; then
    echo "ssh: connect to host $2 port 22: No route to host" >&2
    exit 255
fi
PROBE_ROOT=$folder exec sh -s
