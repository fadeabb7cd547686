"""The CUDA kernel of R7: compiled for GPUs where nvcc is installed, and run on the host, one thread of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.published.array_random_gpu import SOURCE

# What the kernel asks of CUDA, for one thread of one block.
OF_CUDA = r"""
#include <cmath>
#include <cstdio>
#include <initializer_list>
#define __device__
#define __global__
struct Place { unsigned int x; };
static Place gridDim{1}, blockDim{1}, blockIdx{0}, threadIdx{0};
static void sincospi(double x, double *sine, double *cosine) { *sine = sin(M_PI * x); *cosine = cos(M_PI * x); }
static double __shfl_down_sync(unsigned int, double, int) { return 0; }
static void atomicAdd(double *sum, double value) { *sum += value; }
using std::sqrt; using std::log;
"""
MAIN = r"""
int main() {
    unsigned int zeros[4] = {0, 0, 0, 0}, ones[4] = {~0U, ~0U, ~0U, ~0U};
    philox(zeros, 0, 0);
    philox(ones, ~0U, ~0U);
    for (unsigned int *each : {zeros, ones}) printf("%08x %08x %08x %08x\n", each[0], each[1], each[2], each[3]);
    double sums[2] = {0, 0};
    sum_of_normals(1001, 1, 1000, 7, 10, 1, sums);
    printf("%.17g %.17g\n", sums[0], sums[1]);
}
"""
# Of counters and keys of zeros and of ones, by Random123's authors.
KNOWN = ["6627e8d5 e169c58d bc57ac4c 9b00dbd8", "408f276d 41c83b0e a20bc7c6 6d5451fd"]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_the_kernel_compiles_for_gpus(tmp_path: Path, architecture: str) -> None:
    source, code = tmp_path / "kernel.cu", tmp_path / "kernel.ptx"
    source.write_text(SOURCE)
    subprocess.run(["nvcc", "-ptx", f"-arch={architecture}", str(source), "-o", str(code)], check=True)
    assert ".visible .entry sum_of_normals" in code.read_text()


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_kernel_draws_what_philox_draws_and_sums_a_quarter_of_the_cells(tmp_path: Path) -> None:
    source, program = tmp_path / "kernel.cpp", tmp_path / "kernel"
    source.write_text(OF_CUDA + SOURCE + MAIN)
    subprocess.run(["g++", "-std=c++17", str(source), "-o", str(program)], check=True)
    *drawn, sums = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()
    assert drawn == KNOWN
    for total, cells in zip(map(float, sums.split()), (500 * 501, 1000 * 1001), strict=True):
        assert total / cells == pytest.approx(11, abs=5 / cells**0.5)
