"""The two conversations of the LoCoMo sample, as scripts, and their questions.

A script has SESSION lines (a date as LoCoMo writes it), turns (`Name: words`), IMAGE lines for the turn before
(address | caption | search words, the first and last perhaps empty), and for the other fields SUMMARY,
FACT (turn | speaker | words) and EVENT (speaker | words).
"""

from __future__ import annotations

HANA_AND_IDRIS = """\
SESSION: 7:42 pm on 3 February, 2024
Hana: Idris! I finally did it, I signed up for the pottery class at Kiln Lane. The first evening was yesterday.
Idris: Good for you! You have talked about that since we shared the flat. How was it?
Hana: Muddy. My first bowl looks like a hat that somebody sat on.
IMAGE: https://example.org/photos/bowl-one.jpg | a photo of a lopsided brown bowl on a table | pottery class first
  bowl
Idris: I would wear it. I have news too: the choir made me second tenor. Rehearsals are on Tuesdays now.
Hana: Congratulations! Will you sing at the harbour feast again?
Idris: In June, yes. And I sold the motorbike last week. The knees said no.
Hana: The red one? You bought it in 2016, the summer I met you.
Idris: That one. I got enough for a canoe. It is green and it leaks.
IMAGE: https://example.org/photos/canoe.jpg | a photo of a green canoe on a lawn | second hand green canoe
Hana: A leaking canoe is a bath. What does your sister say?
Idris: Samira laughed for a minute and then offered to patch it.
SUMMARY: Hana began a pottery class at Kiln Lane the day before, and Idris became second tenor, sold his red motorbike
  and bought a leaking green canoe.
FACT: D1:1 | Hana | Hana began a pottery class at Kiln Lane.
FACT: D1:6 | Idris | Idris sold his motorbike because of his knees.
FACT: D1:8 | Idris | Idris bought a green canoe that leaks.
EVENT: Hana | Hana begins a pottery class.
EVENT: Idris | Idris buys a canoe.
SESSION: 9:15 am on 20 April, 2024
Idris: Morning! Samira and I paddled the Lenn on Sunday. Eleven kilometres and only one swan against us.
Hana: So the patch holds? I was sure you would sink by the second bridge.
Idris: It holds. We slept at the mill and saw an otter. Look how small.
IMAGE: https://example.org/photos/otter.jpg | a photo of a small otter on a stone by a river | otter river stone
Hana: Oh! I am jealous. I had a week of glaze tests. Blue goes green, green goes brown, brown stays brown.
Idris: Which one do you like?
Hana: The brown. I made three mugs in it for the market on the 4th of May. My stall is next to the cheese.
IMAGE: | a photo of three brown mugs on a shelf |
Idris: I will come and buy one. I owe you for the soup pot.
Hana: You do. By the way, I gave up coffee in March. My hands were shaking at the wheel.
Idris: You, without coffee! What do you drink?
Hana: Barley tea, as my grandmother did in Sapporo.
SUMMARY: Idris and his sister paddled eleven kilometres on the Lenn and saw an otter. Hana tests glazes, makes mugs
  for a market on 4 May and has given up coffee.
FACT: D2:1 | Idris | Idris and Samira paddled eleven kilometres on the Lenn.
FACT: D2:6 | Hana | Hana made three brown mugs for a market on 4 May.
FACT: D2:8 | Hana | Hana gave up coffee in March.
EVENT: Idris | Idris and Samira paddle on the Lenn.
EVENT: Hana | Hana prepares for the market.
SESSION: 6:03 pm on 25 May, 2024
Hana: The market was three weeks ago and I still count coins. I sold nine mugs and two bowls!
Idris: And I have one of the mugs. My colleague Petra asked whether you would make twelve for the office.
Hana: Tell her yes, but not before August. I have a new kitten at home and she eats clay.
IMAGE: https://example.org/photos/kitten.jpg | a photo of a grey kitten in a cardboard box | grey kitten box
Idris: A kitten! What is she called?
Hana: Miso. She is the colour of the glaze I wanted and never got.
Idris: My news is smaller. The harbour feast is on the 15th of June and I sing two verses alone.
Hana: Alone! Are you nervous?
Idris: I sing to the canoe every evening. It has not complained.
Hana: I shall be there. I might even bring my brother Kenji, he flies in on the 12th.
Idris: Bring him. He still owes me a chess game from 2019.
SUMMARY: Hana sold nine mugs and two bowls, has a kitten called Miso and will make mugs for Petra's office. Idris will
  sing alone at the harbour feast on 15 June; Kenji arrives on 12 June.
FACT: D3:1 | Hana | Hana sold nine mugs and two bowls at the market.
FACT: D3:5 | Hana | Hana's kitten is called Miso.
FACT: D3:6 | Idris | Idris will sing two verses alone on 15 June.
EVENT: Hana | Hana adopts a kitten.
SESSION: 8:30 pm on 18 June, 2024
Hana: You were wonderful on Saturday! Kenji had something in his eye in the second verse.
Idris: He beat me at chess afterwards, so we are even. Did you see that the rain began exactly at my high note?
Hana: The sky has an ear. I took this from the wall.
IMAGE: https://example.org/photos/feast.jpg | a photo of a choir under umbrellas by a harbour | choir harbour rain
Idris: I am the one with the yellow umbrella. Samira lent it to me.
Hana: I have been thinking. Kiln Lane has a bench free, and I could rent it by the month and work four days in the
  office.
Idris: Do it. You smile when you talk about mud.
Hana: I gave notice for my Fridays this morning. From September I am a potter on Fridays.
Idris: To Fridays! I sold the canoe, by the way.
Hana: No! Why?
Idris: To buy one with two seats. Samira found it, it is blue and it does not leak. Come along in July.
SUMMARY: Idris sang at the harbour feast in the rain and Kenji beat him at chess. Hana will work as a potter on
  Fridays from September. Idris sold the green canoe and bought a blue one with two seats.
FACT: D4:7 | Hana | Hana will be a potter on Fridays from September.
FACT: D4:10 | Idris | Idris bought a blue canoe with two seats.
EVENT: Hana | Hana reduces her hours at the office.
EVENT: Idris | Idris sings alone at the harbour feast.
"""

