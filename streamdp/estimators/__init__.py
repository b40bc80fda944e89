"""Estimators as River and scikit-learn know them."""
