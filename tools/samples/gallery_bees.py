"""Odile keeps bees on the roof of a school: five sessions from April to December 2024."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from samples import gallery_views as views
from samples import papers
from samples.drawing import Picture
from samples.gallery_dialogue import Dialogue

SCRIPT = """\
SESSION: 2024-04-13
USER: Hello! I am the caretaker of a small school and the head has let me put two beehives on the flat roof. I have
  read one book and been stung once. Where do I begin?
ASSISTANT: What a start! Begin with a calm place out of the wind, water within a few metres, and a neighbour who
  knows. Tell me what you have on the roof already and I will keep track of it with you.
USER: This is the first one. I painted its roof red and I call it Juniper. Please remember that, I will use the names.
IMAGE: juniper two | A white beehive of two boxes with a red roof on a flat city roof, bees flying around it.
ASSISTANT: Juniper, red roof. It stands well. Two boxes are enough for April; give a third when the bees cover most of
  the frames in the upper one.
USER: And this is the other one, with the yellow roof. It is called Saffron and it came from my aunt Ilse in Ghent.
IMAGE: saffron one | A white beehive of a single box with a yellow roof on a flat city roof.
ASSISTANT: Saffron, yellow roof, from Aunt Ilse. A single box for now. Leave it alone for a week after the journey, as
  bees that have been driven about are short of temper.
USER: What tools do I really need? The shop wanted to sell me everything it had.
ASSISTANT: A smoker, a hive tool, a veil, gloves you can feel through, and a notebook. The rest can wait until you
  miss it.
USER: I bought these two then. The smoker smells of bonfire even when it is cold.
IMAGE: smoker | A metal bee smoker with leather bellows and a red hive tool on a wooden bench.
ASSISTANT: Good ones. Burn dry grass or old sacking in it, never anything with oil in it. Three puffs at the door are
  plenty.
USER: The children want to know how many bees live in there. I told them four thousand, was that silly?
ASSISTANT: A little low. A spring colony has ten or fifteen thousand, and in June it may pass forty thousand. Four
  thousand would be a very small winter cluster.
USER: I shall correct myself on Monday. Also, I want to sell the honey at the school fair for £6 a jar.
ASSISTANT: A fair price for a first year. Do not promise many jars yet, as a new colony needs most of its honey
  itself.
USER: Last thing for today: when do I open them for the first time?
ASSISTANT: On a still day above 15 degrees, about a week from now. Look for eggs, and close up within ten minutes.
SESSION: 2024-05-18
USER: I opened Juniper this morning. I think these are eggs, like tiny grains of rice standing up.
IMAGE: eggs | A wooden frame of comb; dark cells in the middle hold tiny upright white eggs.
ASSISTANT: They are eggs, one in each cell and upright, so they were laid within a day. Your queen is there and at
  work, even if you did not see her.
USER: Saffron looked different. The middle of the comb is covered with brown lids.
IMAGE: brood | A wooden frame of comb with brown capped cells in the middle and pale cells around.
ASSISTANT: That is capped brood, a solid patch without gaps. It is a healthy picture: those bees hatch within twelve
  days.
USER: And then I saw her! In Saffron, with a green dot on her back. Who painted that?
IMAGE: queen green | A long queen bee with a green dot on her back among workers on honeycomb.
ASSISTANT: Your aunt, I suppose, or the breeder. Keepers mark queens by year, and green stands for a year that ends in
  4 or 9, so she hatched this spring.
USER: Juniper's queen I have not seen. Is it bad that she has no dot?
ASSISTANT: Not at all. You can mark her later with a pen made for it. Until then eggs are all the proof you need.
USER: I planted things for them. This box is by the stairs.
IMAGE: borage | A wooden planter with blue star-shaped borage flowers on tall stems.
ASSISTANT: Borage, one of the best: it fills with nectar again within minutes. Sow some more in June and they will
  feed on it until autumn.
