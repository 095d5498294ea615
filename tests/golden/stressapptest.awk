# Stats: Completed: 46068.00M in 10.01s 4600.42MB/s, with 0 hardware incidents, 0 errors
/^Stats: Starting SAT, / { megabytes = $4 + 0; seconds = $5 + 0 }
/^Stats: Completed: / {
    rate = $6
    sub(/MB\/s,$/, "", rate)
    put("stressapptest", "rate", rate, "MB/s", "", 1)
    put("stressapptest", "incidents", $8, "events", "", 1)
}
/^Status: PASS/ { ok = 1 }
/^(Hardware Error|Report Error): / { wrong = 1 }
END {
    for (i = 1; i <= n; i++) p[i] = "\"megabytes\": " megabytes ", \"seconds\": " seconds
    flush(ok && !wrong)
}
