"""An invented country for the HotpotQA sample: its rivers, towns, bands, books and bridges."""

from __future__ import annotations

# One paragraph a line, `Title: sentence | sentence | …`.
PARAGRAPHS = """\
Ostrel: The Ostrel is a river in northern Verrin that rises on Mount Calder and enters the sea at Port Hallam. | It is
  214 kilometres long. | Barges carried salt on it until 1931.
Wend: The Wend is a river in southern Verrin. | It is 187 kilometres long and flows through the town of Marrowick. |
  Its name comes from an old word for turning.
Mount Calder: Mount Calder is an extinct volcano in Verrin. | It is 2,140 metres high. | A weather station was built
  on its top in 1904.
Mount Ister: Mount Ister is a mountain on the border of Verrin and Solland. | It is 2,377 metres high. | The first
  ascent was made by Lina Prow in 1866.
Port Hallam: Port Hallam is a harbour town in Verrin with 48,200 inhabitants. | Its lighthouse was designed by Edmund
  Saye. | The town is known for smoked eel.
Marrowick: Marrowick is a market town in Verrin with 31,600 inhabitants. | It has been the seat of the National Clock
  Museum since 1958. | The painter Ada Thorne was born there.
Tarn Abbey: Tarn Abbey is a village in eastern Verrin. | It grew round an abbey that burned down in 1702. | Its school
  band, the Tarn Abbey Winds, was founded in 1949.
Quillford: Quillford is a university town in Verrin with 77,900 inhabitants. | Its university was founded in 1641 by
  Bishop Anselm Roe. | The town has the oldest printing press of the country.
Bellhaven: Bellhaven is the capital of Verrin. | It lies where the Ostrel and the Little Ostrel meet. | The parliament
  has met there since 1829.
Edmund Saye: Edmund Saye (1801 - 1877) was an engineer from Verrin. | He was born in Quillford and trained as an organ
  builder. | He designed eleven lighthouses and one opera house.
Lina Prow: Lina Prow (1838 - 1911) was a mountaineer and botanist from Solland. | She described forty species of moss.
  | In later life she taught at a girls' school in Tarn Abbey.
Ada Thorne: Ada Thorne (1889 - 1962) was a painter from Verrin. | She is best known for the series Forty Winters. |
  She was married to the composer Jory Vance.
Jory Vance: Jory Vance (1884 - 1950) was a composer from Verrin. | He wrote the opera The Salt Barge, which was first
  given in 1921. | He collected songs of the river people.
The Salt Barge: The Salt Barge is an opera in three acts. | Its first performance took place at the Saye Opera House
  in Bellhaven. | The libretto was written by Petra Lund.
Petra Lund: Petra Lund (1890 - 1974) was a poet and translator. | She was born in Port Hallam and worked as a ship's
  clerk. | Her collection Low Water won the Roe Prize in 1933.
Saye Opera House: The Saye Opera House is an opera house in Bellhaven with 1,180 seats. | It was opened in 1862. | Its
  ceiling was painted by Gilles Amery.
Gilles Amery: Gilles Amery (1820 - 1889) was a ceiling painter from Solland. | He lost the sight of one eye as a
  child. | His last work is in the town hall of Marrowick.
Roe Prize: The Roe Prize is a literary prize of Verrin. | It has been awarded every year since 1925 by the university
  of Quillford. | The prize is a silver inkwell.
National Clock Museum: The National Clock Museum is a museum with about 3,000 clocks. | Its founder was the watchmaker
  Otto Brandt. | All of its clocks are set four minutes fast.
Otto Brandt: Otto Brandt (1899 - 1981) was a watchmaker and collector. | He learned his trade in Bellhaven. | He
  claimed that he was never late in his life.
Low Water: Low Water is a collection of sixty poems. | It was published in 1932 by Inkwell House. | Most of the poems
  are set in a harbour at night.
Inkwell House: Inkwell House is a publisher in Quillford. | It was founded in 1901 by the sisters Maud and Clara
  Finch. | Its mark is a wren on a pen.
Paper Wrens: Paper Wrens is a folk rock band from Quillford. | The band was formed in 2003 by Iris Coyle and Ben
  Harrow. | Their second album is Ferry Lights.
Ferry Lights: Ferry Lights is an album of 2008. | It was recorded in a disused ferry at Port Hallam. | The cover shows
  a painting by Ada Thorne.
Iris Coyle: Iris Coyle (born 1979) is a singer and fiddler. | Before music she cast church bells. | She is a
  great-granddaughter of the composer Jory Vance.
Ben Harrow: Ben Harrow (born 1976) is a guitarist and instrument maker. | He was born in Marrowick. | His guitars are
  built from the wood of old church pews.
Night Ferrymen: Night Ferrymen is a punk band from Port Hallam. | The band was formed in 1998 by three dockers. |
  Their drummer is Sal Odell.
Sal Odell: Sal Odell (born 1975) is a drummer and goalkeeper. | She kept goal for Hallam Athletic from 1994 to 2001. |
  She wrote a cookery book about eel.
Hallam Athletic: Hallam Athletic is a football club founded in 1896. | Its ground is Saltway Park, which holds 9,400
  people. | The club plays in black and silver.
Marrowick Town: Marrowick Town is a football club founded in 1902. | Its ground is Wend Lane, which holds 7,150
  people. | The club plays in green.
Saltway Park: Saltway Park is a football ground in Port Hallam. | It was built on a filled salt dock in 1923. | The
  west stand is named after a ferry.
Treadle Bridge: Treadle Bridge is a footbridge over the Wend in Marrowick. | It was built in 1884 by Hester Blythe. |
  Walkers once paid a toll of one button.
Hester Blythe: Hester Blythe (1846 - 1930) was the first woman to work as a bridge builder in Verrin. | She built nine
  bridges. | She studied in Quillford disguised as her brother.
Long Arm Bridge: Long Arm Bridge is a railway bridge over the Ostrel near Bellhaven. | It was opened in 1879. | At 412
  metres it is the longest bridge in Verrin.
Calder Line: The Calder Line is a railway from Bellhaven to Tarn Abbey. | It was opened in 1881 and crosses the Long
  Arm Bridge. | Its trains are painted yellow.
Wend Valley Railway: The Wend Valley Railway is a railway from Marrowick to Solland. | It was opened in 1894. | It was
  closed for nine years after a landslide.
The Glass Heron: The Glass Heron is a novel of 1958 by Rufus Maine. | It tells the story of a glass blower who follows
  a bird. | It was made into a film in 1967.
Rufus Maine: Rufus Maine (1917 - 1999) was a novelist. | He spent his childhood in Bellhaven and worked as a night
  porter. | He never owned a telephone.
The Glass Heron (film): The Glass Heron is a film of 1967 directed by Corinne Abel. | It was filmed in Tarn Abbey in
  eleven days. | The music is played on glasses.
Corinne Abel: Corinne Abel (1931 - 2015) was a film director. | She was born in Solland and began as a puppeteer. |
  Her films have hardly any dialogue.
Harbour of Tin: Harbour of Tin is a novel of 1949 by Elsie Marran. | It is set among smugglers on the Ostrel. | The
  Roe Prize went to it in 1950.
Elsie Marran: Elsie Marran (1908 - 1990) was a novelist and lock keeper. | She kept the lock of Bellhaven for
  twenty-six years. | She wrote all her books in pencil.
"""