USER: The head brought these from her garden and I do not dare say no.
IMAGE: poppy | A wooden planter with red poppies with dark centres.
ASSISTANT: Say yes. Poppies have no nectar, but bees love their dark pollen, and you will see them come home with
  black baggage.
USER: I changed my mind about the price, by the way. The Saturday market sells honey at £9, so I want to ask £7.50.
ASSISTANT: Noted, £7.50 a jar and no longer £6. Put the roof on the label; people pay for a story.
USER: One of the older pupils, Tamsin, wants to help on Thursdays. She is allergic to nuts, not to stings.
ASSISTANT: Then she is welcome. Let her wear the spare veil, and keep the school nurse's number in the notebook all
  the same.
SESSION: 2024-07-06
USER: I gave Juniper a third box a fortnight ago and look at it now. It is a tower.
IMAGE: juniper three | A white beehive of three boxes with a red roof, many bees in the air.
ASSISTANT: Three boxes and busy. Keep an eye on the weight: if it grows by more than a kilogram a day they are on a
  good flow, and you may need a fourth.
USER: Tamsin weighs both hives every Saturday and drew this for the corridor.
IMAGE: weights | A bar chart with one bar for each Saturday in June, numbers above the bars.
ASSISTANT: A lovely chart, with a clear jump in the middle of the month. That was the lime trees.
USER: The lime trees in Dock Street, yes, the whole roof smelled of them from the 14th of June.
ASSISTANT: Write that date down. Next year you can have the boxes ready a week before.
USER: There is bad news. Saffron swarmed on Wednesday, in the middle of the sports day.
ASSISTANT: Oh no. Did you catch the swarm? A box, a sheet and a steady hand are enough, and they are gentle when they
  hang in a cluster.
USER: Mister Abara from the bakery caught it with a bread crate. It lives in a third hive now, with a blue roof. I
  call it Bramble.
IMAGE: bramble one | A white beehive of a single box with a blue roof on a flat roof.
ASSISTANT: Welcome, Bramble, blue roof. So you keep three hives now. The queen with the green dot went with the swarm,
  as the old queen always does.
USER: So Saffron has no queen?
ASSISTANT: She will have a young one from the cells they left. Do not open Saffron for three weeks, or you may disturb
  her on her wedding flight.
USER: I counted the mites on the board under Juniper after one day. I hope I counted right.
IMAGE: mites seven | A white gridded board with seven small reddish-brown mites on it.
ASSISTANT: Under ten a day in July is no cause for alarm. Count again in August after you take the honey, when the
  number matters more.
USER: And the new planter is out. These smell better than the others.
IMAGE: lavender | A wooden planter with violet lavender spikes.
ASSISTANT: Lavender. It likes your dry roof better than any other plant you have shown me.
SESSION: 2024-09-01
USER: We took the honey yesterday, on the last day of August! Everything sticks to everything.
IMAGE: honey comb | A wooden frame of comb fully covered with white wax caps.
ASSISTANT: Congratulations! All capped, so it is ripe and will keep. How much was it?
USER: Only from Juniper, as you said. 14 kilograms, which is 41 jars of 340 grams.
IMAGE: jar amber | A jar of amber honey with a paper label showing its weight.
ASSISTANT: From a first summer on a roof that is a fine harvest. Store the jars in the dark and away from the boiler.
USER: The last four jars are darker. Tamsin wrote a label of their own for them.
IMAGE: jar dark | A jar of dark brown honey with a paper label.
ASSISTANT: That will be honeydew from the lime leaves: dark, malty, and less sweet. Sell those to the people who like
  strong tea.
USER: The fair is on the 21st. With the market at £9 and the jars so pretty I will ask £8, and that is final.
ASSISTANT: £8 then, and I shall hold you to it. 41 jars would bring £328 if you keep none.
USER: I keep three: one for Aunt Ilse, one for Mister Abara and one for the head.
ASSISTANT: So 38 for the fair, £304. A good return for a bread crate and some paint.
USER: The mites under Juniper: I counted again, one day, like in July.
IMAGE: mites sixteen | A white gridded board with many small reddish-brown mites scattered over it.
ASSISTANT: That is over the ten a day that I would accept. Treat now that the honey is off, with thymol strips, and
  count once more in three weeks.
