"""Objectives: what a model learns, by which update, with which kernels."""
