/* Prints the instruction sets of the processor it runs on, by CPUID, in the words of /proc/cpuinfo. */
#include <cpuid.h>
#include <stdio.h>

enum leaf { BASIC_C, BASIC_D, SEVEN_B, EXTENDED_C, EXTENDED_D, LEAVES };

static const struct { enum leaf leaf; unsigned bit; const char *word; } known[] = {
    {BASIC_D, bit_MMX, "mmx"}, {BASIC_D, bit_SSE, "sse"}, {BASIC_D, bit_SSE2, "sse2"},
    {BASIC_C, bit_SSE3, "pni"}, {BASIC_C, bit_SSSE3, "ssse3"}, {BASIC_C, bit_FMA, "fma"},
    {BASIC_C, bit_CMPXCHG16B, "cx16"}, {BASIC_C, bit_SSE4_1, "sse4_1"},
    {BASIC_C, bit_SSE4_2, "sse4_2"}, {BASIC_C, bit_MOVBE, "movbe"}, {BASIC_C, bit_POPCNT, "popcnt"},
    {BASIC_C, bit_XSAVE, "xsave"}, {BASIC_C, bit_AVX, "avx"}, {BASIC_C, bit_F16C, "f16c"},
    {SEVEN_B, bit_BMI, "bmi1"}, {SEVEN_B, bit_AVX2, "avx2"}, {SEVEN_B, bit_BMI2, "bmi2"},
    {EXTENDED_C, bit_LAHF_LM, "lahf_lm"}, {EXTENDED_C, bit_ABM, "abm"},
    {EXTENDED_C, bit_SSE4a, "sse4a"}, {EXTENDED_D, bit_3DNOW, "3dnow"},
    {EXTENDED_D, bit_3DNOWP, "3dnowext"},
};

int main(void)
{
    unsigned a, b, ignored, word[LEAVES] = {0};
    __get_cpuid(1, &a, &b, &word[BASIC_C], &word[BASIC_D]);
    __get_cpuid_count(7, 0, &a, &word[SEVEN_B], &b, &ignored);
    __get_cpuid(0x80000001, &a, &b, &word[EXTENDED_C], &word[EXTENDED_D]);
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++)
        if (word[known[i].leaf] & known[i].bit)
            printf("%s ", known[i].word);
    return 0;
}
