#!/bin/sh
# Prints the facts and the error counters of this node as named sections on stdout.
#
#   sh probe.sh facts     everything (the default)
#   sh probe.sh before    identity, error counters and load only
#   sh probe.sh after     the same after the job, for the difference
#
# Every line of content starts with "| ", so that no content is read as a marker. Every absent fact
# has a line with the code of its reason and its values ("!code name: values"; the codes are in
# common/message_table.py). The probe works without root, with any POSIX shell and with busybox.
# Tests and virtual nodes set PROBE_ROOT=DIR. The probe then reads DIR/proc and DIR/sys, and uses the
# tools of POSIX and those in DIR/bin. A tool that the plan or the verdict needs has a time limit of
# PROBE_LIMIT_S seconds, which is enough on a loaded machine. An optional tool has a limit of
# PROBE_SKIP_S seconds, because it runs before and after every job.
set -u
LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL PATH
root=${PROBE_ROOT:-}
sys=$root/sys
proc=$root/proc
cpus=$sys/devices/system/cpu
kind=${1:-facts}
limit_s=${PROBE_LIMIT_S:-30}
skip_s=${PROBE_SKIP_S:-10}

# --- output ---------------------------------------------------------------------------------------
section() { current=$1; printf '=== %s\n' "$1"; }
# A value has one line: a second one would have no mark, and the whole probe would be refused.
newline='
'
fact() { printf '| %s: %s\n' "$1" "${2%%"$newline"*}"; }
absent() { # NAME REASON: a code of probe_text.py, with its values
    case $2 in *' '*) values=": ${2#* }" ;; *) values= ;; esac
    printf '!%s %s%s\n' "${2%% *}" "$1" "${values%%"$newline"*}"
}
quote() { sed 's/^/| /'; }
# Prints LINES. If there are none, it prints why: a section without a line and a reason is damaged.
found() { # NAME REASON LINES
    if [ -n "$3" ]; then printf '%s\n' "$3"
    else absent "$1" "$2"; fi
}

# Prints the reason why FILE has no value.
reason_of() { # FILE
    if [ ! -e "$1" ]; then echo "no-file ${1#"$root"}"
    elif [ ! -r "$1" ] && [ "$user" != 0 ]; then echo "root-file ${1#"$root"}"
    else echo "no-value ${1#"$root"}"; fi
}

# Prints the first line of FILE as KEY. It starts no process: there are thousands of such files.
first_line() { # KEY FILE
    line=
    { IFS= read -r line <"$2"; } 2>/dev/null
    if [ -n "$line" ]; then fact "$1" "$line"; else absent "$current.$1" "$(reason_of "$2")"; fi
}

# Prints a section with the whole of FILE, or with the output of FILTER.
whole_file() { # SECTION FILE [FILTER...]
    section "$1"
    file=$2
    shift 2
    [ $# -gt 0 ] || set -- cat
    if [ ! -r "$file" ]; then absent "$current" "$(reason_of "$file")"; return; fi
    lines=$("$@" <"$file" 2>/dev/null)
    if [ -n "$lines" ]; then printf '%s\n' "$lines" | quote
    else absent "$current" "no-line ${file#"$root"}"; fi
}

# Prints the path of a tool. If PROBE_ROOT is set, the tool is below that folder.
tool() { # NAME
    if [ -z "$root" ]; then command -v "$1"; else [ -x "$root/bin/$1" ] && echo "$root/bin/$1"; fi
}

# A folder for the outputs of tools: a tool that waits for a file system keeps a pipe open for ever.
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 143' INT TERM HUP # dash runs no trap of EXIT at a signal

# Runs a command for at most SECONDS. Returns its exit code, or 124 after the time limit. Not every
# node has `timeout`, and not even SIGKILL ends a process that waits for a dead file system: after
# the limit the command is left alone. What is waited for is a timer, which the command ends.
bounded() { # SECONDS COMMAND...
    seconds=$1
    shift
    [ -n "$work" ] || for folder in /dev/shm "${TMPDIR:-/tmp}" /run; do
        (umask 077 && mkdir "$folder/proofmark-probe.$$") 2>/dev/null || continue
        work=$folder/proofmark-probe.$$
        break
    done
    [ $# != 0 ] || return # it only makes the folder
    if [ -z "$work" ]; then "$@" </dev/null; return; fi
    sleep "$seconds" >/dev/null 2>&1 &
    timer=$!
    (
        "$@" </dev/null >"$work/$timer.out" 2>"$work/$timer.err" &
        echo "$!" >"$work/$timer.pid"
        wait "$!"
        echo "$?" >"$work/$timer.code"
        kill -9 "$timer" # a new process may lose any other signal
    ) >/dev/null 2>&1 &
    runner=$!
    wait "$timer" 2>/dev/null
    status=124
    if [ -s "$work/$timer.code" ]; then read -r status <"$work/$timer.code"
    else kill -9 "$runner" "$(cat "$work/$timer.pid")" 2>/dev/null; fi
    cat "$work/$timer.out"
    cat "$work/$timer.err" >&2
    return "$status"
}
bounded 0

# Runs a tool. Sets $lines to its output; if there is none, returns 1 and sets $reason.
run_tool() { # SECONDS NAME ARGUMENTS...
    seconds=$1
    name=$2
    shift 2
    lines=
    reason="no-tool $name"
    program=$(tool "$name") || return
    lines=$(bounded "$seconds" "$program" "$@" 2>/dev/null)
    code=$?
    case $code in
    0)
        reason="tool-silent $name"
        [ -n "$lines" ]
        return ;;
    124) reason="tool-slow $name $seconds" ;;
    *)
        # A second run for stderr: a command substitution cannot separate both outputs.
        message=$(bounded "$seconds" "$program" "$@" 2>&1 >/dev/null | sed -n '/./{p;q;}' | cut -c 1-200)
        if [ -z "$message" ]; then reason="tool-failed $name $code"
        else reason="tool-said $name $code $message"; fi ;;
    esac
    lines=
    return 1
}

