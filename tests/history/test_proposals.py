"""Proposals: changes that wait beside the branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError, NotFoundError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.history.objects.packing import Packing
from kbtui.history.queries.diff import as_patch
from kbtui.history.sync.remote import parse_address
from kbtui.redaction.secret import Secret

if TYPE_CHECKING:
    from kbtui.history.history import History
    from kbtui.history.places import Proposal
    from tests.history.conftest import Notes

A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"
LINES = "".join(f"line {n}\n" for n in range(1, 31))


def propose(
    history: History,
    edits: dict[str, str | None],
    *,
    name: str | None = None,
    **bases: bytes | None,
) -> Proposal:
    """Propose some texts; `bases` by the file's letter."""
    refs: list[Proposal] = []
    origin = Origin(session="s1", messages=(3, 4))
    known = {f"knowledge/topics/{letter}.md": data for letter, data in bases.items()}
    with history.change(
        Actor.DREAM,
        "because",
        origin,
        sink=lambda change: refs.append(history.proposals.add(change, id=name, bases=known)),
    ) as change:
        for path, text in edits.items():
            if text is None:
                change.delete(path)
            else:
                change.write(path, text)
    assert change.result is None
    return refs[0]


def test_a_proposal_moves_neither_the_branch_nor_a_file(notes: Notes) -> None:
    head = notes.write(A, "one\n")
    ref = propose(notes.history, {A: "one\ntwo\n", B: "new\n"})
    assert notes.text(A) == "one\n"
    assert not notes.exists(B)
    assert [commit.id for commit in notes.history.log()] == [head.id]
    assert ref.commit.parent == head.id
    notes.check()


def test_a_proposal_says_who_proposed_what_and_from_what(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "one\ntwo\n"})
    (found,) = notes.reopened().proposals.all()
    assert found.id == ref.id
    assert (found.commit.actor, found.commit.body) == (Actor.DREAM, "because")
    assert found.commit.origin == Origin(session="s1", messages=(3, 4))
    assert [change.path for change in found.commit.paths] == [A]
    assert "+two" in as_patch(notes.history.changes_of(found.commit.id))


def test_accepting_makes_one_commit_of_whoever_accepts(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "one\ntwo\n", B: "new\n"})
    commit = notes.history.proposals.accept(ref.id)
    assert commit is not None
    assert commit.actor is Actor.YOU
    assert commit.origin == Origin(session="s1", messages=(3, 4), proposal=ref.id)
    assert (notes.text(A), notes.text(B)) == ("one\ntwo\n", "new\n")
    assert notes.history.proposals.all() == ()
    notes.check()


def test_a_preview_shows_what_accepting_would_do_to_the_files_as_they_are(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "one\nproposed\n"})
    notes.write(A, "zero\none\n")
    (place,) = notes.history.proposals.preview(ref.id).places
    assert (place.first, place.ours, place.theirs) == (2, (), ("proposed\n",))
    assert notes.text(A) == "zero\none\n"
    notes.history.proposals.accept(ref.id)
    assert notes.text(A) == "zero\none\nproposed\n"


def test_accepting_keeps_what_was_written_meanwhile(notes: Notes) -> None:
    notes.write(A, "---\ntags: [x]\n---\n- one\n")
    ref = propose(notes.history, {A: "---\ntags: [x, y]\n---\n- one\n- proposed\n"})
    notes.write(A, "---\ntags: [x, z]\n---\n- zero\n- one\n")
    notes.put(A, "---\ntags: [x, z]\n---\n- zero\n- one\n- mine\n")
    notes.history.proposals.accept(ref.id)
    text = notes.text(A)
    assert "y" in text.splitlines()[1]
    assert "z" in text.splitlines()[1]
    assert {"- zero", "- one", "- mine", "- proposed"} <= set(text.splitlines())
    notes.check()


def test_accepting_follows_a_file_that_was_renamed(notes: Notes) -> None:
    notes.write(A, LINES)
    ref = propose(notes.history, {A: f"{LINES}more\n"})
    with notes.history.change(Actor.YOU, "rename") as change:
        change.rename(A, B)
    notes.history.proposals.accept(ref.id)
    assert notes.text(B) == f"{LINES}more\n"
    assert not notes.exists(A)


def test_a_proposed_rename_takes_later_edits_along(notes: Notes) -> None:
    notes.write(A, LINES)
    ref = propose(notes.history, {A: None, B: LINES})
    notes.write(A, f"{LINES}mine\n")
    notes.history.proposals.accept(ref.id)
    assert notes.text(B) == f"{LINES}mine\n"
    assert not notes.exists(A)


