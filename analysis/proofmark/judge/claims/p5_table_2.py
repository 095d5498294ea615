"""Table 2 of paper P5 as it is published, for 16 nodes of Power 595."""

from __future__ import annotations

from collections.abc import Mapping

SYSTEM = "Power 595"

PUBLISHED: Mapping[tuple[str, str], tuple[float, float, float, float]] = {
    ("Bcast", "mean"): (0.0785, 0.2381, 1.1605, 0.6587),
    ("Bcast", "min"): (-0.3558, -0.6596, -0.7358, -0.6994),
    ("Bcast", "max"): (0.9495, 2.1457, 15.5963, 11.3582),
    ("Allreduce", "mean"): (0.0686, 0.5217, 1.2899, 0.7402),
    ("Allreduce", "min"): (-0.9331, -0.1187, -0.3235, -0.9434),
    ("Allreduce", "max"): (1.0072, 26.0308, 17.2411, 4.0272),
    ("Allgather", "mean"): (0.0926, 0.3418, 0.5693, 0.2917),
    ("Allgather", "min"): (-0.2186, -0.2919, -0.8535, -0.8615),
    ("Allgather", "max"): (1.4230, 1.9600, 3.8398, 1.8427),
    ("Alltoall", "mean"): (0.0173, 0.1331, 0.6129, 0.3545),
    ("Alltoall", "min"): (-0.3025, -0.3804, -0.7603, -0.7612),
    ("Alltoall", "max"): (0.5278, 0.8137, 3.6256, 2.7137),
    ("Alltoallv", "mean"): (-0.0038, 0.0804, 0.3958, 0.2533),
    ("Alltoallv", "min"): (-0.2612, -0.4005, -0.6926, -0.6888),
    ("Alltoallv", "max"): (0.2995, 0.6594, 3.6855, 2.7707),
}
"""The relative differences of times by collective and statistic, for each of ``p5.RATIOS``."""
