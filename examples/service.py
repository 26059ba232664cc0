"""A service that ranks the candidates of a query by a model from a file.

pip install fastapi uvicorn
python service.py model.rkt --port 8000
curl localhost:8000/rank --json '{"candidates": [{"id": "a", "price": 3.5, "site": "uk"}], "k": 10}'
"""

import argparse
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

from ranktrees import Ensemble, EnsembleRanker, RecordScorer


class Query(BaseModel):
    candidates: list[dict[str, Any]]  # values as JSON has them: the scorer checks them
    k: int = Field(10, ge=1)


class Ranked(BaseModel):
    id: Any
    score: float


def make_app(path: str) -> FastAPI:
    app = FastAPI()
    score = RecordScorer(EnsembleRanker(Ensemble.load(path), n_jobs=1), ignore=["id"])

    @app.post("/rank")
    def rank(query: Query) -> list[Ranked]:  # without async, each request has a thread
        try:
            scores = score(query.candidates)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        best = (-scores).argsort(kind="stable")[: query.k]
        return [Ranked(id=query.candidates[i].get("id"), score=scores[i]) for i in best]

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="what ranker.save(path) has written")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    uvicorn.run(make_app(arguments.model), port=arguments.port)
