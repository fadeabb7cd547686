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

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater import lazy_pandas as pd
from whitewater.genotypes.pca.components import PrincipalComponents
from whitewater.io.folder import Format

FORMAT = Format("zarr.json", 1, "loadings", remedy="Run the step pca again.")
CHUNK_CELLS = 1 << 20
VARIANTS, ALLELES = ["contig", "position", "id"], ["reference", "alternate"]
SCALING = ("mean", "scale", "allele_frequency")


@dataclass(frozen=True)
class Loadings:
    """What `write_loadings` wrote, with a row for each variant.

    ``weights`` float32 (variants, k); ``scaling`` as `whitewater.genotypes.pca.passes.scaling` returns it;
    ``variants``: contig, position, id, reference, alternate; ``eigenvalues`` float64 (k,).
    """

    weights: npt.NDArray[np.float32]
    scaling: "pd.DataFrame"
    variants: "pd.DataFrame"
    eigenvalues: npt.NDArray[np.float64]
    ploidy: int


def write_loadings(path: Path, components: PrincipalComponents, *, scaling: dict[str, Any]) -> None:
    """Compute the loadings, one more pass over the genotypes, and write them range by range."""
    import zarr

    genotypes, spectrum = components.genotypes, components.spectrum
    attributes = {
        "format": FORMAT.version,
        "eigenvalues": spectrum.eigenvalues.tolist(),
        "samples": genotypes.samples,
        "variants": genotypes.varying,
        "ploidy": genotypes.shared.folder.ploidy,
        "scaling": scaling,
    }
    group = zarr.open_group(path, mode="w-", zarr_format=3, attributes=attributes)
    rows, size = genotypes.shared.folder.variants, len(spectrum.eigenvalues)
    values = _array(group, "loadings", shape=(rows, size), dtype=np.dtype(np.float32))
    weights = spectrum.vectors / np.sqrt(genotypes.varying * spectrum.eigenvalues)
    start = 0
    for part in genotypes.transpose_times(genotypes.shared.local_device.to_device(weights)):
        values[start : start + len(part)] = part
        start += len(part)
    table = genotypes.shared.folder.variants_table([*VARIANTS, *ALLELES])
    for name, numbers in components.scaling.assign(variant_position=table["position"]).items():
        _write(group, str(name), numbers, numbers.dtype)
    for name, text in (("contig", table["contig"]), ("id", table["id"]), ("allele", table[ALLELES])):
        _write(group, f"variant_{name}", text, str)


def read_loadings(path: Path) -> Loadings:
    """Read what `write_loadings` wrote.

    Raises InputError if it is not there, or of another format, and IntegrityError if a part of it is missing or
    damaged.
    """
    from whitewater.io.zarr_arrays import open_group

    group = open_group(str(path))
    attributes = group.attributes
    FORMAT.check_version(path, attributes.get("format"))

    def whole(name: str) -> npt.NDArray[Any]:
        return group.array(name).read()

    variants = pd.DataFrame({name: whole(f"variant_{name}") for name in VARIANTS})
    variants[ALLELES] = whole("variant_allele")
    return Loadings(
        whole("loadings"),
        pd.DataFrame({name: whole(name) for name in SCALING}),
        variants,
        np.array(attributes["eigenvalues"], np.float64),
        int(attributes["ploidy"]),
    )


def _write(group: Any, name: str, rows: Any, dtype: Any) -> None:
    """Write an array, or columns of a table, a chunk at a time: as Python's strings the whole would be large."""
    array = _array(group, name, shape=rows.shape, dtype=dtype)
    for start in range(0, len(rows), array.chunks[0]):
        # zarr 3.1 writes text in the order of memory, which for columns of a table is not that of the array.
        part = np.ascontiguousarray(rows[start : start + array.chunks[0]])
        array[start : start + len(part)] = part


def _array(group: Any, name: str, *, shape: tuple[int, ...], dtype: Any) -> Any:
    rows = max(1, min(shape[0], CHUNK_CELLS // int(np.prod(shape[1:]))))
    # Chunks that hold nothing but zeros are written too, so that one that is not there is known to be lost.
    return group.create_array(
        name, shape=shape, dtype=dtype, chunks=(rows, *shape[1:]), config={"write_empty_chunks": True}
    )
