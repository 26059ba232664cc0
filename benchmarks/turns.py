"""Turns: every contender of a benchmark has a process of its own, and one of them works at a time.

Threads that spin, memory that is kept and settings of one library would slow the next one in the same
process. Here each is pinned to the first so many processors, and sleeps outside its turns::

    the benchmark                                        a contender's process
    process = Process(work, arguments, ...)  -------->   work(questions, *arguments) begins
    process.answer()       <-------- {"cold": 0.01}      yields when it is ready, and sleeps
    process.ask([120, 0.1])           -------->          the next of questions
    process.answer()       <-------- {"median": 2e-4}    yields when its turn is over, and sleeps
    process.close()                   -------->          the end of questions

Both ways go lines of JSON. ``work`` is a function of a script in this folder; a contender may run in a
Python that has little else, so that only the standard library and NumPy are needed here.
"""

import importlib
import inspect
import json
import os
import subprocess
import sys
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class Process:
    """A contender at work, seen from the one who asks; what it prints is in the file ``log``.

    It is pinned to ``n_processors``, from the number ``first`` on.
    """

    def __init__(self, work, arguments, n_processors, log, python=sys.executable, first=0):
        self.log = Path(log)
        place = [Path(inspect.getfile(work)).stem, work.__name__]
        everywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(everywhere)[first : first + n_processors])  # a new process inherits it
        with open(self.log, "w") as output:
            self.process = subprocess.Popen(
                [python, __file__, *place, json.dumps(arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                env={**os.environ, **dict.fromkeys(LIMITS, str(n_processors))},
            )
        os.sched_setaffinity(0, everywhere)

    def ask(self, question):
        """Begin its turn."""
        print(json.dumps(question), file=self.process.stdin, flush=True)

    def answer(self):
        """What it says next; if it cannot, ``refusal`` says why, and there is nothing after it."""
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        last = self.log.read_text().splitlines()[-1:]
        return {"refusal": ": ".join([f"ended with {self.process.wait()}", *last])}

    def close(self):
        """No more questions."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class AtOnce:
    """Processes that take their turn together; they answer with the means of their answers."""

    def __init__(self, processes):
        self.processes = list(processes)

    def ask(self, question):
        for process in self.processes:
            process.ask(question)

    def answer(self):
        answers = [process.answer() for process in self.processes]
        refused = next((answer for answer in answers if "refusal" in answer), None)
        return refused or {what: float(np.mean([answer[what] for answer in answers])) for what in answers[0]}

    def close(self):
        for process in self.processes:
            process.close()


def interleaved(start, names, questions):
    """Ask each question of all, one after the other; ``start(name)`` is the process of a contender.

    Returns, by name, the answers (the first is the one before all questions), and why some have none;
    that may not happen to ours.
    """
    processes, answers, refusals = {}, {name: [] for name in names}, {}

    def hear(name):
        answer = processes[name].answer()
        if "refusal" not in answer:
            answers[name].append(answer)
            return
        if name.startswith("ranktrees"):
            sys.exit(f"{name}: {answer['refusal']}")
        refusals[name] = answer["refusal"]
        del answers[name]
        processes.pop(name).close()

    for name in names:
        processes[name] = start(name)
        hear(name)
    for question in questions:
        for name in list(processes):
            processes[name].ask(question)
            hear(name)
    for process in processes.values():
        process.close()
    return answers, refusals


def ratio(numerators, denominators):
    """Repeat by repeat, as median and range."""
    ratios = np.divide(numerators, denominators)
    return f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def print_refusals(refusals):
    """Who is not in the table, and why."""
    names_of = {}
    for name, why in refusals.items():
        names_of.setdefault(why, []).append(name)
    for why, names in names_of.items():
        print(f"Not in the table: {'; '.join(names)}: {why}.\n", flush=True)


def main(module, function, arguments):
    """Be the process of a contender."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints goes to the log
    say = partial(print, file=answers, flush=True)
    warnings.simplefilter("ignore")
    questions = (json.loads(line) for line in sys.stdin)
    try:
        work = getattr(importlib.import_module(module), function)
        for answer in work(questions, *json.loads(arguments)):
            say(json.dumps(answer))
    except ImportError as error:
        say(json.dumps({"refusal": f"absent ({error})"}))
    except Exception as error:
        traceback.print_exc()
        why = traceback.format_exception_only(error)[0].splitlines()[0]
        say(json.dumps({"refusal": f"failed ({why})"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