# Prints a section with the output of a tool.
output() { # SECTION SECONDS NAME ARGUMENTS...
    section "$1"
    shift
    if run_tool "$@"; then printf '%s\n' "$lines" | quote
    else absent "$current" "$reason"; fi
}

# --- busy processes: two samples, with the rest of the probe between them -------------------------
sample() {
    cat "$proc"/[0-9]*/stat 2>/dev/null | awk -v self=$$ '
        !/\) [A-Za-z] / || $1 == self { next }
        { name = $0; sub(/^[^(]*\(/, "", name); sub(/\) [A-Za-z] -?[0-9].*$/, "", name)
          rest = $0; sub(/^.*\) /, "", rest); split(rest, field, " ")
          print $1, field[12] + field[13], name }'
}
uptime_now() { read -r now _ <"$proc/uptime" && echo "${now:-0}"; } 2>/dev/null

busy() {
    section busy
    if [ -z "$began" ]; then absent busy "$(reason_of "$proc/uptime")"; return; fi
    sleep 0.2 2>/dev/null || sleep 1
    second=$(sample)
    # USER_HZ is 100 on every Linux: ticks over seconds are percent of one processor.
    printf '%s\n--- %s\n%s\n' "$first" "$began $(uptime_now)" "$second" | awk '
        $1 == "---" { seconds = $3 - $2; second = 1; next }
        !second { ticks[$1] = $2; next }
        $1 in ticks && seconds > 0 && ($2 - ticks[$1]) / seconds > 3 {
            n++; pid[n] = $1; used[n] = ($2 - ticks[$1]) / seconds; total += used[n]
            sub(/^[0-9]+ [0-9]+ /, ""); name[n] = $0 }
        END {
            # On a full machine each of many processes has a small share.
            least = total < 50 ? 20 : 3
            for (i = 1; i <= n && lines < 200; i++) if (used[i] > least) {
                printf "| %d: %.0f %s\n", pid[i], used[i], name[i]; lines++ }
            printf "| seconds: %.2f\n", seconds }'
}

# --- sections of every kind of probe --------------------------------------------------------------
identity() {
    section host
    first_line hostname "$proc/sys/kernel/hostname"
    first_line boot_id "$proc/sys/kernel/random/boot_id"
    fact date "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    # The time in which the counters below rose before the job.
    if { read -r since_start _ <"$proc/uptime"; } 2>/dev/null; then fact uptime_s "$since_start"; fi
    fact user "$user"
    fact sections "$sections"
}

