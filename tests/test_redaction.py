"""Secrets of every kind and home paths are masked, and little else is."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import texts

import crystal_nb as cnb
from crystal_nb.redaction import HOME_PATH, KINDS, Masker, redact

# Put together here, so that no scanner takes this file for a leak.
LOW, UP, DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
MIX = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6hJ9kL2nP5qR8tU1wX4yZ7bC0eF3gI6jM9lO2rS5uV8" * 2
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9" * 8


def dash(*parts: str) -> str:
    return "-".join(parts)


def bare(*parts: str) -> str:
    return "".join(parts)


SECRETS: dict[str, tuple[str, str]] = {
    "AWS key id": ("{}", bare("AK", "IA", UP[:12], DIGITS[:4])),
    "AWS secret key": ("aws_secret_access_key = {}", MIX[:40]),
    "GitHub token": ("remote uses {} now", bare("gh", "p_", MIX[:36])),
    "GitLab token": ("{}", bare("gl", "pat-", MIX[:20])),
    "Slack token": ("{}", dash(bare("xo", "xb"), DIGITS, DIGITS, MIX[:24])),
    "Slack webhook": ("curl https://{}", bare("hooks.slack", ".com/services/T00000000/B00000000/", MIX[:24])),
    "Stripe key": ("{}", bare("sk", "_live_", MIX[:24])),
    "Anthropic key": ("{}", bare("sk-", "ant-", "api03-", MIX[:60])),
    "OpenAI key": ("OPENAI_API_KEY={}", bare("sk-", "proj-", MIX[:48])),
    "Groq key": ("{}", bare("gs", "k_", MIX[:52])),
    "Google key": ("key={}&q=1", bare("AI", "za", MIX[:35])),
    "Azure key": ("DefaultEndpointsProtocol=https;AccountKey={};", bare(MIX[:86], "==")),
    "npm token": ("{}", bare("np", "m_", MIX[:36])),
    "PyPI token": ("{}", bare("py", "pi-", "AgEIcHlwaS5vcmc", MIX[:60])),
    "JWT": ("cookie {}", ".".join((bare("ey", "J", MIX[:20]), bare("ey", "J", MIX[:40]), MIX[:43]))),
    "private key": (
        "key:\n{}\nend",
        bare(
            "-----BEGIN OPENSSH ",
            "PRIVATE KEY-----\n",
            MIX[:64],
            "\n",
            MIX[:20],
            "\n-----END OPENSSH ",
            "PRIVATE KEY-----",
        ),
    ),
    "age key": ("{}", bare("AGE-", "SECRET-", "KEY-1", UP, UP)),
    "URL password": ("git clone https://ada:{}@example.org/x", MIX[:12]),
    "database URL": ("postgres://ada:{}@db.example.org/x", MIX[:12]),
    "authorization header": ("Authorization: Bearer {}", MIX[:30]),
    "SendGrid key": ("{}", bare("S", "G.", MIX[:22], ".", MIX[:43])),
    "Twilio key": ("{}", bare("S", "K", HEX[:32])),
    "Mailgun key": ("{}", dash("key", HEX[:32])),
    "Mailchimp key": ("{}", dash(HEX[:32], "us12")),
    "Heroku key": ("HEROKU_API_KEY={}", dash(HEX[:8], HEX[:4], HEX[:4], HEX[:4], HEX[:12])),
    "DigitalOcean token": ("{}", bare("do", "p_v1_", HEX[:64])),
    "Hugging Face token": ("{}", bare("h", "f_", LOW, UP[:8])),
    "Telegram token": ("bot{}/send".replace("bot", "bot "), bare("123456789", ":AA", MIX[:33])),
    "Discord token": ("{}", ".".join((bare("M", MIX[:23]), MIX[:6], MIX[:30]))),
    "Discord webhook": ("https://discord.com/api/webhooks/1234567/{}", MIX[:68]),
    "Datadog key": ("DD_API_KEY={}", HEX[:32]),
    "password": ("password={}", "hunter22"),
    "netrc password": ("machine example.org login ada password {}", "hunter22"),
    "Cloudflare token": ("CF_API_TOKEN={}", MIX[:40]),
    "Square token": ("{}", bare("sq", "0atp-", MIX[:22])),
    "Shopify token": ("{}", bare("shp", "at_", HEX[:32])),
    "Databricks token": ("{}", bare("da", "pi", HEX[:32])),
    "Docker token": ("{}", bare("dckr", "_pat_", MIX[:27])),
    "Vault token": ("{}", bare("hv", "s.", MIX[:60])),
    "Terraform token": ("{}", bare(MIX[:14], ".atlas", "v1.", MIX[:67])),
    "Grafana token": ("{}", bare("gl", "sa_", MIX[:32], "_", HEX[:8])),
    "Linear key": ("{}", bare("lin_", "api_", MIX[:40])),
    "Notion key": ("{}", bare("nt", "n_", MIX[:46])),
    "New Relic key": ("{}", bare("NR", "AK-", UP, "2")),
    "Postman key": ("{}", bare("PM", "AK-", HEX[:24], "-", HEX[:34])),
    "Supabase key": ("{}", bare("sb", "p_", HEX[:40])),
    "Sentry token": ("{}", bare("sntr", "ys_", MIX[:60])),
    "OpenRouter key": ("{}", bare("sk-", "or-", "v1-", HEX[:64])),
    "Azure signature": ("https://x.blob.core.windows.net/c?sv=2024&sig={}", bare(MIX[:43], "%3D")),
    "Azure client secret": ("{}", bare(MIX[:3], "8", "Q~", MIX[:34])),
    "curl password": ("curl -u ada:{} https://example.org", MIX[:12]),
    "cookie": ("Cookie: sid={}; theme=dark", MIX[:24]),
    "secret": ('"client_secret": "{}"', MIX[:24]),
}
OTHER_KIND = {"OpenRouter key": "OpenAI key", "Linear key": "Linear key"}


def test_every_kind_is_planted_and_thirty_at_least():
    assert len(SECRETS) >= 30
    assert set(SECRETS) == set(KINDS)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_masked_and_named(kind):
    frame, secret = SECRETS[kind]
    found = redact(f"before {frame.format(secret)} after")
    assert secret not in found.value
    assert found.masked == {OTHER_KIND.get(kind, kind): 1}
    assert found.value.startswith("before ")
    assert found.value.endswith(" after")
    assert secret not in repr(found)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_in_json_and_at_the_end_of_a_sentence_is_masked(kind):
    import json

    frame, secret = SECRETS[kind]
    for text in (
        json.dumps({"text": frame.format(secret)}),
        f"It is `{frame.format(secret)}`.",
        f"({frame.format(secret)})",
    ):
        shown = json.dumps(secret)[1:-1]
        assert shown not in redact(text).value


def test_a_private_key_that_is_cut_off_is_masked_as_far_as_it_goes():
    text = bare("-----BEGIN RSA ", "PRIVATE KEY-----\n", MIX[:64], "\n", MIX[:30])
    assert redact(text).value == "[masked: private key]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ada/x.py", "~/x.py"),
        ("/Users/ada.l/x.py", "~/x.py"),
        ("file:///home/ada/x", "file://~/x"),
        ("C:\\Users\\Ada Lovelace\\x", "~\\x"),
        ("C:\\Users\\ada\\x", "~\\x"),
        ('"C:\\\\Users\\\\ada\\\\x"', '"~\\\\x"'),
        ("/c%3A/Users/ada/x", "~/x"),
        ("/mnt/c/Users/ada/x", "~/x"),
        ("home/ada/my app", "~/my app"),
        ("-home-ada-app", "-~-app"),
        ("see /home/ada, please", "see ~, please"),
        ("cd /home", "cd /home"),
        ("/srv/home/ada", "/srv/home/ada"),
        ("the home/ada of", "the home/ada of"),
        ("/Users/Shared/x", "/Users/Shared/x"),
    ],
)
def test_home_paths(text, shown):
    assert redact(text).value == shown


@pytest.mark.parametrize(
    "text",
    [
        "password: str",
        "def login(password=None, token=''):",
        "password = config.password",
        'password = os.environ["PASSWORD"]',
        "password=getpass.getpass()",
        "token = next(tokens)",
        "input_tokens: 128, output_tokens: 4096",
        "api_key=YOUR_API_KEY",
        "export PASSWORD=$SECRET",
        "password: ********",
        "password=%s",
        "commit 2d8903377fd3d1c60d1d1b7f4bd4a4cbb9d3f1a2",
        "id 3f1c9a52-0000-4000-8000-000000000001",
        "sha256:" + HEX[:64],
        "see https://example.org/a:b@c",
        "ssh://git@example.org/x",
        "the bearer token goes into the header",
        "sk-learn-and-more-of-such-words-here",
        "a key-value store, key-by-key",
        "Math.random().toString(36)",
        "secretary: Ada",
        "api_key=settings.s3_bucket.token1",
        "token = config.oauth2.access_token",
        "'password=' + user + '&x=1'",
        'print("password:", password, "ok")',
        'input("Password: ").strip("x")',
        '"password=".concat(x, "y")',
        '"password": "Password is required"',
        'password="$PASSWORD x"',
        'password: "{{ vault }}"',
        'password="<your pass>"',
        "use --password flag. or --token VALUE",
        "docker login --password-stdin registry1",
        "`password=` and `token=`",
        "password=user.name",
        'SECRET_KEY = os.environ["SECRET_KEY"]',
        "<password>$X</password>",
        "<password>string</password>",
        "postgres://user:<password>@h/x",
        "Cookie: yes",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text).value == text


WRAPPINGS = ("{}", "before {} after", "`{}`", "({})", "[{}]", "\n{}\n", "x: {}, y")


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_counts_once_and_not_again(kind):
    frame, secret = SECRETS[kind]
    for wrapping in WRAPPINGS:
        once = redact(wrapping.format(frame.format(secret)))
        assert list(once.masked.values()) == [1], wrapping
        again = redact(once.value)
        assert (again.value, again.masked) == (once.value, {})


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_is_no_secret_and_its_words_name_none(kind):
    mask = f"[masked: {kind}]"
    frames = [frame for frame, _ in SECRETS.values()]
    frames += [
        "_authToken={}",
        'password="{}"',
        "{}=abcd1234",
        "{}: abcd1234",
        "/home/{}",
        "-u a:{}",
        "a://b:{}@c",
        "--token {}",
    ]
    for text in (frame.replace("{}", mask) for frame in frames):
        assert (redact(text).value, redact(text).masked) == (text, {})


def test_a_token_after_its_name_in_an_npmrc_is_masked_once():
    found = redact(f"//registry.npmjs.org/:_authToken={HEX[:36]}")
    assert (found.value, found.masked) == ("//registry.npmjs.org/:_authToken=[masked: npm token]", {"npm token": 1})


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('password: "{}"', "correct horse battery"),
        (r'{{"text": "password=\"{}\" x"}}', "correct horse"),
        ('password="{}"', "pa$$w0rd123"),
        ('password="{}"', r"a\"b c d"),
        ("PASSWORD='{}'", "a(b)c[d]{e}1"),
        ("postgres://app:{}@db/x", "p@ss/w0rd!"),
        ("postgres://u:{}@h/d", "a[b]c"),
        ("https://u:{}@h/d", "a[b]c"),
        ("password={} x", "tr0b"),
        ("--token {} x", "abc123def456"),
        ("--password {} x", "hunter22"),
        ("--password='{}'", "hunter22"),
        ('["--password", "{}"]', "hunter22"),
        ("sshpass -p {} ssh h", "hunter"),
        ("<db.password>{}</db.password>", "correct horse"),
        ("Set-Cookie: {}", "sid=abcdef123456; Path=/"),
        ("SECRET_KEY = '{}'", "django-insecure-#5$x(y)0"),
    ],
)
def test_what_stands_where_a_secret_does_is_masked_whole(text, secret):
    found = redact(text.format(secret))
    (kind,) = found.masked
    assert (found.value, found.masked[kind]) == (text.format(f"[masked: {kind}]"), 1)


def test_a_password_has_four_characters_at_least():
    for text in ("password={}", 'password="{}"', '{{"name": "PASSWORD", "value": "{}"}}', "curl -u ada:{}"):
        assert redact(text.format("x7z")).value == text.format("x7z")
        assert "x7zq" not in redact(text.format("x7zq")).value
    assert redact({"password": "x7z"}).masked == {}
    assert redact({"password": "x7zq"}).masked == {"password": 1}


@given(texts)
def test_masking_twice_is_masking_once(text):
    once = redact(text).value
    assert redact(once).value == once


@given(st.lists(st.sampled_from(sorted(SECRETS)), max_size=5))
def test_secrets_side_by_side_are_all_masked(kinds):
    text = "\n".join(SECRETS[kind][0].format(SECRETS[kind][1]) for kind in kinds)
    found = redact(text)
    assert not [kind for kind in kinds if SECRETS[kind][1] in found.value]
    assert redact(found.value).masked == {}


FRAGMENTS = st.sampled_from(
    [
        *(frame.format(secret) for frame, secret in SECRETS.values()),
        *(secret for _, secret in SECRETS.values()),
        *(
            "password",
            "=",
            ": ",
            '"',
            "'",
            "\\",
            "/",
            "home/",
            "Users",
            "-",
            "~",
            "ada",
            "//",
            "C:",
            "token: ",
            "\n",
            " ",
        ),
        *("[masked: password]", '"name": "', '", "value": "', "%2F", "://", "@", "-u ", "/home/ada", "c:\\users\\ada"),
    ]
)


@settings(max_examples=300)
@given(st.lists(FRAGMENTS, max_size=8))
def test_what_is_masked_in_front_of_a_secret_does_not_hide_it(fragments):
    once = redact("".join(fragments)).value
    again = redact(once)
    assert (again.value, again.masked) == (once, {})


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "token:",
        "password=",
        'password="',
        "secret_key='",
        "cookie: a=",
        "--token ",
        "sk-",
        "a://",
        "redis://a:",
        "machine x login ",
        "-----BEGIN PRIVATE " + "KEY-----!",
    ],
)
def test_hostile_text_takes_no_longer_than_other_text(text):
    redact(text * 20_000)
    redact(text + "a" * 200_000 + "(")


# Frames, records, corpora, reports


def test_frames_are_masked_in_all_their_texts():
    key = SECRETS["GitHub token"][1]
    frame = pl.DataFrame(
        {
            "text": [key, None, key, "/home/ada/x"],
            "list": [[key], [], None, ["plain"]],
            "struct": [{"a": key, "n": 1}, None, {"a": "x", "n": 2}, {"a": None, "n": 3}],
            "bytes": [key.encode(), None, b"\xff", b""],
            "number": [1, 2, 3, 4],
        }
    )
    found = redact(frame)
    assert found.masked == {"GitHub token": 5, HOME_PATH: 1}
    assert found.value.schema == frame.schema
    assert key not in str(found.value.to_dicts())
    assert found.value["text"].to_list() == ["[masked: GitHub token]", None, "[masked: GitHub token]", "~/x"]
    assert found.value["bytes"][2] == b"\xff"


def test_what_can_not_be_looked_into_is_refused():
    for value in (pl.LazyFrame({"a": ["x"]}), object(), [lambda: "x"]):
        with pytest.raises(cnb.ConfigError, match="can't look for secrets"):
            redact(value)


def test_what_was_masked_is_printed_in_place_of_a_frame():
    assert str(redact(pl.DataFrame({"a": ["/home/ada"]}))) == "Redaction: masked: 1 × home path; see .value"


def test_a_series_is_masked():
    assert redact(pl.Series(["/home/ada/x"])).value.to_list() == ["~/x"]


def corpus_with(tmp_path, text: str) -> tuple[cnb.Corpus, cnb.Config]:
    from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code

    home = tmp_path / "home" / "ada"
    for n, said in enumerate(("nothing to hide", text)):
        messages = tuple(
            SampleMessage(role, said, f"{n}-{role}", "2026-01-05T10:00:00.000Z") for role in ("user", "assistant")
        )
        write_claude_code(home, Sample(f"s{n}", messages))
    config = cnb.Config(home=home, platform="linux")
    return cnb.parse(cnb.scan("claude-code", config=config), config=config), config


def test_a_corpus_is_masked_and_says_what(tmp_path):
    key = SECRETS["GitHub token"][1]
    corpus, _ = corpus_with(tmp_path, f"use {key}")
    shared = corpus.redacted()
    assert shared.masked == {"GitHub token": 2}
    assert "masked: 2 × GitHub token" in repr(shared)
    everything = [getattr(shared, name).write_json() for name in ("conversations", "messages", "fates", "failures")]
    assert key not in "".join(everything)
    assert key not in repr(shared.parsed)


def test_hashes_of_a_masked_corpus_are_those_of_what_it_holds(tmp_path):
    corpus, _ = corpus_with(tmp_path, f"use {SECRETS['GitHub token'][1]}")
    shared = corpus.redacted()
    kept, changed = (
        a == b for a, b in zip(corpus.conversations["content_hash"], shared.conversations["content_hash"], strict=True)
    )
    assert (kept, changed) == (True, False)
    assert shared.conversations["content_hash"].to_list() == [cnb.content_hash(c) for c in shared]


def test_dropped_records_are_masked_too(parse_file):
    key = SECRETS["GitHub token"][1]
    parsed = parse_file("claude-code", f'{{"type":"x","text":"{key}"}}\n'.encode() * 2)
    assert key.encode() in parsed.fates[0].head
    assert key.encode() not in redact(parsed).value.fates[0].head


def test_a_report_is_masked(tmp_path):
    from crystal_nb.audit import AuditReport

    found = redact(AuditReport((), "/home/ada/.chatcrystal/data/chatcrystal.db"))
    assert found.value.store == "~/.chatcrystal/data/chatcrystal.db"
    assert found.masked == {HOME_PATH: 1}


def test_the_samples_hold_no_secret_and_none_is_found_in_them():
    """False positives on the sample corpus: none; home paths are what is there."""
    for profile in ("chatcrystal", "careful"):
        config = cnb.samples.config()
        shared = cnb.parse(cnb.scan(profile=profile, config=config), config=config).redacted()
        assert set(shared.masked) <= {HOME_PATH}


def test_false_positives_in_all_fixtures_are_counted():
    masker = Masker()
    for path in sorted(cnb.samples.fixtures().rglob("*")):
        if path.is_file() and path.suffix in (".jsonl", ".json", ".txt", ".toml", ".md"):
            masker.value(path.read_bytes())
    assert {kind: n for kind, n in masker.masked.items() if kind != HOME_PATH} == {}


# What a hostile look found


HOMES = [
    (r"c:\users\ada\x", r"~\x"),
    ("/c/Users/ada/x", "~/x"),
    ("/cygdrive/c/Users/ada/x", "~/x"),
    (r"\\wsl$\Ubuntu\home\ada\x", r"\\wsl$\Ubuntu\~\x"),
    (r"\\wsl.localhost\Ubuntu\home\ada", r"\\wsl.localhost\Ubuntu\~"),
    (r'"\\\\wsl$\\Ubuntu\\home\\ada\\x"', r'"\\\\wsl$\\Ubuntu\\~\\x"'),
    ("//wsl.localhost/Ubuntu/home/ada/x", "//wsl.localhost/Ubuntu/~/x"),
    ("vscode-remote://wsl%2Bubuntu/home/ada/x", "vscode-remote://wsl%2Bubuntu~/x"),
    ("vscode-remote://ssh-remote%2Bbox/Users/ada/x", "vscode-remote://ssh-remote%2Bbox~/x"),
    ("c%3A%5CUsers%5Cada%5Cx", "~%5Cx"),
    ("c%3A%2FUsers%2Fada%2Fx", "~%2Fx"),
    ("%252Fhome%252Fada%252Fx", "~%252Fx"),
    ("file:///C:/Users/ada%20lovelace/x", "file://~/x"),
    ("C:/Users/Ada Lovelace/x", "~/x"),
    (r"\/home\/ada\/x", r"~\/x"),
    ("-I/home/ada/include", "-I~/include"),
    ("/var/home/ada/x", "~/x"),
    ("/Volumes/Data/Users/ada/x", "~/x"),
    ("C--Users-ada-app", "-~-app"),
    ("-mnt-c-Users-ada-app", "-~-app"),
    ("-Users-ada, too", "-~, too"),
    (r"C:\Documents and Settings\ada\x", r"~\x"),
]


@pytest.mark.parametrize(("text", "shown"), HOMES)
def test_home_paths_in_other_spellings(text, shown):
    assert redact(text).value == shown
    assert redact(f"see {text}").value == f"see {shown}"
    assert redact(shown).masked == {}


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/home/welcome",
        "https://api.example.org/users/7",
        "a stay-at-home-mum",
        "GET /users/ada",
        "~/x",
    ],
)
def test_what_is_no_home_stays(text):
    assert redact(text).value == text


def test_the_own_home_is_masked_wherever_it_is(monkeypatch):
    from pathlib import Path

    monkeypatch.setattr(Path, "home", classmethod(lambda cls: cls("/data/people/ada-l")))
    text = "/data/people/ada-l/x -data-people-ada-l-x %2Fdata%2Fpeople%2Fada-l /data/people/ada-lo"
    assert redact(text).value == "~/x -~-x ~ /data/people/ada-lo"


def test_a_secret_whose_name_stands_in_another_field_is_masked():
    for value in (
        {"password": "correct horse"},
        {"env": {"API_TOKEN": "abcdefgh"}},
        {"name": "DB_PASSWORD", "value": "correct horse"},
        [{"key": "clientSecret", "value": "abcdefgh"}],
        pl.DataFrame({"password": ["correct horse", None, "abcdefgh"]}),
        pl.DataFrame({"login": [{"user": "ada", "passphrase": "correct horse"}]}),
        pl.Series("token", ["abcdefgh"]),
        '[{"name": "DB_PASSWORD", "value": "correct horse"}]',
        r'{"input": "[{\"name\": \"DB_PASSWORD\", \"value\": \"correct horse\"}]"}',
    ):
        found = redact(value)
        shown = str(found.value.to_dict(as_series=False) if isinstance(found.value, pl.DataFrame) else found.value)
        assert "horse" not in shown, value
        assert "abcdefgh" not in shown, value
        assert found.masked
        assert redact(found.value).masked == {}
    kept = {"max_tokens": "8", "author": "Ada Lovelace", "compass": "north", "token": "of my love", "password": None}
    assert redact(kept).value == kept


def test_categories_names_and_objects_of_a_frame_are_masked():
    key = SECRETS["GitHub token"][1]
    for frame in (
        pl.DataFrame({"a": pl.Series([key, "x", key], dtype=pl.Categorical)}),
        pl.DataFrame({"a": pl.Series(["x", key, None], dtype=pl.Enum([key, "x"]))}),
        pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Enum([key, "x"]))}),
        pl.DataFrame({"a": pl.Series([[key], None], dtype=pl.List(pl.Enum([key])))}),
        pl.DataFrame({"a": pl.Series([(key,)], dtype=pl.Object)}),
        pl.DataFrame({key: [1], f"{key}1": [2]}),
    ):
        found = redact(frame).value
        assert found.shape == frame.shape
        assert key not in f"{found.schema} {[column.to_list() for column in found]}"


def test_a_named_tuple_is_masked():
    from crystal_nb.store_schema import Layout

    assert redact(Layout(False, True)).value == Layout(False, True)


def test_half_a_secret_at_the_end_of_an_excerpt_is_not_shown(parse_file):
    key = SECRETS["GitHub token"][1]
    line = b'{"type":"x","text":"' + b"." * 60 + key.encode() + b'"}\n'
    parsed = parse_file("claude-code", line * 2)
    assert key[:12].encode() in parsed.fates[0].head
    candidate = cnb.Candidate("claude-code", "s", "/srv/s.jsonl", 0, "", "")
    from crystal_nb.corpus import ParsedConversation

    shared = cnb.Corpus([ParsedConversation(candidate, parsed.conversation, parsed.fates, "", "")], []).redacted()
    assert key[:8] not in shared.fates["excerpt"][0]
    assert key[:8] not in str(shared.losses()["example"].to_list())


def test_no_raw_text_is_reached_from_a_masked_corpus(tmp_path):
    """Also where its files lie in no home, so that their paths stay."""
    corpus, _ = corpus_with(tmp_path, "use it")
    id = corpus[0].id
    assert corpus.source_of("claude-code", id, 0)
    shared = corpus.redacted()
    with pytest.raises(cnb.SourceError, match="redacted"):
        shared.source_of("claude-code", id, 0)
    assert shared.losses()["characters"].null_count() == shared.losses().height


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_a_secret_is_masked_wherever_a_history_has_it(tmp_path, profile):
    """In ids, paths, titles, branches, tool calls and their answers, kinds of records, excerpts, failures."""
    import json

    key = SECRETS["GitHub token"][1]
    place = {
        "sessionId": key,
        "cwd": f"/srv/{key}",
        "gitBranch": key,
        "version": key,
        "timestamp": "2026-01-05T10:00:00Z",
    }
    call = {"type": "tool_use", "id": "t", "name": key, "input": {"env": {"DB_PASSWORD": "tr0ub4dor"}, "key": key}}
    answer = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": f"got {key}"}]}
    records = [
        {"type": "user", "uuid": key, **place, "message": {"role": "user", "content": f"use {key}"}},
        {"type": "assistant", "uuid": "b", "parentUuid": key, **place}
        | {"message": {"role": "assistant", "content": [{"type": "thinking", "thinking": key}, call]}},
        {"type": "user", "uuid": "c", "parentUuid": "b", **place, "message": {"role": "user", "content": [answer]}},
        {"type": "summary", "summary": f"All of {key}", "leafUuid": "c"},
        {"type": key, "uuid": "d", **place},
        {"type": "custom-title", "customTitle": key, "sessionId": key},
    ]
    lines = [json.dumps(record) for record in records]
    folder = tmp_path / "home" / "ada" / ".claude" / "projects" / f"-home-ada-{key}"
    folder.mkdir(parents=True)
    (folder / f"{key}.jsonl").write_text("\n".join([*lines, '{"broken": "' + key, ""]))
    (folder / f"{key[:-1]}0.jsonl").write_text(f'{{"no": "{key}"}}\n' * 9)
    config = cnb.Config(home=tmp_path / "home" / "ada", platform="linux")
    corpus = cnb.parse(cnb.scan("claude-code", profile=profile, config=config), config=config)
    frames = ("conversations", "messages", "fates", "failures")
    assert all(key in getattr(corpus, name).write_json() for name in frames[:3])
    shared = corpus.redacted()
    shown = [getattr(shared, name).write_json() for name in frames]
    shown += [repr(shared), shared._repr_html_(), str(shared.losses().to_dicts()), str(shared.books().to_dicts())]
    shown += [str([m.details for c in shared for m in c.messages]), cnb.widgets.ImportBrowser(shared).to_html()]
    shown += [str([(p.candidate, p.conversation.id, p.conversation.slug) for p in shared.parsed])]
    shown += [str([c.input for t in shared for m in t.messages if m.details for c in m.details.tools])]
    assert [n for n, text in enumerate(shown) if key in text or "tr0ub4dor" in text] == []
    assert shared.masked["GitHub token"] > 10
    assert cnb.redact(shared).masked == {}
