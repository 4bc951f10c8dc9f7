"""Estimators of scikit-learn's kind, which need no scikit-learn.

They keep its rules: the constructor stores settings as they are passed, and `fit` checks them and sets `vectors_`. So
`clone`, `Pipeline` and `GridSearchCV` work.
"""
