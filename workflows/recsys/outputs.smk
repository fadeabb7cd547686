# Name of a picture -> subcategory of the report, what is shown.
PICTURES = {
    "auc": ("Prediction", "AUC with and without the features"),
    "calibration": ("Prediction", "calibration"),
    "drift": ("Data", "drift from day to day"),
    "categories": ("Features", "categories by frequency"),
    "numbers": ("Features", "a number before and after"),
}
