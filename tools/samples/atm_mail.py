"""The e-mails of the ATM sample: 2024, a year of Maren Oakes, who mends old charts at a map library in Leeds."""

from __future__ import annotations

# (id, sent, one-line summary, body)
EMAILS: list[tuple[str, str, str, str]] = [
    ("email202401040001", "2024-01-04 09:12:40", "Kestrel Cycles confirms the order of a bicycle, ready on 13 January",
     "Hello Maren, thank you for order KC-20418: one Heron 3 in harbour blue, £645.00, paid in full. It will be"
     " ready to collect from the shop on Saturday 13 January after 11:00. A free check after six weeks is"
     " included. Kestrel Cycles"),
    ("email202401150001", "2024-01-15 18:05:11", "Pedalguard bicycle insurance starts, frame number still needed",
     "Your Pedalguard policy for one bicycle begins today at £58.20 a year. Please send us the frame number within 14"
     " days. You will find it on a sticker on the down tube. Until then theft is covered up to £300 only."),
    ("email202401290001", "2024-01-29 10:31:02", "Registration for the Papel e Tinta workshop in Porto",
     "Dear Maren Oakes, your place at Papel e Tinta 2024 (Porto, 12 to 14 March) is confirmed at the early fee of"
     " €180.00. Your talk, 'Mending river charts', is set for Tuesday 12 March at 15:00 in the Sala Verde."),
    ("email202402010001", "2024-02-01 20:14:55", "Flight booking Leeds to Porto and back, reference QX7TLM",
     "Booking QX7TLM for Maren Oakes. Out: Monday 11 March, Leeds 06:55, Porto 09:40. Home: Friday 15 March,"
     " Porto 13:40, Leeds 16:25. Total paid £128.40 with one cabin bag. Online check-in opens 48 hours before"
     " departure."),
    ("email202402020001", "2024-02-02 08:47:20", "Hotel reservation Casa do Moinho, Porto, four nights",
     "We look forward to welcoming you to Casa do Moinho from 11 to 15 March (4 nights, single room, €312.00)."
     " City tax is not included and breakfast can be added at the desk. You pay on departure."),
    ("email202402030001", "2024-02-03 16:20:38", "Holbeck Cat Rescue approves the adoption of a tabby",
     "Good news, Maren! You may take home Pudding, the two-year-old tabby you met last week. Please come on Saturday 10"
     " February at 11:00 and bring a carrier. Our usual donation is £95. You are free to give her another name; she has"
     " never answered to this one."),
    ("email202402190001", "2024-02-19 12:02:09", "Holbeck Vets appointment for Pickle on 22 February",
     "Pickle (tabby, female) is booked in with us on Thursday 22 February at 16:20 for a first vaccination and a"
     " general check. We will weigh her too. Please keep her in her carrier in the waiting room. Holbeck Vets"),
    ("email202402220001", "2024-02-22 17:30:44", "Holbeck Vets invoice for Pickle's first visit",
     "Invoice 5512. First vaccination £46.50, worming tablet £12.00, total £58.50, paid by card. The second"
     " vaccination is due on Thursday 21 March at 16:20. Holbeck Vets"),
    ("email202403080001", "2024-03-08 14:55:30", "Papel e Tinta programme change: talk moved",
     "Dear speakers, the Sala Verde has a leaking ceiling, fittingly. Maren Oakes now speaks on Wednesday 13"
     " March at 10:30, and all talks of that morning are in the Sala Azul. The printed programme is wrong; please"
     " trust this one."),
    ("email202403140001", "2024-03-14 19:22:17", "Schedule change for flight home, reference QX7TLM",
     "Booking QX7TLM: your flight from Porto to Leeds on Friday 15 March has a new time. It now departs at 15:05 and"
     " arrives at 17:50. You need not do anything. We are sorry for the change."),
    ("email202403180001", "2024-03-18 11:11:11", "Expense claim for Porto received by the library",
     "Hi Maren, I have your claim for Porto: registration, flight and hotel bill. The tram is missing a receipt,"
     " so I left it out. You should see the money with your March pay. Best, Ines in accounts, Wharfside Map"
     " Library"),
    ("email202403210001", "2024-03-21 17:12:03", "Holbeck Vets invoice for Pickle's second visit",
     "Invoice 5630. Second vaccination £31.00, paid by card. Pickle was very brave and only hid behind the scale"
     " once. Her yearly check is due in December. Holbeck Vets"),
    ("email202403250001", "2024-03-25 09:40:26", "Fenwick Hill Allotments offers a plot",
     "Dear Ms Oakes, after three years on our list you are offered plot 17B. The rent is £42.00 a year and the"
     " gate key is £15.00, which you get back. Please accept before 6 April. Fenwick Hill Allotments"),
    ("email202404020001", "2024-04-02 21:08:50", "Thistledown Seeds order: tomato, squash, kale",
     "Thank you! Your parcel: Amber Bell tomato £3.95, Grey Lantern squash £4.60, Black Frond kale £3.80, postage"
     " £2.50, total £14.85. Sow the squash indoors and be patient, it is late but very large. Thistledown Seeds"),
    ("email202404100001", "2024-04-10 08:15:33", "Thistledown Seeds replaces one packet",
     "We are sorry, Black Frond sold out this week. We have put Ruby Stem chard in your parcel in its place at the same"
     " price. Tell us if you would rather have the money. Thistledown Seeds"),
    ("email202405020001", "2024-05-02 13:37:00", "Aire Valley 10K entry confirmed",
     "You are in! Aire Valley 10K, Sunday 19 May, start at 09:30 in wave C. Your race number comes by post. Bags can be"
     " left in the school hall from 08:15."),
    ("email202405200001", "2024-05-20 10:05:48", "Aire Valley 10K results",
     "Congratulations, Maren Oakes. Your chip time is 54:37, which is place 412 of 1,630. The clock over the"
     " finish counts from the first wave, so do not be cross with it. Photographs are on our page for a month."),
    ("email202405280001", "2024-05-28 07:50:12", "Brightwell Energy changes the monthly payment",
     "Looking at your readings we will change your direct debit from £74.00 to £81.00 a month from July. Please send a"
     " photograph of your meter every quarter. Brightwell Energy"),
    ("email202406030001", "2024-06-03 19:44:29", "Mill Hall ticket order: The Paper Lanterns",
     "Order 88410: two tickets for The Paper Lanterns, Friday 21 June, 2 x £26.00, booking fee £4.00, total"
     " £56.00. Doors 19:00. Support: Slow Otters. Please bring the printed tickets. Mill Hall, Leeds"),
    ("email202406190001", "2024-06-19 15:28:07", "Mill Hall: change for The Paper Lanterns on Friday",
     "A change for Friday. Slow Otters have lost their drummer to a broken wrist, and Nettle Choir will open the"
     " evening instead. As they are fourteen people, we open the doors at 18:30. Mill Hall, Leeds"),
    ("email202406240001", "2024-06-24 17:01:55", "Kestrel Cycles invoice for a bicycle service",
     "Heron 3, full service: new chain £24.00, brake pads £18.00, work £26.00, total £68.00. The free six-week"
     " check had run out, sorry. We like the yellow basket! Kestrel Cycles"),
    ("email202407010001", "2024-07-01 12:24:40", "Eastline Rail booking Leeds to Edinburgh for two",
     "Two adults. Out: Friday 19 July, Leeds 10:15, coach B, seats 21 and 22. Back: Monday 22 July, Edinburgh"
     " 14:30, coach D. Total paid £94.60. Travel together, as this is one ticket. Eastline Rail"),
    ("email202407190001", "2024-07-19 18:40:21", "Eastline Rail is sorry for a late arrival",
     "Your train of today reached Edinburgh 57 minutes late because of a swan on the line. You are owed £18.92,"
     " which we will pay to your card by 16 August. Eastline Rail"),
    ("email202407230001", "2024-07-23 09:09:09", "Junia about Edinburgh, her scarf and the train money",
     "Morning, sister! That was a lovely weekend, and the fireworks were worth the sore neck. I have sent you"
     " £47.30, my half of the train. Also: my green scarf is gone. I had it on the last morning. Did you take any"
     " pictures where I could see where I left it? Junia"),
    ("email202408050001", "2024-08-05 16:16:16", "Dunmore Kitchens: quote for the cupboards",
     "Thank you for showing us your kitchen. New cupboard fronts, painted, fitted in two weeks: £4,180.00"
     " including VAT. Tiles are not part of this. Dunmore Kitchens"),
    ("email202408070001", "2024-08-07 11:42:58", "Hartley and Finch: quote for the cupboards",
     "Our price for the cupboard fronts is £3,650.00 plus VAT at 20 per cent, fitted in October at the earliest."
     " Tiles are not part of this. Hartley and Finch"),
    ("email202408090001", "2024-08-09 18:21:37", "Marlow Joinery: quote for the cupboards",
     "Hello Maren. Fronts made in my workshop from ash, painted in any colour you like: £3,940.00, delivery and VAT"
     " included. I could start on 2 September. Bea Marlow, Marlow Joinery"),
    ("email202408120001", "2024-08-12 09:30:00", "Marlow Joinery: deposit received",
     "Thank you for saying yes! Your deposit of £985.00 has arrived and the rest is due at the end. I start on Monday 2"
     " September and should be done by Friday 13. Please choose the colour soon. Bea Marlow"),
    ("email202409030001", "2024-09-03 20:02:45", "Marlow Joinery: the kitchen will be finished later",
     "Hello Maren, the hinges are stuck in Hull. They come on the 11th, so I will finish on Tuesday 17 September"
     " and not on the 13th. Sorry about your birthday weekend. Bea Marlow"),
    ("email202409070001", "2024-09-07 13:13:13", "Teo books a birthday dinner at the Copper Kettle",
     "As your kitchen is in pieces, we are taking you out. Saturday 14 September, 19:15, table for six at the Copper"
     " Kettle in Quayhead. I ordered a cake. You know nothing about the cake. Teo"),
    ("email202409120001", "2024-09-12 10:50:31", "Copper Kettle changes the booking for Saturday",
     "Dear Teo and Maren, we can do seven people, but only from 19:45. We moved you to the long table by the"
     " window. The cake may stay in our fridge. Copper Kettle"),
    ("email202410020001", "2024-10-02 22:10:05", "Fellside Bunkhouse reservation, two nights",
     "Two nights from 11 to 13 October, one room, £76.00, paid. The code for the door comes two days before you arrive."
     " The drying room is warm. Fellside Bunkhouse"),
    ("email202410090001", "2024-10-09 08:00:00", "Fellside Bunkhouse door code and parking",
     "The code for the front door is 4071. We have no parking; use the field at Heron Pier, which costs £6.00 a day in"
     " coins. The last boat back across the lake leaves early in October, so look at the sign. Fellside Bunkhouse"),
    ("email202411040001", "2024-11-04 09:18:36", "Wharfside Map Library: opening of Rivers on Paper",
     "Dear all, Rivers on Paper opens on Thursday 21 November at 18:00 in the reading room. Maren has chosen and mended"
     " the twelve charts. Posters are at the printer. Ines"),
    ("email202411180001", "2024-11-18 07:58:13", "Wharfside Map Library: the opening is moved",
     "Dear all, a pipe has burst over the reading room (the charts are dry). The opening is now on Thursday 28"
     " November at 18:30. Please put a sticker on every poster you pass. Ines"),
    ("email202412020001", "2024-12-02 10:44:52", "Wharfside Map Library: visitors at the opening",
     "Well done, everybody. The door counter says 143 people came to the opening, though the tally in the hall stops"
     " earlier because Ines went to get a drink. Rivers on Paper stays until March. Ines"),
    ("email202412090001", "2024-12-09 18:05:26", "Holbeck Vets invoice for Pickle's yearly check",
     "Invoice 6207. Yearly check £39.00, paid by card. Pickle is healthy. She has become a solid cat since"
     " February; please hide the treats. Holbeck Vets"),
    ("email202412160001", "2024-12-16 06:30:00", "Kestrel Cycles winter sale",
     "Winter sale at Kestrel Cycles! The new Heron 4 is £749.00 instead of £829.00, and locks are half price. Until"
     " Christmas Eve only."),
    ("email202412200001", "2024-12-20 21:37:18", "Junia arrives for Christmas",
     "I come on Monday 23 December and will be on the train that reaches Leeds at 17:20. I am bringing the pudding, the"
     " eatable kind. Tell Pickle. Junia"),
]  # fmt: skip