NELL_AND_TOBIAS = """\
SESSION: 10:20 am on 9 September, 2023
Nell: Hello stranger! I am writing from the train. I start at the lighthouse museum in Skerry Bay on Monday.
Tobias: So you took it! Are you the keeper now?
Nell: Keeper of the tea room and the archive. The lamp itself has been automatic since 1987.
Tobias: I am proud of you. Here the bakery runs without me for the first time, I have a broken wrist.
Nell: Oh no, how?
Tobias: I fell off a ladder with a tray of buns. The buns are well. It was on the first of the month.
IMAGE: https://example.org/photos/cast.jpg | a photo of an arm in a white cast with drawings on it | arm plaster cast
  drawings
Nell: Who draws on it? That is a very good whale.
Tobias: My niece Alma. She is eight and wants to be a vet for whales.
Nell: There are porpoises here. Bring her.
Tobias: In the autumn holidays perhaps. She has asked for binoculars already.
SUMMARY: Nell starts at the lighthouse museum in Skerry Bay. Tobias broke his wrist on 1 September; his niece Alma
  draws on the cast.
FACT: D1:1 | Nell | Nell starts at the lighthouse museum in Skerry Bay.
FACT: D1:6 | Tobias | Tobias broke his wrist when he fell off a ladder.
EVENT: Nell | Nell begins at the lighthouse museum.
EVENT: Tobias | Tobias breaks his wrist.
SESSION: 4:45 pm on 28 October, 2023
Tobias: We are home again! Alma has told the whole street about the porpoises. Four of them!
Nell: It was the best week of my autumn. She left her drawing of the lamp in the archive, so I framed it.
IMAGE: https://example.org/photos/lamp.jpg | a photo of a framed child's drawing of a lighthouse | child drawing
  lighthouse frame
Tobias: She will burst. How is the old log book?
Nell: I can read it now. In the storm of 1911 the keeper, one Marit Sund, kept the lamp turning by hand for nine
  hours.
Tobias: By hand! I get tired of stirring for nine minutes.
Nell: How is the wrist?
Tobias: The plaster came off on Tuesday. I can knead with both hands, slowly.
Nell: And the rye bread with apples that you promised?
Tobias: Won a second prize in Harrow, thank you for asking. First went to a lady of ninety.
Nell: Quite right too. Send me a loaf.
SUMMARY: Tobias and Alma visited Skerry Bay and saw four porpoises. Nell reads a log book about the storm of 1911. The
  plaster came off, and Tobias's rye bread with apples won a second prize in Harrow.
FACT: D2:1 | Tobias | Tobias and Alma saw four porpoises in Skerry Bay.
FACT: D2:4 | Nell | The keeper Marit Sund turned the lamp by hand for nine hours in 1911.
FACT: D2:9 | Tobias | Tobias won a second prize with his rye bread.
EVENT: Tobias | Tobias and Alma visit Nell.
SESSION: 1:05 pm on 14 January, 2024
Nell: Happy new year! The tea room is closed until March, so I am alone with the log books and the wind.
Tobias: Happy new year! I have hired Yusuf, who used to bake on ships. He kneads standing on one leg.
Nell: Does he want to bake here in the summer? The tea room needs somebody who does not fear weather.
Tobias: I shall ask. He loves the sea more than my cellar.
Nell: I am writing a small book about Marit Sund. I have forty pages already.
Tobias: Forty! Will there be pictures?
Nell: Only this one. It is the only photograph of her.
IMAGE: https://example.org/photos/keeper.jpg | a photo of an old picture of a woman beside a large lamp | old
  photograph lighthouse keeper woman
Tobias: She looks as if she had just said no to somebody.
Nell: To the whole Ministry, I believe. And you, any plans?
Tobias: I learn to swim. I am forty-four and it is a disgrace. Thursdays, with the old ladies.
SUMMARY: Nell writes a book about Marit Sund and has forty pages. Tobias hired Yusuf, a former ship's baker, and
  learns to swim on Thursdays.
FACT: D3:2 | Tobias | Tobias hired Yusuf, who used to bake on ships.
FACT: D3:5 | Nell | Nell has written forty pages about Marit Sund.
EVENT: Nell | Nell writes a book.
EVENT: Tobias | Tobias learns to swim.
SESSION: 8:10 pm on 6 May, 2024
Tobias: Twenty-five metres, without a pause, last Thursday! The old ladies clapped.
Nell: Bravo! Then you can fall out of boats from now on. The book is printed, two hundred copies. It is called Nine
  Hours.
IMAGE: https://example.org/photos/book.jpg | a photo of a stack of thin blue books | stack of blue books
Tobias: I want one with your name in it. Did the museum pay for it?
Nell: Half of it. The rest came from the lady of ninety in Harrow! She is Marit's granddaughter, can you believe it?
Tobias: The one who beat my bread! Then I forgive her.
Nell: Yusuf arrives on the 20th. He has asked for a cellar, so I gave him the oil store.
Tobias: I shall miss him. Alma draws the sign for your tea room, she is nine now and charges in biscuits.
Nell: Tell her that the frame is waiting. Will you all come for the lamp night on the 22nd of June?
Tobias: All of us. I might even swim.
Nell: In Skerry Bay it has eleven degrees in June. Bring the old ladies.
SUMMARY: Tobias swam twenty-five metres. Nell's book Nine Hours is printed, half paid by Marit's granddaughter in
  Harrow. Yusuf comes to the tea room on 20 May, and all meet for the lamp night on 22 June.
FACT: D4:1 | Tobias | Tobias swam twenty-five metres without a pause.
FACT: D4:2 | Nell | Nell's book Nine Hours is printed in two hundred copies.
FACT: D4:6 | Nell | Yusuf arrives on 20 May.
EVENT: Nell | Nell's book is printed.
EVENT: Tobias | Tobias swims twenty-five metres.
"""

