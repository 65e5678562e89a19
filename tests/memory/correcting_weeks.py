"""Weeks of two lives in which values changed, and the places of each, counted by hand."""

from __future__ import annotations

MEMORY = "memory/MEMORY.md"

WEEK = {
    MEMORY: (
        "# User Preferences\n\n"
        "- The rent of the flat in Mainz is 870 euros\n"
        "- The rent of the flat in Trier is 870 euros\n"
        "- My dentist is Dr. Vogel\n"
        "- My sister's dentist is Dr. Vogel\n"
        "- The book club meets on Tuesday\n"
        "- The blue team meets on Tuesday\n"
        "- The web server runs on Debian 11\n"
        "- Oma wohnt in Kassel\n"
        "- The wifi password is on the fridge\n"
        "- I owe Piet 40 euros\n"
    ),
    "memory/2026-11-21.md": (
        "# 2026-11-21\n\n"
        "- 09:14 The rent of the flat in Mainz is 870 euros\n"
        "- 09:20 Piet said that the rent of the flat in Mainz is 870 euros\n"
        "- 10:02 My dentist is Dr. Vogel\n"
        "- 18:30 Greta leads the design team\n"
    ),
    "memory/2026-11-23.md": (
        "# 2026-11-23\n\n"
        "- 08:00 The book club meets on Tuesday\n"
        "- 08:05 We met on Tuesday for coffee\n"
        "- 21:10 Oma wohnt in Kassel\n"
    ),
    "knowledge/topics/mainz-flat.md": (
        "---\ntype: topic\nsummary: The flat in Mainz, rent 870 euros\n---\n# Mainz flat\n\n"
        "Rent: 870 euros, due on the 3rd.\n\n"
        "- [ ] Transfer the rent of 870 euros\n"
        "- [x] Transferred the rent of 870 euros\n\n"
        "> The landlord writes that the rent is 870 euros.\n\n"
        "```\nrent = 870\n```\n\nThe deposit was 870 euros too.\n"
    ),
    "knowledge/topics/trier-flat.md": ("---\ntype: topic\n---\n# Trier flat\n\nRent: 870 euros.\n"),
    "knowledge/people/dr-vogel.md": (
        "---\ntype: person\n---\n# Dr. Vogel\n\nMy dentist is Dr. Vogel, on Kaiserstrasse.\n\n"
        "Dr. Vogel plays the cello.\n"
    ),
    "knowledge/decisions/2026-10-server.md": (
        "---\ntype: decision\n---\n# Web server\n\n## Decision\n\n"
        "The web server runs on Debian 11.\n\n## Alternatives Considered\n\n- Alpine\n"
    ),
    "knowledge/topics/backup-server.md": (
        "---\ntype: topic\n---\n# Backup server\n\nThe backup server runs on Debian 11.\n"
    ),
    "knowledge/projects/design.md": (
        "---\ntype: project\nsummary: Greta leads the design team\n---\n# Design\n\n"
        "Greta leads the design team, Hamid the research team.\n\n"
        "## Evolution\n\n- 2026-01-03: Greta leads the design team\n"
    ),
    "knowledge/people/oma.md": (
        "---\ntype: person\n---\n# Oma\n\nOma wohnt in Kassel, im dritten Stock.\n\n"
        "Ihre Schwester wohnt auch in Kassel.\n"
    ),
    "knowledge/topics/wifi.md": (
        "---\ntype: topic\n---\n# Wifi\n\nThe password is on the fridge.\n\n"
        "The shopping list is on the fridge.\n"
    ),
    "knowledge/people/piet.md": (
        "---\ntype: person\nprivate: true\n---\n# Piet\n\nI owe Piet 40 euros.\n"
    ),
    "knowledge/topics/money.md": (
        "---\ntype: topic\n---\n# Money\n\n- I owe Piet 40 euros\n- Piet owes Tom 40 euros\n"
        "- I owe Ada 40 euros\n- The fee was 40 euros\n"
    ),
}
MAINZ = "The rent of the flat in Mainz is 870 euros", "The rent of the flat in Mainz is 910 euros"
INDEX = "knowledge/INDEX.md"
FLAT = "knowledge/topics/mainz-flat.md"
CHANGED = {
    "rent": (
        *MAINZ,
        [
            (MEMORY, "The rent of the flat in Mainz is 870 euros"),
            ("memory/2026-11-21.md", "09:14 The rent of the flat in Mainz is 870 euros"),
            (FLAT, "The flat in Mainz, rent 870 euros"),
            (FLAT, "Rent: 870 euros, due on the 3rd."),
            (FLAT, "Transfer the rent of 870 euros"),
            (INDEX, "mainz-flat: The flat in Mainz, rent 870 euros"),
        ],
    ),
    "dentist": (
        "My dentist is Dr. Vogel",
        "My dentist is Dr. Brandt",
        [
            (MEMORY, "My dentist is Dr. Vogel"),
            ("memory/2026-11-21.md", "10:02 My dentist is Dr. Vogel"),
            ("knowledge/people/dr-vogel.md", "My dentist is Dr. Vogel, on Kaiserstrasse."),
        ],
    ),
    "club": (
        "The book club meets on Tuesday",
        "The book club meets on Thursday",
        [
            (MEMORY, "The book club meets on Tuesday"),
            ("memory/2026-11-23.md", "08:00 The book club meets on Tuesday"),
        ],
    ),
    "server": (
        "The web server runs on Debian 11",
        "The web server runs on Debian 12",
        [
            (MEMORY, "The web server runs on Debian 11"),
            ("knowledge/decisions/2026-10-server.md", "The web server runs on Debian 11."),
            (INDEX, "2026-10-server: The web server runs on Debian 11."),
        ],
    ),
    "team": (
        "Greta leads the design team",
        "Hamid leads the design team",
        [
            ("memory/2026-11-21.md", "18:30 Greta leads the design team"),
            ("knowledge/projects/design.md", "Greta leads the design team"),
            (
                "knowledge/projects/design.md",
                "Greta leads the design team, Hamid the research team.",
            ),
            (INDEX, "design: Greta leads the design team"),
        ],
    ),
    "oma": (
        "Oma wohnt in Kassel",
        "Oma wohnt in Fulda",
        [
            (MEMORY, "Oma wohnt in Kassel"),
            ("memory/2026-11-23.md", "21:10 Oma wohnt in Kassel"),
            ("knowledge/people/oma.md", "Oma wohnt in Kassel, im dritten Stock."),
            (INDEX, "oma: Oma wohnt in Kassel, im dritten Stock."),
        ],
    ),
    "wifi": (
        "The wifi password is on the fridge",
        "The wifi password is in the notebook",
        [
            (MEMORY, "The wifi password is on the fridge"),
            ("knowledge/topics/wifi.md", "The password is on the fridge."),
            (INDEX, "wifi: The password is on the fridge."),
        ],
    ),
    "debt": (
        "I owe Piet 40 euros",
        "I owe Piet 25 euros",
        [
            (MEMORY, "I owe Piet 40 euros"),
            ("knowledge/topics/money.md", "I owe Piet 40 euros"),
            (INDEX, "money: I owe Piet 40 euros"),
        ],
    ),
}
"""Counted by hand: the places of each value, each as the line that stands there."""


