"""Loadings of the components, in a Zarr group with all that projection needs.

- ``loadings``: float32 (variants, k), unit columns: score = x' w / sqrt(m)
- ``mean``, ``scale``: float64 (variants,): x = (dosage - mean) * scale, 0 if missing
- ``allele_frequency``: float64 (variants,) among the samples used, NaN without calls
- ``variant_contig``, ``variant_position``, ``variant_id``; ``variant_allele`` (variants, 2): reference, alternate
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


@dataclass(frozen=True)
class Loadings:
    """The loadings that `write_loadings` wrote, a row per variant."""

    weights: npt.NDArray[np.float32]  # (variants, k)
    scaling: "pd.DataFrame"  # see `compute_scaling`
    variants: "pd.DataFrame"  # contig, position, id, reference, alternate
    eigenvalues: npt.NDArray[np.float64]  # (k,)
    ploidy: int


def write_loadings(path: Path, components: PrincipalComponents, *, scaling: dict[str, Any]) -> None:
    """Compute the loadings in one more pass over the genotypes, and write them range by range."""
    import zarr

    genotypes, spectrum = components.genotypes, components.spectrum
    attributes = {
        "format": FORMAT.version,
        "eigenvalues": spectrum.eigenvalues.tolist(),
        "samples": genotypes.samples,
        "variants": genotypes.varying,
        "ploidy": genotypes.raw.folder.ploidy,
        "scaling": scaling,
    }
    group = zarr.open_group(path, mode="w-", zarr_format=3, attributes=attributes)
    rows, size = genotypes.raw.folder.variants, len(spectrum.eigenvalues)
    values = _array(group, "loadings", shape=(rows, size), dtype=np.dtype(np.float32))
    weights = spectrum.vectors / np.sqrt(genotypes.varying * spectrum.eigenvalues)
    start = 0
    for part in genotypes.transpose_times(genotypes.raw.local_device.to_device(weights)):
        values[start : start + len(part)] = part
        start += len(part)
    table = genotypes.raw.folder.variants_table([*VARIANTS, *ALLELES])
    for name, numbers in components.scaling.assign(variant_position=table["position"]).items():
        _write(group, str(name), numbers, numbers.dtype)
    for name, text in (("contig", table["contig"]), ("id", table["id"]), ("allele", table[ALLELES])):
        _write(group, f"variant_{name}", text, str)


def read_loadings(path: Path) -> Loadings:
    """Read loadings. Raises InputError if missing or of another format, IntegrityError if incomplete or damaged."""
    from whitewater.io.zarr_arrays import open_group

    group = open_group(str(path))
    attributes = group.attributes
    FORMAT.check_version(path, attributes.get("format"))

    def read(name: str) -> npt.NDArray[Any]:
        return group.array(name).read()

    variants = pd.DataFrame({name: read(f"variant_{name}") for name in VARIANTS})
    variants[ALLELES] = read("variant_allele")
    return Loadings(
        read("loadings"),
        pd.DataFrame({name: read(name) for name in ("mean", "scale", "allele_frequency")}),
        variants,
        np.array(attributes["eigenvalues"], np.float64),
        int(attributes["ploidy"]),
    )


def _write(group: Any, name: str, rows: Any, dtype: Any) -> None:
    """Write an array, or columns of a table, chunk by chunk, because Python strings take much memory."""
    array = _array(group, name, shape=rows.shape, dtype=dtype)
    for start in range(0, len(rows), array.chunks[0]):
        # zarr 3.1 writes text in the order of memory, which columns of a table need not share with the array.
        part = np.ascontiguousarray(rows[start : start + array.chunks[0]])
        array[start : start + len(part)] = part


def _array(group: Any, name: str, *, shape: tuple[int, ...], dtype: Any) -> Any:
    rows = max(1, min(shape[0], CHUNK_CELLS // int(np.prod(shape[1:]))))
    # Chunks of zeros are written, too, so that a missing chunk is known to be lost.
    return group.create_array(
        name, shape=shape, dtype=dtype, chunks=(rows, *shape[1:]), config={"write_empty_chunks": True}
    )
