"""Lives without a model: what is told is kept as it was said, and questions are answered by quoting."""

from __future__ import annotations

from tests.replay.lives.life import life
from tests.replay.stage import Stage


@life
def first_day(stage: Stage) -> None:
    """A decision, facts and a preference are told; questions are answered; one is taken back."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    said = "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it"
    desk.ask(said)
    desk.ask("Remember that my sister Nora lives in Ghent")
    desk.ask("I prefer tea over coffee in the morning")
    desk.ask("The staging database listens on port 5433")
    desk.ask("why PostgreSQL for analytics?")
    desk.ask("where does Nora live?")
    desk.kbtui("remember", "The bakery closes at noon on Saturdays")
    (path,) = [each["path"] for each in desk.json("list") if "postgresql" in each["path"]]
    (commit,) = desk.json("log", path)
    desk.kbtui("diff", f"{commit['commit']}~1", commit["commit"], path, status=1)
    desk.kbtui("why", f"{path}:11")
    desk.kbtui("undo", commit["commit"])
    desk.kbtui("restore", path, "--at", commit["commit"])
    stage.pass_(days=1)
    desk.json("search", "JSON operators")
    desk.ask("what do I drink in the morning?")


@life
def a_week_in_the_bakery(stage: Stage) -> None:
    """A week of conversations, with corrections, dates, lists and something to do."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    days = {
        "monday": [
            "The sourdough starter is called Bertha and is fed at 6:30",
            "Tomorrow the flour comes from the mill in Alton, 40 sacks",
            "What is the starter called?",
        ],
        "tuesday": [
            "No, 38 sacks came, two were torn",
            "TODO: call the mill about the torn sacks",
            "We decided to bake rye only on Fridays because the oven is full otherwise",
        ],
        "wednesday": [
            "Jonas is allergic to walnuts. Never put him at the nut bench",
            "- two trays of rolls\n- one tray of spelt\n- the apple cake for Mrs Rahimi",
            "who is allergic to walnuts?",
        ],
        "thursday": [
            "Actually Bertha is fed at 7:00 now",
            "when is Bertha fed?",
            "I like it when answers are short",
        ],
        "friday": [
            "The health inspector comes on 2026-03-19 at 10:00",
            "Remember: the fire door must stay closed",
            "which days do we bake rye?",
        ],
    }
    for day, said in days.items():
        for text in said:
            desk.ask(text, session=day)
        stage.pass_(days=1)
    desk.ask("When does the inspector come?", session="friday")
    desk.kbtui("show", "memory/MEMORY.md")
    desk.json("search", "rye", "--scope", "sessions")
    desk.kbtui("chat", "--help")


@life
def in_other_languages(stage: Stage) -> None:
    """German and French are kept and found, with their letters in every form."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    desk.ask("Merke dir: Meine Schwester Jördis wohnt in Tübingen")
    desk.ask("Wir haben entschieden, die Küche grün zu streichen, weil das Zimmer dunkel ist")
    desk.ask("Ich bevorzuge Züge statt Flüge")
    desk.ask("Wo wohnt Jördis?")
    desk.ask("Souviens-toi que Zoé habite à Besançon")
    desk.ask("Nous avons décidé de partir le 14 mai")
    desk.ask("où habite Zoé ?")
    desk.ask("Jo\u0308rdis hat am 3. April Geburtstag")  # the same letter in two characters
    desk.kbtui("new", "person", "Jördis Müller-Lüdenscheidt", "--tag", "familie")
    desk.kbtui(
        "new", "topic", "日本語のメモ", "--body", "東京に行く。\n\n[[Jördis Müller-Lüdenscheidt]]"
    )
    desk.json("search", "jordis")
    desk.json("search", "東京")
    desk.kbtui("rename", "Jördis Müller-Lüdenscheidt", "Jördis Sommer")
    desk.ask("Wann hat Jördis Geburtstag?")


@life
def secrets_in_what_is_said(stage: Stage) -> None:
    """Keys and passwords are said, pasted and searched for, and then purged."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    key = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
    desk.ask(f"The key of the billing service is {key}, keep it")
    desk.ask("my password is hunter2-Kestrel-77")
    desk.ask("The door code of the studio is 4711, and the token below is old", session="pasted")
    desk.kbtui("ask", "--json", "--session", "pasted", stdin="ghp_" + "a1B2c3D4e5F6" * 3 + "\n")
    desk.ask("what is the door code of the studio?")
    desk.write("knowledge/facts/wifi.md", "# Wifi\n\nThe guest wifi is Kestrel-77-guest.\n")
    desk.kbtui("list")
    desk.kbtui("new", "fact", "Wifi upstairs", "--body", "It is Kestrel-77-guest there as well.")
    desk.kbtui("purge", "--dry-run", "--json", "Kestrel-77-guest")
    desk.kbtui("purge", "--yes", "--json", "Kestrel-77-guest", status=(0, 1))
    desk.kbtui("purge", "--yes", "--json", stdin="nowhere-to-be-found-9\n", status=1)
    desk.kbtui("search", "Kestrel", status=(0, 1))
    desk.ask("what is the wifi?")


@life
def forgetting(stage: Stage) -> None:
    """Something is forgotten, told again, and the forgetting is undone."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    desk.ask("Remember that Karl rides a red bicycle to the quarry", session="quarry")
    desk.ask("Karl moved to Porto in January", session="quarry")
    desk.ask("Greta plays the cello", session="music")
    desk.kbtui("new", "person", "Karl", "--body", "- Rides a red bicycle\n- Knows the quarry\n")
    stage.pass_(days=2)
    desk.ask("who rides a red bicycle?")
    desk.kbtui("consolidate", "--json", "--yes")
    desk.kbtui("forget", "--yes", "Karl rides a red bicycle")
    desk.kbtui("show", "karl")
    desk.ask("who rides a red bicycle?")
    desk.ask("Karl rides a red bicycle again", session="quarry")
    desk.kbtui("forget", "--yes", "the cello")
    desk.kbtui("forget", "--yes", "what nobody ever said of zeppelins", status=(0, 1, 2, 3, 4))
    last = desk.json("log", "-n", "1")
    desk.kbtui("undo", last[0]["commit"], status=range(6))
    desk.kbtui("remember", "Karl rides a red bicycle")
