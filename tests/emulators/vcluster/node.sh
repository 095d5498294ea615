# shellcheck shell=sh
# The first process of a virtual node: sh node.sh FOLDER NAME SHARED…
# Prints "up" when it waits for its network, and "ready" when it has booted. It runs until it is killed,
# which also ends every other process of the node.
set -eu
folder=$1
name=$2
shift 2
hostname "$name"
mount --bind "$folder/hosts" /etc/hosts
if [ -e /etc/ssh/ssh_config ]; then mount --bind "$folder/ssh_config" /etc/ssh/ssh_config; fi
# Bash reads this file for each command of ssh. The file belongs to the host and not to the node.
if [ -e ~root/.bashrc ]; then mount --bind /dev/null ~root/.bashrc; fi

private() { # private DIRECTORY OPTIONS SHARED…: mount a tmpfs that contains only the shared paths
	top=$1
	mount -t tmpfs -o "$2" tmpfs "$folder/own"
	shift 2
	for path; do
		case $path in
		"$top"/*)
			mkdir -p "$folder/own/${path#"$top"/}"
			mount --bind "$path" "$folder/own/${path#"$top"/}"
			;;
		esac
	done
	mount --no-mtab --move "$folder/own" "$top" # libmount writes its table below /run
}
private /dev/shm size=64m "$@"
private /run size=64m "$@"
private /tmp size=256m,mode=1777 "$@"
# What holder.sh writes survives a boot, and ends with the cluster: nothing of it stays on the machine.
mkdir -p "$folder/state/$name" /var/lib/proofmark
mount --bind "$folder/state/$name" /var/lib/proofmark
: >/run/virtual-node
mkdir -p /run/sshd
echo up
read -r _ # the network is ready
exec 3>&1 >>"$folder/log/$name" 2>&1 </dev/null
ip link set lo up
ip addr add "$(awk -v name="$name" '$2 == name { print $1 }' "$folder/hosts")/16" dev eth0
ip link set eth0 up
for script in "$folder"/boot.d/*.sh; do
	# shellcheck disable=SC1090 # written by Cluster.service
	if [ -e "$script" ]; then NODE=$name . "$script" 3>&-; fi
done
/usr/sbin/sshd -D -e -f "$folder/sshd_config" 3>&- & # after the scripts: a login needs a booted node
set +e
until grep -q ':0016 [0-9A-F]*:0000 0A ' /proc/net/tcp; do sleep 0.02; done # sshd listens
echo ready >&3
exec 3>&-
while :; do # the first process must reap orphaned processes
	wait
	sleep 3600 &
	wait
done
