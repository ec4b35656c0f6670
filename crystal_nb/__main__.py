"""``python -m crystal_nb``: the same as ``crystal-nb``."""

from crystal_nb.cli import app

app(prog_name="crystal-nb")
