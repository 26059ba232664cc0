"""Chapter 3: ordinal classification or regression, and scores of probabilities (tables 3.1 and 3.3)."""

from ranktrees import OrdinalRanker

from .contenders import GBRT, IGBRT, IKSGBRT, KSGBRT, LOGISTIC, RF, SAMPLED, boosted, forest, ordinal
from .lab import Contender
from .markdown import best_bold, findings, means, table
from .sets import NAMES

LEARNERS = [GBRT, KSGBRT, RF, IGBRT, IKSGBRT]
CLASSIFIERS = [ordinal(learner, f"{learner.name}, classes") for learner in LEARNERS]
SCORINGS = {
    "expected relevance": "expected_relevance",
    "c squared": "expected_square",
    "2^c - 1": "expected_gain",
    "least squares": "least_squares",
    "least squares, held out": "least_squares",
    "likeliest grade only": None,
}


def table_3_1(lab):
    """After table 3.1: the same learners for regression and for classification, by expected relevance."""
    meeting = lab.meet([*LEARNERS, *CLASSIFIERS, LOGISTIC])
    heads, columns = [], []
    for name in meeting.names:
        for label, group in (("regression", LEARNERS), ("classification", CLASSIFIERS)):
            heads.append(f"{NAMES[name]} {label}")
            columns.append([meeting.mean(name, contender.name) for contender in group])
    cells = zip(*best_bold(columns), strict=True)
    rows = [[learner.name, *line] for learner, line in zip(LEARNERS, cells, strict=True)]
    claims = [
        (f"{learner.name}: classification above regression", classifier.name, learner.name)
        for learner, classifier in zip(LEARNERS, CLASSIFIERS, strict=True)
    ]
    claims.append(("logistic loss above squared error of events", LOGISTIC.name, "kSGBRT, classes"))
    return [table(["NDCG@10", *heads], rows), findings(meeting, claims)]


class LikeliestGrade(OrdinalRanker):
    """Rows by the grade that is likeliest: what classification alone would say."""

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def scored_by(kind, learner):
    """A contender for each scoring of the same learner."""
    found = []
    for label, scoring in SCORINGS.items():
        if scoring is None:
            model = LikeliestGrade(learner)
        else:
            held_out = {"validation_fraction": 0.2, "random_state": 0} if "held out" in label else {}
            model = OrdinalRanker(learner, scoring, **held_out)
        found.append(Contender(f"{kind}, {label}", (model,)))
    return found


def table_3_3(lab):
    """After table 3.3: what probabilities of grades are made into a score by."""
    boosting = scored_by("kSGBRT", boosted(4, max_iter=75, **SAMPLED))
    forests = scored_by("RF", forest(10, 0.1))
    meeting = lab.meet([*boosting, *forests])
    names = [contender.name for contender in (*boosting, *forests)]
    claims = [
        (f"{first.name} above {other.name.split(', ', 1)[1]}", first.name, other.name)
        for first, *others in (boosting, forests)
        for other in others
    ]
    return [means(meeting, names, [("NDCG", "ndcg@10")], corner="NDCG@10"), findings(meeting, claims)]


TABLES = {"3.1": table_3_1, "3.3": table_3_3}
