"""Writes the 2WikiMultiHopQA sample: questions over invented films and families, their triples by construction."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from typing import Any

from samples.text import as_json, readme

FOLDER = "benchmarks/two_wiki/sample"
SIZE = 8  # paragraphs a question
HOLDS = (
    "{questions} questions of all four types (comparison, inference, compositional, bridge comparison) over"
    " {paragraphs} paragraphs about films and families that do not exist, eight paragraphs a question, with evidence"
    " triples and a small file of aliases"
)
ORIGIN = "Every name, year and sentence was made up"
# title: (what it is, [(relation, object, sentence)])
WORLD: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    "The Salt Ferry": (
        "The Salt Ferry is a drama film from Verrin.",
        [
            ("director", "Oda Lind", "It was directed by Oda Lind."),
            ("publication date", "1951", "It was first shown in 1951."),
        ],
    ),
    "Nine Lanterns": (
        "Nine Lanterns is a musical film from Solland.",
        [
            ("director", "Pell Harrow", "It was directed by Pell Harrow."),
            ("publication date", "1964", "It was first shown in 1964."),
        ],
    ),
    "Winter Clock": (
        "Winter Clock is a comedy film from Verrin.",
        [
            ("director", "Mira Quane", "It was directed by Mira Quane."),
            ("publication date", "1938", "It was first shown in 1938."),
        ],
    ),
    "A Coat for Joss": (
        "A Coat for Joss is a children's film from Solland.",
        [
            ("director", "Teo Brask", "It was directed by Teo Brask."),
            ("publication date", "1972", "It was first shown in 1972."),
        ],
    ),
    "Oda Lind": (
        "Oda Lind was a film director.",
        [
            ("father", "Harl Lind", "Her father was the ferryman Harl Lind."),
            ("date of death", "4 May 1979", "She died on 4 May 1979."),
            ("place of burial", "Marrowick", "She is buried in Marrowick."),
        ],
    ),
    "Pell Harrow": (
        "Pell Harrow was a film director and singer.",
        [
            ("spouse", "Ines Corr", "He was married to the dancer Ines Corr."),
            ("date of death", "19 October 1968", "He died on 19 October 1968."),
            ("country of citizenship", "Solland", "He was a citizen of Solland."),
        ],
    ),
    "Mira Quane": (
        "Mira Quane was a film director.",
        [
            ("mother", "Sela Quane", "Her mother was the painter Sela Quane."),
            ("date of death", "2 January 1991", "She died on 2 January 1991."),
        ],
    ),
    "Teo Brask": (
        "Teo Brask was a film director and puppeteer.",
        [
            ("spouse", "Dorrit Vane", "He was married to the author Dorrit Vane."),
            ("date of death", "30 June 1985", "He died on 30 June 1985."),
        ],
    ),
    "Harl Lind": (
        "Harl Lind was a ferryman on the Ostrel.",
        [
            ("father", "Bram Lind", "He was a son of Bram Lind."),
            ("place of birth", "Port Hallam", "He was born in Port Hallam."),
        ],
    ),
    "Sela Quane": (
        "Sela Quane was a painter of harbours.",
        [
            ("mother", "Uda Marsh", "She was a daughter of Uda Marsh."),
            ("place of birth", "Quillford", "She was born in Quillford."),
        ],
    ),
    "Ines Corr": (
        "Ines Corr was a dancer.",
        [
            ("father", "Matis Corr", "Her father was Matis Corr."),
            ("place of death", "Bellhaven", "She died in Bellhaven."),
        ],
    ),
    "Dorrit Vane": (
        "Dorrit Vane was an author of travel books.",
        [("place of birth", "Tarn Abbey", "She was born in Tarn Abbey.")],
    ),
}
# type, question, answer, steps: (title, relation)
QUESTIONS = [
    (
        "compositional",
        "Where is the director of the film The Salt Ferry buried?",
        "Marrowick",
        [("The Salt Ferry", "director"), ("Oda Lind", "place of burial")],
    ),
    (
        "compositional",
        "Who is the spouse of the director of the film Nine Lanterns?",
        "Ines Corr",
        [("Nine Lanterns", "director"), ("Pell Harrow", "spouse")],
    ),
    (
        "compositional",
        "Where was the spouse of Teo Brask born?",
        "Tarn Abbey",
        [("Teo Brask", "spouse"), ("Dorrit Vane", "place of birth")],
    ),
    (
        "compositional",
        "Who is the mother of the director of the film Winter Clock?",
        "Sela Quane",
        [("Winter Clock", "director"), ("Mira Quane", "mother")],
    ),
    (
        "inference",
        "Who is Oda Lind's paternal grandfather?",
        "Bram Lind",
        [("Oda Lind", "father"), ("Harl Lind", "father")],
    ),
    (
        "inference",
        "Who is Mira Quane's maternal grandmother?",
        "Uda Marsh",
        [("Mira Quane", "mother"), ("Sela Quane", "mother")],
    ),
    (
        "inference",
        "Who is the father-in-law of Pell Harrow?",
        "Matis Corr",
        [("Pell Harrow", "spouse"), ("Ines Corr", "father")],
    ),
    (
        "comparison",
        "Which film was shown first, Nine Lanterns or Winter Clock?",
        "Winter Clock",
        [("Nine Lanterns", "publication date"), ("Winter Clock", "publication date")],
    ),
    (
        "comparison",
        "Did Teo Brask die before Oda Lind?",
        "no",
        [("Teo Brask", "date of death"), ("Oda Lind", "date of death")],
    ),
    (
        "comparison",
        "Which film is more recent, A Coat for Joss or The Salt Ferry?",
        "A Coat for Joss",
        [("A Coat for Joss", "publication date"), ("The Salt Ferry", "publication date")],
    ),
    (
        "bridge_comparison",
        "Which film has the director who died first, Nine Lanterns or The Salt Ferry?",
        "Nine Lanterns",
        [
            ("Nine Lanterns", "director"),
            ("The Salt Ferry", "director"),
            ("Pell Harrow", "date of death"),
            ("Oda Lind", "date of death"),
        ],
    ),
    (
        "bridge_comparison",
        "Which film has the director who died later, Winter Clock or A Coat for Joss?",
        "Winter Clock",
        [
            ("Winter Clock", "director"),
            ("A Coat for Joss", "director"),
            ("Mira Quane", "date of death"),
            ("Teo Brask", "date of death"),
        ],
    ),
]
ALIASES = {"Ines Corr": ["Ines Harrow"], "Bram Lind": ["Abram Lind"], "Sela Quane": ["S. Quane"], "Solland": []}
DEMONYMS = {"Solland": ["Sollander"]}


def wiki_id(name: str) -> str:
    """Return an id of Wikidata's form that no real entity has."""
    return f"Q{900_000_000 + int(hashlib.sha256(name.encode()).hexdigest()[:6], 16)}"


