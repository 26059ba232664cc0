"""The version of the package: nothing else says it, and builds read it here."""

__version__ = "0.2.0"
