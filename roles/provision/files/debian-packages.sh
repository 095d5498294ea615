#!/bin/sh
# Debian packages of this node.
#
#   debian-packages.sh missing PACKAGE...   prints the packages that are not installed. If there are
#                                           any and the user is not root, it prints the command for
#                                           root to stderr, and exits with 4.
#   debian-packages.sh install PACKAGE...   installs the packages
set -eu
LC_ALL=C
export LC_ALL
unset PROOFMARK_BMC_USER PROOFMARK_BMC_PASSWORD
verb=${1:?usage: debian-packages.sh missing|install PACKAGE...}
shift

missing() {
    for package; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
        [ "$state" = installed ] || echo "$package"
    done
}

case $verb in
missing)
    if ! command -v dpkg-query >/dev/null; then
        echo "$(uname -n): dpkg-query is missing, so this is not Debian. Use another value of provision_from." >&2
        exit 4
    fi
    lacking=$(missing "$@")
    [ -n "$lacking" ] || exit 0
    echo "$lacking"
    if [ "$(id -u)" != 0 ]; then
        {
            echo "Debian packages are missing on $(uname -n), and only root can install them:"
            echo "$lacking" | sed 's/^/  /'
            echo "Nothing was changed. As root, this one command installs them:"
            echo "  apt-get update && apt-get install --no-install-recommends --yes" \
                "$(echo "$lacking" | tr '\n' ' ' | sed 's/ $//')"
        } >&2
        exit 4
    fi
    ;;
install)
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    apt-get update -qq </dev/null
    apt-get install -qq --no-install-recommends --yes "$@" </dev/null
    ;;
*)
    echo "debian-packages.sh: found '$verb'; accepted: missing, install" >&2
    exit 3
    ;;
esac
