"""No launcher: one process, whose threads are bound by OpenMP."""

from __future__ import annotations

from proofmark.jobs.launcher import Launch, Launcher


class Plain(Launcher):
    """One process without a launcher."""

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that bind one thread to each CPU, in order (OpenMP 5.2, section 21.1.6).

        The process is bound to all of them. That also binds a single thread, which GCC's OpenMP
        does not report, and runtimes other than OpenMP. The runtime prints where each thread is
        bound (OMP_DISPLAY_AFFINITY, OpenMP 5.0).
        """
        if not launch.cpus:
            return [*launch.exports(), f"exec {launch.ranked(bind=False)}"]
        cpus = launch.cpus[0].cpus
        openmp = {
            "OMP_NUM_THREADS": str(len(cpus)),
            "OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in cpus),
            "OMP_PROC_BIND": "close",
            "OMP_DISPLAY_AFFINITY": "true",
            "OMP_AFFINITY_FORMAT": '{"thread": %n, "host": "%H", "cpus": "%A"}',
        }
        return [*launch.exports(openmp), f"exec {launch.ranked(bind=True)}"]
