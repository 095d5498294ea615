/I\/O timing in seconds/ { put("BT", "io_time", $NF, "s", "", 1) }
/I\/O data rate/ { put("BT", "io_rate", $NF, "MB/sec", "", 1) }
/Time in seconds =/ { put("BT", "time", $NF, "s", "", 1) }
/Mop\/s total/ { put("BT", "mops", $NF, "Mop/s", "", 1) }
/^ Class  / { class = $3 }
/^ Total processes/ { ranks = $4 }
/BTIO -- .*write interval/ { subtype = tolower($3) }
/Verification .*= *SUCCESSFUL/ { ok = 1 }
/^ Active proc(s|esses) *=/ { ranks = $NF }
END {
    for (i = 1; i <= n; i++)
        p[i] = sprintf("\"class\": \"%s\", \"ranks\": %d%s", class, ranks, subtype ? ", \"subtype\": \"" subtype "\"" : "")
    flush(ok)
}
