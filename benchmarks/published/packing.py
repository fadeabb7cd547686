"""R12: genotypes kept packed, four a byte, and unpacked block by block on use.

The array is that of R10, 1e7 variants x 2e4 samples of uint8, but with frequencies of alleles as they are in nature, on
which the ratio of Blosc depends: log-uniform from 0.002 to 0.5, variants independent, 1 % of the calls missing (3). Of
random play data Blosc could not spare more than two bits do.

``keep``: the kept form is made of the array in memory. ``use``: every kept block is unpacked and multiplied, as a pass
of an SVD does it: X' M, M being float32 with ten columns. M holds small integers, so that all sums are exact.

``kept_bytes`` and ``ratio`` (to uint8) are among the phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import BOTH, ONE_BLAS_THREAD, SEED, CallCase, Row, Timed, Variant, Work
from benchmarks.published.svd_genotypes import CHUNK, bands, cells, cuts, shape, size
from benchmarks.published.two_bit import packed, slab_rows, slabs
from whitewater.engines import Device
from whitewater.genotypes.genotypes import Genotypes

FREQUENCIES = (0.002, 0.5)
MISSING = 0.01
COLUMNS = 10
LARGEST = 8
# A prime, so that few shifts and swaps keep a checksum; small enough for float64 to hold it to the last digit.
PLACES = 101
# Rows of a block that stay in the cache while they are drawn, or described.
SLAB = 256
Bytes = npt.NDArray[np.uint8]
Preparing = Callable[..., AbstractContextManager[Timed]]


def draw(row: int, stop: int, columns: int) -> Bytes:
    """Return dosages of some variants, uint8 (rows, columns), 3 where the call is missing; the same on every call."""
    random = np.random.default_rng([SEED, row])
    least, most = np.log(FREQUENCIES)
    alternate = np.exp(random.uniform(least, most, stop - row))[:, None]
    shares = np.stack([(1 - alternate) ** 2, 1 - alternate**2, np.ones_like(alternate)]) * (1 - MISSING)
    limits = np.round(shares * (1 << 16)).astype(np.uint16)
    values = np.empty((stop - row, columns), np.uint8)
    for start in range(0, len(values), SLAB):
        part = slice(start, start + SLAB)
        drawn = random.integers(0, 1 << 16, values[part].shape, dtype=np.uint16)
        np.greater_equal(drawn, limits[0, part], out=values[part].view(bool))
        for limit in limits[1:, part]:
            values[part] += drawn >= limit
    return values


def drawn(bounds: tuple[int, int], *, columns: int) -> Bytes:
    """Return the variants within bounds."""
    return draw(*bounds, columns)


def draw_factor(row: int, stop: int) -> npt.NDArray[np.float32]:
    """Return rows of M, float32 (rows, 10)."""
    random = np.random.default_rng([SEED, row, COLUMNS])
    return random.integers(-LARGEST, LARGEST + 1, (stop - row, COLUMNS)).astype(np.float32)


# -------------------------------------------------------------------------------------------------- the published code


def compress(x: Any) -> Any:
    """Pack four columns a byte, by shifts."""
    return x[:, 0::4] | x[:, 1::4] << 2 | x[:, 2::4] << 4 | x[:, 3::4] << 6


def decompress(codes: Any, device: Device) -> Any:
    """Undo `compress`, by masks and shifts."""
    x = device.xp.empty((codes.shape[0], 4 * codes.shape[1]), codes.dtype)
    for place in range(4):
        x[:, place::4] = (codes & (0b11 << 2 * place)) >> 2 * place
    return x


@contextmanager
def published_keep(work: Work) -> Iterator[Timed]:
    """``x.map_blocks(compress).persist()``."""
    from distributed import wait

    with dask_client(work.device, work.cluster, threads=work.threads):
        x = dask_array(work).persist()
        wait(x)

        def keep() -> Any:
            # Under a new name, or else Dask would find the chunks of the call before.
            kept = packed_blocks(x, name=f"compress-{uuid4()}").persist()
            wait(kept)
            return kept

        yield Timed(keep, answer=partial(published_answer, work), phases=lambda: ratio(work, cells(work) // 4))


@contextmanager
def published_use(work: Work) -> Iterator[Timed]:
    """``x.map_blocks(compress).persist().map_blocks(decompress)``, multiplied."""
    import dask.array as da
    from distributed import wait

    device, empty = work.device, work.device.xp.empty((0, 0), np.uint8)
    with dask_client(device, work.cluster, threads=work.threads):
        kept, factor = packed_blocks(dask_array(work)).persist(), dask_factor(work).persist()
        wait([kept, factor])
        widths = tuple(4 * width for width in kept.chunks[1])
        x = kept.map_blocks(decompress, device, chunks=(kept.chunks[0], widths), dtype=np.uint8, meta=empty)
        yield Timed(
            lambda: da.dot(x.T, factor).compute(),
            answer=lambda product: checked(device.to_host(product).T),
            phases=lambda: ratio(work, cells(work) // 4),
        )


def packed_blocks(x: Any, *, name: str | None = None) -> Any:
    """Return the array of packed chunks."""
    widths = tuple(width // 4 for width in x.chunks[1])
    return x.map_blocks(compress, name=name, chunks=(x.chunks[0], widths), dtype=np.uint8, meta=x._meta)


def dask_array(work: Work) -> Any:
    """Return the genotypes as a Dask array of the device's chunks, of all columns each."""
    import dask.array as da

    rows, columns = shape(work)
    sizes = (heights(rows), (columns,))
    empty = work.device.xp.empty((0, 0), np.uint8)
    return da.map_blocks(drawn_at, device=work.device, chunks=sizes, dtype=np.uint8, meta=empty)


