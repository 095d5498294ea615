# shellcheck shell=sh disable=SC2154 # node.sh, which reads this, has set $folder and $NODE
# What a virtual node shows of itself from its boot on. The firmware's files are copied: what the
# next boot will show is no business of this one.
mkdir -p /run/machine
cp -R "$folder/bmc/nodes/$NODE/." /run/machine
mount --bind "$folder/machine/cpuinfo" /proc/cpuinfo
mount --bind /run/machine/proc/sys/kernel/random/boot_id /proc/sys/kernel/random/boot_id
mount --bind /run/machine/sys/devices/system/node /sys/devices/system/node
mount --bind /run/machine/sys/firmware /sys/firmware
# Only lstopo believes it: what binds ranks has to see the CPUs that there are.
topology=$(cat /run/machine/topology)
[ -z "$topology" ] || lstopo-no-graphics -i "$topology" --of xml /run/machine/topology.xml
# Links have a speed, as those of a real network: equal ones measure the same on a busy machine.
read -r rate <"$folder/rates/$NODE"
tc qdisc add dev eth0 root tbf rate "$rate" burst 32kb limit 16mb
