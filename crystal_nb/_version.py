"""The version, in the one place that packaging reads too."""

__version__ = "0.1.0"
