"""R7 on a GPU: numbers are drawn and added up in the registers of one kernel, so that no memory is read or written.

Philox4x32-10 (Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3) gives a pair of normal numbers for each
row and pair of columns, by the transform of Box and Muller.
"""

from __future__ import annotations

BLOCKS, THREADS = 4096, 256
SOURCE = r"""
__device__ void philox(unsigned int counter[4], unsigned int key, unsigned int other_key) {
    for (int round = 0; round < 10; ++round) {
        unsigned long long even = 0xD2511F53ULL * counter[0], odd = 0xCD9E8D57ULL * counter[2];
        unsigned int second = counter[1], fourth = counter[3];
        counter[0] = (unsigned int)(odd >> 32) ^ second ^ key;
        counter[1] = (unsigned int)odd;
        counter[2] = (unsigned int)(even >> 32) ^ fourth ^ other_key;
        counter[3] = (unsigned int)even;
        key += 0x9E3779B9U;
        other_key += 0xBB67AE85U;
    }
}

// Above 0, at most 1.
__device__ double uniform(unsigned int high, unsigned int low) {
    return ((((unsigned long long)high << 32 | low) >> 11) + 1) * 0x1p-53;
}

// The sums of the chosen numbers and of all, so that every number is needed.
extern "C" __global__ void sum_of_normals(
    unsigned long long n, unsigned long long first, unsigned long long rows, unsigned int seed, double mean,
    double deviation, double *sums) {
    unsigned long long pairs = (n + 1) / 2, step = (unsigned long long)gridDim.x * blockDim.x;
    double chosen = 0, all = 0;
    for (unsigned long long place = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; place < rows * pairs;
         place += step) {
        unsigned long long row = first + place / pairs, pair = place % pairs;
        unsigned int counter[4] = {(unsigned int)row, (unsigned int)(row >> 32), (unsigned int)pair, 0};
        philox(counter, seed, 0);
        double radius = sqrt(-2 * log(uniform(counter[0], counter[1]))), sine, cosine;
        sincospi(2 * uniform(counter[2], counter[3]), &sine, &cosine);
        double even = radius * cosine * deviation + mean + 1;
        all += even + (2 * pair + 1 < n ? radius * sine * deviation + mean + 1 : 0);
        chosen += row % 2 ? 0 : even;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        chosen += __shfl_down_sync(0xFFFFFFFFU, chosen, distance);
        all += __shfl_down_sync(0xFFFFFFFFU, all, distance);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[0], chosen);
        atomicAdd(&sums[1], all);
    }
}
"""


def gpu_sum(n: int, rows: range, *, seed: int, mean: float, deviation: float) -> float:
    """Draw rows of an n x n matrix, float64, and return the sum of x + 1 where row and column are even."""
    import cupy

    # Compiled once in a process, and kept on disk by CuPy.
    kernel, sums = cupy.RawKernel(SOURCE, "sum_of_normals"), cupy.zeros(2, "float64")
    integers = (cupy.uint64(n), cupy.uint64(rows.start), cupy.uint64(len(rows)), cupy.uint32(seed))
    kernel((BLOCKS,), (THREADS,), (*integers, mean, deviation, sums))
    return float(sums[0])
