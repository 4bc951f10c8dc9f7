"""The five papers' tables, each beside what is measured here: a module a paper, its figures with their places."""
