"""Writes the H2HMem sample: two people mend a boat, and three fly a kite."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samples.drawing import Picture, jpeg
from samples.text import as_json, readme

FOLDER = "benchmarks/h2hmem/sample"
HOLDS = (
    "One dialogue of two people and one of a group: {sessions} sessions of {turns} turns with {pictures} pictures, and"
    " {questions} questions of all nine kinds, some across sessions, one about a session of which nothing is left"
)
ORIGIN = "Every sentence and every picture was made up and drawn"
MADE = "2025-01-01T00:00:00"
MAIN = {
    "UPR": ("Memory Recall", "Unimodal Precise Recall"),
    "CRR": ("Memory Recall", "Cross-modal Related Retrieval"),
    "KR": ("Memory Recall", "Knowledge Resolution"),
    "TR": ("Memory Reasoning", "Temporal Reasoning"),
    "MCR": ("Memory Reasoning", "Multimodal Causal Inference"),
    "MCR by its other name": ("Memory Reasoning", "Multimodal Causal Reasoning"),
    "RET": ("Memory Reasoning", "Reference & Evolution Tracking"),
    "RET by its other name": ("Memory Reasoning", "Cross-turn Reference Tracking"),
    "TTL": ("Memory Application", "Test-Time Learning"),
    "CD": ("Memory Application", "Conflict Detection"),
    "AR": ("Memory Application", "Answer Refusal"),
}

Turn = tuple[str, str] | tuple[str, str, str]
"""Speaker, words and, if one was sent, the picture's file name."""
Asked = tuple[str, str, str] | tuple[str, str, str, str]
"""Kind, question, answer and, if one is shown, the picture's name."""


@dataclass(frozen=True)
class Session:
    """A session folder: without a date it has no session.json. `alias` is what its TTL question calls it."""

    number: int
    questions: Sequence[Asked]
    date: str = ""
    title: str = ""
    turns: Sequence[Turn] = ()
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    alias: str = ""


@dataclass(frozen=True)
class Dialogue:
    """A dialogue folder."""

    part: str
    number: int
    sessions: Sequence[Session]


def boat(colour: str, name: str, *, afloat: bool = False) -> Picture:
    """Draw a small boat with its name on the bow, on trestles or on the water."""
    view = Picture(240, 150, "#d7e4ea" if afloat else "#cdbfa8")
    if afloat:
        view.box(0, 96, 240, 54, "#5f87a0")
    else:
        for x in (70, 160):
            view.line([(x, 108), (x - 12, 142)], "#6f5236", 5)
            view.line([(x, 108), (x + 12, 142)], "#6f5236", 5)
    view.shape([(24, 70), (216, 70), (188, 110), (52, 110)], colour, edge="#2f2a26")
    view.line([(30, 84), (210, 84)], "#2f2a26", 1)
    view.text(120, 88, name, 16, "#fdfaf2", align="middle", bold=True)
    return view


def tins() -> Picture:
    """Draw two tins of paint with their labels."""
    view = Picture(240, 130, "#e9e2d4")
    for x, colour, label in ((28, "#5d8a4a", "REED 12"), (132, "#3d6fb0", "TARN 07")):
        view.box(x, 24, 80, 90, colour, radius=4, edge="#333333")
        view.box(x + 6, 56, 68, 24, "#f7f4ec")
        view.text(x + 40, 60, label, 13, "#333333", align="middle", bold=True)
    return view


def letters() -> Picture:
    """Draw the sketch of a boat's new name."""
    view = Picture(220, 90, "#fbf8ee")
    for y in (24, 62):
        view.line([(14, y), (206, y)], "#b9b4a6", 1)
    view.text(110, 28, "LARK", 30, "#44576a", align="middle")
    return view


