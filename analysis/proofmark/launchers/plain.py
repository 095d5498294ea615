"""No launcher: one process, with threads bound by OpenMP where the case has threads."""

from __future__ import annotations

from proofmark.launchers import Launch


def lines(launch: Launch) -> list[str]:
    """Bind one thread to each CPU of the single rank, in order (OpenMP 5.2, section 21.1.6)."""
    openmp = {}
    if launch.cpus:
        _, cpus = launch.cpus[0]
        openmp = {
            "OMP_NUM_THREADS": str(len(cpus)),
            "OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in cpus),
            "OMP_PROC_BIND": "close",
        }
    return [*launch.exports(openmp), f"exec {launch.ranked()}"]