Row = tuple[int, str, str | int | None, str | None, list[str]]

# (category, question, answer, adversarial answer, evidence). Some rows are as odd as LoCoMo's own: whole numbers as
# answers, an evidence field that holds two ids at once, no evidence, an adversarial question with an answer.
HANA_QUESTIONS: list[Row] = [
    (1, "Which things has Idris owned that can be ridden or paddled?", "red motorbike, green canoe, blue canoe", None,
     ["D1:6", "D1:8", "D4:10"]),
    (1, "How many canoes has Idris bought?", 2, None, ["D1:8", "D4:10"]),
    (1, "What has Hana made out of clay?", "bowls, mugs", None, ["D1:3; D2:6"]),
    (1, "Which animals did they tell each other about?", "swan, otter, kitten", None, ["D2:1", "D2:3", "D3:3"]),
    (2, "When did Hana go to her first pottery class?", "2 February 2024", None, ["D1:1"]),
    (2, "When did Idris buy the motorbike?", 2016, None, ["D1:7"]),
    (2, "When did Hana give up coffee?", "March 2024", None, ["D2:8"]),
    (2, "When did Idris sing alone at the harbour feast?", "15 June 2024", None, ["D3:6", "D4:1"]),
    (2, "In which month will Hana begin to work as a potter on Fridays?", "September 2024", None, ["D4:7"]),
    (3, "Would Hana enjoy a cup of espresso these days?", "Likely no; she gave up coffee because her hands shook", None,
     ["D2:8"]),
    (3, "Is Samira likely to be handy with tools?", "Yes, she patched a leaking canoe", None, ["D1:10", "D2:2"]),
    (4, "Where does Hana take her pottery class?", "Kiln Lane", None, ["D1:1"]),
    (4, "What is the name of Hana's kitten?", "Miso", None, ["D3:5"]),
    (4, "How far did Idris and Samira paddle on the Lenn?", "eleven kilometres", None, ["D2:1"]),
    (4, "Whose umbrella did Idris hold at the harbour feast?", "Samira's", None, ["D4:4"]),
    (4, "What does Hana drink in place of coffee?", "barley tea", None, ["D2:10"]),
    (5, "What is the name of Idris's kitten?", None, "Miso", ["D3:5"]),
    (5, "Which voice does Hana sing in the choir?", None, "second tenor", ["D1:4"]),
    (5, "Did Hana buy the blue canoe?", "No", "Yes", ["D4:10"]),
]  # fmt: skip

