#!/bin/sh
# mode-probe.sh prints the facts that prove the mode of this node: one stream of named sections.
#
# Boot id, NUMA domains, SMBIOS tables in hexadecimal (root only). It changes nothing and needs only
# POSIX tools. With PROBE_ROOT=DIR it reads DIR/proc and DIR/sys (tests and virtual nodes).
set -u
LC_ALL=C
export LC_ALL
root=${PROBE_ROOT:-}
nodes=$root/sys/devices/system/node
dmi=$root/sys/firmware/dmi

hex() { od -An -v -tx1 | sed 's/^/| /'; }

echo 'proofmark-probe 1 mode'
echo '=== boot'
echo "| id: $(cat "$root/proc/sys/kernel/random/boot_id")"
echo "| clock: $(date +%s)"
echo '=== numa'
for node in "$nodes"/node[0-9]*; do
    [ -d "$node" ] || { echo '! numa: no NUMA domain in /sys'; continue; }
    name=${node##*/}
    echo "| $name cpus: $(cat "$node/cpulist")"
    echo "| $name memory_kb: $(awk '$3 == "MemTotal:" { print $4 }' "$node/meminfo")"
done
echo '=== smbios'
if [ -r "$dmi/tables/DMI" ]; then hex <"$dmi/tables/DMI"
elif [ -n "$(ls "$dmi"/entries/*/raw 2>/dev/null)" ] && [ -r "$dmi/entries/0-0/raw" ]; then
    cat "$dmi"/entries/*/raw | hex
elif [ -e "$dmi/tables/DMI" ] || [ -d "$dmi/entries" ]; then echo '! smbios: needs root'
else echo '! smbios: no table in /sys/firmware/dmi (kernel before 4.2: modprobe dmi-sysfs)'; fi
echo '=== end'
