# Row: T/V [SWP] N NB P Q Time Gflops, as its header says; the PASSED line after it makes it good.
# The first residual of a row is its last word before dots and PASSED.
/^T\/V +(SWP +)?N / { shift = ($2 == "SWP") }
/^W[RC]C?[0-9]/ {
    q = "\"variant\": \"" $1 "\", " (shift ? "\"swap\": \"" $2 "\", " : "")
    q = q sprintf("\"n\": %s, \"nb\": %s, \"p\": %s, \"q\": %s", $(2 + shift), $(3 + shift), $(4 + shift), $(5 + shift))
    put("HPL", "rmax", $(7 + shift), "Gflops", q, 0); put("HPL", "time", $(6 + shift), "s", q, 0)
    row = n; residuals = 0
}
/Ax-b.*PASSED$/ {
    good[row] = good[row - 1] = 1
    if (!residuals++) put("HPL", "residual", $(NF - 2), "", q, 1)
}
END { flush(1) }
