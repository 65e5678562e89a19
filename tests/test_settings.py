"""Settings: which source wins, and what is said about a wrong one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConfigurationError
from kbtui.settings import config_folder, describe_settings, load_settings, setting_names

if TYPE_CHECKING:
    from pathlib import Path


def _user_file(text: str) -> None:
    config_folder().mkdir(parents=True, exist_ok=True)
    (config_folder() / "config.toml").write_text(text)


def test_later_sources_win(tmp_path: Path) -> None:
    _user_file("[search]\nchunk_tokens = 100\nchunk_overlap = 10\ntext_weight = 0.1\n")
    (tmp_path / "kbtui.toml").write_text("[search]\nchunk_overlap = 20\ntext_weight = 0.2\n")
    environment = {"KBTUI_SEARCH__TEXT_WEIGHT": "0.3"}
    search = load_settings(tmp_path, environment=environment).search
    assert (search.chunk_tokens, search.chunk_overlap, search.text_weight) == (100, 20, 0.3)


def test_options_of_older_versions_are_passed_over(tmp_path: Path) -> None:
    old = "diversity = 0.3\nlink_boost = 0.1\nneighbour_boost = 0.2\nchunk_tokens = 100\n"
    flush = "[memory.flush]\nthreshold_tokens = 3000\n"
    (tmp_path / "kbtui.toml").write_text(f"[search]\n{old}{flush}")
    assert load_settings(tmp_path).search.chunk_tokens == 100
    assert "search.diversity" not in setting_names()


def test_the_quick_variables_set_the_chat_model() -> None:
    chat = load_settings(
        environment={
            "KBTUI_MODEL": "offline",
            "KBTUI_API_BASE": "http://127.0.0.1:1",
            "KBTUI_API_KEY": "sesame",
        }
    ).models.chat
    assert chat.api_key is not None
    assert (chat.model, chat.api_base, chat.api_key.get_secret_value()) == (
        "offline",
        "http://127.0.0.1:1",
        "sesame",
    )
    assert "sesame" not in repr(chat)


def test_lists_in_the_environment_are_read_as_toml() -> None:
    environment = {"KBTUI_PRIVACY__PRIVATE_PATHS": '["people/*", "*.secret.md"]'}
    assert load_settings(environment=environment).privacy.private_paths == (
        "people/*",
        "*.secret.md",
    )


@pytest.mark.parametrize("section", ["models", "budget", "log"])
def test_a_workspace_may_not_choose_endpoints_models_budgets_or_logs(
    tmp_path: Path, section: str
) -> None:
    (tmp_path / "kbtui.toml").write_text(f"[{section}]\n")
    with pytest.raises(ConfigurationError, match="may not"):
        load_settings(tmp_path, environment={})


def test_a_workspace_may_tighten_what_the_user_set_and_not_loosen_it(tmp_path: Path) -> None:
    config_folder().mkdir(parents=True, exist_ok=True)
    users = config_folder() / "config.toml"
    own = tmp_path / "kbtui.toml"
    users.write_text(
        '[memory]\nreview = "ask"\n[privacy]\nprivate_paths = ["people/*"]\n'
        '[search]\nroots = ["Notes"]\n'
    )
    own.write_text(
        '[memory]\nreview = "auto"\n[privacy]\nprivate_paths = ["!people/*", "diary.md"]\n'
        '[search]\nroots = ["Notes/work", "Notes/../Taxes", "Taxes"]\n'
    )
    settings = load_settings(tmp_path, environment={})
    assert settings.memory.review == "ask"
    assert settings.privacy.private_paths == ("!people/*", "diary.md", "people/*")
    assert settings.search.roots == ("Notes/work",)
    users.write_text('[memory]\nreview = "auto"\n')
    own.write_text('[memory]\nreview = "ask"\n[search]\nroots = ["Notes"]\n')
    settings = load_settings(tmp_path, environment={})
    assert (settings.memory.review, settings.search.roots) == ("ask", ("Notes",))


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    "root",
    ["sessions", "./sessions/", "Sessions/2026", ".kbtui", "", ".", "Notes/../sessions", "/etc"],
)
def test_no_setting_opens_conversations_or_what_lies_outside(
    tmp_path: Path, root: str, *, own: bool
) -> None:
    config_folder().mkdir(parents=True, exist_ok=True)
    file = tmp_path / "kbtui.toml" if own else config_folder() / "config.toml"
    file.write_text(f'[search]\nroots = ["Notes", "{root}"]\n')
    with pytest.raises(ConfigurationError, match="conversations, hidden folders") as caught:
        load_settings(tmp_path, environment={})
    assert "`search.roots" in caught.value.message
    assert repr(root) in caught.value.message


def test_an_unknown_key_names_the_nearest_one() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(environment={"KBTUI_SEARCH__CHUNK_TOKEN": "100"})
    assert "search.chunk_token" in caught.value.message
    assert "search.chunk_tokens" in caught.value.hint
    assert caught.value.exit_code == 3


def test_what_is_wrong_is_said_in_words_and_with_the_file_that_says_so() -> None:
    config_folder().mkdir(parents=True, exist_ok=True)
    file = config_folder() / "config.toml"
    file.write_text("[search]\nsemantic = 'maybe'\n")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(environment={"KBTUI_UI__THEME": "mist"})
    said = f"The setting `search.semantic` in {file} is wrong: it has to be true or false."
    assert caught.value.message == said
    with pytest.raises(ConfigurationError, match="in the environment is wrong"):
        load_settings(environment={"KBTUI_SEARCH__SEMANTIC": "perhaps"})
    file.write_text("[ui]\ncolour = 3\n")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(environment={})
    assert caught.value.message == f"There is no setting `ui.colour`, given in {file}."
    assert caught.value.hint == "`kbtui config list` shows all settings."


@pytest.mark.parametrize("text", ["[search\n", "[search]\nchunk_tokens = 'many'\n", "\xff"])
def test_a_broken_file_is_one_sentence(text: str) -> None:
    config_folder().mkdir(parents=True, exist_ok=True)
    (config_folder() / "config.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError):
        load_settings(environment={})


def test_every_setting_has_a_dotted_name_once() -> None:
    names = setting_names()
    assert "models.import.model" in names
    assert "ui.theme" in names
    assert len(names) == len(set(names)) == len(describe_settings())


def test_the_override_of_dreams_model_is_the_model_of_its_role(home: Path) -> None:
    environment = {
        "KBTUI_MODEL": "openai/large",
        "KBTUI_DREAM__MODEL_OVERRIDE": "ollama_chat/small",
        "KBTUI_MODELS__DREAM__MODEL": "openai/other",
    }
    settings = load_settings(environment=environment)
    assert settings.models.dream.model == "ollama_chat/small"
    assert settings.models.chat.model == "openai/large"
    assert load_settings(environment={}).models.dream.model is None


@pytest.mark.parametrize("models", ["wrong", {"dream": "wrong"}])
def test_an_override_beside_broken_settings_is_reported_as_such(home: Path, models: object) -> None:
    with pytest.raises(ConfigurationError, match="models"):
        load_settings(overrides={"dream": {"model_override": "openai/x"}, "models": models})


def test_the_default_workspace_is_a_whole_path_and_the_users_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="whole path"):
        load_settings(environment={"KBTUI_WORKSPACE__DEFAULT": "notes"})
    there = {"KBTUI_WORKSPACE__DEFAULT": "~/notes", "KBTUI_WORKSPACE": "/elsewhere"}
    assert load_settings(environment=there).workspace.default == "~/notes"
    (tmp_path / "kbtui.toml").write_text('[workspace]\ndefault = "/elsewhere"\n')
    with pytest.raises(ConfigurationError, match="may not"):
        load_settings(tmp_path, environment={})