# Another life, which was held back while the first one's places were tried.
HELD = {
    "memory/MEMORY.md": (
        "# Facts\n\n"
        "- Yoga is on Mondays at 18:30 in the Ringstrasse studio\n"
        "- Pilates is on Mondays at 18:30 in the Hafen studio\n"
        "- The vet of the cat is Carmen Ortiz\n"
        "- The vet of Lola's dog is Carmen Ortiz\n"
        "- Die Miete der Garage beträgt 85 Euro\n"
        "- Die Miete der Wohnung beträgt 85 Euro im Jahr mehr\n"
        "- Jonas arbeitet bei Siemens\n"
        "- My bike lock has the code 4471\n"
        "- The cellar lock has the code 4471\n"
        "- El gimnasio cuesta 29 euros\n"
        "- We fly to Porto in March\n"
        "- The team uses GitLab for tickets\n"
    ),
    "memory/2026-11-19.md": (
        "# 2026-11-19\n\n"
        "- 07:45 Yoga is on Mondays at 18:30 in the Ringstrasse studio\n"
        "- 12:10 Jonas arbeitet bei Siemens\n"
        "- 12:30 Ada sagt, dass Jonas bei Siemens arbeitet\n"
        "- [ ] 13:00 The vet of the cat is Carmen Ortiz, call her\n"
    ),
    "memory/2026-11-20.md": (
        "# 2026-11-20\n\n- 20:00 We fly to Porto in March\n- 20:05 Tom flies to Porto in March\n"
        "- 20:10 The team uses GitLab for tickets\n"
    ),
    "knowledge/preferences/yoga.md": (
        "---\ntype: preference\nsummary: Yoga on Mondays at 18:30\n---\n# Yoga\n\n"
        "Mondays at 18:30, Ringstrasse studio.\n\n- bring the blue mat\n"
    ),
    "knowledge/people/carmen-ortiz.md": (
        "---\ntype: person\n---\n# Carmen Ortiz\n\nThe vet of the cat.\n\nCarmen Ortiz speaks French.\n"
    ),
    "knowledge/topics/cat.md": (
        "---\ntype: topic\n---\n# Cat\n\nVet: Carmen Ortiz\n\nBorn in 2019.\n"
    ),
    "knowledge/topics/garage.md": (
        "---\ntype: topic\n---\n# Garage\n\nMiete: 85 Euro\n\nStellplatz 85\n"
    ),
    "knowledge/people/jonas.md": (
        "---\ntype: person\n---\n# Jonas\n\nArbeitet bei Siemens in München.\n\n"
        "## Evolution\n\n- 2024-05-01: arbeitet bei Siemens\n"
    ),
    "knowledge/topics/bike.md": (
        "---\ntype: topic\n---\n# Bike\n\n| what | value |\n|---|---|\n| lock code | 4471 |\n\n"
        "`unlock 4471`\n"
    ),
    "knowledge/topics/gimnasio.md": (
        "---\ntype: topic\n---\n# Gimnasio\n\nCuota: 29 euros al mes.\n\n"
        "> Dicen que cuesta 29 euros.\n"
    ),
    "knowledge/projects/portugal.md": (
        "---\ntype: project\nsummary: We fly to Porto in March\n---\n# Portugal\n\n"
        "We fly to Porto in March with the kids.\n\n- [ ] Book the hotel in Porto\n"
    ),
    "knowledge/decisions/2026-09-tickets.md": (
        "---\ntype: decision\n---\n# Tickets\n\n## Decision\n\nThe team uses GitLab for tickets.\n\n"
        "## Context\n\nThe code is on GitLab already.\n"
    ),
}
HELD_CHANGED = {
    "yoga": (
        "Yoga is on Mondays at 18:30 in the Ringstrasse studio",
        "Yoga is on Mondays at 19:15 in the Ringstrasse studio",
        [
            (MEMORY, "Yoga is on Mondays at 18:30 in the Ringstrasse studio"),
            ("memory/2026-11-19.md", "07:45 Yoga is on Mondays at 18:30 in the Ringstrasse studio"),
            ("knowledge/preferences/yoga.md", "Yoga on Mondays at 18:30"),
            ("knowledge/preferences/yoga.md", "Mondays at 18:30, Ringstrasse studio."),
            (INDEX, "yoga: Yoga on Mondays at 18:30"),
        ],
    ),
    "vet": (
        "The vet of the cat is Carmen Ortiz",
        "The vet of the cat is Lucía Vidal",
        [
            (MEMORY, "The vet of the cat is Carmen Ortiz"),
            ("memory/2026-11-19.md", "13:00 The vet of the cat is Carmen Ortiz, call her"),
            ("knowledge/topics/cat.md", "Vet: Carmen Ortiz"),
            (INDEX, "cat: Vet: Carmen Ortiz"),
        ],
    ),
    "garage": (
        "Die Miete der Garage beträgt 85 Euro",
        "Die Miete der Garage beträgt 95 Euro",
        [
            (MEMORY, "Die Miete der Garage beträgt 85 Euro"),
            ("knowledge/topics/garage.md", "Miete: 85 Euro"),
            (INDEX, "garage: Miete: 85 Euro"),
        ],
    ),
    "jonas": (
        "Jonas arbeitet bei Siemens",
        "Jonas arbeitet bei Bosch",
        [
            (MEMORY, "Jonas arbeitet bei Siemens"),
            ("memory/2026-11-19.md", "12:10 Jonas arbeitet bei Siemens"),
            ("knowledge/people/jonas.md", "Arbeitet bei Siemens in München."),
            (INDEX, "jonas: Arbeitet bei Siemens in München."),
        ],
    ),
    "bike": (
        "My bike lock has the code 4471",
        "My bike lock has the code 9024",
        [
            (MEMORY, "My bike lock has the code 4471"),
            ("knowledge/topics/bike.md", "| lock code | 4471 |"),
        ],
    ),
    "gym": (
        "El gimnasio cuesta 29 euros",
        "El gimnasio cuesta 34 euros",
        [(MEMORY, "El gimnasio cuesta 29 euros")],  # that "cuota" is what it costs, no word tells
    ),
    "porto": (
        "We fly to Porto in March",
        "We fly to Lisbon in March",
        [
            (MEMORY, "We fly to Porto in March"),
            ("memory/2026-11-20.md", "20:00 We fly to Porto in March"),
            ("knowledge/projects/portugal.md", "We fly to Porto in March"),
            ("knowledge/projects/portugal.md", "We fly to Porto in March with the kids."),
            (INDEX, "portugal: We fly to Porto in March"),
        ],
    ),
    "tickets": (
        "The team uses GitLab for tickets",
        "The team uses Linear for tickets",
        [
            (MEMORY, "The team uses GitLab for tickets"),
            ("memory/2026-11-20.md", "20:10 The team uses GitLab for tickets"),
            ("knowledge/decisions/2026-09-tickets.md", "The team uses GitLab for tickets."),
            (INDEX, "2026-09-tickets: The team uses GitLab for tickets."),
        ],
    ),
}
