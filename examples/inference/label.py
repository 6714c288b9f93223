"""Labels short texts by a tiny model of words, one item at a time. A real one would load its weights where this one
learns: once, before the first item, however many shards the worker is given."""

import json
import math
from collections import Counter

from crucible import train

TAUGHT = {
    "sport": "the team won the match after a late goal and the fans sang in the stadium",
    "money": "the bank raised its rate and shares fell while the market waits for profit and loss",
    "space": "the rocket left orbit and the probe sent pictures of the moon and a distant star",
}


def learned() -> dict:
    words = {label: Counter(text.split()) for label, text in TAUGHT.items()}
    return {label: (found, sum(found.values())) for label, found in words.items()}


def label(model: dict, text: str) -> dict:
    words = text.lower().split()
    if not words:
        raise ValueError("there is nothing to label")
    scores = {
        name: sum(math.log((found[word] + 0.1) / (total + 10)) for word in words)
        for name, (found, total) in model.items()
    }
    best = max(scores, key=scores.__getitem__)
    return {"label": best, "score": round(scores[best] / len(words), 3)}


def main() -> None:
    model = learned()
    for item in train.items():
        with item:  # an exception fails this item alone
            item.done(label(model, json.loads(item.value)["text"]))


if __name__ == "__main__":
    main()
