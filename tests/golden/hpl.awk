# Row: T/V N NB P Q Time Gflops; the PASSED line after it makes it good.
/^W[RC][0-9]/ {
    q = sprintf("\"n\": %s, \"nb\": %s, \"p\": %s, \"q\": %s", $2, $3, $4, $5)
    put("HPL", "rmax", $7, "Gflops", q, 0); put("HPL", "time", $6, "s", q, 0)
}
/Ax-b.*PASSED$/ { good[n] = good[n - 1] = 1 }
END { flush(1) }
