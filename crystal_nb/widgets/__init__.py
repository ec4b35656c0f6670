"""Widgets for notebooks: why a hash is what it is, what a reimport will do, what an import holds,
what a parser makes of a file.

::

    import crystal_nb as cnb
    cnb.widgets.HashInspector(corpus)
    cnb.widgets.ReimportLab()
    cnb.widgets.ImportBrowser(corpus)
    cnb.widgets.ParserWorkbench(my_parser, "file.jsonl")

Each is a view on a pure model (``…_view``), can be driven and read from cells by its traits, and has
``to_html()`` for pages without a kernel.
"""

from crystal_nb.widgets.hash_inspector import HashInspector
from crystal_nb.widgets.import_browser import ImportBrowser
from crystal_nb.widgets.parser_workbench import ParserWorkbench
from crystal_nb.widgets.reimport_lab import ReimportLab

__all__ = ["HashInspector", "ImportBrowser", "ParserWorkbench", "ReimportLab"]
