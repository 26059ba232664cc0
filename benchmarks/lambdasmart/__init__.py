"""The experiments of the LambdaSMART paper, made again: python -m benchmarks.lambdasmart prints its tables.

Wu, Burges, Svore, Gao, *Adapting boosting for information retrieval measures*, Information Retrieval 13,
2010. A module a section; each has ``TABLES``, functions that take a `Lab` and return Markdown::

    sets            rows to train, validate and test on
    net             LambdaRank: a small net, the paper's baseline
      |
    lab             fit to training rows, choose the number of trees by validation rows, score test rows
      |
    artificial      table 1, figures 2 and 3: rankers on random polynomials
    adaptation      tables 2 to 4: a model of other queries, and few of ours
      |
    __main__        prints tables, or puts them into docs/lambdasmart.md

Fitting, measuring, keeping and Markdown are those of `benchmarks.survey`.
"""