def triple(title: str, relation: str) -> tuple[str, str, str, int]:
    """Return a fact and the index of the sentence that states it."""
    for place, (name, thing, _) in enumerate(WORLD[title][1], 1):
        if name == relation:
            return title, relation, thing, place
    raise KeyError((title, relation))


def record(kind: str, words: str, answer: str, steps: list[tuple[str, str]]) -> dict[str, Any]:
    """Return one question in the native layout."""
    name = hashlib.sha256(words.encode()).hexdigest()[:32]
    dice = random.Random(name)
    chain = [triple(*step) for step in steps]
    gold = list(dict.fromkeys(title for title, *_ in chain))
    others = [title for title in WORLD if title not in gold]
    titles = gold + dice.sample(others, SIZE - len(gold))
    dice.shuffle(titles)
    linked = kind in ("compositional", "inference")  # the release names ids of these two types alone
    return {
        "_id": name,
        "type": kind,
        "question": words,
        "context": [[title, [WORLD[title][0], *(fact[2] for fact in WORLD[title][1])]] for title in titles],
        "entity_ids": "_".join(wiki_id(title) for title in gold),
        "supporting_facts": [[title, place] for title, _, _, place in chain],
        "evidences": [[title, relation, thing] for title, relation, thing, _ in chain],
        "answer": answer,
        "evidences_id": [[wiki_id(t), r, wiki_id(thing)] for t, r, thing, _ in chain] if linked else [],
        "answer_id": None if answer in ("yes", "no") else wiki_id(answer),
    }


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    rows = [record(*question) for question in QUESTIONS]
    yield f"{FOLDER}/dev.json", as_json(rows)
    aliases = (
        {"Q_id": wiki_id(name), "aliases": names, "demonyms": DEMONYMS.get(name, [])} for name, names in ALIASES.items()
    )
    yield f"{FOLDER}/id_aliases.json", "".join(json.dumps(line) + "\n" for line in aliases).encode()
    words = HOLDS.format(questions=len(rows), paragraphs=len(WORLD))
    yield f"{FOLDER}/README.md", readme("2WikiMultiHopQA", words, ORIGIN)
