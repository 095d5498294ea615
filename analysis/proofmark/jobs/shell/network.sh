#!/bin/sh
# Prints the byte counters of the networks of this node.
#
#   sh network.sh before   twice, with a second between them: the traffic of others
#   sh network.sh after    once
#
# Each sample begins with a line "sample DATE UPTIME". An adapter (InfiniBand, Omni-Path, RoCE) has a
# line "adapter NAME PORT LAYER SENT RECEIVED" with the units of its driver, or a line "bytes" with
# the same fields if its driver counts bytes. A network interface has a line "interface NAME TYPE SENT
# RECEIVED LOWER" in bytes; LOWER are the interfaces below it, or -. TYPE is slingshot if it sends IP
# over an adapter of Slingshot. A counter that cannot be read is "?". Tests set PROBE_ROOT=DIR; then
# DIR/sys is read.
set -u
LC_ALL=C
export LC_ALL
sys=${PROBE_ROOT:-}/sys

first() { # first FILE: sets word to its first word, or to ?
	word=
	{ read -r word _ <"$1"; } 2>/dev/null
	[ -n "$word" ] || word='?'
}

sum() { # sum FILE...: sets total to the sum of the files that exist, or to ?
	total='?'
	for file; do
		first "$file"
		# The driver of Slingshot prints the time of the reading after the value: 12@1718...
		word=${word%%@*}
		case $word in '' | *[!0-9]*) continue ;; esac
		[ "$total" != '?' ] || total=0
		total=$((total + word))
	done
}

sample() {
	read -r uptime _ </proc/uptime
	printf 'sample %s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$uptime"
	for port in "$sys"/class/infiniband/*/ports/*; do
		[ -d "$port" ] || continue
		adapter=${port%/ports/*}
		first "$port/link_layer"
		layer=$word
		# Drivers of old kernels have counters of 64 bits in another folder.
		counters=$port/counters bits=
		if [ -e "$port/counters_ext/port_xmit_data_64" ]; then counters=$port/counters_ext bits=_64; fi
		if [ ! -e "$counters/port_xmit_data$bits" ]; then
			# efa and bnxt_re count tx_bytes, irdma ipNOutOctets. EFA counts RDMA apart.
			hardware=$port/hw_counters
			sum "$hardware/tx_bytes" "$hardware/rdma_write_bytes" "$hardware/ip4OutOctets" \
				"$hardware/ip6OutOctets"
			sent=$total
			sum "$hardware/rx_bytes" "$hardware/rdma_read_bytes" "$hardware/rdma_write_recv_bytes" \
				"$hardware/ip4InOctets" "$hardware/ip6InOctets"
			printf 'bytes %s %s %s %s %s\n' "${adapter##*/}" "${port##*/}" "$layer" "$sent" "$total"
			continue
		fi
		first "$counters/port_xmit_data$bits"
		sent=$word
		first "$counters/port_rcv_data$bits"
		printf 'adapter %s %s %s %s %s\n' "${adapter##*/}" "${port##*/}" "$layer" "$sent" "$word"
	done
	for adapter in "$sys"/class/cxi/*; do
		[ -d "$adapter" ] || continue
		sum "$adapter/device/telemetry/hni_sts_tx_ok_octets"
		sent=$total
		sum "$adapter/device/telemetry/hni_sts_rx_ok_octets"
		printf 'bytes %s 1 Slingshot %s %s\n' "${adapter##*/}" "$sent" "$total"
	done
	for nic in "$sys"/class/net/*; do
		if [ ! -e "$nic/statistics/tx_bytes" ] || [ "${nic##*/}" = lo ]; then continue; fi
		lower=
		for each in "$nic"/lower_*; do
			if [ -e "$each" ] || [ -h "$each" ]; then lower=$lower,${each##*/lower_}; fi
		done
		if [ -z "$lower" ] && [ -r "$nic/bonding/slaves" ]; then
			read -r slaves <"$nic/bonding/slaves"
			for each in $slaves; do lower=$lower,$each; done
		fi
		first "$nic/type"
		type=$word
		# The adapter of Slingshot and its interface are the same device of PCI.
		[ ! -e "$nic/device/cxi" ] || type=slingshot
		first "$nic/statistics/tx_bytes"
		sent=$word
		first "$nic/statistics/rx_bytes"
		lower=${lower#,}
		printf 'interface %s %s %s %s %s\n' "${nic##*/}" "$type" "$sent" "$word" "${lower:--}"
	done
}

case ${1-} in
before)
	sample
	sleep 1
	;;
after) ;;
*)
	echo "network.sh: unknown moment '${1-}'; accepted: before, after" >&2
	exit 3
	;;
esac
sample
echo end
