"""The papers that pages and docstrings name, and where they are."""

BY_TITLE = {
    "Adapting boosting for information retrieval measures": "10.1007/s10791-009-9112-1",
    "Analyzing a portion of the ROC curve": "10.1177/0272989X8900900307",
    "A comparison of statistical significance tests for information retrieval evaluation": (
        "10.1145/1321440.1321528"
    ),
    "An axiomatic approach to the concept of interaction among players in cooperative games": (
        "10.1007/s001820050125"
    ),
    (
        "An empirical analysis on point-wise machine learning techniques using regression trees for "
        "web-search ranking"
    ): "10.7936/K7HH6H4B",
    "Cumulated gain-based evaluation of IR techniques": "10.1145/582415.582418",
    "Discriminative learning for differing training and test distributions": "10.1145/1273496.1273507",
    "Evaluating evaluation measure stability": "10.1145/345508.345543",
    "Evaluating evaluation metrics based on the bootstrap": "10.1145/1148170.1148261",
    "Expected reciprocal rank for graded relevance": "10.1145/1645953.1646033",
    "From local explanations to global understanding with explainable AI for trees": (
        "10.1038/s42256-019-0138-9"
    ),
    "Greedy function approximation: a gradient boosting machine": "10.1214/aos/1013203451",
    "Learning to rank using gradient descent": "10.1145/1102351.1102363",
    "Learning to rank: from pairwise approach to listwise approach": "10.1145/1273496.1273513",
    "LETOR: a benchmark collection for research on learning to rank for information retrieval": (
        "10.1007/s10791-009-9123-y"
    ),
    "Multilinear extensions of games": "10.1287/mnsc.18.5.64",
    "Optimizing search engines using clickthrough data": "10.1145/775047.775067",
    "Parallel boosted regression trees for web search ranking": "10.1145/1963405.1963461",
    "Random forests": "10.1023/A:1010933404324",
    "Stacked generalization": "10.1016/S0893-6080(05)80023-1",
    "The LambdaLoss framework for ranking metric optimization": "10.1145/3269206.3271784",
    "The meaning and use of the area under a ROC curve": "10.1148/radiology.143.1.7063747",
    "The treatment of ties in ranking problems": "10.1093/biomet/33.3.239",
    "Unbiased LambdaMART": "10.1145/3308558.3313447",
    "Unbiased LambdaMART: an unbiased pairwise learning-to-rank algorithm": "10.1145/3308558.3313447",
    "Unbiased learning-to-rank with biased feedback": "10.1145/3018661.3018699",
    "Visualizing the effects of predictor variables in black box supervised learning models": (
        "10.1111/rssb.12377"
    ),
}
_BY_TITLE = {title.casefold(): doi for title, doi in BY_TITLE.items()}


def doi_of(title):
    return _BY_TITLE.get(" ".join(title.split()).casefold())
