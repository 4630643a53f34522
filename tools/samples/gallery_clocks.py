"""Bram mends clocks and builds a model railway: five sessions from January to October 2025."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from samples import gallery_views as views
from samples import papers
from samples.drawing import Picture
from samples.gallery_dialogue import Dialogue

SCRIPT = """\
SESSION: 2025-01-11
USER: Good evening. I drove trams for thirty-one years and now I have a cellar, a bench and too much time. I want to
  mend clocks and build a railway.
ASSISTANT: Good evening! Clocks and trains share half their tools. Shall we begin with what is on the bench?
USER: This one stood in the canteen of the depot. It has been stopped at the same time since the day I retired.
IMAGE: depot stopped | A round wall clock in a brown case; its hands show ten minutes past four.
ASSISTANT: A handsome canteen clock. First look whether the mainspring is let down, before you loosen any screw.
USER: The name on the face is Hollis and Rook. Have you heard of them?
ASSISTANT: I have not, so I will not invent a history for them. Look for a number stamped on the back plate.
USER: It says 2207 on the back plate. And here are the wheels, I counted the teeth and wrote them below.
IMAGE: gears three | Three brass gear wheels on a cloth with their numbers of teeth written below.
ASSISTANT: A neat train of wheels. Clean them in warm soapy water and dry them at once, as brass does not like to
  wait.
USER: What oil do I take? I have bicycle oil and sewing machine oil.
ASSISTANT: Neither, if you can help it. Clock oil stays where you put it. One drop a pivot, and none on the teeth.
USER: My daughter Wies says I should write down what I spend. I allow myself £40 a month.
ASSISTANT: £40 a month, noted. A bottle of clock oil is about a fifth of that and lasts for years.
USER: For the railway I have a table of two metres by one. Which gauge fits?
ASSISTANT: N gauge gives you long trains in that space. H0 gives you more to hold, but the curves get tight.
USER: N gauge it is. My fingers will complain.
ASSISTANT: Buy tweezers with flat tips and a good lamp. The fingers learn.
SESSION: 2025-02-22
USER: It ticks! I set it by the kitchen radio when it began, and took a picture.
IMAGE: depot running | A round wall clock in a brown case; its hands show half past nine.
ASSISTANT: Well done! Let it run for a week and note how many minutes it gains or loses before you touch the pendulum.
USER: Next patient. A neighbour, Mrs Quill, brought her mother's kitchen clock. White case, and it strikes thirteen.
IMAGE: quill clock | A round clock in a white case with blue-green edges; its hands show five minutes to seven.
ASSISTANT: Then the count wheel is out of step. Lift the locking lever and let it strike by hand until it agrees with
  the hands.
USER: I found a wheel with two teeth missing in it. The last one in the picture.
IMAGE: gears broken | Three brass gear wheels; the last one has a gap where two teeth are missing.
ASSISTANT: That wheel will slip twice an hour. You can solder in a piece of brass and file new teeth, or ask for a
  replacement of the same count.