def test_a_proposed_deletion_of_what_was_changed_meanwhile_is_a_conflict(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: None})
    notes.write(A, "one\nmine\n")
    with pytest.raises(ConflictError, match="changed since this was proposed"):
        notes.history.proposals.accept(ref.id)
    assert notes.text(A) == "one\nmine\n"


def test_a_conflict_changes_nothing_until_the_proposed_side_is_taken(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "proposed\n"})
    head = notes.write(A, "mine\n")
    with pytest.raises(ConflictError, match="There stands: mine") as error:
        notes.history.proposals.accept(ref.id)
    assert error.value.paths == (A,)
    (place,) = notes.history.proposals.preview(ref.id).conflicts
    assert (place.was, place.ours, place.theirs) == (("one\n",), ("mine\n",), ("proposed\n",))
    assert notes.text(A) == "mine\n"
    assert next(notes.history.log()).id == head.id
    assert [each.id for each in notes.history.proposals.all()] == [ref.id]
    notes.history.proposals.accept(ref.id, theirs=True)
    assert notes.text(A) == "proposed\n"
    assert notes.history.proposals.all() == ()


def test_accepting_some_places_leaves_the_others_waiting(notes: Notes) -> None:
    notes.write(A, LINES)
    wanted = LINES.replace("line 2\n", "second\n").replace("line 28\n", "late\n")
    ref = propose(notes.history, {A: wanted, B: "new\n"})
    assert len(notes.history.proposals.preview(ref.id).places) == 3
    notes.history.proposals.accept(ref.id, places=["2"])
    assert notes.text(A) == LINES.replace("line 28\n", "late\n")
    rest = notes.history.proposals.get(ref.id)
    assert [change.path for change in rest.commit.paths] == [A, B]
    assert rest.commit.time == ref.commit.time
    notes.history.proposals.accept(ref.id)
    assert (notes.text(A), notes.text(B)) == (wanted, "new\n")
    assert notes.history.proposals.all() == ()
    notes.check()


def test_dropping_some_places_leaves_the_others_waiting(notes: Notes) -> None:
    notes.write(A, LINES)
    wanted = LINES.replace("line 2\n", "second\n").replace("line 28\n", "late\n")
    ref = propose(notes.history, {A: wanted})
    notes.history.proposals.drop(ref.id, places=["1"])
    notes.history.proposals.accept(ref.id)
    assert notes.text(A) == LINES.replace("line 28\n", "late\n")


def test_a_place_that_isnt_there_is_refused(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "two\n"})
    with pytest.raises(NotFoundError, match="There is no place 2"):
        notes.history.proposals.accept(ref.id, places=["2"])
    assert notes.text(A) == "one\n"


def test_what_stands_there_already_is_accepted_without_a_commit(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "two\n"})
    head = notes.write(A, "two\n")
    assert notes.history.proposals.accept(ref.id) is None
    assert notes.history.proposals.all() == ()
    assert next(notes.history.log()).id == head.id


def test_a_dropped_proposal_is_gone(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "two\n"}, name="my-proposal")
    stamp = notes.history.proposals.stamp()
    assert notes.history.proposals.drop("my-proposal").commit.id == ref.commit.id
    assert notes.history.proposals.stamp() != stamp
    with pytest.raises(NotFoundError, match="There is no proposal 'my-proposal'"):
        notes.history.proposals.accept("my-proposal")


@pytest.mark.parametrize("name", ["../../heads/main", "A", "", "a/b", "x" * 65, "-x"])
def test_a_name_that_leads_elsewhere_is_refused(notes: Notes, name: str) -> None:
    head = notes.write(A, "one\n")
    with pytest.raises(UsageError, match="is no name for a proposal"):
        propose(notes.history, {A: "two\n"}, name=name)
    assert next(notes.history.log()).id == head.id


def test_a_change_that_changes_nothing_is_no_proposal(notes: Notes) -> None:
    notes.write(A, "one\n")
    with pytest.raises(UsageError, match="at least one file"):
        propose(notes.history, {A: "one\n"})


def test_a_proposal_grows_by_what_is_put_on_top_of_it(notes: Notes) -> None:
    notes.write(A, "one\n")
    first = propose(notes.history, {A: "one\ntwo\n"})
    notes.write(B, "b\n")
    grown = propose(notes.history, {A: "one\ntwo\nthree\n", B: "b\nc\n"}, name=first.id)
    assert [change.path for change in grown.commit.paths] == [A, B]
    assert grown.commit.time == first.commit.time
    notes.write(A, "zero\none\n")
    notes.history.proposals.accept(first.id)
    assert (notes.text(A), notes.text(B)) == ("zero\none\ntwo\nthree\n", "b\nc\n")


