"""Labels of samples: any common table, and no sample mislabeled or lost in silence."""

from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.real_data import needs_real_data, real_data
from whitewater.errors import InputError
from whitewater_apps.genomics.config import Labels
from whitewater_apps.genomics.steps.ingest import read_labels, sample_labels

EXPECTED = {"S1": "Yoruba in Ibadan", "S2": "NA", "S3": "CEU"}
COLUMNS = Labels(sample_column="sample", label_column="population")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "sample,population\nS1,Yoruba in Ibadan\nS2,NA\nS3,CEU\n",
        "\ufeffpopulation,age,sample\nYoruba in Ibadan,7,S1\nNA,,S2\nCEU,3,S3\n",
        '"sample","population"\n"S1","Yoruba in Ibadan"\n"S2","NA"\n"S3","CEU"\n',
        "sample;population\nS1;Yoruba in Ibadan\nS2;NA\nS3;CEU\n",
        "sample\tsex\tpopulation\nS1\tF\tYoruba in Ibadan\nS2\t\tNA\n S3 \tM\tCEU \n",
        "sample\tpopulation\tsex\t\t\nS1\tYoruba in Ibadan\tF\nS2\tNA\tM\nS3\tCEU\tF\n",
        "sample\tpopulation\tsuper pop\nS1\tYoruba in Ibadan\tx\nS2\tNA\tx y z\nS3\tCEU\ty\n",
        '"sample"\t"population"\n"S1"\t"Yoruba in Ibadan"\n"S2"\t"NA"\n"S3"\t"CEU"\n',
        "sample,population\r\nS1,Yoruba in Ibadan\r\nS2,NA\r\nS3,CEU\r\nS4,\r\n",
    ],
    ids=[
        "csv",
        "mark and columns",
        "quoted",
        "semicolons",
        "tabs and blanks",
        "tabs at the end of the header alone, as in the panel of the 1000 Genomes",
        "tabs and a blank in a name",
        "tabs and quotes",
        "a sample without label",
    ],
)
def test_text_tables_are_read_whatever_separates_them(tmp_path: Path, text: str) -> None:
    assert read_labels(write(tmp_path / "labels.txt", text), COLUMNS) == EXPECTED


def test_a_table_of_words_between_blanks_is_read(tmp_path: Path) -> None:
    for header in ("FID  IID population", "#FID IID\tpopulation", "FID\tIID  population"):
        table = write(tmp_path / "labels.txt", f"{header}\n 1 S1  YRI\n2 S2 CEU\n")
        assert read_labels(table, Labels(sample_column="IID")) == {"S1": "YRI", "S2": "CEU"}


def test_parquet_is_read_and_numbers_become_text(tmp_path: Path) -> None:
    table = pd.DataFrame({"id": [1, 2, 3], "cluster": [10, None, 30]}).astype({"cluster": "Int64"})
    table.to_parquet(tmp_path / "labels.parquet")
    labels = read_labels(tmp_path / "labels.parquet", Labels(sample_column="id", label_column="cluster"))
    assert labels == {"1": "10", "3": "30"}


def test_whole_numbers_beside_missing_ones_stay_whole(tmp_path: Path) -> None:
    pd.DataFrame({"sample": [1, 2, None], "population": [10, None, 30]}).to_parquet(tmp_path / "labels.parquet")
    assert read_labels(tmp_path / "labels.parquet", COLUMNS) == {"1": "10"}


def test_a_quote_within_a_label_between_tabs_stays(tmp_path: Path) -> None:
    table = write(tmp_path / "labels.tsv", 'sample\tpopulation\nS1\tthe "old" one\nS2\t5"\n')
    assert read_labels(table, COLUMNS) == {"S1": 'the "old" one', "S2": '5"'}


def test_rows_that_agree_are_one_and_rows_that_do_not_are_an_error(tmp_path: Path) -> None:
    table = write(tmp_path / "labels.csv", "sample,population\nS1,A\nS1,A\n")
    assert read_labels(table, COLUMNS) == {"S1": "A"}
    write(table, "sample,population\nS1,A\nS2,B\nS1,C\n")
    with pytest.raises(InputError, match=r"labels\.csv gives 1 samples more than one label: S1 \(A and C\)"):
        read_labels(table, COLUMNS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,population\nS1,A\n", r"has no column sample; it has name, population"),
        ("a b c\n1 2 3\n", r"has no column sample and population; it has a, b, c"),
        ("", r"is not a readable table of labels: No columns"),
        ("sample,population,population\nS1,A,B\n", r"has more than one column population\. Rename"),
        ("sample,population, population\nS1,A,B\n", r"has more than one column population\. Rename"),
        ("sample,population\nS1,A,B\nS2,A\n", r"is not a readable table of labels"),
        ("sample,population\nS1,A\nS2,A,B,C\n", r"is not a readable table of labels"),
    ],
)
def test_tables_of_another_form_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(write(tmp_path / "labels.csv", text), COLUMNS)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_bytes(b"sample,population\nS1,\xff\xfe\n")
    with pytest.raises(InputError, match="is not a readable table"):
        read_labels(tmp_path / "labels.csv", COLUMNS)
    (tmp_path / "labels.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="is not a readable table"):
        read_labels(tmp_path / "labels.parquet", COLUMNS)


@pytest.fixture
def labels(tmp_path: Path) -> Labels:
    table = write(tmp_path / "labels.csv", "sample,population\nS1,Yoruba in Ibadan\nS2,NA\nS3,CEU\n")
    return Labels(table=str(table), sample_column="sample", label_column="population")


def test_samples_without_a_row_are_counted(labels: Labels, caplog: pytest.LogCaptureFixture) -> None:
    assert sample_labels(["S3", "S9", "S1"], labels) == ["CEU", None, "Yoruba in Ibadan"]
    assert f"1 of 3 samples have no label in {labels.table}" in caplog.text


def test_a_table_of_other_names_is_refused_and_shows_both_sides(labels: Labels) -> None:
    samples = ["F1:S1", "F2:S2", "F3:S3", "F4:S4"]
    with pytest.raises(InputError, match=r"labels\.csv labels none.*S1, S2, S3, the.* F1:S1, F2:S2, F3:S3, F4:S4\."):
        sample_labels(samples, labels)


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"labels\.csv does not exist"):
        sample_labels(["S1"], COLUMNS.model_copy(update={"table": str(tmp_path / "labels.csv")}))


def test_a_table_of_a_web_server_is_downloaded_once(folder: Path, served: tuple[str, Path]) -> None:
    table = write(folder / "labels.csv", "sample,population\nS1,A\n")
    labels = COLUMNS.model_copy(update={"table": f"{served[0]}/labels.csv"})
    assert sample_labels(["S1"], labels) == ["A"]
    table.unlink()
    assert sample_labels(["S1"], labels) == ["A"]


@needs_real_data
def test_the_populations_of_hapmap3_are_read() -> None:
    table = real_data("genomics", "hapmap3", "relationships_w_pops_121708.txt")
    labels = read_labels(table, Labels(sample_column="IID"))
    assert len(labels) == 1301
    assert len(set(labels.values())) == 11
    assert labels["NA19625"] == "ASW"
