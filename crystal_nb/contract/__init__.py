"""The checks of the adapter contract, a module per group; `crystal_nb.testing` runs them."""