def test_what_it_was_made_from_may_be_something_else_than_the_file(notes: Notes) -> None:
    notes.write(A, "one\nlater\n")
    ref = propose(notes.history, {A: "one\nproposed\n"}, a=b"one\n")
    notes.history.proposals.accept(ref.id)
    assert notes.text(A).splitlines().count("later") == 1
    assert "proposed" in notes.text(A)
    notes.check()


def test_what_was_expected_of_a_file_is_checked(notes: Notes) -> None:
    old = notes.write(A, "one\n").paths[0].blob
    notes.write(A, "two\n")
    with (
        pytest.raises(ConflictError, match="Nothing was proposed"),
        notes.history.change(Actor.AGENT, "edit", sink=notes.history.proposals.add) as change,
    ):
        change.write(A, "one, edited\n", expecting=old)
    assert notes.history.proposals.all() == ()
    assert not list((notes.workspace.root / "knowledge").rglob("*conflict*"))


def test_outside_edits_are_recorded_before_something_is_proposed_for_them(notes: Notes) -> None:
    notes.write(A, "one\n")
    notes.put(A, "one\nmine\n")
    ref = propose(notes.history, {A: "one\nmine\nproposed\n"})
    assert next(notes.history.log()).actor is Actor.YOU
    assert [change.kind for change in ref.commit.paths] == ["modified"]
    assert "+mine" not in as_patch(notes.history.changes_of(ref.commit.id))


def test_what_a_machine_proposes_holds_no_secret(notes: Notes) -> None:
    notes.write(A, "one\n")
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    ref = propose(notes.history, {A: f"one\nkey {secret}\n"})
    assert secret not in as_patch(notes.history.changes_of(ref.commit.id))


def test_packing_keeps_proposals(notes: Notes) -> None:
    notes.write(A, LINES)
    ref = propose(notes.history, {A: f"{LINES}more\n"})
    for number in range(20):
        notes.write(B, f"{number}\n")
    assert Packing(notes.history._repository, 1, whole=True).run() > 0
    assert not notes.history._repository.is_loose(ref.commit.id)
    notes.history = notes.reopened()
    notes.history.proposals.accept(ref.id)
    assert notes.text(A) == f"{LINES}more\n"
    notes.check()


def test_refs_that_git_has_packed_are_proposals_still(notes: Notes) -> None:
    notes.write(A, "one\n")
    kept, dropped = (propose(notes.history, {A: f"{n}\n"}) for n in (1, 2))
    notes.git("pack-refs", "--all")
    notes.history.proposals.drop(dropped.id)
    assert [each.id for each in notes.reopened().proposals.all()] == [kept.id]
    notes.write(A, "two\n")
    assert notes.git("rev-parse", "main").strip() == next(notes.history.log()).id


def test_a_purge_takes_the_secret_out_of_proposals_and_keeps_them(notes: Notes) -> None:
    notes.write(A, f"one\nswordfish\n{LINES}")
    ref = propose(notes.history, {A: f"one\nswordfish\n{LINES}more\n"})
    other = propose(notes.history, {B: "the swordfish again\n"})
    secret = Secret("swordfish")
    with notes.history.purging() as purge:
        purge.run(secret, lambda _: None)
    assert notes.history.find_secret(secret) == []
    notes.history = notes.reopened()
    assert [each.id for each in notes.history.proposals.all()] == [ref.id, other.id]
    notes.history.proposals.accept(ref.id)
    assert notes.text(A).endswith("more\n")
    assert "swordfish" not in notes.text(A)
    notes.check()


def test_a_purge_reaches_a_secret_that_was_only_proposed(notes: Notes) -> None:
    head = notes.write(A, "one\n")
    ref = propose(notes.history, {A: "one\nswordfish\n"})
    secret = Secret("swordfish")
    with notes.history.purging() as purge:
        purge.run(secret, lambda _: None)
    assert notes.history.find_secret(secret) == []
    assert next(notes.history.log()).id == head.id
    notes.history.proposals.accept(ref.id)
    assert "swordfish" not in notes.text(A)


def test_a_sync_leaves_proposals_at_home(
    notes: Notes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "two\n"})
    place = tmp_path_factory.mktemp("remote") / "there.git"
    notes.history.sync(parse_address(str(place)))
    assert not list(place.rglob("proposals"))
    assert not (place / "objects" / ref.commit.id[:2] / ref.commit.id[2:]).exists()


def test_a_check_reads_proposals_and_names_a_damaged_one(notes: Notes) -> None:
    notes.write(A, "one\n")
    ref = propose(notes.history, {A: "two\n"})
    assert notes.history.check().problems == ()
    file = notes.workspace.repository / "objects" / ref.commit.id[:2] / ref.commit.id[2:]
    file.unlink()
    problems = notes.reopened().check().problems
    assert any(f"proposal {ref.id}" in problem for problem in problems)
    assert notes.history.proposals.all() == ()
