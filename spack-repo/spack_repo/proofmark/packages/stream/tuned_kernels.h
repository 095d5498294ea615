/* Kernels with explicit streaming stores for the tuned build of STREAM 5.10. Included at the end of
 * stream.c, so that the static arrays a, b and c are in reach. Every store goes past the caches; the
 * loop starts at the first element whose address the store can take. */

#if defined(__AVX512F__)
enum { LANES = 8 };
typedef __m512d vec;
#define LOAD _mm512_loadu_pd
#define STORE _mm512_stream_pd
#define SPLAT _mm512_set1_pd
#define PLUS _mm512_add_pd
#define TIMES _mm512_mul_pd
#elif defined(__AVX__)
enum { LANES = 4 };
typedef __m256d vec;
#define LOAD _mm256_loadu_pd
#define STORE _mm256_stream_pd
#define SPLAT _mm256_set1_pd
#define PLUS _mm256_add_pd
#define TIMES _mm256_mul_pd
#else
enum { LANES = 2 };
typedef __m128d vec;
#define LOAD _mm_loadu_pd
#define STORE _mm_stream_pd
#define SPLAT _mm_set1_pd
#define PLUS _mm_add_pd
#define TIMES _mm_mul_pd
#endif

/* Elements before the first aligned one of an array. */
static ssize_t unaligned_head(const double *array)
{
	uintptr_t past = (uintptr_t)array % sizeof(vec);
	return past ? (ssize_t)((sizeof(vec) - past) / sizeof(double)) : 0;
}

#define KERNEL(target, element, vector)                                              \
	do {                                                                         \
		ssize_t head = unaligned_head(target);                               \
		ssize_t vectors = (STREAM_ARRAY_SIZE - head) / LANES;                \
		ssize_t tail = head + vectors * LANES;                               \
		for (ssize_t j = 0; j < head; j++)                                   \
			target[j] = (element);                                       \
		_Pragma("omp parallel for") for (ssize_t k = 0; k < vectors; k++)    \
		{                                                                    \
			ssize_t j = head + k * LANES;                                \
			STORE(&target[j], vector);                                   \
		}                                                                    \
		for (ssize_t j = tail; j < STREAM_ARRAY_SIZE; j++)                   \
			target[j] = (element);                                       \
		_mm_sfence();                                                        \
	} while (0)

void tuned_STREAM_Copy(void)
{
	KERNEL(c, a[j], LOAD(&a[j]));
}

void tuned_STREAM_Scale(STREAM_TYPE scalar)
{
	KERNEL(b, scalar * c[j], TIMES(SPLAT(scalar), LOAD(&c[j])));
}

void tuned_STREAM_Add(void)
{
	KERNEL(c, a[j] + b[j], PLUS(LOAD(&a[j]), LOAD(&b[j])));
}

void tuned_STREAM_Triad(STREAM_TYPE scalar)
{
	KERNEL(a, b[j] + scalar * c[j], PLUS(LOAD(&b[j]), TIMES(SPLAT(scalar), LOAD(&c[j]))));
}