USER: I ordered one from a man in Utrecht, £18. So I am over the £40 this month, as the lamp was £26.
ASSISTANT: £44 together, four over. I will not tell Wies.
USER: She knows. She says I may have £55 a month from March if I mend her oven clock.
ASSISTANT: Then it is £55 from March. A generous court.
USER: The first engine has come. Green, with 31 on its side, for my years on the trams.
IMAGE: engine green | A green model locomotive with the number 31 pulling a red and a yellow wagon.
ASSISTANT: A fine choice of number. Run it slowly for half an hour in each direction before it pulls anything heavy.
USER: I want the line to run from a town to a quarry. The town shall be called Lower Tibbet.
ASSISTANT: Lower Tibbet and the quarry, noted. Leave 40 centimetres straight for the platform.
USER: And the quarry needs a name too, but Wies must choose it.
ASSISTANT: I shall keep the place free for her.
SESSION: 2025-04-05
USER: Wies has spoken. The quarry is called Grumble Pit.
ASSISTANT: Lower Tibbet to Grumble Pit. It sounds like a line that pays no dividend.
USER: Here is the station. I made the roof from a cigar box.
IMAGE: station | A model station building with a red-brown roof, a name board and two trees.
ASSISTANT: The cigar box does it credit. Weather the roof with a little black powder under the chimney.
USER: Signals: up means go and level means stop, yes? On the trams we only had lamps.
IMAGE: signal stop | A model semaphore signal whose red arm with a white stripe is level.
ASSISTANT: Yes, in the upper quadrant kind. This one is level, so it says stop.
USER: And like this my engine may leave.
IMAGE: signal go | A model semaphore signal whose red arm points upwards.
ASSISTANT: Right. Connect it to the points, so that it cannot say go when the way is set against the train.
USER: The depot clock loses two minutes a day. Which way do I turn the nut?
ASSISTANT: Turn it up to shorten the pendulum, half a turn for about a minute a day. So one full turn.
USER: Mrs Quill has her clock back. It strikes seven at seven. She paid with a plum cake.
ASSISTANT: The best currency. Note the new wheel in your book, 64 teeth, in case it ever comes back.
USER: A second engine, blue, second-hand, for £32. The seller says number 8 was always blue.
IMAGE: engine blue | A blue model locomotive with the number 8 pulling three grey wagons.
ASSISTANT: Three grey wagons behind it, just right for stone. Oil the axles, as second-hand ones are often dry.
USER: My grandson Joris is six and drives number 8 much too fast.
ASSISTANT: Give him the controller with the red stop, and a speed limit he may paint himself.
SESSION: 2025-06-28
USER: The club has an open day on Saturday the 12th of July and they want Lower Tibbet! In the parish hall.
ASSISTANT: Congratulations! Two metres by one goes through most doors on its side. What must travel with it?
USER: I made a list on the board in the cellar so that I forget nothing.
IMAGE: packing list | A whiteboard with a list of things to take, in green ink.
ASSISTANT: A good list. I would add fuses and a cloth for the rails.
USER: The timetable for the visitors is done as well. Wies wrote it in chalk.
IMAGE: timetable | A chalk board with train times and destinations.
ASSISTANT: Clear to read, with the last train well before tea.
USER: I moved the station to the other end of the table. From the door you now see the quarry first.
ASSISTANT: Better for a surprise. Is the line the same length as it was?
USER: Half a metre longer, as it goes round behind the hill. 5.5 metres in all.
ASSISTANT: 5.5 metres, noted; it was 5 before.
USER: The depot clock keeps time within ten seconds a week now. I hang it over the layout.
ASSISTANT: Then your trains will have no excuse. You turned the nut just right.
USER: Number 31 squeals in the curves, though.
ASSISTANT: Clean the flanges, and see whether a wheel has moved on its axle. A squeal is nearly always a wheel out of
  gauge.
USER: It was the middle wheel. Quiet as a cat now.
ASSISTANT: Ready for the public, then.
SESSION: 2025-10-04
USER: I never told you about the open day. It was moved by a week because the hall had a wedding, so we drove on the
  19th.
