# For each header that occurs in the samples: which word of a row is what.
BEGIN {
    is["#bytes #repetitions t[usec] Mbytes/sec"] = "3 t_avg usec 4 bandwidth Mbytes/sec"
    is["#bytes #repetitions t[usec] Mbytes/sec Msg/sec"] = "3 t_avg usec 4 bandwidth Mbytes/sec 5 rate Msg/sec"
    is["#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"] = "3 t_min usec 4 t_max usec 5 t_avg usec"
    is["#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec"] = "3 t_min usec 4 t_max usec 5 t_avg usec 6 bandwidth Mbytes/sec"
    is["#repetitions t_min[usec] t_max[usec] t_avg[usec]"] = "2 t_min usec 3 t_max usec 4 t_avg usec"
    is["#bytes #repetitions t_ovrl[usec] t_pure[usec] t_CPU[usec] overlap[%]"] = "3 t_ovrl usec 4 t_pure usec 5 t_cpu usec 6 overlap %"
    is["#repetitions t_ovrl[usec] t_pure[usec] t_CPU[usec] overlap[%]"] = "2 t_ovrl usec 3 t_pure usec 4 t_cpu usec 5 overlap %"
    is["#bytes #repetitions t_pure[usec] t_ovrl[usec]"] = "3 t_pure usec 4 t_ovrl usec"
    is["Group #bytes #repetitions t[usec] Mbytes/sec"] = "4 t_avg usec 5 bandwidth Mbytes/sec"
    is["Group #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"] = "4 t_min usec 5 t_max usec 6 t_avg usec"
    is["Group #bytes #repetitions Mbytes/sec Msg/sec"] = "4 bandwidth Mbytes/sec 5 rate Msg/sec"
}
/^# Benchmarking/ { bench = $3; more = ""; is_table = 0 }
/^# #processes/ { ranks = $4 }
/^# \( .* groups of/ { ranks = $6; more = more ", \"groups\": " $3 }
/additional process/ { more = more ", \"waiting\": " $3 }
/^# +MODE:/ { more = more ", \"mode\": \"" tolower($3) "\"" }
/^# !! Benchmark .* is invalid for/ { put($4, "t_avg", "null", "usec", "\"ranks\": " $8, 0) }
/#repetitions/ {
    title = $1
    for (i = 2; i <= NF; i++) title = title " " $i
    if (!(title in is)) { print "unknown header: " title > "/dev/stderr"; exit 1 }
    last = split(is[title], column, " ")
    width = NF; is_table = 1; grouped = ($1 == "Group"); sized = index(title, "#bytes")
    next
}
is_table && /^ +[0-9]/ {
    given_up = ($2 ~ /^time-out/)
    q = "\"ranks\": " ranks more
    if (grouped) q = q ", \"group\": " $1
    if (sized) q = q ", \"bytes\": " (grouped ? $2 : $1)
    for (i = 1; i <= last; i += 3)
        put(bench, column[i + 1], given_up ? "null" : $column[i], column[i + 2], q, !given_up)
}
/^# All processes entering MPI_Finalize/ { ok = 1; is_table = 0 }
END { flush(ok) }
