"""VCF and BCF files give their calls, whatever their blocks, and are refused where they are damaged."""

import struct
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.genotype_stores import bgzipped
from tests.library.genotypes.encoded import encoded
from whitewater.errors import InputError
from whitewater.genotypes.config import Vcf
from whitewater.genotypes.sources.opening import open_source
from whitewater_apps.genomics.config import Ingest

HEADER = """##fileformat=VCFv4.3
##FILTER=<ID=q10,Description="Quality below 10">
##contig=<ID=1>
##contig=<ID=2>
##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="Depth of alleles">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\tc
"""
RECORDS = """1\t10\trs1\tA\tC\t.\tPASS\tDP=3\tGT:AD\t0/0:1,2\t0|1:1,2\t./.:1,2
1\t20\t.\tG\tT,C\t.\tq10\tDP=3\tGT:AD\t0/2:1,2,3\t1/2:1,2,3\t1|0:1,2,3
1\t30\trs3\tG\t.\t.\t.\tDP=3\tGT:AD\t0/0:1\t0/.:1\t0:1
"""


def vcf(*paths: Path) -> Ingest:
    return Ingest.model_validate({"source": "vcf", "vcf": {"paths": [str(path) for path in paths]}})


def test_vcf_files_are_converted(tmp_path: Path) -> None:
    (tmp_path / "1.vcf").write_text(HEADER + RECORDS)
    (tmp_path / "2.vcf").write_text(HEADER + RECORDS.replace("1\t10", "2\t10").split("\n")[0] + "\n")
    settings = vcf(tmp_path / "1.vcf", tmp_path / "2.vcf")
    source = open_source(settings, {}, scratch=tmp_path / "scratch")
    assert encoded(source)[0].tolist() == [[0, 1, -1], [1, 2, 1], [0, -1, -1], [0, 1, -1]]
    assert source.samples == ("a", "b", "c")
    assert source.origins == settings.vcf.paths
    expected = pd.DataFrame(
        {
            "contig": ["1", "1", "1", "2"],
            "position": [10, 20, 30, 10],
            "id": ["rs1", "1:20:G:T,C", "rs3", "rs1"],
            "reference": ["A", "G", "G", "A"],
            "alternate": ["C", "T,C", "", "C"],
            "alleles": np.array([2, 3, 1, 2], np.int32),
            "filter_pass": [True, False, True, True],
        }
    )
    pd.testing.assert_frame_equal(source.variants_table(), expected)


def test_positions_may_be_beyond_32_bits(tmp_path: Path) -> None:
    (tmp_path / "a.vcf").write_text(HEADER + RECORDS + "1\t99999999999\t.\tA\tC\t.\tPASS\t.\tGT\t0/0\t0/1\t1/1\n")
    source = open_source(vcf(tmp_path / "a.vcf"), {}, scratch=tmp_path / "scratch")
    assert source.variants_table()["position"].tolist() == [10, 20, 30, 99_999_999_999]


def write_indexed(path: Path, records: Mapping[str, str]) -> Path:
    """Write a file of bgzip with a block for each contig, and its index (the tabix specification)."""
    blocks = [HEADER.encode(), *(text.encode() for text in records.values())]
    data = [bgzipped(block) for block in blocks]
    path.write_bytes(b"".join(data) + bgzipped(b""))
    names = "".join(f"{name}\0" for name in records).encode()
    index = b"TBI\1" + struct.pack("<8i", len(records), 2, 1, 2, 0, ord("#"), 0, len(names)) + names
    ends = np.cumsum([len(each) for each in data]).tolist()
    for (start, stop), text in zip(pairwise(ends), records.values(), strict=True):
        chunk = struct.pack("<QQ", start << 16, stop << 16)
        counts = chunk + struct.pack("<QQ", text.count("\n"), 0)
        bins = struct.pack("<Ii", 4681, 1) + chunk + struct.pack("<Ii", 37450, 2) + counts
        index += struct.pack("<i", 2) + bins + struct.pack("<iQ", 1, start << 16)
    Path(f"{path}.tbi").write_bytes(bgzipped(index) + bgzipped(b""))
    return path


