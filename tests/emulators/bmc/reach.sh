#!/bin/sh
# Stands in for ssh: runs the script on stdin as if on NODE, whose files are in FOLDER/NODE.
#
#   sh reach.sh FOLDER NODE
folder=$1/$2
if [ ! -d "$folder" ] || [ -e "$folder/down" ]; then
    echo "ssh: connect to host $2 port 22: No route to host" >&2
    exit 255
fi
PROBE_ROOT=$folder exec sh -s
