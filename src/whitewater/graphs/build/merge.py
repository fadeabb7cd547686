"""Edges of any order made to rows of in-edges: encoded, cut into buckets by target, sorted and merged.

Sorting: LSD radix sort (Knuth, The Art of Computer Programming, volume 3, section 5.2.5) of buckets that fit into the
cache of a core (Polychroniou, Ross: A comprehensive study of main-memory partitioning, SIGMOD 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whitewater.engines import Array, Device
from whitewater.graphs.build import merge_cpu
from whitewater.graphs.build.keys import BucketedEdges, CodeNumbers, EdgeEncoder, IdSpan, KeyedEdges, MergedEdges, Rule


def edge_encoder(span: IdSpan | None, device: Device, *, symmetric: bool, weighted: bool, rows: int) -> EdgeEncoder:
    """Return an empty encoder for ``rows`` edges at most; one task makes one and is done with it.

    With a span all ids are in it and the codes of all encoders agree; without one each has codes of its own.
    ``symmetric`` adds the opposite of each edge that is no self-loop.
    """
    if device.name == "gpu":
        from whitewater.graphs.build.merge_gpu import GpuEncoder

        return GpuEncoder(span, symmetric=symmetric)
    if span is None:
        return merge_cpu.HashEncoder(symmetric=symmetric, weighted=weighted, rows=rows)
    return merge_cpu.SpanEncoder(span, symmetric=symmetric, weighted=weighted, rows=rows)


def recode_edges(edges: KeyedEdges, table: Array, device: Device) -> KeyedEdges:
    """Return edges with codes looked up in a table, uint32 (codes,)."""
    if device.name == "gpu":
        from whitewater.graphs.build.merge_gpu import gpu_recode_edges

        return gpu_recode_edges(edges, table)
    return merge_cpu.recode_edges(edges, table)


def bucket_edges(edges: KeyedEdges, device: Device, *, shift: int, buckets: int) -> BucketedEdges:
    """Order edges by bucket, the code of the target shifted right by ``shift``; on the device."""
    if device.name == "gpu":
        from whitewater.graphs.build.merge_gpu import gpu_bucket_edges

        return gpu_bucket_edges(edges, shift, buckets)
    return merge_cpu.bucket_edges(edges, shift, buckets)


def merge_edges(
    buckets: Iterable[Sequence[KeyedEdges]], numbers: CodeNumbers, vertices: range, device: Device, *, rule: Rule,
    index: str, weighted: bool, edges: int
) -> MergedEdges:  # fmt: skip
    """Sort edges by target, then source, and make one of those with the same ends.

    ``buckets`` are the pieces of each bucket, in ascending order, on the host, ``edges`` in all; ``numbers`` are
    those of the vertex of each code, on the host, and ``vertices`` those of the targets. By ``rule`` edges with the
    same ends get the sum of their weights (in ascending order), or else the maximum; edges without any count 1
    each. ``index`` is the dtype of the sources, and ``weighted`` says whether the result has weights.
    """
    if device.name == "gpu":
        from whitewater.graphs.build.merge_gpu import gpu_merge_edges

        pieces = [piece for bucket in buckets for piece in bucket]
        return gpu_merge_edges(pieces, numbers, vertices, rule, index, weighted=weighted)
    return merge_cpu.merge_edges(buckets, numbers, vertices, rule, index, weighted=weighted, edges=edges)