# Prints the sums of counters over all processors. A counter that several hardware threads share is
# added several times; only a rise of the sum is used.
counter_sums() { # PREFIX FILES...
    prefix=$1
    shift
    if [ ! -e "$1" ]; then absent "counters.$prefix" no-counter; return; fi
    grep -H '' "$@" 2>/dev/null | awk -v prefix="$prefix" '
        { value = $0; sub(/^.*:/, "", value); name = $0; sub(/:[^:]*$/, "", name); sub(/^.*\//, "", name)
          sum[name] += value }
        END { for (name in sum) printf "| %s/%s: %.0f\n", prefix, name, sum[name] }' | sort
}

# Prints one counter for each file. Its name is the path below DIRECTORY.
counter_files() { # PREFIX DIRECTORY FILES...
    prefix=$1
    directory=$2
    shift 2
    exists=
    for file; do
        [ -f "$file" ] || continue
        exists=yes
        name=$prefix/${file#"$directory"/}
        line=
        { IFS= read -r line <"$file"; } 2>/dev/null
        case $line in
        '' | N/A*) absent "$current.$name" "$(reason_of "$file")" ;; # "N/A (no PMA)" of InfiniBand
        *) fact "$name" "$line" ;;
        esac
    done
    [ -n "$exists" ] || absent "counters.$prefix" "no-file ${directory#"$root"}"
}

# Prints the folders of the network interfaces that are hardware or a bond.
network_ports() {
    for nic in "$sys"/class/net/*; do
        if [ -e "$nic/device" ] || [ -d "$nic/bonding" ]; then echo "$nic"; fi
    done
}

# Prints the errors and the state of the PCIe links of the network interfaces.
pcie_counters() {
    for nic in $(network_ports); do
        for file in "$nic"/device/aer_dev_*; do
            [ -r "$file" ] && awk -v name="pcie/${nic##*/}/${file##*/}" \
                '/^TOTAL/ { print "| " name ": " $2 }' "$file"
        done
        for file in "$nic"/device/current_link_*; do
            [ ! -r "$file" ] || first_line "pcie/${nic##*/}/${file##*/}" "$file"
        done
    done
}

