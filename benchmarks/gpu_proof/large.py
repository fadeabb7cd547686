"""Steps on data that are made fast, as only their size counts: genotypes four a byte, a graph of a billion edges."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from math import ceil, log2, sqrt
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.genomics.simulated_store import SIGNAL, chunk_of_genotypes, populations
from benchmarks.gpu_proof.applications import step_on_both
from benchmarks.gpu_proof.proof import Found, Work
from benchmarks.pagerank.rmat import ends
from whitewater.engines import resolve
from whitewater.genotypes.genotypes import MISSING_CODE, SLAB, create_genotypes
from whitewater.graphs.graph_folder import MergedEdges
from whitewater.graphs.graph_folder import write_graph as write_folder

EDGE, SEED = 100_000, 2019
EDGES, EDGES_A_VERTEX = 1_000_000_000, 16
# Edges that are drawn at once: some vectors of 8 bytes of each.
DRAWN = 1 << 25
COMPONENTS = {"pcs": "pcs.parquet", "eigenvalues": "eigenvalues.json", "loadings": "loadings.zarr",
              "selected": "selected.parquet"}  # fmt: skip


def pca(work: Work) -> Found:
    """Find the nine components above the noise of 100,000 samples and as many variants: 1e10 genotypes, 2.5 GB."""
    inputs = {"packed": Path("packed"), "samples": Path("samples.parquet")}
    write_genotypes(
        inputs["packed"], inputs["samples"], edge=4 * ceil(EDGE * sqrt(work.scale) / 4), threads=work.threads
    )
    return step_on_both("genomics", "pca", work, inputs=inputs, outputs=COMPONENTS,
                        settings={"components": SIGNAL})  # fmt: skip


def write_genotypes(path: Path, samples: Path, *, edge: int, threads: int) -> None:
    """Write a folder of ``edge`` variants of as many samples, a multiple of 4, and a table of the samples, all used."""
    folder = create_genotypes(path, encoding="two_bit", ploidy=2, variants=edge, samples=edge)
    shares = populations(edge, seed=SEED)

    def write(start: int) -> None:
        calls = chunk_of_genotypes(shares, start=start, stop=min(start + SLAB, edge), seed=SEED)
        codes = np.where(calls[:, :, 0] < 0, MISSING_CODE, calls.sum(axis=2)).astype(np.uint8)
        first, second, third, fourth = (codes[:, place::4] for place in range(4))
        folder.write(start, first | second << 2 | third << 4 | fourth << 6)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(0, edge, SLAB)))
    sites = {"contig": "1", "position": np.arange(1, edge + 1), "id": [f"v{at}" for at in range(edge)],
             "reference": "A", "alternate": "G"}  # fmt: skip
    named = pd.DataFrame({"sample": [f"S{at:06d}" for at in range(edge)], "label": ""})
    folder.finish(variants=pd.DataFrame(sites), samples=named)
    named.assign(call_rate=1.0, used=True, reason="").to_parquet(samples)


def rank(work: Work) -> Found:
    """PageRank of a power-law graph (R-MAT) of a billion edges, from the folder of the graph."""
    # In a process of its own, which keeps no memory of the device.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(write_graph, Path("graph"), edges=work.sized(EDGES), device=work.device).result()
    outputs = {"ranks": "ranks.parquet", "convergence": "convergence.json"}
    return step_on_both("pagerank", "rank", work, inputs={"graph": Path("graph")}, outputs=outputs, settings={})


def write_graph(path: Path, *, edges: int, device: str) -> None:
    """Draw edges, each counting once, on the device, and write the graph.

    Vertices are renamed by a bijection of their numbers, so that these tell nothing.
    """
    there = resolve(device)
    xp, bits = there.xp, max(2, round(log2(edges / EDGES_A_VERTEX)))
    vertices, generator = 1 << bits, xp.random.default_rng(SEED)
    keys = xp.empty(edges, xp.int64)
    for start in range(0, edges, DRAWN):
        source, target = ends(generator, bits, min(DRAWN, edges - start), xp=xp) * 0x9E3779B1 % vertices
        keys[start : start + DRAWN] = target << bits | source
    keys.sort()
    keys = keys[xp.concatenate([xp.ones(1, bool), keys[1:] != keys[:-1]])]
    counts, sources = xp.bincount(keys >> bits, minlength=vertices), (keys % vertices).astype(xp.int32)
    rows = MergedEdges(range(vertices), there.to_host(counts), there.to_host(sources))
    write_folder(path, ids=np.arange(vertices), rows=[rows], weighted=False)