NELL_QUESTIONS: list[Row] = [
    (1, "What do Tobias and Yusuf have in common?", "they are bakers", None, ["D1:4", "D3:2"]),
    (1, "What has Alma drawn?", "a whale, a lamp, a sign", None, ["D1:7", "D2:2", "D4:7"]),
    (1, "How is the lady who won first prize in Harrow connected to Nell's book?",
     "she is the granddaughter of Marit Sund and paid for half of it", None, ["D2:9", "D4:4"]),
    (2, "When did Tobias break his wrist?", "1 September 2023", None, ["D1:6"]),
    (2, "When did the plaster come off Tobias's arm?", "24 October 2023", None, ["D2:7"]),
    (2, "In which year did the lamp in Skerry Bay become automatic?", 1987, None, ["D1:3"]),
    (2, "When does Yusuf arrive in Skerry Bay?", "20 May 2024", None, ["D4:6"]),
    (3, "Would Alma like a book about dolphins?",
     "Likely yes; she wants to be a vet for whales and loved the porpoises", None,
     ["D1:8", "D2:1"]),
    (3, "Does Nell seem to be at ease when she is alone?", "Yes", None, []),
    (4, "What is the title of Nell's book?", "Nine Hours", None, ["D4:2"]),
    (4, "On which day of the week does Tobias learn to swim?", "Thursday", None, ["D3:10"]),
    (4, "How many copies of the book were printed?", "two hundred", None, ["D4:2"]),
    (4, "For how long did Marit Sund turn the lamp by hand?", "nine hours", None, ["D2:4"]),
    (4, "What did Tobias win with his rye bread with apples?", "a second prize", None, ["D2:9"]),
    (5, "What did Nell win in Harrow?", None, "a second prize", ["D2:9"]),
    (5, "How many pages has Tobias written about Marit Sund?", None, "forty", ["D3:5"]),
    (5, "Which bone did Yusuf break on the ladder?", None, "his wrist", ["D1:6"]),
]  # fmt: skip

# Dates that LoCoMo-like files carry for sessions that are not there.
EMPTY_DATES = {"conv-1": ["2:12 pm on 7 July, 2024", "11:40 am on 1 August, 2024"], "conv-2": []}
TALKS = [("conv-1", HANA_AND_IDRIS, HANA_QUESTIONS), ("conv-2", NELL_AND_TOBIAS, NELL_QUESTIONS)]