counters() {
    section counters
    edac=$sys/devices/system/edac/mc
    if [ -d "$edac/mc0" ]; then
        counter_files edac "$edac" "$edac"/mc*/[cu]e_count "$edac"/mc*/[cu]e_noinfo_count \
            "$edac"/mc*/dimm*/dimm_label "$edac"/mc*/dimm*/dimm_[cu]e_count \
            "$edac"/mc*/csrow*/[cu]e_count
    else
        absent counters.edac no-edac
    fi
    counter_sums thermal "$cpus"/cpu[0-9]*/thermal_throttle/*_count
    if [ -r "$proc/interrupts" ]; then
        found counters.interrupts 'no-line /proc/interrupts' "$(awk '$1 ~ /^(MCE|THR|DFR|TRM):$/ { sum = 0
            for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) sum += $i
            printf "| interrupts/%s %.0f\n", $1, sum }' "$proc/interrupts")"
    else
        absent counters.interrupts "$(reason_of "$proc/interrupts")"
    fi
    awk '$1 ~ /^(oom_kill|pswpin|pswpout)$/ { print "| vmstat/" $1 ": " $2; found = 1 }
        END { exit !found }' "$proc/vmstat" 2>/dev/null || absent counters.vmstat "$(reason_of "$proc/vmstat")"
    found counters.cpu "$(reason_of "$proc/stat")" "$(awk '
        $1 == "cpu" { printf "| cpu/steal: %.0f\n", $9; exit }' "$proc/stat" 2>/dev/null)"
    awk '$1 == "Tcp:" {
            for (i = 2; i <= NF; i++)
                if (!named) name[i] = $i
                else if (name[i] ~ /^(OutSegs|RetransSegs)$/) { print "| tcp/" name[i] ": " $i; found = 1 }
            named = 1
        }
        END { exit !found }' "$proc/net/snmp" 2>/dev/null || absent counters.tcp "$(reason_of "$proc/net/snmp")"
    for nic in $(network_ports); do
        counter_files net "$sys/class/net" "$nic"/statistics/*errors
    done
    [ -n "$(network_ports)" ] || absent counters.net no-hardware
    found counters.pcie 'no-file /sys/class/net/*/device/aer_dev_fatal' "$(pcie_counters)"
    fabric=$sys/class/infiniband
    if [ -d "$fabric" ]; then
        counter_files infiniband "$fabric" "$fabric"/*/ports/*/counters/*err* \
            "$fabric"/*/ports/*/counters/link_downed "$fabric"/*/ports/*/counters/*discards \
            "$fabric"/*/ports/*/counters/VL15_dropped "$fabric"/*/ports/*/counters/port_xmit_wait \
            "$fabric"/*/ports/*/counters/*link_integrity* \
            "$fabric"/*/ports/*/hw_counters/out_of_sequence
    else
        absent counters.infiniband "no-file ${fabric#"$root"}"
    fi
    lustre
    event_log
}

lustre() {
    run_tool "$skip_s" lctl get_param -n '*.*.state' || { absent counters.lustre "$reason"; return; }
    printf '%s\n' "$lines" | awk -F'[][, ]+' '
        /EVICTED/ { listed++; for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+$/ && $i > newest) newest = $i }
        END { printf "| lustre/evictions_listed: %d\n| lustre/newest_eviction: %d\n", listed, newest }'
}

event_log() {
    tool ipmitool >/dev/null || { absent counters.ipmi 'no-tool ipmitool'; return; }
    if [ -z "$root" ] && [ ! -e /dev/ipmi0 ] && [ ! -e /dev/ipmi/0 ]; then
        absent counters.ipmi 'no-file /dev/ipmi0'
    elif [ "$user" != 0 ]; then
        absent counters.ipmi root
    elif run_tool "$skip_s" ipmitool sel info; then
        entries=$(printf '%s\n' "$lines" | awk -F': *' '/^Entries/ { print $2 + 0; exit }')
        if [ -n "$entries" ]; then fact ipmi/sel_entries "$entries"
        else absent counters.ipmi no-entries; fi
    else
        absent counters.ipmi "$reason"
    fi
}

# Prints the messages of the kernel log about errors, the newest ones. What is older than the job is
# left out by the reader: each line has the time since the start of the node.
kernel_log() {
    section kernel
    run_tool "$skip_s" dmesg || { absent kernel "$reason"; return; }
    found kernel no-message "$(printf '%s\n' "$lines" | grep -E '^\[ *[0-9]+\.[0-9]+\]' |
        grep -E "$errors_of_kernel" | tail -n 200 | cut -c 1-300 | quote)"
}
errors_of_kernel='mce|Machine [Cc]heck|Hardware [Ee]rror|EDAC|Memory failure|Xid|amdgpu|fallen off|Lustre|LNet'
errors_of_kernel="$errors_of_kernel|mmfs|GPFS|beegfs|nfs: server|NFS|ceph|hfi1|mlx[45]|cxi|bnxt|irdma|ib[0-9]"
errors_of_kernel="$errors_of_kernel|[Ll]ink (is )?[Dd]own|NETDEV WATCHDOG|oom|Out of memory|Killed process"
errors_of_kernel="$errors_of_kernel|I/O error|EXT4-fs error|XFS|nvme|AER|PCIe Bus Error|segfault|protection fault"
errors_of_kernel="$errors_of_kernel|lockup|stall|blocked for more than"

# --- sections of `facts` --------------------------------------------------------------------------
processors() {
    section cpuinfo
    # The first processor, and lines that are common to all processors (POWER, old ARM).
    found cpuinfo "$(reason_of "$proc/cpuinfo")" "$(awk 'BEGIN { RS = ""; FS = "\n" }
        NR == 1 || !/(^|\n)processor[ \t]*:/ { for (i = 1; i <= NF; i++) print "| " $i }' \
        "$proc/cpuinfo" 2>/dev/null)"
    section cpuinfo_counts
    found cpuinfo_counts "$(reason_of "$proc/cpuinfo")" "$(awk -F'[ \t]*: ?' '
        $1 ~ /^(processor|model name|cpu|stepping|microcode|revision)$/ {
            if ($1 == "processor") { $2 = "online" }
            count[$1 ": " $2]++ }
        END { for (pair in count) printf "| %s x %d\n", pair, count[pair] }' "$proc/cpuinfo" \
        2>/dev/null | sort)"
    section cpus
    # One line for each processor: number, package, core, and hardware threads of the same core.
    if [ -d "$cpus/cpu0/topology" ]; then
        found cpus "$(reason_of "$cpus/cpu0/topology/core_id")" "$(
            cd "$cpus" && grep -H '' cpu[0-9]*/topology/physical_package_id \
            cpu[0-9]*/topology/core_id cpu[0-9]*/topology/thread_siblings_list 2>/dev/null |
            awk -F'[/:]' '{ sub(/^cpu/, "", $1); seen[$1]; value[$1, $3] = $4 }
                END { for (cpu in seen) { siblings = value[cpu, "thread_siblings_list"]
                    print "| " cpu, value[cpu, "physical_package_id"], value[cpu, "core_id"],
                        siblings == "" ? "-" : siblings } }' | sort -n -k 2)"
    else
        # Kernels before 2.6.16 have it in /proc/cpuinfo only.
        found cpus "$(reason_of "$proc/cpuinfo")" "$(awk -F'[ \t]*: ?' '
            function flush() { if (cpu != "") print "| " cpu, package + 0, core == "" ? cpu : core, "-" }
            $1 == "processor" { flush(); cpu = $2; package = 0; core = "" }
            $1 == "physical id" { package = $2 }
            $1 == "core id" { core = $2 }
            END { flush() }' "$proc/cpuinfo" 2>/dev/null)"
    fi
    section allowed
    first_line online "$cpus/online"
    awk '/^Cpus_allowed/ { sub(/:[ \t]*/, ": "); print "| " $0; found = 1 }
        END { exit !found }' "$proc/self/status" 2>/dev/null ||
        absent allowed.Cpus_allowed_list "$(reason_of "$proc/self/status")"
    section caches
    # Every processor that shares a cache lists it; sort -u prints it once.
    if [ -d "$cpus/cpu0/cache/index0" ]; then
        found caches "$(reason_of "$cpus/cpu0/cache/index0/level")" "$(cd "$cpus" &&
            grep -H '' cpu[0-9]*/cache/index*/level cpu[0-9]*/cache/index*/type \
            cpu[0-9]*/cache/index*/size cpu[0-9]*/cache/index*/shared_cpu_list 2>/dev/null |
            awk -F'[/:]' '{ key = $1 "/" $3; seen[key]; value[key, $4] = $5 }
                END { for (key in seen) print "| L" value[key, "level"], value[key, "type"],
                    value[key, "size"], value[key, "shared_cpu_list"] }' | sort -u)"
    else
        absent caches "$(reason_of "$cpus/cpu0/cache/index0")"
    fi
    output lscpu "$limit_s" lscpu -J
    if tool lstopo-no-graphics >/dev/null; then
        output topology "$limit_s" lstopo-no-graphics --of xml
    else
        output topology "$limit_s" lstopo --of xml
    fi
    section smt
    first_line control "$cpus/smt/control"
    first_line active "$cpus/smt/active"
}

