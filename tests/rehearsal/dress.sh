# shellcheck shell=sh disable=SC2154 # node.sh, which reads this, has set $folder and $NODE
# All links have the same speed, so that they measure the same on a busy machine.
read -r rate <"$folder/rates/$NODE"
tc qdisc add dev eth0 root tbf rate "$rate" burst 32kb limit 16mb
[ -d "$folder/bmc/nodes/$NODE" ] || return 0 # a server has no emulated firmware
# The content of /proc and /sys that a virtual node shows after its boot. The files of the firmware
# are copied, because a later change of the firmware must not appear before the next boot.
mkdir -p /run/machine
cp -R "$folder/bmc/nodes/$NODE/." /run/machine
mount --bind "$folder/machine/cpuinfo" /proc/cpuinfo
mount --bind /run/machine/proc/sys/kernel/random/boot_id /proc/sys/kernel/random/boot_id
mount --bind /run/machine/sys/devices/system/node /sys/devices/system/node
mount --bind /run/machine/sys/firmware /sys/firmware
if [ -e "$folder/throttled/$NODE" ]; then # the counters that tests/rehearsal/throttle.py raises
	mkdir -p /run/machine/cpu0/thermal_throttle
	cp -R /sys/devices/system/cpu/cpu0/topology /run/machine/cpu0
	for name in core package; do echo 0 >"/run/machine/cpu0/thermal_throttle/${name}_throttle_count"; done
	mount --bind /run/machine/cpu0 /sys/devices/system/cpu/cpu0
fi
# Only lstopo uses this topology: the binding of ranks must use the real CPUs.
topology=$(cat /run/machine/topology)
[ -z "$topology" ] || lstopo-no-graphics -i "$topology" --of xml /run/machine/topology.xml
