"""Gives every line a score: how kind its words are. The model is a list of words, so that it runs anywhere; put yours
into `Model`. Alone: CRUCIBLE_ITEMS=reviews.txt python infer.py"""

import argparse
import re

from crucible import train

KIND = {"lovely", "clever", "laughed", "great", "best", "warm", "funny", "well", "good", "love", "want"}
UNKIND = {"dull", "mess", "bad", "boring", "waste", "left", "cried", "hate", "poor"}


class Model:
    """Made once for each worker; asked for several lines at once, as models like it."""

    def __call__(self, lines: list) -> list:
        return [self._score(re.findall(r"[a-z']+", line.lower())) for line in lines]

    def _score(self, words: list) -> float:
        score = 0
        for before, word in zip(["", *words], words):
            value = (word in KIND) - (word in UNKIND)
            score += -value if before == "not" else value
        return score / max(1, len(words))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=2)
    size = parser.parse_args().batch
    model, done = Model(), 0
    for batch in train.batches(size):
        for item, score in zip(batch, model([item.value for item in batch])):
            item.done({"score": round(score, 4), "label": "kind" if score > 0 else "unkind"})
            done += 1
    print(f"{done} lines scored", flush=True)


if __name__ == "__main__":
    main()
