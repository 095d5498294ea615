# The summary of the iterations: the last number but one of a row is the mean. The phases that the
# command line leaves out have rows of zeros. mdtest prints its options in quotes.
function option(name,    i) {
    for (i = 1; i < words; i++) if (command[i] == "'" name "'") return substr(command[i + 1], 2, length(command[i + 1]) - 2)
    return ""
}
function number(name, option_name) { return option(option_name) == "" ? "" : sprintf("\"%s\": %d, ", name, option(option_name)) }
function has(name,    i) { for (i = 1; i <= words; i++) if (command[i] == "'" name "'") return 1; return 0 }
function wanted(kind, phase) {
    if (has("-F") && kind == "directory" || has("-D") && kind == "file") return 0
    if (!has("-C") && !has("-T") && !has("-E") && !has("-r")) return 1
    return has(phase == "create" ? "-C" : phase == "stat" ? "-T" : phase == "read" ? "-E" : "-r")
}
/ total task\(s\) on / { tasks = $5 }
/^Command line used/ { words = split($0, command, " ") }
/^SUMMARY rate/ { repeats = $(NF - 1); inside = 1 }
/^WARNING: unable/ || /^error / || /FAILED in/ { bad = 1 }
inside && $1 ~ /^(File|Directory)$/ && $2 ~ /^(creation|stat|read|removal)$/ {
    phase = $2; sub(/creation/, "create", phase); sub(/removal/, "remove", phase)
    kind = tolower($1)
    if (wanted(kind, phase))
        put("mdtest", kind "_" phase, $(NF - 1), "ops/s", sprintf("\"tasks\": %d, ", tasks) number("items", "-n") number("stride", "-N") (has("-u") ? "\"own_directory\": \"-u\", " : "") number("file_bytes", "-w") number("read_bytes", "-e") (option("-W") == "" ? "" : "\"stonewall\": \"" option("-W") "\", ") sprintf("\"iterations\": %d", repeats), !bad)
}
/^-- finished at/ { ok = 1 }
END { flush(ok) }
