"""The twin of a partition: a model of its nodes and network, on which SimGrid runs MPI programs."""
