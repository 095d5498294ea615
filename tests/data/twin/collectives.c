/* Prints times of collectives as the program IMB-MPI1 does: IMB-MPI1 NAME... -msglog FIRST:LAST
   Only Bcast, Alltoall and PingPong (of the first and the last rank) are known. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPETITIONS = 20 }; /* ranks do not leave a barrier at the same time */

static void once(const char *name, char *from, char *to, int size, int rank, int ranks) {
	if (!strcmp(name, "Bcast"))
		MPI_Bcast(from, size, MPI_CHAR, 0, MPI_COMM_WORLD);
	else if (!strcmp(name, "Alltoall"))
		MPI_Alltoall(from, size, MPI_CHAR, to, size, MPI_CHAR, MPI_COMM_WORLD);
	else if (rank == 0) {
		MPI_Send(from, size, MPI_CHAR, ranks - 1, 0, MPI_COMM_WORLD);
		MPI_Recv(to, size, MPI_CHAR, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == ranks - 1) {
		MPI_Recv(to, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(from, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
}

static void measure(const char *name, int first, int last, int rank, int ranks) {
	char *from = calloc((size_t)ranks, (size_t)1 << last), *to = calloc((size_t)ranks, (size_t)1 << last);
	if (rank == 0)
		printf("# Benchmarking %s\n# #processes = %d\n#----\n"
		       "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n", name, ranks);
	for (int power = first - 1; power <= last; power++) {
		int size = power < first ? 0 : 1 << power;
		double least, most, sum, time;
		MPI_Barrier(MPI_COMM_WORLD);
		time = MPI_Wtime();
		for (int number = 0; number < REPETITIONS; number++)
			once(name, from, to, size, rank, ranks);
		time = 1e6 * (MPI_Wtime() - time) / REPETITIONS;
		MPI_Reduce(&time, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
		MPI_Reduce(&time, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
		MPI_Reduce(&time, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank == 0)
			printf("%13d %12d %12.2f %12.2f %12.2f\n", size, REPETITIONS, least, most, sum / ranks);
	}
	if (rank == 0)
		printf("\n\n");
	free(from);
	free(to);
}

int main(int count, char **words) {
	int rank, ranks, first = 0, last = 0;
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int word = 1; word + 1 < count; word++)
		if (!strcmp(words[word], "-msglog"))
			sscanf(words[word + 1], "%d:%d", &first, &last);
	if (rank == 0)
		printf("# Intel(R) MPI Benchmarks: a program of the tests with its output\n");
	for (int word = 1; word < count && words[word][0] != '-'; word++)
		measure(words[word], first, last, rank, ranks);
	if (rank == 0)
		printf("# All processes entering MPI_Finalize\n");
	MPI_Finalize();
	return 0;
}