def jetty() -> Picture:
    """Draw a jetty with a lantern."""
    view = Picture(220, 130, "#31435a")
    view.box(0, 92, 220, 38, "#22303f")
    view.box(30, 84, 150, 10, "#7a5c3c")
    view.line([(150, 84), (150, 34)], "#7a5c3c", 5)
    view.disc(150, 32, 11, "#f3c552", edge="#2a2a2a")
    return view


def kite(tails: int, *, tree: bool = False) -> Picture:
    """Draw a yellow kite, in the sky or in a tree."""
    view = Picture(200, 160, "#cfe3f1")
    if tree:
        view.box(90, 90, 22, 70, "#6b4f33")
        view.disc(100, 78, 62, "#4f7d46")
    view.shape([(100, 20), (138, 62), (100, 112), (62, 62)], "#e8bf3a", edge="#3a3324")
    for n in range(tails):
        x = 90 + 22 * n
        view.line([(100, 112), (x, 128), (x + 8, 142), (x, 154)], "#c04a3c", 3)
    return view


def hill() -> Picture:
    """Draw a hill with a windsock that stands straight out."""
    view = Picture(220, 130, "#c3d3dc")
    view.shape([(0, 130), (70, 74), (150, 66), (220, 130)], "#6f8f57")
    view.line([(110, 70), (110, 18)], "#44403a", 4)
    view.shape([(110, 18), (182, 24), (182, 34), (110, 42)], "#d9743a", edge="#44403a")
    return view