frequencies() {
    section frequency
    governors=$(cat "$cpus"/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort -u | tr '\n' ' ')
    if [ -n "$governors" ]; then fact governor "${governors% }"
    else absent frequency.governor "$(reason_of "$cpus/cpu0/cpufreq/scaling_governor")"; fi
    first_line driver "$cpus/cpu0/cpufreq/scaling_driver"
    first_line base_khz "$cpus/cpu0/cpufreq/base_frequency"
    # In MHz, of the first processor only: some firmware needs a millisecond for each.
    first_line nominal_mhz "$cpus/cpu0/acpi_cppc/nominal_freq"
    first_line min_khz "$cpus/cpu0/cpufreq/scaling_min_freq"
    first_line max_khz "$cpus/cpu0/cpufreq/scaling_max_freq"
    first_line hardware_max_khz "$cpus/cpu0/cpufreq/cpuinfo_max_freq"
    first_line no_turbo "$cpus/intel_pstate/no_turbo"
    first_line boost "$cpus/cpufreq/boost"
}

memory() {
    whole_file meminfo "$proc/meminfo" grep -E '^(Mem|Swap|Huge)'
    section numa
    nodes=$sys/devices/system/node
    if [ -d "$nodes/node0" ]; then
        found numa "$(reason_of "$nodes/node0/meminfo")" "$( (cd "$nodes" &&
            grep -H '' node[0-9]*/cpulist node[0-9]*/distance &&
            grep -H MemTotal node[0-9]*/meminfo) 2>/dev/null |
            sed 's|^\(node[0-9]*\)/\([a-z]*\):\(Node [0-9]* MemTotal: *\)\{0,1\}|\| \1 \2: |')"
    else
        absent numa "$(reason_of "$nodes/node0")"
    fi
    section settings
    first_line thp "$sys/kernel/mm/transparent_hugepage/enabled"
    first_line thp_defrag "$sys/kernel/mm/transparent_hugepage/defrag"
    for name in kernel/numa_balancing vm/zone_reclaim_mode vm/swappiness vm/overcommit_memory \
        kernel/perf_event_paranoid kernel/randomize_va_space; do
        first_line "$name" "$proc/sys/$name"
    done
}

