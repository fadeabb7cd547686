"""The forms of a feature matrix: what linear models and forests see of categories, numbers and nulls."""

import numpy as np
import pandas as pd

from tests.library.learn.rows import FORMS, sample_of
from whitewater.engines import Device

CPU = Device()


def test_linear_models_see_one_hot_levels_signed_logarithms_and_nulls() -> None:
    matrix = sample_of().features
    matrix[::9, 1] = -1.5
    hour, fare = matrix.T
    columns = pd.DataFrame(FORMS.linear(matrix, CPU), columns=list(FORMS.linear_columns()))
    assert list(columns) == [*(f"hour {number:02d}" for number in range(24)), "fare", "fare is null"]
    np.testing.assert_array_equal(columns.iloc[:, :24], hour[:, np.newaxis] == np.arange(24))
    np.testing.assert_array_equal(columns["fare is null"], np.isnan(fare))
    np.testing.assert_allclose(columns["fare"], np.nan_to_num(np.sign(fare) * np.log1p(np.abs(fare))))


def test_forests_see_the_values_and_minus_one_for_null() -> None:
    matrix = sample_of().features
    rows = FORMS.tree(matrix, CPU)
    assert rows.dtype == np.float32
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, np.nan_to_num(matrix, nan=-1).astype(np.float32))


def test_the_forms_of_a_row_do_not_depend_on_its_partition() -> None:
    matrix = sample_of(100).features
    for form in (FORMS.linear, FORMS.tree):
        alone = [form(row[np.newaxis], CPU)[0] for row in matrix]
        np.testing.assert_array_equal(form(matrix, CPU), np.array(alone))