USER: Saffron has eggs again, so there is a new queen. Tamsin marked her, but we only had a white pen.
IMAGE: queen white | A long queen bee with a white dot on her back among workers on honeycomb.
ASSISTANT: By the rule she should wear green too, but a white dot you can see is worth more than a green one you do
  not have. Write in the notebook that white means Saffron, 2024.
USER: Which of the three is the weakest now?
ASSISTANT: Bramble, I think, since the swarm began from nothing in July. Feed it syrup until it will take no more.
SESSION: 2024-12-07
USER: It has snowed on the roof. I went up with the broom and everything is so quiet.
IMAGE: saffron snow | A white beehive of a single box with a yellow roof covered with snow.
ASSISTANT: Leave the snow on the roofs, as it keeps the warmth in. Only see that the doors are free.
USER: I put my ear on Juniper and it hums. On Bramble I hear nothing at all.
ASSISTANT: Do not give up on Bramble yet. A small cluster can be hard to hear. Tap once and listen for a short buzz.
USER: I tapped. A short buzz, like somebody turning over in bed!
ASSISTANT: Then they are alive. Put a block of sugar paste under the roof on the next mild day.
USER: The treatment worked, I think. Three weeks after the strips there were only two mites.
ASSISTANT: From sixteen to two: it did. You can save the second pack for next year if it stays dry.
USER: We sold all 38 jars in an hour and a half. The money goes for veils, so that six pupils can come up next year.
ASSISTANT: Wonderful. Six veils, and Tamsin as their forewoman?
USER: She moves to Leuven in January, sadly. Her brother Corin takes over the scale.
ASSISTANT: Then tell Corin about Saturday mornings. And let Tamsin take a jar of the dark one with her.
USER: For the spring I ordered seeds. This is how the picture on the packet looks.
IMAGE: sunflower | Sunflowers with yellow petals and brown centres in a wooden planter.
ASSISTANT: Sunflowers give both nectar and pollen, but they are tall. Tie them to the railing before the first storm.
USER: What shall I do in January?
ASSISTANT: Nothing, which is the hardest part. Lift each hive a little from behind to feel the weight, and paint new
  frames indoors.