# Prints the limits of the control groups of this shell. Each group above it may have a limit, too.
control_groups() {
    section cgroup
    if [ ! -r "$proc/self/cgroup" ]; then absent cgroup "$(reason_of "$proc/self/cgroup")"; return; fi
    found cgroup no-limit "$(group_limits)"
}
group_limits() {
    groups=$sys/fs/cgroup
    while IFS=: read -r _ kinds path; do
        case ",$kinds," in
        ,,) set -- "$groups" cpu.max memory.max; [ -e "$groups/unified" ] && set -- "$groups/unified" cpu.max memory.max ;;
        *,cpu,*) set -- "$groups/cpu" cpu.cfs_quota_us cpu.cfs_period_us ;;
        *,memory,*) set -- "$groups/memory" memory.limit_in_bytes ;;
        *) continue ;;
        esac
        directory=$1
        shift
        while :; do
            for name; do
                [ ! -r "$directory${path%/}/$name" ] || first_line "${path:-/} $name" "$directory${path%/}/$name"
            done
            case $path in /?*) path=${path%/*} ;; *) break ;; esac
        done
    done <"$proc/self/cgroup"
}

firmware() {
    section dmi
    for name in bios_vendor bios_version bios_date sys_vendor product_name product_serial \
        board_vendor board_name board_version board_serial chassis_serial; do
        first_line "$name" "$sys/class/dmi/id/$name"
    done
    section devicetree
    if [ -d "$proc/device-tree" ]; then
        for name in model system-id openprom/ibm,fw-vernum_encoded; do
            value=$(tr -d '\000' <"$proc/device-tree/$name" 2>/dev/null) 2>/dev/null
            if [ -n "$value" ]; then fact "$name" "$value"
            else absent "devicetree.$name" "$(reason_of "$proc/device-tree/$name")"; fi
        done
    else
        absent devicetree 'no-file /proc/device-tree'
    fi
    smbios dimms memory 'Memory Device' no-memory
    smbios sockets processor 'Processor Information' no-processor
}

# Prints a section with the structures of TYPE in SMBIOS. Each begins with TITLE.
smbios() { # SECTION TYPE TITLE CODE
    section "$1"
    if ! tool dmidecode >/dev/null; then absent "$current" 'no-tool dmidecode'
    elif [ "$user" != 0 ]; then absent "$current" root
    elif run_tool "$limit_s" dmidecode -t "$2"; then
        case $lines in
        *"$3"*) printf '%s\n' "$lines" | quote ;;
        *) absent "$current" "$4" ;;
        esac
    else
        absent "$current" "$reason"
    fi
}

network() {
    section nics
    ethtool=$(tool ethtool) || absent nics.firmware 'no-tool ethtool'
    for nic in $(network_ports); do
        name=${nic##*/}
        if [ -e "$nic/device/driver" ]; then
            driver=$(readlink -f "$nic/device/driver")
            fact "$name driver" "${driver##*/}"
        fi
        for key in operstate speed mtu device/current_link_speed device/current_link_width \
            device/max_link_speed device/max_link_width device/numa_node; do
            [ ! -e "$nic/$key" ] || first_line "$name ${key#device/}" "$nic/$key"
        done
        [ -n "$ethtool" ] || continue
        version=$(bounded "$skip_s" "$ethtool" -i "$name" 2>/dev/null | sed -n 's/^firmware-version: *//p')
        if [ -n "$version" ]; then fact "$name firmware" "$version"
        else absent "nics.$name firmware" no-driver; fi
    done
    [ -n "$(network_ports)" ] || absent nics no-hardware
    section fabric
    for hca in "$sys"/class/infiniband/*; do
        if [ ! -d "$hca" ]; then absent fabric "no-file ${hca%/*}"; break; fi
        for key in fw_ver hca_type board_id; do first_line "${hca##*/} $key" "$hca/$key"; done
        [ ! -e "$hca/device/numa_node" ] || first_line "${hca##*/} numa_node" "$hca/device/numa_node"
        for key in current_link_speed current_link_width max_link_speed max_link_width; do
            [ ! -e "$hca/device/$key" ] || first_line "${hca##*/} $key" "$hca/device/$key"
        done
        if [ -e "$hca/device" ]; then
            slot=$(readlink -f "$hca/device")
            fact "${hca##*/} slot" "${slot##*/}"
        fi
        for port in "$hca"/ports/*; do
            for key in state rate link_layer; do
                first_line "${hca##*/}/${port##*/} $key" "$port/$key"
            done
        done
    done
}

