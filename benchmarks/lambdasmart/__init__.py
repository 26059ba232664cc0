"""The experiments of the LambdaSMART paper, made again: python -m benchmarks.lambdasmart prints its tables.

Wu, Burges, Svore, Gao, *Adapting boosting for information retrieval measures*, Information Retrieval 13,
2010. Its tables and figures are functions in the ``TABLES`` of a module, which take a `Lab` and return
Markdown::

    sets            rows to train, validate and test on
    net             LambdaRank: a small net, the paper's baseline and background
      |
    lab             fit to training rows, choose the number of trees by validation rows, score test rows
      |
    artificial      table 1, figure 2: rankers on random polynomials and on rows like those of the web
    steps           figures 3 and 4: the weight of each tree
    adaptation      tables 2 to 4: a model of other queries, and few of ours
      |
    __main__        prints tables, or puts them into docs/lambdasmart.md

Fitting, measuring, keeping and Markdown are those of `benchmarks.survey`, drawing is `benchmarks.drawing`.
"""
