#!/bin/sh
# modules.sh MODULE...: prints the environment before and after these modules are loaded.
set -eu
# shellcheck disable=SC2016 # the login shell expands it
load='env
echo "=== loaded"
type module >/dev/null 2>&1 || { echo "$(uname -n): the command module is missing in a login shell" >&2; exit 1; }
for name; do
    module load "$name" || exit 1
    module is-loaded "$name" || { echo "$(uname -n): module $name was not loaded" >&2; exit 1; }
done
env'
exec bash -lc "$load" modules "$@"