# Prints the size of each mounted file system that stores data, in KiB. The mounts of a name with
# white space or a backslash are left out.
sizes() {
    section sizes
    df=$(tool df) || { absent sizes 'no-tool df'; return; }
    set --
    while read -r _ target type _; do
        case $target in *\\*) continue ;; esac
        case $type in
        proc | sysfs | dev* | cgroup* | securityfs | debugfs | tracefs | configfs | pstore | bpf) ;;
        mqueue | rpc_pipefs | fusectl | binfmt_misc | nsfs | efivarfs | selinuxfs | autofs) ;;
        tmpfs | ramfs | hugetlbfs | overlay | squashfs | iso9660) ;;
        *) set -- "$@" "$target" ;;
        esac
    done <"$proc/mounts" 2>/dev/null
    if [ $# = 0 ]; then absent sizes 'no-line /proc/mounts'; return; fi
    # The exit code tells of one file system that cannot be read; the others have a line.
    lines=$(bounded "$skip_s" "$df" -P -k "$@" 2>/dev/null)
    if [ $? = 124 ]; then absent sizes "tool-slow df $skip_s"; return; fi
    found sizes 'tool-silent df' "$(printf '%s\n' "$lines" | awk '
        $NF ~ /^\// && $(NF - 4) ~ /^[0-9]+$/ { print "| " $NF ": " $(NF - 4) }')"
}

# Prints the version of each driver of networks, file systems and accelerators, and the checksum of
# its source: the drivers of the kernel itself have no version.
drivers() {
    section drivers
    names=$({
        for device in "$sys"/class/net/*/device "$sys"/class/infiniband/*/device \
            $(accelerator_devices); do
            [ -e "$device/driver" ] || continue
            driver=$(readlink -f "$device/driver")
            echo "${driver##*/}"
        done
        awk -v pattern="^($drivers_of_nodes)" '$1 ~ pattern { print $1 }' "$proc/modules" 2>/dev/null
    } | sort -u)
    for name in $names; do
        version='' source=''
        { IFS= read -r version <"$sys/module/$name/version"; } 2>/dev/null
        { IFS= read -r source <"$sys/module/$name/srcversion"; } 2>/dev/null
        value=$version${version:+${source:+ }}${source:+source $source}
        if [ -n "$value" ]; then fact "$name" "$value"
        else absent "drivers.$name" "no-file /sys/module/$name/version"; fi
    done
    [ -n "$names" ] || absent drivers no-module
    if run_tool "$skip_s" ofed_info -s; then fact OFED "${lines%:}"
    else absent drivers.OFED "$reason"; fi
}

# Prints the folders of the accelerators: display and 3D controllers, processing accelerators. A
# virtual function is a part of another device.
accelerator_devices() {
    for device in "$sys"/bus/pci/devices/*; do
        class=
        { IFS= read -r class <"$device/class"; } 2>/dev/null
        case $class in
        0x0300* | 0x0302* | 0x0380* | 0x1200*) [ -e "$device/physfn" ] || echo "$device" ;;
        esac
    done
}

accelerators() {
    section accelerators
    devices=$(accelerator_devices)
    [ -n "$devices" ] || { absent accelerators no-accelerator; return; }
    nvidia=
    for device in $devices; do
        name=${device##*/}
        for key in class vendor device current_link_speed current_link_width max_link_speed \
            max_link_width numa_node; do
            [ ! -e "$device/$key" ] || first_line "$name $key" "$device/$key"
        done
        # An idle device lowers the rate of its link. What the port above it has is the most.
        port=$(readlink -f "$device")
        port=${port%/*}
        [ ! -e "$port/max_link_speed" ] || first_line "$name port_link_speed" "$port/max_link_speed"
        if [ -e "$device/driver" ]; then
            driver=$(readlink -f "$device/driver")
            fact "$name driver" "${driver##*/}"
            [ "${driver##*/}" != nvidia ] || nvidia=yes
        fi
        model=$(sed -n 's/^Model: *//p' "$proc/driver/nvidia/gpus/$name/information" 2>/dev/null)
        [ -z "$model" ] || fact "$name model" "$model"
        # The driver amdgpu counts the errors of a memory with ECC only.
        [ ! -e "$device/ras/umc_err_count" ] || fact "$name ecc" Enabled
    done
    [ -n "$nvidia" ] || return 0
    if run_tool "$skip_s" nvidia-smi --query-gpu=pci.bus_id,ecc.mode.current --format=csv,noheader; then
        printf '%s\n' "$lines" | awk -F', *' 'NF == 2 {
            name = tolower($1); sub(/^0000/, "", name); print "| " name " ecc: " $2 }'
    else
        absent accelerators.ecc "$reason"
    fi
}