def dask_factor(work: Work) -> Any:
    """Return M as a Dask array."""
    import dask.array as da

    sizes, empty = (heights(shape(work)[0]), (COLUMNS,)), work.device.xp.empty((0, 0), np.float32)
    return da.map_blocks(factor_at, device=work.device, chunks=sizes, dtype=np.float32, meta=empty)


def heights(rows: int) -> tuple[int, ...]:
    """Return the rows of each chunk."""
    return tuple(np.diff(cuts(rows, CHUNK[0])).tolist())


def drawn_at(device: Device, block_info: Any = None) -> Any:
    """Return the chunk at a place that Dask names, on the device."""
    (row, stop), (_, columns) = block_info[None]["array-location"]
    return device.to_device(draw(row, stop, columns))


def factor_at(device: Device, block_info: Any = None) -> Any:
    """Return the rows of M at a place that Dask names, on the device."""
    return device.to_device(draw_factor(*block_info[None]["array-location"][0]))


def published_answer(work: Work, kept: Any) -> JsonValue:
    """Unpack what was persisted, and return what is compared."""
    parts = kept.to_delayed().ravel()
    blocks = (work.device.to_host(decompress(part.compute(), work.device)) for part in parts)
    return described(blocks, [row for row, _ in bands(work)])


# -------------------------------------------------------------------------------------- ours and the peers, on threads


@dataclass(frozen=True)
class Form:
    """A form that genotypes are kept in: how a block comes into it and out of it, and what it takes.

    ``multiply`` is given a kept block and the rows of M, (rows, 10), and returns X' M transposed, (10, columns), on the
    host. ``restore`` returns the block as uint8 on the host, and ``stored`` counts the bytes.
    """

    keep: Callable[[Any], Any]
    multiply: Callable[[Any, Any], npt.NDArray[Any]]
    restore: Callable[[Any], Bytes]
    stored: Callable[[Any], int]


@contextmanager
def keeping(work: Work, form_of: Callable[[Work], Form]) -> Iterator[Timed]:
    """Make the kept form of blocks in memory, on threads."""
    form, device, columns = form_of(work), work.device, shape(work)[1]
    sizes: list[int] = []

    def answer(kept: Sequence[Any]) -> JsonValue:
        sizes[:] = [form.stored(each) for each in kept]
        return described(map(form.restore, kept), [row for row, _ in bands(work)])

    with ThreadPoolExecutor(work.threads) as pool:
        blocks = [device.to_device(block) for block in pool.map(partial(drawn, columns=columns), bands(work))]
        yield Timed(lambda: list(pool.map(form.keep, blocks)), answer=answer, phases=lambda: ratio(work, sum(sizes)))


@contextmanager
def using(work: Work, form_of: Callable[[Work], Form]) -> Iterator[Timed]:
    """Multiply all kept blocks, on threads."""
    form, device, columns = form_of(work), work.device, shape(work)[1]

    def kept_block(bounds: tuple[int, int]) -> tuple[Any, Any]:
        return form.keep(device.to_device(draw(*bounds, columns))), device.to_device(draw_factor(*bounds))

    with ThreadPoolExecutor(work.threads) as pool:
        kept = list(pool.map(kept_block, bands(work)))
        stored = sum(form.stored(block) for block, _ in kept)

        def use() -> npt.NDArray[Any]:
            total = np.zeros((COLUMNS, columns))
            for part in pool.map(lambda each: form.multiply(*each), kept):
                total += part
            return total

        yield Timed(use, answer=checked, phases=lambda: ratio(work, stored))


def two_bits(work: Work) -> Form:
    """Two bits a genotype, looked up slab by slab as Whitewater's passes do it."""
    device = work.device
    xp = device.xp

    def multiply(genotypes: Genotypes, factor: Any) -> npt.NDArray[Any]:
        total = xp.zeros((COLUMNS, genotypes.columns), xp.float32)
        # BLAS is fastest with the long side of both narrow matrices along their rows.
        wide = xp.ascontiguousarray(factor.T)
        for start, slab in slabs(genotypes, device):
            total += wide[:, start : start + len(slab)] @ slab
        return device.to_host(total[:, genotypes.sample_columns(xp)])

    def restore(genotypes: Genotypes) -> Bytes:
        # By planes, of which a byte holds a genotype each.
        planes = (slab.reshape(len(slab), 4, -1) for _, slab in slabs(genotypes, device))
        values = [plane.transpose(0, 2, 1).reshape(len(plane), -1) for plane in planes]
        return device.to_host(xp.concatenate(values).astype(xp.uint8))

    return Form(partial(packed, device=device), multiply, restore, lambda genotypes: int(genotypes.codes.nbytes))