ASSISTANT: The 19th of July then, not the 12th. How did it go?
USER: We took £63 in the tin for the children's ward. Joris drove for four hours and nobody could get him away.
ASSISTANT: £63 and a driver for life. Did anything break?
USER: Number 8 fell off the table. Its funnel is bent and it limps. A boy of nine cried more than I did.
ASSISTANT: A bent funnel can be rolled straight over a pencil. The limp is a bent rod; compare it with the other side.
USER: I painted it while it was apart. Joris wanted it red, so number 8 is red now.
IMAGE: engine red | A red model locomotive with the number 8 pulling a grey wagon.
ASSISTANT: Number 8, red, once blue. The seller need never know.
USER: And this came for mending from the parish priest. It is the clock of the vestry.
IMAGE: vestry clock | A round clock in a black case; its hands show a quarter past twelve.
ASSISTANT: A black case, and a heavy one. Check the suspension spring first, as vestries are damp.
USER: The spring was rusted through. £6, and it runs.
ASSISTANT: Three clocks in a year, all of them running. You may call yourself a clock mender.
USER: Wies gave me a sign for the cellar door: Hollis, Rook and Bram.
ASSISTANT: The firm is complete.
USER: What should I build this winter?
ASSISTANT: A tram line down the main street of Lower Tibbet. You know how to drive it.
"""

QUESTIONS: list[tuple[str, ...]] = [
    ("FR", "Which number is stamped on the back plate of the depot clock?", "2207", "D1:4"),
    ("FR", "How did Mrs Quill pay for the repair?", "With a plum cake.", "D3:6"),
    ("FR", "What did Bram use for the roof of the station?", "A cigar box", "D3:2"),
    ("VS", "Which pictures show a semaphore signal?", "D3:IMG_002, D3:IMG_003", "D3:3 D3:4"),
    ("VS", "Find every picture of the engine with the same number as the one shown.", "D3:IMG_004, D5:IMG_001",
     "D3:7 D5:4",
     "engine blue | A blue model locomotive with the number 8."),
    ("TTL", "May a train pass the signal in this picture, by what was said in the dialogue?", "Yes.", "D3:3 D3:4",
     "signal go | A semaphore signal with its red arm pointing upwards."),
    ("TTL", "Whose clock is this?", "Mrs Quill's", "D2:2",
     "quill clock | A round kitchen clock in a white case with blue-green edges."),
    ("TR", "On which date did Lower Tibbet run at the open day? Return in the format YYYY-MM-DD.", "2025-07-19",
     "D4:1 D5:1"),
    ("TR", "Which clock did Bram mend last?", "The vestry clock", "D5:5 D5:6"),
    ("VR", "At what time had the depot clock stopped? Answer in the form H:MM.", "4:10", "D1:2"),
    ("VR", "How many wagons does the engine with the number 31 pull? Please answer with an Arabic numeral.", "2",
     "D2:6"),
    ("VR", "When does the last train leave on the chalk timetable? Answer in the form HH:MM.", "16:20", "D4:3"),
    ("MR", "Which members of Bram's family take part in the railway, and what does each of them do?",
     "His daughter Wies named the quarry and wrote the timetable, and his grandson Joris drives number 8.",
     "D3:1 D3:8 D4:3 D5:2"),
    ("MR", "What had to be replaced in the two clocks that other people brought, and what did the parts cost?",
     "A wheel with missing teeth for £18 and a suspension spring for £6.", "D2:3 D2:4 D5:5 D5:6"),
    ("KR", "Which colour is number 8 now?", "Red", "D3:7 D5:4"),
    ("KR", "How long is the line after the station was moved?", "5.5 metres", "D4:4 D4:5"),
    ("KR", "How much may Bram spend a month since March?", "£55", "D1:6 D2:5"),
    ("CD", "Does it conflict with the dialogue to say that Bram chose H0 for his railway?", "Yes.", "D1:7 D1:8"),
    ("CD",
     "Does it conflict with the dialogue to say that the depot clock now keeps time within ten seconds a week?", "No.",
     "D4:6"),
    ("AR", "What is the name of Bram's wife?", "Not mentioned.", "D1"),
    ("AR", "Which church does the parish priest belong to?", "Not mentioned.", "D5"),
]  # fmt: skip

PICTURES: dict[str, Callable[[], Picture]] = {
    "depot stopped": partial(views.clock, 4, 10, "Hollis and Rook"),
    "depot running": partial(views.clock, 9, 30, "Hollis and Rook"),
    "quill clock": partial(views.clock, 6, 55, "Aurora", case="#4f8f8a", face="#ffffff"),
    "vestry clock": partial(views.clock, 12, 15, "T. Marsh", case="#22242a", face="#efe6cf"),
    "gears three": partial(views.gears, [48, 60, 64]),
    "gears broken": partial(views.gears, [42, 56, 64], broken=True),
    "engine green": partial(views.engine, "#2f7a4a", "31", ["#b8423a", "#e8bb34"]),
    "engine blue": partial(views.engine, "#3566a8", "8", ["#8d9296", "#9ba0a4", "#858a8e"]),
    "engine red": partial(views.engine, "#b8302a", "8", ["#8d9296"]),
    "station": partial(views.halt, "Lower Tibbet", 2),
    "signal stop": partial(views.signal, False),
    "signal go": partial(views.signal, True),
    "packing list": partial(papers.whiteboard, "For the hall",
                            ["table, 2 trestles", "engines 31 and 8", "controller, red stop", "depot clock + hook",
                             "tin for the ward", "plum cake"], ink="#2e7d4f"),
    "timetable": partial(papers.price_board, "Lower Tibbet",
                         [("10:30", "Grumble Pit"), ("11:45", "Grumble Pit"), ("13:10", "round the hill"),
                          ("14:50", "Grumble Pit"), ("16:20", "last train")]),
}  # fmt: skip

CLOCKS = Dialogue(
    "Clock_Mending_Model_Railway",
    {
        "name": "Bram",
        "persona_summary": "Bram is a retired tram driver who mends clocks and builds a model railway in his cellar.",
        "traits": ["methodical", "warm", "stubborn"],
        "conversation_style": "Short reports from the bench, with pictures and exact figures.",
    },
    SCRIPT,
    QUESTIONS,
    PICTURES,
)
