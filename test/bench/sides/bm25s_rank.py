"""Ranks texts for questions with bm25s, English stop words and stems. Reads and writes JSON."""

import json
import sys

import bm25s
import Stemmer

task = json.load(sys.stdin)
stemmer = Stemmer.Stemmer("english")


def words(texts):
    return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)


index = bm25s.BM25()
index.index(words(task["texts"]), show_progress=False)
limit = min(task["limit"], len(task["texts"]))
found, scores = index.retrieve(words(task["questions"]), k=limit, show_progress=False)
answers = [
    [int(text) for text, score in zip(texts, row) if score > 0]
    for texts, row in zip(found, scores)
]
json.dump(answers, sys.stdout)
