"""Masking secrets and home paths in texts, records and frames that are to be shared.

A secret becomes ``[masked: its kind]``, a home folder ``~``. What is known by its form is found anywhere,
the rest (``password=…``) by what stands before it. Nothing is looked up or sent. That nothing else is
secret in a text can't be promised.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from crystal_nb.errors import ConfigError

__all__ = ["HOME_PATH", "KINDS", "Masker", "Redaction", "describe_masked", "redact"]


class _Rule(NamedTuple):
    kind: str
    needles: tuple[str, ...]
    """One of them is in every text that the pattern fits, in lower case."""
    pattern: re.Pattern[str]
    """Its group ``secret`` is masked, or all of it when it has none."""


def _rule(kind: str, needles: str, pattern: str) -> _Rule:
    return _Rule(kind, tuple(needles.split()), re.compile(pattern))


_B, _E = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"
_SET = r"\\*[\"']?\s*(?:=>|:=|=|:)\s*\\*[\"'`]?"
"""Between a name and its value, in code, JSON, YAML and shell."""
_RULES = (
    _rule(
        "private key",
        "private",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?s:.{0,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,.-]*)",
    ),
    _rule("private key", "private-lines", r"Private-Lines: \d+(?P<secret>(?:\r?\n|\\n)(?:[A-Za-z0-9+/=\r\n\\]+))"),
    _rule("age key", "age-secret-key", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    _rule("AWS key id", "akia asia abia acca aroa aida", rf"{_B}(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{{16}}{_E}"),
    _rule(
        "AWS secret key",
        "aws secretaccesskey",
        r"(?i)(?:aws.{0,20}?(?:secret|key)[a-z_]{0,20}|secretaccesskey)"
        rf"{_SET}(?P<secret>[A-Za-z0-9/+=]{{40}})(?![A-Za-z0-9/+=])",
    ),
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})"),
    _rule("GitLab token", "gl", rf"{_B}gl(?:pat|dt|rt|cbt|ptt|soat|agent|imt|ft|oas|ffct)-[A-Za-z0-9_-]{{20,}}"),
    _rule("Slack token", "xox xapp-", rf"{_B}(?:xox[a-z]|xapp)-[A-Za-z0-9-]{{10,}}"),
    _rule("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    _rule("Stripe key", "k_live_ k_test_ whsec_", rf"{_B}(?:[srp]k_(?:live|test)_[A-Za-z0-9]{{16,}}|whsec_\w{{24,}})"),
    _rule("Anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _rule(
        "OpenAI key",
        "sk-",
        rf"{_B}sk-(?=[A-Za-z0-9_-]{{0,80}}?[0-9A-Z])(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{{20,}}",
    ),
    _rule("OpenRouter key", "sk-or-", r"sk-or-[A-Za-z0-9-]{20,}"),
    _rule("Groq key", "gsk_", rf"{_B}gsk_[A-Za-z0-9]{{20,}}"),
    _rule("Google key", "aiza ya29. gocspx-", rf"{_B}(?:AIza[\w-]{{35}}|ya29\.[\w-]{{20,}}|GOCSPX-[\w-]{{20,}})"),
    _rule(
        "Azure key", "key= key: sig=", r"(?:AccountKey|SharedAccessKey)\s*[=:]\s*(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"
    ),
    _rule("Azure signature", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=]{40,})"),
    _rule("Azure client secret", "q~", r"(?<![\w~.-])[\w~.-]{3}[78]Q~[\w~.-]{31,34}(?![\w~.-])"),
    _rule("npm token", "npm_ _authtoken", rf"(?:{_B}npm_[A-Za-z0-9]{{36}}|_authToken=(?P<secret>[^\s\"'$]{{8,}}))"),
    _rule("PyPI token", "pypi-", r"pypi-Ag[A-Za-z0-9_-]{50,}"),
    _rule("JWT", "eyj", rf"{_B}eyJ[\w-]{{8,}}\.eyJ[\w-]{{8,}}\.?[\w-]*"),
    _rule("SendGrid key", "sg.", rf"{_B}SG\.[\w-]{{16,}}\.[\w-]{{32,}}"),
    _rule("Twilio key", "sk ac", rf"{_B}(?:SK|AC)[0-9a-f]{{32}}{_E}"),
    _rule("Mailgun key", "key-", rf"{_B}key-[0-9a-zA-Z]{{32}}{_E}"),
    _rule("Mailchimp key", "-us", rf"{_B}[0-9a-f]{{32}}-us\d{{1,2}}{_E}"),
    _rule("Heroku key", "hrku-", r"HRKU-[A-Za-z0-9_-]{30,}"),
    _rule(
        "Heroku key",
        "heroku",
        rf"(?i)heroku[a-z_ -]{{0,20}}{_SET}(?P<secret>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})",
    ),
    _rule("DigitalOcean token", "_v1_", rf"{_B}do[opr]_v1_[a-f0-9]{{64}}"),
    _rule("Hugging Face token", "hf_ api_org_", rf"{_B}(?:hf_|api_org_)[A-Za-z0-9]{{30,}}"),
    _rule("Telegram token", ":aa", rf"{_B}\d{{8,10}}:AA[\w-]{{33}}{_E}"),
    _rule("Discord webhook", "discord", r"discord(?:app)?\.com/api/webhooks/\d+/(?P<secret>[\w-]{30,})"),
    _rule("Discord token", ".", rf"{_B}[MNO][A-Za-z\d_-]{{23,27}}\.[A-Za-z\d_-]{{6}}\.[A-Za-z\d_-]{{27,38}}{_E}"),
    _rule(
        "Datadog key",
        "dd datadog",
        rf"(?i)(?:datadog|{_B}dd)[a-z_ -]{{0,20}}key{_SET}(?P<secret>[0-9a-f]{{32,40}}){_E}",
    ),
    _rule(
        "Cloudflare token",
        "cloudflare cf_ v1.0-",
        rf"(?:v1\.0-[a-f0-9]{{24}}-[a-f0-9]{{100,}}|(?i:cloudflare|{_B}cf)_?(?i:[a-z_ -]{{0,20}}(?:key|token))"
        rf"{_SET}(?P<secret>[A-Za-z0-9_-]{{37,45}}){_E})",
    ),
    _rule("Square token", "sq0 eaaa", rf"{_B}(?:sq0[a-z]{{3}}-[\w-]{{22,43}}|EAAA[\w-]{{56,}})"),
    _rule("Shopify token", "shp", rf"{_B}shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{32}}"),
    _rule("Databricks token", "dapi", rf"{_B}dapi[a-f0-9]{{32}}"),
    _rule("Docker token", "dckr_", r"dckr_[po]at_[\w-]{20,}"),
    _rule("Vault token", "hvs. hvb.", rf"{_B}hv[sb]\.[\w-]{{20,}}"),
    _rule("Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    _rule("Grafana token", "glsa_ glc_", rf"{_B}(?:glsa|glc)_[\w+/=-]{{30,}}"),
    _rule("Linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}"),
    _rule("Notion key", "ntn_ secret_", rf"{_B}(?:ntn_[A-Za-z0-9]{{40,}}|secret_[A-Za-z0-9]{{43}}{_E})"),
    _rule("New Relic key", "nrak-", r"NRAK-[A-Z0-9]{20,}"),
    _rule("Postman key", "pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _rule("Supabase key", "sbp_ sb_secret_", rf"{_B}(?:sbp_[a-f0-9]{{40}}|sb_secret_[\w-]{{20,}})"),
    _rule("Sentry token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    _rule(
        "database URL",
        "://",
        r"(?i)\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|redis|rediss|amqps?|mssql|sqlserver|oracle|clickhouse|cockroachdb)"
        r"(?:\+[a-z0-9]+)?://[^\s:/@\"'<>]*:(?P<secret>[^\s@\"'<>\[]+)@",
    ),
    _rule("URL password", "://", r"(?i)\b[a-z][a-z0-9+.-]*://[^\s:/@\"'<>]*:(?P<secret>[^\s:@/\"'<>\[$]+)@"),
    _rule(
        "netrc password",
        "machine",
        r"machine\s{1,9}\S{1,200}+\s{1,9}login\s{1,9}\S{1,200}+\s{1,9}password\s{1,9}"
        r"(?P<secret>[^\s\[]\S*)",
    ),
    _rule(
        "authorization header",
        "bearer basic token",
        r"(?i)\b(?:bearer|(?<=authorization: )(?:basic|token)|(?<=authorization:)(?:basic|token))\s+"
        r"(?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,}+)",
    ),
    _rule("curl password", "-u --user", r"(?<!\S)(?:-u|--user)[ =][\"']?[\w.@+-]+:(?P<secret>[^\s\"'\[$]{4,})"),
    _rule(
        "password",
        "pass pwd",
        rf"(?i)(?:password|passwd|passphrase|passcode|(?<![a-z])pwd|(?<![a-z])pass){_SET}"
        r"(?P<secret>(?!\[masked)[^\s\"'`,;(){}\[\]<>$]{4,}+)(?![(\[])",
    ),
    _rule(
        "secret",
        "secret token key credential auth",
        rf"(?i)(?:secret|token|api[_-]?key|access[_-]?key|account[_-]?key|credentials?|auth){_SET}"
        r"(?P<secret>(?=[\w.~+/=:-]{0,200}?\d)(?=[\w.~+/=:-]{0,200}?[a-z])[\w.~+/=:-]{16,}+)",
    ),
)
KINDS = tuple(dict.fromkeys(rule.kind for rule in _RULES))
"""Kinds of secrets that are known, the most certain first."""
HOME_PATH = "home path"
"""What a masked home folder counts as."""

_NAME = r"(?!Shared\b|Public\b|Default\b)[^/\\\s\"'<>:|?*,;)\]}%]+"
_HOMES = re.compile(
    rf"(?<![\w.~-])(?:/mnt/[a-z])?/(?:home|Users)/{_NAME}"
    rf"|(?<![A-Za-z])/?[A-Za-z](?::|%3[Aa])(?:/|\\+)Users(?:/|\\+)(?:[^/\\\"'<>:|?*,;\r\n]{{1,40}}(?=\\)|{_NAME})"
    rf"|\A(?:home|Users)/{_NAME}(?=/|\Z)"
    r"|%2[Ff](?:home|Users)%2[Ff][^%/\s\"'<>]+"
)
_ENCODED_HOME = re.compile(r"(?<![\w-])-(?:home|Users)-[A-Za-z0-9_.]+(?=-|$|[/\\\"'\s])")
"""As Claude Code names the folder of a project."""
_HARMLESS = re.compile(
    r"(?i)(?:none|null|nil|undefined|true|false|str|string|text|bytes|int|number|any|optional|self|args|"
    r"required|empty|unset|changeme|example|your[\w-]*|my[_-]?(?:password|secret|token)|"
    r"(?:\w*_)?(?:password|passwd|pwd|pass|secret|token|key)s?|[*x.…-]+|[a-z_]\w*(?:\.[a-z_]\w*)+|%[a-z]\S*|:\w+)[.!?:]*"
)


_TEXTLESS = (int, float, complex, Decimal, date, time, timedelta, Enum, UnsetType, type(None))


class Masker:
    """Masks, and counts what it masked by kind.

    >>> masker = Masker()
    >>> masker.text("curl -u ada:s3cret99 /home/ada/x"), dict(masker.masked)
    ('curl -u ada:[masked: curl password] ~/x', {'curl password': 1, 'home path': 1})
    """

    def __init__(self) -> None:
        self.masked: Counter[str] = Counter()

    def text(self, text: str) -> str:
        """The text with what is to be masked masked."""
        low = text.lower()
        for rule in _RULES:
            if any(needle in low for needle in rule.needles):
                text = rule.pattern.sub(partial(self._mask, rule), text)
        text = _HOMES.sub(self._home, text)
        return _ENCODED_HOME.sub(lambda match: self._home(match, "-~"), text)

    def _mask(self, rule: _Rule, match: re.Match[str]) -> str:
        secret = match.groupdict().get("secret")
        if secret is None:
            self.masked[rule.kind] += 1
            return f"[masked: {rule.kind}]"
        if rule.kind in ("password", "secret") and _HARMLESS.fullmatch(secret):
            return match[0]
        self.masked[rule.kind] += 1
        start, end = (at - match.start() for at in match.span("secret"))
        return f"{match[0][:start]}[masked: {rule.kind}]{match[0][end:]}"

    def _home(self, match: re.Match[str], short: str = "~") -> str:
        self.masked[HOME_PATH] += 1
        return short

    def value(self, value: Any) -> Any:
        """Texts, bytes, records, lists, dicts and frames with all text in them masked; numbers and times as they are.

        Raises
        ------
        ConfigError
            If there is a value in it that can't be looked into.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.text(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if isinstance(value, Struct):
            return replace(value, **{name: self.value(getattr(value, name)) for name in value.__struct_fields__})
        if isinstance(value, Mapping):
            return {self.value(key): self.value(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return type(value)(map(self.value, value))
        if hasattr(value, "get_columns"):
            return value.with_columns([self._column(column) for column in value.get_columns()])
        if hasattr(value, "to_list") and hasattr(value, "dtype"):
            return self._column(value)
        if isinstance(value, _TEXTLESS):
            return value
        raise ConfigError(f"can't look for secrets in a value of type {type(value).__name__}")

    def _column(self, column: Any) -> Any:
        """A polars column; each text of it is looked at once, and counts as often as it stands there."""
        if str(column.dtype) == "String":
            counts = dict(zip(*column.value_counts().get_columns(), strict=True))
            changed = {text: masked for text in counts if text and (masked := self._often(text, counts[text])) != text}
            return column.replace(changed) if changed else column
        if column.dtype.is_nested() or str(column.dtype) == "Binary":
            return type(column)(column.name, [self.value(v) for v in column.to_list()], dtype=column.dtype)
        return column

    def _often(self, text: str, times: int) -> str:
        before = self.masked.copy()
        masked = self.text(text)
        found = self.masked - before
        self.masked = before + Counter({kind: n * times for kind, n in found.items()})
        return masked


class Redaction(Struct, frozen=True):
    """A value without what was masked in it.

    Attributes
    ----------
    value : Any
        Like what was given.
    masked : dict[str, int]
        How often each kind was masked; never what.
    """

    value: Any
    masked: dict[str, int]

    def __repr__(self) -> str:
        return f"Redaction: {describe_masked(self.masked)}; see .value"

    def __str__(self) -> str:
        return self.value if isinstance(self.value, str) else repr(self)


def describe_masked(masked: Mapping[str, int]) -> str:
    """Say what was masked, in words.

    >>> describe_masked({"JWT": 2}), describe_masked({})
    ('masked: 2 × JWT', 'nothing was masked')
    """
    counts = ", ".join(f"{n:,} × {kind}" for kind, n in sorted(masked.items(), key=lambda item: (-item[1], item[0])))
    return f"masked: {counts}" if counts else "nothing was masked"


def redact(value: Any) -> Redaction:
    r"""Mask secrets and home paths in a text, frame, record, report or corpus.

    What is found by its form: keys, tokens and webhooks of `redaction.KINDS`, private keys, JSON web
    tokens, passwords in URLs; by what stands before it: ``password=``, ``token:``, ``Authorization:`` and
    the like. Folders of a person (``/home/ada``, ``/Users/ada``, ``C:\Users\ada``) become ``~``.

    Parameters
    ----------
    value
        A text or bytes, a polars frame, a record, a list or dict of these, an `AuditReport`, a `Corpus`.

    Returns
    -------
    Redaction
        The masked value, and how often each kind was masked.

    Raises
    ------
    ConfigError
        If there is something in it that can't be looked into, such as a lazy frame.

    Examples
    --------
    >>> found = redact("password=hunter22 in /home/ada/.pgpass")
    >>> found.value, found
    ('password=[masked: password] in ~/.pgpass', Redaction: masked: 1 × home path, 1 × password; see .value)
    """
    if hasattr(value, "redacted"):
        shared = value.redacted()
        return Redaction(shared, dict(shared.masked))
    masker = Masker()
    masked = masker.value(value)
    return Redaction(masked, dict(masker.masked))
