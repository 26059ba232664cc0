"""The experiments of the pGBRT paper, made again: python -m benchmarks.pgbrt prints its tables.

Tyree, Weinberger, Agrawal, Paykin, *Parallel boosted regression trees for web search ranking*, WWW 2011.
`quality` and `scaling` have ``PARTS``, functions that take a `Lab` and return Markdown::

    sets            rows to train, validate and test on, in the paper's shapes
      |
    lab             fit, by one worker or by several, and score rows after so many trees; kept in a folder
    growth          one fit on threads or ranks: its time, and what it sends
      |
    quality         how well: exact trees against histograms (tables 1 and 2, figures 1 and 2)
    scaling         how fast, and what is sent (figures 3 and 4)
      |
    __main__        prints tables, or puts them into docs/pgbrt.md

`overlap` stands alone: it needs a network whose rate is limited.
"""