"""

QUESTIONS: list[tuple[str, ...]] = [
    ("FR", "Which tools did the assistant say a beginner really needs?",
     "A smoker, a hive tool, a veil, gloves and a notebook.", "D1:4"),
    ("FR", "Who caught the swarm, and with what?", "Mister Abara from the bakery, with a bread crate.", "D3:5"),
    ("FR", "How many jars did the harvest of August fill?", "41 jars", "D4:2"),
    ("VS", "Which pictures show the hive with the red roof?", "D1:IMG_001, D3:IMG_001", "D1:2 D3:1"),
    ("VS", "Please find the pictures of a queen bee.", "D2:IMG_003, D4:IMG_005", "D2:3 D4:7"),
    ("VS", "Which picture shared earlier shows the same kind of flower as this one?", "D2:IMG_004", "D2:5",
     "borage | Blue star-shaped flowers in a wooden planter."),
    ("TTL", "What is the name of the hive in this picture?", "Bramble", "D3:5",
     "bramble one | A white beehive of one box with a blue roof."),
    ("TTL", "By the names that Odile gave, which hive is this?", "Saffron", "D1:3",
     "saffron snow | A snow-covered beehive with a yellow roof."),
    ("TTL", "What is growing on this comb?", "Capped brood", "D2:2",
     "brood | A frame of comb with brown lids over the middle cells."),
    ("TR", "On which date did the school roof begin to smell of lime trees? Return in the format YYYY-MM-DD.",
     "2024-06-14",
     "D3:3"),
    ("TR", "Which happened first: Juniper got its third box, or Saffron swarmed?", "Juniper got its third box.",
     "D3:1 D3:4"),
    ("VR", "How many boxes did Juniper have more in July than in April? Please answer with an Arabic numeral.", "1",
     "D1:2 D3:1"),
    ("VR", "How many mites are on the board that Odile showed in July? Please answer with an Arabic numeral.", "7",
     "D3:7"),
    ("MR", "Which people helped Odile with the bees in 2024, and how?",
     "Aunt Ilse gave the Saffron colony, Tamsin weighed the hives and marked a queen, Mister Abara caught the"
     " swarm, and Corin takes over the scale.", "D1:3 D2:8 D3:2 D3:5 D4:7 D5:6"),
    ("MR", "Why does the queen of Saffron wear a white dot and not a green one?",
     "The green queen left with the swarm, and only a white pen was there to mark the new one.", "D3:5 D4:7"),
    ("KR", "What price did Odile settle on for a jar of honey?", "£8", "D1:7 D2:7 D4:4"),
    ("KR", "How many hives does Odile keep at the end of the year?", "3", "D1:1 D3:5"),
    ("CD", "Does it conflict with the dialogue to say that Tamsin is allergic to bee stings?", "Yes.", "D2:8"),
    ("CD", "Does it conflict with the dialogue to say that all the honey of 2024 came from Juniper?", "No.", "D4:2"),
    ("CD", "Does the following conflict with the dialogue? The hive in the picture lost its old queen in July.", "No.",
     "D3:4 D3:5", "saffron one | A white beehive of one box with a yellow roof."),
    ("AR", "How much did Odile pay for the smoker?", "Not mentioned.", "D1"),
    ("AR", "What is the first name of the head of the school?", "Not mentioned.", "D2"),
]  # fmt: skip

RED, YELLOW, BLUE = "#b8423a", "#e8bb34", "#3f73b0"
PICTURES: dict[str, Callable[[], Picture]] = {
    "juniper two": partial(views.hive, RED, 2, "Juniper"),
    "juniper three": partial(views.hive, RED, 3, "Juniper"),
    "saffron one": partial(views.hive, YELLOW, 1),
    "saffron snow": partial(views.hive, YELLOW, 1, snow=True),
    "bramble one": partial(views.hive, BLUE, 1),
    "smoker": views.smoker,
    "eggs": partial(views.comb, "eggs"),
    "brood": partial(views.comb, "brood"),
    "honey comb": partial(views.comb, "honey"),
    "queen green": partial(views.queen, "#3fae5a"),
    "queen white": partial(views.queen, "#f7f7f2"),
    "borage": partial(views.flowers, "borage"),
    "poppy": partial(views.flowers, "poppy"),
    "lavender": partial(views.flowers, "lavender"),
    "sunflower": partial(views.flowers, "sunflower"),
    "weights": partial(papers.bars, "Juniper on Saturdays in June",
                       [("1 June", 31), ("8 June", 33), ("15 June", 41), ("22 June", 44), ("29 June", 46)], "kg"),
    "mites seven": partial(views.mite_board, 7),
    "mites sixteen": partial(views.mite_board, 16),
    "jar amber": partial(views.jar, "JUNIPER", "340 g"),
    "jar dark": partial(views.jar, "NIGHT LIME", "340 g", "#6b3a14"),
}  # fmt: skip

BEES = Dialogue(
    "Rooftop_Bees_School_Garden",
    {
        "name": "Odile",
        "persona_summary": "Odile is a school caretaker of 47 who keeps her first bees on the roof of the school.",
        "traits": ["patient", "curious", "dry humour"],
        "conversation_style": "Tells things in order, shows pictures, and corrects herself cheerfully.",
    },
    SCRIPT,
    QUESTIONS,
    PICTURES,
)
