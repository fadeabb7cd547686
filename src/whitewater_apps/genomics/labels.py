"""Labels of samples, such as their populations, from a table."""

from __future__ import annotations

import csv
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from whitewater.errors import InputError, shorten_list
from whitewater.io.download import Downloads
from whitewater.io.remote import local_path
from whitewater.io.store import exclusive
from whitewater_apps.genomics.config import Labels

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

DATA = Path("data/genomics")
PARQUET = (".parquet", ".pq")
SEPARATORS = {",": ",", "\t": "\t", ";": ";", r"\s+": None}
QUOTED = r'^\s*"(.*)"\s*$'
FORMS = "Save it as Parquet, or as uncompressed UTF-8 text with a name for every column."


def labels_of(samples: Sequence[str], labels: Mapping[str, str], *, table: str) -> list[str | None]:
    """Return the label of each sample, None of one that has none; how many these are is logged.

    Raises InputError if no sample has one: the names are of another kind.
    """
    of_samples = [labels.get(sample) for sample in samples]
    unlabeled = [sample for sample, label in zip(samples, of_samples, strict=True) if label is None]
    if len(unlabeled) == len(samples):
        raise InputError(
            f"{table} labels none of the samples: it names {shorten_list(list(labels)) or 'none'}, the genotypes' "
            f"samples are {shorten_list(samples)}. Check genomics.ingest.labels.sample_column."
        )
    if unlabeled:
        names = shorten_list(unlabeled)
        logger.warning("%d of %d samples have no label in %s: %s", len(unlabeled), len(samples), table, names)
    return of_samples


def local_table(table: str, *, refresh: bool = False) -> Path:
    """Return where a table is on this machine; one of a URL is downloaded, unless it was before, or to ``refresh`` it.

    Raises InputError if it is missing or cannot be downloaded.
    """
    path = local_path(table)
    if path is None:
        DATA.mkdir(parents=True, exist_ok=True)
        with exclusive(DATA / ".labels.lock"):
            return Path(Downloads(DATA, refresh=refresh).get([table])[0].path)
    if not path.is_file():
        raise InputError(f"{path} does not exist. Check genomics.ingest.labels.table.")
    return path


def read_labels(path: Path, settings: Labels) -> dict[str, str]:
    """Read a table of labels: Parquet, or text with a header, separated by commas, tabs, semicolons or spaces.

    Returns the label of each sample that has one; blanks around names and labels are cut off.

    Raises InputError if the table is unreadable, lacks a column, or gives a sample two labels.
    """
    table = _read(path, (settings.sample_column, settings.label_column))
    # Whole numbers that a missing one has made real ones are whole again: 7, not 7.0.
    pairs = table[[settings.sample_column, settings.label_column]].convert_dtypes().dropna().astype("str")
    pairs.columns = ["sample", "label"]
    pairs = pairs.assign(sample=pairs["sample"].str.strip(), label=pairs["label"].str.strip()).drop_duplicates()
    pairs = pairs[(pairs != "").all(axis=1)]
    twice = pairs["sample"].duplicated(keep=False)
    if twice.any():
        labels = pairs[twice].groupby("sample", sort=False)["label"].agg(" and ".join)
        listed = shorten_list([f"{sample} ({both})" for sample, both in labels.items()])
        raise InputError(f"{path} gives {len(labels)} samples more than one label: {listed}. Keep one row for each.")
    return dict(zip(pairs["sample"], pairs["label"], strict=True))


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a table as it is stored, or a text file as text; refuse one that has not each of the columns once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() in PARQUET:
            stored = pq.read_table(path)
            stored.validate(full=True)  # of text, that it is UTF-8
            table: pd.DataFrame = stored.to_pandas()
        else:
            table = _read_text(path, columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a readable table of labels: {str(error).strip()}. {FORMS}") from error
    names = list(table.columns)
    if repeated := [name for name in dict.fromkeys(columns) if names.count(name) > 1]:
        raise InputError(f"{path} has more than one column {' and '.join(repeated)}. Rename or remove all but one.")
    if absent := [name for name in columns if name not in names]:
        raise InputError(
            f"{path} has no column {' and '.join(absent)}; it has {', '.join(map(str, names))}. Set "
            "genomics.ingest.labels.sample_column and label_column."
        )
    return table


def _read_text(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    with path.open(encoding="utf-8-sig") as file:
        header = file.readline().rstrip("\r\n")
    fields = {pattern: [name.strip().strip('"') for name in header.split(by)] for pattern, by in SEPARATORS.items()}
    separator = max(fields, key=lambda pattern: (set(columns) <= set(fields[pattern]), len(fields[pattern])))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if separator in (",", ";") else csv.QUOTE_NONE
    table = pd.read_csv(
        path, sep=separator, header=None, skiprows=1, dtype=str, na_filter=False, encoding="utf-8-sig", quoting=quoting
    )
    table.columns = pd.Index(fields[separator])
    # Quotes between tabs or blanks are not syntax, because of labels like 5"; those around a field are not part of it.
    return table.replace(QUOTED, r"\1", regex=True) if quoting == csv.QUOTE_NONE else table
