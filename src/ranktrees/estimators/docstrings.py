"""Docstrings of estimators: what a class does not say of a parameter, it takes from its base."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import cleandoc, getdoc
from typing import Any

# A section, and its entries: a name, or several, that stand alone on the left.
SECTION = r"^{}\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)"
_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : .*\n(?:(?: .*)?\n)*", re.MULTILINE)


def filled(cls: type) -> str | None:
    """Return the docstring of a class, with the parameters and attributes that its base describes.

    Entries of its own come first. A default is that of the class, whoever describes the parameter.

    Parameters
    ----------
    cls : type
        A dataclass, whose base has been through this, too.

    Returns
    -------
    str or None

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker
    >>> [line for line in LambdaMARTRanker.__doc__.splitlines() if line.startswith("n_iter_no_change")]
    ['n_iter_no_change : int, default=50']
    """
    if cls.__doc__ is None:  # python -OO
        return None
    text = cleandoc(cls.__doc__) + "\n"
    defaults = {field.name: field.default for field in fields(cls)}
    for section in ("Parameters", "Attributes"):
        theirs = section_entries(getdoc(cls.__mro__[1]), section)
        found = re.search(SECTION.format(section), text, re.MULTILINE | re.DOTALL)
        if found is None or not theirs:
            continue
        ours = section_entries(text, section)
        said = {name for names in ours for name in names}
        entries = [*ours.values(), *(entry for names, entry in theirs.items() if not said & set(names))]
        entries = [_with_default(entry, defaults) for entry in entries]
        text = text[: found.start(1)] + "".join(entries) + "\n" + text[found.end(1) :]
    return text


def parameters_of(cls: type) -> str:
    """Return what the docstring of a class says of its parameters.

    Parameters
    ----------
    cls : type

    Returns
    -------
    str
        An entry for each parameter; empty without docstrings, as under ``python -OO``.

    Examples
    --------
    >>> from ranktrees import EnsembleRanker
    >>> print(parameters_of(EnsembleRanker).splitlines()[0])
    ensemble : Ensemble
    """
    return "".join(section_entries(getdoc(cls), "Parameters").values())


def section_entries(text: str | None, section: str) -> dict[tuple[str, ...], str]:
    """By names: the entries of a section."""
    found = re.search(SECTION.format(section), (text or "") + "\n", re.MULTILINE | re.DOTALL)
    if found is None:
        return {}
    return {
        tuple(entry[1].split(", ")): entry[0].rstrip("\n") + "\n"
        for entry in _ENTRY.finditer(found[1] + "\n")
    }


def _with_default(entry: str, defaults: dict[str, Any]) -> str:
    head, _, body = entry.partition("\n")
    name = head.split(" : ")[0].split(", ")[0]
    if name in defaults:
        value = defaults[name]
        spelt = f'"{value}"' if isinstance(value, str) else f"{value:_}" if isinstance(value, int) else value
        head = re.sub(r"default=.*$", f"default={spelt}", head)
    return f"{head}\n{body}"
