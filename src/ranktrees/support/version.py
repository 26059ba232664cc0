"""The version of the package, which is in pyproject.toml as well."""

__version__ = "0.1.0"
