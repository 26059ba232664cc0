"""A zoo of data for choosing defaults: python -m benchmarks.zoo compares settings on every kind.

Real sets are few, and those at hand have been looked at often. A default is to be right for data that nobody
here has seen: so settings are compared on fresh draws of many kinds of synthetic data, whose columns are
noisy, rare, missing, categorical, and on the validation parts of the real sets::

    kinds           kinds of data, split by query into train, stop and judge
    settings        how to fit ours and the peers, with any parameters, and follow the stop part
      |
    running         one fit, and what it gives on the judge part after so many trees; kept
      |
    report          paired differences at equal trees, converged and at equal seconds, as Markdown
      |
    __main__        the command

Draws from 100 on are held back for one last check of what was chosen on the others.
"""
