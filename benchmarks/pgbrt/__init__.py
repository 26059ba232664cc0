"""The experiments of the pGBRT paper, made again: python -m benchmarks.pgbrt prints its tables.

Tyree, Weinberger, Agrawal, Paykin, *Parallel boosted regression trees for web search ranking*, WWW 2011. A
module a question; `quality`, `scaling` and `prediction` have ``PARTS``, functions that take a `Lab` and
return Markdown::

    sets            rows to train, validate and test on; rows to take the time with
      |
    quality         how well: exact trees against histograms of few bins (figures 1 and 2, table 2)
    growth          one fit on threads or ranks: its time, and what it sends, by the kind of call
      |
    scaling         how fast, and what is sent (figures 3 and 4)
    prediction      more cores than there are: a model of what was measured
      |
    __main__        prints tables, or puts them into docs/pgbrt.md

Fitting, measuring, keeping and Markdown are those of `benchmarks.survey` and `benchmarks.lambdasmart`.
"""
