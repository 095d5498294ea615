/* Prints rates as the programs osu_bw and osu_mbw_mr do: osu_bw -m FIRST:LAST -i NUMBER
   Of 2n ranks, rank i sends to rank i + n. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16 }; /* the programs have 64; a test is short */

/* Return the time of a rank for `number` windows of messages. */
static double measure(char *buffer, int size, int number, int rank, int pairs) {
	MPI_Request sent[WINDOW];
	int peer = (rank + pairs) % (2 * pairs);
	MPI_Barrier(MPI_COMM_WORLD);
	double time = MPI_Wtime();
	while (number-- > 0) {
		for (int each = 0; each < WINDOW; each++)
			if (rank < pairs)
				MPI_Isend(buffer, size, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &sent[each]);
			else
				MPI_Irecv(buffer, size, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &sent[each]);
		MPI_Waitall(WINDOW, sent, MPI_STATUSES_IGNORE);
		if (rank < pairs)
			MPI_Recv(buffer, 4, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(buffer, 4, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
	}
	return MPI_Wtime() - time;
}

int main(int count, char **words) {
	int rank, ranks, first = 1, last = 1, number = 1;
	MPI_Init(&count, &words);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int word = 1; word + 1 < count; word++)
		if (!strcmp(words[word], "-m"))
			sscanf(words[word + 1], "%d:%d", &first, &last);
		else if (!strcmp(words[word], "-i"))
			number = atoi(words[word + 1]);
	int pairs = ranks / 2, several = !strcmp(TITLE, "osu_mbw_mr");
	char *buffer = calloc(1, last > 4 ? last : 4);
	double *times = calloc(ranks, sizeof(double));
	if (rank == 0 && several)
		printf("# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
		       "# [ pairs: %d ] [ window size: %d ]\n", pairs, WINDOW);
	if (rank == 0)
		printf(several ? "# Size                  MB/s        Messages/s\n"
			       : "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n");
	for (int size = first; size <= last; size *= 2) {
		double sum = 0, time = measure(buffer, size, number, rank, pairs);
		MPI_Gather(&time, 1, MPI_DOUBLE, times, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		if (rank == 0) {
			for (int pair = 0; pair < pairs; pair++)
				sum += times[pair] / pairs;
			double rate = 1e-6 * size * number * WINDOW * pairs / sum;
			printf(several ? "%-10d%18.2f%18.2f\n" : "%-10d%18.2f\n", size, rate, 1e6 * rate / size);
			for (int pair = 0; pair < pairs && several; pair++)
				printf("# pair %d: %.2f MB/s\n", pair, 1e-6 * size * number * WINDOW / times[pair]);
		}
	}
	free(times);
	free(buffer);
	MPI_Finalize();
	return 0;
}
