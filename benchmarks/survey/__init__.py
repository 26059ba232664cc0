"""The comparisons of Mohan's survey, run again: python -m benchmarks.survey prints its tables.

A. Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
web-search ranking*, 2010. A module a chapter; each has ``TABLES``, functions that take a `Lab` and return
Markdown::

    sets            names -> folds: training rows, draws of validation queries, test rows
    contenders      what is compared: candidates, among which validation queries choose
      |
    lab             choose, fit to all training rows, score the test rows; kept in a folder
      |
    a chapter       scores -> measures of test queries -> a table, and paired tests of findings
      |
    __main__        prints tables, or puts them into docs/survey.md
"""
