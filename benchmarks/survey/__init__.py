"""The experiments of Mohan's thesis, made again: python -m benchmarks.survey prints its tables.

A. Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
web-search ranking*, 2010. A module a chapter or a part of it; each has ``TABLES``, functions that take a
`Lab` and return Markdown, by the number of the table or figure in the thesis::

    sets            names -> folds: rows to fit to, to choose by, and to test on
    contenders      the thesis' learners and their settings
      |
    lab             fit, score the rows after so many trees, let validation queries choose; kept in a folder
      |
    a chapter       contenders -> measures of validation and test queries -> a table or a figure
      |
    __main__        prints tables, or puts them into docs/survey.md
"""
