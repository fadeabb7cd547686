"""Steps on data that are made fast, as only their size counts: genotypes four a byte, a graph of a billion edges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import ceil, log2, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.genomics.simulated_store import chunk_of_genotypes, populations
from benchmarks.gpu_proof.applications import RULES, step
from benchmarks.gpu_proof.proof import Found, Work
from benchmarks.gpu_proof.same import compare
from benchmarks.pagerank.rmat import ends
from whitewater.engines import resolve
from whitewater.genotypes.folder import SLAB, create_genotypes
from whitewater.genotypes.genotypes import MISSING_CODE
from whitewater.graphs.graph_folder import GraphWriter

EDGE, SEED = 100_000, 2019
EDGES, EDGES_A_VERTEX = 1_000_000_000, 16
# Edges that are drawn at once: some vectors of 8 bytes of each.
DRAWN = 1 << 25


def pca(work: Work) -> Found:
    """Ten components of as many samples as variants, 100,000 of each: 1e10 genotypes, 2.5 GB."""
    edge = 4 * ceil(EDGE * sqrt(work.scale) / 4)
    write_genotypes(Path("packed"), edge=edge, threads=work.threads)
    records = {
        device: step(
            "genomics", "pca", work, device=device, settings={}, packed=Path("packed"), samples=Path("samples.parquet"),
            pcs=Path(device, "pcs.parquet"), eigenvalues=Path(device, "eigenvalues.json"),
            loadings=Path(device, "loadings.zarr"), selected=Path(device, "samples.parquet"),
        )
        for device in ("cpu", work.device)
    }  # fmt: skip
    figures = {"samples": edge, "variants": edge, "bytes": Path("packed/calls.npy").stat().st_size}
    for device, record in records.items():
        figures |= {f"{device}: pca": record["seconds"], f"{device}: passes": record["facts"]["passes"]}
    return Found(checks=compare(Path(work.device), Path("cpu"), RULES["genomics"]), figures=figures)


def write_genotypes(path: Path, *, edge: int, threads: int) -> None:
    """Write a folder of ``edge`` variants of as many samples, and beside it the table of the samples, all used."""
    folder = create_genotypes(path, encoding="two_bit", ploidy=2, variants=edge, samples=edge)
    shares = populations(edge, seed=SEED)

    def write(start: int) -> None:
        calls = chunk_of_genotypes(shares, start=start, stop=min(start + SLAB, edge), seed=SEED)
        codes = np.where(calls[:, :, 0] < 0, MISSING_CODE, calls.sum(axis=2)).astype(np.uint8)
        first, second, third, fourth = (codes[:, place::4] for place in range(4))
        folder.write(start, first | second << 2 | third << 4 | fourth << 6)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(0, edge, SLAB)))
    names = [f"S{at:06d}" for at in range(edge)]
    sites = {"contig": "1", "position": np.arange(1, edge + 1), "id": [f"v{at}" for at in range(edge)],
             "reference": "A", "alternate": "G"}  # fmt: skip
    folder.finish(variants=pd.DataFrame(sites), samples=pd.DataFrame({"sample": names, "label": ""}))
    used = {"sample": names, "label": "", "call_rate": 1.0, "used": True, "reason": ""}
    pd.DataFrame(used).to_parquet("samples.parquet")


def rank(work: Work) -> Found:
    """PageRank of a power-law graph (R-MAT) of a billion edges, from the folder of the graph."""
    figures: dict[str, Any] = write_graph(Path("graph"), edges=work.sized(EDGES, least=1000), device=work.device)
    records = {
        device: step("pagerank", "rank", work, device=device, settings={}, graph=Path("graph"),
                     ranks=Path(device, "ranks.parquet"), convergence=Path(device, "convergence.json"))
        for device in ("cpu", work.device)
    }  # fmt: skip
    for device, record in records.items():
        figures |= {f"{device}: rank": record["seconds"], f"{device}: iterations": record["facts"]["iterations"]}
    return Found(checks=compare(Path(work.device), Path("cpu"), RULES["pagerank"]), figures=figures)


def write_graph(path: Path, *, edges: int, device: str) -> dict[str, int]:
    """Draw edges, each counting once, on the device, and write the graph; return how large it is.

    Vertices are renamed by a bijection of their numbers, so that these tell nothing.
    """
    xp = resolve(device).xp
    bits = max(2, round(log2(edges / EDGES_A_VERTEX)))
    vertices, generator = 1 << bits, xp.random.default_rng(SEED)
    keys = xp.empty(edges, xp.int64)
    for start in range(0, edges, DRAWN):
        source, target = ends(generator, bits, min(DRAWN, edges - start), xp=xp) * 0x9E3779B1 % vertices
        keys[start : start + DRAWN] = target << bits | source
    keys.sort()
    keys = keys[xp.concatenate([xp.ones(1, bool), keys[1:] != keys[:-1]])]
    on_host = resolve(device).to_host
    counts, sources = (
        on_host(xp.bincount(keys >> bits, minlength=vertices)),
        on_host((keys % vertices).astype(xp.int32)),
    )
    with GraphWriter(path, ids=np.arange(vertices), weighted=False) as writer:
        writer.append(0, counts, sources, None)
        graph = writer.finish()
    return {"vertices": graph.vertices, "edges": graph.edges, "bytes": graph.sources.nbytes}
