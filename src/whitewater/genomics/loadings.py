"""Loadings of the components, in a Zarr group that tells all that a sample needs to be projected.

===================================================== =================================================================
array                                                 what it holds
===================================================== =================================================================
``loadings``                                          float32 (variants, k), unit columns: score = x' w / sqrt(m)
``mean``, ``scale``                                   float64 (variants,): x = (dosage - mean) * scale, 0 where missing
``allele_frequency``                                  float64 (variants,) among the samples used, NaN without calls
``variant_contig``, ``_position``, ``_id``, ``_allele`` which variant; alleles are (variants, 2): reference, alternate
===================================================== =================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whitewater.folder import Format
from whitewater.genomics.components import PrincipalComponents

if TYPE_CHECKING:
    import pandas as pd

FORMAT = Format("zarr.json", 1, "loadings", remedy="Run the step pca again.")
CHUNK_CELLS = 1 << 20


@dataclass(frozen=True)
class Loadings:
    """What `write_loadings` wrote, with a row for each variant.

    ``values`` float32 (variants, k); ``mean``, ``scale``, ``allele_frequency`` float64; ``position`` int64; ``contig``,
    ``id``, ``reference`` and ``alternate`` text (object); ``eigenvalues`` float64 (k,); ``samples`` the number used.
    """

    values: npt.NDArray[np.float32]
    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    allele_frequency: npt.NDArray[np.float64]
    contig: npt.NDArray[Any]
    position: npt.NDArray[np.int64]
    id: npt.NDArray[Any]
    reference: npt.NDArray[Any]
    alternate: npt.NDArray[Any]
    eigenvalues: npt.NDArray[np.float64]
    samples: int
    ploidy: int


def write_loadings(path: Path, found: PrincipalComponents, *, scaling: dict[str, Any]) -> None:
    """Compute the loadings, one more pass over the genotypes, and write them range by range."""
    import zarr

    genotypes, spectrum = found.genotypes, found.spectrum
    attributes = {
        "format": FORMAT.version,
        "eigenvalues": spectrum.eigenvalues.tolist(),
        "samples": genotypes.samples,
        "variants": genotypes.varying,
        "ploidy": genotypes.folder.ploidy,
        "scaling": scaling,
    }
    group = zarr.open_group(path, mode="w-", zarr_format=3, attributes=attributes)
    rows, size = genotypes.folder.variants, len(spectrum.eigenvalues)
    values = _array(group, "loadings", shape=(rows, size), dtype=np.dtype(np.float32))
    weights = spectrum.vectors / np.sqrt(genotypes.varying * spectrum.eigenvalues)
    for (start, stop), part in genotypes.transpose_times(genotypes.device.from_host(weights)):
        values[start:stop] = part
    for name in ("mean", "scale", "allele_frequency"):
        _write(group, name, getattr(found.scaling, name))
    _write_variants(group, genotypes.folder.variants_table(["contig", "position", "id", "reference", "alternate"]))


def read_loadings(path: Path) -> Loadings:
    """Read what `write_loadings` wrote.

    Raises
    ------
    InputError
        If it is not there, or of another format.
    IntegrityError
        If a part of it is missing or damaged.
    """
    from whitewater.zarr_arrays import open_group

    group = open_group(str(path))
    attributes = group.attributes
    FORMAT.check_version(path, attributes.get("format"))

    def whole(name: str) -> npt.NDArray[Any]:
        array = group.array(name)
        return array.read(tuple(slice(0, size) for size in array.shape))

    alleles = whole("variant_allele")
    return Loadings(
        values=whole("loadings"),
        mean=whole("mean"),
        scale=whole("scale"),
        allele_frequency=whole("allele_frequency"),
        contig=whole("variant_contig"),
        position=whole("variant_position"),
        id=whole("variant_id"),
        reference=alleles[:, 0],
        alternate=alleles[:, 1],
        eigenvalues=np.array(attributes["eigenvalues"], np.float64),
        samples=int(attributes["samples"]),
        ploidy=int(attributes["ploidy"]),
    )


def _write_variants(group: Any, variants: pd.DataFrame) -> None:
    _write(group, "variant_position", variants["position"].to_numpy(np.int64))
    for name in ("contig", "id"):
        _write_text(group, f"variant_{name}", variants[[name]], shape=(len(variants),))
    _write_text(group, "variant_allele", variants[["reference", "alternate"]], shape=(len(variants), 2))


def _write(group: Any, name: str, values: npt.NDArray[Any]) -> None:
    _array(group, name, shape=values.shape, dtype=values.dtype)[...] = values


def _write_text(group: Any, name: str, columns: pd.DataFrame, *, shape: tuple[int, ...]) -> None:
    """Write text, a chunk at a time: as Python's strings the whole would be large."""
    array = _array(group, name, shape=shape, dtype=str)
    for start in range(0, shape[0], array.chunks[0]):
        stop = min(start + array.chunks[0], shape[0])
        text = columns.iloc[start:stop].to_numpy(dtype=object).reshape(stop - start, *shape[1:])
        # zarr 3.1 writes text in the order of memory, which for columns of a table is not that of the array.
        array[start:stop] = np.ascontiguousarray(text)


def _array(group: Any, name: str, *, shape: tuple[int, ...], dtype: Any) -> Any:
    rows = max(1, min(shape[0], CHUNK_CELLS // int(np.prod(shape[1:]))))
    # Chunks that hold nothing but zeros are written too, so that one that is not there is known to be lost.
    return group.create_array(
        name, shape=shape, dtype=dtype, chunks=(rows, *shape[1:]), config={"write_empty_chunks": True}
    )
