"""Estimators with scikit-learn's interface, which do not need scikit-learn.

The constructor stores settings as they are passed, and `fit` checks them and sets `vectors_`, so that `clone`,
`Pipeline` and `GridSearchCV` work.
"""