BOAT = Dialogue(
    "dyadic",
    1,
    (
        Session(
            0,
            (
                (
                    "TR",
                    "Put these in the order in which they happened: A. the oar is bound with twine; B. two tins of"
                    " paint are compared; C. the boat is found in a shed.",
                    "C → B → A",
                ),
                (
                    "UPR",
                    "What name is on the boat in the picture, and with which grit was the sanding to end?",
                    "Gull. 180.",
                    "session1/1.jpg",
                ),
                (
                    "RET by its other name",
                    "How is the boat spoken of from the first session to the last?",
                    "First as Gull, then as bare and unnamed, at last as Lark.",
                ),
            ),
        ),
        Session(
            1,
            (
                ("UPR", "What did Marta Linde's uncle call the boat?", "Gull"),
                ("CRR", "What does Joris Pell say about the paint in the picture?", "It comes off in sheets.", "1.jpg"),
                ("TTL", "A friend has an old dinghy to sand. Which grits does she need, in order?", "80, then 180."),
                ("AR", "How much did the tarpaulin cost?", "Not mentioned"),
            ),
            "2024-04-06",
            "A boat in the shed",
            (
                ("Marta Linde", "Joris, look what stood under the tarpaulin in my uncle's shed.", "1.jpg"),
                ("Joris Pell", "A clinker dinghy! The red paint comes off in sheets, though."),
                ("Marta Linde", "He called her Gull. I want to row her on the mill pond by June."),
                ("Joris Pell", "Then sand her first. Start with 80 grit and end with 180."),
                ("Marta Linde", "Eighty, then one hundred and eighty. I have written it on the shed wall."),
                ("Joris Pell", "And keep the oars dry: the left one has a crack near the blade."),
            ),
            {"1.jpg": boat("#b4483c", "GULL")},
        ),
        Session(
            2,
            (
                (
                    "CRR",
                    "On April 20th Marta Linde sent a sketch of letters. Give its file name and session.",
                    "2.png in session2",
                ),
                (
                    "CRR",
                    "Which of these two pictures shows the colour that was chosen?",
                    "1.jpg in session2",
                    "1.jpg, 2.png",
                ),
                (
                    "MCR",
                    "Why did Joris Pell advise against the tin on the left?",
                    "Green looks like weed from the bank.",
                    "1.jpg",
                ),
                ("CD", "The hull was bare after three evenings. Does this contradict what was said? Yes or no.", "Yes"),
                ("CD", "Joris Pell was for the blue paint. Does this contradict what was said? Yes or no.", "No"),
            ),
            "2024-04-20",
            "Two colours",
            (
                ("Marta Linde", "The hull is bare now. It took me nine evenings."),
                ("Joris Pell", "Nine! Mine took twice as long. Which colour will she get?"),
                ("Marta Linde", "These are the two tins I can choose from.", "1.jpg"),
                ("Joris Pell", "The blue one. Green looks like weed from the bank."),
                ("Marta Linde", "Blue it is, and a new name with it."),
                ("Marta Linde", "Here is my sketch of the letters.", "2.png"),
            ),
            {"1.jpg": tins(), "2.png": letters()},
        ),
        Session(
            3,
            (
                ("KR", "What is the boat called now, and what was she called before?", "Lark, before that Gull"),
                (
                    "RET",
                    'Which picture does Joris Pell mean by "your sketch of the letters"? Give file name and session.',
                    "2.png in session2",
                ),
                ("UPR", "How much water comes in, and where?", "A cup an hour, at the third plank."),
            ),
            "2024-05-11",
            "On the pond",
            (
                ("Joris Pell", "Is she afloat?"),
                ("Marta Linde", "Since this morning. See for yourself.", "1.jpg"),
                ("Joris Pell", "Your sketch of the letters, grown up! Does Lark leak?"),
                ("Marta Linde", "A cup an hour, at the third plank. I shall put cotton in the seam."),
                ("Joris Pell", "Take the tarred kind. Plain cotton rots within a year."),
                ("Marta Linde", "Tarred, then. And the crack in the oar is bound with twine now."),
            ),
            {"1.jpg": boat("#3d6fb0", "LARK", afloat=True)},
        ),
        Session(
            4, (("UPR", "What hangs on the post in the picture?", "A lantern", "1.jpg"),), pictures={"1.jpg": jetty()}
        ),
    ),
)
KITE = Dialogue(
    "multi-party",
    2,
    (
        Session(
            0,
            (
                (
                    "KR",
                    "What wind did the forecast name, and what did the windsock show?",
                    "20 km/h, and the sock showed far more.",
                ),
                ("TR", "Was the kite named before Crow Hill was proposed, or after?", "Before"),
            ),
        ),
        Session(
            1,
            (
                ("UPR", "How long is the line that A_Nour brings?", "60 metres"),
                ("CRR", "What does C_Okoro compare the kite in the picture with?", "A wasp", "img1.jpg"),
                ("AR", "What colour is C_Okoro's car?", "Not mentioned"),
            ),
            "2024-09-07",
            "",
            (
                ("A_Nour", "My new kite is ready, everyone. What do you say?", "img1.jpg"),
                ("B_Tamsin", "@A_Nour Two tails? Mine never flew with more than one."),
                ("C_Okoro", "@A_Nour It looks like a wasp, in the best way."),
                ("A_Nour", "@C_Okoro Then Wasp is its name."),
                ("B_Tamsin", "Shall we fly it on Crow Hill next Saturday? The forecast says 20 km/h."),
                ("C_Okoro", "@B_Tamsin I can drive three of us, the car is small."),
                ("A_Nour", "Three is all we are. I bring the line, 60 metres of it."),
            ),
            {"img1.jpg": kite(2)},
        ),
        Session(
            2,
            (
                (
                    "TTL",
                    "The windsock stands straight out again. What line should they take?",
                    "A short one, thirty metres at most.",
                ),
                (
                    "MCR by its other name",
                    'What in the picture made B_Tamsin say "I said so"?',
                    "Only one of the two tails is left.",
                    "img3.jpg",
                ),
                ("CD", "The wind was as the forecast said. Does this contradict what was said? Yes or no.", "Yes"),
            ),
            "2024-09-14",
            "",
            (
                ("B_Tamsin", "Well, here is the wind, and here is the hill.", "img2.jpg"),
                ("C_Okoro", "@B_Tamsin That sock stands straight out. Far more than 20."),
                ("A_Nour", "Wasp went up like an arrow and came down like one.", "img3.jpg"),
                ("B_Tamsin", "@A_Nour One tail is left on it. I said so!"),
                ("C_Okoro", "With a straight sock we need a shorter line. Thirty metres at most."),
                ("A_Nour", "@C_Okoro Noted: straight sock, short line."),
                ("B_Tamsin", "And the flask is empty, so let us go home."),
            ),
            {"img2.jpg": hill(), "img3.jpg": kite(1, tree=True)},
            alias="S2-2",
        ),
    ),
)
DIALOGUES = (BOAT, KITE)