@pytest.mark.parametrize(("threads", "rows"), [(1, 1), (1, 2), (2, 1000)])
def test_blocks_and_contigs_of_vcf_files_change_nothing_where_ploidies_differ(
    tmp_path: Path, threads: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whitewater.genotypes.sources.vcf.BLOCK_ROWS", rows)
    triploid = "2\t40\trs4\tG\tA\t.\t.\t.\tGT\t0/1/1\t0/0/0\t././.\n"
    path = write_indexed(tmp_path / "a.vcf.gz", {"1": RECORDS, "2": triploid})
    source = open_source(vcf(path), {}, scratch=tmp_path / "scratch", threads=threads)
    assert (source.variants, source.ploidy) == (4, 3)
    assert encoded(source)[0].tolist() == [[-1, -1, -1]] * 3 + [[2, 0, -1]]
    assert source.variants_table()["position"].tolist() == [10, 20, 30, 40]
    diploid = Ingest.model_validate({"source": "vcf", "vcf": {"paths": [str(path)], "ploidy": 2}})
    source = open_source(diploid, {}, scratch=tmp_path / "diploid", threads=threads)
    assert encoded(source)[0].tolist() == [[0, 1, -1], [1, 2, 1], [0, -1, -1], [-1, -1, -1]]
    with pytest.raises(InputError, match="holds calls of 3 alleles at most, but the ploidy is set to 4"):
        open_source(
            diploid.model_copy(update={"vcf": Vcf(paths=(str(path),), ploidy=4)}), {}, scratch=tmp_path / "four"
        )


def test_vcf_files_that_hold_the_same_region_are_refused(tmp_path: Path) -> None:
    for name in ("1.vcf", "2.vcf"):
        (tmp_path / name).write_text(HEADER + RECORDS)
    with pytest.raises(InputError, match=r"1\.vcf and .*2\.vcf both hold contig 1 at 10\. Give files that share no"):
        open_source(vcf(tmp_path / "1.vcf", tmp_path / "2.vcf"), {}, scratch=tmp_path / "scratch")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEADER + RECORDS + "2\t5\t.\tA\tC\t.\t.\t.\tGT\t0/0\t0/0\t0/0\n",
            r"a\.vcf.* 2:5, but has no index. Run `bgzip a",
        ),
        ("no VCF", r"a\.vcf cannot be read: .*a\.vcf is not valid bcf or vcf"),
        (HEADER.replace("\ta\tb\tc", "\ta\tb\ta") + RECORDS, r"a\.vcf names 1 samples more than once: a\. "),
        (HEADER.replace("\ta\tb", " a b") + RECORDS, r"a\.vcf cannot be read: .*spaces are present instead of tabs"),
        (HEADER.replace("##contig=<ID=1>\n", "") + RECORDS, r"a\.vcf: the header does not declare the contig 1 of"),
        ((HEADER + RECORDS).replace("\tq10", "\tq99"), r"a\.vcf: the record at 1:20 has a filter .* ##FILTER=<ID=q99"),
        ((HEADER + RECORDS).replace("ID=GT", "ID=GQ").replace("GT:AD", "GQ:AD"), r"a\.vcf holds no genotypes"),
        (HEADER.replace("\ta\tb\tc", "\ta\tb\t\xfc") + RECORDS, r"a\.vcf cannot be read: .*'utf-8' codec can't decode"),
        (HEADER + RECORDS + "1\t40\t.\tA\tC\t.\tPASS\t.\tAD\t1,2\t1,2\t1,2\n", r"after the one at 1:30, .* has no GT"),
        (
            HEADER + RECORDS + "1\t40\t.\tA\tC\t.\t.\t.\tGT:AD\t0/0:1,2\t0/",
            r"a\.vcf: the record after the one at 1:30, in line 12, cannot be read: .* GT data.* at 1:40",
        ),
    ],
    ids=["contigs", "text", "names", "blanks", "header", "filter", "no calls", "Latin-1", "no call", "cut off"],
)
def test_vcf_files_that_cannot_be_read_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.vcf").write_text(text, "latin-1")
    with pytest.raises(InputError, match=message):
        open_source(vcf(tmp_path / "a.vcf"), {}, scratch=tmp_path / "scratch")


def test_a_compressed_vcf_file_that_was_cut_off_between_blocks_is_refused(tmp_path: Path) -> None:
    whole = bgzipped(HEADER.encode()) + bgzipped(RECORDS.encode())
    file = tmp_path / "a.vcf.gz"
    file.write_bytes(whole + bgzipped(b""))
    assert open_source(vcf(file), {}, scratch=tmp_path / "scratch").variants == 3
    for cut in (whole, bgzipped(HEADER.encode()), whole[:20]):
        file.write_bytes(cut)
        with pytest.raises(InputError, match=r"a\.vcf\.gz is truncated"):
            open_source(vcf(file), {}, scratch=tmp_path / "other")


def test_a_vcf_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"b\.vcf does not exist"):
        open_source(vcf(tmp_path / "b.vcf"), {}, scratch=tmp_path / "scratch")
