# awk -f fit.awk NEEDS PROBE...   prints the nodes that cannot run the programs; exit 1 if any
# NEEDS has a line "target machine generation flag..." for each target of the programs of the job
# (software/environments.py writes it). PROBE is the output of `probe.sh facts` on one node.
function judge(    target, count, i, word, lacks) {
    if (host == "") return
    for (target in wants) {
        count = split(wants[target], word, " ")
        lacks = ""
        if (machine != word[2]) lacks = " " word[2]
        else if (generation + 0 < word[3] + 0) lacks = " POWER" word[3]
        else for (i = 4; i <= count; i++) if (index(flags, " " word[i] " ") == 0) lacks = lacks " " word[i]
        if (lacks == "") continue
        print host ": cannot run programs built for " target ": it lacks" lacks
        bad = 1
    }
}
FILENAME == ARGV[1] { wants[$1] = $0; next }
FNR == 1 { judge(); host = machine = flags = ""; generation = 0 }
/^\| hostname: / && host == "" { host = $3 }
/^\| machine: / && machine == "" { machine = $3 }
/^\| flags[ \t]*:/ && flags == "" { sub(/^[^:]*:/, ""); flags = " " $0 " " }
/^\| cpu[ \t]*: POWER[0-9]/ && generation == 0 { sub(/^[^:]*: POWER/, ""); generation = $0 + 0 }
END { judge(); exit bad + 0 }