def plain(work: Work) -> Form:
    """One byte a genotype, as it is."""
    return Form(np.copy, partial(multiply_bytes, work.device), lambda block: block, lambda block: int(block.nbytes))


def blosc(work: Work) -> Form:
    """Blosc: LZ4 at level 3 after a shuffle of bits, on one thread a block."""
    import numcodecs.blosc

    numcodecs.blosc.use_threads = False
    codec = numcodecs.blosc.Blosc(cname="lz4", clevel=3, shuffle=numcodecs.blosc.BITSHUFFLE)

    def restore(kept: bytes) -> Bytes:
        return np.frombuffer(codec.decode(kept), np.uint8).reshape(-1, shape(work)[1])

    def multiply(kept: bytes, factor: Any) -> npt.NDArray[Any]:
        return multiply_bytes(work.device, restore(kept), factor)

    return Form(codec.encode, multiply, restore, len)


def multiply_bytes(device: Device, block: Bytes, factor: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """Return X' M, transposed, of a block of uint8, which is converted a slab at a time."""
    rows = slab_rows(block.shape[1], len(block), device)
    buffer, total = np.empty((rows, block.shape[1]), np.float32), np.zeros((COLUMNS, block.shape[1]), np.float32)
    wide = np.ascontiguousarray(factor.T)
    for start in range(0, len(block), rows):
        part = block[start : start + rows]
        values = buffer[: len(part)]
        values[...] = part
        total += wide[:, start : start + rows] @ values
    return total


# -------------------------------------------------------------------------------------------------------------- answer


def described(blocks: Iterable[Bytes], starts: Sequence[int]) -> JsonValue:
    """Return how often each value occurs in blocks of rows, and a checksum of which is where."""
    counts, checksum = np.zeros(4, np.int64), 0
    for row, block in zip(starts, blocks, strict=True):
        columns = places(0, block.shape[1]).astype(np.float32)
        for start in range(0, len(block), SLAB):
            part = block[start : start + SLAB]
            counts += [np.count_nonzero(part == value) for value in range(4)]
            # Of a row the sum is below 2^24, so that float32 holds it.
            sums = (part.astype(np.float32) @ columns).astype(np.int64)
            checksum += int(places(row + start, len(part)) @ sums)
    return {"counts": list(map(int, counts)), "checksum": checksum}


def checked(product: npt.NDArray[Any]) -> JsonValue:
    """Return the ten sums of X' M, transposed, and with each column weighted by its place."""
    exact = np.asarray(product).astype(np.int64)
    return {"sums": exact.sum(axis=1).tolist(), "checksums": (exact @ places(0, exact.shape[1])).tolist()}


def places(start: int, size: int) -> npt.NDArray[np.int64]:
    """Return the weight of each place from ``start`` on."""
    return 1 + np.arange(start, start + size, dtype=np.int64) % PLACES


def ratio(work: Work, kept_bytes: int) -> dict[str, float]:
    """Return what is kept, in bytes and as a share of the array of uint8."""
    return {"kept_bytes": float(kept_bytes), "ratio": kept_bytes / cells(work)}


def operations(work: Work) -> float:
    """Return the operations of the product."""
    return 2.0 * cells(work) * COLUMNS


def variants(ours: str, of: Preparing, published: Preparing) -> tuple[Variant, ...]:
    """Return the variants of a case; ``of`` is given a form besides its work.

    The application unpacks on use as ours does, by `expand_genotypes`; it packs alleles, though, not dosages.
    """
    return (
        Variant(ours, partial(of, form_of=two_bits), devices=BOTH, environment=ONE_BLAS_THREAD, memory=1.3),
        Variant("as_published", published, devices=BOTH, environment=ONE_BLAS_THREAD, memory=2.3),
        Variant("blosc", partial(of, form_of=blosc), packages=("numcodecs",), environment=ONE_BLAS_THREAD, memory=1.5),
        Variant("numpy", partial(of, form_of=plain), environment=ONE_BLAS_THREAD, memory=2.1),
    )


ROW = Row(
    id="R12",
    name="packing",
    title="genotypes kept four a byte, and unpacked by block on use; 1e7 x 2e4 of uint8",
    cases=(
        CallCase(name="keep", variants=variants("tuned", keeping, published_keep), oracle="numpy", size=size),
        CallCase(
            name="use",
            variants=variants("whitewater", using, published_use),
            oracle="numpy",
            size=size,
            operations=operations,
        ),
    ),
)
