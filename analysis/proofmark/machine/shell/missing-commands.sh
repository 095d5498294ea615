#!/bin/sh
# missing-commands.sh NAME...: prints "! NAME" for each program that PATH does not have here.
# It calls no program itself.
set -u
for name; do
    command -v "$name" >/dev/null 2>&1 || printf '! %s\n' "$name"
done