Question = tuple[str, str, str, str, list[tuple[str, int]]]

# (type, level, question, answer, supporting facts)
QUESTIONS: list[Question] = [
    ("bridge", "easy", "Where does the river rise that enters the sea at the town with a lighthouse by Edmund Saye?",
     "Mount Calder", [("Port Hallam", 1), ("Ostrel", 0)]),
    ("bridge", "medium", "In which town was the designer of the lighthouse of Port Hallam born?", "Quillford",
     [("Port Hallam", 1), ("Edmund Saye", 1)]),
    ("bridge", "medium", "How high is the mountain that Lina Prow was the first to climb?", "2,377 metres",
     [("Mount Ister", 1), ("Mount Ister", 2), ("Lina Prow", 0)]),
    ("bridge", "hard", "What was the first trade of the woman who wrote the libretto of The Salt Barge?",
     "ship's clerk",
     [("The Salt Barge", 2), ("Petra Lund", 1)]),
    ("bridge", "medium", "Who painted the ceiling of the house where The Salt Barge was first performed?",
     "Gilles Amery", [("The Salt Barge", 1), ("Saye Opera House", 2)]),
    ("bridge", "medium", "In which year did the husband of Ada Thorne see his opera first given?", "1921",
     [("Ada Thorne", 2), ("Jory Vance", 1)]),
    ("bridge", "hard", "What is the prize that Low Water won made of?", "silver",
     [("Petra Lund", 2), ("Roe Prize", 2)]),
    ("bridge", "easy", "Who founded the museum that has its seat in Marrowick?", "Otto Brandt",
     [("Marrowick", 1), ("National Clock Museum", 1)]),
    ("bridge", "hard", "Which sisters founded the publisher of Low Water?", "Maud and Clara Finch",
     [("Low Water", 1), ("Inkwell House", 1)]),
    ("bridge", "hard", "In which town was the painter born whose work is on the cover of Ferry Lights?", "Marrowick",
     [("Ferry Lights", 2), ("Marrowick", 2)]),
    ("bridge", "medium", "For which club did the drummer of Night Ferrymen keep goal?", "Hallam Athletic",
     [("Night Ferrymen", 2), ("Sal Odell", 1)]),
    ("bridge", "medium", "In which year was the ground of Hallam Athletic built?", "1923",
     [("Hallam Athletic", 1), ("Saltway Park", 1)]),
    ("bridge", "hard", "How long is the bridge that the Calder Line crosses?", "412 metres",
     [("Calder Line", 1), ("Long Arm Bridge", 2)]),
    ("bridge", "easy", "How many bridges did the builder of Treadle Bridge build?", "nine",
     [("Treadle Bridge", 1), ("Hester Blythe", 1)]),
    ("bridge", "medium", "What did the director of The Glass Heron do before she made films?", "puppeteer",
     [("The Glass Heron (film)", 0), ("Corinne Abel", 1)]),
    ("bridge", "hard", "What did the founder of Paper Wrens who descends from Jory Vance make before music?",
     "church bells",
     [("Paper Wrens", 1), ("Iris Coyle", 1), ("Iris Coyle", 2)]),
    ("comparison", "easy", "Which river is longer, the Ostrel or the Wend?", "the Ostrel",
     [("Ostrel", 1), ("Wend", 1)]),
    ("comparison", "easy", "Are Mount Calder and Mount Ister both higher than 2,000 metres?", "yes",
     [("Mount Calder", 1), ("Mount Ister", 1)]),
    ("comparison", "medium", "Which football club was founded first, Hallam Athletic or Marrowick Town?",
     "Hallam Athletic",
     [("Hallam Athletic", 0), ("Marrowick Town", 0)]),
    ("comparison", "medium", "Were Rufus Maine and Elsie Marran both lock keepers?", "no",
     [("Rufus Maine", 1), ("Elsie Marran", 0)]),
    ("comparison", "hard", "Which was published first, Harbour of Tin or The Glass Heron?", "Harbour of Tin",
     [("Harbour of Tin", 0), ("The Glass Heron", 0)]),
    ("comparison", "medium", "Which band was formed earlier, Paper Wrens or Night Ferrymen?", "Night Ferrymen",
     [("Paper Wrens", 1), ("Night Ferrymen", 1)]),
    ("comparison", "hard", "Which railway was opened first, the Calder Line or the Wend Valley Railway?",
     "the Calder Line",
     [("Calder Line", 1), ("Wend Valley Railway", 1)]),
    ("comparison", "easy", "Which town has more inhabitants, Port Hallam or Quillford?", "Quillford",
     [("Port Hallam", 0), ("Quillford", 0)]),
]  # fmt: skip
