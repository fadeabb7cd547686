"""Models: estimators on either device."""