# The modules of networks, file systems, accelerators and sensors of a node.
drivers_of_nodes='lustre|lnet|ko2iblnd|kfi_cxi|kkfilnd|cxi|mlx[45]_|ib_|rdma|hfi1|opa_|bnxt|irdma|efa|knem'
drivers_of_nodes="$drivers_of_nodes|xpmem|gdrdrv|nvidia|amdgpu|i915|xe\$|habanalabs|edac|[a-z0-9]*_edac"
drivers_of_nodes="$drivers_of_nodes|intel_rapl|acpi_cpufreq|ipmi_|mmfs|beegfs|nfs|ceph|wekafs|panfs"

system() {
    section system
    fact kernel "$(cat "$proc/sys/kernel/osrelease" 2>/dev/null || uname -r)"
    fact version "$(uname -v)"
    fact machine "$(cat "$proc/sys/kernel/arch" 2>/dev/null || uname -m)"
    whole_file cmdline "$proc/cmdline"
    if [ -r "$root/etc/os-release" ]; then whole_file os "$root/etc/os-release" grep -v '_URL='
    else whole_file os "$root/etc/redhat-release"; fi
    section virtual
    if detect=$(tool systemd-detect-virt); then
        # It prints "none" for none.
        found virtual.machine 'tool-silent systemd-detect-virt' \
            "$(bounded "$skip_s" "$detect" --vm 2>/dev/null | sed -n '1s/^/| machine: /p')"
        found virtual.container 'tool-silent systemd-detect-virt' \
            "$(bounded "$skip_s" "$detect" --container 2>/dev/null | sed -n '1s/^/| container: /p')"
    else
        absent virtual 'no-tool systemd-detect-virt'
    fi
    first_line hypervisor "$sys/hypervisor/type"
    # Pseudo file systems store no data. An autofs mounts another one when it is used.
    # shellcheck disable=SC2016 # $3 is awk's
    whole_file mounts "$proc/mounts" awk '$3 !~ /^(proc|sysfs|devpts|devtmpfs|cgroup2?|securityfs|debugfs|tracefs|configfs|pstore|bpf|mqueue|rpc_pipefs|fusectl|binfmt_misc|nsfs|efivarfs|selinuxfs)$/'
    section limits
    for limit in 'memlock -l' 'open_files -n' 'stack -s'; do
        value=$(ulimit "${limit#* }" 2>/dev/null)
        if [ -n "$value" ]; then fact "${limit% *}" "$value"
        else absent "limits.${limit% *}" no-limit; fi
    done
    whole_file modules "$proc/modules" grep -E "^($drivers_of_nodes)"
    section vulnerabilities
    for file in "$cpus"/vulnerabilities/*; do
        if [ -f "$file" ]; then first_line "${file##*/}" "$file"
        else absent vulnerabilities "$(reason_of "$cpus/vulnerabilities")"; fi
    done
    output clock "$skip_s" chronyc -n tracking
    sizes
    drivers
}

user=$(id -u)
case $kind in
facts | before | after) ;;
*) echo "probe.sh: unknown kind '$kind'; accepted: facts, before, after" >&2; exit 3 ;;
esac
# The sections of this kind, in their order. Each is printed, with lines or with why it has none.
sections='host load counters kernel busy'
[ "$kind" != facts ] || sections="host system cmdline os virtual mounts limits modules \
vulnerabilities clock sizes drivers cpuinfo cpuinfo_counts cpus allowed caches lscpu topology smt frequency \
meminfo numa settings cgroup dmi devicetree dimms sockets nics fabric accelerators load counters busy"
began=$(uptime_now)
first=$(sample)
printf 'proofmark-probe 1 %s\n' "$kind"
identity
if [ "$kind" = facts ]; then
    system
    processors
    frequencies
    memory
    control_groups
    firmware
    network
    accelerators
fi
whole_file load "$proc/loadavg"
counters
[ "$kind" = facts ] || kernel_log
busy
printf '=== end\n'
