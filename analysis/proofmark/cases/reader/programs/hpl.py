"""HPL: rows that their residuals confirm."""

from __future__ import annotations

from proofmark.cases.reader.rules import Agreement, RowRule, TextSpec, line, words
from proofmark.cases.reader.spec import Program, ReadSpec


class Hpl(Program):
    """HPL 1 and 2."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="HPL result row",
            benchmark="HPL",
            # The variant (column T/V) encodes the algorithm: two rows may differ in
            # nothing else. AMD's build prints the swapping algorithm (SWP) after it.
            parameters={
                "variant": "word",
                "swap": "word",
                "n": "int",
                "nb": "int",
                "p": "int",
                "q": "int",
            },
            # Columns of a row have the others.
            no_setting=words("n nb p q pfact nbmin ndiv rfact bcast depth time gflops"),
            # HPL computes the rate from the time (HPL_pdtest.c), and prints
            # hundredths of a second.
            agree=(
                Agreement(
                    metric="time",
                    equals="(2 / 3 * n ** 3 + 3 / 2 * n ** 2) / (rmax * 1e9)",
                    rounding=0.006,
                    within=0.002,
                ),
            ),
            text=TextSpec(
                starts=line(r"HPLinpack \d.*"),
                once="ends",
                settings=(line(r"(?P<key>[A-Z]+\d?) +: (?P<value>\S.*)"),),
                rows=(
                    RowRule(
                        begins=line(r"W[RC][A-Z]?\d.*"),
                        # Each version prints the time without an exponent: columns that are
                        # swapped are no row. Some vendors' builds print the rate per accelerator
                        # in parentheses after it.
                        match=line(
                            r"(?P<variant>\S+) +(?:(?P<swap>\d{3}) +)?(?P<n>\S+)"
                            r" +(?P<nb>\S+) +(?P<p>\S+) +(?P<q>\S+) +(?P<time>[\d.]+)"
                            r" +(?P<rmax>[^\s(]\S*)(?: +\(.*\))?"
                        ),
                        metrics={"rmax": "Gflops", "time": "s"},
                        # HPL 1 prints three such lines after a row, HPL 2 one. A failed one makes
                        # the row INVALID.
                        confirm=line(r"\|\|Ax-b\|\|_oo.*= +(?P<residual>\S+) \.\.\.+ PASSED"),
                        confirmed={"residual": ""},
                        refuse=line(r"\|\|Ax-b\|\|_oo.*\.\.\. FAILED"),
                        count=line(r"Finished\s+(?P<count>\d+) tests with the following results:"),
                    ),
                ),
                require={"End of Tests.": line(r"End of Tests\.")},
                reject=(
                    line("HPL ERROR.*"),
                    line(r"\s*[1-9]\d* tests skipped because of illegal input values\."),
                ),
            ),
        )