def session_json(dialogue: Dialogue, session: Session) -> dict[str, Any]:
    """Return a session in the native form of its part."""
    turns = [
        {"role": speaker, "content": {"image": shown[0] if shown else "", "text": words}}
        for speaker, words, *shown in session.turns
    ]
    if dialogue.part == "dyadic":
        names: dict[str, Any] = {"session_id": f"boat_{session.number:02d}", "session_title": session.title}
        return {**names, "theme": "a boat", "generated_at": MADE, "dialogue": turns, "timeline_date": session.date}
    head = {"session_id": f"S{dialogue.number}-{session.number}", "group_id": "G02_Kites"}
    counts = {"target_turns": len(turns), "actual_turns": len(turns)}
    meta = {"images_used": list(session.pictures), "full_summary": "", "resolved_events": [], "active_events": []}
    return {**head, **counts, "dialogue": turns, "meta": meta, "timeline_date": session.date}


def questions_json(dialogue: Dialogue, session: Session) -> dict[str, Any]:
    """Return a session's questions in the native form."""
    name, spoken = f"session{session.number}", f"Dialogue {dialogue.number}"
    about = {"session_name": name, "session_number": session.number, "dialogue_name": spoken}
    rows = []
    for place, (short, words, answer, *shown) in enumerate(session.questions):
        main, sub = MAIN[short]
        aliased = short == "TTL" and session.alias
        rows.append(
            {
                "question": {"image": shown[0] if shown else "", "text": words},
                "original_answer": answer,
                "answer_session": [session.alias if aliased else name],
                "answer_dialogue": "" if aliased else f"dialogue{dialogue.number}",
                "question_type": {"main_type": main, "sub_type": sub},
                "difficulty": ("easy", "medium", "hard")[place % 3],
                "validation_notes": "",
                "generated_at": MADE,
                "validated": True,
                **({"original_question_id": f"CSQ{place + 1:03d}"} if session.number == 0 else {}),
            }
        )
    return {
        "metadata": {"generated_at": MADE, **about, "version": "1.0", "question_format": "object_format"},
        "session_info": about,
        "questions": rows,
    }


def encoded(name: str, view: Picture) -> bytes:
    """Return a picture in the format that its name tells."""
    if name.endswith(".jpg"):
        return jpeg(view.done())
    out = io.BytesIO()
    view.done().save(out, "PNG")
    return out.getvalue()


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    for dialogue in DIALOGUES:
        for session in dialogue.sessions:
            folder = f"{FOLDER}/{dialogue.part}/dialogue{dialogue.number}/scenes/session{session.number}"
            if session.turns:
                yield f"{folder}/session.json", as_json(session_json(dialogue, session))
            yield f"{folder}/questions.json", as_json(questions_json(dialogue, session))
            for name, view in session.pictures.items():
                yield f"{folder}/image/{name}", encoded(name, view)
    sessions = [session for dialogue in DIALOGUES for session in dialogue.sessions]
    words = HOLDS.format(
        sessions=sum(bool(one.turns) for one in sessions),
        turns=sum(len(one.turns) for one in sessions),
        pictures=sum(len(one.pictures) for one in sessions),
        questions=sum(len(one.questions) for one in sessions),
    )
    yield f"{FOLDER}/README.md", readme("H2HMem", words, ORIGIN)
